/* analysis_claims.c -- what the paper observed, one by one, and whether these models show it.
 *
 * The first LaMemo and the first Transformer-XL among the models are compared.  A claim is a number with its standard
 * error and a line; it is seen, or not seen, where the number is on one side of the line at a level of 95 %, else the
 * text read was too short to tell. */
#include "report/analysis_int.h"
#include "report/encoding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { COLS = 3, TEXT = sizeof(lam_finding), CLAIMS = 16 };

typedef struct claims {
    const lam_analysis *a;
    const lam_analysed *lamemo, *xl; /* or NULL */
    int n, left_out;                 /* rows; observations that could not be measured */
    lam_claim kinds[CLAIMS];
    lam_cell cells[CLAIMS][COLS];
    char measured[CLAIMS][TEXT];
} claims;

static const lam_analysed *first_of(const lam_analysis *a, const char *memory)
{
    for (int i = 0; i < a->n; i++)
        if (strcmp(a->models[i].cfg.memory, memory) == 0)
            return &a->models[i];
    return NULL;
}

/* A row that was begun but not judged is left out. */
static void drop_empty(claims *c)
{
    if (c->n > 0 && !c->cells[c->n - 1][2].text) {
        c->n--;
        c->left_out++;
    }
}

/* Begins a row. */
static void claim(claims *c, lam_claim kind, const char *text)
{
    drop_empty(c);
    lam_cell *row = c->cells[c->n];
    row[0].text = text;
    row[1].text = c->measured[c->n];
    row[2].text = NULL;
    c->kinds[c->n++] = kind;
}

/* Ends it: 1 seen, -1 not, 0 too close to tell; and the numbers. */
__attribute__((format(printf, 3, 4))) static void judge(claims *c, int side, const char *format,
                                                        ...)
{
    static const char *const verdicts[] = {"no", "too close to tell", "yes"};
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->measured[c->n - 1], TEXT, format, ap);
    va_end(ap);
    c->cells[c->n - 1][2].text = verdicts[side + 1];
}

/* A number without its sign, for which a word stands. */
static lam_shown amount(lam_estimate e)
{
    e.value = fabs(e.value);
    return lam_estimate_shown(&e);
}

/* That word. */
static const char *sign(const lam_estimate *e, const char *positive, const char *negative)
{
    return e->value < 0.0 ? negative : positive;
}

/* ---- Tables 1 and 2 ---- */

static void better(claims *c, const char *text, const lam_analysed *worse, const lam_analysed *good)
{
    claim(c, LAM_CLAIM_LOSS, text);
    if (!worse || !good || worse->probe.N != good->probe.N)
        return; /* other segments: other tokens */
    const lam_estimate e = lam_analysis_gap(c->a, &worse->probe.nll, &good->probe.nll);
    judge(c, lam_estimate_side(&e, 0.0), "%s %s by %s", lam_metric_name(c->a->corpus->info.metric),
          sign(&e, "lower", "higher"), amount(e).text);
}

static void tables(claims *c)
{
    const lam_analysed *none = first_of(c->a, "none"), *coarse = first_of(c->a, "compressive");
    const lam_analysed *infinite = first_of(c->a, "infinite");
    better(c, "Tables 1, 2: LaMemo predicts better than Transformer-XL", c->xl, c->lamemo);
    if (none)
        better(c, "Tables 1, 2: and than Transformer+RPE, which has no memory", none, c->lamemo);
    if (coarse)
        better(c, "Tables 1, 2: and than the Compressive Transformer", coarse, c->lamemo);
    if (infinite)
        better(c, "Table 1: and than the infinity-former", infinite, c->lamemo);
}

/* ---- Figure 1 ---- */

typedef struct far_pair {
    const lam_analysis *a;
    const lam_analysed *x, *y;
    double from, to; /* tokens away */
} far_pair;

/* The mean peak of a model over the intervals beyond `from` tokens that lie within `to`. */
static double far_peak(const far_pair *p, const lam_analysed *m, int without)
{
    const int first = lam_analysis_layer(p->a, m) * m->probe.bins;
    double sum = 0.0;
    int n = 0;
    for (int k = 0; k < m->probe.bins; k++) {
        const double at = lam_analysed_distance(m, k);
        const double v = lam_parted_mean(&m->probe.peaks, (size_t)(first + k), without);
        if (at <= p->from || at > p->to || !isfinite(v))
            continue;
        sum += v;
        n++;
    }
    return n > 0 ? sum / n : NAN;
}

static double far_ratio(const void *data, int without)
{
    const far_pair *p = data;
    return far_peak(p, p->x, without) / far_peak(p, p->y, without);
}

