/* gpu_bench.c -- how far is each operation of the cuda back-end from what the card can do?
 *
 *     gpu_bench [cuda|cpu [ROUNDS [NAME]]]       only operations whose name begins so
 *
 * Runs the operations at the shapes of one enwik8-base LaMemo step (40 streams of
 * 512 + 512 rows) and some of wt103, and prints the median time of a call, its rate, and its floor:
 * the bytes it must move over a copy's rate measured first, or its arithmetic over the rate of a
 * large product.  A round queues a call ten times and waits once, so launches overlap as in a step.
 * Not a test: nothing is checked, and nothing here runs in CTest. */
#include "core/clock.h"
#include "core/rng.h"
#include "ops/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 40, N = 512, M = 512, T = N + M, ROWS = B * T, D = 512, H = 8, K = 64, F = 2048 };
enum { STREAMS = 64, AGE = M + N / 2 };
enum { V = 204, SLOTS = 8, BATCH = 10, MAX_ROUNDS = 100, VECTOR = 1 << 19, PARAMS = 41 << 20 };
static const size_t big =
    (size_t)267735 * 416; /* elements of a slot: the largest operand, above ROWS * F */

typedef struct bench {
    const lam_ops *ops;
    lam_dev *dev;
    void *act[SLOTS];       /* ACT, `big` elements each, normal numbers */
    void *wide[4];          /* WIDE [VECTOR] */
    void *flat[4];          /* WIDE [PARAMS]: gradient, master, moments */
    void *weight;           /* ACT [PARAMS] */
    void *ids, *list;       /* INT [ROWS]: below V; a permutation */
    void *ages;             /* INT [STREAMS]: decoding, as in the middle of a segment */
    double copy_rate, rate; /* bytes and operations per second of the ceilings */
    int rounds;
} bench;

typedef struct job {
    const char *name;
    void (*run)(const bench *x, const struct job *j);
    double bytes, flops; /* that must be moved, or done */
    int m, n, k;         /* products, and [rows][cols] of others */
    lam_trans ta, tb;
    int extra; /* products: epilogue; others: see the function */
} job;

static const lam_drop dropout = {.p = 0.1, .seed = 1, .step = 2, .site = 3};

static void check(lam_status status)
{
    if (status == LAM_OK)
        return;
    fprintf(stderr, "gpu_bench: %s\n", lam_error());
    exit(1);
}

/* ---- the calls ------------------------------------------------------------------------------- */

enum { PLAIN, RELU, RELU_DROP, BIAS, BACK };

static void run_gemm(const bench *x, const job *j)
{
    const int weights = j->ta == LAM_FLIP; /* a gradient of weights: WIDE and added */
    const lam_gemm g = {.m = j->m,
                        .n = j->n,
                        .k = j->k,
                        .batch = 1,
                        .ta = j->ta,
                        .tb = j->tb,
                        .a = x->act[0],
                        .b = x->act[1],
                        .c = weights ? x->flat[0] : x->act[2],
                        .c_class = weights ? LAM_WIDE : LAM_ACT,
                        .lda = (size_t)(j->ta == LAM_FLIP ? j->m : j->k),
                        .ldb = (size_t)(j->tb == LAM_FLIP ? j->k : j->n),
                        .ldc = (size_t)((j->n + 15) / 16 * 16),
                        .beta = weights ? 1.0 : 0.0,
                        .bias = j->extra != PLAIN && j->extra != BACK ? x->wide[0] : NULL,
                        .relu = j->extra == RELU || j->extra == RELU_DROP,
                        .drop = j->extra == RELU_DROP ? dropout : (lam_drop){0},
                        .h = j->extra == BACK ? x->act[3] : NULL,
                        .h_scale = 1.0,
                        .dbias = x->wide[3]};
    x->ops->gemm(x->dev, &g);
}

