/* continuous_test.c -- the gate, attention by a density and sticky samples: definitions and gradients. */
#include "ops/ref/ref.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 23 };
enum { B = 2, H = 2, K = 3, HK = H * K, QUERIES = 3, BASIS = 5, LD = 6, LDQ = HK + 1 };
enum { STATS = B * QUERIES * H, ROWS = B * H * QUERIES };

typedef struct gate_case {
    double in[12], pre[12], out[12], dout[12], dpre[12];
    lam_gate a;
} gate_case;

static double gate_loss(const void *user)
{
    const gate_case *t = user;
    double out[12];
    lam_gate a = t->a;
    a.out = out;
    lam_ref_gate_fwd(test_ref, &a);
    return test_dot(t->dout, out, 12);
}

START_TEST(gate_bwd_is_the_gradient)
{
    lam_rng rng = {.key = SEED};
    gate_case t = {0};
    test_fill(&rng, t.in, 12);
    test_fill(&rng, t.pre, 12);
    test_fill(&rng, t.dout, 12);
    t.a = (lam_gate){3, 3, 4, t.in, t.pre, t.out, t.dout, t.dpre};
    lam_ref_gate_fwd(test_ref, &t.a);
    ck_assert_double_eq_tol(t.out[0], t.in[0] / (1.0 + exp(-t.pre[0])), 1e-15);
    ck_assert_double_eq(t.out[3], 0.0); /* padding */
    lam_ref_gate_bwd(test_ref, &t.a);
    test_gradient("pre", t.pre, t.dpre, 12, gate_loss, &t);
}
END_TEST

typedef struct density_case {
    double q[B * QUERIES * LDQ], pull[B * 2 * HK], centre[BASIS], width[BASIS];
    double mu[STATS], var[STATS], r[ROWS * LD], dr[ROWS * LD];
    double dq[B * QUERIES * LDQ], dpull[B * 2 * HK], kl[STATS];
    lam_density a;
} density_case;

static void make(density_case *t, lam_rng *rng)
{
    memset(t, 0, sizeof *t);
    test_fill(rng, t->q, B * QUERIES * LDQ);
    test_fill(rng, t->pull, B * 2 * HK);
    test_fill(rng, t->dr, ROWS * LD);
    for (int j = 0; j < BASIS; j++) {
        t->centre[j] = j / (BASIS - 1.0);
        t->width[j] = j % 2 ? 0.3 : 0.1;
    }
    t->a = (lam_density){.B = B,
                         .H = H,
                         .K = K,
                         .queries = QUERIES,
                         .basis = BASIS,
                         .scale = 0.7,
                         .var_min = 1e-6,
                         .centre = t->centre,
                         .width = t->width,
                         .q = {t->q, QUERIES * LDQ},
                         .ldq = LDQ,
                         .pull = {t->pull, 2 * HK},
                         .mu = {t->mu, QUERIES * H},
                         .var = {t->var, QUERIES * H},
                         .r = t->r,
                         .ldr = LD,
                         .dr = t->dr,
                         .dq = {t->dq, QUERIES * LDQ},
                         .dpull = {t->dpull, 2 * HK},
                         .prior = 0.04,
                         .weight = 0.3,
                         .grad_scale = 1.7,
                         .kl = {t->kl, QUERIES * H}};
}

/* What backward differentiates: dr . r plus the scaled divergence. */
static double density_loss(const void *user)
{
    const density_case *t = user;
    double mu[STATS], var[STATS], r[ROWS * LD] = {0}, sum = 0.0;
    lam_density a = t->a;
    a.mu.p = mu;
    a.var.p = var;
    a.r = r;
    lam_ref_density_fwd(test_ref, &a);
    for (int i = 0; i < ROWS; i++)
        sum += test_dot(t->dr + i * LD, r + i * LD, BASIS);
    for (int i = 0; i < STATS; i++)
        sum += a.grad_scale * a.weight * 0.5 * (var[i] / a.prior - log(var[i] / a.prior) - 1.0);
    return sum;
}

