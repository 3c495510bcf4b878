/* analysis_claims.c -- what the paper observed, one by one, and whether these models show it.
 *
 * The first LaMemo and the first Transformer-XL among the models are compared.  A claim is a number with its standard
 * error and a line; it is seen, or not seen, where the number is on one side of the line at a level of 95 %, else the
 * text read was too short to tell. */
#include "measure/encoding.h"
#include "report/analysis_claims.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const lam_analysed *first_of(const lam_analysis *a, const lam_mem_ops *mem)
{
    for (int i = 0; i < a->n; i++)
        if (a->models[i].mem == mem)
            return &a->models[i];
    return NULL;
}

/* The paper has one of each of these roles. */
static const lam_mem_ops *papers(lam_paper_role role)
{
    int i = 0;
    while (lam_mem_all[i]->paper.role != role)
        i++;
    return lam_mem_all[i];
}

/* A row that was begun but not judged is left out. */
static void drop_empty(lam_claims *c)
{
    if (c->n > 0 && !c->cells[c->n - 1][2].text) {
        c->n--;
        c->left_out++;
    }
}

void lam_claim_begin(lam_claims *c, lam_claim kind, const char *text)
{
    drop_empty(c);
    lam_cell *row = c->cells[c->n];
    row[0].text = text;
    row[1].text = c->measured[c->n];
    row[2].text = NULL;
    c->kinds[c->n++] = kind;
}

void lam_claim_judge(lam_claims *c, int side, const char *format, ...)
{
    static const char *const verdicts[] = {"no", "too close to tell", "yes"};
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->measured[c->n - 1], LAM_CLAIM_TEXT, format, ap);
    va_end(ap);
    c->cells[c->n - 1][2].text = verdicts[side + 1];
}

lam_shown lam_claim_amount(lam_estimate e)
{
    e.value = fabs(e.value);
    return lam_estimate_shown(&e);
}

const char *lam_claim_sign(const lam_estimate *e, const char *positive, const char *negative)
{
    return e->value < 0.0 ? negative : positive;
}

/* ---- Tables 1 and 2 ---- */

static void better(lam_claims *c, const char *text, const lam_analysed *worse,
                   const lam_analysed *good)
{
    lam_claim_begin(c, LAM_CLAIM_LOSS, text);
    if (!worse || !good || worse->probe.N != good->probe.N)
        return; /* other segments: other tokens */
    const lam_estimate e = lam_analysis_gap(c->a, &worse->probe.nll, &good->probe.nll);
    lam_claim_judge(c, lam_estimate_side(&e, 0.0), "%s %s by %s",
                    lam_metric_name(c->a->corpus->info.metric),
                    lam_claim_sign(&e, "lower", "higher"), lam_claim_amount(e).text);
}