/* The sum over streams of products on current rows only: what Transformer-XL's W_o needs. */
static void run_gemm_sum(const bench *x, const job *j)
{
    const lam_gemm g = {.m = j->m,
                        .n = j->n,
                        .k = N,
                        .batch = B,
                        .ta = LAM_FLIP,
                        .tb = LAM_KEEP,
                        .a = x->act[0],
                        .b = x->act[1],
                        .c = x->flat[0],
                        .c_class = LAM_WIDE,
                        .lda = (size_t)j->m,
                        .ldb = (size_t)j->n,
                        .ldc = (size_t)j->n,
                        .step_a = (size_t)N * (size_t)j->m,
                        .step_b = (size_t)T * (size_t)j->n,
                        .beta = 1.0};
    x->ops->gemm(x->dev, &g);
}

static lam_norm norm_of(const bench *x)
{
    const lam_view at[5] = {{x->act[0], (size_t)T * D},
                            {x->act[1], (size_t)T * D},
                            {x->act[4], (size_t)T * D},
                            {x->act[5], (size_t)T * D}};
    return (lam_norm){.blocks = B,
                      .rows = T,
                      .width = D,
                      .ld = D,
                      .eps = 1e-5,
                      .drop = dropout,
                      .x = at[0],
                      .y = at[1],
                      .add = x->act[2],
                      .bias = x->wide[0],
                      .sum = x->act[3],
                      .mean = x->wide[1],
                      .rstd = x->wide[2],
                      .gain = x->wide[0],
                      .shift = x->wide[0],
                      .dy = at[2],
                      .dx = at[3],
                      .dadd = x->act[6],
                      .dgain = x->wide[3],
                      .dshift = lam_at(x->dev, LAM_WIDE, x->wide[3], D),
                      .dbias = lam_at(x->dev, LAM_WIDE, x->wide[3], 2 * D)};
}

static void run_norm(const bench *x, const job *j)
{
    const lam_norm a = norm_of(x);
    (j->extra ? x->ops->norm_bwd : x->ops->norm_fwd)(x->dev, &a);
}

static void run_colsum(const bench *x, const job *j)
{
    const int ld = (j->n + 15) / 16 * 16;
    x->ops->colsum(x->dev, &(lam_colsum){j->m, j->n, ld, x->act[0], x->wide[3]});
}

static void run_dropout(const bench *x, const job *j)
{
    x->ops->dropout(x->dev, &(lam_dropout){.blocks = B,
                                           .rows = j->m / B,
                                           .width = j->n,
                                           .ld = j->n,
                                           .drop = dropout,
                                           .in = {x->act[0], (size_t)T * D},
                                           .out = {x->act[1], (size_t)N * D}});
}

static void run_copy(const bench *x, const job *j)
{
    const size_t count = (size_t)j->m * (size_t)j->n;
    x->ops->copy(x->dev, &(lam_copy){.blocks = 1,
                                     .count = count,
                                     .type = LAM_ACT,
                                     .in = {x->act[0], 0},
                                     .out = {x->act[1], 0}});
}

static void run_zero(const bench *x, const job *j)
{
    (void)j;
    x->ops->zero(x->dev, x->flat[0], (size_t)PARAMS * lam_class_size(x->dev, LAM_WIDE));
}

static void run_interp(const bench *x, const job *j)
{
    const size_t c = (size_t)M * H * K, s = (size_t)M * H;
    const lam_interp a = {.B = B,
                          .rows = M,
                          .H = H,
                          .K = K,
                          .eps = 1e-6,
                          .c_old = {x->act[0], c},
                          .c_new = {x->act[1], c},
                          .c_out = {x->act[2], c},
                          .lse_old = {x->wide[0], s},
                          .lse_new = {x->wide[1], s},
                          .lse_out = {x->wide[2], s},
                          .alpha = {x->wide[3], s},
                          .dc_out = {x->act[3], c},
                          .dc_new = {x->act[4], c},
                          .dlse_new = {x->wide[3], s}};
    (j->extra ? x->ops->interp_bwd : x->ops->interp_fwd)(x->dev, &a);
}