/* The share of attention on memory, of one model more than of the other. */
static double share_gap(const void *data, int without)
{
    const far_pair *p = data;
    return lam_parted_mean(&p->x->probe.shares, (size_t)lam_analysis_layer(p->a, p->x), without) -
           lam_parted_mean(&p->y->probe.shares, (size_t)lam_analysis_layer(p->a, p->y), without);
}

static void figure_1(claims *c)
{
    const int can = c->lamemo && c->xl && c->lamemo->probe.M > 0 && c->xl->probe.M > 0;
    far_pair p = {.a = c->a, .x = c->lamemo, .y = c->xl};
    claim(c, LAM_CLAIM_FAR,
          "Figure 1: LaMemo keeps more attention on distant tokens than Transformer-XL");
    if (can) {
        p.to = fmin(p.x->probe.M + p.x->probe.N, p.y->probe.M + p.y->probe.N);
        p.from = p.to / 2.0;
        const lam_estimate e = lam_estimate_of(far_ratio, &p, &p.x->probe.peaks);
        if (isfinite(e.value))
            judge(c, lam_estimate_side(&e, 1.0),
                  "%s has %s times the weight of %s on tokens %.0f to %.0f away", p.x->name,
                  lam_estimate_shown(&e).text, p.y->name, p.from, p.to);
    }
    claim(c, LAM_CLAIM_SHARE, "Section 5: LaMemo uses its memory more when it predicts");
    if (can) {
        const lam_estimate e = lam_estimate_of(share_gap, &p, &p.x->probe.shares);
        char layer[32];
        lam_analysis_layer_name(c->a, layer, sizeof layer);
        judge(c, lam_estimate_side(&e, 0.0),
              "%s has %s %s of its attention on memory than %s, in %s", p.x->name, amount(e).text,
              sign(&e, "more", "less"), p.y->name, layer);
    }
}

/* ---- Figure 6 ---- */

/* Layers [l0, l1) and slots [s0, s1). */
typedef struct region {
    int l0, l1, s0, s1;
} region;

typedef struct regions {
    const lam_analysed *m;
    region high, low; /* an empty one is 0 */
} regions;

static double alpha_mean(const lam_analysed *m, const region *r, int without)
{
    double sum = 0.0;
    for (int l = r->l0; l < r->l1; l++)
        for (int s = r->s0; s < r->s1; s++)
            sum += lam_parted_mean(&m->probe.alphas, (size_t)(l * m->probe.M + s), without);
    return r->l1 > r->l0 ? sum / ((double)(r->l1 - r->l0) * (r->s1 - r->s0)) : 0.0;
}

static double alpha_gap(const void *data, int without)
{
    const regions *r = data;
    return alpha_mean(r->m, &r->high, without) - alpha_mean(r->m, &r->low, without);
}

static void figure_6(claims *c)
{
    const lam_analysed *m = c->lamemo && c->lamemo->probe.alpha ? c->lamemo : NULL;
    const int L = m ? m->probe.L : 0, M = m ? m->probe.M : 0, half = L / 2, part = M / 4;
    const region bottom = {0, 1, 0, M}, lower = {0, half, 0, M}, upper = {L - half, L, 0, M};
    const region old = {L - half, L, 0, part}, young = {L - half, L, M - part, M};
    claim(c, LAM_CLAIM_BOTTOM, "Figure 6: the lowest layer mainly keeps the past (alpha near 1)");
    if (m) {
        const regions r = {.m = m, .high = bottom};
        const lam_estimate e = lam_estimate_of(alpha_gap, &r, &m->probe.alphas);
        judge(c, lam_estimate_side(&e, 0.9), "mean alpha %s in layer 1; the line is 0.9",
              lam_estimate_shown(&e).text);
    }
    claim(c, LAM_CLAIM_DEPTH, "Figure 6: higher layers take more from the future");
    if (m && L > 1) {
        const regions r = {m, lower, upper};
        const lam_estimate e = lam_estimate_of(alpha_gap, &r, &m->probe.alphas);
        judge(c, lam_estimate_side(&e, 0.0),
              "mean alpha %.3f in the lower half of the layers, %.3f in the upper: %s %s",
              alpha_mean(m, &lower, LAM_ALL_PARTS), alpha_mean(m, &upper, LAM_ALL_PARTS),
              amount(e).text, sign(&e, "less", "more"));
    }
    claim(c, LAM_CLAIM_OLDEST, "Figure 6: there, the oldest slots above all");
    if (m && L > 1 && part > 0) {
        const regions r = {m, young, old};
        const lam_estimate e = lam_estimate_of(alpha_gap, &r, &m->probe.alphas);
        judge(c, lam_estimate_side(&e, 0.0),
              "upper layers: mean alpha %.3f in the oldest quarter of the slots, %.3f in the "
              "newest: %s %s",
              alpha_mean(m, &old, LAM_ALL_PARTS), alpha_mean(m, &young, LAM_ALL_PARTS),
              amount(e).text, sign(&e, "less", "more"));
    }
}

