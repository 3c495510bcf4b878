/* optimizer_test.c -- what `lamemo info` promises of an optimiser's memory is what it takes, and it leaves no
 * parameter out. */
#include "train/optimizer.h"

#include "model/configure.h"
#include "support/suite.h"
#include "support/toy.h"
#include "support/toyrun.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const lam_ops *counted;
static size_t taken;

static lam_status counting_alloc(lam_dev *dev, void **out, size_t bytes)
{
    taken += bytes;
    return counted->alloc(dev, out, bytes);
}

START_TEST(measuring_equals_taking)
{
    lam_dev *dev;
    lam_model *model;
    lam_optimizer *optimizer;
    lam_optimizer_options o = lam_optimizer_defaults();
    lam_config cfg = toy_config("compressive", -1, 4, 4);
    size_t measured;
    o.rule = lam_rules[_i];
    must(lam_config_finish(&cfg));
    must(lam_ops_find(&counted, "cpu"));
    must(counted->open(&dev, &(lam_dev_options){.threads = 1}));
    must(lam_model_create(&model, &cfg, dev));
    must(lam_params_place_grad(&model->params)); /* not counted */

    lam_ops counting = *dev->ops;
    counting.alloc = counting_alloc;
    dev->ops = &counting;
    must(lam_optimizer_measure(&measured, model, &o));
    ck_assert_uint_eq(taken, 0);
    must(lam_optimizer_create(&optimizer, model, &o));
    dev->ops = counted;
    ck_assert_uint_eq(measured + 2 * lam_class_size(dev, LAM_WIDE), taken); /* and two norms */

    lam_optimizer_free(optimizer);
    lam_model_free(model);
    dev->ops->close(dev);
}
END_TEST

static double *values(const lam_params *p, int i)
{
    double *x = malloc(lam_param_count(&p->list[i]) * sizeof *x);
    ck_assert_ptr_nonnull(x);
    must(lam_params_get(p, p->master, i, x));
    return x;
}

enum { NOBODY = -1 };

/* A gradient for every parameter whose apartness is not `without`. */
static void set_gradients(toyrun *r, int seed, int without)
{
    lam_params *p = &r->model->params;
    lam_rng rng = {.key = (uint64_t)seed};
    lam_optimizer_zero(r->trainer->optimizer);
    for (int i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->list[i].stored; k++) {
            const double g = lam_rng_normal(&rng);
            if (p->list[i].apart != without)
                ((double *)lam_grad(p, i))[k] = g; /* ref's memory is the host's */
        }
}

/* One of several steps; in the second the gradient of a parameter of the group is bad. */
static void step_with_accident(toyrun *r, int step, int apart, double totals[8])
{
    lam_params *p = &r->model->params;
    int bad = 0;
    while (p->list[bad].apart != apart)
        bad++;
    set_gradients(r, step, NOBODY);
    if (step == 2)
        *(double *)lam_grad(p, bad) = NAN;
    lam_optimizer_step(r->trainer->optimizer, 1e-3);
    lam_optimizer_tally(r->trainer->optimizer, totals);
}

static void resolve(toyrun *r, double totals[8])
{
    const int64_t skipped[] = {(int64_t)totals[3], (int64_t)totals[7]};
    lam_optimizer_resolve(r->trainer->optimizer, skipped);
    memset(totals, 0, 8 * sizeof *totals);
}

/* As if those parameters had received no gradient: moments, counts and all that follows. */
START_TEST(a_skipped_step_never_was)
{
    const lam_config cfg = toyrun_config("compressive");
    const lam_settings s = toyrun_settings();
    toyrun a = toyrun_open("ref", &cfg, &s), b = toyrun_open("ref", &cfg, &s);
    double totals[8] = {0};
    for (int step = 1; step <= 3; step++) {
        step_with_accident(&a, step, _i, totals);
        ck_assert(totals[_i ? 7 : 3] == (step == 2) && totals[_i ? 3 : 7] == 0);
        resolve(&a, totals);
        set_gradients(&b, step, step == 2 ? _i : NOBODY);
        lam_optimizer_step(b.trainer->optimizer, 1e-3);
    }
    ck_assert(toyrun_equal(&a, &b));
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

START_TEST(counts_are_right_however_late_a_step_is_looked_at)
{
    const lam_config cfg = toyrun_config("compressive");
    const lam_settings s = toyrun_settings();
    toyrun r = toyrun_open("ref", &cfg, &s);
    const lam_params *p = &r.model->params;
    double totals[8] = {0};
    for (int step = 1; step <= 3; step++)
        step_with_accident(&r, step, _i, totals);
    resolve(&r, totals);
    resolve(&r, totals); /* nothing more */
    for (int i = 0; i < p->n; i++)
        ck_assert_int_eq(p->list[i].steps, p->list[i].apart == _i ? 2 : 3);
    toyrun_close(&r);
}
END_TEST

/* What received a gradient is marked as such by whoever computes it; what is not marked never learns. */
START_TEST(every_parameter_learns)
{
    static const struct {
        const char *memory;
        int attn_type, clusters;
    } cases[] = {{"none", 0, 0},        {"none", 2, 0},    {"xl", 0, 1},      {"xl", 1, 0},
                 {"lamemo", 3, 0},      {"lamemo", 31, 0}, {"lamemo", 32, 0}, {"lamemo", 33, 0},
                 {"compressive", 0, 0}, {"infinite", 0, 0}};
    lam_config cfg = toyrun_config(cases[_i].memory);
    const lam_settings s = toyrun_settings();
    cfg.attn_type = cases[_i].attn_type;
    if (cases[_i].clusters) {
        cfg.n_cutoffs = 1;
        cfg.cutoffs[0] = 6;
        cfg.div_val = 2;
        cfg.tie_weight = 0;
    }
    toyrun r = toyrun_open("cpu", &cfg, &s);
    const lam_params *p = &r.model->params;
    double *before[256];
    ck_assert_int_le(p->n, 256);
    for (int i = 0; i < p->n; i++)
        before[i] = values(p, i);
    toyrun_steps(&r, 8, NULL);
    for (int i = 0; i < p->n; i++) {
        double *after = values(p, i);
        ck_assert_msg(memcmp(before[i], after, lam_param_count(&p->list[i]) * sizeof *after) != 0,
                      "%s never moved", p->list[i].name);
        free(before[i]);
        free(after);
    }
    toyrun_close(&r);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, measuring_equals_taking, 0, LAM_OPTIMS);
    tcase_add_loop_test(tests, a_skipped_step_never_was, 0, 2);
    tcase_add_loop_test(tests, counts_are_right_however_late_a_step_is_looked_at, 0, 2);
    tcase_add_loop_test(tests, every_parameter_learns, 0, 10);
    return test_run("train/optimizer", tests);
}
