/* attn_bench.c -- how far is attention from the rate of a large matrix product?
 *
 *     attn_bench [THREADS [ROUNDS]]
 *
 * Counts the multiply-adds that the definition asks for, over visible pairs: three products forward
 * (content, position, values), eight backward (the two score products again, dP, and five gradients);
 * masked corners, softmax and packing count nothing.  The yardstick, a product of 2048 x 256 x 768,
 * takes turns with every case, so that a noisy neighbour slows both.  Decoding (one query) is shown
 * in bytes of keys, values and positions a second next to a plain sum over as much memory.
 * Not a test: nothing is checked, and nothing here runs in CTest. */
#include "core/clock.h"
#include "core/rng.h"
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct shape {
    const char *name;
    int B, H, K, queries, keys;
    lam_attn_mode mode;
    int shift;
} shape;

static const shape shapes[] = {
    {"small, past", 8, 4, 64, 128, 256, LAM_CAUSAL, 128},
    {"small, ahead", 8, 4, 64, 128, 128, LAM_AHEAD, 0},
    {"tiny, past", 16, 4, 32, 64, 128, LAM_CAUSAL, 64},
    {"tiny, ahead", 16, 4, 32, 64, 64, LAM_AHEAD, 0},
    {"enwik8-base, past", 2, 8, 64, 512, 1024, LAM_CAUSAL, 512},
    {"enwik8-base, ahead", 2, 8, 64, 512, 512, LAM_AHEAD, 0},
    {"wt103-base, past", 4, 10, 41, 150, 300, LAM_CAUSAL, 150},
    {"wt103-base, ahead", 4, 10, 41, 150, 150, LAM_AHEAD, 0},
    {"decode 1 x 1024", 1, 8, 64, 1, 1024, LAM_CAUSAL, 1023},
    {"decode 1 x 300, K 41", 1, 10, 41, 1, 300, LAM_CAUSAL, 299},
    {"decode 16 x 1024", 16, 8, 64, 1, 1024, LAM_CAUSAL, 1023},
};

static float *floats(lam_dev *dev, size_t n)
{
    void *p = NULL;
    lam_rng rng = {.key = 1};
    if (dev->ops->alloc(dev, &p, n * sizeof(float)) != LAM_OK) {
        fprintf(stderr, "%s\n", lam_error());
        exit(1);
    }
    for (size_t i = 0; i < n; i++)
        ((float *)p)[i] = (float)lam_rng_uniform(&rng) - 0.5f;
    return p;
}

static lam_view view(lam_dev *dev, int B, int rows, size_t ld)
{
    return (lam_view){floats(dev, (size_t)B * (size_t)rows * ld), (size_t)rows * ld};
}

static lam_attn args_of(lam_dev *dev, const shape *s)
{
    const size_t D = (size_t)(s->H * s->K), H = (size_t)s->H;
    lam_attn a = {.B = s->B, .H = s->H, .K = s->K, .queries = s->queries, .keys = s->keys};
    a.mode = s->mode;
    a.shift = s->shift;
    a.scale = 0.125;
    a.r_rows = s->mode == LAM_AHEAD ? s->keys : s->shift + s->queries;
    a.r_sign = s->mode == LAM_AHEAD ? 1 : -1;
    a.r_zero = s->mode == LAM_AHEAD ? -1 : 0;
    a.ldq = a.ldo = a.ldr = D;
    a.ldk = 2 * D; /* keys and values side by side, as one projection leaves them */
    a.q = view(dev, s->B, s->queries, D);
    a.k = view(dev, s->B, s->keys, 2 * D);
    a.value = (lam_view){(float *)a.k.p + D, a.k.step};
    a.o = view(dev, s->B, s->queries, D);
    a.lse = view(dev, s->B, s->queries, H);
    a.d_o = view(dev, s->B, s->queries, D);
    a.dlse = view(dev, s->B, s->queries, H);
    a.dq = view(dev, s->B, s->queries, D);
    a.dk = view(dev, s->B, s->keys, 2 * D);
    a.dvalue = (lam_view){(float *)a.dk.p + D, a.dk.step};
    a.u = floats(dev, D);
    a.v = floats(dev, D);
    a.du = floats(dev, D);
    a.dv = floats(dev, D);
    a.r = floats(dev, (size_t)a.r_rows * D);
    a.dr = floats(dev, (size_t)a.r_rows * D);
    return a;
}

