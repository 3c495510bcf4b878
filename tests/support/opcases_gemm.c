/* opcases_gemm.c -- the device's own services, and matrix products: every tile edge in every
 * dimension, all transposes, batches with shared operands, sums of products, the epilogue. */
#include "core/arena.h"
#include "support/opcase.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* alloc zeroes and aligns; what is uploaded comes back; zero() zeroes. */
void lam_cases_device(lam_case_run *run)
{
    const lam_ops *ops = run->ops;
    lam_dev *dev = run->dev;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4097, 100003};
    static unsigned char sent[100003], got[100003];

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t n = sizes[i];
        void *p = NULL;
        size_t wrong = 0;
        int ok = ops->alloc(dev, &p, n) == LAM_OK && p && (uintptr_t)p % LAM_ALIGN == 0;
        memset(got, 1, sizeof got);
        ok = ok && ops->download(dev, got, p, n) == LAM_OK;
        for (size_t j = 0; j < n; j++) {
            wrong += got[j] != 0;
            sent[j] = (unsigned char)(j * 31 + 7);
        }
        if (ok)
            ops->upload(dev, p, sent, n);
        ok = ok && ops->download(dev, got, p, n) == LAM_OK && memcmp(sent, got, n) == 0;
        if (ok)
            ops->zero(dev, p, n / 2);
        ok = ok && ops->download(dev, got, p, n) == LAM_OK && ops->sync(dev) == LAM_OK;
        for (size_t j = 0; j < n; j++)
            wrong += got[j] != (j < n / 2 ? 0 : sent[j]);
        ops->release(dev, p);
        run->cases++;
        run->failures += !ok || wrong;
        if ((!ok || wrong) && run->report)
            fprintf(run->report, "FAIL device memory of %zu bytes: %zu bytes are wrong\n", n,
                    wrong);
    }
}

static void call_gemm(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->gemm(dev, op);
}

/* How the products of a batch lie in an operand. */
enum { APART, SHARED, OVERLAPPING, SPACED };

/* One operand: rows x cols as stored, `batch` of them.  Overlapping ones begin one row later each,
 * as in a convolution by rows. */
static void operand(lam_case *c, const void **slot, const char *name, lam_layout at, int batch,
                    size_t *ld, size_t *step)
{
    const int how = batch > 1 ? lam_case_pick(c, 4) : APART;
    at.blocks = (size_t)batch;
    at.step = *step = at.rows * at.ld + (how == SPACED ? at.ld : 0);
    if (how == SHARED || how == OVERLAPPING) {
        *step = how == SHARED ? 0 : at.ld;
        at.rows += how == SHARED ? 0 : (size_t)batch - 1;
        at.blocks = 1;
        at.step = at.rows * at.ld;
    }
    *ld = at.ld;
    lam_case_rows(c, slot, name, LAM_ACT, LAM_READ, &at, LAM_RANDOM);
}

typedef struct gemm_case {
    int m, n, k, batch;
} gemm_case;

/* Tensor cores add 16 products of bf16 at a time and cut the sum instead of rounding it: where the
 * result is not rounded to bf16 anyway, the error grows with k, that of the naive loop with its square
 * root. */
