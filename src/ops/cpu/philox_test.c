/* philox_test.c -- are the vectorised dropout bits those of core/rng.h? */
#include "ops/cpu/philox.h"
#include "support/suite.h"

/* All 64 bits of the call at `block` against the scalar definition. */
static void compare_bits(const lam_drop *drop, uint64_t block)
{
    const lam_mask mask = lam_mask_make(drop);
    const uint32_t threshold = lam_drop_threshold(drop->p);
    const uint64_t bits = lam_mask_bits(&mask, block);
    for (uint64_t i = 0; i < 64; i++) {
        const int want =
            lam_drop_keep(drop->seed, drop->step, drop->site, 8 * block + i, threshold);
        ck_assert_msg((int)(bits >> i & 1) == want, "seed %llu block %llu element %llu",
                      (unsigned long long)drop->seed, (unsigned long long)block,
                      (unsigned long long)i);
    }
}

START_TEST(bits_equal_the_scalar_definition)
{
    lam_rng rng = {.key = 2026, .stream = 1};
    for (int round = 0; round < 2000; round++) {
        const lam_drop drop = {.p = lam_rng_uniform(&rng),
                               .seed = (uint64_t)lam_rng_u32(&rng) << 32 | lam_rng_u32(&rng),
                               .step = lam_rng_u32(&rng),
                               .site = lam_rng_u32(&rng)};
        compare_bits(&drop, lam_rng_below(&rng, UINT64_C(1) << 20));
    }
}
END_TEST

/* The low word of the counter runs over inside the sixty-four elements. */
START_TEST(bits_carry_into_the_high_counter_word)
{
    const lam_drop drop = {.p = 0.5, .seed = UINT64_C(0xfedcba9876543210), .step = 7, .site = 3};
    for (uint64_t back = 0; back <= 8; back++)
        compare_bits(&drop, (UINT64_C(1) << 32) - back);
}
END_TEST

START_TEST(extreme_probabilities)
{
    const double p[] = {1e-9, 1.0 / 65536.0, 0.5, 1.0 - 1.0 / 65536.0, 0.9999999};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        for (uint64_t block = 0; block < 64; block++)
            compare_bits(&(lam_drop){.p = p[i], .seed = 11, .step = 1, .site = 2}, block);
}
END_TEST

/* Rows of odd width begin a block of their own, so a row's bits are found without its neighbours. */
START_TEST(rows_of_odd_width_begin_a_block)
{
    const lam_drop drop = {.p = 0.25, .seed = 5, .step = 9, .site = 4};
    const lam_mask mask = lam_mask_make(&drop);
    const uint32_t threshold = lam_drop_threshold(drop.p);
    for (size_t width = 1; width < 150; width += 7)
        for (size_t row = 0; row < 5; row++)
            for (size_t c = 0; c < width; c++) {
                const uint64_t bits = lam_mask_bits(&mask, lam_mask_block(row, width) + c / 64 * 8);
                const uint64_t index = row * ((width + 7) / 8 * 8) + c;
                ck_assert_int_eq((int)(bits >> c % 64 & 1),
                                 lam_drop_keep(drop.seed, drop.step, drop.site, index, threshold));
            }
}
END_TEST

START_TEST(keep16_clears_exactly_the_dropped_lanes)
{
    float x[16], y[16];
    for (int i = 0; i < 16; i++)
        x[i] = (float)(i + 1);
    for (uint64_t bits = 0; bits < 65536; bits += 17) {
        lam_store(y, lam_keep16(lam_load(x), bits | UINT64_C(0xabcd0000)));
        for (int i = 0; i < 16; i++)
            ck_assert(y[i] == (bits >> i & 1 ? x[i] : 0.0f));
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, bits_equal_the_scalar_definition);
    tcase_add_test(tests, bits_carry_into_the_high_counter_word);
    tcase_add_test(tests, extreme_probabilities);
    tcase_add_test(tests, rows_of_odd_width_begin_a_block);
    tcase_add_test(tests, keep16_clears_exactly_the_dropped_lanes);
    return test_run("ops/cpu/philox", tests);
}
