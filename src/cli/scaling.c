/* scaling.c -- see scaling.h.
 *
 * R processes exchange n bytes of gradients by recursive halving and doubling (comm/large.c): 2 n (R - 1) / R bytes each
 * way, and 2 log2 R messages one after the other for each part that is summed by itself: a layer, while the backward pass
 * lasts, and what is left then.  What only its owner computes, the weights with --zero 1 or on a CPU Muon's steps, is
 * spread by log2 R messages and (R - 1) / R of its bytes.  The flags of a step take 2 log2 R short messages, four times,
 * and once more before something is spread.  The sums of all layers but the lowest are beside the backward pass, which
 * takes two thirds of a step and is taken not to become longer by it.  Every process is taken to be equally fast. */
#include "cli/scaling.h"

#include "cli/output.h"
#include "cli/term.h"
#include "core/budget.h"
#include "core/log.h"
#include "model/macs.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

static const double BACKWARD = 2.0 / 3.0; /* of a step */
static const double HARDLY = 0.5; /* of the segments, below which the memory is hardly ever full */

typedef struct row {
    int ranks;
    int64_t streams;
    double step_ms, exchange_ms, efficiency;
    double optimizer; /* bytes of the process that keeps most; < 0: it cannot be divided */
    double stream_tokens,
        full; /* of the text; part of a stream's segments that find a full memory */
} row;

static double compute_ms(const lam_scaling *s, const lam_model *model, const lam_settings *t)
{
    return s->step_ms > 0.0
               ? s->step_ms
               : 1e3 * lam_macs_step(&model->cfg, t->batch_size) / model->dev->macs_per_s;
}

/* Bytes that each rank gets from those who computed them. */
static double spread_bytes(const lam_scaling *s, const lam_model *model, const lam_settings *t)
{
    const lam_params *p = &model->params;
    const bool steps = lam_rules[t->optim]->divide && !model->dev->own_memory;
    const size_t n = s->zero ? p->total : steps ? p->total - p->rest : 0;
    return (double)n * (double)lam_class_size(model->dev, LAM_WIDE);
}

/* In how many parts gradients are summed. */
static int parts_of(const lam_scaling *s, const lam_model *model)
{
    const int layers = model->cfg.n_layer;
    return s->apart ? 1 : 1 + (layers < LAM_MARKS ? layers : LAM_MARKS);
}

static double exchange_ms(const lam_scaling *s, const lam_model *model, const lam_settings *t,
                          int ranks)
{
    const double bytes = (double)model->params.total * (double)lam_class_size(model->dev, LAM_WIDE);
    const double spread = spread_bytes(s, model, t), part = (double)(ranks - 1) / ranks;
    const double messages =
        (8.0 + 2.0 * parts_of(s, model) + (spread > 0.0 ? 3.0 : 0.0)) * log2(ranks);
    return messages * s->link_us * 1e-3 + (2.0 * bytes + spread) * part / s->link_gbs * 1e-6;
}

/* What of it the backward pass hides. */
static double hidden_ms(const lam_scaling *s, const lam_model *model, double compute, int ranks)
{
    const lam_params *p = &model->params;
    const double above = 1.0 - 1.0 / model->cfg.n_layer;
    const double bytes =
        (double)(p->total - p->rest) * (double)lam_class_size(model->dev, LAM_WIDE);
    const double messages = 2.0 * (parts_of(s, model) - 2) * log2(ranks);
    const double sums = messages * s->link_us * 1e-3 +
                        2.0 * above * bytes * (ranks - 1) / ranks / s->link_gbs * 1e-6;
    return s->apart ? 0.0 : fmin(sums, above * BACKWARD * compute);
}

/* The most that a process of so many takes. */
static double optimizer_bytes(const lam_scaling *s, lam_model *model, const lam_settings *t,
                              int ranks)
{
    lam_optimizer_options o = lam_settings_optimizer(t);
    size_t most = 0;
    o.shares = ranks > 1 ? ranks : 0;
    o.ranks = ranks;
    o.zero = s->zero;
    for (o.rank = 0; o.rank < (s->zero ? ranks : 1); o.rank++) {
        size_t bytes;
        if (lam_optimizer_measure(&bytes, model, &o) != LAM_OK)
            return -1.0;
        most = bytes > most ? bytes : most;
    }
    return (double)most;
}

