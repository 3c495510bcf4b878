/* trainer.c -- creating a trainer, and its checkpoints; the step is in step.c. */
#include "train/trainer_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lam_trainer_mem_len(const lam_trainer *t)
{
    const int all = t->model->cfg.mem_len, few = t->state.settings.short_mem;
    return t->state.grown || few > all ? all : few;
}

static lam_stack_options stack_of(const lam_trainer *t, int mem_len)
{
    const int E = t->model->cfg.ext_len;
    return (lam_stack_options){.B = t->streams,
                               .N = E + lam_batcher_max_length(t->batcher),
                               .M = mem_len,
                               .E = E,
                               .train = 1};
}

lam_status lam_trainer_create_stack(lam_trainer *t)
{
    const lam_stack_options stack = stack_of(t, lam_trainer_mem_len(t));
    lam_group_memory_free(t->memories);
    lam_stack_free(t->stack);
    t->memories = NULL;
    t->stack = NULL;
    LAM_TRY(lam_stack_create(&t->stack, t->model, &stack));
    return lam_group_memory_create(&t->memories, t->stack, t->groups);
}

/* Bytes of such a stack and memories. */
static lam_status measure_stack(size_t *bytes, const lam_trainer *t, int mem_len)
{
    const lam_stack_options stack = stack_of(t, mem_len);
    lam_stack_sizes sizes;
    LAM_TRY(lam_stack_measure(&sizes, t->model, &stack));
    *bytes = sizes.activations + (size_t)t->groups.n * sizes.state + sizes.scratch;
    return LAM_OK;
}

lam_status lam_trainer_growth(size_t *bytes, const lam_trainer *t)
{
    size_t now, all;
    *bytes = 0;
    LAM_TRY(measure_stack(&now, t, lam_trainer_mem_len(t)));
    LAM_TRY(measure_stack(&all, t, t->model->cfg.mem_len));
    *bytes = all > now ? all - now : 0;
    return LAM_OK;
}

/* Is there memory for all that the run will have at a time, with the whole memory?  It may begin with a short one,
 * and would end where that grows, after most of its steps, and again whenever it is resumed. */
static lam_status ask(const lam_trainer *t, const lam_optimizer_options *optimizer)
{
    const lam_settings *s = &t->state.settings;
    const lam_config *cfg = &t->model->cfg;
    char what[160];
    size_t stack, moments;
    LAM_TRY(measure_stack(&stack, t, cfg->mem_len));
    LAM_TRY(lam_optimizer_measure(&moments, t->model, optimizer));
    const size_t gradients = t->model->params.total * lam_class_size(t->model->dev, LAM_WIDE) +
                             (s->leaves > 0 ? lam_leaves_bytes(t->model, t->groups.n) : 0);
    snprintf(what, sizeof what, "training with batch_size %d, %s %d, tgt_len %d and mem_len %d",
             s->batch_size, s->leaves > 0 ? "leaves" : "batch_chunk", lam_settings_groups(s),
             cfg->tgt_len, cfg->mem_len);
    return lam_dev_ask(t->model->dev, what, stack + moments + gradients);
}

/* The leaves that this rank computes. */
static lam_groups groups_of(const lam_settings *s, const lam_comm *comm)
{
    const int n = lam_settings_groups(s) / lam_comm_size(comm);
    return (lam_groups){lam_comm_rank(comm) * n, n};
}

static lam_status check_share(const lam_settings *s, const lam_share *share)
{
    const int ranks = share ? lam_comm_size(share->comm) : 1;
    if (ranks == 1)
        return LAM_OK;
    if (s->leaves == 0)
        return lam_fail(LAM_ERR_ARG,
                        "%d processes: the run has no leaves to share out, so one process alone "
                        "can train it",
                        ranks);
    if (s->leaves % ranks != 0)
        return lam_fail(LAM_ERR_ARG, "leaves %d cannot be shared out to %d processes", s->leaves,
                        ranks);
    return LAM_OK;
}

static lam_status create_parts(lam_trainer *t, const lam_tokens *text)
{
    const lam_settings *s = &t->state.settings;
    const lam_config *cfg = &t->model->cfg;
    lam_optimizer_options optimizer = lam_settings_optimizer(s);
    optimizer.shares = s->leaves;
    optimizer.ranks = lam_comm_size(t->exchange.share.comm);
    optimizer.rank = lam_comm_rank(t->exchange.share.comm);
    optimizer.zero = t->exchange.share.zero;
    optimizer.exchange = &t->exchange;
    const int streams = t->groups.n * t->streams;
    LAM_TRY(lam_batcher_create(&t->batcher, text,
                               &(lam_batcher_options){.streams = s->batch_size,
                                                      .length = cfg->tgt_len,
                                                      .extra = cfg->ext_len,
                                                      .roll = s->roll,
                                                      .varlen = s->varlen,
                                                      .documents = s->mem_reset.document,
                                                      .seed = (uint64_t)s->seed,
                                                      .first = t->groups.first * t->streams,
                                                      .only = streams}));
    const int longest = lam_batcher_max_length(t->batcher);
    LAM_TRY(ask(t, &optimizer));
    LAM_TRY(lam_trainer_create_stack(t));
    LAM_TRY(lam_optimizer_create(&t->optimizer, t->model, &optimizer));
    LAM_TRY(lam_exchange_create(&t->exchange, t->model, t->exchange.share));
    if (s->leaves > 0)
        LAM_TRY(lam_leaves_create(&t->leaves, t->model, t->groups.n));
    const size_t rows = (size_t)streams * (size_t)(cfg->ext_len + longest);
    t->inputs = calloc(rows, sizeof *t->inputs);
    t->targets = calloc(rows, sizeof *t->targets);
    t->rows = calloc((size_t)streams, sizeof *t->rows);
    LAM_TRY(t->model->dev->ops->alloc(t->model->dev, &t->totals, lam_trainer_totals_bytes(t)));
    return t->inputs && t->targets && t->rows
               ? LAM_OK
               : lam_fail(LAM_ERR_MEMORY, "trainer: no memory for batches of %zu tokens", rows);
}

