/* opcases_rows.c -- residual + LayerNorm with all its optional parts, dropout, copies and
 * column sums.  Padding columns are zero on the way in; an output's hold garbage before
 * and must be zero after. */
#include "support/opcase.h"

#include <math.h>

static void call_norm_fwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->norm_fwd(dev, op);
}

static void call_norm_bwd(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->norm_bwd(dev, op);
}

static void call_dropout(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->dropout(dev, op);
}

static void call_copy(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->copy(dev, op);
}

static void call_colsum(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->colsum(dev, op);
}

/* A view of rows whose padding is zero (inputs) or garbage (outputs); ld is given. */
static double *view(lam_case *c, lam_view *v, const char *name, int flags, lam_layout at)
{
    const int out = flags & LAM_WRITTEN;
    if (lam_case_pick(c, 2))
        at.step += at.ld * (size_t)lam_case_pick(c, 3) + (size_t)c->run->dev->pad;
    v->step = at.step;
    double *p = lam_case_rows(c, &v->p, name, LAM_ACT, flags, &at, out ? LAM_NAN : LAM_RANDOM);
    lam_case_padding(c, &at, out ? (double)NAN : 0.0);
    return p;
}

/* A contiguous buffer of all rows, [blocks*rows][ld]. */
static double *flat(lam_case *c, void *slot, const char *name, int flags, lam_layout at)
{
    const int out = flags & LAM_WRITTEN;
    at = (lam_layout){1, at.blocks * at.rows, at.width, at.ld, at.blocks * at.rows * at.ld};
    double *p = lam_case_rows(c, slot, name, LAM_ACT, flags, &at, out ? LAM_NAN : LAM_RANDOM);
    lam_case_padding(c, &at, out ? (double)NAN : 0.0);
    return p;
}

static double *vector(lam_case *c, void *slot, const char *name, int flags, size_t n)
{
    return lam_case_rows(c, slot, name, LAM_WIDE, flags, &(lam_layout){1, 1, n, n, n}, LAM_RANDOM);
}

typedef struct norm_case {
    int blocks, rows, width;
    int add, gain; /* which form */
} norm_case;

static lam_norm norm_start(lam_case *c, const norm_case *s, lam_layout *at)
{
    *at = lam_case_layout(c, s->blocks, s->rows, s->width);
    at->step = at->rows * at->ld;
    c->work.rows = s->blocks * s->rows > 0 ? s->blocks * s->rows : 1;
    c->work.width = (int)at->ld;
    c->mixed = 1;
    lam_norm a = {
        .blocks = s->blocks, .rows = s->rows, .width = s->width, .ld = (int)at->ld, .eps = 1e-5};
    if (lam_case_pick(c, 2))
        a.drop = lam_case_drop(c, 0.1 + 0.1 * lam_case_pick(c, 5));
    return a;
}

static void norm_fwd_one(lam_case_run *run, const norm_case *s)
{
    lam_norm a = {0};
    lam_layout at;
    lam_case c = lam_case_start(run, call_norm_fwd, &a, 2.0);
    a = norm_start(&c, s, &at);
    const size_t rows = at.blocks * at.rows, width = at.width;
    const int bias = s->add && lam_case_pick(&c, 2);

    view(&c, &a.x, "x", LAM_READ, at);
    view(&c, &a.y, "y", LAM_WRITTEN, at);
    if (s->add)
        flat(&c, &a.add, "add", LAM_READ, at);
    if (bias)
        vector(&c, &a.bias, "bias", LAM_READ, width);
    if (s->gain) {
        if (s->add)
            flat(&c, &a.sum, "sum", LAM_WRITTEN, at);
        vector(&c, &a.mean, "mean", LAM_WRITTEN, rows);
        vector(&c, &a.rstd, "rstd", LAM_WRITTEN, rows);
        vector(&c, &a.gain, "gain", LAM_READ, width);
        vector(&c, &a.shift, "shift", LAM_READ, width);
    }
    lam_case_name(&c, "norm_fwd blocks=%d rows=%d width=%d ld=%d add=%d gain=%d bias=%d drop=%g",
                  a.blocks, a.rows, a.width, a.ld, s->add, s->gain, bias, a.drop.p);
    lam_case_check(&c);
}

/* The statistics as forward leaves them, of the values as the device stores them. */
static void norm_stats(const double *s, size_t step, const lam_layout *at, double *mean,
                       double *rstd)
{
    for (size_t row = 0; row < at->blocks * at->rows; row++) {
        const double *x = s + row / at->rows * step + row % at->rows * at->ld;
        double sum = 0.0, squares = 0.0;
        for (size_t i = 0; i < at->width; i++)
            sum += x[i];
        mean[row] = sum / (double)at->width;
        for (size_t i = 0; i < at->width; i++)
            squares += (x[i] - mean[row]) * (x[i] - mean[row]);
        rstd[row] = 1.0 / sqrt(squares / (double)at->width + 1e-5);
    }
}

