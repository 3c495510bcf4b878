/* optimizer_test.c -- what `lamemo info` promises of an optimiser's memory is what it takes. */
#include "train/optimizer.h"

#include "support/suite.h"
#include "support/toy.h"

static const lam_ops *counted;
static size_t taken;

static lam_status counting_alloc(lam_dev *dev, void **out, size_t bytes)
{
    taken += bytes;
    return counted->alloc(dev, out, bytes);
}

static const struct {
    lam_update_kind kind;
    int muon;
} rules[] = {{LAM_ADAM, 0}, {LAM_SGD, 0}, {LAM_ADAGRAD, 0}, {LAM_ADAM, 1}};

START_TEST(measuring_equals_taking)
{
    lam_dev *dev;
    lam_model *model;
    lam_optimizer *optimizer;
    lam_optimizer_options o = lam_optimizer_defaults();
    lam_config cfg = toy_config("compressive", -1, 4, 4);
    size_t measured;
    o.kind = rules[_i].kind;
    o.muon = rules[_i].muon;
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

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, measuring_equals_taking, 0, (int)(sizeof rules / sizeof *rules));
    return test_run("train/optimizer", tests);
}
