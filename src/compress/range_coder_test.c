/* range_coder_test.c -- what was encoded comes back; sizes are what frequencies say; damage is bounded. */
#include "compress/range_coder.h"

#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOLS = 20000 };

typedef struct span {
    uint32_t first, count;
} span;

/* Spans of all sizes, the smallest and the largest among them. */
static span draw(lam_rng *rng)
{
    const uint32_t kind = (uint32_t)lam_rng_below(rng, 5);
    if (kind == 0)
        return (span){LAM_TOTAL - 1, 1};
    if (kind == 1)
        return (span){0, 1};
    if (kind == 2)
        return (span){1, LAM_TOTAL - 2};
    const uint32_t first = (uint32_t)lam_rng_below(rng, LAM_TOTAL - 1);
    return (span){first, 1 + (uint32_t)lam_rng_below(rng, LAM_TOTAL - first)};
}

static void check_round_trip(int n, lam_rng *rng)
{
    static span spans[SYMBOLS];
    static uint8_t bytes[4 * SYMBOLS + 16];
    lam_range_encoder e;
    lam_range_decoder d;
    double bits = 0.0;
    lam_range_start(&e, bytes, sizeof bytes);
    for (int i = 0; i < n; i++) {
        spans[i] = draw(rng);
        lam_range_put(&e, spans[i].first, spans[i].count);
        bits -= log2((double)spans[i].count / LAM_TOTAL);
    }
    lam_range_finish(&e);
    ck_assert_int_eq(e.full, 0);
    ck_assert_double_le((double)e.n, bits / 8 * (1 + 1e-6) + 2);

    lam_range_open(&d, bytes, e.n);
    for (int i = 0; i < n; i++) {
        uint32_t value;
        must(lam_range_peek(&d, &value));
        ck_assert_uint_ge(value, spans[i].first);
        ck_assert_uint_lt(value - spans[i].first, spans[i].count);
        lam_range_take(&d, spans[i].first, spans[i].count);
    }
    ck_assert_int_eq(lam_range_at_end(&d), 1);
}

START_TEST(symbols_come_back_at_the_size_of_their_entropy)
{
    lam_rng rng = test_rng(7);
    for (int n = 0; n < 300; n++)
        check_round_trip(n, &rng);
    check_round_trip(SYMBOLS, &rng);
}
END_TEST

/* The upper end again and again: the longest chains of carries. */
START_TEST(carries_run_through_many_bytes)
{
    uint8_t bytes[400];
    lam_range_encoder e;
    lam_range_decoder d;
    uint32_t value;
    lam_range_start(&e, bytes, sizeof bytes);
    for (int i = 0; i < 100; i++)
        lam_range_put(&e, LAM_TOTAL - 1, 1);
    lam_range_put(&e, LAM_TOTAL - 2, 2);
    lam_range_finish(&e);
    lam_range_open(&d, bytes, e.n);
    for (int i = 0; i < 100; i++) {
        must(lam_range_peek(&d, &value));
        ck_assert_uint_eq(value, LAM_TOTAL - 1);
        lam_range_take(&d, LAM_TOTAL - 1, 1);
    }
}
END_TEST

START_TEST(a_full_buffer_is_told_and_never_passed)
{
    uint8_t bytes[11];
    lam_range_encoder e;
    memset(bytes, 7, sizeof bytes);
    lam_range_start(&e, bytes, 10);
    for (int i = 0; i < 100; i++)
        lam_range_put(&e, 12345, 1);
    lam_range_finish(&e);
    ck_assert_int_eq(e.full, 1);
    ck_assert_uint_eq(bytes[10], 7);
}
END_TEST

START_TEST(any_bytes_decode_to_something_or_an_error)
{
    lam_rng rng = test_rng(11);
    uint8_t bytes[64];
    for (int round = 0; round < 2000; round++) {
        lam_range_decoder d;
        uint32_t value;
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = round % 2 ? 0xff : (uint8_t)lam_rng_below(&rng, 256);
        lam_range_open(&d, bytes, sizeof bytes);
        for (int i = 0; i < 100 && lam_range_peek(&d, &value) == LAM_OK; i++) {
            ck_assert_uint_lt(value, LAM_TOTAL);
            lam_range_take(&d, value, 1);
        }
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, symbols_come_back_at_the_size_of_their_entropy);
    tcase_add_test(tests, carries_run_through_many_bytes);
    tcase_add_test(tests, a_full_buffer_is_told_and_never_passed);
    tcase_add_test(tests, any_bytes_decode_to_something_or_an_error);
    return test_run("compress/range_coder", tests);
}
