/* opcases_gemm.c -- the device's own services, and matrix products: every tile edge in every
 * dimension, all transposes, batches with shared operands, sums of products, the epilogue. */
#include "core/arena.h"
#include "support/opcase.h"

#include <math.h>
#include <stdint.h>
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
