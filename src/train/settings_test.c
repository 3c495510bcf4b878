/* settings_test.c -- what a preset is trained with, what the optimiser is told, when a run is over, and what of it
 * may change. */
#include "train/settings.h"

#include "model/configure.h"
#include "nn/config.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

START_TEST(every_preset_has_a_batch_and_a_length)
{
    for (int i = 0; lam_preset_name(i); i++) {
        lam_settings s;
        lam_settings_defaults(&s);
        lam_settings_preset(&s, lam_preset_name(i));
        ck_assert_msg(s.batch_size > 0 && s.max_step > 0, "%s", lam_preset_name(i));
    }
}
END_TEST

START_TEST(a_run_is_complete_by_its_steps_or_by_the_clock_of_its_schedule)
{
    lam_settings s;
    lam_settings_defaults(&s);
    s.max_step = 10;
    ck_assert(!lam_settings_complete(&s, 9, 1e9)); /* no clock holds */
    ck_assert(lam_settings_complete(&s, 10, 0.0));
    ck_assert(lam_settings_complete(&s, 11, 0.0)); /* --max-step was lowered */
    s.max_time = 5.0;                              /* of a call: there may be another */
    ck_assert(!lam_settings_complete(&s, 9, 1e9));
    s.scheduler_time = 60.0;
    ck_assert(!lam_settings_complete(&s, 9, 59.9));
    ck_assert(lam_settings_complete(&s, 9, 60.0));
    ck_assert(lam_settings_complete(&s, 10, 0.0)); /* whichever comes first */
}
END_TEST

START_TEST(a_seed_is_any_integer_and_counts_to_its_last_digit)
{
    static const int64_t seeds[] = {INT64_MIN, -1, 0, (1LL << 60) + 1, INT64_MAX};
    lam_settings a, b;
    lam_settings_defaults(&a);
    lam_settings_preset(&a, "tiny");
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        a.seed = seeds[i];
        json_t *json = lam_settings_print(&a);
        b = a;
        b.seed = 5;
        must(lam_settings_parse(&b, json, "test"));
        ck_assert(b.seed == seeds[i]);
        json_decref(json);
        must(lam_settings_same_state(&a, &b));
        b.seed ^= 1;
        ck_assert(lam_settings_same_state(&a, &b) == LAM_ERR_ARG);
    }
    ck_assert_str_eq(lam_error(),
                     "seed 9223372036854775807: the run was begun with 9223372036854775806");
}
END_TEST

START_TEST(the_optimiser_is_told_what_was_set)
{
    lam_settings s;
    lam_settings_defaults(&s);
    s.optim = LAM_OPTIM_MUON;
    s.mom = 0.6;
    s.beta1 = 0.7;
    s.beta2 = 0.8;
    s.adam_eps = 1e-7;
    s.muon_mom = 0.9;
    s.muon_rows = LAM_MUON_ROWS_EVEN;
    s.matrix_lr = 2.0;
    s.embed_lr = 3.0;
    s.vector_lr = 4.0;
    s.clip = 0.5;
    s.clip_together = 1;
    s.weight_decay = 0.01;
    lam_optimizer_options o = lam_settings_optimizer(&s);
    ck_assert(o.rule == lam_rules[LAM_OPTIM_MUON] && o.muon_rows == LAM_MUON_ROWS_EVEN);
    ck_assert(o.beta1 == 0.7 && o.beta2 == 0.8 && o.adam_eps == 1e-7 && o.muon_mom == 0.9 &&
              o.mom == 0.6);
    ck_assert(o.matrix_lr == 2.0 && o.embed_lr == 3.0 && o.vector_lr == 4.0);
    ck_assert(o.clip == 0.5 && o.clip_together == 1 && o.weight_decay == 0.01);
    for (s.optim = 0; s.optim < LAM_OPTIMS; s.optim++) {
        o = lam_settings_optimizer(&s);
        ck_assert_str_eq(o.rule->name, lam_optim_names[s.optim]);
    }
}
END_TEST

