/* info_model.c -- see info_model.h. */
#include "cli/info_model.h"

#include "cli/describe.h"
#include "cli/output.h"
#include "cli/term.h"
#include "core/budget.h"
#include "io/json.h"
#include "model/configure.h"
#include "model/macs.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

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

/* ---- parameters ---- */

/* Parameters by what they are for. */
typedef struct group {
    const char *name, *prefix, *infix;
    size_t count;
} group;

enum { GROUPS = 6 };

static void count_groups(const lam_model *model, group groups[GROUPS])
{
    const group kinds[GROUPS] = {{"embedding", "word_emb.", "", 0},
                                 {"softmax", "crit.", "", 0},
                                 {"positions", "r_", "", 0},
                                 {"norms", "layers.", "layer_norm", 0},
                                 {"feed-forward", "layers.", "pos_ff", 0},
                                 {"attention", "layers.", "", 0}};
    memcpy(groups, kinds, sizeof kinds);
    for (int i = 0; i < model->params.n; i++) {
        const lam_param *p = &model->params.list[i];
        int g = 0;
        while (g < GROUPS - 1 && (strncmp(p->name, groups[g].prefix, strlen(groups[g].prefix)) ||
                                  !strstr(p->name, groups[g].infix)))
            g++;
        groups[g].count += lam_param_count(p);
    }
}

/* ---- printing ---- */

static void print_config(const lam_config *cfg)
{
    char memory[LAM_DESCRIPTION_MAX];
    printf("memory %s, %d layers, d_model %d, %d heads of %d, d_inner %d\n",
           lam_describe_memory(memory, cfg), cfg->n_layer, cfg->d_model, cfg->n_head, cfg->d_head,
           cfg->d_inner);
    printf("vocabulary %d", cfg->n_token);
    if (cfg->d_embed != cfg->d_model)
        printf(", d_embed %d", cfg->d_embed);
    for (int i = 0; i < cfg->n_cutoffs; i++)
        printf("%s%d", i == 0 ? ", cutoffs " : "/", cfg->cutoffs[i]);
    printf("; tgt_len %d, mem_len %d; dropout %g, dropatt %g%s%s\n", cfg->tgt_len, cfg->mem_len,
           cfg->dropout, cfg->dropatt, cfg->pre_lnorm ? ", pre-norm" : "",
           cfg->same_length ? ", same length" : "");
}

static void print_training(const lam_settings *s, int64_t step)
{
    char length[LAM_DESCRIPTION_MAX];
    printf("trained for %lld %s%s: recipe %s: %s, lr %.4g, %s, warm-up of %lld, decay %g, clip %g",
           (long long)step, lam_settings_timed(s) ? "steps in " : "of ",
           lam_describe_length(length, s), lam_recipe_names[s->recipe], lam_optim_names[s->optim],
           s->lr, lam_schedule_names[s->scheduler], (long long)s->warmup_step, s->weight_decay,
           s->clip);
    if (s->mem_reset.every > 0)
        printf(", memory emptied every %lld steps", (long long)s->mem_reset.every);
    if (s->mem_reset.document)
        printf(", memory emptied at every document");
    putchar('\n');
}

/* One line of the text, one field of the JSON. */
typedef struct amount {
    const char *text, *key;
    double n;
    bool optional; /* 0: no line */
} amount;

enum { MACS = 7, BYTES = 9 };

static void list_macs(amount out[MACS], const lam_macs *m)
{
    const amount all[MACS] = {{"projections", "project", m->project, true},
                              {"feed-forward", "ffn", m->ffn, true},
                              {"attention", "attention", m->attention, true},
                              {"memory rows", "memory", m->memory, true},
                              {"look-ahead attention", "look_ahead", m->look_ahead, true},
                              {"external memory", "external", m->external, true},
                              {"softmax", "softmax", m->softmax, true}};
    memcpy(out, all, sizeof all);
}

static void list_bytes(amount out[BYTES], const lam_footprint *b, const char *optimiser)
{
    const amount all[BYTES] = {
        {"weights", "weights", (double)b->weights, false},
        {"gradients", "gradients", (double)b->gradients, false},
        {optimiser, "optimizer", (double)b->optimizer, false},
        {"activations, training", "activations", (double)b->train.activations, false},
        {"memory state", "state", (double)b->train.state, false},
        {"scratch", "scratch", (double)b->train.scratch, false},
        {"program and libraries", "program", (double)b->program, true},
        {"training, all together", "train", (double)b->all_train, false},
        {"evaluation, all together", "eval", (double)b->all_eval, false}};
    memcpy(out, all, sizeof all);
}

