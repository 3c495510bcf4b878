/* mix_test.c -- mixing comes back, gains where the model knows nothing, loses next to nothing where it knows all, and
 * its numbers are known ones. */
#include "compress/mix.h"

#include "compress/cdf.h"

#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { N = 30000, ROOM = 4 * N };

static int text[N];
static uint8_t bytes[ROOM];

static void even(uint32_t *cum, int symbols)
{
    for (int i = 0; i <= symbols; i++)
        cum[i] = (uint32_t)((uint64_t)LAM_TOTAL * (uint64_t)i / (uint64_t)symbols);
}

static void skewed(uint32_t *cum, int symbols)
{
    uint32_t freq[300], left = LAM_TOTAL;
    for (int i = 0; i < symbols - 1; i++) { /* something is left for all that follow */
        freq[i] = 1 + (left - (uint32_t)(symbols - i)) / 4;
        left -= freq[i];
    }
    freq[symbols - 1] = left;
    lam_cdf_add_up(cum, freq, symbols);
}

/* Codes `text` under cum, checks that it comes back, and returns the size. */
static size_t pass(const uint32_t *cum, int symbols, int streams)
{
    lam_mix *m;
    lam_range_encoder e;
    lam_range_decoder d;
    must(lam_mix_create(&m, symbols, streams, N));
    for (int round = 0; round < 2; round++) { /* a reset one is a new one */
        lam_mix_reset(m);
        lam_range_start(&e, bytes, sizeof bytes);
        for (int i = 0; i < N; i++)
            lam_mix_put(m, i % streams, cum, text[i], &e);
        lam_range_finish(&e);
        ck_assert_int_eq(e.full, 0);
    }
    lam_mix_reset(m);
    lam_range_open(&d, bytes, e.n);
    for (int i = 0; i < N; i++) {
        int symbol = -1;
        must(lam_mix_take(m, i % streams, cum, &symbol, &d));
        ck_assert_int_eq(symbol, text[i]);
    }
    lam_mix_free(m);
    return e.n;
}

START_TEST(symbols_of_any_alphabet_come_back)
{
    static const int sizes[] = {2, 3, 5, 16, 17, 255, 256, 257, 300};
    lam_rng rng = test_rng(1);
    uint32_t cum[301];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        even(cum, sizes[k]);
        for (int i = 0; i < N; i++)
            text[i] = (int)lam_rng_below(&rng, (uint64_t)sizes[k]);
        pass(cum, sizes[k], 1 + (int)k);
    }
}
END_TEST

START_TEST(a_text_that_repeats_itself_becomes_small)
{
    uint32_t cum[257];
    even(cum, 256);
    for (int i = 0; i < N; i++)
        text[i] = (i * i / 7 + i % 13) % 97 + (i % 500 == 0);
    const size_t plain = N; /* what the model alone, who knows nothing, would take */
    for (int i = 600; i < N; i++)
        text[i] = text[i - 600];
    ck_assert_uint_lt(pass(cum, 256, 1), plain / 20);
}
END_TEST

/* Symbols drawn as the model says: there is nothing to learn. */
START_TEST(a_model_that_knows_all_loses_next_to_nothing)
{
    lam_rng rng = test_rng(2);
    uint32_t cum[257];
    double bits = 0.0;
    skewed(cum, 256);
    for (int i = 0; i < N; i++) {
        text[i] = lam_cdf_find(cum, 256, (uint32_t)lam_rng_below(&rng, LAM_TOTAL));
        bits -= log2((double)(cum[text[i] + 1] - cum[text[i]]) / LAM_TOTAL);
    }
    const double size = (double)pass(cum, 256, 4);
    ck_assert_msg(size < bits / 8.0 * 1.005 + 8, "%.0f bytes, not %.0f", size, bits / 8.0);
}
END_TEST

/* The archive format depends on every one of these bytes. */
START_TEST(the_bytes_are_the_known_ones)
{
    uint32_t cum[301];
    skewed(cum, 300);
    uint32_t x = 1;
    for (int i = 0; i < N; i++) {
        x = x * 1664525u + 1013904223u;
        text[i] = i % 5 ? text[i - 1] / 2 : (int)((x >> 16) % 300);
    }
    const size_t size = pass(cum, 300, 3);
    const uint64_t hash = XXH64(bytes, size, 0);
    ck_assert_msg(hash == UINT64_C(0xeda0757a471eba9b), "%zu bytes, %016llx", size,
                  (unsigned long long)hash);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, symbols_of_any_alphabet_come_back);
    tcase_add_test(tests, a_text_that_repeats_itself_becomes_small);
    tcase_add_test(tests, a_model_that_knows_all_loses_next_to_nothing);
    tcase_add_test(tests, the_bytes_are_the_known_ones);
    return test_run("compress/mix", tests);
}
