/* gemm_test.c -- the GEMM library works on one thread, and as many of ours call it as there should, whatever the host
 * has made of OpenMP.
 *
 * oneDNN divides C among omp_get_max_threads() threads, and where the team is smaller the missing parts stay
 * unwritten (CBLAS: may wait forever).  So this program puts itself between ops/cpu and the library and looks at what
 * the library would find.  That the products are right is checked too, exactly: their operands are small integers. */
#include "ops/cpu/cpu.h"
#include "support/suite.h"

#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(LAM_HAVE_ONEDNN)
#include <oneapi/dnnl/dnnl.h>
#else
#include <cblas.h>
#endif

extern const lam_ops lam_ops_cpu;

enum { THREADS = 5 };

static atomic_int calls, told_more, largest; /* of the library; of the teams that called it */
static atomic_int spoil;                     /* 1: it forgets the last row of C */

static void watch_team(void)
{
    const int team = omp_get_num_threads();
    calls++;
    told_more += omp_get_max_threads() != 1;
    if (team > largest)
        largest = team;
}

/* The linker puts these in front of the library (--wrap in cmake/tests.cmake). */
#if defined(LAM_HAVE_ONEDNN)
typedef dnnl_status_t library(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float, const float *,
                              dnnl_dim_t, const float *, dnnl_dim_t, float, float *, dnnl_dim_t);
library __real_dnnl_sgemm, __wrap_dnnl_sgemm;

