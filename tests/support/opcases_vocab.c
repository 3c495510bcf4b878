/* opcases_vocab.c -- embedding rows, softmax cross-entropy, row lists. */
#include "support/opcase.h"

#include <math.h>

static void call_embed_fwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->embed_fwd(dev, op);
}

static void call_embed_bwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->embed_bwd(dev, op);
}

static void call_xent(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->xent(dev, op);
}

static void call_gather(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->gather(dev, op);
}

static void call_scatter(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->scatter(dev, op);
}

static lam_layout table_of(int rows, int width, size_t ld)
{
    return (lam_layout){1, (size_t)rows, (size_t)width, ld, (size_t)rows * ld};
}

/* Ids in and around the table's range, some of them often. */
static void embed_one(lam_case_run *run, int rows, int width, int backward)
{
    lam_embed a = {.rows = rows, .width = width};
    lam_case c =
        lam_case_start(run, backward ? call_embed_bwd : call_embed_fwd, &a, backward ? 3.0 : 2.0);
    a.count = 1 + lam_case_pick(&c, 40);
    a.first = lam_case_pick(&c, 3) * 10;
    a.scale = lam_case_pick(&c, 2) ? 1.0 : sqrt(width);
    const size_t ld = lam_case_layout(&c, 1, 1, width).ld;
    a.ld = (int)ld;
    double *ids = lam_case_buf(&c, &a.ids, "ids", LAM_INT, LAM_READ, (size_t)rows);
    const int often = lam_case_pick(&c, 2);
    for (int r = 0; r < rows; r++)
        ids[r] = often && lam_case_pick(&c, 2) ? a.first : lam_case_pick(&c, a.first + a.count + 5);
    const lam_layout table = table_of(a.count, width, ld), out = table_of(rows, width, ld);
    if (backward) {
        lam_case_rows(&c, &a.dout, "dout", LAM_ACT, LAM_READ, &out, LAM_RANDOM);
        lam_case_padding(&c, &out, 0.0);
        lam_case_rows(&c, &a.dtable, "dtable", LAM_WIDE, LAM_WRITTEN, &table, LAM_RANDOM);
        lam_case_padding(&c, &table, 0.0);
    } else {
        lam_case_rows(&c, &a.table, "table", LAM_ACT, LAM_READ, &table, LAM_RANDOM);
        lam_case_padding(&c, &table, 0.0);
        lam_case_rows(&c, &a.out, "out", LAM_ACT, LAM_WRITTEN | LAM_SAME_ZEROS, &out, LAM_NAN);
        lam_case_padding(&c, &out, 0.0);
    }
    c.work.rows = rows > 0 ? rows : 1;
    c.work.width = a.ld;
    lam_case_name(&c, "embed_%s rows=%d first=%d count=%d width=%d ld=%d scale=%g",
                  backward ? "bwd" : "fwd", rows, a.first, a.count, width, a.ld, a.scale);
    lam_case_check(&c);
}

static void embed_list(lam_case_run *run, int backward)
{
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        embed_one(run, lam_case_edges[e], lam_case_edge(&sizes, 129), backward);
        embed_one(run, lam_case_edge(&sizes, 129), lam_case_edges[e], backward);
    }
    embed_one(run, 0, 8, backward);
    embed_one(run, 2000, 33, backward);
    embed_one(run, 5, 1000, backward);
}

void lam_cases_embed_fwd(lam_case_run *run)
{
    embed_list(run, 0);
}

void lam_cases_embed_bwd(lam_case_run *run)
{
    embed_list(run, 1);
}

/* `n` distinct numbers below `below`, in no order. */
static void distinct(lam_case *c, double *out, int n, int below)
{
    for (int i = 0; i < n; i++) {
        out[i] = lam_case_pick(c, below);
        for (int j = 0; j < i; j++)
            if (out[j] == out[i]) {
                i--;
                break;
            }
    }
}

