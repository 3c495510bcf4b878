/* macs.c -- see macs.h; formulas: specification of Transformer-XL, section 11. */
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

/* The constants of the specification's baselines for what the config does not carry. */
enum { EXTERNAL = 150, LTM_SAMPLES = 512 };

/* Rows of compressed memory: the config's, or as many as the memory has. */
static double coarse_rows(const lam_config *cfg)
{
    return strcmp(cfg->memory, "compressive") == 0 ? cfg->cmem_len : cfg->mem_len;
}

static double coarse_attention(const lam_config *cfg)
{
    return 3.0 * cfg->n_layer * cfg->n_head * cfg->d_head * coarse_rows(cfg);
}

/* Compressive: keys and values of the compressed rows, and one strided convolution per evicted row. */
static double compressive_macs(const lam_config *cfg)
{
    const double D = cfg->d_model, HK = (double)cfg->n_head * cfg->d_head, L = cfg->n_layer;
    const double conv = cfg->pooling == LAM_POOL_CONV ? D * D : 0.0;
    return L * (2.0 * D * HK * coarse_rows(cfg) / cfg->tgt_len + conv) + coarse_attention(cfg);
}

/* What reconstruction adds to a training step, per token: keys and values of the new rows and the way back, O
 * and O' by content, the gradient of O' (scores, dP, dV, dK, dQ). */
static double reconstruction_macs(const lam_config *cfg)
{
    const double D = cfg->d_model, HK = (double)cfg->n_head * cfg->d_head, c = cfg->rate;
    if (cfg->pooling != LAM_POOL_CONV || cfg->aux_weight == 0.0)
        return 0.0;
    return cfg->n_layer * (4.0 * D * HK / c + HK * cfg->tgt_len * (2.0 + (2.0 + 5.0) / c));
}

/* Infinity-former: smoothing convolution, keys and values of the coefficients, their scores and context,
 * output, mu and sigma, resampling and regression. */
static double infinite_macs(const lam_config *cfg)
{
    const double D = cfg->d_model, N = cfg->tgt_len, L = cfg->n_layer;
    const double conv = 3.0 * D * D, kv = 2.0 * D * D * EXTERNAL / N, out = D * D;
    const double scores = 2.0 * D * EXTERNAL, moments = 2.0 * cfg->n_head * EXTERNAL;
    const double resample = D * LTM_SAMPLES * EXTERNAL / N;
    const double regress = D * (LTM_SAMPLES + N) * EXTERNAL / N;
    return L * (conv + kv + out + scores + moments + resample + regress);
}

lam_macs lam_macs_token(const lam_config *cfg, const char *memory)
{
    const double D = cfg->d_model, HK = (double)cfg->n_head * cfg->d_head, F = cfg->d_inner;
    const double N = cfg->tgt_len, L = cfg->n_layer;
    const double M = strcmp(memory, "none") == 0 ? 0.0 : cfg->mem_len;
    lam_macs m = {0};
    m.project = L * 4.0 * D * HK;
    m.ffn = L * 2.0 * D * F;
    m.attention = L * 3.0 * HK * (M + (N + 1.0) / 2.0);
    m.softmax = softmax_macs(cfg);
    if (strcmp(memory, "lamemo") == 0) {
        m.memory = (m.project + m.ffn) * M / N; /* every slot goes through the whole layer */
        m.look_ahead = L * 3.0 * HK * ahead_keys(N, M) * M / N;
    } else {
        m.memory = L * 2.0 * D * HK * M / N; /* keys and values only */
    }
    if (strcmp(memory, "compressive") == 0)
        m.external = compressive_macs(cfg);
    if (strcmp(memory, "infinite") == 0)
        m.external = infinite_macs(cfg);
    m.total = m.project + m.ffn + m.attention + m.memory + m.look_ahead + m.softmax + m.external;
    return m;
}

/* Remembered rows in front of a segment. */
static double front_rows(const lam_config *cfg)
{
    return strcmp(cfg->memory, "none") == 0          ? 0.0
           : strcmp(cfg->memory, "compressive") == 0 ? cfg->mem_len + coarse_rows(cfg)
                                                     : cfg->mem_len;
}

/* Products of one segment, with what the last layer leaves out; `positions` is W_r R, once a batch. */
static double segment_macs(const lam_config *cfg, int B, double *attention, double *positions)
{
    lam_macs m = lam_macs_token(cfg, cfg->memory);
    const double D = cfg->d_model, HK = (double)cfg->n_head * cfg->d_head, F = cfg->d_inner;
    const double N = cfg->tgt_len, M = front_rows(cfg), L = cfg->n_layer;
    const int lamemo = strcmp(cfg->memory, "lamemo") == 0;
    double memory = m.memory, ahead = m.look_ahead;
    if (strcmp(cfg->memory, "compressive") == 0) {
        m.attention += coarse_attention(cfg);
        m.external -= coarse_attention(cfg);
    }
    if (lamemo) { /* the last layer needs only keys and values of its memory rows */
        memory -= M / N * (2.0 * D * HK + 2.0 * D * F);
        ahead *= (L - 1.0) / L;
    }
    *attention = B * N * (m.attention + ahead);
    *positions = L * D * HK * (M + N + (lamemo ? M : 0.0));
    return B * N * (m.project + m.ffn + memory + m.softmax + m.external);
}

double lam_macs_segment(const lam_config *cfg, int B)
{
    double attention, positions;
    const double products = segment_macs(cfg, B, &attention, &positions);
    return products + attention + positions;
}

double lam_macs_step(const lam_config *cfg, int B)
{
    double attention, positions;
    const double products = segment_macs(cfg, B, &attention, &positions);
    const double D = cfg->d_model, HK = (double)cfg->n_head * cfg->d_head;
    const double M = front_rows(cfg), N = cfg->tgt_len;
    const double own =
        strcmp(cfg->memory, "compressive") == 0 ? B * N * reconstruction_macs(cfg) : 0;
    /* Backward: twice the products, less the input gradients that end at constant memory rows (all
     * layers of Transformer-XL, the first of LaMemo) and at the positions.  Attention forward has three
     * products; backward has the content and positional scores again, dP, dV, dK, two of dQ and dr. */
    const int lamemo = strcmp(cfg->memory, "lamemo") == 0;
    const double saved = lamemo ? B * M * 3.0 * D * HK : B * M * 2.0 * D * HK * cfg->n_layer;
    return 3.0 * products - saved + attention * (1.0 + 8.0 / 3.0) + 2.0 * positions + own;
}
