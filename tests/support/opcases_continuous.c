/* opcases_continuous.c -- the gate, attention by a density with its minimum and its divergence, and sampling
 * where attention was, at left edges and within bins. */
#include "support/opcase.h"

#include <math.h>
#include <stdlib.h>

static void call_gate_fwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->gate_fwd(dev, op);
}

static void call_gate_bwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->gate_bwd(dev, op);
}

static void call_density_fwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->density_fwd(dev, op);
}

static void call_density_bwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->density_bwd(dev, op);
}

static void call_sticky(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->sticky(dev, op);
}

static void matrix(lam_case *c, void *slot, const char *name, int flags, const lam_layout *at)
{
    const int out = flags & LAM_WRITTEN;
    lam_case_rows(c, slot, name, LAM_ACT, flags, at, out ? LAM_NAN : LAM_RANDOM);
    lam_case_padding(c, at, out ? (double)NAN : 0.0);
}

static void gate_one(lam_case_run *run, int rows, int width, int backward)
{
    lam_gate a = {.rows = rows, .width = width};
    lam_case c =
        lam_case_start(run, backward ? call_gate_bwd : call_gate_fwd, &a, backward ? 3.0 : 2.0);
    lam_layout at = lam_case_layout(&c, 1, rows, width);
    at.step = at.rows * at.ld;
    a.ld = (int)at.ld;
    matrix(&c, &a.in, "in", LAM_READ, &at);
    matrix(&c, &a.pre, "pre", LAM_READ, &at);
    if (!backward) {
        matrix(&c, &a.out, "out", LAM_WRITTEN, &at);
    } else {
        matrix(&c, &a.dout, "dout", LAM_READ, &at);
        if (lam_case_pick(&c, 2)) {
            c.buffer[c.n_buffers - 1].flags = LAM_WRITTEN;
            lam_case_share(&c, &a.dpre, 0);
        } else {
            matrix(&c, &a.dpre, "dpre", LAM_WRITTEN, &at);
        }
    }
    lam_case_name(&c, "gate_%s rows=%d width=%d ld=%d", backward ? "bwd" : "fwd", rows, width,
                  a.ld);
    lam_case_check(&c);
}

static void gate_list(lam_case_run *run, int backward)
{
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        gate_one(run, lam_case_edge(&sizes, 33), lam_case_edges[e], backward);
        gate_one(run, lam_case_edges[e], lam_case_edge(&sizes, 33), backward);
    }
    gate_one(run, 0, 7, backward);
    gate_one(run, 150, 410, backward);
}

void lam_cases_gate_fwd(lam_case_run *run)
{
    gate_list(run, 0);
}

void lam_cases_gate_bwd(lam_case_run *run)
{
    gate_list(run, 1);
}

/* Bumps as the model has them: centres over [0, 1], narrow and wide in turn. */
static void bumps(lam_case *c, void *centre_slot, void *width_slot, int basis)
{
    double *centre = lam_case_buf(c, centre_slot, "centre", LAM_WIDE, LAM_READ, (size_t)basis);
    double *width = lam_case_buf(c, width_slot, "width", LAM_WIDE, LAM_READ, (size_t)basis);
    for (int j = 0; j < basis; j++) {
        centre[j] = basis > 1 ? (double)j / (basis - 1) : 0.5;
        width[j] = j % 2 ? 0.2 : 0.05;
    }
}

/* Rows of all heads of every stream. */
static void heads(lam_case *c, lam_view *v, const char *name, int flags, const lam_layout *at,
                  lam_fill fill)
{
    v->step = at->step;
    lam_case_rows(c, &v->p, name, LAM_ACT, flags, at, fill);
}

static void stat(lam_case *c, lam_view *v, const char *name, int flags, const lam_density *a)
{
    const size_t width = (size_t)a->H, rows = (size_t)a->queries;
    const lam_layout at = {(size_t)a->B, rows, width, width,
                           rows * width + (size_t)lam_case_pick(c, 3)};
    v->step = at.step;
    lam_case_rows(c, &v->p, name, LAM_WIDE, flags, &at, LAM_NAN);
}

static void density_buffers(lam_case *c, lam_density *a, int backward)
{
    const size_t HK = (size_t)a->H * (size_t)a->K, all = (size_t)(a->B * a->H);
    lam_layout q = lam_case_layout(c, a->B, a->queries, (int)HK);
    const lam_layout pull = {(size_t)a->B, 2, HK, HK, 2 * HK};
    a->ldq = q.ld;
    heads(c, &a->q, "q", LAM_READ, &q, LAM_RANDOM);
    heads(c, &a->pull, "pull", LAM_READ, &pull, LAM_RANDOM);
    bumps(c, &a->centre, &a->width, a->basis);
    stat(c, &a->mu, "mu", LAM_WRITTEN, a);
    stat(c, &a->var, "var", LAM_WRITTEN, a);
    const lam_layout r = {all, (size_t)a->queries, (size_t)a->basis, a->ldr,
                          (size_t)a->queries * a->ldr};
    lam_case_rows(c, &a->r, "r", LAM_ACT, LAM_WRITTEN, &r, LAM_NAN);
    if (!backward)
        return;
    lam_case_prepare(c, call_density_fwd);
    for (int i = c->n_buffers - 3; i < c->n_buffers; i++)
        c->buffer[i].flags = LAM_READ;
    lam_case_rows(c, &a->dr, "dr", LAM_ACT, LAM_READ, &r, LAM_RANDOM);
    heads(c, &a->dq, "dq", LAM_WRITTEN, &q, LAM_RANDOM);
    heads(c, &a->dpull, "dpull", LAM_WRITTEN, &pull, LAM_NAN);
    stat(c, &a->kl, "kl", LAM_WRITTEN, a);
}