static double pairs_of(const shape *s)
{
    double pairs = 0.0;
    for (int i = 0; i < s->queries; i++)
        for (int j = 0; j < s->keys; j++)
            pairs += s->mode == LAM_AHEAD ? j > s->shift + i : j <= s->shift + i;
    return pairs * s->B * s->H;
}

static double gemm_seconds(lam_dev *dev)
{
    static float *x, *y, *z;
    enum { m = 2048, n = 256, k = 768 };
    if (!x) {
        x = floats(dev, m * k);
        y = floats(dev, k * n);
        z = floats(dev, m * n);
    }
    const lam_gemm g = {.m = m,
                        .n = n,
                        .k = k,
                        .batch = 1,
                        .a = x,
                        .b = y,
                        .c = z,
                        .c_class = LAM_ACT,
                        .lda = k,
                        .ldb = n,
                        .ldc = n};
    const double start = lam_clock();
    dev->ops->gemm(dev, &g);
    return (lam_clock() - start) / (2.0 * m * n * k); /* a flop */
}

static volatile float sink; /* so that the sum is not optimised away */

/* Seconds a byte for one thread to add up `bytes` bytes in order. */
static double sum_seconds(const float *x, size_t bytes)
{
    enum { WAYS = 128 };
    float sum[WAYS] = {0.0f};
    const double start = lam_clock();
    for (size_t i = 0; i + WAYS <= bytes / sizeof *x; i += WAYS)
        for (size_t k = 0; k < WAYS; k++)
            sum[k] += x[i + k];
    float total = 0.0f;
    for (size_t k = 0; k < WAYS; k++)
        total += sum[k];
    sink = total;
    return (lam_clock() - start) / (double)bytes;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

static void measure(lam_dev *dev, const shape *s, int rounds)
{
    const lam_attn a = args_of(dev, s);
    const lam_work work = {.B = s->B,
                           .H = s->H,
                           .K = s->K,
                           .queries = s->queries,
                           .keys = s->keys,
                           .r_rows = a.r_rows};
    const double flops = 2.0 * s->K * pairs_of(s);
    double fwd = 1e9, bwd = 1e9, gemm = 1e9;
    if (dev->ops->reserve(dev, &work) != LAM_OK)
        exit(1);
    for (int i = 0; i < rounds; i++) {
        gemm = smaller(gemm, gemm_seconds(dev));
        const double start = lam_clock();
        dev->ops->attn_fwd(dev, &a);
        const double mid = lam_clock();
        fwd = smaller(fwd, mid - start);
        if (s->queries == 1)
            continue;
        dev->ops->attn_bwd(dev, &a);
        bwd = smaller(bwd, lam_clock() - mid);
    }
    if (s->queries == 1) {
        const size_t bytes = sizeof(float) * (size_t)(s->K * s->H * s->keys * (2 * s->B + 1));
        const float *x = floats(dev, bytes / sizeof *x);
        double sum = 1e9;
        for (int i = 0; i < rounds; i++)
            sum = smaller(sum, sum_seconds(x, bytes));
        printf("%-22s fwd %8.1f us %6.1f GB/s         (one thread adding numbers: %.1f GB/s)\n",
               s->name, fwd * 1e6, (double)bytes / fwd * 1e-9, 1e-9 / sum);
        return;
    }
    printf("%-22s fwd %8.1f us %6.1f GFLOP/s %4.0f %%   bwd %8.1f us %6.1f GFLOP/s %4.0f %%   "
           "gemm %6.1f\n",
           s->name, fwd * 1e6, 3 * flops / fwd * 1e-9, 300 * flops * gemm / fwd, bwd * 1e6,
           8 * flops / bwd * 1e-9, 800 * flops * gemm / bwd, 1e-9 / gemm);
}

int main(int argc, char **argv)
{
    const lam_ops *ops;
    lam_dev *dev;
    const lam_dev_options options = {.threads = argc > 1 ? atoi(argv[1]) : 0};
    const int rounds = argc > 2 ? atoi(argv[2]) : 30;
    if (lam_ops_find(&ops, "cpu") != LAM_OK || ops->open(&dev, &options) != LAM_OK) {
        fprintf(stderr, "%s\n", lam_error());
        return 1;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        measure(dev, &shapes[i], rounds);
    ops->close(dev);
    return 0;
}
