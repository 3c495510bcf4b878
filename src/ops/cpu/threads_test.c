/* threads_test.c -- do the bits depend on the number of threads?  On one, two, three and seven, every
 * operation of ops/cpu must leave the same bytes behind.  Matrix products are the library's own
 * affair and are only required to agree with themselves; attention has a test of its own. */
#include "ops/cpu/gemm_int.h"
#include "support/suite.h"

#include "core/rng.h"

#include <stdlib.h>
#include <string.h>

extern const lam_ops lam_ops_cpu;

enum { ROWS = 333, WIDTH = 203, LD = 208, POOL = 24, FLOATS = ROWS * LD * 2 };

/* Everything an operation may touch: the same bytes before every run. */
typedef struct world {
    lam_dev *dev;
    float *pool[POOL];
    int32_t ids[ROWS], order[ROWS], targets[ROWS];
} world;

typedef void operation(world *w);

static void fill(world *w)
{
    lam_rng rng = {.key = 77};
    for (int i = 0; i < POOL; i++)
        for (int j = 0; j < FLOATS; j++)
            w->pool[i][j] = (float)(4.0 * lam_rng_uniform(&rng) - 2.0);
    for (int i = 0; i < ROWS; i++) {
        w->ids[i] = (int32_t)lam_rng_below(&rng, 40); /* every id occurs often */
        w->targets[i] = (int32_t)lam_rng_below(&rng, WIDTH);
        w->order[i] = (i * 7) % ROWS; /* a permutation: 7 does not divide 333 */
    }
}

static world make(int threads)
{
    world w = {0};
    const lam_work largest = {
        .B = 1, .H = 1, .K = 1, .queries = 1, .keys = 1, .r_rows = 1, .rows = ROWS, .width = LD};
    ck_assert_int_eq(lam_ops_cpu.open(&w.dev, &(lam_dev_options){.threads = threads}), LAM_OK);
    ck_assert_int_eq(lam_ops_cpu.reserve(w.dev, &largest), LAM_OK);
    for (int i = 0; i < POOL; i++) {
        void *p;
        ck_assert_int_eq(lam_ops_cpu.alloc(w.dev, &p, FLOATS * sizeof(float)), LAM_OK);
        w.pool[i] = p;
    }
    fill(&w);
    return w;
}

static void drop_world(world *w)
{
    for (int i = 0; i < POOL; i++)
        lam_ops_cpu.release(w->dev, w->pool[i]);
    lam_ops_cpu.close(w->dev);
}

static void compare_threads(operation *run)
{
    world one = make(1), before = make(1);
    run(&one);
    int changed = 0;
    for (int i = 0; i < POOL; i++)
        changed |= memcmp(one.pool[i], before.pool[i], FLOATS * sizeof(float)) != 0;
    ck_assert_msg(changed, "the operation did nothing");
    for (int threads = 2; threads <= 7; threads += threads == 3 ? 4 : 1) {
        world many = make(threads);
        run(&many);
        for (int i = 0; i < POOL; i++)
            ck_assert_msg(memcmp(one.pool[i], many.pool[i], FLOATS * sizeof(float)) == 0,
                          "buffer %d differs between 1 and %d threads", i, threads);
        drop_world(&many);
    }
    drop_world(&before);
    drop_world(&one);
}

static lam_view view(float *p)
{
    return (lam_view){p, (size_t)111 * LD};
}

static lam_norm norm_case(world *w)
{
    float **p = w->pool;
    return (lam_norm){.blocks = 3,
                      .rows = 111,
                      .width = WIDTH,
                      .ld = LD,
                      .eps = 1e-5,
                      .drop = {.p = 0.2, .seed = 3, .step = 1, .site = 2},
                      .x = view(p[0]),
                      .y = view(p[1]),
                      .add = p[2],
                      .bias = p[3],
                      .sum = p[4],
                      .mean = p[5],
                      .rstd = p[6],
                      .gain = p[7],
                      .shift = p[8],
                      .dy = view(p[9]),
                      .dx = view(p[10]),
                      .dsum = view(p[11]),
                      .dadd = p[12],
                      .dgain = p[13],
                      .dshift = p[14],
                      .dbias = p[15]};
}

