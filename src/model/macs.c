/* macs.c -- see macs.h.
 *
 * The paper prints the column and not how it was counted.  Counted as here, four of the five rows of Table 1 come
 * out within 1.1 %; that of the infinity-former, 235 million, would take far more samples than were published. */
#include "model/macs.h"

#include "mem/fields.h"

#include <assert.h>

static double softmax_macs(const lam_config *cfg)
{
    const lam_cluster head = lam_config_cluster(cfg, 0);
    const int projected = cfg->div_val > 1 || cfg->d_embed != cfg->d_model;
    return (double)(head.count + cfg->n_cutoffs) * head.width +
           (projected ? (double)cfg->d_model * head.width : 0.0);
}

static const lam_mem_ops *memory_called(const char *name)
{
    const lam_mem_ops *mem = NULL;
    const lam_status status = lam_mem_find(&mem, name);
    assert(status == LAM_OK && "a finished configuration names a memory that exists");
    (void)status;
    return mem;
}

static lam_mem_cost cost_of(const lam_config *cfg, const lam_mem_ops *mem)
{
    lam_mem_cost cost = {0};
    mem->cost(&cost, cfg);
    return cost;
}

/* The same with the defaults of its own fields. */
static lam_mem_cost usual_cost(const lam_config *cfg, const lam_mem_ops *mem)
{
    lam_config usual = *cfg;
    lam_fields_default(&usual, mem);
    return cost_of(&usual, mem);
}

int lam_macs_external_rows(const lam_config *cfg)
{
    return cost_of(cfg, memory_called(cfg->memory)).external_rows;
}

/* Everything but the softmax is computed for ext_len rows more. */
static lam_macs extended(const lam_config *cfg, const char *memory)
{
    lam_config longer = *cfg;
    longer.tgt_len = cfg->tgt_len + cfg->ext_len;
    longer.ext_len = 0;
    lam_macs m = lam_macs_token(&longer, memory);
    double *const parts[] = {&m.project, &m.ffn, &m.attention, &m.memory};
    m.total = m.softmax;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i] *= (double)longer.tgt_len / cfg->tgt_len;
        m.total += *parts[i];
    }
    return m;
}

lam_macs lam_macs_token(const lam_config *cfg, const char *memory)
{
    if (cfg->ext_len > 0)
        return extended(cfg, memory);
    const lam_mem_ops *mem = memory_called(memory);
    const lam_mem_cost cost =
        mem == memory_called(cfg->memory) ? cost_of(cfg, mem) : usual_cost(cfg, mem);
    const double D = cfg->d_model, HK = lam_cost_heads(cfg), F = cfg->d_inner;
    const double N = cfg->tgt_len, L = cfg->n_layer;
    const double M = lam_mem_has(mem, LAM_REMEMBERS) ? cfg->mem_len : 0.0;
    const double products = cfg->attn_type == LAM_ATTN_ABSOLUTE ? 2.0 : 3.0;
    lam_macs m = {.project = L * 4.0 * D * HK,
                  .ffn = L * 2.0 * D * F,
                  .attention = L * products * HK * (M + (N + 1.0) / 2.0),
                  .memory = cost.memory,
                  .look_ahead = cost.look_ahead,
                  .softmax = softmax_macs(cfg),
                  .external = cost.external};
    m.total = m.project + m.ffn + m.attention + m.memory + m.look_ahead + m.softmax + m.external;
    return m;
}

/* What a segment of all streams multiplies. */
typedef struct segment_macs {
    double products;  /* of projections, FFN and softmax; the last layer leaves some out */
    double attention; /* of all kinds */
    double positions; /* W_r R, once a batch */
} segment_macs;

static segment_macs segment_of(const lam_config *cfg, const lam_mem_cost *cost, int B)
{
    const lam_macs m = lam_macs_token(cfg, cfg->memory);
    const double N = cfg->tgt_len, rows = (double)cfg->mem_len + N + cfg->ext_len + cost->positions;
    const int encoded = cfg->attn_type != LAM_ATTN_LEARNED && cfg->attn_type != LAM_ATTN_ABSOLUTE;
    return (segment_macs){
        .products = B * N * (m.project + m.ffn + (m.memory - cost->unused) + m.softmax),
        .attention = B * N * (m.attention + cost->attention),
        .positions =
            encoded ? cfg->n_layer * (double)cfg->d_model * lam_cost_heads(cfg) * rows : 0.0};
}

double lam_macs_segment(const lam_config *cfg, int B)
{
    const lam_mem_cost cost = cost_of(cfg, memory_called(cfg->memory));
    const segment_macs s = segment_of(cfg, &cost, B);
    return s.products + s.attention + s.positions + B * cfg->tgt_len * cost.forward;
}

/* Backward: twice the products, less the input gradients that end at constant memory rows and at the positions.
 * Attention forward has three products; backward has the content and positional scores again, dP, dV, dK, two of dQ
 * and dr. */
double lam_macs_step(const lam_config *cfg, int B)
{
    const lam_mem_cost cost = cost_of(cfg, memory_called(cfg->memory));
    const segment_macs s = segment_of(cfg, &cost, B);
    return 3.0 * s.products - B * cost.constant + s.attention * (1.0 + 8.0 / 3.0) +
           2.0 * s.positions + B * cfg->tgt_len * cost.step;
}