static void run_embed(const bench *x, const job *j)
{
    const lam_embed a = {.rows = B * N,
                         .count = V,
                         .width = D,
                         .ld = D,
                         .scale = 22.6,
                         .ids = x->ids,
                         .table = x->act[0],
                         .out = x->act[1],
                         .dout = x->act[2],
                         .dtable = x->flat[0]};
    (j->extra ? x->ops->embed_bwd : x->ops->embed_fwd)(x->dev, &a);
}

static void run_xent(const bench *x, const job *j)
{
    x->ops->xent(x->dev, &(lam_xent){.rows = j->m,
                                     .cols = j->n,
                                     .ld = (size_t)((j->n + 15) / 16 * 16),
                                     .grad_scale = 1e-4,
                                     .logits = x->act[0],
                                     .target = x->ids,
                                     .nll = x->wide[3]});
}

static void run_pick(const bench *x, const job *j)
{
    const lam_pick a = {j->m, j->n, (size_t)j->n, (size_t)j->n, x->list, x->act[0], x->act[1]};
    (j->extra ? x->ops->scatter : x->ops->gather)(x->dev, &a);
}

/* Attention of `m` queries, the last of `n` keys (extra & LOOK: the keys after the first), in rows of
 * q, k and value side by side; heads `k` wide.  Backward uses what forward, the job before, left. */
enum { BACKWARD = 1, LOOK = 2 };

static void run_attn(const bench *x, const job *j)
{
    const int heads = j->k == K ? H : 10, streams = j->k == K ? B : 64, ahead = j->extra & LOOK;
    const size_t D_of = (size_t)(heads * j->k), ld = 3 * D_of, step = (size_t)j->n * ld;
    const size_t first = (size_t)(ahead ? 0 : j->n - j->m) * ld, o = (size_t)j->m * D_of;
    const lam_dev *dev = x->dev;
    const lam_attn a = {.B = streams,
                        .H = heads,
                        .K = j->k,
                        .queries = j->m,
                        .keys = j->n,
                        .mode = ahead ? LAM_AHEAD : LAM_CAUSAL,
                        .shift = ahead ? 0 : j->n - j->m,
                        .scale = 1.0 / sqrt(j->k),
                        .q = {lam_at(dev, LAM_ACT, x->act[0], first), step},
                        .k = {lam_at(dev, LAM_ACT, x->act[0], D_of), step},
                        .value = {lam_at(dev, LAM_ACT, x->act[0], 2 * D_of), step},
                        .ldq = ld,
                        .ldk = ld,
                        .u = x->wide[0],
                        .v = lam_at(dev, LAM_WIDE, x->wide[0], D_of),
                        .r = x->act[4],
                        .r_rows = j->n,
                        .r_zero = 0,
                        .r_sign = ahead ? 1 : -1,
                        .ldr = D_of,
                        .o = {x->act[1], o},
                        .ldo = D_of,
                        .lse = {x->wide[1], (size_t)(j->m * heads)},
                        .d_o = {x->act[2], o},
                        .dq = {lam_at(dev, LAM_ACT, x->act[3], first), step},
                        .dk = {lam_at(dev, LAM_ACT, x->act[3], D_of), step},
                        .dvalue = {lam_at(dev, LAM_ACT, x->act[3], 2 * D_of), step},
                        .dr = x->act[5],
                        .du = x->wide[3],
                        .dv = lam_at(dev, LAM_WIDE, x->wide[3], D_of)};
    (j->extra & BACKWARD ? x->ops->attn_bwd : x->ops->attn_fwd)(x->dev, &a);
}

/* A LayerNorm of `m` rows and their product. */
static void run_norm_gemm(const bench *x, const job *j)
{
    lam_norm_gemm a = {norm_of(x), {0}};
    a.norm.blocks = 1;
    a.norm.rows = j->m;
    a.norm.drop = (lam_drop){0};
    a.gemm = (lam_gemm){.m = j->m,
                        .n = j->n,
                        .k = D,
                        .batch = 1,
                        .tb = LAM_FLIP,
                        .a = a.norm.y.p,
                        .b = x->act[4],
                        .c = x->act[5],
                        .c_class = LAM_ACT,
                        .lda = D,
                        .ldb = D,
                        .ldc = (size_t)j->n,
                        .bias = x->wide[0],
                        .relu = 1};
    x->ops->norm_gemm(x->dev, &a);
}