START_TEST(density_bwd_is_the_gradient)
{
    lam_rng rng = {.key = SEED, .stream = 1};
    density_case t;
    make(&t, &rng);
    lam_ref_density_fwd(test_ref, &t.a);
    lam_ref_density_bwd(test_ref, &t.a);
    double kl = 0.0;
    for (int i = 0; i < STATS; i++)
        kl += t.kl[i];
    memset(t.dr, 0, sizeof t.dr);
    ck_assert_double_eq_tol(density_loss(&t), t.a.grad_scale * kl, 1e-12);
    make(&t, &(lam_rng){.key = SEED, .stream = 1});
    lam_ref_density_fwd(test_ref, &t.a);
    lam_ref_density_bwd(test_ref, &t.a);
    test_gradient("q", t.q, t.dq, B * QUERIES * LDQ, density_loss, &t);
    test_gradient("pull", t.pull, t.dpull, B * 2 * HK, density_loss, &t);
}
END_TEST

START_TEST(a_variance_at_its_minimum_has_no_gradient)
{
    lam_rng rng = {.key = SEED, .stream = 2};
    density_case t;
    make(&t, &rng);
    t.a.var_min = 50.0;
    t.a.weight = 0.0; /* a large constant would drown the differences */
    lam_ref_density_fwd(test_ref, &t.a);
    lam_ref_density_bwd(test_ref, &t.a);
    for (int b = 0; b < B; b++)
        for (int c = 0; c < HK; c++)
            ck_assert_double_eq(t.dpull[(2 * b + 1) * HK + c], 0.0);
    for (int i = 0; i < STATS; i++)
        ck_assert_double_eq(t.var[i], 50.0);
    test_gradient("q", t.q, t.dq, B * QUERIES * LDQ, density_loss, &t);
}
END_TEST

/* The mean of a bump under the query's Gaussian, by Simpson's rule over twelve deviations. */
static double mean_of_bump(double mu, double var, double centre, double width)
{
    enum { STEPS = 4000 };
    const double sigma = sqrt(var), from = mu - 12.0 * sigma, h = 24.0 * sigma / STEPS;
    double sum = 0.0;
    for (int i = 0; i <= STEPS; i++) {
        const double t = from + h * i, x = (t - mu) / sigma, y = (t - centre) / width;
        const double f = exp(-0.5 * (x * x + y * y)) / (6.283185307179586 * sigma * width);
        sum += f * (i == 0 || i == STEPS ? 1.0 : i % 2 ? 4.0 : 2.0);
    }
    return sum * h / 3.0;
}

START_TEST(r_is_the_mean_of_each_bump)
{
    lam_rng rng = {.key = SEED, .stream = 3};
    density_case t;
    make(&t, &rng);
    lam_ref_density_fwd(test_ref, &t.a);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            for (int i = 0; i < QUERIES; i++)
                for (int j = 0; j < BASIS; j++) {
                    const int at = (b * QUERIES + i) * H + h;
                    ck_assert_double_eq_tol(
                        t.r[((b * H + h) * QUERIES + i) * LD + j],
                        mean_of_bump(t.mu[at], t.var[at], t.centre[j], t.width[j]), 1e-10);
                }
}
END_TEST

/* mu = 0.3, var = 0.01, centre 0.5, width 0.05. */
START_TEST(the_specified_numbers_come_out)
{
    const double q[2] = {1.0, 1.0}, centre = 0.5, width = 0.05, dr = 1.0;
    /* sigmoid^-1(0.3) and softplus^-1(0.01) by hand */
    double pull[4] = {log(0.3 / 0.7), 0.0, log(expm1(0.01)), 0.0};
    double mu, var, r, dq[2] = {0}, dpull[4], kl;
    const lam_density a = {.B = 1,
                           .H = 1,
                           .K = 2,
                           .queries = 1,
                           .basis = 1,
                           .scale = 1.0,
                           .var_min = 1e-6,
                           .centre = &centre,
                           .width = &width,
                           .q = {(void *)q, 2},
                           .ldq = 2,
                           .pull = {pull, 4},
                           .mu = {&mu, 1},
                           .var = {&var, 1},
                           .r = &r,
                           .ldr = 1,
                           .dr = &dr,
                           .dq = {dq, 2},
                           .dpull = {dpull, 4},
                           .prior = 1.0,
                           .kl = {&kl, 1}};
    lam_ref_density_fwd(test_ref, &a);
    lam_ref_density_bwd(test_ref, &a);
    ck_assert_double_eq_tol(mu, 0.3, 1e-15);
    ck_assert_double_eq_tol(var, 0.01, 1e-15);
    ck_assert_double_eq_tol(r, 0.720416893, 5e-10);
    ck_assert_double_eq_tol(dpull[0] / (0.3 * 0.7), 11.5266703, 5e-8);
    ck_assert_double_eq_tol(dpull[2] / -expm1(-0.01), 63.3966866, 5e-8);
}
END_TEST

