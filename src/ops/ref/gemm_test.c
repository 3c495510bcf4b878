/* gemm_test.c -- the product by hand, the epilogue, and the two gradients of a linear map. */
#include "ops/ref/ref.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 11 };

START_TEST(two_by_three_times_three_by_two_is_what_it_is_on_paper)
{
    const double a[] = {1, 2, 3, 4, 5, 6}, at[] = {1, 4, 2, 5, 3, 6};
    const double b[] = {7, 8, 9, 10, 11, 12}, bt[] = {7, 9, 11, 8, 10, 12};
    const double want[] = {58, 64, 139, 154};
    for (int flips = 0; flips < 4; flips++) {
        double c[4] = {NAN, NAN, NAN, NAN};
        lam_gemm g = {.m = 2, .n = 2, .k = 3, .batch = 1, .c = c, .ldc = 2};
        g.ta = flips & 1 ? LAM_FLIP : LAM_KEEP;
        g.tb = flips & 2 ? LAM_FLIP : LAM_KEEP;
        g.a = flips & 1 ? at : a;
        g.b = flips & 2 ? bt : b;
        g.lda = flips & 1 ? 2 : 3;
        g.ldb = flips & 2 ? 3 : 2;
        lam_ref_gemm(test_ref, &g);
        for (int i = 0; i < 4; i++)
            ck_assert_double_eq(c[i], want[i]);
        g.beta = 1.0;
        lam_ref_gemm(test_ref, &g);
        for (int i = 0; i < 4; i++)
            ck_assert_double_eq(c[i], 2.0 * want[i]);
    }
}
END_TEST

START_TEST(a_step_of_zero_in_c_sums_the_products_and_finishes_once)
{
    const double a[] = {1, 2, 3}, b[] = {10, 100, 1000}, bias = -4000;
    double c = 7;
    lam_gemm g = {.m = 1,
                  .n = 1,
                  .k = 1,
                  .batch = 3,
                  .a = a,
                  .b = b,
                  .c = &c,
                  .lda = 1,
                  .ldb = 1,
                  .ldc = 1,
                  .step_a = 1,
                  .step_b = 1,
                  .beta = 1.0};
    lam_ref_gemm(test_ref, &g);
    ck_assert_double_eq(c, 7 + 10 + 200 + 3000);
    g.beta = 0.0;
    g.bias = &bias;
    g.relu = 1;
    lam_ref_gemm(test_ref, &g);
    ck_assert_double_eq(c, 0.0);
}
END_TEST

START_TEST(dropout_counts_rows_through_the_batch_and_ignores_padding)
{
    enum { M = 3, N = 11, BATCH = 2, LD = 13 };
    const double one = 1.0, zero[N] = {0};
    double bias[N], c[BATCH * M * LD];
    for (int i = 0; i < N; i++)
        bias[i] = 1.0;
    for (int i = 0; i < BATCH * M * LD; i++)
        c[i] = -5.0;
    const lam_gemm g = {.m = M,
                        .n = N,
                        .k = 0,
                        .batch = BATCH,
                        .a = &one,
                        .b = zero,
                        .c = c,
                        .lda = 1,
                        .ldb = N,
                        .ldc = LD,
                        .step_c = M * LD,
                        .bias = bias,
                        .drop = {.p = 0.5, .seed = 3, .step = 4, .site = 5}};
    lam_ref_gemm(test_ref, &g);
    for (size_t row = 0; row < BATCH * M; row++)
        for (size_t col = 0; col < LD; col++) {
            const int keep = lam_drop_keep(3, 4, 5, row * 16 + col, lam_drop_threshold(0.5));
            const double want = col >= N ? -5.0 : keep ? lam_drop_scale(0.5) : 0.0;
            ck_assert_double_eq(c[row * LD + col], want);
        }
}
END_TEST

/* h = drop(relu(x W^T + bias)), and everything its gradient needs. */
enum { ROWS = 5, IN = 4, OUT = 6 };
typedef struct layer {
    double x[ROWS * IN], w[OUT * IN], bias[OUT], h[ROWS * OUT], dh[ROWS * OUT];
    lam_gemm fwd;
} layer;

static double layer_loss(const void *user)
{
    const layer *l = user;
    double h[ROWS * OUT];
    lam_gemm g = l->fwd;
    g.c = h;
    lam_ref_gemm(test_ref, &g);
    return test_dot(l->dh, h, ROWS * OUT);
}

/* Random numbers, and h. */
static void start_layer(layer *l, lam_rng *rng, double p)
{
    test_fill(rng, l->x, ROWS * IN);
    test_fill(rng, l->w, OUT * IN);
    test_fill(rng, l->bias, OUT);
    test_fill(rng, l->dh, ROWS * OUT);
    l->fwd = (lam_gemm){.m = ROWS,
                        .n = OUT,
                        .k = IN,
                        .batch = 1,
                        .tb = LAM_FLIP,
                        .a = l->x,
                        .b = l->w,
                        .c = l->h,
                        .lda = IN,
                        .ldb = IN,
                        .ldc = OUT,
                        .bias = l->bias,
                        .relu = 1,
                        .drop = {.p = p, .seed = SEED, .step = 1, .site = 2}};
    lam_ref_gemm(test_ref, &l->fwd);
}