static void gemm_one(lam_case_run *run, gemm_case s)
{
    lam_gemm g = {.m = s.m, .n = s.n, .k = s.k, .batch = s.batch};
    lam_case c = lam_case_start(run, call_gemm, &g, 2.0);
    c.library = 1;
    g.ta = lam_case_pick(&c, 2) ? LAM_FLIP : LAM_KEEP;
    g.tb = lam_case_pick(&c, 2) ? LAM_FLIP : LAM_KEEP;
    g.c_class = lam_case_pick(&c, 2) ? LAM_WIDE : LAM_ACT;
    if (run->dev->act == LAM_BF16 && g.c_class == LAM_WIDE)
        c.limit += sqrt(s.k) / 8.0;
    g.beta = lam_case_pick(&c, 2);
    const int bias = lam_case_pick(&c, 2), relu = g.relu = lam_case_pick(&c, 3) == 0;
    const int drop = lam_case_pick(&c, 3) == 0, together = lam_case_pick(&c, 3) == 0;
    if (drop)
        g.drop = lam_case_drop(&c, 0.2);

    const int flip_a = g.ta == LAM_FLIP, flip_b = g.tb == LAM_FLIP;
    operand(&c, &g.a, "a", lam_case_layout(&c, 1, flip_a ? s.k : s.m, flip_a ? s.m : s.k), s.batch,
            &g.lda, &g.step_a);
    operand(&c, &g.b, "b", lam_case_layout(&c, 1, flip_b ? s.n : s.k, flip_b ? s.k : s.n), s.batch,
            &g.ldb, &g.step_b);
    const lam_layout out = lam_case_layout(&c, together ? 1 : s.batch, s.m, s.n);
    g.ldc = out.ld;
    g.step_c = together ? 0 : out.step;
    lam_case_rows(&c, &g.c, "c", g.c_class, LAM_WRITTEN | (drop && !relu ? LAM_SAME_ZEROS : 0),
                  &out, g.beta == 0.0 ? LAM_NAN : LAM_RANDOM);
    if (bias)
        lam_case_rows(&c, &g.bias, "bias", LAM_WIDE, LAM_READ,
                      &(lam_layout){1, 1, (size_t)s.n, (size_t)s.n, (size_t)s.n}, LAM_RANDOM);
    c.work.rows = s.m * s.batch > 0 ? s.m * s.batch : 1;
    c.work.width = s.n > s.k ? s.n : s.k;
    lam_case_name(&c,
                  "gemm m=%d n=%d k=%d batch=%d %c%c %s beta=%g bias=%d relu=%d drop=%g ld=%zu,%zu,"
                  "%zu step=%zu,%zu,%zu",
                  s.m, s.n, s.k, s.batch, flip_a ? 'T' : 'N', flip_b ? 'T' : 'N',
                  g.c_class == LAM_WIDE ? "WIDE" : "ACT", g.beta, bias, relu, g.drop.p, g.lda,
                  g.ldb, g.ldc, g.step_a, g.step_b, g.step_c);
    lam_case_check(&c);
}

void lam_cases_gemm(lam_case_run *run)
{
    static const gemm_case special[] = {
        {0, 5, 3, 1},      {4, 5, 0, 1},     {4, 5, 0, 3},     {3, 4, 1, 2},    {1, 1, 1, 1},
        {1, 1, 1, 7},      {1, 700, 300, 1}, {300, 1, 500, 1}, {2, 3, 2000, 1}, {2, 3, 2000, 2},
        {130, 257, 60, 1}, {64, 64, 64, 9},  {33, 100, 17, 4}, {5, 3, 4, 31},
    };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        for (int again = 0; again < 3; again++)
            gemm_one(run, special[i]);

    lam_case sizes = lam_case_start(run, call_gemm, NULL, 2.0);
    for (int dim = 0; dim < 3; dim++)
        for (int e = 0; e < lam_case_n_edges; e++)
            for (int again = 0; again < 2; again++) {
                gemm_case s = {.m = lam_case_edge(&sizes, 129),
                               .n = lam_case_edge(&sizes, 129),
                               .k = lam_case_edge(&sizes, 129),
                               .batch = again ? 1 : 1 + lam_case_pick(&sizes, 6)};
                *(dim == 0 ? &s.m : dim == 1 ? &s.n : &s.k) = lam_case_edges[e];
                gemm_one(run, s);
            }
}

/* The feed-forward's inner products.  Forward with a bias so large that nothing is cut off by the ReLU: then zeros
 * are dropout's, and must be where ref has them. */
static void inner_fwd_one(lam_case_run *run, gemm_case s)
{
    lam_gemm g = {.m = s.m, .n = s.n, .k = s.k, .batch = 1, .tb = LAM_FLIP, .relu = 1};
    lam_case c = lam_case_start(run, call_gemm, &g, 2.0);
    c.library = 1;
    c.mixed = 1; /* a library's epilogue takes the bias in ACT, and rounds before dropout */
    const int raised = lam_case_pick(&c, 2);
    if (raised || lam_case_pick(&c, 2))
        g.drop = lam_case_drop(&c, 0.2);
    operand(&c, &g.a, "a", lam_case_layout(&c, 1, s.m, s.k), 1, &g.lda, &g.step_a);
    operand(&c, &g.b, "b", lam_case_layout(&c, 1, s.n, s.k), 1, &g.ldb, &g.step_b);
    const lam_layout out = lam_case_layout(&c, 1, s.m, s.n);
    g.ldc = out.ld;
    lam_case_rows(&c, &g.c, "c", LAM_ACT, LAM_WRITTEN | (raised ? LAM_SAME_ZEROS : 0), &out,
                  LAM_NAN);
    double *bias =
        lam_case_rows(&c, &g.bias, "bias", LAM_WIDE, LAM_READ | LAM_SUMMED,
                      &(lam_layout){1, 1, (size_t)s.n, (size_t)s.n, (size_t)s.n}, LAM_RANDOM);
    for (int i = 0; raised && i < s.n; i++)
        bias[i] += 8.0 * sqrt(s.k);
    c.work.rows = s.m;
    c.work.width = s.n > s.k ? s.n : s.k;
    lam_case_name(&c, "gemm_inner forward m=%d n=%d k=%d raised=%d drop=%g ld=%zu,%zu,%zu", s.m,
                  s.n, s.k, raised, g.drop.p, g.lda, g.ldb, g.ldc);
    lam_case_check(&c);
}

