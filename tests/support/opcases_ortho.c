/* opcases_ortho.c -- Muon's momentum and its rows over matrices with gaps between them, and its polynomial. */
#include "support/opcase.h"

#include <math.h>

enum { MAX_MATRICES = 300 };

static void call_begin(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->ortho_begin(dev, op);
}

static void call_mix(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->ortho_mix(dev, op);
}

static void call_even(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->ortho_even(dev, op);
}

/* Where matrices lie in a flat vector. */
typedef struct places {
    size_t offset[MAX_MATRICES], size, length;
    int count;
} places;

static places scatter(lam_case *c, int count, int size)
{
    places p = {.size = (size_t)size, .count = count};
    for (int k = 0; k < count; k++) {
        p.offset[k] = p.length + (size_t)lam_case_pick(c, 5);
        p.length = p.offset[k] + p.size;
    }
    return p;
}

/* A flat vector: random within the matrices, guards elsewhere. */
static double *flat(lam_case *c, void *slot, const char *name, int flags, const places *at)
{
    double *p = lam_case_buf(c, slot, name, LAM_WIDE, flags, at->length);
    for (size_t i = 0; i < at->length; i++)
        p[i] = LAM_GUARD;
    for (int k = 0; k < at->count; k++)
        for (size_t i = 0; i < at->size; i++)
            p[at->offset[k] + i] = 0.1 * lam_case_normal(c);
    return p;
}

static void begin_one(lam_case_run *run, int count, int size, double beta, double norm)
{
    lam_ortho_begin a = {.count = count, .size = (size_t)size, .beta = beta};
    lam_case c = lam_case_start(run, call_begin, &a, 2.0);
    const int flags = LAM_WRITTEN | (isfinite(norm) ? 0 : LAM_EXACT);
    const places at = scatter(&c, count, size);
    a.offset = at.offset;
    a.clip = lam_case_pick(&c, 3) * 0.25; /* none, strong, weak */
    lam_case_buf(&c, &a.norm, "norm", LAM_WIDE, LAM_READ, 1)[0] = norm;
    flat(&c, &a.grad, "grad", LAM_READ, &at);
    flat(&c, &a.m, "m", flags, &at);
    const lam_layout out = {1, (size_t)count, a.size, a.size, (size_t)count * a.size};
    lam_case_rows(&c, &a.x, "x", LAM_ACT, flags, &out, LAM_NAN);
    lam_case_name(&c, "ortho_begin count=%d size=%d beta=%g clip=%g norm=%g", count, size, beta,
                  a.clip, norm);
    lam_case_check(&c);
}

/* Nothing moves where there is neither momentum nor gradient, and that is no division by zero. */
static void begin_nothing(lam_case_run *run)
{
    const size_t offset[] = {0, 40};
    lam_ortho_begin a = {.offset = offset, .count = 2, .size = 35, .beta = 0.95};
    lam_case c = lam_case_start(run, call_begin, &a, 2.0);
    lam_case_buf(&c, &a.norm, "norm", LAM_WIDE, LAM_READ, 1)[0] = 0.0;
    lam_case_buf(&c, &a.grad, "grad", LAM_WIDE, LAM_READ, 75);
    lam_case_buf(&c, &a.m, "m", LAM_WIDE, LAM_WRITTEN | LAM_EXACT, 75);
    const lam_layout out = {1, 2, 35, 35, 70};
    lam_case_rows(&c, &a.x, "x", LAM_ACT, LAM_WRITTEN | LAM_EXACT, &out, LAM_NAN);
    lam_case_name(&c, "ortho_begin of nothing");
    lam_case_check(&c);
}

void lam_cases_ortho_begin(lam_case_run *run)
{
    static const int size[] = {1, 15, 64, 1000, 8191, 8192, 8193, 30001};
    for (size_t s = 0; s < sizeof size / sizeof *size; s++)
        for (int count = 1; count <= 5; count += 2) {
            begin_one(run, count, size[s], 0.95, 0.01);
            begin_one(run, count, size[s], 0.9, 7.0);
        }
    begin_one(run, MAX_MATRICES, 33, 0.95, 7.0);
    begin_one(run, 126, 8193, 0.95, 7.0); /* more tiles than cuda takes at once on the host */
    begin_one(run, 3, 100, 0.0, 7.0);
    begin_one(run, 3, 100, 0.95, 0.0);
    begin_one(run, 3, 100, 0.95, (double)INFINITY);
    begin_one(run, 3, 100, 0.95, (double)NAN);
    begin_nothing(run);
}

static void mix_one(lam_case_run *run, int count, int n, int in_place)
{
    const size_t rows = (size_t)count * (size_t)n;
    const lam_layout at = {1, rows, (size_t)n, (size_t)n, rows * (size_t)n};
    lam_ortho_mix a = {.count = count, .n = n, .a = 3.4445, .b = -4.775, .c = 2.0315};
    lam_case c = lam_case_start(run, call_mix, &a, 2.0);
    lam_case_rows(&c, &a.A, "A", LAM_ACT, LAM_READ, &at, LAM_RANDOM);
    lam_case_rows(&c, &a.P, "P", LAM_ACT, in_place ? LAM_WRITTEN : LAM_READ, &at, LAM_RANDOM);
    if (in_place)
        lam_case_share(&c, &a.q, 0);
    else
        lam_case_rows(&c, &a.q, "q", LAM_ACT, LAM_WRITTEN, &at, LAM_NAN);
    lam_case_name(&c, "ortho_mix count=%d n=%d%s", count, n, in_place ? " in place" : "");
    lam_case_check(&c);
}

void lam_cases_ortho_mix(lam_case_run *run)
{
    for (int e = 0; e < lam_case_n_edges; e++)
        for (int count = 1; count <= 3; count += 2) {
            mix_one(run, count, lam_case_edges[e], 0);
            mix_one(run, count, lam_case_edges[e], 1);
        }
    mix_one(run, 300, 5, 1);
}

/* The second row of every matrix is zero: it has no direction, and stays.  The third is next to nothing, less than
 * 1 / FLT_MAX, and must not become infinite; the fourth is small. */
static void even_one(lam_case_run *run, int count, int rows, int cols)
{
    lam_ortho_even a = {.count = count, .rows = rows, .cols = cols, .length = 0.75};
    lam_case c = lam_case_start(run, call_even, &a, 2.0);
    const places at = scatter(&c, count, rows * cols);
    a.offset = at.offset;
    double *x = flat(&c, &a.x, "x", LAM_WRITTEN, &at);
    static const double scale[] = {1.0, 0.0, 1e-41, 1e-4};
    for (int k = 0; k < count; k++)
        for (int i = 0; i < rows * cols && i < 4 * cols; i++)
            x[at.offset[k] + (size_t)i] *= scale[i / cols];
    lam_case_name(&c, "ortho_even count=%d rows=%d cols=%d", count, rows, cols);
    lam_case_check(&c);
}

void lam_cases_ortho_even(lam_case_run *run)
{
    for (int e = 0; e < lam_case_n_edges; e++) {
        even_one(run, 3, 5, lam_case_edges[e]);
        even_one(run, 2, lam_case_edges[e], 7);
    }
    even_one(run, 2, 9, 2049);
    even_one(run, MAX_MATRICES, 3, 4);
}