/* A new row of each of `m` streams, in the middle of a segment. */
static void run_next(const bench *x, const job *j)
{
    const lam_attn a = {.B = j->m,
                        .H = H,
                        .K = K,
                        .queries = 1,
                        .keys = T,
                        .mode = LAM_CAUSAL,
                        .scale = 1.0 / sqrt(K),
                        .q = {x->act[3], 3 * D},
                        .k = {x->act[0], (size_t)T * D},
                        .value = {x->act[1], (size_t)T * D},
                        .ldq = 3 * D,
                        .ldk = D,
                        .u = x->wide[0],
                        .v = lam_at(x->dev, LAM_WIDE, x->wide[0], D),
                        .r = x->act[4],
                        .r_rows = T,
                        .r_sign = -1,
                        .ldr = D,
                        .o = {x->act[2], D},
                        .ldo = D,
                        .lse = {x->wide[1], H}};
    const lam_view k = {lam_at(x->dev, LAM_ACT, x->act[3], D), 3 * D},
                   value = {lam_at(x->dev, LAM_ACT, x->act[3], 2 * D), 3 * D};
    x->ops->attn_next(x->dev, &(lam_attn_next){a, k, value, x->ages});
}

/* As many parts as a model of twelve layers has. */
static int parts_of(lam_part *parts)
{
    enum { PARTS = 170 };
    for (int i = 0; i < PARTS; i++)
        parts[i] = (lam_part){.offset = (size_t)i * (PARAMS / PARTS / 16 * 16),
                              .count = PARAMS / PARTS / 16 * 16,
                              .lr = 1e-9,
                              .fix1 = 0.1,
                              .fix2 = 0.001};
    return PARTS;
}

static void run_gnorm(const bench *x, const job *j)
{
    (void)j;
    lam_part parts[256];
    const int n = parts_of(parts);
    x->ops->gnorm(x->dev, &(lam_gnorm){parts, n, x->flat[0], x->wide[3]});
}