static void run_norm(world *w)
{
    const lam_norm a = norm_case(w);
    lam_cpu_norm_fwd(w->dev, &a);
    lam_cpu_norm_bwd(w->dev, &a);
}

static void run_residual(world *w)
{
    lam_norm a = norm_case(w);
    a.gain = a.shift = NULL;
    lam_cpu_norm_fwd(w->dev, &a);
    lam_cpu_norm_bwd(w->dev, &a);
}

static void run_rowwise(world *w)
{
    float **p = w->pool;
    lam_cpu_dropout(w->dev, &(lam_dropout){.blocks = 3,
                                           .rows = 111,
                                           .width = WIDTH,
                                           .ld = LD,
                                           .drop = {.p = 0.3, .seed = 9},
                                           .in = view(p[3]),
                                           .out = view(p[4])});
    lam_cpu_copy(w->dev, &(lam_copy){.blocks = 3,
                                     .count = 111 * LD - 5,
                                     .type = LAM_ACT,
                                     .in = view(p[5]),
                                     .out = view(p[6])});
    lam_cpu_colsum(w->dev,
                   &(lam_colsum){.rows = ROWS, .width = WIDTH, .ld = LD, .in = p[7], .out = p[8]});
}

static void run_interp(world *w)
{
    enum { H = 13, K = 16 }; /* H * K is LD */
    float **p = w->pool;
    lam_interp a = {.B = 3, .rows = 111, .H = H, .K = K, .eps = 1e-6};
    lam_view *c[] = {&a.c_old, &a.c_new, &a.c_out, &a.dc_out, &a.dc_new};
    lam_view *s[] = {&a.lse_old, &a.lse_new, &a.lse_out, &a.alpha, &a.dlse_new};
    for (int i = 0; i < 5; i++) {
        *c[i] = (lam_view){p[i], 111 * LD};
        *s[i] = (lam_view){p[5 + i], 111 * H};
    }
    lam_cpu_interp_fwd(w->dev, &a);
    lam_cpu_interp_bwd(w->dev, &a);
}

static void run_vocab(world *w)
{
    float **p = w->pool;
    const lam_embed e = {.rows = ROWS,
                         .first = 2,
                         .count = 37,
                         .width = WIDTH,
                         .ld = LD,
                         .scale = 1.5,
                         .ids = w->ids,
                         .table = p[0],
                         .out = p[1],
                         .dout = p[2],
                         .dtable = p[3]};
    lam_cpu_embed_fwd(w->dev, &e);
    lam_cpu_embed_bwd(w->dev, &e);
    lam_cpu_xent(w->dev, &(lam_xent){.rows = ROWS,
                                     .cols = WIDTH,
                                     .add = 1,
                                     .ld = LD,
                                     .grad_scale = 0.5,
                                     .logits = p[4],
                                     .target = w->targets,
                                     .index = w->order,
                                     .nll = p[5]});
    lam_pick pick = {.rows = ROWS, .width = WIDTH, .ld_in = LD, .ld_out = LD, .index = w->order};
    pick.in = p[6], pick.out = p[7];
    lam_cpu_gather(w->dev, &pick);
    pick.in = p[8], pick.out = p[9];
    lam_cpu_scatter(w->dev, &pick);
}