enum { BINS = 16, SAMPLES = 400 };

typedef struct sticky_case {
    double mu[4], var[4], draws[SAMPLES], centre, width, edge[BINS + 1], psi[SAMPLES];
    lam_sticky_samples a;
} sticky_case;

/* Places are read back from one wide bump at 0. */
static double place_of(double psi)
{
    return sqrt(-2.0 * log(psi * sqrt(6.283185307179586)));
}

static void make_sticky(sticky_case *t, double sigma, int within)
{
    memset(t, 0, sizeof *t);
    for (int k = 0; k < 4; k++) {
        t->mu[k] = 0.6 + 0.01 * k;
        t->var[k] = sigma * sigma;
    }
    for (int m = 0; m < SAMPLES; m++)
        t->draws[m] = (m + 0.5) / SAMPLES;
    t->width = 1.0;
    t->a = (lam_sticky_samples){.B = 1,
                                .rows = 2,
                                .H = 2,
                                .bins = BINS,
                                .samples = SAMPLES,
                                .basis = 1,
                                .within = within,
                                .mu = {t->mu, 4},
                                .var = {t->var, 4},
                                .draws = t->draws,
                                .centre = &t->centre,
                                .width = &t->width,
                                .edge = t->edge,
                                .psi = t->psi,
                                .ld = 1};
    lam_ref_sticky(test_ref, &t->a);
}

START_TEST(sticky_samples_follow_the_histogram)
{
    sticky_case t;
    make_sticky(&t, 0.1, 0);
    int found[BINS] = {0};
    for (int m = 0; m < SAMPLES; m++) {
        const double place = place_of(t.psi[m]) * BINS;
        ck_assert_double_eq_tol(place, rint(place), 1e-6); /* left edges */
        found[(int)rint(place)]++;
        ck_assert(m == 0 || place >= place_of(t.psi[m - 1]) * BINS - 1e-6);
    }
    double sum = 0.0;
    for (int d = 0; d < BINS; d++) {
        const double share = (t.edge[d + 1] - t.edge[d]) / (t.edge[BINS] - t.edge[0]);
        ck_assert_double_le(fabs(found[d] - share * SAMPLES), 1.0);
        sum += share;
    }
    ck_assert_double_eq_tol(sum, 1.0, 1e-12);
}
END_TEST

/* The narrower attention is, the closer to it all samples are. */
START_TEST(sticky_samples_concentrate)
{
    sticky_case t;
    make_sticky(&t, 1e-3, 1);
    for (int m = 0; m < SAMPLES; m++) {
        const double place = place_of(t.psi[m]);
        ck_assert_msg(place > 9.0 / BINS && place < 11.0 / BINS, "sample %d at %g", m, place);
    }
    make_sticky(&t, 5.0, 1); /* and the wider, the more even */
    for (int m = 0; m < SAMPLES; m++)
        ck_assert_double_eq_tol(place_of(t.psi[m]), t.draws[m], 0.01);
}
END_TEST

/* A share that rounds up to 1 finds the last bin, in which there may be nothing. */
START_TEST(an_empty_last_bin_has_a_place)
{
    sticky_case t;
    make_sticky(&t, 1e-3, 1);
    ck_assert(t.edge[BINS] == t.edge[BINS - 1]);
    t.draws[SAMPLES - 1] = 1.0;
    lam_ref_sticky(test_ref, &t.a);
    ck_assert_double_eq_tol(place_of(t.psi[SAMPLES - 1]), (BINS - 1.0) / BINS, 1e-9);
}
END_TEST

int main(void)
{
    printf("seed %d\n", SEED);
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_test(tests, gate_bwd_is_the_gradient);
    tcase_add_test(tests, density_bwd_is_the_gradient);
    tcase_add_test(tests, a_variance_at_its_minimum_has_no_gradient);
    tcase_add_test(tests, r_is_the_mean_of_each_bump);
    tcase_add_test(tests, the_specified_numbers_come_out);
    tcase_add_test(tests, sticky_samples_follow_the_histogram);
    tcase_add_test(tests, sticky_samples_concentrate);
    tcase_add_test(tests, an_empty_last_bin_has_a_place);
    return test_run("ops/ref/continuous", tests);
}
