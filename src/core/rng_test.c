/* rng_test.c -- the published known answers, the documented layout of dropout bits, and moments.
 *
 * The seeds are fixed, so a statistical bound is either met for good or never; the bounds are five
 * standard deviations of what an ideal generator would do. */
#include "core/rng.h"

#include "support/suite.h"

#include <math.h>
#include <stdio.h>

START_TEST(philox_gives_the_known_answers_of_random123)
{
    const struct {
        uint64_t key, lo, hi;
        uint32_t answer[4];
    } cases[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {UINT64_C(0x299f31d0a4093822),
         UINT64_C(0x85a308d3243f6a88),
         UINT64_C(0x0370734413198a2e),
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const lam_u32x4 got = lam_philox(cases[i].key, cases[i].lo, cases[i].hi);
        for (int w = 0; w < 4; w++)
            ck_assert_uint_eq(got.v[w], cases[i].answer[w]);
    }
}
END_TEST

START_TEST(dropout_bits_lie_where_the_header_says)
{
    const uint64_t seed = 77;
    const uint32_t step = 3, site = 9;
    for (uint64_t index = 0; index < 64; index++) {
        const lam_u32x4 block = lam_philox(seed, index / 8, (uint64_t)step << 32 | site);
        const uint32_t word = block.v[(index % 8) / 2];
        const uint32_t bits = index % 2 ? word >> 16 : word & 0xffff;
        ck_assert_int_eq(lam_drop_keep(seed, step, site, index, bits), 1);
        if (bits < 0xffff)
            ck_assert_int_eq(lam_drop_keep(seed, step, site, index, bits + 1), 0);
    }
}
END_TEST

START_TEST(threshold_rounds_and_always_keeps_something)
{
    const struct {
        double p;
        uint32_t threshold;
    } cases[] = {{0.0, 0},         {0.5, 32768},     {0.1, 6554},       {0.25, 16384},
                 {0.4 / 65536, 0}, {0.6 / 65536, 1}, {0.999999, 65535}, {1.0 - 0x1p-53, 65535}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_uint_eq(lam_drop_threshold(cases[i].p), cases[i].threshold);
        const double keep = 1.0 - cases[i].threshold / 65536.0;
        ck_assert_double_eq_tol(lam_drop_scale(cases[i].p) * keep, 1.0, 1e-15);
    }
    ck_assert_double_eq(lam_drop_scale(0.0), 1.0);
}
END_TEST

START_TEST(dropout_drops_the_fraction_it_should)
{
    enum { N = 200000 };
    const double ps[] = {0.0, 0.01, 0.1, 0.5, 0.9};
    for (size_t i = 0; i < sizeof ps / sizeof *ps; i++) {
        const uint32_t threshold = lam_drop_threshold(ps[i]);
        const double p = threshold / 65536.0;
        int dropped = 0;
        for (uint64_t index = 0; index < N; index++)
            dropped += !lam_drop_keep(1, 2, 3, index, threshold);
        ck_assert_double_le(fabs(dropped - p * N), 5.0 * sqrt(p * (1.0 - p) * N));
    }
}
END_TEST

/* Two masks at p = 1/2 that share nothing agree on half of the elements. */
static double agreement(uint64_t seed, uint32_t step, uint32_t site)
{
    enum { N = 100000 };
    int same = 0;
    for (uint64_t i = 0; i < N; i++)
        same += lam_drop_keep(1, 1, 1, i, 32768) == lam_drop_keep(seed, step, site, i, 32768);
    return (same - N / 2.0) / sqrt(N / 4.0);
}

START_TEST(seed_step_and_site_all_change_the_mask)
{
    ck_assert_double_le(fabs(agreement(2, 1, 1)), 5.0);
    ck_assert_double_le(fabs(agreement(1, 2, 1)), 5.0);
    ck_assert_double_le(fabs(agreement(1, 1, 2)), 5.0);
    ck_assert_double_gt(agreement(1, 1, 1), 100.0);
}
END_TEST

START_TEST(the_stream_is_the_blocks_in_order)
{
    lam_rng rng = {.key = 11, .stream = 22};
    for (uint64_t i = 0; i < 40; i++)
        ck_assert_uint_eq(lam_rng_u32(&rng), lam_philox(11, i / 4, 22).v[i % 4]);
    ck_assert_uint_eq(rng.next, 40);
}
END_TEST

START_TEST(every_draw_consumes_the_same_words_from_any_position)
{
    for (uint64_t start = 0; start < 8; start++) {
        lam_rng words = {.key = 5, .next = start}, rng = words;
        uint32_t w[4];
        for (int i = 0; i < 4; i++)
            w[i] = lam_rng_u32(&words);
        const double u = (double)(((uint64_t)w[1] << 32 | w[0]) >> 11) / 9007199254740992.0;
        ck_assert_double_eq(lam_rng_uniform(&rng), u);
        ck_assert_uint_eq(rng.next, start + 2);

        const double v = (double)(((uint64_t)w[3] << 32 | w[2]) >> 11) / 9007199254740992.0;
        rng.next = start;
        ck_assert_double_eq_tol(lam_rng_normal(&rng),
                                sqrt(-2.0 * log1p(-u)) * cos(8.0 * atan(1.0) * v), 1e-12);
        ck_assert_uint_eq(rng.next, start + 4);
    }
}
END_TEST

START_TEST(a_saved_stream_goes_on_where_it_was)
{
    lam_rng rng = {.key = 3};
    lam_rng_normal(&rng);
    lam_rng_u32(&rng);
    const lam_rng saved = rng;
    double first[20];
    for (int i = 0; i < 20; i++)
        first[i] = lam_rng_normal(&rng);
    rng = saved;
    for (int i = 0; i < 20; i++)
        ck_assert_double_eq(lam_rng_normal(&rng), first[i]);
}
END_TEST

/* Mean, variance, skewness and kurtosis of n draws against theirs, in standard errors. */
static void check_moments(double (*draw)(lam_rng *), const double expected[4],
                          double sixth_eighth[2])
{
    enum { N = 400000 };
    double sum[5] = {0};
    lam_rng rng = {.key = 12345};
    for (int i = 0; i < N; i++) {
        const double x = draw(&rng) - expected[0];
        for (int k = 1; k <= 4; k++)
            sum[k] += pow(x, k);
    }
    const double m2 = expected[1], m3 = expected[2], m4 = expected[3];
    const double variance[5] = {0, m2, m4 - m2 * m2, sixth_eighth[0] - m3 * m3,
                                sixth_eighth[1] - m4 * m4};
    const double central[5] = {0, 0, m2, m3, m4};
    for (int k = 1; k <= 4; k++)
        ck_assert_double_eq_tol(sum[k] / N, central[k], 5.0 * sqrt(variance[k] / N));
}

START_TEST(uniform_has_the_moments_of_a_uniform)
{
    check_moments(lam_rng_uniform, (double[]){0.5, 1.0 / 12, 0.0, 1.0 / 80},
                  (double[]){1.0 / 448, 1.0 / 2304});
    lam_rng rng = {.key = 1};
    for (int i = 0; i < 100000; i++) {
        const double u = lam_rng_uniform(&rng);
        ck_assert(u >= 0.0 && u < 1.0);
    }
}
END_TEST

START_TEST(normal_has_the_moments_of_a_normal)
{
    check_moments(lam_rng_normal, (double[]){0.0, 1.0, 0.0, 3.0}, (double[]){15.0, 105.0});
}
END_TEST

START_TEST(below_is_in_range_and_even)
{
    enum { SIDES = 7, N = 70000 };
    int counts[SIDES] = {0};
    lam_rng rng = {.key = 8};
    for (int i = 0; i < N; i++)
        counts[lam_rng_below(&rng, SIDES)]++;
    for (int side = 0; side < SIDES; side++)
        ck_assert_double_eq_tol(counts[side], (double)N / SIDES, 5.0 * sqrt((double)N / SIDES));
    ck_assert_uint_eq(lam_rng_below(&rng, 1), 0);

    /* 3/4 of 2^64: a plain remainder would give the lower third twice as often. */
    const uint64_t big = UINT64_C(3) << 62;
    int low = 0;
    for (int i = 0; i < N; i++) {
        const uint64_t x = lam_rng_below(&rng, big);
        ck_assert(x < big);
        low += x < big / 3;
    }
    ck_assert_double_eq_tol(low, N / 3.0, 5.0 * sqrt(N * 2.0 / 9.0));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, philox_gives_the_known_answers_of_random123);
    tcase_add_test(tests, dropout_bits_lie_where_the_header_says);
    tcase_add_test(tests, threshold_rounds_and_always_keeps_something);
    tcase_add_test(tests, dropout_drops_the_fraction_it_should);
    tcase_add_test(tests, seed_step_and_site_all_change_the_mask);
    tcase_add_test(tests, the_stream_is_the_blocks_in_order);
    tcase_add_test(tests, every_draw_consumes_the_same_words_from_any_position);
    tcase_add_test(tests, a_saved_stream_goes_on_where_it_was);
    tcase_add_test(tests, uniform_has_the_moments_of_a_uniform);
    tcase_add_test(tests, normal_has_the_moments_of_a_normal);
    tcase_add_test(tests, below_is_in_range_and_even);
    return test_run("core/rng", tests);
}
