/* footprint.c -- see footprint.h. */
#include "cli/footprint.h"

enum { EVAL_BATCH = 16 }; /* of `lamemo train` */
/* Bytes of the program and the libraries it uses, where they lie in the same memory; measured. */
enum { PROGRAM = 24 << 20 };

static size_t stack_total(const lam_stack_sizes *s)
{
    return s->activations + s->state + s->scratch;
}

lam_status lam_footprint_measure(lam_footprint *out, lam_model *model, const lam_settings *settings)
{
    const lam_config *cfg = &model->cfg;
    const size_t wide = lam_class_size(model->dev, LAM_WIDE),
                 act = lam_class_size(model->dev, LAM_ACT);
    const int copies = model->dev->act != model->dev->wide;
    const lam_optimizer_options optimizer = lam_settings_optimizer(settings);
    lam_stack_options opt = {.B = settings->batch_size,
                             .N = cfg->tgt_len + cfg->ext_len,
                             .M = cfg->mem_len,
                             .E = cfg->ext_len};
    lam_stack_sizes eval, aside;
    lam_footprint f = {.weights = model->params.total * (wide + (copies ? act : 0)),
                       .gradients = model->params.total * wide,
                       .program = model->dev->own_memory ? 0 : PROGRAM};
    LAM_TRY(lam_optimizer_measure(&f.optimizer, model, &optimizer));
    LAM_TRY(lam_stack_measure(&eval, model, &opt));
    opt.B = EVAL_BATCH;
    LAM_TRY(lam_stack_measure(&aside, model, &opt));
    opt.B = settings->batch_size;
    opt.train = 1;
    LAM_TRY(lam_stack_measure(&f.train, model, &opt));
    f.all_train = f.weights + f.gradients + f.optimizer + stack_total(&f.train) +
                  aside.activations + aside.state + f.program;
    f.all_eval = f.weights + stack_total(&eval) + f.program;
    *out = f;
    return LAM_OK;
}
