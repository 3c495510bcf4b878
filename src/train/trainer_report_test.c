/* trainer_report_test.c -- what a step reports: every loss since the last report, and numbers that are not finite. */
#include "train/trainer.h"

#include "support/suite.h"
#include "support/toyrun.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST(the_memorys_own_loss_is_reported)
{
    static const char *const memories[] = {"xl", "compressive", "infinite"};
    for (int m = 0; m < 3; m++) {
        const lam_config cfg = toyrun_config(memories[m]);
        const lam_settings s = toyrun_settings();
        toyrun r = toyrun_open("ref", &cfg, &s);
        lam_step_report report;
        double aux = 0.0;
        for (int step = 0; step < 6; step++)
            must(lam_trainer_step(r.trainer, &report));
        must(lam_stack_aux(r.trainer->stack, &aux));
        ck_assert_double_eq(report.aux, aux);
        ck_assert_msg(m == 0 ? report.aux == 0.0 : report.aux > 0.0, "%s: %g", memories[m],
                      report.aux);
        toyrun_close(&r);
    }
}
END_TEST

/* Puts `value` into the first number of the parameter called `name`. */
static void spoil(toyrun *r, const char *name, double value)
{
    lam_params *p = &r->model->params;
    const int i = lam_params_find(p, name);
    ck_assert_msg(i >= 0, "no parameter %s", name);
    double *x = malloc(lam_param_count(&p->list[i]) * sizeof *x);
    ck_assert_ptr_nonnull(x);
    must(lam_params_get(p, p->master, i, x));
    x[0] = value;
    must(lam_params_set(p, p->master, i, x));
    free(x);
}

/* What was not asked for after each step is in the next report, as if it had been. */
START_TEST(a_report_covers_the_steps_since_the_last)
{
    static const char *const devices[] = {"ref", "cpu"};
    enum { STEPS = 5 };
    const lam_config cfg = toyrun_config("lamemo");
    lam_settings s = toyrun_settings();
    s.batch_chunk = 2;
    toyrun a = toyrun_open(devices[_i], &cfg, &s), b = toyrun_open(devices[_i], &cfg, &s);
    lam_step_report each, all;
    double nll = 0.0;
    int64_t tokens = 0;
    for (int i = 0; i < STEPS; i++) {
        must(lam_trainer_step(a.trainer, &each));
        must(lam_trainer_step(b.trainer, i + 1 < STEPS ? NULL : &all));
        nll += each.nll;
        tokens += each.tokens;
    }
    ck_assert_msg(fabs(all.nll / nll - 1.0) < 1e-12, "%.17g, not %.17g", all.nll, nll);
    ck_assert(all.tokens == tokens && all.skipped == 0 && all.grad_norm == each.grad_norm);
    ck_assert(toyrun_equal(&a, &b));
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

/* A number of the model is bad for one step: the step changes nothing, and is counted.  A memory remembers it, so
 * the next step is skipped too, until the report empties it. */
START_TEST(a_skipped_step_is_counted_and_its_loss_left_out)
{
    static const char *const memories[] = {"none", "xl", "lamemo"};
    const lam_config cfg = toyrun_config(memories[_i]);
    const lam_settings s = toyrun_settings();
    toyrun r = toyrun_open("cpu", &cfg, &s);
    const lam_params *p = &r.model->params;
    const char *const name = "layers.0.pos_ff.CoreNet.0.bias";
    double first[64];
    const int at = lam_params_find(p, name), bad = _i == 0 ? 1 : 2;
    lam_step_report report;
    ck_assert(at >= 0 && lam_param_count(&p->list[at]) <= 64);
    must(lam_trainer_step(r.trainer, NULL));
    must(lam_params_get(p, p->master, at, first));
    spoil(&r, name, NAN);
    must(lam_trainer_step(r.trainer, NULL));
    spoil(&r, name, first[0]);
    must(lam_trainer_step(r.trainer, &report));
    ck_assert_int_eq(report.skipped, bad);
    ck_assert_int_eq(report.tokens, (3 - bad) * r.trainer->tokens);
    ck_assert_int_eq(p->list[at].steps, 3 - bad); /* Adam's own count */
    ck_assert(isfinite(report.nll));
    must(lam_trainer_step(r.trainer, &report));
    ck_assert(report.skipped == 0 && report.tokens == r.trainer->tokens);
    ck_assert(isfinite(report.nll) && isfinite(report.grad_norm));
    toyrun_close(&r);
}
END_TEST

START_TEST(a_number_that_is_not_finite_stops_the_run_and_changes_nothing)
{
    const lam_config cfg = toyrun_config("lamemo");
    const lam_settings s = toyrun_settings();
    static const char *const devices[] = {"ref", "cpu"};
    toyrun r = toyrun_open(devices[_i], &cfg, &s);
    lam_step_report report;
    size_t n;
    toyrun_steps(&r, 3, NULL);
    spoil(&r, "layers.0.pos_ff.CoreNet.0.bias", INFINITY);
    double *before = toyrun_params(&r, &n);
    ck_assert_int_eq(lam_trainer_step(r.trainer, &report), LAM_ERR_NUMERIC);
    ck_assert_msg(strncmp(lam_error(), "step 4: the loss is ", 20) == 0, "%s", lam_error());
    ck_assert_int_eq(r.trainer->state.step, 3);
    /* Not even a step that nobody looks at. */
    must(lam_trainer_step(r.trainer, NULL));
    double *after = toyrun_params(&r, &n);
    ck_assert_int_eq(memcmp(before, after, n * sizeof *before), 0);
    free(before);
    free(after);
    toyrun_close(&r);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, the_memorys_own_loss_is_reported);
    tcase_add_loop_test(tests, a_report_covers_the_steps_since_the_last, 0, 2);
    tcase_add_loop_test(tests, a_skipped_step_is_counted_and_its_loss_left_out, 0, 3);
    tcase_add_loop_test(tests, a_number_that_is_not_finite_stops_the_run_and_changes_nothing, 0, 2);
    return test_run("train/trainer_report", tests);
}