/* ---- Figure 5 ---- */

/* Do two models have the same points, at least three? */
static int comparable(const lam_analysed *x, const lam_analysed *y)
{
    int same = x && y && x->n_points == y->n_points && x->n_points > 2;
    for (int k = 0; same && k < x->n_points; k++)
        same = x->points[k].mem_len == y->points[k].mem_len;
    return same;
}

static void every_length(claims *c, int n)
{
    int seen = 0, lost = 0, least = 0;
    lam_estimate gap[LAM_SWEEP];
    for (int k = 0; k < n; k++) {
        gap[k] = lam_analysis_gap(c->a, &c->xl->points[k].nll, &c->lamemo->points[k].nll);
        const int side = lam_estimate_side(&gap[k], 0.0);
        seen += side > 0;
        lost += side < 0;
        least = gap[k].value < gap[least].value ? k : least;
    }
    judge(c,
          seen == n  ? 1
          : lost > 0 ? -1
                     : 0,
          "%s is surely better than %s at %d of %d lengths, surely worse at %d; the least gap is "
          "%s %s, at %d",
          c->lamemo->name, c->xl->name, seen, n, lost, lam_estimate_shown(&gap[least]).text,
          lam_metric_name(c->a->corpus->info.metric), c->lamemo->points[least].mem_len);
}

/* Losses of two models with the shortest and the longest memory; or of one, at three lengths. */
typedef struct lengths {
    lam_metric metric;
    const lam_sweep_point *x0, *x1, *y0, *y1;
} lengths;

static double at(const lengths *p, const lam_sweep_point *point, int without)
{
    return lam_metric_of(p->metric, lam_parted_mean(&point->nll, 0, without));
}

static double gap_growth(const void *data, int without)
{
    const lengths *p = data;
    return at(p, p->y1, without) - at(p, p->x1, without) -
           (at(p, p->y0, without) - at(p, p->x0, without));
}

/* A tenth of what is gained in all (x0 to x1), less what is gained after y0. */
static double spare(const void *data, int without)
{
    const lengths *p = data;
    const double all = at(p, p->x0, without) - at(p, p->x1, without);
    return 0.1 * all - (at(p, p->y0, without) - at(p, p->x1, without));
}

static void saturation(claims *c, int n)
{
    const int after = (7 * n + 9) / 10 - 1;
    const lam_analysed *const models[] = {c->lamemo, c->xl};
    lam_estimate all[2], rest[2];
    int side = 1;
    for (int i = 0; i < 2; i++) {
        const lam_sweep_point *p = models[i]->points;
        const lengths tenth = {c->a->corpus->info.metric, &p[0], &p[n - 1], &p[after], NULL};
        const lam_estimate e = lam_estimate_of(spare, &tenth, &p[0].nll);
        const int level = lam_estimate_side(&e, 0.0);
        all[i] = lam_analysis_gap(c->a, &p[0].nll, &p[n - 1].nll);
        rest[i] = lam_analysis_gap(c->a, &p[after].nll, &p[n - 1].nll);
        const int grows = lam_estimate_side(&all[i], 0.0), both = level < grows ? level : grows;
        side = both < side ? both : side;
    }
    judge(c, side, "%s gains %s %s with the longest memory, %s of it beyond %d; %s %s and %s",
          c->lamemo->name, lam_estimate_shown(&all[0]).text,
          lam_metric_name(c->a->corpus->info.metric), lam_estimate_shown(&rest[0]).text,
          c->lamemo->points[after].mem_len, c->xl->name, lam_estimate_shown(&all[1]).text,
          lam_estimate_shown(&rest[1]).text);
}

