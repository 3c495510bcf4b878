/* analysis_claims.c -- what the paper observed, one by one, and whether these models show it.
 *
 * The first LaMemo model and the first Transformer-XL among the models are compared.  A claim is a number with a
 * line drawn through it; both are shown. */
#include "report/analysis_int.h"

#include <stdio.h>
#include <string.h>

enum { COLS = 3, TEXT = 160, CLAIMS = 7 };

typedef struct claims {
    const lam_analysis *a;
    const lam_analysed *lamemo, *xl; /* or NULL */
    int n;
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

/* Begins a row; the text of what was measured goes to the result. */
static char *claim(claims *c, const char *text)
{
    lam_cell *row = c->cells[c->n];
    row[0].text = text;
    row[1].text = c->measured[c->n];
    row[2].text = "not measured";
    return c->measured[c->n++];
}

static void judge(claims *c, int holds)
{
    c->cells[c->n - 1][2].text = holds ? "yes" : "no";
}

/* The mean peak of a model over the intervals beyond `from` tokens that lie within `to`. */
static double far_peak(const lam_analysis *a, const lam_analysed *m, double from, double to)
{
    double sum = 0.0;
    int n = 0;
    for (int k = 0; k < m->probe.bins; k++) {
        const double at = lam_analysed_distance(m, k);
        const double v = lam_analysed_peak(m, lam_analysis_layer(a, m), k);
        if (at <= from || at > to || !isfinite(v))
            continue;
        sum += v;
        n++;
    }
    return n > 0 ? sum / n : NAN;
}

static void figure_1(claims *c)
{
    char *text =
        claim(c, "Figure 1: LaMemo keeps more attention on distant tokens than Transformer-XL");
    if (!c->lamemo || !c->xl)
        return;
    const lam_probe *p = &c->lamemo->probe, *q = &c->xl->probe;
    const double to = fmin(p->M + p->N, q->M + q->N), from = to / 2.0;
    const double ratio = far_peak(c->a, c->lamemo, from, to) / far_peak(c->a, c->xl, from, to);
    if (!isfinite(ratio))
        return;
    snprintf(text, TEXT, "%.2f times as much from %.0f to %.0f tokens away", ratio, from, to);
    judge(c, ratio > 1.0);
}

/* The mean alpha of layers [l0, l1) and slots [s0, s1). */
static double alpha_mean(const lam_analysed *m, int l0, int l1, int s0, int s1)
{
    double sum = 0.0;
    for (int l = l0; l < l1; l++)
        for (int s = s0; s < s1; s++)
            sum += lam_analysed_alpha(m, l, s);
    return sum / ((double)(l1 - l0) * (s1 - s0));
}

static void figure_6(claims *c)
{
    const lam_analysed *m = c->lamemo && c->lamemo->probe.alpha ? c->lamemo : NULL;
    const int L = m ? m->probe.L : 0, M = m ? m->probe.M : 0, half = L / 2, part = M / 4;
    char *text = claim(c, "Figure 6: the lowest layer mainly keeps the past (alpha near 1)");
    if (m) {
        const double alpha = alpha_mean(m, 0, 1, 0, M);
        snprintf(text, TEXT, "mean alpha %.3f in layer 1; the line is 0.9", alpha);
        judge(c, alpha > 0.9);
    }
    text = claim(c, "Figure 6: higher layers take more from the future");
    if (m && L > 1) {
        const double low = alpha_mean(m, 0, half, 0, M), high = alpha_mean(m, L - half, L, 0, M);
        snprintf(text, TEXT, "mean alpha %.3f in the lower half of the layers, %.3f in the upper",
                 low, high);
        judge(c, high < low);
    }
    text = claim(c, "Figure 6: there, the oldest slots above all");
    if (m && L > 1 && part > 0) {
        const double old = alpha_mean(m, L - half, L, 0, part);
        const double young = alpha_mean(m, L - half, L, M - part, M);
        snprintf(text, TEXT,
                 "upper layers: %.3f in the oldest quarter of slots, %.3f in the newest", old,
                 young);
        judge(c, old < young);
    }
}

/* Do two models have the same points, at least three? */
static int comparable(const lam_analysed *x, const lam_analysed *y)
{
    int same = x && y && x->n_points == y->n_points && x->n_points > 2;
    for (int k = 0; same && k < x->n_points; k++)
        same = x->points[k].mem_len == y->points[k].mem_len;
    return same;
}

static double value_at(const claims *c, const lam_analysed *m, int k)
{
    return lam_analysis_value(c->a, &m->points[k].result);
}

static void figure_5(claims *c)
{
    const int can = comparable(c->lamemo, c->xl), n = can ? c->lamemo->n_points : 0;
    char *text = claim(c, "Figure 5: LaMemo is better at every memory length");
    int better = 0;
    for (int k = 0; k < n; k++)
        better += value_at(c, c->lamemo, k) < value_at(c, c->xl, k);
    if (can) {
        snprintf(text, TEXT, "at %d of %d lengths", better, n);
        judge(c, better == n);
    }
    text = claim(c, "Figure 5: the gap grows with the memory");
    if (can) {
        const double near = value_at(c, c->xl, 0) - value_at(c, c->lamemo, 0);
        const double far = value_at(c, c->xl, n - 1) - value_at(c, c->lamemo, n - 1);
        snprintf(text, TEXT, "%.4f with the shortest, %.4f with the longest memory", near, far);
        judge(c, far > near);
    }
    text = claim(c, "Figure 5: a longer memory helps, but beyond 7 segments little (a tenth)");
    if (can) {
        const int at = (7 * n + 9) / 10 - 1;
        const double all = value_at(c, c->lamemo, 0) - value_at(c, c->lamemo, n - 1);
        const double rest = value_at(c, c->lamemo, at) - value_at(c, c->lamemo, n - 1);
        snprintf(text, TEXT,
                 "LaMemo gains %.4f from the shortest to the longest, %.4f of it beyond %d", all,
                 rest, c->lamemo->points[at].mem_len);
        judge(c, all > 0.0 && rest < 0.1 * all);
    }
}

lam_status lam_analysis_claims(const lam_analysis *a, lam_page *page)
{
    static const lam_column columns[COLS] = {
        {.name = "the paper's observation"}, {.name = "measured here"}, {.name = "seen here"}};
    claims c = {.a = a, .lamemo = first_of(a, "lamemo"), .xl = first_of(a, "xl")};
    if (!c.lamemo)
        return LAM_OK;
    figure_1(&c);
    figure_6(&c);
    figure_5(&c);
    lam_page_heading(page, "claims", "The paper's observations");
    return lam_page_table(
        page,
        &(lam_table){
            .id = "claims",
            .title = "Seen here?",
            .caption =
                "Whether these models, on this text, show what the paper describes for its own.  "
                "The first LaMemo model and the first Transformer-XL are compared; a model "
                "trained for a short time need not show anything.",
            .rows = c.n,
            .cols = COLS,
            .columns = columns,
            .cells = c.cells[0]});
}