static void run_update(const bench *x, const job *j)
{
    (void)j;
    lam_part parts[256];
    const int n = parts_of(parts);
    x->ops->update(x->dev, &(lam_update){.kind = LAM_ADAM,
                                         .parts = parts,
                                         .n_parts = n,
                                         .beta1 = 0.9,
                                         .beta2 = 0.999,
                                         .eps = 1e-8,
                                         .clip = 0.25,
                                         .norm = x->wide[0],
                                         .grad = x->flat[0],
                                         .master = x->flat[1],
                                         .m = x->flat[2],
                                         .v = x->flat[3],
                                         .weight = x->weight});
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Bytes are for bf16; they are what the operation must read and write. */
#define ACTS(n)          (2.0 * (n))
#define GEMM(mm, nn, kk) .flops = 2.0 * (mm) * (nn) * (kk), .m = (mm), .n = (nn), .k = (kk)

/* Keys, values and positions up to a new row. */
#define NEXT(streams) ACTS((2.0 * (streams) + 1.0) * (AGE + 1.0) * D)

/* Multiply-adds of visible pairs: three products forward, eight backward. */
#define PAST(b, h, kk, q, all)                                                                     \
    2.0 * (b) * (h) * (kk) * ((double)(q) * ((all) - (q)) + 0.5 * (q) * ((q) + 1.0))
#define AHEAD(b, h, kk, q) 2.0 * (b) * (h) * (kk)*0.5 * (q) * ((q)-1.0)
#define ATTN(flop, q, keys_, kk, what)                                                             \
    run_attn, .flops = (flop), .m = (q), .n = (keys_), .k = (kk), .extra = (what)

static const job jobs[] = {
    {"attn past", ATTN(3 * PAST(B, H, K, N, T), N, T, K, 0)},
    {"attn past bwd", ATTN(8 * PAST(B, H, K, N, T), N, T, K, BACKWARD)},
    {"attn ahead", ATTN(3 * AHEAD(B, H, K, M), M, M, K, LOOK)},
    {"attn ahead bwd", ATTN(8 * AHEAD(B, H, K, M), M, M, K, BACKWARD | LOOK)},
    {"attn wt103", ATTN(3 * PAST(64, 10, 48, 150, 300), 150, 300, 48, 0)},
    {"attn wt103 bwd", ATTN(8 * PAST(64, 10, 48, 150, 300), 150, 300, 48, BACKWARD)},
    {"attn wt103 ahead", ATTN(3 * AHEAD(64, 10, 48, 150), 150, 150, 48, LOOK)},
    {"attn wt103 ahead bwd", ATTN(8 * AHEAD(64, 10, 48, 150), 150, 150, 48, BACKWARD | LOOK)},
    {"gemm qkv y", run_gemm, GEMM(ROWS, 3 * D, D), .tb = LAM_FLIP},
    {"gemm qkv dx", run_gemm, GEMM(ROWS, D, 3 * D)},
    {"gemm qkv dW", run_gemm, GEMM(3 * D, D, ROWS), .ta = LAM_FLIP},
    {"gemm o_net y", run_gemm, GEMM(ROWS, D, D), .tb = LAM_FLIP},
    {"gemm o_net dW", run_gemm, GEMM(D, D, ROWS), .ta = LAM_FLIP},
    {"gemm o_net dW xl", run_gemm_sum, GEMM(D, D, B *N)},
    {"gemm w1 plain", run_gemm, GEMM(ROWS, F, D), .tb = LAM_FLIP},
    {"gemm w1 relu", run_gemm, GEMM(ROWS, F, D), .tb = LAM_FLIP, .extra = RELU},
    {"gemm w1 relu drop", run_gemm, GEMM(ROWS, F, D), .tb = LAM_FLIP, .extra = RELU_DROP},
    {"gemm w1 dx", run_gemm, GEMM(ROWS, D, F)},
    {"gemm w1 dW", run_gemm, GEMM(F, D, ROWS), .ta = LAM_FLIP},
    {"gemm w2 y", run_gemm, GEMM(ROWS, D, F), .tb = LAM_FLIP},
    {"gemm w2 dx", run_gemm, GEMM(ROWS, F, D)},
    {"gemm w2 dx relu", run_gemm, GEMM(ROWS, F, D), .extra = BACK},
    {"gemm w2 dW", run_gemm, GEMM(D, F, ROWS), .ta = LAM_FLIP},
    {"gemm logits 204", run_gemm, GEMM(B *N, V, D), .tb = LAM_FLIP, .extra = BIAS},
    {"gemm wt103 qkv", run_gemm, GEMM(19200, 1440, 416), .tb = LAM_FLIP},
    {"gemm wt103 w1", run_gemm, GEMM(19200, 2112, 416), .tb = LAM_FLIP},
    {"gemm wt103 w1 relu drop", run_gemm, GEMM(19200, 2112, 416), .tb = LAM_FLIP,
     .extra = RELU_DROP},
    {"gemm wt103 w2 dx relu", run_gemm, GEMM(19200, 2112, 416), .extra = BACK},
    {"gemm wt103 w1 dW", run_gemm, GEMM(2112, 416, 19200), .ta = LAM_FLIP},
    {"gemm wt103 softmax", run_gemm, GEMM(256, 267735, 416), .tb = LAM_FLIP, .extra = BIAS},
    {"next 1", run_next, .bytes = NEXT(1), .m = 1},
    {"next 64", run_next, .bytes = NEXT(STREAMS), .m = STREAMS},
    {"gemv qkv", run_gemm, .bytes = ACTS(3.0 * D * D), .m = 1, .n = 3 * D, .k = D, .tb = LAM_FLIP},
    {"gemv w1", run_gemm, .bytes = ACTS(1.0 * F * D), .m = 1, .n = F, .k = D, .tb = LAM_FLIP},
    {"gemv wt103 softmax", run_gemm, .bytes = ACTS(267735.0 * 416), .m = 1, .n = 267735, .k = 416,
     .tb = LAM_FLIP},
    {"gemv w2", run_gemm, .bytes = ACTS(1.0 * F * D), .m = 1, .n = D, .k = F, .tb = LAM_FLIP},
    {"gemv norm qkv", run_norm_gemm, .bytes = ACTS(3.0 * D * D), .m = 1, .n = 3 * D},
    {"gemv norm w1", run_norm_gemm, .bytes = ACTS(1.0 * F * D), .m = 1, .n = F},
    {"few norm qkv", run_norm_gemm, .bytes = ACTS(3.0 * D * D), .m = STREAMS, .n = 3 * D},
    {"few o_net", run_gemm, .bytes = ACTS(1.0 * D * D), .m = STREAMS, .n = D, .k = D,
     .tb = LAM_FLIP},
    {"few w1", run_gemm, .bytes = ACTS(1.0 * F * D), .m = STREAMS, .n = F, .k = D, .tb = LAM_FLIP},
    {"few w2", run_gemm, .bytes = ACTS(1.0 * F * D), .m = STREAMS, .n = D, .k = F, .tb = LAM_FLIP},
    {"norm_fwd", run_norm, .bytes = ACTS(4.0 * ROWS * D)},
    {"norm_bwd", run_norm, .bytes = ACTS(4.0 * ROWS * D), .extra = 1},
    {"colsum", run_colsum, .bytes = ACTS(1.0 * ROWS * D), .m = ROWS, .n = D},
    {"colsum 267735", run_colsum, .bytes = ACTS(256.0 * 267735), .m = 256, .n = 267735},
    {"dropout", run_dropout, .bytes = ACTS(2.0 * B * N * D), .m = B * N, .n = D},
    {"copy 42 MB", run_copy, .bytes = ACTS(2.0 * ROWS * D), .m = ROWS, .n = D},
    {"copy 168 MB", run_copy, .bytes = ACTS(2.0 * ROWS * F), .m = ROWS, .n = F},
    {"interp_fwd", run_interp, .bytes = ACTS(3.0 * B * M * H * K)},
    {"interp_bwd", run_interp, .bytes = ACTS(4.0 * B * M * H * K), .extra = 1},
    {"embed_fwd", run_embed, .bytes = ACTS(1.0 * B * N * D)},
    {"embed_bwd", run_embed, .bytes = ACTS(1.0 * B * N * D), .extra = 1},
    {"xent 204", run_xent, .bytes = ACTS(2.0 * B * N * V), .m = B * N, .n = V},
    {"xent 267735", run_xent, .bytes = ACTS(2.0 * 256 * 267735), .m = 256, .n = 267735},
    {"gather", run_pick, .bytes = ACTS(2.0 * B * N * D), .m = B * N, .n = D},
    {"scatter", run_pick, .bytes = ACTS(3.0 * B * N * D), .m = B * N, .n = D, .extra = 1},
    {"zero grad", run_zero, .bytes = 4.0 * PARAMS},
    {"gnorm", run_gnorm, .bytes = 4.0 * PARAMS},
    {"update adam", run_update, .bytes = 30.0 * PARAMS},
};

/* ---- measuring ------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const bench *x, const job *j)
{
    double times[MAX_ROUNDS];
    for (int r = -1; r < x->rounds; r++) { /* round -1 warms up */
        const double start = lam_clock();
        for (int i = 0; i < BATCH; i++)
            j->run(x, j);
        check(x->ops->sync(x->dev));
        if (r >= 0)
            times[r] = (lam_clock() - start) / BATCH;
    }
    qsort(times, (size_t)x->rounds, sizeof *times, ascending);
    return times[x->rounds / 2];
}

