/* cdf_test.c -- frequencies add up, follow the softmax, cost almost nothing, and are known numbers. */
#include "compress/cdf.h"

#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

enum { MOST = 70000 };

static double logits[MOST];
static uint32_t freq[MOST], cum[MOST + 1];

static void draw(lam_rng *rng, int n, double width)
{
    for (int i = 0; i < n; i++)
        logits[i] = width * (lam_rng_uniform(rng) - 0.5);
}

/* Bits per symbol that coding by freq costs more than coding by the softmax. */
static double excess(int n)
{
    double sum = 0.0, top = logits[0], cost = 0.0;
    for (int i = 1; i < n; i++)
        top = fmax(top, logits[i]);
    for (int i = 0; i < n; i++)
        sum += exp(logits[i] - top);
    for (int i = 0; i < n; i++) {
        const double p = exp(logits[i] - top) / sum;
        if (p > 0.0)
            cost += p * log2(p / ((double)freq[i] / LAM_TOTAL));
    }
    return cost;
}

START_TEST(frequencies_add_up_and_cost_next_to_nothing)
{
    static const int sizes[] = {1, 2, 3, 255, 256, 257, MOST};
    lam_rng rng = test_rng(3);
    for (int round = 0; round < 12; round++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const int n = sizes[k];
            draw(&rng, n, round < 3 ? 1e-3 : round < 6 ? 10.0 : round < 9 ? 60.0 : 1e4);
            lam_cdf_make(freq, logits, n, LAM_TOTAL);
            lam_cdf_add_up(cum, freq, n);
            ck_assert_uint_eq(cum[n], LAM_TOTAL);
            for (int i = 0; i < n; i++)
                ck_assert_uint_ge(freq[i], 1);
            ck_assert_double_le(excess(n), 3e-5 + 2.0 * n / LAM_TOTAL);
        }
}
END_TEST

START_TEST(a_constant_added_to_all_logits_changes_nothing)
{
    uint32_t other[256];
    lam_rng rng = test_rng(5);
    draw(&rng, 256, 16.0);
    for (int i = 0; i < 256; i++)
        logits[i] = ldexp(rint(ldexp(logits[i], 20)), -20); /* so that the sums below are exact */
    lam_cdf_make(freq, logits, 256, LAM_TOTAL);
    for (int i = 0; i < 256; i++)
        logits[i] += 1000.0;
    lam_cdf_make(other, logits, 256, LAM_TOTAL);
    for (int i = 0; i < 256; i++)
        ck_assert_uint_eq(freq[i], other[i]);
}
END_TEST

START_TEST(every_value_belongs_to_its_symbol)
{
    lam_rng rng = test_rng(6);
    draw(&rng, 300, 20.0);
    lam_cdf_make(freq, logits, 300, LAM_TOTAL);
    lam_cdf_add_up(cum, freq, 300);
    for (int i = 0; i < 300; i++) {
        ck_assert_int_eq(lam_cdf_find(cum, 300, cum[i]), i);
        ck_assert_int_eq(lam_cdf_find(cum, 300, cum[i + 1] - 1), i);
    }
}
END_TEST

/* The archive format depends on these numbers: whoever changes them makes a new version of it. */
START_TEST(frequencies_are_the_known_ones)
{
    uint64_t hash = 0;
    for (int round = 0; round < 64; round++) {
        for (int i = 0; i < 256; i++) /* integers and a power of 2: exact everywhere */
            logits[i] =
                (double)(((unsigned)i * 2654435761u + (unsigned)round * 40503u) % 1000003u) /
                32768.0;
        lam_cdf_make(freq, logits, 256, LAM_TOTAL);
        for (int i = 0; i < 256; i++) { /* whatever the order of bytes is */
            const unsigned char bytes[4] = {(unsigned char)freq[i], (unsigned char)(freq[i] >> 8),
                                            (unsigned char)(freq[i] >> 16),
                                            (unsigned char)(freq[i] >> 24)};
            hash = XXH64(bytes, sizeof bytes, hash);
        }
    }
    ck_assert_msg(hash == UINT64_C(0x2d0f76e632f542f2), "%016llx", (unsigned long long)hash);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, frequencies_add_up_and_cost_next_to_nothing);
    tcase_add_test(tests, a_constant_added_to_all_logits_changes_nothing);
    tcase_add_test(tests, every_value_belongs_to_its_symbol);
    tcase_add_test(tests, frequencies_are_the_known_ones);
    return test_run("compress/cdf", tests);
}