static row row_of(const lam_scaling *s, lam_model *model, const lam_settings *t, int ranks)
{
    const lam_config *cfg = &model->cfg;
    const double compute = compute_ms(s, model, t), exchange = exchange_ms(s, model, t, ranks);
    const double step = compute + exchange - hidden_ms(s, model, compute, ranks);
    row r = {.ranks = ranks,
             .streams = (int64_t)ranks * t->batch_size,
             .step_ms = step,
             .exchange_ms = exchange,
             .efficiency = compute / step,
             .optimizer = optimizer_bytes(s, model, t, ranks)};
    r.stream_tokens = floor((double)s->tokens / (double)r.streams);
    const double segments = r.stream_tokens / cfg->tgt_len;
    const double filling = ceil((double)cfg->mem_len / cfg->tgt_len);
    r.full = segments > filling ? 1.0 - filling / segments : 0.0;
    return r;
}

static lam_status print_json(const lam_scaling *s, lam_model *model, const lam_settings *t)
{
    json_t *const rows = json_array();
    for (int n = 1; n <= s->ranks; n *= 2) {
        const row r = row_of(s, model, t, n);
        json_t *const one = json_pack("{s:i, s:I, s:f, s:f, s:f}", "ranks", r.ranks, "streams",
                                      (json_int_t)r.streams, "step_ms", r.step_ms, "exchange_ms",
                                      r.exchange_ms, "efficiency", r.efficiency);
        json_object_set_new(one, "optimizer_bytes",
                            r.optimizer < 0.0 ? json_null()
                                              : json_integer((json_int_t)r.optimizer));
        if (s->tokens > 0) {
            json_object_set_new(one, "stream_tokens", json_real(r.stream_tokens));
            json_object_set_new(one, "memory_full", json_real(r.full));
        }
        json_array_append_new(rows, one);
    }
    return lam_print_json(json_pack("{s:f, s:f, s:f, s:o}", "one_step_ms", compute_ms(s, model, t),
                                    "link_gbs", s->link_gbs, "link_us", s->link_us, "scaling",
                                    rows),
                          JSON_INDENT(2));
}

lam_status lam_scaling_print(const lam_scaling *s, lam_model *model, const lam_settings *settings,
                             bool json)
{
    if (s->ranks < 1 || (s->ranks & (s->ranks - 1)) != 0)
        return lam_fail(LAM_ERR_ARG, "--ranks %d: must be a power of two", s->ranks);
    if (json)
        return print_json(s, model, settings);
    printf("a step of one process: %.4g ms%s, %d streams each\n", compute_ms(s, model, settings),
           s->step_ms > 0.0 ? "" : " (estimated by its multiply-accumulates; --step-ms measures)",
           settings->batch_size);
    printf("a message: %.4g us and %.4g GB/s each way\n\n", s->link_us, s->link_gbs);
    printf("%9s %10s %12s %12s %11s %12s", "processes", "streams", "step, ms", "exchange, ms",
           "efficiency", "optimiser");
    printf(s->tokens > 0 ? " %14s %12s\n" : "\n", "tokens/stream", "memory full");
    row last = {0};
    for (int n = 1; n <= s->ranks; n *= 2) {
        last = row_of(s, model, settings, n);
        char size[32] = "indivisible";
        if (last.optimizer >= 0.0)
            lam_format_size(size, sizeof size, last.optimizer);
        printf("%9d %10lld %12.4g %12.4g %9.1f %% %12s", last.ranks, (long long)last.streams,
               last.step_ms, last.exchange_ms, 100.0 * last.efficiency, size);
        if (s->tokens > 0)
            printf(" %14.0f %10.0f %%", last.stream_tokens, 100.0 * last.full);
        putchar('\n');
    }
    if (s->tokens > 0 && model->cfg.mem_len > 0 && last.full < HARDLY)
        lam_log(LAM_LOG_WARN,
                "with %d processes a stream has %.0f tokens, %.3g segments: the memory is full in "
                "only %.0f %% of them; fewer streams or a longer text would help",
                last.ranks, last.stream_tokens, last.stream_tokens / model->cfg.tgt_len,
                100.0 * last.full);
    return LAM_OK;
}
