/* toyrun.c -- see toyrun.h. */
#include "support/toyrun.h"

#include "model/configure.h"
#include "support/suite.h"
#include "support/toy.h"

#include <stdlib.h>
#include <string.h>

lam_tokens toyrun_text(unsigned char **ids, int64_t n, int V, uint64_t seed)
{
    lam_rng rng = {.key = seed};
    *ids = malloc((size_t)n);
    ck_assert_ptr_nonnull(*ids);
    uint64_t last = 0;
    for (int64_t i = 0; i < n; i++) {
        last = lam_rng_uniform(&rng) < 0.5 ? (5 * last + 3) % (uint64_t)V
                                           : lam_rng_below(&rng, (uint64_t)V);
        (*ids)[i] = (unsigned char)last;
    }
    return (lam_tokens){.ids = *ids,
                        .width = 1,
                        .vocab_size = V,
                        .count = n,
                        .crc = (uint32_t)seed,
                        .split = "train"};
}

lam_config toyrun_config(const char *memory)
{
    lam_config cfg = toy_config(memory, -1, 4, strcmp(memory, "none") == 0 ? 0 : 4);
    cfg.n_layer = 3;
    cfg.dropout = 0.1;
    return cfg;
}

lam_settings toyrun_settings(void)
{
    lam_settings s;
    lam_settings_defaults(&s);
    s.batch_size = 4;
    s.max_step = 100;
    s.lr = 1e-2;
    return s;
}

toyrun toyrun_open(const char *device, const lam_config *cfg, const lam_settings *settings)
{
    toyrun r = {0};
    lam_config finished = *cfg;
    must(lam_config_finish(&finished));
    must(toy_ops(device)->open(&r.dev, &(lam_dev_options){.threads = 2}));
    must(lam_model_create(&r.model, &finished, r.dev));
    must(lam_model_init(r.model, 7));
    r.text = malloc(sizeof *r.text); /* the trainer keeps its address */
    ck_assert_ptr_nonnull(r.text);
    *r.text = toyrun_text(&r.ids, 300, cfg->n_token, 11);
    must(lam_trainer_create(&r.trainer, r.model, r.text, settings, NULL));
    return r;
}

void toyrun_close(toyrun *r)
{
    lam_trainer_free(r->trainer);
    lam_model_free(r->model);
    r->dev->ops->close(r->dev);
    free(r->ids);
    free(r->text);
}

void toyrun_steps(toyrun *r, int n, double *losses)
{
    for (int i = 0; i < n; i++) {
        lam_step_report report;
        must(lam_trainer_step(r->trainer, &report));
        if (losses)
            losses[i] = report.nll / (double)report.tokens;
    }
}

/* Flat device vectors of n numbers, compared in the device's own precision. */
static int same_flat(const toyrun *a, const toyrun *b, const void *x, const void *y, size_t n)
{
    const size_t bytes = n * lam_class_size(a->dev, LAM_WIDE);
    if (!x || !y)
        return x == y;
    char *p = malloc(2 * bytes);
    ck_assert_ptr_nonnull(p);
    must(a->dev->ops->download(a->dev, p, x, bytes));
    must(b->dev->ops->download(b->dev, p + bytes, y, bytes));
    const int same = memcmp(p, p + bytes, bytes) == 0;
    free(p);
    return same;
}

int toyrun_equal(const toyrun *a, const toyrun *b)
{
    const lam_optimizer *x = a->trainer->optimizer, *y = b->trainer->optimizer;
    const lam_params *p = &a->model->params, *q = &b->model->params;
    ck_assert_uint_eq(p->total, q->total);
    for (int i = 0; i < p->n; i++)
        if (p->list[i].steps != q->list[i].steps)
            return 0;
    if (a->trainer->state.averaged != b->trainer->state.averaged)
        return 0;
    return same_flat(a, b, p->master, q->master, p->total) &&
           same_flat(a, b, x->average, y->average, p->total) &&
           same_flat(a, b, x->m, y->m, p->total) &&
           same_flat(a, b, x->v, y->v, x->opt.rule->takes ? p->rest : p->total);
}

double *toyrun_params(const toyrun *r, size_t *n)
{
    const lam_params *p = &r->model->params;
    size_t total = 0;
    for (int i = 0; i < p->n; i++)
        total += lam_param_count(&p->list[i]);
    double *x = malloc(total * sizeof *x);
    ck_assert_ptr_nonnull(x);
    *n = total;
    total = 0;
    for (int i = 0; i < p->n; i++) {
        must(lam_params_get(p, p->master, i, x + total));
        total += lam_param_count(&p->list[i]);
    }
    return x;
}