dnnl_status_t __wrap_dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                float alpha, const float *a, dnnl_dim_t lda, const float *b,
                                dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc)
{
    watch_team();
    return __real_dnnl_sgemm(ta, tb, m - spoil, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
#else
typedef void library(enum CBLAS_ORDER, enum CBLAS_TRANSPOSE, enum CBLAS_TRANSPOSE, blasint, blasint,
                     blasint, float, const float *, blasint, const float *, blasint, float, float *,
                     blasint);
library __real_cblas_sgemm, __wrap_cblas_sgemm;

void __wrap_cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb,
                        blasint m, blasint n, blasint k, float alpha, const float *a, blasint lda,
                        const float *b, blasint ldb, float beta, float *c, blasint ldc)
{
    watch_team();
    __real_cblas_sgemm(order, ta, tb, m - spoil, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
#endif

/* ---- one GEMM and what it must give ---- */

typedef struct shape {
    int m, n, k, batch;
} shape;

/* Divided without and with copies of the operands, in oneDNN's terms; one that is not; a batch shared out. */
static const shape shapes[] = {
    {300, 40, 64, 1}, {600, 600, 64, 1}, {20, 20, 20, 1}, {48, 48, 48, 3 * THREADS}};

static float entry(size_t i)
{
    return (float)(int)(i * 2654435761u % 7) - 3.0f;
}

static size_t wrong_elements(const shape *s, const float *a, const float *b, const float *c)
{
    const size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k;
    size_t wrong = 0;
    for (size_t row = 0; row < m * (size_t)s->batch; row++)
        for (size_t col = 0; col < n; col++) {
            float sum = 0.0f;
            for (size_t t = 0; t < k; t++)
                sum += a[row * k + t] * b[(row / m * n + col) * k + t];
            wrong += !(c[row * n + col] == sum);
        }
    return wrong;
}

/* The elements of C that are wrong, in a GEMM as y = x W^T has it. */
static size_t multiply(lam_dev *dev, const shape *s)
{
    const size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k, batch = (size_t)s->batch;
    float *const a = malloc((m * k + n * k + m * n) * batch * sizeof *a);
    if (!a)
        abort();
    float *const b = a + m * k * batch, *const c = b + n * k * batch;
    for (size_t i = 0; i < (m * k + n * k) * batch; i++)
        a[i] = entry(i);
    for (size_t i = 0; i < m * n * batch; i++)
        c[i] = NAN;
    const lam_gemm g = {.m = s->m,
                        .n = s->n,
                        .k = s->k,
                        .batch = s->batch,
                        .tb = LAM_FLIP,
                        .a = a,
                        .b = b,
                        .c = c,
                        .lda = k,
                        .ldb = k,
                        .ldc = n,
                        .step_a = m * k,
                        .step_b = n * k,
                        .step_c = m * n};
    lam_cpu_gemm(dev, &g);
    const size_t wrong = wrong_elements(s, a, b, c);
    free(a);
    return wrong;
}

/* All shapes on a device of the calling thread's own; the number of things that are wrong. */
static size_t multiply_all(void)
{
    const int threads = omp_get_max_threads(), dynamic = omp_get_dynamic();
    size_t wrong = 0;
    lam_dev *dev;
    if (lam_ops_cpu.open(&dev, &(lam_dev_options){.threads = THREADS}) != LAM_OK)
        return 1;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        wrong += multiply(dev, &shapes[i]);
        wrong += omp_get_max_threads() != threads || omp_get_dynamic() != dynamic;
    }
    wrong += lam_ops_cpu.sync(dev) != LAM_OK;
    lam_ops_cpu.close(dev);
    return wrong;
}

/* ---- what a host may do with OpenMP ---- */

static size_t plain(void)
{
    return multiply_all();
}

static size_t dynamic_teams(void)
{
    omp_set_dynamic(1);
    return multiply_all();
}

static size_t changing_numbers(void)
{
    size_t wrong = 0;
    for (int n = 1; n <= 9; n += 2) {
        omp_set_num_threads(n);
        wrong += multiply_all();
    }
    return wrong;
}

static size_t no_teams_at_all(void)
{
    omp_set_max_active_levels(0);
    return multiply_all();
}

static size_t in_a_team(void)
{
    size_t wrong = 0;
#pragma omp parallel num_threads(3) reduction(+ : wrong)
    wrong += multiply_all();
    return wrong;
}

static size_t in_a_team_without_nesting(void)
{
    omp_set_max_active_levels(1);
    return in_a_team();
}

static size_t in_a_team_with_nesting(void)
{
    omp_set_max_active_levels(3);
    return in_a_team();
}

static size_t in_a_dynamic_team_with_nesting(void)
{
    omp_set_dynamic(1);
    return in_a_team_with_nesting();
}

static size_t in_a_team_of_one(void)
{
    size_t wrong = 0;
#pragma omp parallel num_threads(1) reduction(+ : wrong)
    {
        omp_set_dynamic(1);
        wrong += multiply_all();
    }
    return wrong;
}

static size_t in_a_task(void)
{
    size_t wrong = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
#pragma omp task shared(wrong)
    wrong = multiply_all();
    return wrong;
}

static size_t in_a_league(void)
{
    size_t wrong = 0;
#pragma omp teams num_teams(2) reduction(+ : wrong)
    wrong += multiply_all();
    return wrong;
}

/* As OMP_THREAD_LIMIT=2, which only works from outside; LLVM's OpenMP gives but one. */
static size_t under_a_thread_limit(void)
{
    size_t wrong = 0;
#pragma omp teams num_teams(1) thread_limit(2) reduction(+ : wrong)
    wrong += multiply_all();
    return wrong;
}

typedef struct situation {
    size_t (*run)(void);
    int least, most; /* threads of the largest team of ours */
} situation;

static const situation situations[] = {{plain, THREADS, THREADS},
                                       {dynamic_teams, THREADS, THREADS},
                                       {changing_numbers, THREADS, THREADS},
                                       {no_teams_at_all, 1, 1},
                                       {in_a_team_without_nesting, 1, 1},
                                       {in_a_team_with_nesting, 1, 1},
                                       {in_a_dynamic_team_with_nesting, 1, 1},
                                       {in_a_team_of_one, 1, 1},
                                       {in_a_task, 1, 1},
                                       {in_a_league, 1, THREADS},
                                       {under_a_thread_limit, 1, 2}};

START_TEST(the_library_works_on_one_thread_and_ours_share_the_work)
{
    const situation *s = &situations[_i];
    ck_assert_uint_eq(s->run(), 0);
    ck_assert_int_gt(calls, 0);
    ck_assert_int_eq(told_more, 0);
    ck_assert_int_ge(largest, s->least);
    ck_assert_int_le(largest, s->most);
}
END_TEST

/* The library was checked in the first GEMM; what it is told must be right in every later one as well. */
START_TEST(a_device_goes_on_when_the_limits_change)
{
    lam_dev *dev;
    size_t wrong = 0;
    must(lam_ops_cpu.open(&dev, &(lam_dev_options){.threads = THREADS}));
    wrong += multiply(dev, &shapes[0]);
    omp_set_dynamic(1);
    wrong += multiply(dev, &shapes[0]);
    omp_set_max_active_levels(0);
    wrong += multiply(dev, &shapes[0]);
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(1)
    wrong += multiply(dev, &shapes[0]);
#pragma omp teams num_teams(1) thread_limit(2) reduction(+ : wrong)
    wrong += multiply(dev, &shapes[0]);
    wrong += multiply(dev, &shapes[0]);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_int_eq(told_more, 0);
    ck_assert_int_eq(largest, THREADS);
    must(lam_ops_cpu.sync(dev));
    lam_ops_cpu.close(dev);
}
END_TEST

START_TEST(a_library_that_leaves_a_row_unwritten_is_refused)
{
    lam_dev *dev;
    spoil = 1;
    must(lam_ops_cpu.open(&dev, &(lam_dev_options){.threads = THREADS}));
    must(lam_ops_cpu.sync(dev));
    multiply(dev, &shapes[0]);
    ck_assert_int_eq(lam_ops_cpu.sync(dev), LAM_ERR_DEVICE);
    ck_assert_ptr_nonnull(strstr(lam_error(), "elements are wrong on 5 threads"));
    const int before = calls;
    multiply(dev, &shapes[0]); /* not asked again, and nothing is multiplied */
    ck_assert_int_eq(calls, before);
    ck_assert_int_eq(lam_ops_cpu.sync(dev), LAM_ERR_DEVICE);
    lam_ops_cpu.close(dev);
}
END_TEST

/* Gradients of weights whose operands' rows are 4 KiB apart are copied, in blocks and stretches of terms: with whole
 * ones, parts of one, and several products that are summed.  Without the memory that reserve() sets aside they are not. */
START_TEST(operands_on_few_cache_sets_are_copied)
{
    enum { WIDE = 1024, NARROW = 48, ROWS = 800 };
    static float x[2 * ROWS * WIDE], y[2 * ROWS * NARROW], c[WIDE * NARROW];
    lam_dev *dev;
    must(lam_ops_cpu.open(&dev, &(lam_dev_options){.threads = THREADS}));
    if (_i % 2 == 0)
        must(lam_ops_cpu.reserve(dev, &(lam_work){.rows = 1, .width = 1}));
    for (size_t i = 0; i < 2 * ROWS * WIDE; i++)
        x[i] = entry(i);
    for (size_t i = 0; i < 2 * ROWS * NARROW; i++)
        y[i] = entry(3 * i + 1);
    const int wide_first = _i / 2 == 0;
    const lam_gemm g = {.m = wide_first ? WIDE : NARROW,
                        .n = wide_first ? NARROW : WIDE,
                        .k = ROWS,
                        .batch = 2,
                        .ta = LAM_FLIP,
                        .a = wide_first ? x : y,
                        .b = wide_first ? y : x,
                        .c = c,
                        .lda = wide_first ? WIDE : NARROW,
                        .ldb = wide_first ? NARROW : WIDE,
                        .ldc = wide_first ? NARROW : WIDE,
                        .step_a = ROWS * (size_t)(wide_first ? WIDE : NARROW),
                        .step_b = ROWS * (size_t)(wide_first ? NARROW : WIDE),
                        .beta = 1.0};
    for (size_t i = 0; i < WIDE * NARROW; i++)
        c[i] = 1.0f;
    lam_cpu_gemm(dev, &g);
    must(lam_ops_cpu.sync(dev));
    for (size_t row = 0; row < (size_t)g.m; row++)
        for (size_t col = 0; col < (size_t)g.n; col++) {
            float sum = 1.0f;
            for (size_t t = 0; t < 2 * ROWS; t++)
                sum +=
                    (wide_first ? x : y)[t * g.lda + row] * (wide_first ? y : x)[t * g.ldb + col];
            ck_assert(c[row * g.ldc + col] == sum);
        }
    lam_ops_cpu.close(dev);
}
END_TEST

/* By our own tiles (B flipped) and by the library: every edge of rows, columns, terms and panels, added to C or not, in several
 * products that share B or are summed. */
START_TEST(every_shape_is_multiplied)
{
    static const int sizes[][3] = {{32, 16, 16},    {33, 17, 17},    {150, 31, 41},
                                   {37, 300, 1030}, {65, 1050, 300}, {256, 64, 64}};
    const int m = sizes[_i / 8][0], n = sizes[_i / 8][1], k = sizes[_i / 8][2], batch = 3;
    const int flip = _i % 2, add = _i / 2 % 2, sum = _i / 4 % 2;
    const size_t ldb = (size_t)(flip ? k : n) + 3, ldc = (size_t)n + 5, lda = (size_t)k + 1;
    const size_t size_a = (size_t)m * lda, size_b = (size_t)(flip ? n : k) * ldb;
    const size_t size_c = (size_t)m * ldc, all_c = (size_t)(sum ? 1 : batch) * size_c;
    float *const a = malloc(((size_t)batch * (size_a + size_b) + 2 * all_c) * sizeof *a);
    ck_assert_ptr_nonnull(a);
    float *const b = a + (size_t)batch * size_a, *const c = b + (size_t)batch * size_b;
    float *const want = c + all_c;
    lam_dev *dev;
    must(lam_ops_cpu.open(&dev, &(lam_dev_options){.threads = THREADS}));
    must(lam_ops_cpu.reserve(dev, &(lam_work){.rows = 1, .width = 1}));
    for (size_t i = 0; i < (size_t)batch * size_a; i++)
        a[i] = entry(i);
    for (size_t i = 0; i < (size_t)batch * size_b; i++)
        b[i] = entry(3 * i + 1);
    for (size_t i = 0; i < all_c; i++)
        c[i] = want[i] = add || i % ldc >= (size_t)n ? entry(i) : NAN;
    const lam_gemm g = {.m = m,
                        .n = n,
                        .k = k,
                        .batch = batch,
                        .tb = flip ? LAM_FLIP : LAM_KEEP,
                        .a = a,
                        .b = b,
                        .c = c,
                        .lda = lda,
                        .ldb = ldb,
                        .ldc = ldc,
                        .step_a = size_a,
                        .step_b = sum ? size_b : 0,
                        .step_c = sum ? 0 : size_c,
                        .beta = add};
    for (int x = 0; x < batch; x++)
        for (size_t i = 0; i < (size_t)m * (size_t)n; i++) {
            const size_t row = i / (size_t)n, col = i % (size_t)n;
            float *const to = want + (sum ? 0 : (size_t)x * size_c) + row * ldc + col;
            float s = add || (sum && x > 0) ? *to : 0.0f;
            for (size_t t = 0; t < (size_t)k; t++)
                s += a[(size_t)x * size_a + row * lda + t] *
                     b[(size_t)x * g.step_b + (flip ? col * ldb + t : t * ldb + col)];
            *to = s;
        }
    lam_cpu_gemm(dev, &g);
    must(lam_ops_cpu.sync(dev));
    for (size_t i = 0; i < all_c; i++)
        ck_assert_msg(c[i] == want[i], "element %zu of row %zu", i % ldc, i / ldc);
    lam_ops_cpu.close(dev);
    free(a);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, the_library_works_on_one_thread_and_ours_share_the_work, 0,
                        (int)(sizeof situations / sizeof *situations));
    tcase_add_test(tests, a_device_goes_on_when_the_limits_change);
    tcase_add_loop_test(tests, every_shape_is_multiplied, 0, 6 * 8);
    tcase_add_loop_test(tests, operands_on_few_cache_sets_are_copied, 0, 4);
    tcase_add_test(tests, a_library_that_leaves_a_row_unwritten_is_refused);
    return test_run("ops/cpu/gemm", tests);
}
