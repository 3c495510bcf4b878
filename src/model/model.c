/* model.c -- puts the parameter table together. */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

lam_status lam_model_declare(lam_model *model, const lam_config *cfg, lam_dev *dev)
{
    memset(model, 0, sizeof *model);
    model->cfg = *cfg;
    model->dev = dev;
    model->dims = lam_dims_of(cfg, dev);
    LAM_TRY(lam_mem_find(&model->mem, cfg->memory));
    model->layer = calloc((size_t)cfg->n_layer, sizeof *model->layer);
    model->own = calloc((size_t)cfg->n_layer, model->mem->params_size + 1);
    if (!model->layer || !model->own)
        return lam_fail(LAM_ERR_MEMORY, "model: no memory for %d layers", cfg->n_layer);

    lam_pos_declare(&model->pos, &model->params, cfg, dev);
    lam_embed_declare(&model->embed, &model->params, cfg, dev);
    for (int l = 0; l < cfg->n_layer; l++) {
        lam_layer_declare(&model->layer[l], &model->params, cfg, dev, l);
        model->layer[l].own = (char *)model->own + (size_t)l * model->mem->params_size;
        if (model->mem->declare)
            model->mem->declare(model->layer[l].own, &model->params, cfg, dev, l);
        model->pos.r_net[l] = model->layer[l].r_net;
    }
    lam_head_declare(&model->head, &model->embed, &model->params, cfg, dev);
    if (model->params.failed)
        return lam_fail(LAM_ERR_MEMORY, "model: no memory for the parameter table");
    lam_params_arrange(&model->params);
    return LAM_OK;
}

void lam_model_undeclare(lam_model *model)
{
    lam_params_free(&model->params);
    free(model->layer);
    free(model->own);
    model->layer = NULL;
    model->own = NULL;
}

lam_status lam_model_create(lam_model **out, const lam_config *cfg, lam_dev *dev)
{
    return lam_model_create_as(out, cfg, dev, LAM_ACT, LAM_ACT);
}

/* What a device with exact arithmetic computes with. */
static lam_status check_exact(const lam_config *cfg, lam_class weights, lam_class cache)
{
    const lam_mem_ops *mem;
    char all[LAM_MEMORY_TEXT];
    LAM_TRY(lam_mem_find(&mem, cfg->memory));
    if (!lam_mem_has(mem, LAM_IN_INTEGERS))
        return lam_fail(
            LAM_ERR_UNSUPPORTED,
            "exact arithmetic: memory %s has none, take --numerics fast; these have: %s",
            cfg->memory, lam_mem_having(all, LAM_IN_INTEGERS));
    if (cfg->d_head > LAM_NEXT_WIDTH)
        return lam_fail(LAM_ERR_UNSUPPORTED, "exact arithmetic: heads of %d columns, at most %d",
                        cfg->d_head, LAM_NEXT_WIDTH);
    if (weights != LAM_BYTE || cache != LAM_BYTE)
        return lam_fail(LAM_ERR_ARG, "exact arithmetic: weights and cache are int8, no other type");
    return LAM_OK;
}

lam_status lam_model_create_as(lam_model **out, const lam_config *cfg, lam_dev *dev,
                               lam_class weights, lam_class cache)
{
    *out = NULL;
    if (dev->exact)
        LAM_TRY(check_exact(cfg, weights, cache));
    if (cache != LAM_ACT && !dev->narrow)
        return lam_fail(LAM_ERR_UNSUPPORTED, "device %s: caches in bf16 are for cpu and ref",
                        dev->ops->name);
    lam_model *model = calloc(1, sizeof *model);
    if (!model)
        return lam_fail(LAM_ERR_MEMORY, "model: no memory");
    lam_status status = lam_model_declare(model, cfg, dev);
    model->params.store = weights;
    model->cache = cache;
    if (status == LAM_OK)
        status = lam_params_place(&model->params, dev);
    if (status == LAM_ERR_MEMORY)
        status =
            lam_fail(status, "the model's %zu parameters: %s", lam_model_count(model), lam_error());
    if (status != LAM_OK) {
        lam_model_free(model);
        return status;
    }
    *out = model;
    return LAM_OK;
}

void lam_model_free(lam_model *model)
{
    if (!model)
        return;
    lam_model_undeclare(model);
    free(model);
}

lam_status lam_model_init(lam_model *model, uint64_t seed)
{
    return lam_params_init(&model->params,
                           &(lam_init_rule){seed, model->cfg.init_uniform, model->cfg.init_range});
}

size_t lam_model_count(const lam_model *model)
{
    size_t n = 0;
    for (int i = 0; i < model->params.n; i++)
        n += lam_param_count(&model->params.list[i]);
    return n;
}