static void print_text(const lam_info_model *s, const group *groups, const lam_footprint *b)
{
    const lam_model *model = &s->model;
    const lam_macs m = lam_macs_token(&model->cfg, model->cfg.memory);
    amount macs[MACS], sizes[BYTES];
    char text[32], optimiser[64];
    list_macs(macs, &m);
    snprintf(optimiser, sizeof optimiser, "optimiser (%s)", lam_optim_names[s->trained.optim]);
    list_bytes(sizes, b, optimiser);
    print_config(&model->cfg);
    if (s->step >= 0)
        print_training(&s->trained, s->step);
    printf("\n%-28s %20s\n", "parameters",
           lam_format_count(text, sizeof text, (int64_t)lam_model_count(model)));
    for (int g = 0; g < GROUPS; g++)
        printf("  %-26s %20s\n", groups[g].name,
               lam_format_count(text, sizeof text, (int64_t)groups[g].count));

    printf("\n%-30s %18.3f M\n", "multiply-accumulates per token", m.total / 1e6);
    for (int i = 0; i < MACS; i++)
        if (macs[i].n > 0.0 || !macs[i].optional)
            printf("  %-26s %20.3f M\n", macs[i].text, macs[i].n / 1e6);
    printf("  %-26s %20.3f G\n", "one training step",
           lam_macs_step(&model->cfg, s->trained.batch_size) / 1e9);

    printf("\n%-28s %s: %s\n", "device", model->dev->ops->name, model->dev->ops->summary);
    printf("\nbytes on %s, batch %d\n", s->device, s->trained.batch_size);
    for (int i = 0; i < BYTES; i++)
        if (sizes[i].n > 0.0 || !sizes[i].optional)
            printf("  %-26s %20s\n", sizes[i].text, lam_format_size(text, sizeof text, sizes[i].n));
}

static lam_status print_json(const lam_info_model *s, const group *groups, const lam_footprint *b)
{
    const lam_model *model = &s->model;
    const lam_macs m = lam_macs_token(&model->cfg, model->cfg.memory);
    amount macs[MACS], sizes[BYTES];
    char *text = NULL;
    json_t *config = NULL;
    LAM_TRY(lam_config_print(&text, &model->cfg));
    const lam_status status = lam_json_parse(&config, "config", text, strlen(text));
    free(text);
    LAM_TRY(status);
    json_t *params = json_object(), *per_token = json_object(), *by_use = json_object();
    for (int g = 0; g < GROUPS; g++)
        json_object_set_new(params, groups[g].name, json_integer((json_int_t)groups[g].count));
    list_macs(macs, &m);
    for (int i = 0; i < MACS; i++)
        json_object_set_new(per_token, macs[i].key, json_real(macs[i].n));
    json_object_set_new(per_token, "total", json_real(m.total));
    list_bytes(sizes, b, "");
    for (int i = 0; i < BYTES; i++)
        json_object_set_new(by_use, sizes[i].key, json_integer((json_int_t)sizes[i].n));

    json_t *root = json_pack(
        "{s:o, s:I, s:o, s:o, s:f, s:o, s:s, s:s, s:i, s:s}", "config", config, "parameters",
        (json_int_t)lam_model_count(model), "parameters_by_group", params, "macs_per_token",
        per_token, "macs_per_step", lam_macs_step(&model->cfg, s->trained.batch_size), "bytes",
        by_use, "device", s->device, "device_summary", model->dev->ops->summary, "batch_size",
        s->trained.batch_size, "optim", lam_optim_names[s->trained.optim]);
    if (s->step >= 0) {
        json_object_set_new(root, "step", json_integer(s->step));
        json_object_set_new(root, "settings", lam_settings_print(&s->trained));
    }
    return lam_print_json(root, JSON_INDENT(2));
}

lam_status lam_info_print(lam_info_model *s, bool json)
{
    group groups[GROUPS];
    lam_footprint b;
    LAM_TRY(lam_footprint_measure(&b, &s->model, &s->trained));
    count_groups(&s->model, groups);
    if (json)
        return print_json(s, groups, &b);
    print_text(s, groups, &b);
    return LAM_OK;
}
