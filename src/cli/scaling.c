/* scaling.c -- see scaling.h.
 *
 * R processes exchange n bytes of gradients by recursive halving and doubling (comm/comm.c): 2 log2 R messages one after
 * the other, and 2 n (R - 1) / R bytes each way.  A device with memory of its own is staged through the host: n bytes
 * down and up.  The flags of a step take 2 log2 R short messages, four times.  Nothing is overlapped, and every process
 * is taken to be equally fast. */
#include "cli/scaling.h"

#include "cli/output.h"
#include "cli/term.h"
#include "core/log.h"
#include "model/macs.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

static const double STAGE_GBS = 25.0; /* between host and device */
static const double HARDLY = 0.5; /* of the segments, below which the memory is hardly ever full */

typedef struct row {
    int ranks;
    int64_t streams;
    double step_ms, exchange_ms, efficiency;
    double stream_tokens,
        full; /* of the text; part of a stream's segments that find a full memory */
} row;

static double compute_ms(const lam_scaling *s, const lam_model *model, const lam_settings *t)
{
    return s->step_ms > 0.0
               ? s->step_ms
               : 1e3 * lam_macs_step(&model->cfg, t->batch_size) / model->dev->macs_per_s;
}

static double exchange_ms(const lam_scaling *s, const lam_model *model, int ranks)
{
    const double bytes = (double)model->params.total * (double)lam_class_size(model->dev, LAM_WIDE);
    const double messages = 2.0 * log2(ranks), part = (double)(ranks - 1) / ranks;
    const double stage = model->dev->own_memory && ranks > 1 ? 2.0 * bytes / STAGE_GBS : 0.0;
    return 5.0 * messages * s->link_us * 1e-3 + (2.0 * bytes * part / s->link_gbs + stage) * 1e-6;
}

static row row_of(const lam_scaling *s, const lam_model *model, const lam_settings *t, int ranks)
{
    const lam_config *cfg = &model->cfg;
    const double compute = compute_ms(s, model, t), exchange = exchange_ms(s, model, ranks);
    row r = {.ranks = ranks,
             .streams = (int64_t)ranks * t->batch_size,
             .step_ms = compute + exchange,
             .exchange_ms = exchange,
             .efficiency = compute / (compute + exchange)};
    r.stream_tokens = floor((double)s->tokens / (double)r.streams);
    const double segments = r.stream_tokens / cfg->tgt_len;
    const double filling = ceil((double)cfg->mem_len / cfg->tgt_len);
    r.full = segments > filling ? 1.0 - filling / segments : 0.0;
    return r;
}

static lam_status print_json(const lam_scaling *s, const lam_model *model, const lam_settings *t)
{
    json_t *const rows = json_array();
    for (int n = 1; n <= s->ranks; n *= 2) {
        const row r = row_of(s, model, t, n);
        json_t *const one = json_pack("{s:i, s:I, s:f, s:f, s:f}", "ranks", r.ranks, "streams",
                                      (json_int_t)r.streams, "step_ms", r.step_ms, "exchange_ms",
                                      r.exchange_ms, "efficiency", r.efficiency);
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

lam_status lam_scaling_print(const lam_scaling *s, const lam_model *model,
                             const lam_settings *settings, bool json)
{
    if (s->ranks < 1 || (s->ranks & (s->ranks - 1)) != 0)
        return lam_fail(LAM_ERR_ARG, "--ranks %d: must be a power of two", s->ranks);
    if (json)
        return print_json(s, model, settings);
    printf("a step of one process: %.4g ms%s, %d streams each\n", compute_ms(s, model, settings),
           s->step_ms > 0.0 ? "" : " (estimated by its multiply-accumulates; --step-ms measures)",
           settings->batch_size);
    printf("a message: %.4g us and %.4g GB/s each way%s\n\n", s->link_us, s->link_gbs,
           model->dev->own_memory ? ", and 25 GB/s between device and host" : "");
    printf("%9s %10s %12s %12s %11s", "processes", "streams", "step, ms", "exchange, ms",
           "efficiency");
    printf(s->tokens > 0 ? " %14s %12s\n" : "\n", "tokens/stream", "memory full");
    row last = {0};
    for (int n = 1; n <= s->ranks; n *= 2) {
        last = row_of(s, model, settings, n);
        printf("%9d %10lld %12.4g %12.4g %9.1f %%", last.ranks, (long long)last.streams,
               last.step_ms, last.exchange_ms, 100.0 * last.efficiency);
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
