/* opcases_memory.c -- memory interpolation: both branches of eps, slots that saw nothing, in-place
 * use, and denominators that differ by many orders of magnitude. */
#include "support/opcase.h"

#include <math.h>

static void call_fwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->interp_fwd(dev, op);
}

static void call_bwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->interp_bwd(dev, op);
}

typedef struct sizes {
    int B, rows, H, K;
    double eps, spread; /* of the log-sum-exps */
} sizes;

static lam_layout room(lam_case *c, const sizes *s, size_t width)
{
    const size_t rows = (size_t)s->rows, pad = (size_t)c->run->dev->pad;
    return (lam_layout){(size_t)s->B, rows, width, width,
                        rows * width + (size_t)lam_case_pick(c, 3) * pad};
}

static void context(lam_case *c, lam_view *v, const char *name, int flags, const sizes *s)
{
    const lam_layout at = room(c, s, (size_t)(s->H * s->K));
    v->step = at.step;
    lam_case_rows(c, &v->p, name, LAM_ACT, flags, &at, flags ? LAM_NAN : LAM_RANDOM);
}

static void stat(lam_case *c, lam_view *v, const char *name, int flags, const sizes *s)
{
    const lam_layout at = room(c, s, (size_t)s->H);
    v->step = at.step;
    double *p = lam_case_rows(c, &v->p, name, LAM_WIDE, flags, &at, flags ? LAM_NAN : LAM_RANDOM);
    for (size_t i = 0; !flags && i < at.blocks * at.step; i++)
        if (p[i] != LAM_GUARD)
            p[i] = lam_case_pick(c, 8) ? s->spread * p[i] : -INFINITY;
}

static void interp_one(lam_case_run *run, sizes s, int backward)
{
    lam_interp a = {0};
    lam_case c = lam_case_start(run, backward ? call_bwd : call_fwd, &a, backward ? 3.0 : 2.0);
    s.K = (int)lam_case_pad(&c, (size_t)s.K);
    a = (lam_interp){.B = s.B, .rows = s.rows, .H = s.H, .K = s.K, .eps = s.eps};
    context(&c, &a.c_old, "c_old", LAM_READ, &s);
    context(&c, &a.c_new, "c_new", LAM_READ, &s);
    stat(&c, &a.lse_old, "lse_old", LAM_READ, &s);
    stat(&c, &a.lse_new, "lse_new", LAM_READ, &s);
    const int in_place = lam_case_pick(&c, 2);
    if (!backward) {
        if (in_place) {
            c.buffer[c.n_buffers - 1].flags = LAM_WRITTEN;
            lam_case_share(&c, &a.lse_out.p, 0);
            a.lse_out.step = a.lse_new.step;
        } else {
            stat(&c, &a.lse_out, "lse_out", LAM_WRITTEN, &s);
        }
        context(&c, &a.c_out, "c_out", LAM_WRITTEN, &s);
        stat(&c, &a.alpha, "alpha", LAM_WRITTEN, &s);
    } else {
        context(&c, &a.dc_out, "dc_out", LAM_READ, &s);
        if (in_place) {
            c.buffer[c.n_buffers - 1].flags = LAM_WRITTEN;
            lam_case_share(&c, &a.dc_new.p, 0);
            a.dc_new.step = a.dc_out.step;
        } else {
            context(&c, &a.dc_new, "dc_new", LAM_WRITTEN, &s);
        }
        stat(&c, &a.dlse_new, "dlse_new", LAM_WRITTEN, &s);
    }
    c.work = (lam_work){s.B, s.H, s.K, s.rows, 1, 1, s.B * s.rows, s.H * s.K, 0};
    lam_case_name(&c, "interp_%s B=%d rows=%d H=%d K=%d eps=%g spread=%g in_place=%d",
                  backward ? "bwd" : "fwd", s.B, s.rows, s.H, s.K, s.eps, s.spread, in_place);
    lam_case_check(&c);
}

static void interp_list(lam_case_run *run, int backward)
{
    static const double eps[] = {0.0, 1e-6, 1e-2}, spread[] = {1.0, 4.0, 40.0};
    lam_case pick = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++)
        for (int i = 0; i < 3; i++)
            interp_one(run,
                       (sizes){.B = 1 + lam_case_pick(&pick, 3),
                               .rows = lam_case_edge(&pick, 33),
                               .H = 1 + lam_case_pick(&pick, 5),
                               .K = lam_case_edges[e],
                               .eps = eps[lam_case_pick(&pick, 3)],
                               .spread = spread[i]},
                       backward);
    interp_one(run, (sizes){2, 0, 2, 8, 1e-6, 1.0}, backward);
    interp_one(run, (sizes){3, 129, 10, 41, 1e-6, 2.0}, backward);
    interp_one(run, (sizes){1, 1, 1, 1, 1e-6, 2.0}, backward);
}

void lam_cases_interp_fwd(lam_case_run *run)
{
    interp_list(run, 0);
}

void lam_cases_interp_bwd(lam_case_run *run)
{
    interp_list(run, 1);
}
