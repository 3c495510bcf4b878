/* trainer.c -- see trainer.h. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lam_trainer_mem_len(const lam_trainer *t)
{
    const int all = t->model->cfg.mem_len, few = t->state.settings.short_mem;
    return t->state.grown || few > all ? all : few;
}

/* Streams of one group. */
static int group_streams(const lam_trainer *t)
{
    const lam_settings *s = &t->state.settings;
    return s->batch_size / lam_settings_groups(s);
}

static lam_stack_options stack_of(const lam_trainer *t, int mem_len)
{
    const int E = t->model->cfg.ext_len;
    return (lam_stack_options){.B = group_streams(t),
                               .N = E + lam_batcher_max_length(t->batcher),
                               .M = mem_len,
                               .E = E,
                               .train = 1};
}

/* The stack of one group and the memories of all, empty; instead of those there are. */
static lam_status create_stack(lam_trainer *t)
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

/* Leaves have totals of their own: their sum must not depend on who computes which. */
static int totals_count(const lam_trainer *t)
{
    return t->state.settings.leaves > 0 ? t->groups.n : 1;
}

static size_t totals_bytes(const lam_trainer *t)
{
    return (size_t)totals_count(t) * LAM_TOTALS * lam_class_size(t->model->dev, LAM_WIDE);
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
    const int streams = t->groups.n * group_streams(t);
    LAM_TRY(lam_batcher_create(&t->batcher, text,
                               &(lam_batcher_options){.streams = s->batch_size,
                                                      .length = cfg->tgt_len,
                                                      .extra = cfg->ext_len,
                                                      .roll = s->roll,
                                                      .varlen = s->varlen,
                                                      .documents = s->mem_reset.document,
                                                      .seed = (uint64_t)s->seed,
                                                      .first = t->groups.first * group_streams(t),
                                                      .only = streams}));
    const int longest = lam_batcher_max_length(t->batcher);
    LAM_TRY(ask(t, &optimizer));
    LAM_TRY(create_stack(t));
    LAM_TRY(lam_optimizer_create(&t->optimizer, t->model, &optimizer));
    LAM_TRY(lam_exchange_create(&t->exchange, t->model, t->exchange.share));
    if (s->leaves > 0)
        LAM_TRY(lam_leaves_create(&t->leaves, t->model, t->groups.n));
    const size_t rows = (size_t)streams * (size_t)(cfg->ext_len + longest);
    t->inputs = calloc(rows, sizeof *t->inputs);
    t->targets = calloc(rows, sizeof *t->targets);
    t->rows = calloc((size_t)streams, sizeof *t->rows);
    LAM_TRY(t->model->dev->ops->alloc(t->model->dev, &t->totals, totals_bytes(t)));
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

/* How much of the schedule is over, by the clock or by steps. */
static double progress_of(const lam_trainer *t)
{
    return t->progress >= 0.0 ? t->progress
                              : lam_schedule_progress(&t->schedule, (long)t->state.step);
}

double lam_trainer_lr(const lam_trainer *t)
{
    const double factor = t->schedule.kind == LAM_SCHEDULE_DEV_PERF ? t->state.plateau.factor : 1.0;
    return factor * lam_schedule_lr_at(&t->schedule, (long)t->state.step, progress_of(t));
}

/* Gives the memory its full length when it is time; it begins empty, as at the beginning of an epoch. */
static lam_status grow(lam_trainer *t)
{
    if (t->state.grown || progress_of(t) < t->state.settings.short_mem_part)
        return LAM_OK;
    t->state.grown = 1;
    return lam_comm_agree(t->exchange.share.comm, create_stack(t));
}

/* Every mem_reset steps all streams begin without a past.  Otherwise only the first steps of an epoch do, and a
 * model hardly learns what a text from its beginning, or a short prompt, asks of it. */
static void forget(lam_trainer *t)
{
    const int64_t every = t->state.settings.mem_reset.every;
    if (every > 0 && t->state.step % every == 0)
        lam_group_memory_reset(t->memories);
}

/* Rows of a step: `in` go through the model, the last `scored` of each column have targets. */
typedef struct batch {
    int in, scored;
    int unscored; /* of the batch's own rows: the first ones */
    int weighed; /* rows that the loss is divided by: with documents the same in every step, so that a token weighs
                     the same however many documents end beside it */
} batch;

/* half_loss, as published: the first half of every segment does not count, the second twice. */
static int second_half(lam_trainer *t, int n)
{
    const int scored = n - n / 2;
    for (int c = 0; c < t->groups.n * group_streams(t); c++)
        memmove(t->targets + (size_t)c * (size_t)scored,
                t->targets + (size_t)c * (size_t)n + (size_t)(n / 2),
                (size_t)scored * sizeof *t->targets);
    return scored;
}

/* The next batch; at the end of an epoch the past is forgotten and the text begins again. */
static batch next_batch(lam_trainer *t)
{
    int n = lam_batcher_next(t->batcher, t->inputs, t->targets);
    if (n == 0) {
        lam_group_memory_reset(t->memories);
        n = lam_batcher_next(t->batcher, t->inputs, t->targets);
    }
    const lam_settings *s = &t->state.settings;
    const int scored = s->half_loss ? second_half(t, n) : n;
    return (batch){.in = lam_batcher_extra(t->batcher) + n,
                   .scored = scored,
                   .unscored = n - scored,
                   .weighed = s->mem_reset.document ? t->model->cfg.tgt_len : n};
}

/* What the device counted since it was last asked, of all groups. */
static lam_status read_totals(lam_trainer *t, double totals[LAM_TOTALS])
{
    lam_dev *dev = t->model->dev;
    const int n = totals_count(t);
    const size_t numbers = (size_t)n * LAM_TOTALS;
    double *const raw = malloc(2 * numbers * sizeof *raw), *const all = raw + numbers;
    if (!raw)
        return lam_fail(LAM_ERR_MEMORY, "trainer: no memory for the totals of %d leaves", n);
    const lam_status status = dev->ops->download(dev, raw, t->totals, totals_bytes(t));
    if (status == LAM_OK) {
        lam_convert(all, LAM_F64, raw, dev->wide, numbers);
        lam_leaves_sum(all, n, LAM_TOTALS);
        memcpy(totals, all, LAM_TOTALS * sizeof *totals);
    }
    free(raw);
    LAM_TRY(status);
    double scratch[LAM_TOTALS];
    const double skipped[] = {totals[3], totals[7]}; /* the same on every rank, as the norms are */
    LAM_TRY(lam_comm_sum(t->exchange.share.comm, totals, scratch, LAM_TOTALS, LAM_F64,
                         LAM_REDUCE_EXACT));
    totals[3] = skipped[0];
    totals[7] = skipped[1];
    return LAM_OK;
}

/* Streams of the selected group, the first of them column `first`, forget where a document begins now.  Returns how
 * many rows each has; NULL: all have all. */
static const int *begin_documents(lam_trainer *t, int first)
{
    const lam_stream_rows *const streams = lam_batcher_streams(t->batcher);
    for (int b = 0; streams && b < group_streams(t); b++) {
        t->rows[first + b] = streams[first + b].rows;
        if (streams[first + b].fresh)
            lam_stack_forget(t->stack, b);
    }
    return streams ? t->rows + first : NULL;
}

/* The gradients from here on are final: those of the last leaf complete the sums of this rank's, which the other ranks
 * are waiting for. */
static void send_early(void *user, size_t from)
{
    lam_trainer *t = user;
    lam_leaves_end_part(t->leaves, t->groups.n - 1, from, t->exchange.left - from);
    lam_exchange_part(&t->exchange, from);
}

/* Forward and backward of one group of columns; its gradient is that of scale * sum(nll). */
static void run_group(lam_trainer *t, int group, batch b, double scale)
{
    const lam_settings *s = &t->state.settings;
    const size_t columns = (size_t)group * (size_t)group_streams(t);
    const uint64_t all = (uint64_t)lam_settings_groups(s);
    const lam_stack_dropout dropout = {
        .on = 1,
        .seed = (uint64_t)s->seed,
        .step = (uint32_t)((uint64_t)t->state.step * all + (uint64_t)(t->groups.first + group))};
    if (t->leaves)
        lam_leaves_begin(t->leaves, group);
    lam_group_memory_select(t->memories, group);
    const int *const rows = begin_documents(t, (int)columns);
    const int early = group + 1 == t->groups.n && lam_exchange_early(&t->exchange);
    lam_stack_pass(t->stack, &(lam_pass){.inputs = t->inputs + columns * (size_t)b.in,
                                         .targets = t->targets + columns * (size_t)b.scored,
                                         .n = b.in,
                                         .scored = b.scored,
                                         .rows = rows,
                                         .grad_scale = scale,
                                         .dropout = dropout,
                                         .final = early ? send_early : NULL,
                                         .user = t});
    lam_stack_tally(t->stack, lam_at(t->model->dev, LAM_WIDE, t->totals,
                                     t->leaves ? (size_t)group * LAM_TOTALS : 0));
    if (t->leaves)
        lam_leaves_end_part(t->leaves, group, 0, early ? t->exchange.left : t->model->params.total);
}

static lam_status not_finite(const lam_trainer *t, const char *what, double value)
{
    return lam_fail(LAM_ERR_NUMERIC, "step %lld: the %s is %g", (long long)t->state.step + 1, what,
                    value);
}

/* The losses of all steps since the last report; a loss that is not finite is left out. */
static lam_status report_loss(lam_trainer *t, lam_step_report *report)
{
    double totals[LAM_TOTALS];
    LAM_TRY(read_totals(t, totals));
    report->nll = totals[0] + totals[1];
    report->tokens = t->unread_tokens - (int64_t)totals[2];
    report->aux = totals[4] + totals[5];
    return report->tokens > 0 ? LAM_OK : not_finite(t, "loss", NAN);
}

/* Their gradients.  The counts begin again. */
static lam_status report_norm(lam_trainer *t, lam_step_report *report)
{
    lam_dev *dev = t->model->dev;
    double totals[LAM_TOTALS];
    LAM_TRY(lam_optimizer_norm(t->optimizer, &report->grad_norm));
    LAM_TRY(read_totals(t, totals));
    const int64_t skipped[] = {(int64_t)totals[3], (int64_t)totals[7]};
    lam_optimizer_resolve(t->optimizer, skipped);
    report->skipped = skipped[0] > skipped[1] ? skipped[0] : skipped[1];
    if (report->skipped > 0) /* what spoilt them may stand in the memory, and would stay there */
        lam_group_memory_reset(t->memories);
    dev->ops->zero(dev, t->totals, totals_bytes(t));
    const int64_t steps = t->unread;
    t->unread = t->unread_tokens = 0;
    return report->skipped < steps ? LAM_OK : not_finite(t, "gradient norm", report->grad_norm);
}

lam_status lam_trainer_step(lam_trainer *t, lam_step_report *report)
{
    const lam_settings *s = &t->state.settings;
    LAM_TRY(grow(t));
    forget(t);
    const batch b = next_batch(t);
    const double lr = lam_trainer_lr(t), weight = s->half_loss ? 2.0 : 1.0;
    const double scale = weight * s->loss_scale / ((double)s->batch_size * b.weighed);
    t->tokens = lam_batcher_targets(t->batcher, 0);
    t->unread++;
    t->unread_tokens += lam_batcher_targets(t->batcher, b.unscored);

    lam_optimizer_zero(t->optimizer);
    for (int g = 0; g < t->groups.n; g++)
        run_group(t, g, b, scale);
    LAM_TRY(lam_exchange_gradients(&t->exchange));
    if (report) {
        *report = (lam_step_report){.lr = lr};
        LAM_TRY(report_loss(t, report));
    }
    LAM_TRY(lam_optimizer_step(t->optimizer, lr));
    lam_optimizer_tally(t->optimizer, t->totals);
    if (report)
        LAM_TRY(report_norm(t, report));
    t->state.step++;
    return LAM_OK;
}

/* ---- on disk ---- */

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
        status = create_stack(t);
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
    strcpy(then.device, t->model->dev->ops->name);
    lam_train_state_free(&t->state);
    t->state = then;
    return LAM_OK;
}
