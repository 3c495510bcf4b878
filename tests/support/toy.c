/* toy.c -- see toy.h. */
#include "support/toy.h"

#include "core/rng.h"
#include "mem/fields.h"
#include "model/configure.h"
#include "support/suite.h"
#include "support/replayed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the words after a mechanism's name say. */
static void set_variant(lam_config *cfg, const char *words)
{
    static const struct {
        const char *word, *key, *value;
    } variants[] = {{"pad", "remainder", "pad"},
                    {"carry", "remainder", "carry"},
                    {"mean", "pooling", "mean"},
                    {"max", "pooling", "max"},
                    {"thirds", "rate", "3"},
                    {"sticky", "ltm_sticky", "left"},
                    {"within", "ltm_sticky", "uniform"},
                    {"share", "ltm_share_proj", "1"},
                    {"zero", "alpha", "zero"},
                    {"one", "alpha", "one"},
                    {"from1", "refresh_from", "1"},
                    {"from2", "refresh_from", "2"},
                    {"from3", "refresh_from", "3"},
                    {"every2", "refresh_every", "2"},
                    {"every3", "refresh_every", "3"}};
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (strstr(words, variants[i].word))
            toy_set(cfg, variants[i].key, variants[i].value);
}

void toy_set(lam_config *cfg, const char *key, const char *value)
{
    must(lam_fields_set(cfg, key, value));
}

void toy_set_number(lam_config *cfg, const char *key, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    toy_set(cfg, key, text);
}

lam_config toy_config(const char *memory, int attn_type, int N, int M)
{
    lam_config cfg;
    lam_config_defaults(&cfg);
    const size_t name = strcspn(memory, " ");
    ck_assert_uint_lt(name, sizeof cfg.memory);
    memcpy(cfg.memory, memory, name);
    toy_set(&cfg, "cmem_len", "3");
    toy_set(&cfg, "rate", "2");
    toy_set(&cfg, "ltm_basis", "6");
    toy_set(&cfg, "ltm_widths", "0.1 0.3");
    toy_set_number(&cfg, "ltm_block", (N > 2 ? N : 2) + (strstr(memory, "slow") ? 2 : 0));
    toy_set(&cfg, "ltm_samples", "7");
    toy_set(&cfg, "ltm_sigma0", "0.3");
    toy_set(&cfg, "ltm_kl", "0.05");
    set_variant(&cfg, memory + name);
    cfg.attn_type = attn_type;
    cfg.n_token = 13;
    cfg.n_layer = 2;
    cfg.n_head = 2;
    cfg.d_head = 4;
    cfg.d_model = 8;
    cfg.d_inner = 12;
    cfg.tgt_len = N;
    cfg.mem_len = M;
    cfg.dropout = 0.0;
    return cfg;
}

const lam_ops *toy_ops(const char *name)
{
    const lam_ops *ops = &lam_ops_replayed;
    if (strcmp(name, "replayed") != 0)
        must(lam_ops_find(&ops, name));
    return ops;
}

static toy open_toy(const char *device, const lam_config *cfg, const lam_stack_options *options,
                    int pad, lam_class weights, lam_class cache)
{
    toy t = {.B = options->B, .N = options->N};
    lam_config finished = *cfg;
    must(lam_config_finish(&finished));
    must(toy_ops(device)->open(&t.dev, &(lam_dev_options){.threads = 2}));
    t.dev->pad = pad;
    must(lam_model_create_as(&t.model, &finished, t.dev, weights, cache));
    toy_fill(&t);
    must(lam_stack_create(&t.stack, t.model, options));
    return t;
}

toy toy_open(const char *device, const lam_config *cfg, const lam_stack_options *options, int pad)
{
    return open_toy(device, cfg, options, pad, LAM_ACT, LAM_ACT);
}

toy toy_open_as(const char *device, const lam_config *cfg, const lam_stack_options *options,
                lam_class weights, lam_class cache)
{
    return open_toy(device, cfg, options, 1, weights, cache);
}