static void norm_bwd_one(lam_case_run *run, const norm_case *s)
{
    lam_norm a = {0};
    lam_layout at;
    lam_case c = lam_case_start(run, call_norm_bwd, &a, 3.0);
    a = norm_start(&c, s, &at);
    const size_t rows = at.blocks * at.rows, width = at.width;
    const int bias = s->add && lam_case_pick(&c, 2), dsum = lam_case_pick(&c, 2);
    const int dadd = s->add && lam_case_pick(&c, 4) != 0, dbias = bias && lam_case_pick(&c, 4) != 0;
    const int dx = lam_case_pick(&c, 4); /* apart, NULL, the same as dy, the same as dsum */
    const int mask = a.drop.p > 0.0 ? LAM_SAME_ZEROS : 0;

    const double *sum = view(&c, &a.x, "x", LAM_READ, at);
    size_t sum_step = a.x.step;
    if (s->add) {
        flat(&c, &a.add, "add", LAM_READ, at);
        if (s->gain) {
            sum = flat(&c, &a.sum, "sum", LAM_READ, at);
            sum_step = at.rows * at.ld;
        }
    }
    if (bias)
        vector(&c, &a.bias, "bias", LAM_READ, width);
    if (s->gain) {
        double *mean = vector(&c, &a.mean, "mean", LAM_READ, rows);
        double *rstd = vector(&c, &a.rstd, "rstd", LAM_READ, rows);
        norm_stats(sum, sum_step, &at, mean, rstd);
        vector(&c, &a.gain, "gain", LAM_READ, width);
        vector(&c, &a.shift, "shift", LAM_READ, width);
        vector(&c, &a.dgain, "dgain", LAM_WRITTEN, width);
        vector(&c, &a.dshift, "dshift", LAM_WRITTEN, width);
    }
    view(&c, &a.dy, "dy", LAM_READ, at);
    if (dx == 2) {
        c.buffer[c.n_buffers - 1].flags = LAM_WRITTEN;
        a.dx.step = a.dy.step;
        lam_case_share(&c, &a.dx.p, 0);
    }
    if (dsum) {
        view(&c, &a.dsum, "dsum", LAM_READ, at);
        if (dx == 3) {
            c.buffer[c.n_buffers - 1].flags = LAM_WRITTEN;
            a.dx.step = a.dsum.step;
            lam_case_share(&c, &a.dx.p, 0);
        }
    }
    if (dx == 0)
        view(&c, &a.dx, "dx", LAM_WRITTEN, at);
    if (dadd)
        flat(&c, &a.dadd, "dadd", LAM_WRITTEN | (width > 1 ? mask : 0), at);
    if (dbias)
        vector(&c, &a.dbias, "dbias", LAM_WRITTEN, width);
    lam_case_name(&c,
                  "norm_bwd blocks=%d rows=%d width=%d ld=%d add=%d gain=%d bias=%d drop=%g dx=%d "
                  "dsum=%d dadd=%d dbias=%d",
                  a.blocks, a.rows, a.width, a.ld, s->add, s->gain, bias, a.drop.p, dx, dsum, dadd,
                  dbias);
    lam_case_check(&c);
}

/* Every width at a tile edge in all three forms, and some of many rows. */
static void norm_list(lam_case_run *run, void (*one)(lam_case_run *, const norm_case *))
{
    static const int form[3][2] = {{1, 1}, {0, 1}, {1, 0}};
    static const norm_case more[] = {{1, 0, 8, 1, 1},    {3, 129, 24, 1, 1}, {1, 700, 5, 1, 1},
                                     {2, 3, 1000, 1, 1}, {1, 2, 2053, 0, 1}, {2, 2, 9, 0, 0},
                                     {1, 257, 64, 1, 1}, {1, 300, 17, 1, 0}, {2, 40, 256, 1, 1},
                                     {2, 33, 512, 1, 1}, {1, 9, 1024, 1, 1}};
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int f = 0; f < 3; f++)
        for (int e = 0; e < lam_case_n_edges; e++)
            one(run, &(norm_case){.blocks = 1 + lam_case_pick(&sizes, 3),
                                  .rows = lam_case_edge(&sizes, 33),
                                  .width = lam_case_edges[e],
                                  .add = form[f][0],
                                  .gain = form[f][1]});
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        for (int again = 0; again < 3; again++)
            one(run, &more[i]);
}

void lam_cases_norm_fwd(lam_case_run *run)
{
    norm_list(run, norm_fwd_one);
}

void lam_cases_norm_bwd(lam_case_run *run)
{
    norm_list(run, norm_bwd_one);
}

/* Calls `one` with every edge in either dimension, and with many rows. */
static void matrix_list(lam_case_run *run, void (*one)(lam_case_run *, int, int))
{
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        one(run, lam_case_edges[e], lam_case_edge(&sizes, 129));
        one(run, lam_case_edge(&sizes, 129), lam_case_edges[e]);
    }
    one(run, 0, 5);
    one(run, 1000, 3);
    one(run, 3, 1000);
    one(run, 513, 257);
}