static void *random_acts(const bench *x, lam_class type, size_t n, uint64_t seed)
{
    enum { TILE = 1 << 16 };
    static double value[TILE];
    static char raw[TILE * sizeof(double)];
    void *p = NULL;
    const size_t size = lam_class_size(x->dev, type);
    lam_rng rng = {.key = seed};
    for (int i = 0; i < TILE; i++)
        value[i] = lam_rng_normal(&rng);
    lam_convert(raw, type == LAM_ACT ? x->dev->act : x->dev->wide, value, LAM_F64, TILE);
    check(x->ops->alloc(x->dev, &p, n * size));
    for (size_t at = 0; at < n; at += TILE) {
        const size_t count = n - at < TILE ? n - at : TILE;
        x->ops->upload(x->dev, lam_at(x->dev, type, p, at), raw, count * size);
    }
    check(x->ops->sync(x->dev));
    return p;
}

static void prepare(bench *x)
{
    static int32_t ids[ROWS], list[ROWS], ages[STREAMS];
    const lam_work work = {.B = B,
                           .H = H,
                           .K = K,
                           .queries = T,
                           .keys = T,
                           .r_rows = T,
                           .rows = ROWS,
                           .width = 1 << 18};
    check(x->ops->reserve(x->dev, &work));
    for (int i = 0; i < SLOTS; i++)
        x->act[i] = random_acts(x, LAM_ACT, big, (uint64_t)i);
    for (int i = 0; i < 4; i++) {
        x->wide[i] = random_acts(x, LAM_WIDE, VECTOR, 50 + (uint64_t)i);
        x->flat[i] = random_acts(x, LAM_WIDE, PARAMS, 60 + (uint64_t)i);
    }
    x->weight = random_acts(x, LAM_ACT, PARAMS, 70);
    lam_rng rng = {.key = 80};
    for (int i = 0; i < ROWS; i++) { /* skewed like text: the product of two uniform numbers */
        ids[i] = (int32_t)(lam_rng_below(&rng, V) * lam_rng_below(&rng, V) / V);
        list[i] = (int32_t)((int64_t)i * 7919 % ROWS);
    }
    for (int i = 0; i < STREAMS; i++)
        ages[i] = AGE;
    check(x->ops->alloc(x->dev, &x->ages, sizeof ages));
    x->ops->upload(x->dev, x->ages, ages, sizeof ages);
    check(x->ops->alloc(x->dev, &x->ids, sizeof ids));
    check(x->ops->alloc(x->dev, &x->list, sizeof list));
    x->ops->upload(x->dev, x->ids, ids, sizeof ids);
    x->ops->upload(x->dev, x->list, list, sizeof list);
    check(x->ops->sync(x->dev));
}

