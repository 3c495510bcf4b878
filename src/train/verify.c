/* verify.c -- see verify.h: replays a trace and compares. */
#include "train/verify.h"

#include "model/stack.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct replay {
    lam_trace trace;
    lam_dev *dev;
    lam_model *model;
    lam_stack *stack;
    lam_optimizer *optimizer;
    double *mine; /* scratch, room for the largest tensor */
    size_t n_mine;
    double *theirs;
    int32_t *in, *out; /* [B][N] */
    lam_verdict *verdict;
} replay;

/* Records the error of n numbers against theirs (NULL: zeros) under `name`. */
static void judge(replay *t, lam_quantity q, const char *name, const double *mine,
                  const double *theirs, size_t n)
{
    double top = 0.0, error = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double want = theirs ? theirs[i] : 0.0, off = fabs(mine[i] - want);
        top = fmax(top, fabs(want));
        t->verdict->squares[q] += off * off;
        t->verdict->sizes[q] += want * want;
        error = off <= error ? error : isnan(off) ? INFINITY : off;
    }
    if (!isfinite(top))
        error = INFINITY;
    error /= isfinite(top) ? fmax(top, 1e-6) : 1.0;
    lam_verdict *v = t->verdict;
    v->tensors[q]++;
    v->numbers[q] += (double)n;
    if (error >= v->worst[q]) {
        v->worst[q] = error;
        snprintf(v->where[q], sizeof v->where[q], "%s", name);
    }
    if (!(error <= v->limit[q]))
        v->failed = 1;
}

/* Judges n numbers against the file's tensor `name`; absent is an error unless `or_zero`. */
static lam_status compare(replay *t, lam_quantity q, const char *name, const double *mine, size_t n,
                          int or_zero)
{
    const lam_st_tensor *want = lam_st_find(t->trace.st, name);
    if (!want && or_zero) {
        judge(t, q, name, mine, NULL, n);
        return LAM_OK;
    }
    if (want && want->dtype != LAM_F64 && want->dtype != LAM_F32)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is %s, must be F64 or F32", t->trace.path,
                        name, lam_dtype_name(want->dtype));
    LAM_TRY(lam_st_read(t->trace.st, name, t->theirs, LAM_F64, n));
    judge(t, q, name, mine, t->theirs, n);
    return LAM_OK;
}

/* Largest tensor we will ever compare: parameters, state and losses. */
static size_t largest_tensor(const replay *t)
{
    const lam_mem *mem = lam_stack_mem(t->stack);
    size_t n = (size_t)t->trace.B * (size_t)t->trace.cfg.tgt_len;
    for (int i = 0; i < mem->n_slots; i++) {
        const lam_slot *slot = &mem->slots[i];
        const size_t count = (size_t)t->trace.B * (size_t)slot->cap * (size_t)slot->width;
        n = count > n ? count : n;
    }
    for (int i = 0; i < t->model->params.n; i++) {
        const size_t count = t->model->params.list[i].stored;
        n = count > n ? count : n;
    }
    return n;
}

/* The trace has tokens for so many segments: a longer memory is never filled. */
static lam_stack_options stack_of(const lam_trace *trace)
{
    const int n = trace->segments > trace->train_steps ? trace->segments : trace->train_steps;
    const int64_t most = (int64_t)n * trace->cfg.tgt_len;
    return (lam_stack_options){.B = trace->B,
                               .N = trace->cfg.tgt_len,
                               .M = lam_length_fit(trace->cfg.mem_len, most),
                               .most = most};
}

static lam_status build(replay *t, lam_dev *dev)
{
    lam_stack_options stack = stack_of(&t->trace);
    const lam_class store = dev->exact ? LAM_BYTE : LAM_ACT;
    stack.train = !dev->exact;
    stack.full = 1;
    t->dev = dev;
    LAM_TRY(lam_model_create_as(&t->model, &t->trace.cfg, dev, store, store));
    LAM_TRY(lam_stack_create(&t->stack, t->model, &stack));
    lam_optimizer_options adam = lam_optimizer_defaults();
    adam.clip_together = 1; /* traces know one norm */
    if (stack.train)
        LAM_TRY(lam_optimizer_create(&t->optimizer, t->model, &adam));
    const size_t n = largest_tensor(t), now = (size_t)t->trace.B * (size_t)t->trace.cfg.tgt_len;
    t->mine = calloc(n, sizeof *t->mine);
    t->theirs = calloc(n, sizeof *t->theirs);
    t->in = calloc(now, sizeof *t->in);
    t->out = calloc(now, sizeof *t->out);
    if (!t->mine || !t->theirs || !t->in || !t->out)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", t->trace.path);
    return LAM_OK;
}