static void xent_one(lam_case_run *run, int rows, int cols)
{
    static const double spread[] = {1.0, 5.0, 60.0};
    lam_xent a = {.rows = rows, .cols = cols};
    lam_case c = lam_case_start(run, call_xent, &a, 3.0);
    const lam_layout at = lam_case_layout(&c, 1, rows, cols);
    const int indexed = lam_case_pick(&c, 2), gradient = lam_case_pick(&c, 3) != 0;
    const size_t n = (size_t)(indexed ? 2 * rows + 1 : rows);
    a.ld = at.ld;
    a.add = lam_case_pick(&c, 2);
    a.grad_scale = gradient ? 1.0 / (rows + 1) : 0.0;
    double *z = lam_case_rows(&c, &a.logits, "logits", LAM_ACT, gradient ? LAM_WRITTEN : LAM_READ,
                              &at, LAM_RANDOM);
    const double times = spread[lam_case_pick(&c, 3)], plus = 30.0 * lam_case_normal(&c);
    for (size_t i = 0; i < at.blocks * at.step; i++)
        z[i] = z[i] == LAM_GUARD ? z[i] : times * z[i] + plus;
    double *target = lam_case_buf(&c, &a.target, "target", LAM_INT, LAM_READ, (size_t)rows);
    for (int r = 0; r < rows; r++)
        target[r] = lam_case_pick(&c, 8) ? lam_case_pick(&c, cols) : -1; /* some are not scored */
    if (indexed)
        distinct(&c, lam_case_buf(&c, &a.index, "index", LAM_INT, LAM_READ, (size_t)rows), rows,
                 (int)n);
    double *nll = lam_case_rows(&c, &a.nll, "nll", LAM_WIDE, LAM_WRITTEN,
                                &(lam_layout){1, 1, n, n, n}, LAM_RANDOM);
    if (!indexed && !a.add)
        for (size_t i = 0; i < n; i++)
            nll[i] = NAN;
    c.work.rows = rows > 0 ? rows : 1;
    c.work.width = (int)a.ld;
    lam_case_name(&c, "xent rows=%d cols=%d ld=%zu add=%d index=%d grad_scale=%g spread=%g%+g",
                  rows, cols, a.ld, a.add, indexed, a.grad_scale, times, plus);
    lam_case_check(&c);
}

void lam_cases_xent(lam_case_run *run)
{
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        xent_one(run, lam_case_edges[e], lam_case_edge(&sizes, 129));
        xent_one(run, lam_case_edge(&sizes, 129), lam_case_edges[e]);
    }
    for (int again = 0; again < 2; again++) {
        xent_one(run, 0, 10);
        xent_one(run, 3, 20003);
        xent_one(run, 40, 1000);
        xent_one(run, 500, 27);
    }
}

static void pick_one(lam_case_run *run, int rows, int width, int add)
{
    lam_pick a = {.rows = rows, .width = width};
    lam_case c = lam_case_start(run, add ? call_scatter : call_gather, &a, add ? 3.0 : 2.0);
    const int all = rows + lam_case_pick(&c, 20) + 1; /* rows on the listed side */
    const lam_layout few = lam_case_layout(&c, 1, rows, width);
    const lam_layout many = lam_case_layout(&c, 1, all, width);
    distinct(&c, lam_case_buf(&c, &a.index, "index", LAM_INT, LAM_READ, (size_t)rows), rows, all);
    a.ld_in = add ? few.ld : many.ld;
    a.ld_out = add ? many.ld : few.ld;
    lam_case_rows(&c, &a.in, "in", LAM_ACT, LAM_READ, add ? &few : &many, LAM_RANDOM);
    lam_case_rows(&c, &a.out, "out", LAM_ACT, LAM_WRITTEN | (add ? 0 : LAM_EXACT),
                  add ? &many : &few, add ? LAM_RANDOM : LAM_NAN);
    c.work.rows = all;
    c.work.width = (int)many.ld;
    lam_case_name(&c, "%s rows=%d of %d width=%d ld=%zu,%zu", add ? "scatter" : "gather", rows, all,
                  width, a.ld_in, a.ld_out);
    lam_case_check(&c);
}

static void pick_list(lam_case_run *run, int add)
{
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        pick_one(run, lam_case_edges[e], lam_case_edge(&sizes, 129), add);
        pick_one(run, lam_case_edge(&sizes, 129), lam_case_edges[e], add);
    }
    pick_one(run, 0, 4, add);
    pick_one(run, 700, 31, add);
}

void lam_cases_gather(lam_case_run *run)
{
    pick_list(run, 0);
}

void lam_cases_scatter(lam_case_run *run)
{
    pick_list(run, 1);
}