static void tables(lam_claims *c)
{
    better(c, papers(LAM_BASELINE)->paper.claim, c->xl, c->lamemo);
    for (int i = 0; lam_mem_all[i]; i++) {
        const lam_analysed *other = first_of(c->a, lam_mem_all[i]);
        if (other && lam_mem_all[i]->paper.role == LAM_COMPARED)
            better(c, lam_mem_all[i]->paper.claim, other, c->lamemo);
    }
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

static void figure_1(lam_claims *c)
{
    const int can = c->lamemo && c->xl && c->lamemo->probe.M > 0 && c->xl->probe.M > 0;
    far_pair p = {.a = c->a, .x = c->lamemo, .y = c->xl};
    lam_claim_begin(c, LAM_CLAIM_FAR,
                    "Figure 1: LaMemo keeps more attention on distant tokens than Transformer-XL");
    if (can) {
        p.to = fmin(p.x->probe.M + p.x->probe.N, p.y->probe.M + p.y->probe.N);
        p.from = p.to / 2.0;
        const lam_estimate e = lam_estimate_of(far_ratio, &p, &p.x->probe.peaks);
        if (isfinite(e.value))
            lam_claim_judge(c, lam_estimate_side(&e, 1.0),
                            "%s has %s times the weight of %s on tokens %.0f to %.0f away",
                            p.x->name, lam_estimate_shown(&e).text, p.y->name, p.from, p.to);
    }
    lam_claim_begin(c, LAM_CLAIM_SHARE, "Section 5: LaMemo uses its memory more when it predicts");
    if (can) {
        const lam_estimate e = lam_estimate_of(share_gap, &p, &p.x->probe.shares);
        char layer[32];
        lam_analysis_layer_name(c->a, layer, sizeof layer);
        lam_claim_judge(c, lam_estimate_side(&e, 0.0),
                        "%s has %s %s of its attention on memory than %s, in %s", p.x->name,
                        lam_claim_amount(e).text, lam_claim_sign(&e, "more", "less"), p.y->name,
                        layer);
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

static void figure_6(lam_claims *c)
{
    /* the paper speaks of a model whose layers all refresh their memory */
    const int all = c->lamemo && c->lamemo->probe.alpha && c->lamemo->probe.kept == 0;
    const lam_analysed *m = all ? c->lamemo : NULL;
    const int L = m ? m->probe.L : 0, M = m ? m->probe.M : 0, half = L / 2, part = M / 4;
    const region bottom = {0, 1, 0, M}, lower = {0, half, 0, M}, upper = {L - half, L, 0, M};
    const region old = {L - half, L, 0, part}, young = {L - half, L, M - part, M};
    lam_claim_begin(c, LAM_CLAIM_BOTTOM,
                    "Figure 6: the lowest layer mainly keeps the past (alpha near 1)");
    if (m) {
        const regions r = {.m = m, .high = bottom};
        const lam_estimate e = lam_estimate_of(alpha_gap, &r, &m->probe.alphas);
        lam_claim_judge(c, lam_estimate_side(&e, 0.9), "mean alpha %s in layer 1; the line is 0.9",
                        lam_estimate_shown(&e).text);
    }
    lam_claim_begin(c, LAM_CLAIM_DEPTH, "Figure 6: higher layers take more from the future");
    if (m && L > 1) {
        const regions r = {m, lower, upper};
        const lam_estimate e = lam_estimate_of(alpha_gap, &r, &m->probe.alphas);
        lam_claim_judge(c, lam_estimate_side(&e, 0.0),
                        "mean alpha %.3f in the lower half of the layers, %.3f in the upper: %s %s",
                        alpha_mean(m, &lower, LAM_ALL_PARTS), alpha_mean(m, &upper, LAM_ALL_PARTS),
                        lam_claim_amount(e).text, lam_claim_sign(&e, "less", "more"));
    }
    lam_claim_begin(c, LAM_CLAIM_OLDEST, "Figure 6: there, the oldest slots above all");
    if (m && L > 1 && part > 0) {
        const regions r = {m, young, old};
        const lam_estimate e = lam_estimate_of(alpha_gap, &r, &m->probe.alphas);
        lam_claim_judge(c, lam_estimate_side(&e, 0.0),
                        "upper layers: mean alpha %.3f in the oldest quarter of the slots, %.3f in "
                        "the newest: %s %s",
                        alpha_mean(m, &old, LAM_ALL_PARTS), alpha_mean(m, &young, LAM_ALL_PARTS),
                        lam_claim_amount(e).text, lam_claim_sign(&e, "less", "more"));
    }
}

/* ---- Appendix B: no model, no error ---- */

static void appendix_b(lam_claims *c)
{
    const int d = c->a->opt.encoding_width;
    const double slope = lam_encoding_slope(d), gamma = lam_encoding_gamma(d);
    lam_claim_begin(
        c, LAM_CLAIM_ENCODING,
        "Appendix B: one encoding for both directions makes g steep at 0, of the order d squared");
    lam_claim_judge(c,
                    fabs(slope / gamma - 1.0) < 0.1 &&
                            lam_encoding_g(d, 1.0) * lam_encoding_g(d, -1.0) < 0.0
                        ? 1
                        : -1,
                    "slope %.1f at 0 for d = %d, the paper's gamma %.1f; g(1) = %.1f, g(-1) = %.1f",
                    slope, d, gamma, lam_encoding_g(d, 1.0), lam_encoding_g(d, -1.0));
}

/* All of them, for one LaMemo. */
static void judge_all(lam_claims *c, const lam_analysis *a, const lam_analysed *lamemo)
{
    *c = (lam_claims){.a = a, .lamemo = lamemo, .xl = first_of(a, papers(LAM_BASELINE))};
    tables(c);
    figure_1(c);
    figure_6(c);
    lam_claims_sweep(c);
    if (a->opt.paper)
        appendix_b(c);
    drop_empty(c);
}

lam_finding lam_analysis_finding(const lam_analysis *a, const lam_analysed *lamemo, lam_claim kind)
{
    lam_finding out = {""};
    lam_claims c;
    judge_all(&c, a, lamemo ? lamemo : first_of(a, papers(LAM_SUBJECT)));
    for (int i = 0; i < c.n; i++)
        if (c.kinds[i] == kind && !out.text[0])
            snprintf(out.text, sizeof out.text, "%s", c.measured[i]);
    return out;
}

/* "Seen here: 4 of 10; not seen: 4; too close to tell: 2." */
static void count(char *out, size_t size, const lam_claims *c)
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
    static const lam_column columns[LAM_CLAIM_COLS] = {
        {.name = "the paper's observation"}, {.name = "measured here"}, {.name = "seen?"}};
    lam_claims c;
    char finding[120], caption[640], missing[120] = "";
    const lam_analysed *lamemo = first_of(a, papers(LAM_SUBJECT));
    if (!lamemo)
        return LAM_OK;
    judge_all(&c, a, lamemo);
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
                                             .cols = LAM_CLAIM_COLS,
                                             .columns = columns,
                                             .cells = c.cells[0]});
}
