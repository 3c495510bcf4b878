/* trace.c -- see trace.h. */
#include "train/trace.h"

#include "io/json.h"
#include "model/configure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lam_status meta_int(const lam_trace *t, const char *key, int fallback, int *out)
{
    const char *text = lam_st_meta(t->st, key);
    char *end = NULL;
    const long value = text ? strtol(text, &end, 10) : fallback;
    if (!text && fallback < 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: not a trace: metadata %s is missing", t->path, key);
    if (value < 0 || value > 1 << 20 || (text && (end == text || *end != '\0')))
        return lam_fail(LAM_ERR_FORMAT, "%s: metadata %s is '%s', must be 0 to %d", t->path, key,
                        text ? text : "", 1 << 20);
    *out = (int)value;
    return LAM_OK;
}

static lam_status read_header(lam_trace *t)
{
    const char *config = lam_st_meta(t->st, "config");
    if (!config)
        return lam_fail(LAM_ERR_FORMAT, "%s: not a trace: metadata config is missing", t->path);
    LAM_TRY(lam_config_parse(&t->cfg, config, t->path));
    t->cfg.dropout = t->cfg.dropatt = 0.0;
    json_t *root; /* again: a configuration has no learning rate */
    LAM_TRY(lam_json_parse(&root, t->path, config, strlen(config)));
    t->lr = json_number_value(json_object_get(root, "lr"));
    json_decref(root);
    LAM_TRY(meta_int(t, "B", -1, &t->B));
    LAM_TRY(meta_int(t, "segments", -1, &t->segments));
    LAM_TRY(meta_int(t, "train_steps", 0, &t->train_steps));
    if (t->B < 1 || t->segments < 1) /* without segments no tensor bounds tgt_len */
        return lam_fail(LAM_ERR_FORMAT, "%s: metadata B and segments must be at least 1", t->path);
    return LAM_OK;
}

lam_status lam_trace_open(lam_trace *t, const char *path)
{
    *t = (lam_trace){.path = path};
    LAM_TRY(lam_st_open(&t->st, path));
    return read_header(t);
}

void lam_trace_close(lam_trace *t)
{
    lam_st_close(t->st);
    free(t->tokens);
    *t = (lam_trace){0};
}

lam_status lam_trace_tokens(lam_trace *t, const char *name, int segments)
{
    const size_t n = (size_t)t->B * ((size_t)t->cfg.tgt_len * (size_t)segments + 1);
    const lam_st_tensor *tensor = lam_st_find(t->st, name);
    if (!tensor || (tensor->dtype != LAM_I32 && tensor->dtype != LAM_I64))
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is missing or not I32", t->path, name);
    if (lam_shape_count(&tensor->shape) != n)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s has %zu elements, must have %zu", t->path,
                        name, lam_shape_count(&tensor->shape), n);
    free(t->tokens);
    t->tokens = malloc(n * sizeof *t->tokens);
    if (!t->tokens)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu tokens", t->path, n);
    t->stride = n / (size_t)t->B;
    LAM_TRY(lam_st_read(t->st, name, t->tokens, LAM_I32, n));
    for (size_t i = 0; i < n; i++)
        if (t->tokens[i] < 0 || t->tokens[i] >= t->cfg.n_token)
            return lam_fail(LAM_ERR_FORMAT, "%s: %s[%zu] is %d, the vocabulary has %d types",
                            t->path, name, i, t->tokens[i], t->cfg.n_token);
    return LAM_OK;
}

static lam_status check_param(const lam_trace *t, const lam_param *param)
{
    char name[LAM_NAME_MAX + 8], have[96], want[96];
    snprintf(name, sizeof name, "param.%s", param->name);
    const lam_st_tensor *tensor = lam_st_find(t->st, name);
    const lam_shape shape = lam_param_shape(param);
    if (!tensor)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is missing", t->path, name);
    if (!lam_shape_equal(&tensor->shape, &shape))
        return lam_fail(LAM_ERR_FORMAT, "%s: %s is %s, must be %s", t->path, name,
                        lam_shape_text(&tensor->shape, have, sizeof have),
                        lam_shape_text(&shape, want, sizeof want));
    return LAM_OK;
}

lam_status lam_trace_check(const lam_trace *t, lam_dev *dev)
{
    lam_model model;
    int there = 0;
    lam_status status = lam_model_declare(&model, &t->cfg, dev);
    for (int i = 0; i < lam_st_count(t->st); i++)
        there += strncmp(lam_st_at(t->st, i)->name, "param.", 6) == 0;
    if (status == LAM_OK && there != model.params.n)
        status = lam_fail(LAM_ERR_FORMAT, "%s: holds %d parameters, this configuration has %d",
                          t->path, there, model.params.n);
    for (int i = 0; i < model.params.n && status == LAM_OK; i++)
        status = check_param(t, &model.params.list[i]);
    lam_model_undeclare(&model);
    return status;
}

lam_status lam_trace_params(const lam_trace *t, lam_params *p, double *scratch)
{
    for (int i = 0; i < p->n; i++) {
        char name[LAM_NAME_MAX + 8];
        snprintf(name, sizeof name, "param.%s", p->list[i].name);
        LAM_TRY(lam_st_read(t->st, name, scratch, LAM_F64, lam_param_count(&p->list[i])));
        LAM_TRY(lam_params_set(p, p->master, i, scratch));
        p->list[i].steps = 0;
    }
    return LAM_OK;
}
