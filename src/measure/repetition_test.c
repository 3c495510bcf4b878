/* repetition_test.c -- counts that can be done by hand, and those of a text of random words done by comparing
 * everything with everything. */
#include "measure/repetition.h"

#include "support/suite.h"

#include <math.h>
#include <string.h>

static lam_repetition of(const char *text)
{
    lam_repetition r;
    ck_assert(lam_repetition_of(&r, text, strlen(text)) == LAM_OK);
    return r;
}

START_TEST(counts_are_those_made_by_hand)
{
    const lam_repetition r = of("  the cat and\tthe dog and the\n\ncat ");
    ck_assert_int_eq(r.words, 8);
    ck_assert_double_eq(r.distinct[0], 4.0 / 8.0); /* the cat and dog */
    ck_assert_double_eq(r.distinct[1], 5.0 / 7.0); /* the-cat twice, and-the twice */
    ck_assert_double_eq(r.distinct[2], 6.0 / 6.0);
    ck_assert_double_eq(r.repeated, 4.0 / 8.0);
}
END_TEST

START_TEST(a_text_of_one_word_repeats_all_but_the_first)
{
    const lam_repetition r = of("so so so so so");
    ck_assert_double_eq(r.distinct[0], 0.2);
    ck_assert_double_eq(r.distinct[3], 0.5);
    ck_assert_double_eq(r.repeated, 0.8);
}
END_TEST

START_TEST(a_word_is_not_its_beginning)
{
    ck_assert_double_eq(of("a ab abc a\0b").distinct[0], 3.0 / 4.0);
}
END_TEST

START_TEST(texts_without_enough_words_have_no_number)
{
    ck_assert_int_eq(of(" \n").words, 0);
    ck_assert(isnan(of("").repeated));
    ck_assert(isnan(of("").distinct[0]));
    ck_assert_double_eq(of("one two").distinct[1], 1.0);
    ck_assert(isnan(of("one two").distinct[2]));
}
END_TEST

START_TEST(random_words_agree_with_comparing_all_pairs)
{
    enum { WORDS = 300 };
    lam_rng rng = test_rng(5);
    char text[2 * WORDS + 1] = "", *at = text;
    int ids[WORDS];
    for (int i = 0; i < WORDS; i++) {
        ids[i] = (int)lam_rng_below(&rng, 20);
        *at++ = (char)('a' + ids[i]);
        *at++ = ' ';
    }
    const lam_repetition r = of(text);
    for (int n = 1; n <= LAM_DISTINCT; n++) {
        int different = 0;
        for (int i = 0; i + n <= WORDS; i++) {
            int seen = 0;
            for (int k = 0; k < i; k++)
                seen |= memcmp(ids + k, ids + i, (size_t)n * sizeof *ids) == 0;
            different += !seen;
        }
        ck_assert_double_eq(r.distinct[n - 1], (double)different / (WORDS - n + 1));
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, counts_are_those_made_by_hand);
    tcase_add_test(tests, a_text_of_one_word_repeats_all_but_the_first);
    tcase_add_test(tests, a_word_is_not_its_beginning);
    tcase_add_test(tests, texts_without_enough_words_have_no_number);
    tcase_add_test(tests, random_words_agree_with_comparing_all_pairs);
    return test_run("measure/repetition", tests);
}