START_TEST(the_gradients_of_a_layer_are_its_gradients)
{
    lam_rng rng = {.key = SEED, .stream = (uint64_t)_i};
    layer l;
    start_layer(&l, &rng, _i % 2 ? 0.3 : 0.0);

    double dz[ROWS * OUT], dx[ROWS * IN], dw[OUT * IN] = {0}, dbias[OUT] = {0};
    memcpy(dz, l.dh, sizeof dz);
    lam_ref_relu_bwd(test_ref, &(lam_relu_bwd){.rows = ROWS,
                                               .width = OUT,
                                               .h = l.h,
                                               .scale = _i % 2 ? lam_drop_scale(0.3) : 1.0,
                                               .dh = dz,
                                               .dbias = dbias});
    lam_ref_gemm(test_ref, &(lam_gemm){.m = ROWS,
                                       .n = IN,
                                       .k = OUT,
                                       .batch = 1,
                                       .a = dz,
                                       .b = l.w,
                                       .c = dx,
                                       .lda = OUT,
                                       .ldb = IN,
                                       .ldc = IN});
    lam_ref_gemm(test_ref, &(lam_gemm){.m = OUT,
                                       .n = IN,
                                       .k = ROWS,
                                       .batch = 1,
                                       .ta = LAM_FLIP,
                                       .a = dz,
                                       .b = l.x,
                                       .c = dw,
                                       .c_class = LAM_WIDE,
                                       .lda = OUT,
                                       .ldb = IN,
                                       .ldc = IN,
                                       .beta = 1.0});
    test_gradient("x", l.x, dx, ROWS * IN, layer_loss, &l);
    test_gradient("w", l.w, dw, OUT * IN, layer_loss, &l);
    test_gradient("bias", l.bias, dbias, OUT, layer_loss, &l);
}
END_TEST

/* y = h V^T behind the layer: the loss is <dy, y>, and dz comes from dy in one product. */
enum { WIDE = 3 };
typedef struct two_layers {
    layer inner;
    double v[WIDE * OUT], dy[ROWS * WIDE];
} two_layers;

static double two_loss(const void *user)
{
    const two_layers *l = user;
    double h[ROWS * OUT], y[ROWS * WIDE];
    lam_gemm g = l->inner.fwd;
    g.c = h;
    lam_ref_gemm(test_ref, &g);
    lam_ref_gemm(test_ref, &(lam_gemm){.m = ROWS,
                                       .n = WIDE,
                                       .k = OUT,
                                       .batch = 1,
                                       .tb = LAM_FLIP,
                                       .a = h,
                                       .b = l->v,
                                       .c = y,
                                       .lda = OUT,
                                       .ldb = OUT,
                                       .ldc = WIDE});
    return test_dot(l->dy, y, ROWS * WIDE);
}

START_TEST(a_gradient_goes_back_through_the_epilogue_in_the_product_that_makes_it)
{
    lam_rng rng = {.key = SEED, .stream = (uint64_t)(100 + _i)};
    two_layers l;
    start_layer(&l.inner, &rng, _i % 2 ? 0.3 : 0.0);
    test_fill(&rng, l.v, WIDE * OUT);
    test_fill(&rng, l.dy, ROWS * WIDE);
    double dz[ROWS * OUT], dx[ROWS * IN], dbias[OUT] = {0};
    lam_ref_gemm(test_ref, &(lam_gemm){.m = ROWS,
                                       .n = OUT,
                                       .k = WIDE,
                                       .batch = 1,
                                       .a = l.dy,
                                       .b = l.v,
                                       .c = dz,
                                       .lda = WIDE,
                                       .ldb = OUT,
                                       .ldc = OUT,
                                       .h = l.inner.h,
                                       .h_scale = _i % 2 ? lam_drop_scale(0.3) : 1.0,
                                       .dbias = dbias});
    lam_ref_gemm(test_ref, &(lam_gemm){.m = ROWS,
                                       .n = IN,
                                       .k = OUT,
                                       .batch = 1,
                                       .a = dz,
                                       .b = l.inner.w,
                                       .c = dx,
                                       .lda = OUT,
                                       .ldb = IN,
                                       .ldc = IN});
    test_gradient("x", l.inner.x, dx, ROWS * IN, two_loss, &l);
    test_gradient("bias", l.inner.bias, dbias, OUT, two_loss, &l);
}
END_TEST

int main(void)
{
    printf("seed %d\n", SEED);
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_test(tests, two_by_three_times_three_by_two_is_what_it_is_on_paper);
    tcase_add_test(tests, a_step_of_zero_in_c_sums_the_products_and_finishes_once);
    tcase_add_test(tests, dropout_counts_rows_through_the_batch_and_ignores_padding);
    tcase_add_loop_test(tests, the_gradients_of_a_layer_are_its_gradients, 0, 6);
    tcase_add_loop_test(
        tests, a_gradient_goes_back_through_the_epilogue_in_the_product_that_makes_it, 0, 4);
    return test_run("ops/ref/gemm", tests);
}