int main(int argc, char **argv)
{
    bench x = {.rounds = argc > 2 ? atoi(argv[2]) : 15};
    x.rounds = x.rounds < 1 ? 1 : x.rounds > MAX_ROUNDS ? MAX_ROUNDS : x.rounds;
    check(lam_ops_find(&x.ops, argc > 1 ? argv[1] : "cuda"));
    check(x.ops->open(&x.dev, &(lam_dev_options){0}));
    prepare(&x);

    const job copy = {.run = run_copy, .m = ROWS, .n = F};
    const job product = {.run = run_gemm, .m = 8192, .n = 8192, .k = 8192, .tb = LAM_FLIP};
    x.copy_rate = ACTS(2.0 * ROWS * F) / median_of(&x, &copy);
    x.rate = 2.0 * pow(8192, 3) / median_of(&x, &product);
    printf("%s: copy %.2f TB/s, product of 8192 cubed %.0f TFLOP/s\n", x.ops->summary,
           1e-12 * x.copy_rate, 1e-12 * x.rate);
    printf("%-20s %9s %9s %7s  %s\n", "operation", "us", "floor us", "ratio", "rate");
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        const job *j = &jobs[i];
        if (argc > 3 && strncmp(j->name, argv[3], strlen(argv[3])) != 0)
            continue;
        const double t = median_of(&x, j), floor = j->bytes / x.copy_rate + j->flops / x.rate;
        printf("%-20s %9.1f %9.1f %7.2f  %.2f %s\n", j->name, 1e6 * t, 1e6 * floor, t / floor,
               1e-12 * (j->bytes + j->flops) / t, j->flops > 0.0 ? "TFLOP/s" : "TB/s");
        fflush(stdout);
    }
    x.ops->close(x.dev);
    return 0;
}
