/* division_test.c -- parts, percentages and sizes are told apart, and cut where they say. */
#include "data/division.h"

#include "support/suite.h"

#include <string.h>

static const struct {
    const char *text;
    int64_t total, ends[LAM_SPLITS];
} cuts[] = {
    {"90/5/5", 1000, {900, 950, 1000}},
    {"90%/5%/5%", 1000, {900, 950, 1000}},
    {"0.9/0.05/0.05", 1000, {900, 950, 1000}},
    {"90M/5M/5M", 100000000, {90000000, 95000000, 100000000}},
    {"90/5/5", 100000000, {90000000, 95000000, 100000000}},
    {"0.9/0.05/0.05", 100000000, {90000000, 95000000, 100000000}},
    {"33.3/33.3/33.4", 10, {3, 6, 10}},
    {"100/0/0", 7, {7, 7, 7}},
    {"1/0/0", 7, {7, 7, 7}},
    {"5k/1k/1k", 10000, {5000, 6000, 7000}}, /* the rest is left out */
    {"500k/20k/0", 550000, {500000, 520000, 520000}},
    {"80/10/10", 1, {0, 0, 1}},
};

START_TEST(texts_are_cut_where_it_says)
{
    lam_division d;
    int64_t ends[LAM_SPLITS];
    ck_assert_int_eq(lam_division_parse(&d, cuts[_i].text, LAM_DIVISION_ANY), LAM_OK);
    ck_assert_int_eq(lam_division_cut(&d, cuts[_i].total, ends), LAM_OK);
    for (int s = 0; s < LAM_SPLITS; s++)
        ck_assert_int_eq(ends[s], cuts[_i].ends[s]);
}
END_TEST

static const char *const wrong[] = {"",
                                    "90",
                                    "90/5",
                                    "90/5/5/0",
                                    "a/b/c",
                                    "90/5/x",
                                    "-90/5/5",
                                    "nan/0/0",
                                    "inf/1/1",
                                    "0/50/50",
                                    "0.5/1/1",
                                    "90 /5 /5",
                                    "1e30/1/1",
                                    "90/5/5 ",
                                    "0x5a/5/5",
                                    "90/ 5/5",
                                    "1e999/1/1",
                                    "90/5/\t5",
                                    "80/10/20",
                                    "500/20/30",
                                    "90M/5/5",
                                    "90M/5%/5",
                                    "0.5k/0.0001k/0k",
                                    "90%/5%/4%",
                                    "0.9%/0.05%/0.05%"};

START_TEST(nonsense_is_refused)
{
    lam_division d;
    ck_assert_int_eq(lam_division_parse(&d, wrong[_i], LAM_DIVISION_ANY), LAM_ERR_ARG);
}
END_TEST

START_TEST(numbers_of_tokens_are_asked_for)
{
    lam_division d;
    int64_t ends[LAM_SPLITS];
    ck_assert_int_eq(lam_division_parse(&d, "80/10/20", LAM_DIVISION_ANY), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "percentages must add up to 100"));
    ck_assert_int_eq(lam_division_parse(&d, "80/10/20", LAM_DIVISION_SIZES), LAM_OK);
    ck_assert_int_eq(lam_division_cut(&d, 1000, ends), LAM_OK);
    ck_assert_int_eq(ends[LAM_TEST], 110);
    ck_assert_int_eq(lam_division_parse(&d, "80/10/10", LAM_DIVISION_SIZES), LAM_OK);
    ck_assert(d.sizes); /* not percentages */
    ck_assert_int_eq(lam_division_parse(&d, "80%/10/10", LAM_DIVISION_SIZES), LAM_ERR_ARG);
    ck_assert_int_eq(lam_division_parse(&d, "0.5/10/10", LAM_DIVISION_SIZES), LAM_ERR_ARG);
}
END_TEST

START_TEST(too_short_a_text_is_named)
{
    lam_division d;
    int64_t ends[LAM_SPLITS];
    ck_assert_int_eq(lam_division_parse(&d, "90M/5M/5M", LAM_DIVISION_ANY), LAM_OK);
    ck_assert_int_eq(lam_division_cut(&d, 99999999, ends), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "the text has 99999999 tokens, the split needs 100000000");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, texts_are_cut_where_it_says, 0, (int)(sizeof cuts / sizeof *cuts));
    tcase_add_loop_test(tests, nonsense_is_refused, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(tests, numbers_of_tokens_are_asked_for);
    tcase_add_test(tests, too_short_a_text_is_named);
    return test_run("data/division", tests);
}