/* Backward: h as forward leaves it, half of it zero. */
static void inner_bwd_one(lam_case_run *run, gemm_case s)
{
    lam_gemm g = {.m = s.m, .n = s.n, .k = s.k, .batch = 1, .ldc = (size_t)s.n};
    lam_case c = lam_case_start(run, call_gemm, &g, 3.0);
    const lam_layout out = {1, (size_t)s.m, (size_t)s.n, (size_t)s.n, (size_t)s.m * (size_t)s.n};
    c.library = 1;
    c.mixed = 1;
    g.h_scale = lam_case_pick(&c, 2) ? 1.0 : lam_drop_scale(0.1);
    g.tb = lam_case_pick(&c, 4) == 0 ? LAM_FLIP : LAM_KEEP;
    const int flip = g.tb == LAM_FLIP;
    operand(&c, &g.a, "a", lam_case_layout(&c, 1, s.m, s.k), 1, &g.lda, &g.step_a);
    operand(&c, &g.b, "b", lam_case_layout(&c, 1, flip ? s.n : s.k, flip ? s.k : s.n), 1, &g.ldb,
            &g.step_b);
    double *h = lam_case_rows(&c, &g.h, "h", LAM_ACT, LAM_READ, &out, LAM_RANDOM);
    for (size_t i = 0; i < out.step; i++)
        h[i] = h[i] > 0.0 ? h[i] : 0.0;
    lam_case_rows(&c, &g.c, "c", LAM_ACT, LAM_WRITTEN | LAM_SAME_ZEROS, &out, LAM_NAN);
    lam_case_rows(&c, &g.dbias, "dbias", LAM_WIDE, LAM_WRITTEN,
                  &(lam_layout){1, 1, (size_t)s.n, (size_t)s.n, (size_t)s.n}, LAM_RANDOM);
    c.work.rows = s.m > 0 ? s.m : 1;
    c.work.width = s.n > s.k ? s.n : s.k;
    lam_case_name(&c, "gemm_inner backward m=%d n=%d k=%d N%c scale=%g ld=%zu,%zu", s.m, s.n, s.k,
                  flip ? 'T' : 'N', g.h_scale, g.lda, g.ldb);
    lam_case_check(&c);
}

/* Backward with every edge in either dimension of C: its second half is a pass over C of its own, row by row,
 * wherever the product does not finish it. */
static void inner_bwd_edges(lam_case_run *run)
{
    static const gemm_case more[] = {
        {0, 5, 3, 1}, {1000, 3, 2, 1}, {3, 1000, 9, 1}, {513, 257, 7, 1}};
    lam_case sizes = lam_case_start(run, call_gemm, NULL, 3.0);
    for (int e = 0; e < lam_case_n_edges; e++) {
        const int edge = lam_case_edges[e], k = lam_case_edge(&sizes, 33);
        inner_bwd_one(run, (gemm_case){edge, lam_case_edge(&sizes, 129), k, 1});
        inner_bwd_one(run, (gemm_case){lam_case_edge(&sizes, 129), edge, k, 1});
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        inner_bwd_one(run, more[i]);
}

/* From 256 x 128 on one card does these by a kernel of its own, in tiles of 128 x 128 x 64; several tiles a
 * block it only gets where all its multiprocessors are busy. */
void lam_cases_gemm_inner(lam_case_run *run)
{
    static const gemm_case list[] = {
        {1, 1, 1, 1},       {3, 17, 5, 1},       {65, 40, 33, 1},    {256, 128, 64, 1},
        {257, 128, 8, 1},   {300, 200, 72, 1},   {385, 136, 136, 1}, {290, 130, 24, 1},
        {256, 128, 512, 1}, {1300, 130, 200, 1},
    };
    static const gemm_case large[] = {{50693, 128, 8, 1}, {34001, 136, 72, 1}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int again = 0; again < 2; again++) {
            inner_fwd_one(run, list[i]);
            inner_bwd_one(run, list[i]);
        }
    inner_bwd_edges(run);
    const char *wanted =
        getenv("LAM_OPCASES_LARGE"); /* 0: where multiprocessors are few, or slow */
    if (strcmp(run->ops->name, "cuda") != 0 || (wanted && strcmp(wanted, "0") == 0))
        return;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        inner_fwd_one(run, large[i]);
        inner_bwd_one(run, large[i]);
    }
}
