/* trainer_past_test.c -- the past a step sees: none, short, emptied every so often or at an epoch's end. */
#include "train/trainer.h"

#include "core/machine.h"
#include "support/suite.h"
#include "support/toyrun.h"
#include "train/run.h"

#include <math.h>
#include <string.h>

START_TEST(xl_without_memory_is_none)
{
    enum { STEPS = 25 }; /* past the end of the text */
    lam_config none = toyrun_config("none"), xl = toyrun_config("xl");
    xl.mem_len = 0;
    const lam_settings s = toyrun_settings();
    double x[STEPS], y[STEPS];
    toyrun a = toyrun_open("ref", &none, &s), b = toyrun_open("ref", &xl, &s);
    toyrun_steps(&a, STEPS, x);
    toyrun_steps(&b, STEPS, y);
    for (int i = 0; i < STEPS; i++)
        ck_assert_msg(x[i] == y[i], "step %d: %.17g and %.17g", i + 1, x[i], y[i]);
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

START_TEST(a_short_memory_is_that_memory_until_it_grows)
{
    enum { SHORT = 10, STEPS = 14 };
    lam_config cfg = toyrun_config("lamemo"), little = cfg;
    lam_settings s = toyrun_settings();
    double x[STEPS], y[STEPS];
    little.mem_len = 2;
    toyrun b = toyrun_open("ref", &little, &s);
    s.short_mem = 2;
    s.short_mem_part = 0.1; /* of 100 steps */
    toyrun a = toyrun_open("ref", &cfg, &s);
    ck_assert_int_eq(lam_trainer_mem_len(a.trainer), 2);
    toyrun_steps(&a, STEPS, x);
    toyrun_steps(&b, STEPS, y);
    for (int i = 0; i < SHORT; i++)
        ck_assert_msg(x[i] == y[i], "step %d: %.17g and %.17g", i + 1, x[i], y[i]);
    ck_assert(x[SHORT] != y[SHORT] && x[STEPS - 1] != y[STEPS - 1]); /* empty, then longer */
    ck_assert_int_eq(lam_trainer_mem_len(a.trainer), 4);
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

START_TEST(a_memory_that_will_not_fit_is_refused_before_the_first_step)
{
    enum { LONG = 100000 };
    const lam_config cfg = toyrun_config("lamemo");
    lam_settings s = toyrun_settings();
    s.short_mem = 2;
    s.short_mem_part = 0.8;
    toyrun r = toyrun_open("ref", &cfg, &s);
    lam_trainer *t;
    size_t growth;
    must(lam_trainer_growth(&growth, r.trainer));
    ck_assert_uint_gt(growth, 0);
    ck_assert_uint_lt(growth, (size_t)1 << 20);
    r.model->cfg.mem_len = LONG;
    r.dev->max_memory =
        lam_machine_used() + ((size_t)100 << 20); /* for the short one it is enough */
    ck_assert_int_eq(lam_trainer_create(&t, r.model, r.text, &s, NULL), LAM_ERR_MEMORY);
    ck_assert_ptr_null(t);
    ck_assert_msg(strstr(lam_error(), "batch_size 4, batch_chunk 1, tgt_len 4 and mem_len 100000: "
                                      "needs ") &&
                      strstr(lam_error(), "max_memory"),
                  "%s", lam_error());
    toyrun_close(&r);
}
END_TEST

START_TEST(an_evaluation_that_will_not_fit_is_refused_before_the_first_step)
{
    lam_config cfg = toyrun_config("lamemo");
    lam_settings s = toyrun_settings();
    cfg.mem_len = 2 * LAM_FIT_LEAST;
    s.eval_batch_size = 100;
    toyrun r = toyrun_open("ref", &cfg, &s);
    lam_tokens other = *r.text;
    const lam_run_options options = {.valid = &other};
    must(lam_run_check(r.trainer, &options));
    r.dev->max_memory = lam_machine_used() + ((size_t)100 << 20);
    ck_assert_int_eq(lam_run_check(r.trainer, &options), LAM_ERR_MEMORY);
    ck_assert_msg(strstr(lam_error(), "eval_batch_size 100, "), "%s", lam_error());
    must(lam_run_check(r.trainer, &(lam_run_options){0})); /* without evaluation */
    toyrun_close(&r);
}
END_TEST

/* The loss of the last batch of `batch` with the parameters of `r` and no past. */
static double loss_without_past(const toyrun *r, const toyrun *batch)
{
    enum { B = 4, N = 4 };
    lam_stack *stack;
    double nll[B * N], sum = 0.0;
    must(lam_stack_create(&stack, r->model,
                          &(lam_stack_options){.B = B, .N = N, .M = r->model->cfg.mem_len}));
    lam_stack_begin(stack, N, (lam_stack_dropout){0});
    lam_stack_forward(stack, batch->trainer->inputs, N);
    lam_stack_loss(stack, batch->trainer->targets, 0.0);
    must(lam_stack_nll(stack, nll));
    for (int i = 0; i < B * N; i++)
        sum += nll[i];
    lam_stack_free(stack);
    return sum / (B * N);
}

/* The second period is long enough for coarser and long-term parts to hold something. */
START_TEST(every_so_many_steps_begin_without_a_past)
{
    static const char *const memories[] = {"none", "xl", "lamemo", "compressive carry thirds",
                                           "infinite within"};
    const int every = _i % 2 ? 5 : 2, forgetful = _i / 2 > 0;
    lam_config cfg = toyrun_config(memories[_i / 2]);
    cfg.dropout = 0.0;
    lam_settings s = toyrun_settings();
    s.batch_chunk = _i % 2 ? 2 : 1;
    toyrun b = toyrun_open("ref", &cfg, &s);
    s.mem_reset.every = every;
    toyrun a = toyrun_open("ref", &cfg, &s);
    double x[6], y[6], more;
    toyrun_steps(&a, every + 1, x);
    toyrun_steps(&b, every, y);
    ck_assert_int_eq(memcmp(x, y, (size_t)every * sizeof *x), 0);
    ck_assert_double_eq_tol(x[every], loss_without_past(&b, &a), 1e-12);
    toyrun_steps(&b, 1, y + every);
    ck_assert_msg((x[every] != y[every]) == forgetful, "%.17g, %.17g", x[every], y[every]);
    toyrun before = toyrun_open("ref", &cfg, &s); /* and the step after has a past again */
    toyrun_steps(&before, every + 1, NULL);
    toyrun_steps(&a, 1, &more);
    ck_assert((fabs(more - loss_without_past(&before, &a)) > 1e-9) == forgetful);
    toyrun_close(&a);
    toyrun_close(&b);
    toyrun_close(&before);
}
END_TEST

START_TEST(an_epoch_begins_without_a_past)
{
    static const char *const memories[] = {"xl", "lamemo", "compressive carry thirds",
                                           "infinite within"};
    lam_config cfg = toyrun_config(memories[_i]);
    cfg.dropout = 0.0;
    const lam_settings s = toyrun_settings();
    toyrun a = toyrun_open("ref", &cfg, &s),
           b = toyrun_open("ref", &cfg, &s); /* b is a step behind */
    double loss;
    for (;;) {
        toyrun_steps(&a, 1, &loss);
        if (lam_batcher_where(a.trainer->batcher)->epoch == 1)
            break;
        toyrun_steps(&b, 1, NULL);
    }
    ck_assert_double_eq_tol(loss, loss_without_past(&b, &a), 1e-12);
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, xl_without_memory_is_none);
    tcase_add_test(tests, a_short_memory_is_that_memory_until_it_grows);
    tcase_add_test(tests, a_memory_that_will_not_fit_is_refused_before_the_first_step);
    tcase_add_test(tests, an_evaluation_that_will_not_fit_is_refused_before_the_first_step);
    tcase_add_loop_test(tests, every_so_many_steps_begin_without_a_past, 0, 10);
    tcase_add_loop_test(tests, an_epoch_begins_without_a_past, 0, 4);
    return test_run("train/trainer_past", tests);
}