/* Forward, loss of the mean, backward; gradients start from zero.  Exact arithmetic has no backward. */
static void run_segment(replay *t, int segment)
{
    const int N = t->trace.cfg.tgt_len;
    for (int b = 0; b < t->trace.B; b++)
        for (int i = 0; i < N; i++) {
            const int32_t *at = t->trace.tokens + (size_t)b * t->trace.stride +
                                (size_t)segment * (size_t)N + (size_t)i;
            t->in[b * N + i] = at[0];
            t->out[b * N + i] = at[1];
        }
    if (t->optimizer)
        lam_optimizer_zero(t->optimizer);
    lam_stack_begin(t->stack, N, (lam_stack_dropout){0});
    lam_stack_forward(t->stack, t->in, N);
    lam_stack_loss(t->stack, t->out, t->optimizer ? 1.0 / ((double)t->trace.B * N) : 0.0);
    if (t->optimizer)
        lam_stack_backward(t->stack);
    lam_stack_commit(t->stack);
}

static lam_status check_grads(replay *t, int segment)
{
    lam_params *p = &t->model->params;
    double squares = 0.0;
    char name[LAM_NAME_MAX + 32];
    for (int i = 0; i < p->n; i++) {
        const size_t n = lam_param_count(&p->list[i]);
        LAM_TRY(lam_params_get(p, p->grad, i, t->mine));
        for (size_t k = 0; k < n; k++)
            squares += t->mine[k] * t->mine[k];
        snprintf(name, sizeof name, "seg%d.grad.%s", segment, p->list[i].name);
        LAM_TRY(compare(t, LAM_VERIFY_GRAD, name, t->mine, n, 1));
    }
    snprintf(name, sizeof name, "seg%d.grad_norm", segment);
    const double norm = sqrt(squares);
    return lam_st_find(t->trace.st, name) ? compare(t, LAM_VERIFY_GRAD_NORM, name, &norm, 1, 0)
                                          : LAM_OK;
}

typedef enum nesting { TIME_FIRST, STREAM_FIRST } nesting;

/* Slot rows [B][cap][width] to [n][B][true width] or [B][n][..]; contexts lose their heads' padding. */
static lam_status slot_rows(replay *t, const lam_mem *mem, const lam_slot *slot, nesting order)
{
    const lam_dtype dtype = lam_class_dtype(t->dev, slot->type);
    const size_t size = lam_dtype_size(dtype), width = (size_t)slot->width;
    const size_t B = (size_t)mem->B, valid = (size_t)slot->n;
    const int heads = slot->source == LAM_FROM_C ? t->trace.cfg.n_head : 1;
    const int true_width = slot->source == LAM_FROM_X   ? t->trace.cfg.d_model
                           : slot->source == LAM_FROM_C ? t->trace.cfg.d_head
                                                        : t->trace.cfg.n_head;
    const size_t stored = width / (size_t)heads, bytes = lam_slot_bytes(mem, slot);
    char *raw = malloc(bytes + 1);
    if (!raw)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", t->trace.path);
    const lam_status status = t->dev->ops->download(t->dev, raw, slot->rows, bytes);
    double *to = t->mine;
    for (size_t k = 0; k < B * valid && status == LAM_OK; k++) {
        const size_t b = order == TIME_FIRST ? k % B : k / valid;
        const size_t i = order == TIME_FIRST ? k / B : k % valid;
        const char *row = raw + (b * (size_t)slot->cap + i) * width * size;
        for (int h = 0; h < heads; h++, to += true_width)
            lam_convert(to, LAM_F64, row + (size_t)h * stored * size, dtype, (size_t)true_width);
    }
    t->n_mine = (size_t)(to - t->mine);
    free(raw);
    return status;
}

static lam_status check_state(replay *t, int segment)
{
    const lam_mem *mem = lam_stack_mem(t->stack);
    const int numbered = lam_st_find(t->trace.st, "seg0.mem0") != NULL;
    for (int i = 0; i < mem->n_slots; i++) {
        const lam_slot *slot = &mem->slots[i];
        char name[64];
        LAM_TRY(slot_rows(t, mem, slot, numbered ? TIME_FIRST : STREAM_FIRST));
        if (numbered)
            snprintf(name, sizeof name, "seg%d.mem%d", segment, i);
        else
            snprintf(name, sizeof name, "seg%d.state.%s.%d", segment, slot->name, slot->layer);
        LAM_TRY(compare(t, LAM_VERIFY_STATE, name, t->mine, t->n_mine, !numbered));
    }
    return LAM_OK;
}

static lam_status check_aux(replay *t, int segment)
{
    char name[64];
    double sum;
    snprintf(name, sizeof name, "seg%d.aux_loss", segment);
    LAM_TRY(lam_stack_aux(t->stack, &sum));
    const double mean = sum / ((double)t->trace.B * t->trace.cfg.tgt_len);
    return lam_st_find(t->trace.st, name) || sum != 0.0
               ? compare(t, LAM_VERIFY_AUX, name, &mean, 1, 0)
               : LAM_OK;
}

static lam_status check_segments(replay *t)
{
    lam_stack_reset(t->stack);
    for (int s = 0; s < t->trace.segments; s++) {
        char name[64];
        run_segment(t, s);
        LAM_TRY(lam_stack_nll(t->stack, t->mine));
        snprintf(name, sizeof name, "seg%d.nll", s);
        LAM_TRY(compare(t, LAM_VERIFY_NLL, name, t->mine,
                        (size_t)t->trace.B * (size_t)t->trace.cfg.tgt_len, 0));
        if (t->optimizer) {
            LAM_TRY(check_grads(t, s));
            LAM_TRY(check_aux(t, s));
        }
        LAM_TRY(check_state(t, s));
    }
    return LAM_OK;
}

