/* sweep_test.c -- how much a sweep reads when nobody says it. */
#include "measure/sweep.h"

#include "support/suite.h"
#include "support/toyrun.h"

static lam_sweep_options ten_lengths(void)
{
    lam_sweep_options o = {.tgt_len = 64, .n = 10, .tokens = -1, .work = 1e13, .skip = 10};
    for (int i = 0; i < o.n; i++)
        o.lengths[i] = 64 * (i + 1);
    return o;
}

static const lam_tokens text = {.count = 5000000};

/* What it takes: the segments that count and half of those that fill memories. */
static double work_of(const lam_sweep_options *o, double macs)
{
    return macs * lam_sweep_weight(o, &text);
}

START_TEST(work_is_what_was_granted)
{
    const double macs[] = {1e9, 1e10, 3e10, 1e11};
    for (size_t i = 0; i < sizeof macs / sizeof *macs; i++) {
        lam_sweep_options o = ten_lengths();
        lam_sweep_resolve(&o, macs[i], &text);
        ck_assert_int_ge(o.batch, 8);
        ck_assert_int_le(o.batch, 64);
        ck_assert_int_eq((int)(o.tokens % (64 * o.batch)), 0);
        ck_assert_int_ge((int)(o.tokens / (64 * o.batch)), 4);
        ck_assert_double_le(work_of(&o, macs[i]), o.work);
        if (o.tokens < 65536)
            ck_assert_double_ge(work_of(&o, macs[i]), 0.7 * o.work);
    }
}
END_TEST

START_TEST(large_models_read_the_least_and_small_ones_enough)
{
    lam_sweep_options o = ten_lengths();
    lam_sweep_resolve(&o, 1e15, &text);
    ck_assert_int_eq(o.batch, 8);
    ck_assert_int_eq(o.tokens, 8 * 4 * 64);
    o = ten_lengths();
    lam_sweep_resolve(&o, 1.0, &text);
    ck_assert_int_eq(o.batch, 64);
    ck_assert_int_eq(o.tokens, 65536);
}
END_TEST

START_TEST(what_is_asked_for_is_kept)
{
    lam_sweep_options o = ten_lengths();
    o.tokens = 32768;
    lam_sweep_resolve(&o, 1e11, &text);
    ck_assert_int_eq(o.tokens, 32768);
    ck_assert_int_eq(o.batch, 64);
    o = ten_lengths();
    o.tokens = 0;
    o.batch = 3;
    lam_sweep_resolve(&o, 1e11, &text);
    ck_assert_int_eq(o.tokens, 0);
    ck_assert_int_eq(o.batch, 3);
}
END_TEST

/* Every column must fill its memory and have something left; long memories take room. */
START_TEST(columns_are_as_many_as_there_is_text_and_room)
{
    const lam_tokens little = {.count = 3 * 16 * 64};
    lam_sweep_options o = ten_lengths();
    lam_sweep_resolve(&o, 1.0, &little);
    ck_assert_int_eq(o.batch, 3);
    const lam_tokens less = {.count = 100};
    o = ten_lengths();
    lam_sweep_resolve(&o, 1.0, &less);
    ck_assert_int_eq(o.batch, 1);
    o = ten_lengths();
    o.lengths[9] = 8192;
    lam_sweep_resolve(&o, 1.0, &text);
    ck_assert_int_eq(o.batch, 7);
}
END_TEST

/* 100 columns of 16 million rows would be refused. */
START_TEST(no_room_is_taken_for_a_memory_that_the_text_cannot_fill)
{
    const lam_config cfg = toyrun_config("xl");
    const lam_settings s = toyrun_settings();
    toyrun r = toyrun_open("ref", &cfg, &s);
    const lam_sweep_options o = {.tgt_len = 7, .batch = 100};
    lam_sweep_point point = {.mem_len = 1 << 24};
    must(lam_sweep_run(&point, r.model, r.text, &o, NULL, NULL));
    ck_assert_int_eq(point.result.tokens, 100 * 2); /* 300 tokens: columns of 3 */
    lam_parted_free(&point.nll);
    toyrun_close(&r);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, work_is_what_was_granted);
    tcase_add_test(tests, large_models_read_the_least_and_small_ones_enough);
    tcase_add_test(tests, what_is_asked_for_is_kept);
    tcase_add_test(tests, columns_are_as_many_as_there_is_text_and_room);
    tcase_add_test(tests, no_room_is_taken_for_a_memory_that_the_text_cannot_fill);
    return test_run("measure/sweep", tests);
}