static void dropout_one(lam_case_run *run, int rows, int width)
{
    static const double p[] = {0.0, 0.1, 0.5, 0.9};
    lam_dropout a = {.rows = rows, .width = width};
    lam_case c = lam_case_start(run, call_dropout, &a, 2.0);
    a.blocks = 1 + lam_case_pick(&c, 3);
    a.drop = lam_case_drop(&c, p[lam_case_pick(&c, 4)]);
    lam_layout at = lam_case_layout(&c, a.blocks, rows, width);
    a.ld = (int)at.ld;
    at.step = at.rows * at.ld;
    const int in_place = lam_case_pick(&c, 2);
    const int flags = LAM_WRITTEN | LAM_SAME_ZEROS | (a.drop.p == 0.0 ? LAM_EXACT : 0);
    view(&c, &a.in, "in", LAM_READ, at);
    if (in_place) {
        c.buffer[c.n_buffers - 1].flags = flags;
        a.out.step = a.in.step;
        lam_case_share(&c, &a.out.p, 0);
    } else {
        view(&c, &a.out, "out", flags, at);
    }
    if (lam_case_pick(&c, 2)) /* part of the step is in memory */
        lam_case_buf(&c, &a.drop.more, "more", LAM_INT, LAM_READ, 1)[0] = lam_case_pick(&c, 1000);
    c.work.rows = a.blocks * rows > 0 ? a.blocks * rows : 1;
    c.work.width = a.ld;
    lam_case_name(&c, "dropout blocks=%d rows=%d width=%d ld=%d p=%g in_place=%d", a.blocks, rows,
                  width, a.ld, a.drop.p, in_place);
    lam_case_check(&c);
}

void lam_cases_dropout(lam_case_run *run)
{
    matrix_list(run, dropout_one);
}

static void copy_one(lam_case_run *run, int blocks, int count)
{
    static const lam_class types[] = {LAM_ACT, LAM_WIDE, LAM_INT};
    for (int t = 0; t < 3; t++)
        for (int how = 0; how < 3; how++) { /* apart, from nothing, onto itself */
            lam_copy a = {.blocks = blocks, .count = (size_t)count, .type = types[t]};
            lam_case c = lam_case_start(run, call_copy, &a, 2.0);
            const lam_layout from = {(size_t)blocks, 1, (size_t)count, (size_t)count,
                                     (size_t)(count + lam_case_pick(&c, 5))};
            const lam_layout to = {(size_t)blocks, 1, (size_t)count, (size_t)count,
                                   (size_t)(count + lam_case_pick(&c, 5))};
            a.in.step = from.step;
            a.out.step = how == 2 ? from.step : to.step;
            double *p = NULL;
            if (how != 1)
                p = lam_case_rows(&c, &a.in.p, "in", a.type, how == 2 ? LAM_WRITTEN | LAM_EXACT : 0,
                                  &from, LAM_RANDOM);
            if (how == 2)
                lam_case_share(&c, &a.out.p, 0);
            double *out = how == 2 ? NULL
                                   : lam_case_rows(&c, &a.out.p, "out", a.type,
                                                   LAM_WRITTEN | LAM_EXACT, &to, LAM_RANDOM);
            for (size_t i = 0; a.type == LAM_INT && p && i < from.blocks * from.step; i++)
                p[i] = (double)lam_case_pick(&c, 1 << 30);
            for (size_t i = 0; a.type == LAM_INT && out && i < to.blocks * to.step; i++)
                out[i] = (double)lam_case_pick(&c, 1 << 30);
            lam_case_name(&c, "copy blocks=%d count=%d class=%d how=%d", blocks, count, t, how);
            lam_case_check(&c);
        }
}

void lam_cases_copy(lam_case_run *run)
{
    static const int count[] = {0, 1, 3, 16, 17, 129, 4099};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++) {
        copy_one(run, 1, count[i]);
        copy_one(run, 5, count[i]);
    }
}

static void colsum_one(lam_case_run *run, int rows, int width)
{
    lam_colsum a = {.rows = rows, .width = width};
    lam_case c = lam_case_start(run, call_colsum, &a, 3.0);
    const lam_layout at = lam_case_layout(&c, 1, rows, width);
    a.ld = (int)at.ld;
    lam_case_rows(&c, &a.in, "in", LAM_ACT, LAM_READ, &at, LAM_RANDOM);
    vector(&c, &a.out, "out", LAM_WRITTEN, at.width);
    c.work.rows = rows > 0 ? rows : 1;
    c.work.width = a.ld;
    lam_case_name(&c, "colsum rows=%d width=%d ld=%d", rows, width, a.ld);
    lam_case_check(&c);
}

void lam_cases_colsum(lam_case_run *run)
{
    matrix_list(run, colsum_one);
}
