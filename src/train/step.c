/* step.c -- one step of a trainer, from top to bottom in lam_trainer_step at the end: batch, learning rate, forward and
 * backward of each group, exchange with other ranks, update, and what the device counted. */
#include "train/average.h"
#include "train/trainer_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    return lam_comm_agree(t->exchange.share.comm, lam_trainer_create_stack(t));
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
    for (int c = 0; c < t->groups.n * t->streams; c++)
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
    const int n = lam_trainer_totals(t);
    const size_t numbers = (size_t)n * LAM_TOTALS;
    double *const raw = malloc(2 * numbers * sizeof *raw), *const all = raw + numbers;
    if (!raw)
        return lam_fail(LAM_ERR_MEMORY, "trainer: no memory for the totals of %d leaves", n);
    const lam_status status = dev->ops->download(dev, raw, t->totals, lam_trainer_totals_bytes(t));
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
    for (int b = 0; streams && b < t->streams; b++) {
        t->rows[first + b] = streams[first + b].rows;
        if (streams[first + b].fresh)
            lam_stack_forget(t->stack, b);
    }
    return streams ? t->rows + first : NULL;
}

/* Gradients of the last leaf are final: they complete the sums of this rank's, which the other ranks are waiting for. */
static void send_early(void *user, size_t from, size_t end)
{
    lam_trainer *t = user;
    const size_t due = lam_exchange_due(&t->exchange, from, end);
    if (due == 0)
        return;
    lam_leaves_end_part(t->leaves, t->groups.n - 1, from, due);
    lam_exchange_part(&t->exchange, from);
}

/* Forward and backward of one group of columns; its gradient is that of scale * sum(nll). */
static void run_group(lam_trainer *t, int group, batch b, double scale)
{
    const lam_settings *s = &t->state.settings;
    const size_t columns = (size_t)group * (size_t)t->streams;
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
    dev->ops->zero(dev, t->totals, lam_trainer_totals_bytes(t));
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
    if (t->optimizer->average && progress_of(t) >= 1.0 - s->average)
        lam_average_add(t->optimizer, ++t->state.averaged);
    t->state.step++;
    return LAM_OK;
}
