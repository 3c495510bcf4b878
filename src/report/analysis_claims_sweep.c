/* analysis_claims_sweep.c -- what the paper observed of memories longer than trained with (Figure 5). */
#include "report/analysis_claims.h"

/* Do two models have the same points, at least three? */
static int comparable(const lam_analysed *x, const lam_analysed *y)
{
    int same = x && y && x->n_points == y->n_points && x->n_points > 2;
    for (int k = 0; same && k < x->n_points; k++)
        same = x->points[k].mem_len == y->points[k].mem_len;
    return same;
}

static void every_length(lam_claims *c, int n)
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
    lam_claim_judge(c,
                    seen == n  ? 1
                    : lost > 0 ? -1
                               : 0,
                    "%s is surely better than %s at %d of %d lengths, surely worse at %d; the "
                    "least gap is %s %s, at %d",
                    c->lamemo->name, c->xl->name, seen, n, lost,
                    lam_estimate_shown(&gap[least]).text,
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

static void saturation(lam_claims *c, int n)
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
    const char *const metric = lam_metric_name(c->a->corpus->info.metric);
    char each[2][256];
    for (int i = 0; i < 2; i++) {
        const char *const then = (all[i].value < 0.0) == (rest[i].value < 0.0) ? "of which"
                                 : rest[i].value < 0.0                         ? "but loses"
                                                                               : "but gains";
        snprintf(each[i], sizeof each[i], "%s %s %s with the longest memory, %s %s beyond %d",
                 lam_claim_sign(&all[i], "gains", "loses"), lam_claim_amount(all[i]).text, metric,
                 then, lam_claim_amount(rest[i]).text, models[i]->points[after].mem_len);
    }
    lam_claim_judge(c, side, "%s %s; %s %s", c->lamemo->name, each[0], c->xl->name, each[1]);
}

void lam_claims_sweep(lam_claims *c)
{
    const int can = comparable(c->lamemo, c->xl), n = can ? c->lamemo->n_points : 0;
    lam_claim_begin(c, LAM_CLAIM_LENGTHS, "Figure 5: LaMemo is better at every memory length");
    if (can)
        every_length(c, n);
    lam_claim_begin(c, LAM_CLAIM_GROWTH, "Figure 5: the gap grows with the memory");
    if (can) {
        const lam_sweep_point *x = c->lamemo->points, *y = c->xl->points;
        const lengths ends = {c->a->corpus->info.metric, &x[0], &x[n - 1], &y[0], &y[n - 1]};
        const lam_estimate e = lam_estimate_of(gap_growth, &ends, &x[0].nll);
        const lam_estimate gap[] = {lam_analysis_gap(c->a, &y[0].nll, &x[0].nll),
                                    lam_analysis_gap(c->a, &y[n - 1].nll, &x[n - 1].nll)};
        lam_claim_judge(c, lam_estimate_side(&e, 0.0),
                        "the loss of %s is %s %s %s than that of %s with the shortest memory and "
                        "%s %s with the longest: the gap %s by %s",
                        c->lamemo->name, lam_claim_amount(gap[0]).text,
                        lam_metric_name(c->a->corpus->info.metric),
                        lam_claim_sign(&gap[0], "lower", "higher"), c->xl->name,
                        lam_claim_amount(gap[1]).text, lam_claim_sign(&gap[1], "lower", "higher"),
                        lam_claim_sign(&e, "grows", "shrinks"), lam_claim_amount(e).text);
    }
    lam_claim_begin(c, LAM_CLAIM_GAIN,
                    "Figure 5: both gain by a longer memory, but beyond 7 tenths of the longest "
                    "little (a tenth)");
    if (can)
        saturation(c, n);
}