static void figure_5(claims *c)
{
    const int can = comparable(c->lamemo, c->xl), n = can ? c->lamemo->n_points : 0;
    claim(c, LAM_CLAIM_LENGTHS, "Figure 5: LaMemo is better at every memory length");
    if (can)
        every_length(c, n);
    claim(c, LAM_CLAIM_GROWTH, "Figure 5: the gap grows with the memory");
    if (can) {
        const lam_sweep_point *x = c->lamemo->points, *y = c->xl->points;
        const lengths ends = {c->a->corpus->info.metric, &x[0], &x[n - 1], &y[0], &y[n - 1]};
        const lam_estimate e = lam_estimate_of(gap_growth, &ends, &x[0].nll);
        const lam_estimate gap[] = {lam_analysis_gap(c->a, &y[0].nll, &x[0].nll),
                                    lam_analysis_gap(c->a, &y[n - 1].nll, &x[n - 1].nll)};
        judge(c, lam_estimate_side(&e, 0.0),
              "%s is better than %s by %s %s with the shortest and %s with the longest memory: %s "
              "%s",
              c->lamemo->name, c->xl->name, lam_estimate_shown(&gap[0]).text,
              lam_metric_name(c->a->corpus->info.metric), lam_estimate_shown(&gap[1]).text,
              amount(e).text, sign(&e, "more", "less"));
    }
    claim(c, LAM_CLAIM_GAIN,
          "Figure 5: both gain by a longer memory, but beyond 7 segments little (a tenth)");
    if (can)
        saturation(c, n);
}

/* ---- Appendix B: no model, no error ---- */

static void appendix_b(claims *c)
{
    const int d = c->a->opt.encoding_width;
    const double slope = lam_encoding_slope(d), gamma = lam_encoding_gamma(d);
    claim(
        c, LAM_CLAIM_ENCODING,
        "Appendix B: one encoding for both directions makes g steep at 0, of the order d squared");
    judge(c,
          fabs(slope / gamma - 1.0) < 0.1 && lam_encoding_g(d, 1.0) * lam_encoding_g(d, -1.0) < 0.0
              ? 1
              : -1,
          "slope %.1f at 0 for d = %d, the paper's gamma %.1f; g(1) = %.1f, g(-1) = %.1f", slope, d,
          gamma, lam_encoding_g(d, 1.0), lam_encoding_g(d, -1.0));
}

/* All of them, for one LaMemo. */
static void judge_all(claims *c, const lam_analysis *a, const lam_analysed *lamemo)
{
    *c = (claims){.a = a, .lamemo = lamemo, .xl = first_of(a, "xl")};
    tables(c);
    figure_1(c);
    figure_6(c);
    figure_5(c);
    appendix_b(c);
    drop_empty(c);
}

lam_finding lam_analysis_finding(const lam_analysis *a, const lam_analysed *lamemo, lam_claim kind)
{
    lam_finding out = {""};
    claims c;
    judge_all(&c, a, lamemo ? lamemo : first_of(a, "lamemo"));
    for (int i = 0; i < c.n; i++)
        if (c.kinds[i] == kind && !out.text[0])
            snprintf(out.text, sizeof out.text, "%s", c.measured[i]);
    return out;
}

/* "Seen here: 4 of 10; not seen: 4; too close to tell: 2." */
static void count(char *out, size_t size, const claims *c)
{
    int yes = 0, no = 0;
    for (int i = 0; i < c->n; i++) {
        yes += strcmp(c->cells[i][2].text, "yes") == 0;
        no += strcmp(c->cells[i][2].text, "no") == 0;
    }
    snprintf(out, size, "Seen here: %d of %d; not seen: %d; too close to tell: %d.", yes, c->n, no,
             c->n - yes - no);
}

lam_status lam_analysis_claims(const lam_analysis *a, lam_page *page)
{
    static const lam_column columns[COLS] = {
        {.name = "the paper's observation"}, {.name = "measured here"}, {.name = "seen?"}};
    claims c;
    char finding[120], caption[640], missing[120] = "";
    if (!first_of(a, "lamemo"))
        return LAM_OK;
    judge_all(&c, a, first_of(a, "lamemo"));
    count(finding, sizeof finding, &c);
    if (c.left_out > 0)
        snprintf(missing, sizeof missing,
                 "  %d more need a Transformer-XL among the models and the sweep.", c.left_out);
    snprintf(caption, sizeof caption,
             "Compared: %s%s%s.  Numbers are with one standard error (%s).  What lies within the "
             "95 %% interval of its line is too close to tell; more text may decide it.  The "
             "paper's models were trained for long: a \"no\" is about these ones.%s",
             c.lamemo->name, c.xl ? " with " : "", c.xl ? c.xl->name : "", LAM_ERROR_NAME, missing);
    return lam_page_table(page, &(lam_table){.id = "claims",
                                             .title = "The paper's observations",
                                             .finding = finding,
                                             .caption = caption,
                                             .rows = c.n,
                                             .cols = COLS,
                                             .columns = columns,
                                             .cells = c.cells[0]});
}