/* A moment that never fades is refused where it would be used. */
START_TEST(momenta_are_below_one)
{
    static const struct {
        int optim;
        double mom, beta1, beta2, muon_mom;
        const char *message; /* NULL: none */
    } rows[] = {
        {.optim = LAM_OPTIM_SGD, .mom = 1, .message = "mom is 1, must be below 1"},
        {.optim = LAM_OPTIM_SGD, .beta1 = 1, .beta2 = 1, .muon_mom = 1},
        {.optim = LAM_OPTIM_ADAM, .beta1 = 1, .message = "beta1 is 1, must be below 1"},
        {.optim = LAM_OPTIM_ADAM, .beta2 = 1, .message = "beta2 is 1, must be below 1"},
        {.optim = LAM_OPTIM_ADAM, .mom = 1, .muon_mom = 1},
        {.optim = LAM_OPTIM_MUON, .beta1 = 1, .message = "beta1 is 1, must be below 1"},
        {.optim = LAM_OPTIM_MUON, .muon_mom = 1, .message = "muon_mom is 1, must be below 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lam_settings s;
        lam_settings_defaults(&s);
        lam_settings_preset(&s, "tiny");
        s.optim = rows[i].optim;
        s.mom = rows[i].mom;
        s.beta1 = rows[i].beta1;
        s.beta2 = rows[i].beta2;
        s.muon_mom = rows[i].muon_mom;
        ck_assert_int_eq(lam_settings_check(&s), rows[i].message ? LAM_ERR_ARG : LAM_OK);
        if (rows[i].message)
            ck_assert_str_eq(lam_error(), rows[i].message);
    }
}
END_TEST

/* Another value of the same kind. */
static json_t *changed(const char *name, const json_t *value)
{
    if (json_is_integer(value))
        return json_integer(json_integer_value(value) + 1);
    if (json_is_real(value))
        return json_real(json_real_value(value) / 2 + 0.01);
    if (json_is_boolean(value))
        return json_boolean(!json_is_true(value));
    return json_string(strcmp(name, "recipe") == 0      ? "fast"
                       : strcmp(name, "optim") == 0     ? "muon"
                       : strcmp(name, "muon_rows") == 0 ? "even"
                                                        : "linear");
}

START_TEST(leaves_divide_a_batch_and_are_a_power_of_two)
{
    static const struct {
        int batch, chunk, leaves;
        const char *said;
    } cases[] = {{4, 1, 0, NULL},
                 {4, 1, 1, NULL},
                 {4, 1, 4, NULL},
                 {6, 1, 3, "leaves is 3, must be a power of two"},
                 {6, 1, 4, "batch_size 6 cannot be divided into 4 leaves"},
                 {4, 2, 2,
                  "leaves 2 and batch_chunk 2 contradict each other: both say into how many parts "
                  "the batch is divided"},
                 {4, 1, 8192, "leaves is 8192, must be 0 to 4096"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lam_settings s;
        lam_settings_defaults(&s);
        s.batch_size = cases[i].batch;
        s.batch_chunk = cases[i].chunk;
        s.leaves = cases[i].leaves;
        s.max_step = 1;
        ck_assert_int_eq(lam_settings_check(&s), cases[i].said ? LAM_ERR_ARG : LAM_OK);
        if (cases[i].said)
            ck_assert_str_eq(lam_error(), cases[i].said);
    }
}
END_TEST

START_TEST(a_resumed_run_may_change_all_but_what_its_state_means)
{
    static const char fixed[] =
        " batch_size batch_chunk leaves roll varlen seed recipe optim short_mem ";
    lam_settings then;
    lam_settings_defaults(&then);
    lam_settings_preset(&then, "tiny");
    then.lr = 1.0; /* room for a higher eta_min */
    json_t *all = lam_settings_print(&then);
    int refused = 0;
    for (void *at = json_object_iter(all); at; at = json_object_iter_next(all, at)) {
        const char *const name = json_object_iter_key(at);
        char word[64];
        lam_settings now = then;
        json_t *one = json_object();
        json_object_set_new(one, name, changed(name, json_object_iter_value(at)));
        must(lam_settings_parse(&now, one, "test"));
        ck_assert_msg(memcmp(&now, &then, sizeof now) != 0, "%s", name);
        snprintf(word, sizeof word, " %s ", name);
        const lam_status status = lam_settings_same_state(&now, &then);
        ck_assert_msg(status == (strstr(fixed, word) ? LAM_ERR_ARG : LAM_OK), "%s", name);
        if (status != LAM_OK)
            ck_assert_msg(strstr(lam_error(), name) == lam_error(), "%s", lam_error());
        refused += status != LAM_OK;
        json_decref(one);
    }
    ck_assert_int_eq(refused, 9);
    json_decref(all);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_preset_has_a_batch_and_a_length);
    tcase_add_test(tests, a_run_is_complete_by_its_steps_or_by_the_clock_of_its_schedule);
    tcase_add_test(tests, a_seed_is_any_integer_and_counts_to_its_last_digit);
    tcase_add_test(tests, the_optimiser_is_told_what_was_set);
    tcase_add_test(tests, momenta_are_below_one);
    tcase_add_test(tests, leaves_divide_a_batch_and_are_a_power_of_two);
    tcase_add_test(tests, a_resumed_run_may_change_all_but_what_its_state_means);
    return test_run("train/settings", tests);
}