lam_status lam_trainer_create(lam_trainer **out, lam_model *model, const lam_tokens *text,
                              const lam_settings *settings, const lam_share *share)
{
    *out = NULL;
    LAM_TRY(lam_settings_check(settings));
    LAM_TRY(check_share(settings, share));
    if (settings->mem_reset.document)
        LAM_TRY(lam_mem_takes_documents(model->mem, &model->cfg));
    if (text->vocab_size > model->cfg.n_token)
        return lam_fail(LAM_ERR_ARG, "the corpus has a vocabulary of %d, the model one of %d",
                        text->vocab_size, model->cfg.n_token);
    if (model->cfg.tgt_len >= text->count)
        return lam_fail(LAM_ERR_ARG,
                        "the text to train on has %lld token%s, too few for segments of %d: at "
                        "least %d, or a smaller tgt_len (the segments' length)",
                        (long long)text->count, text->count == 1 ? "" : "s", model->cfg.tgt_len,
                        model->cfg.tgt_len + 1);
    lam_trainer *t = calloc(1, sizeof *t);
    if (!t)
        return lam_fail(LAM_ERR_MEMORY, "trainer: no memory");
    t->model = model;
    t->progress = -1.0;
    t->schedule = lam_settings_schedule(settings);
    lam_train_state_init(&t->state, settings);
    if (share)
        t->exchange.share = *share;
    t->groups = groups_of(settings, t->exchange.share.comm);
    t->streams = settings->batch_size / lam_settings_groups(settings);
    strcpy(t->state.device, model->dev->ops->name);
    t->state.corpus.tokens = text->count;
    t->state.corpus.crc = text->crc;
    const lam_status status = create_parts(t, text);
    if (status != LAM_OK) {
        lam_trainer_free(t);
        return status;
    }
    *out = t;
    return LAM_OK;
}

void lam_trainer_free(lam_trainer *t)
{
    if (!t)
        return;
    lam_leaves_free(t->leaves);
    lam_exchange_free(&t->exchange);
    lam_optimizer_free(t->optimizer);
    lam_group_memory_free(t->memories);
    lam_stack_free(t->stack);
    lam_batcher_free(t->batcher);
    lam_train_state_free(&t->state);
    free(t->inputs);
    free(t->targets);
    free(t->rows);
    t->model->dev->ops->release(t->model->dev, t->totals);
    free(t);
}

/* ---- saving and loading ---- */

static lam_checkpoint parts_of(lam_trainer *t, lam_train_state *state, const char *vocab)
{
    return (lam_checkpoint){t->model, t->optimizer, t->memories,
                            state,    vocab,        t->exchange.share.comm};
}

lam_status lam_trainer_save(lam_trainer *t, const char *dir, const char *vocab)
{
    const int n = t->state.settings.batch_size;
    int64_t *shifts = malloc((size_t)n * sizeof *shifts);
    if (!shifts)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", dir);
    memcpy(shifts, lam_batcher_shifts(t->batcher), (size_t)n * sizeof *shifts);
    lam_train_state_free(&t->state);
    t->state.shifts = shifts;
    t->state.n_shifts = n;
    t->state.position = *lam_batcher_where(t->batcher);
    const lam_checkpoint parts = parts_of(t, &t->state, vocab);
    return lam_checkpoint_save(dir, &parts);
}

lam_status lam_trainer_resume(lam_trainer *t, const char *dir)
{
    lam_train_state then = {0};
    LAM_TRY(lam_checkpoint_peek(dir, &then));
    const lam_train_state *now = &t->state;
    lam_status status = lam_settings_same_state(&now->settings, &then.settings);
    if (status == LAM_OK &&
        (now->corpus.tokens != then.corpus.tokens || now->corpus.crc != then.corpus.crc))
        status = lam_fail(LAM_ERR_ARG,
                          "%s was trained on another corpus: %lld tokens with the checksum %08x, "
                          "this one has %lld with %08x; --init-from fine-tunes a model on another "
                          "corpus",
                          dir, (long long)then.corpus.tokens, then.corpus.crc,
                          (long long)now->corpus.tokens, now->corpus.crc);
    if (status == LAM_OK && then.grown != t->state.grown) {
        t->state.grown = then.grown;
        status = lam_trainer_create_stack(t);
    }
    const lam_checkpoint parts = parts_of(t, &then, NULL);
    if (status == LAM_OK)
        status = lam_checkpoint_load(dir, &parts);
    if (status == LAM_OK)
        status = lam_batcher_restore(t->batcher, &then.position, then.shifts, then.n_shifts);
    if (status != LAM_OK) {
        lam_train_state_free(&then);
        return status;
    }
    then.settings = now->settings;
    then.corpus = now->corpus;
    if (!t->optimizer->average) /* this run does not average, whatever the one before did */
        then.averaged = 0;
    strcpy(then.device, t->model->dev->ops->name);
    lam_train_state_free(&t->state);
    t->state = then;
    return LAM_OK;
}