static void density_one(lam_case_run *run, int B, int H, int K, int queries, int basis,
                        int backward)
{
    lam_density a = {0};
    lam_case c = lam_case_start(run, backward ? call_density_bwd : call_density_fwd, &a,
                                backward ? 3.0 : 2.0);
    c.mixed = 1;
    K = (int)lam_case_pad(&c, (size_t)K);
    a = (lam_density){.B = B, .H = H, .K = K, .queries = queries, .basis = basis};
    a.scale = 1.0 / sqrt((double)K);
    a.var_min = lam_case_pick(&c, 2) ? 1e-6 : 0.5; /* never reached, or by half the queries */
    a.ldr = lam_case_pad(&c, (size_t)(basis + lam_case_pick(&c, 3)));
    a.prior = 0.0025;
    a.weight = 0.01;
    a.grad_scale = 0.5;
    c.work = (lam_work){B, H, K, queries, 1, 1, B * queries, H * K, 0};
    density_buffers(&c, &a, backward);
    lam_case_name(&c, "density_%s B=%d H=%d K=%d queries=%d basis=%d ldr=%d var_min=%g",
                  backward ? "bwd" : "fwd", B, H, K, queries, basis, (int)a.ldr, a.var_min);
    lam_case_check(&c);
}

static void density_list(lam_case_run *run, int backward)
{
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        const int B = 1 + lam_case_pick(&sizes, 3), H = 1 + lam_case_pick(&sizes, 3);
        density_one(run, B, H, lam_case_edge(&sizes, 65), lam_case_edge(&sizes, 33),
                    lam_case_edges[e], backward);
        density_one(run, B, H, lam_case_edges[e], lam_case_edge(&sizes, 33),
                    lam_case_edge(&sizes, 65), backward);
    }
    density_one(run, 2, 10, 41, 150, 150, backward);
}

void lam_cases_density_fwd(lam_case_run *run)
{
    density_list(run, 0);
}

void lam_cases_density_bwd(lam_case_run *run)
{
    density_list(run, 1);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* At left edges a draw near the border of a bin would make rounding a jump: then all draws lie in the middle of
 * some bin's mass. */
static void resolve_draws(lam_case *c, const lam_sticky_samples *a, double *draws,
                          const double *edge)
{
    for (int m = 0; m < a->samples; m++) {
        draws[m] = (m + 0.5) / a->samples;
        for (int tries = 0; !a->within && tries < 200; tries++) {
            const int d = lam_case_pick(c, a->bins);
            const double total = edge[a->bins] - edge[0], mass = (edge[d + 1] - edge[d]) / total;
            draws[m] = 0.5 * (edge[d] + edge[d + 1] - 2.0 * edge[0]) / total;
            if (mass > 1e-4)
                break;
        }
    }
    qsort(draws, (size_t)a->samples, sizeof *draws, ascending);
}

static void sticky_one(lam_case_run *run, int rows, int H, int bins, int samples, int basis)
{
    lam_sticky_samples a = {0};
    lam_case c = lam_case_start(run, call_sticky, &a, 2.0);
    a = (lam_sticky_samples){.rows = rows, .H = H, .bins = bins, .samples = samples};
    a.basis = basis;
    a.within = lam_case_pick(&c, 2);
    a.B = a.within ? 1 + lam_case_pick(&c, 3) : 1;
    a.ld = lam_case_pad(&c, (size_t)(basis + lam_case_pick(&c, 3)));
    const size_t n = (size_t)(rows * H), B = (size_t)a.B, edges = (size_t)bins + 1;
    const lam_layout at = {B, 1, n, n, n + (size_t)lam_case_pick(&c, 3)};
    a.mu.step = a.var.step = at.step;
    double *mu = lam_case_rows(&c, &a.mu.p, "mu", LAM_WIDE, LAM_READ, &at, LAM_RANDOM);
    double *var = lam_case_rows(&c, &a.var.p, "var", LAM_WIDE, LAM_READ, &at, LAM_RANDOM);
    for (size_t i = 0; i < B * at.step; i++)
        if (mu[i] != LAM_GUARD) {
            mu[i] = 1.0 / (1.0 + exp(-mu[i]));
            var[i] = 0.02 + 0.2 * var[i] * var[i];
        }
    bumps(&c, &a.centre, &a.width, basis);
    double *draws = lam_case_buf(&c, &a.draws, "draws", LAM_WIDE, LAM_READ, (size_t)samples);
    double *edge = lam_case_buf(&c, &a.edge, "edge", LAM_WIDE, LAM_WRITTEN, B * edges);
    const lam_layout psi = {1, B * (size_t)samples, (size_t)basis, a.ld,
                            B * (size_t)samples * a.ld};
    lam_case_rows(&c, &a.psi, "psi", LAM_ACT, LAM_WRITTEN, &psi, LAM_NAN);
    lam_case_prepare(&c, call_sticky); /* for the edges */
    resolve_draws(&c, &a, draws, edge);
    lam_case_name(&c, "sticky B=%d rows=%d H=%d bins=%d samples=%d basis=%d within=%d", a.B, rows,
                  H, bins, samples, basis, a.within);
    lam_case_check(&c);
}

void lam_cases_sticky(lam_case_run *run)
{
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++)
        for (int i = 0; i < 2; i++)
            sticky_one(run, lam_case_edge(&sizes, 33), 1 + lam_case_pick(&sizes, 4),
                       1 + lam_case_pick(&sizes, 128), lam_case_edge(&sizes, 65),
                       lam_case_edges[e]);
    sticky_one(run, 150, 10, 128, 129, 150);
}