void toy_close(toy *t)
{
    lam_stack_free(t->stack);
    lam_model_free(t->model);
    t->dev->ops->close(t->dev);
}

static uint64_t name_key(const char *name)
{
    uint64_t key = 14695981039346656037u;
    for (; *name; name++)
        key = (key ^ (unsigned char)*name) * 1099511628211u;
    return key;
}

void toy_fill(toy *t)
{
    lam_params *p = &t->model->params;
    for (int i = 0; i < p->n; i++) {
        const size_t n = lam_param_count(&p->list[i]);
        double *host = malloc(n * sizeof *host);
        ck_assert_ptr_nonnull(host);
        lam_rng rng = {.key = name_key(p->list[i].name)};
        const double mean = p->list[i].init == LAM_INIT_GAIN ? 1.0 : 0.0;
        for (size_t k = 0; k < n; k++)
            host[k] = (float)(mean + 0.3 * lam_rng_normal(&rng));
        must(lam_params_set(p, p->master, i, host));
        free(host);
    }
}

void toy_copy_params(toy *to, const toy *from)
{
    const lam_params *p = &from->model->params;
    lam_params *q = &to->model->params;
    for (int i = 0; i < p->n; i++) {
        char name[LAM_NAME_MAX];
        const size_t n = lam_param_count(&p->list[i]);
        double *host = malloc(n * 3 * sizeof *host);
        ck_assert_ptr_nonnull(host);
        must(lam_params_get(p, p->master, i, host));
        strcpy(name, p->list[i].name);
        char *net = strstr(name, "dec_attn.q_net");
        if (net && lam_params_find(q, name) < 0) { /* q_net, then kv_net: together qkv_net */
            must(lam_params_get(p, p->master, i + 1, host + n));
            strcpy(net, "dec_attn.qkv_net.weight");
        }
        const int j = lam_params_find(q, name);
        if (j >= 0)
            must(lam_params_set(q, q->master, j, host));
        free(host);
    }
}

void toy_tokens(int32_t *tokens, size_t n, int V, uint64_t seed)
{
    lam_rng rng = {.key = seed};
    for (size_t i = 0; i < n; i++)
        tokens[i] = (int32_t)lam_rng_below(&rng, (uint64_t)V);
}

void toy_segment(toy *t, const int32_t *in, const int32_t *out, int n, double *nll, int commit)
{
    lam_stack_begin(t->stack, n, (lam_stack_dropout){0});
    lam_stack_forward(t->stack, in, n);
    lam_stack_loss(t->stack, out, 0.0);
    must(lam_stack_nll(t->stack, nll));
    if (commit)
        lam_stack_commit(t->stack);
}

void toy_cut(int32_t *packed, const int32_t *all, int B, int total, int at, int n)
{
    for (int b = 0; b < B; b++)
        memcpy(packed + (size_t)b * (size_t)n, all + (size_t)b * (size_t)total + at,
               (size_t)n * sizeof *packed);
}

void toy_same_losses(toy *a, toy *b, int segments, double tolerance)
{
    enum { MOST = 256 };
    int32_t in[MOST], out[MOST];
    double x[MOST], y[MOST];
    const int n = a->B * a->N;
    ck_assert_int_le(n, MOST);
    for (int s = 0; s < segments; s++) {
        toy_tokens(in, (size_t)n, 13, (uint64_t)(50 + s));
        toy_tokens(out, (size_t)n, 13, (uint64_t)(70 + s));
        toy_segment(a, in, out, a->N, x, 1);
        toy_segment(b, in, out, a->N, y, 1);
        for (int i = 0; i < n; i++)
            ck_assert_msg(fabs(x[i] - y[i]) <= tolerance, "segment %d, row %d: %.17g and %.17g", s,
                          i, x[i], y[i]);
    }
}
