/* opcases_compress.c -- pooling of groups of rows, and squared distances with their gradient, in place
 * too.  Padding is zero on the way in; an output's holds garbage before and must be zero after. */
#include "support/opcase.h"

#include <math.h>

static void call_pool(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->pool(dev, op);
}

static void call_distance(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->distance(dev, op);
}

/* A contiguous [rows][ld] matrix. */
static void matrix(lam_case *c, void *slot, const char *name, int flags, int rows, int width,
                   int ld)
{
    const lam_layout at = {1, (size_t)rows, (size_t)width, (size_t)ld, (size_t)rows * (size_t)ld};
    const int out = flags & LAM_WRITTEN;
    lam_case_rows(c, slot, name, LAM_ACT, flags, &at, out ? LAM_NAN : LAM_RANDOM);
    lam_case_padding(c, &at, out ? (double)NAN : 0.0);
}

static int ld_of(lam_case *c, int width)
{
    return (int)lam_case_pad(c, (size_t)(width + (lam_case_pick(c, 2) ? 0 : 3)));
}

static void pool_one(lam_case_run *run, int rows, int width)
{
    lam_pool a = {.rows = rows, .width = width};
    lam_case c = lam_case_start(run, call_pool, &a, 2.0);
    a.kind = lam_case_pick(&c, 2) ? LAM_MEAN : LAM_MAXIMUM;
    a.group = 1 + lam_case_pick(&c, 5);
    a.ld = ld_of(&c, width);
    matrix(&c, &a.in, "in", LAM_READ, rows * a.group, width, a.ld);
    matrix(&c, &a.out, "out", LAM_WRITTEN | (a.kind == LAM_MAXIMUM ? LAM_EXACT : 0), rows, width,
           a.ld);
    lam_case_name(&c, "pool kind=%d rows=%d group=%d width=%d ld=%d", a.kind, rows, a.group, width,
                  a.ld);
    lam_case_check(&c);
}

static void distance_one(lam_case_run *run, int rows, int width)
{
    lam_distance a = {.rows = rows, .width = width, .weight = 0.01, .scale = 3.0};
    lam_case c = lam_case_start(run, call_distance, &a, 2.0);
    const int in_place = lam_case_pick(&c, 3); /* apart, b, a */
    a.ld = ld_of(&c, width);
    matrix(&c, &a.b, "b", LAM_READ, rows, width, a.ld);
    if (in_place == 1) {
        c.buffer[c.n_buffers - 1].flags = LAM_WRITTEN;
        lam_case_share(&c, &a.d, 0);
    }
    matrix(&c, &a.a, "a", LAM_READ, rows, width, a.ld);
    if (in_place == 2) {
        c.buffer[c.n_buffers - 1].flags = LAM_WRITTEN;
        lam_case_share(&c, &a.d, 0);
    }
    if (in_place == 0)
        matrix(&c, &a.d, "d", LAM_WRITTEN, rows, width, a.ld);
    const size_t n = (size_t)rows;
    lam_case_rows(&c, &a.sum, "sum", LAM_WIDE, LAM_WRITTEN, &(lam_layout){1, 1, n, n, n}, LAM_NAN);
    lam_case_name(&c, "distance rows=%d width=%d ld=%d in_place=%d", rows, width, a.ld, in_place);
    lam_case_check(&c);
}

static void list(lam_case_run *run, void (*one)(lam_case_run *, int, int))
{
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        one(run, lam_case_edges[e], lam_case_edge(&sizes, 129));
        one(run, lam_case_edge(&sizes, 33), lam_case_edges[e]);
    }
    one(run, 0, 5);
    one(run, 300, 410);
}

void lam_cases_pool(lam_case_run *run)
{
    list(run, pool_one);
}

void lam_cases_distance(lam_case_run *run)
{
    list(run, distance_one);
}
