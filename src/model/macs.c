/* macs.c -- see macs.h.
 *
 * The paper prints the column and not how it was counted.  Counted as here, four of the five rows of Table 1 come
 * out within 1.1 %; that of the infinity-former, 235 million, would take far more samples than were published. */
#include "model/macs.h"

#include <string.h>

/* Keys seen by a memory slot, averaged over the M slots: the newest min(N, M) keys, the newest slots fewer. */
static double ahead_keys(double N, double M)
{
    const double W = N < M ? N : M;
    return M > 0.0 ? (W * (M - W + 1.0) + W * (W - 1.0) / 2.0) / M : 0.0;
}

static double softmax_macs(const lam_config *cfg)
{
    const lam_cluster head = lam_config_cluster(cfg, 0);
    const int projected = cfg->div_val > 1 || cfg->d_embed != cfg->d_model;
    return (double)(head.count + cfg->n_cutoffs) * head.width +
           (projected ? (double)cfg->d_model * head.width : 0.0);
}

static int has(const lam_config *cfg, const char *memory)
{
    return strcmp(cfg->memory, memory) == 0;
}

/* Compressed rows, basis functions and the like: the config's, or the published ones for its lengths. */
typedef struct external {
    double rows;                  /* compressive */
    double basis, block, samples; /* infinite */
} external;

static external external_of(const lam_config *cfg)
{
    const int coarse = has(cfg, "compressive"), signal = has(cfg, "infinite");
    external e = {.rows = coarse ? cfg->cmem_len : cfg->mem_len};
    e.basis = signal ? cfg->ltm_basis : cfg->mem_len;
    e.block = signal ? cfg->ltm_block : cfg->tgt_len;
    e.samples = cfg->ltm_samples;
    return e;
}

int lam_macs_external_rows(const lam_config *cfg)
{
    return has(cfg, "compressive") ? cfg->cmem_len : has(cfg, "infinite") ? cfg->ltm_basis : 0;
}

static double width_of(const lam_config *cfg)
{
    return (double)cfg->n_head * cfg->d_head;
}

/* Compressive: keys and values of the compressed rows, attention to them, one strided convolution per evicted
 * row. */
static double coarse_keys(const lam_config *cfg)
{
    return cfg->n_layer * 2.0 * cfg->d_model * width_of(cfg) * external_of(cfg).rows / cfg->tgt_len;
}

static double coarse_attention(const lam_config *cfg)
{
    return cfg->n_layer * 3.0 * width_of(cfg) * external_of(cfg).rows;
}

static double convolution(const lam_config *cfg)
{
    const double D = cfg->d_model;
    return cfg->pooling == LAM_POOL_CONV ? cfg->n_layer * D * D : 0.0;
}

/* What reconstruction adds to a training step: keys and values of the new rows and the way back, O and O' by
 * content, the gradient of O' (scores, dP, dV, dK, dQ). */
static double reconstruction(const lam_config *cfg)
{
    const double HK = width_of(cfg), c = cfg->rate;
    if (cfg->pooling != LAM_POOL_CONV || cfg->aux_weight == 0.0)
        return 0.0;
    return cfg->n_layer *
           (4.0 * cfg->d_model * HK / c + HK * cfg->tgt_len * (2.0 + (2.0 + 5.0) / c));
}

/* Infinity-former as its paper describes it: smoothing convolution, keys and values of the coefficients,
 * their scores and context, output, mu and sigma, resampling and regression. */
static double infinite_macs(const lam_config *cfg)
{
    const double D = cfg->d_model, HK = width_of(cfg), N = cfg->tgt_len;
    const external e = external_of(cfg);
    const double conv = 3.0 * D * D, kv = 2.0 * D * HK * e.basis / N, out = D * HK;
    const double scores = 2.0 * HK * e.basis, moments = 2.0 * cfg->n_head * e.basis;
    const double resample = D * e.samples * e.basis / e.block;
    const double regress = D * (e.samples + e.block) * e.basis / e.block;
    return cfg->n_layer * (conv + kv + out + scores + moments + resample + regress);
}

/* What is really multiplied: no scores, and samples only where they are drawn. */
typedef struct signal_macs {
    double read, gate, refit, way_back; /* forward; way_back: from coefficients to the gate */
} signal_macs;

static signal_macs signal_of(const lam_config *cfg)
{
    const double D = cfg->d_model, HK = width_of(cfg), N = cfg->tgt_len, L = cfg->n_layer;
    const external e = external_of(cfg);
    const double old = cfg->ltm_sticky == LAM_STICKY_OFF ? e.basis : 2.0 * e.samples;
    return (signal_macs){
        .read = L * ((2.0 * D * HK + 2.0 * HK) * e.basis / N + HK * e.basis + HK * D + 2.0 * HK),
        .gate = L * 3.0 * D * D,
        .refit = L * D * (old * e.basis / e.block + e.basis),
        .way_back = L * D * e.basis};
}