/* The same losses with one token at a time. */
static lam_status decode_segment(replay *t, lam_stack *stack, int segment)
{
    const int N = t->trace.cfg.tgt_len, B = t->trace.B;
    double *column = t->theirs; /* free until the comparison */
    char name[64];
    lam_stack_begin(stack, N, (lam_stack_dropout){0});
    for (int i = 0; i < N; i++) {
        for (int b = 0; b < B; b++) {
            const int32_t *at = t->trace.tokens + (size_t)b * t->trace.stride +
                                (size_t)segment * (size_t)N + (size_t)i;
            t->in[b] = at[0];
            t->out[b] = at[1];
        }
        lam_stack_forward(stack, t->in, 1);
        lam_stack_loss(stack, t->out, 0.0);
        LAM_TRY(lam_stack_nll(stack, column));
        for (int b = 0; b < B; b++)
            t->mine[b * N + i] = column[b];
    }
    lam_stack_commit(stack);
    snprintf(name, sizeof name, "seg%d.nll", segment);
    return compare(t, LAM_VERIFY_DECODE, name, t->mine, (size_t)B * (size_t)N, 0);
}

static lam_status check_decoding(replay *t)
{
    const lam_stack_options options = stack_of(&t->trace);
    lam_stack *stack;
    LAM_TRY(lam_stack_create(&stack, t->model, &options));
    lam_status status = LAM_OK;
    for (int s = 0; s < t->trace.segments && status == LAM_OK; s++)
        status = decode_segment(t, stack, s);
    lam_stack_free(stack);
    return status;
}

/* Replays the recorded training run from the same parameters. */
static lam_status check_training(replay *t)
{
    const size_t now = (size_t)t->trace.B * (size_t)t->trace.cfg.tgt_len,
                 steps = (size_t)t->trace.train_steps;
    const lam_schedule schedule = {LAM_SCHEDULE_COSINE,  t->trace.lr, 0.0, 0,
                                   t->trace.train_steps, 0.0};
    lam_params *p = &t->model->params;
    double *loss = calloc(2 * steps + 1, sizeof *loss), *norm = loss ? loss + steps : NULL;
    lam_status status = loss ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "%s: no memory", t->trace.path);
    if (status == LAM_OK)
        status = lam_trace_tokens(&t->trace, "train.tokens", t->trace.train_steps);
    if (status == LAM_OK)
        status = lam_trace_params(&t->trace, p, t->mine);
    lam_stack_reset(t->stack);
    for (size_t s = 0; s < steps && status == LAM_OK; s++) {
        run_segment(t, (int)s);
        lam_optimizer_step(t->optimizer, lam_schedule_lr(&schedule, (long)s));
        status = lam_stack_nll(t->stack, t->mine);
        for (size_t i = 0; i < now; i++)
            loss[s] += t->mine[i] / (double)now;
        if (status == LAM_OK)
            status = lam_optimizer_norm(t->optimizer, &norm[s]);
    }
    if (status == LAM_OK)
        status = compare(t, LAM_VERIFY_TRAIN_LOSS, "train.loss", loss, steps, 0);
    if (status == LAM_OK)
        status = compare(t, LAM_VERIFY_TRAIN_NORM, "train.grad_norm", norm, steps, 0);
    for (int i = 0; i < p->n && status == LAM_OK; i++) {
        char name[LAM_NAME_MAX + 16];
        snprintf(name, sizeof name, "train.param.%s", p->list[i].name);
        status = lam_params_get(p, p->master, i, t->mine);
        if (status == LAM_OK)
            status =
                compare(t, LAM_VERIFY_TRAIN_PARAM, name, t->mine, lam_param_count(&p->list[i]), 0);
    }
    free(loss);
    return status;
}

static lam_status run(replay *t, const char *path, lam_dev *dev)
{
    LAM_TRY(lam_trace_open(&t->trace, path));
    LAM_TRY(lam_trace_check(&t->trace, dev));
    LAM_TRY(lam_trace_tokens(&t->trace, "tokens", t->trace.segments));
    LAM_TRY(build(t, dev));
    LAM_TRY(lam_trace_params(&t->trace, &t->model->params, t->mine));
    LAM_TRY(check_segments(t));
    LAM_TRY(check_decoding(t));
    return t->trace.train_steps > 0 && t->optimizer ? check_training(t) : LAM_OK;
}

lam_status lam_verify_file(lam_verdict *v, const char *path, lam_dev *dev)
{
    replay t = {.verdict = v};
    const lam_status status = run(&t, path, dev);
    lam_optimizer_free(t.optimizer);
    lam_stack_free(t.stack);
    lam_model_free(t.model);
    lam_trace_close(&t.trace);
    free(t.mine);
    free(t.theirs);
    free(t.in);
    free(t.out);
    return status;
}