static void run_optim(world *w)
{
    float **p = w->pool;
    const lam_part parts[] = {
        {.offset = 0, .count = 1, .lr = 0.1, .decay = 0.1, .fix1 = 0.5, .fix2 = 0.5},
        {.offset = 16, .count = 70001, .lr = 0.2, .decay = 0.1, .fix1 = 0.6, .fix2 = 0.6},
        {.offset = 80000, .count = 50000, .lr = 0.3, .fix1 = 0.7, .fix2 = 0.7}};
    lam_cpu_gnorm(w->dev, &(lam_gnorm){.parts = parts, .n_parts = 3, .grad = p[0], .norm = p[1]});
    for (int kind = LAM_ADAM; kind <= LAM_ADAGRAD; kind++) {
        for (int i = 0; i < FLOATS; i++) /* second moments are not negative */
            p[5 + 4 * kind][i] = p[5 + 4 * kind][i] * p[5 + 4 * kind][i];
        lam_cpu_update(w->dev, &(lam_update){.kind = (lam_update_kind)kind,
                                             .parts = parts,
                                             .n_parts = 3,
                                             .beta1 = 0.9,
                                             .beta2 = 0.999,
                                             .eps = 1e-8,
                                             .clip = 0.25,
                                             .norm = p[1],
                                             .grad = p[0],
                                             .master = p[3 + 4 * kind],
                                             .m = p[4 + 4 * kind],
                                             .v = p[5 + 4 * kind],
                                             .weight = p[6 + 4 * kind]});
    }
}

static void make_integers(world *w)
{
    for (int i = 0; i < FLOATS; i++) {
        w->pool[0][i] = rintf(w->pool[0][i]);
        w->pool[1][i] = rintf(w->pool[1][i]);
    }
}

/* Our own tiles are indifferent to blocks.  The library's products may differ in the last bits from block to block; what is
 * done behind them does not, so their operands are small integers. */
static void run_gemm(world *w)
{
    float **p = w->pool;
    lam_gemm g = {.m = ROWS,
                  .n = WIDTH,
                  .k = 40,
                  .batch = 1,
                  .tb = LAM_FLIP,
                  .a = p[0],
                  .b = p[1],
                  .c = p[2],
                  .lda = LD,
                  .ldb = LD,
                  .ldc = WIDTH,
                  .bias = p[3],
                  .relu = 1,
                  .drop = {.p = 0.3, .seed = 9}};
    if (!lam_gemm_tiles_take(&g))
        make_integers(w);
    lam_cpu_gemm(w->dev, &g);
    g.m = ROWS / 3; /* products that are shared out whole, with one B */
    g.batch = 3;
    g.c = p[4];
    g.step_a = (size_t)g.m * LD;
    g.step_c = (size_t)g.m * WIDTH;
    lam_cpu_gemm(w->dev, &g);
    make_integers(w);
    const lam_gemm back = {.m = ROWS,
                           .n = WIDTH,
                           .k = 40,
                           .batch = 1,
                           .a = p[0],
                           .b = p[1],
                           .c = p[5],
                           .lda = LD,
                           .ldb = LD,
                           .ldc = WIDTH,
                           .h = p[6],
                           .h_scale = 1.25,
                           .dbias = p[7]};
    lam_cpu_gemm(w->dev, &back);
}

static operation *const operations[] = {run_norm,  run_residual, run_rowwise, run_interp,
                                        run_vocab, run_optim,    run_gemm};

START_TEST(bits_do_not_depend_on_the_number_of_threads)
{
    compare_threads(operations[_i]);
}
END_TEST

START_TEST(chunks_cover_the_rows_and_partial_sums_fit_the_scratch)
{
    const size_t widths[] = {0, 1, 203, 1024, 5461, 65536, 267799, 1 << 20, 3 << 20};
    const size_t rows[] = {0, 1, 31, 32, 33, 2048, 2049, 100003};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++)
            for (size_t sums = 1; sums <= LAM_MAX_SUMS; sums++) {
                const lam_work work = {.width = (int)widths[i]};
                const lam_chunks c = lam_chunks_of(rows[j], sums, widths[i]);
                ck_assert_uint_le(c.n * sums * lam_line_of(widths[i]) * sizeof(float),
                                  lam_cpu_rowwise_scratch(&work));
                ck_assert_uint_eq(c.n == 0 ? 0 : lam_chunk_end(c, c.n - 1), rows[j]);
                ck_assert(c.n == 0 || (c.n - 1) * c.size < rows[j]);
            }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, bits_do_not_depend_on_the_number_of_threads, 0,
                        (int)(sizeof operations / sizeof *operations));
    tcase_add_test(tests, chunks_cover_the_rows_and_partial_sums_fit_the_scratch);
    return test_run("ops/cpu/threads", tests);
}
