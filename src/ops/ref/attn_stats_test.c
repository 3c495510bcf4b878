/* attn_stats_test.c -- do the statistics say what the rows of P hold?  P itself is what attention puts out when
 * the values are the identity. */
#include "ops/ref/ref.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>

enum { SEED = 41, B = 2, H = 2, K = 9, D = H * K, N = 5, T = 9, SHIFT = T - N, BINS = 5 };

typedef struct work {
    double q[B * N * D], k[B * T * D], value[B * T * D], o[B * N * D], lse[B * N * H];
    double peak[B * N * H * BINS], stats[B * N * H * LAM_ATTN_STATS];
    lam_attn_stats a;
} work;

static void make(work *t, int interval, int reach)
{
    lam_rng rng = test_rng(SEED);
    test_fill(&rng, t->q, B * N * D);
    test_fill(&rng, t->k, B * T * D);
    for (int n = 0; n < B * T * D; n++)
        t->value[n] = n % K == n / D % T; /* value_j = e_j */
    t->a = (lam_attn_stats){.attn = {.B = B,
                                     .H = H,
                                     .K = K,
                                     .queries = N,
                                     .keys = T,
                                     .shift = SHIFT,
                                     .reach = reach,
                                     .scale = 0.7,
                                     .q = {t->q, N * D},
                                     .k = {t->k, T * D},
                                     .value = {t->value, T * D},
                                     .ldq = D,
                                     .ldk = D,
                                     .o = {t->o, N * D},
                                     .ldo = D,
                                     .lse = {t->lse, N * H}},
                            .interval = interval,
                            .bins = BINS,
                            .cut = {2, SHIFT},
                            .peak = t->peak,
                            .stats = t->stats};
    lam_ref_attn_fwd(test_ref, &t->a.attn);
    lam_ref_attn_stats(test_ref, &t->a);
}

/* The largest weight at the distances of interval c, if all of them are there. */
static double peak_of(const work *t, const double *p, int i, int c)
{
    const int reach = t->a.attn.reach, interval = t->a.interval;
    double most = 0.0;
    for (int d = c * interval; d < (c + 1) * interval; d++) {
        if (SHIFT + i - d < 0 || (reach > 0 && d >= reach))
            return 0.0;
        most = fmax(most, p[SHIFT + i - d]);
    }
    return most;
}

static void check(const work *t)
{
    for (int row = 0; row < B * N * H; row++) {
        const int h = row % H, i = row / H % N, b = row / H / N;
        const double *p = t->o + (b * N + i) * D + h * K; /* P[i][0..T-1], K = T */
        double entropy = 0.0, share[LAM_CUTS] = {0.0, 0.0};
        for (int j = 0; j < T; j++) {
            entropy -= p[j] > 0.0 ? p[j] * log(p[j]) : 0.0;
            for (int k = 0; k < LAM_CUTS; k++)
                share[k] += j < t->a.cut[k] ? p[j] : 0.0;
        }
        const double *stats = t->stats + row * LAM_ATTN_STATS;
        ck_assert_double_eq_tol(stats[LAM_ENTROPY], entropy, 1e-13);
        for (int k = 0; k < LAM_CUTS; k++)
            ck_assert_double_eq_tol(stats[LAM_SHARE + k], share[k], 1e-14);
        for (int c = 0; c < BINS; c++)
            ck_assert_double_eq_tol(t->peak[row * BINS + c], peak_of(t, p, i, c), 1e-14);
    }
}

START_TEST(a_attn_stats_describes_the_rows_of_p)
{
    work t;
    for (int interval = 1; interval <= 4; interval++)
        for (int reach = 0; reach <= T; reach += 3) {
            make(&t, interval, reach);
            check(&t);
        }
}
END_TEST

START_TEST(a_query_that_sees_nothing_has_zeros)
{
    work t;
    make(&t, 2, 0);
    t.a.attn.shift = -1; /* the first query stands before every key */
    lam_ref_attn_fwd(test_ref, &t.a.attn);
    lam_ref_attn_stats(test_ref, &t.a);
    for (int n = 0; n < H * BINS; n++)
        ck_assert_double_eq(t.peak[n], 0.0);
    for (int n = 0; n < H * LAM_ATTN_STATS; n++)
        ck_assert_double_eq(t.stats[n], 0.0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_test(tests, a_attn_stats_describes_the_rows_of_p);
    tcase_add_test(tests, a_query_that_sees_nothing_has_zeros);
    return test_run("ops/ref/attn_stats", tests);
}
