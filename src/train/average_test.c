/* average_test.c -- the mean of the weights is their mean, is what a run shows, and does not disturb training.  That it
 * survives a stop: checkpoint_test.c, run_test.c. */
#include "train/average.h"

#include "model/folder.h"
#include "support/suite.h"
#include "support/toyrun.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20, FROM = 13 }; /* steps 14 to 20 are in the mean */

static lam_settings settings_of(int i)
{
    lam_settings s = toyrun_settings();
    s.max_step = STEPS;
    s.optim = i % 2 ? LAM_OPTIM_MUON : LAM_OPTIM_ADAM;
    s.leaves = i / 2 % 2 ? 2 : 0;
    s.average = 1.0 - (double)FROM / STEPS + 1e-9;
    return s;
}

static toyrun open_run(int i, const lam_settings *s)
{
    const lam_config cfg = toyrun_config("lamemo");
    return toyrun_open(i < 4 ? "ref" : "cpu", &cfg, s);
}

/* All numbers of both runs' weights agree to the last bit. */
static void check_same_weights(const toyrun *a, const toyrun *b)
{
    size_t n, m;
    double *x = toyrun_params(a, &n), *y = toyrun_params(b, &m);
    ck_assert_uint_eq(n, m);
    ck_assert(memcmp(x, y, n * sizeof *x) == 0);
    free(x);
    free(y);
}

/* The weights of a run are these numbers. */
static void check_near(const toyrun *r, const double *want, size_t n, double tolerance)
{
    double *x = toyrun_params(r, &n);
    for (size_t k = 0; k < n; k++)
        ck_assert_msg(fabs(x[k] - want[k]) <= tolerance, "number %zu: %.17g, not %.17g", k, x[k],
                      want[k]);
    free(x);
}

START_TEST(what_is_shown_and_saved_is_the_mean_and_training_goes_on)
{
    const double tolerance = _i < 4 ? 1e-14 : 1e-6;
    lam_settings s = settings_of(_i), plain = s;
    plain.average = 0.0;
    toyrun a = open_run(_i, &s), b = open_run(_i, &plain), c = open_run(_i, &plain);
    const char *dir = test_temp_path("averaged");
    size_t n;
    double *sum = toyrun_params(&b, &n);
    memset(sum, 0, n * sizeof *sum);
    for (int i = 0; i < STEPS; i++) {
        toyrun_steps(&a, 1, NULL);
        toyrun_steps(&b, 1, NULL);
        double *x = toyrun_params(&b, &n);
        for (size_t k = 0; k < n && i >= FROM; k++)
            sum[k] += x[k] / (STEPS - FROM);
        free(x);
    }
    const int64_t averaged = a.trainer->state.averaged;
    ck_assert_int_eq(averaged, STEPS - FROM);
    check_same_weights(&a, &b);
    lam_average_show(a.trainer->optimizer, averaged);
    check_near(&a, sum, n, tolerance);
    lam_average_hide(a.trainer->optimizer, averaged);
    check_same_weights(&a, &b);

    must(lam_trainer_save(a.trainer, dir, NULL));
    check_same_weights(&a, &b);
    must(lam_folder_restore(c.model, dir));
    check_near(&c, sum, n, tolerance > 1e-7 ? tolerance : 1e-7); /* float32 in the file */
    must(lam_trainer_resume(c.trainer,
                            dir)); /* a run that does not average goes on with the weights */
    ck_assert_int_eq(c.trainer->state.averaged, 0);
    toyrun_steps(&b, 3, NULL);
    toyrun_steps(&c, 3, NULL);
    check_same_weights(&b, &c);
    free(sum);
    toyrun_close(&a);
    toyrun_close(&b);
    toyrun_close(&c);
}
END_TEST

/* The ACT weights that GEMMs read follow, where they are a copy. */
START_TEST(the_copy_that_gemms_read_is_of_the_mean)
{
    lam_settings s = settings_of(_i);
    toyrun a = open_run(_i, &s);
    lam_params *p = &a.model->params;
    lam_dev *dev = a.dev;
    const size_t bytes = p->total * lam_class_size(dev, LAM_WIDE);
    void *const one = p->weight;
    ck_assert_ptr_eq(one, p->master); /* float on both: a copy is made here */
    toyrun_steps(&a, STEPS, NULL);
    must(dev->ops->alloc(dev, &p->weight, bytes));
    for (int shown = 1; shown >= 0; shown--) {
        if (shown)
            lam_average_show(a.trainer->optimizer, STEPS - FROM);
        else
            lam_average_hide(a.trainer->optimizer, STEPS - FROM);
        ck_assert(memcmp(p->weight, p->master, bytes) == 0); /* their memory is the host's */
        const int mean = memcmp(p->master, a.trainer->optimizer->average, bytes) == 0;
        ck_assert_int_eq(mean, shown);
    }
    dev->ops->release(dev, p->weight);
    p->weight = one;
    toyrun_close(&a);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, what_is_shown_and_saved_is_the_mean_and_training_goes_on, 0, 8);
    tcase_add_loop_test(tests, the_copy_that_gemms_read_is_of_the_mean, 0, 8);
    return test_run("train/average", tests);
}