/* Products of the external memory, per token: of a segment, and of a training step. */
static double external_segment(const lam_config *cfg)
{
    if (has(cfg, "compressive"))
        return coarse_keys(cfg) + convolution(cfg);
    const signal_macs m = signal_of(cfg);
    return has(cfg, "infinite") ? m.read + m.gate + m.refit : 0.0;
}

static double external_step(const lam_config *cfg)
{
    if (has(cfg, "compressive")) /* rows are constants; the convolution is made twice */
        return 2.0 * coarse_keys(cfg) + 3.0 * convolution(cfg) + reconstruction(cfg);
    const signal_macs m = signal_of(cfg);
    return has(cfg, "infinite") ? 3.0 * m.read + 2.0 * m.gate + m.refit + m.way_back : 0.0;
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
    const double D = cfg->d_model, HK = (double)cfg->n_head * cfg->d_head, F = cfg->d_inner;
    const double N = cfg->tgt_len, L = cfg->n_layer;
    const double M = strcmp(memory, "none") == 0 ? 0.0 : cfg->mem_len;
    lam_macs m = {0};
    m.project = L * 4.0 * D * HK;
    m.ffn = L * 2.0 * D * F;
    const double products = cfg->attn_type == LAM_ATTN_ABSOLUTE ? 2.0 : 3.0;
    m.attention = L * products * HK * (M + (N + 1.0) / 2.0);
    m.softmax = softmax_macs(cfg);
    if (strcmp(memory, "lamemo") == 0) {
        m.memory = (m.project + m.ffn) * M / N; /* every slot goes through the whole layer */
        m.look_ahead = L * 3.0 * HK * ahead_keys(N, M) * M / N;
    } else {
        m.memory = L * 2.0 * D * HK * M / N; /* keys and values only */
    }
    if (strcmp(memory, "compressive") == 0)
        m.external = coarse_keys(cfg) + coarse_attention(cfg) + convolution(cfg);
    if (strcmp(memory, "infinite") == 0)
        m.external = infinite_macs(cfg);
    m.total = m.project + m.ffn + m.attention + m.memory + m.look_ahead + m.softmax + m.external;
    return m;
}

/* Products of one segment but for the external memory's, with what the last layer leaves out; `positions` is
 * W_r R, once a batch. */
static double segment_macs(const lam_config *cfg, int B, double *attention, double *positions)
{
    const lam_macs m = lam_macs_token(cfg, cfg->memory);
    const double D = cfg->d_model, HK = width_of(cfg), F = cfg->d_inner;
    const double N = cfg->tgt_len, M = cfg->mem_len, L = cfg->n_layer;
    const int lamemo = has(cfg, "lamemo"), coarse = has(cfg, "compressive");
    double memory = m.memory, ahead = m.look_ahead;
    if (lamemo) { /* the last layer needs only keys and values of its memory rows */
        memory -= M / N * (2.0 * D * HK + 2.0 * D * F);
        ahead *= (L - 1.0) / L;
    }
    *attention = B * N * (m.attention + ahead + (coarse ? coarse_attention(cfg) : 0.0));
    *positions = L * D * HK *
                 (M + N + cfg->ext_len +
                  (lamemo   ? M
                   : coarse ? external_of(cfg).rows
                            : 0.0));
    if (cfg->attn_type == LAM_ATTN_LEARNED || cfg->attn_type == LAM_ATTN_ABSOLUTE)
        *positions = 0.0;
    return B * N * (m.project + m.ffn + memory + m.softmax);
}

double lam_macs_segment(const lam_config *cfg, int B)
{
    double attention, positions;
    const double products = segment_macs(cfg, B, &attention, &positions);
    return products + attention + positions + B * cfg->tgt_len * external_segment(cfg);
}

double lam_macs_step(const lam_config *cfg, int B)
{
    double attention, positions;
    const double products = segment_macs(cfg, B, &attention, &positions);
    const double D = cfg->d_model, HK = width_of(cfg);
    const double M = has(cfg, "none") ? 0.0 : cfg->mem_len;
    /* Backward: twice the products, less the input gradients that end at constant memory rows (the
     * first layer of LaMemo, all layers elsewhere) and at the positions.  Attention forward has three
     * products; backward has the content and positional scores again, dP, dV, dK, two of dQ and dr. */
    const double saved =
        has(cfg, "lamemo") ? B * M * 3.0 * D * HK : B * M * 2.0 * D * HK * cfg->n_layer;
    return 3.0 * products - saved + attention * (1.0 + 8.0 / 3.0) + 2.0 * positions +
           B * cfg->tgt_len * external_step(cfg);
}
