/* infinite_read.c -- reading the infinity-former's long-term memory: continuous attention over its signal.
 *
 *   K, V = B W_K^T, B W_V^T
 *   mu, var of a Gaussian on [0, 1] from the scores q . k_j, r_j the mean of bump j under it
 *   a = (r V) W_out^T, added to the attention's output
 *
 * The divergence of each Gaussian from a narrow prior is an auxiliary loss.  A score meets its bump's weight at
 * once, sum_j w_j (q . k_j) = q . sum_j w_j k_j, so scores are never computed ("pull" below). */
#include "mem/heads.h"
#include "mem/infinite_int.h"

#include <math.h>

/* [W_K; W_V], own or the layer's; the gradient likewise, marked as used. */
static lam_weights kv_weight(const lam_segment *s, int layer)
{
    return fields_of(s->cfg).ltm_share_proj ? lam_kv_weight(s, layer)
                                            : lam_weight(s->params, params_of(s, layer)->key);
}

static void *kv_grad(const lam_segment *s, int layer)
{
    const size_t third = (size_t)s->dims.HK * (size_t)s->dims.D;
    if (fields_of(s->cfg).ltm_share_proj)
        return lam_at(s->dev, LAM_WIDE, lam_grad(s->params, s->ids[layer].qkv), third);
    lam_grad(s->params, params_of(s, layer)->value); /* stands right behind */
    return lam_grad(s->params, params_of(s, layer)->key);
}

static int out_param(const lam_segment *s, int layer)
{
    return fields_of(s->cfg).ltm_share_proj ? s->ids[layer].o_net : params_of(s, layer)->out;
}

/* pull = [w_mu; w_sigma] K of every stream. */
static lam_gemm pull_gemm(const lam_segment *s, int layer)
{
    const size_t HK = (size_t)s->dims.HK, N = (size_t)fields_of(s->cfg).ltm_basis;
    return (lam_gemm){.m = 2,
                      .n = s->dims.HK,
                      .k = fields_of(s->cfg).ltm_basis,
                      .batch = s->B,
                      .a = lam_weight(s->params, params_of(s, layer)->mu).p,
                      .lda = basis_ld(s),
                      .b = lam_ltm_rows(s, layer).kv,
                      .ldb = 2 * HK,
                      .step_b = N * 2 * HK,
                      .c = lam_ltm_rows(s, layer).pull,
                      .c_class = LAM_ACT,
                      .ldc = HK,
                      .step_c = 2 * HK};
}

/* What all rows of the segment will read; settled before the first of them. */
static void recall(const lam_segment *s, int layer)
{
    const ltm_rows own = lam_ltm_rows(s, layer);
    const lam_linear kv = lam_kv_map(s, s->B * fields_of(s->cfg).ltm_basis);
    lam_ltm_fit(s, layer);
    lam_linear_fwd(&kv, (lam_rows){own.kv, 0, 2 * (size_t)s->dims.HK},
                   (lam_rows){own.coef, 0, (size_t)s->dims.D}, kv_weight(s, layer), NULL);
    const lam_gemm pull = pull_gemm(s, layer);
    s->dev->ops->gemm(s->dev, &pull);
}

static lam_density density_of(const lam_segment *s, int layer)
{
    const lam_config *cfg = s->cfg;
    const size_t HK = (size_t)s->dims.HK, H = (size_t)cfg->n_head, step = (size_t)s->N * H;
    const size_t first = (size_t)s->first * H;
    const ltm_rows own = lam_ltm_rows(s, layer);
    return (lam_density){.B = s->B,
                         .H = cfg->n_head,
                         .K = s->dims.K,
                         .queries = s->n,
                         .basis = fields_of(cfg).ltm_basis,
                         .scale = 1.0 / sqrt((double)cfg->d_head),
                         .var_min = fields_of(cfg).ltm_var_min,
                         .centre = work_of(s)->centre,
                         .width = work_of(s)->width,
                         .q = lam_qkv_view(s, layer, LAM_Q, s->ctx + s->first),
                         .ldq = lam_q_ld(s),
                         .pull = {own.pull, 2 * HK},
                         .mu = {lam_at(s->dev, LAM_WIDE, own.mean, first), step},
                         .var = {lam_at(s->dev, LAM_WIDE, own.var, first), step},
                         .r = work_of(s)->r,
                         .ldr = basis_ld(s)};
}

static lam_heads r_heads(const lam_segment *s, void *r)
{
    const size_t ld = basis_ld(s), one = (size_t)s->n * ld;
    return (lam_heads){r, ld, one, (size_t)s->cfg->n_head * one};
}

/* V in a [B][N][2HK] buffer. */
static lam_heads v_heads(const lam_segment *s, void *kv)
{
    const size_t HK = (size_t)s->dims.HK;
    return (lam_heads){lam_at(s->dev, LAM_ACT, kv, HK), 2 * HK, (size_t)s->dims.K,
                       (size_t)fields_of(s->cfg).ltm_basis * 2 * HK};
}

static lam_heads z_heads(const lam_segment *s, void *z)
{
    const size_t HK = (size_t)s->dims.HK;
    return (lam_heads){z, HK, (size_t)s->dims.K, (size_t)s->n * HK};
}

void lam_ltm_read(const lam_segment *s, int layer)
{
    if (!is_alive(s))
        return;
    if (s->first == 0)
        recall(s, layer);
    const ltm_rows own = lam_ltm_rows(s, layer);
    const lam_density a = density_of(s, layer);
    s->dev->ops->density_fwd(s->dev, &a);
    lam_heads_gemm(s, (lam_gemm){.m = s->n, .n = s->dims.K, .k = fields_of(s->cfg).ltm_basis},
                   r_heads(s, a.r), v_heads(s, own.kv), z_heads(s, own.z));
}

static lam_linear out_map(const lam_segment *s)
{
    return (lam_linear){s->dev, 1, s->B * s->n, s->dims.HK, s->dims.D, (size_t)s->dims.HK};
}

static lam_rows z_rows(const lam_segment *s, void *z)
{
    return (lam_rows){z, 0, (size_t)s->dims.HK};
}

static lam_rows out_rows(const lam_segment *s)
{
    return (lam_rows){s->out, 0, (size_t)s->dims.D};
}

void lam_ltm_output(const lam_segment *s, int layer)
{
    if (!is_alive(s))
        return;
    const lam_linear l = out_map(s);
    lam_linear_fwd(&l, out_rows(s), z_rows(s, lam_ltm_rows(s, layer).z),
                   lam_weight(s->params, out_param(s, layer)), &(lam_epilogue){.add = 1});
}

/* forward was z = r V, r = r(q, pull): dV, dq (added), dpull, and the divergence's share of both. */
static void density_bwd(const lam_segment *s, int layer)
{
    const lam_config *cfg = s->cfg;
    const size_t H = (size_t)cfg->n_head, HK = (size_t)s->dims.HK;
    const size_t aux = (size_t)layer * (size_t)s->B * (size_t)s->N * H;
    lam_density a = density_of(s, layer);
    s->dev->ops->density_fwd(s->dev, &a); /* R serves all layers: make it again */
    lam_heads_gemm(
        s, (lam_gemm){.m = s->n, .n = fields_of(cfg).ltm_basis, .k = s->dims.K, .tb = LAM_FLIP},
        z_heads(s, work_of(s)->dz), v_heads(s, lam_ltm_rows(s, layer).kv),
        r_heads(s, work_of(s)->dr));
    lam_heads_gemm(
        s, (lam_gemm){.m = fields_of(cfg).ltm_basis, .n = s->dims.K, .k = s->n, .ta = LAM_FLIP},
        r_heads(s, a.r), z_heads(s, work_of(s)->dz), v_heads(s, work_of(s)->dkv));
    a.dr = work_of(s)->dr;
    a.dq = lam_dqkv_view(s, LAM_Q, s->ctx);
    a.dpull = (lam_view){work_of(s)->dpull, 2 * HK};
    a.prior = fields_of(cfg).ltm_sigma0 * fields_of(cfg).ltm_sigma0;
    a.weight = fields_of(cfg).ltm_kl / cfg->n_head;
    a.grad_scale = s->grad_scale;
    a.kl = (lam_view){lam_at(s->dev, LAM_WIDE, s->aux, aux), (size_t)s->n * H};
    s->dev->ops->density_bwd(s->dev, &a);
}

/* forward was pull = W K with W = [w_mu; w_sigma]: dW += dpull K^T, dK = W^T dpull. */
static void pull_bwd(const lam_segment *s, int layer)
{
    const size_t HK = (size_t)s->dims.HK, N = (size_t)fields_of(s->cfg).ltm_basis;
    const int mu = params_of(s, layer)->mu;
    lam_gemm g = pull_gemm(s, layer);
    const void *weight = g.a, *keys = g.b;
    g.n = fields_of(s->cfg).ltm_basis;
    g.k = s->dims.HK;
    g.a = work_of(s)->dpull;
    g.lda = HK;
    g.step_a = 2 * HK;
    g.tb = LAM_FLIP;
    g.c = lam_grad(s->params, mu);
    lam_grad(s->params, params_of(s, layer)->sigma); /* stands right behind */
    g.c_class = LAM_WIDE;
    g.ldc = basis_ld(s);
    g.step_c = 0; /* summed over the streams */
    g.beta = 1.0;
    g.b = keys;
    s->dev->ops->gemm(s->dev, &g);

    s->dev->ops->gemm(s->dev, &(lam_gemm){.m = fields_of(s->cfg).ltm_basis,
                                          .n = s->dims.HK,
                                          .k = 2,
                                          .batch = s->B,
                                          .ta = LAM_FLIP,
                                          .a = weight,
                                          .lda = basis_ld(s),
                                          .b = work_of(s)->dpull,
                                          .ldb = HK,
                                          .step_b = 2 * HK,
                                          .c = work_of(s)->dkv,
                                          .c_class = LAM_ACT,
                                          .ldc = 2 * HK,
                                          .step_c = N * 2 * HK});
}

/* forward was  [K V] = B W_KV^T,  z = r(q, K) V,  a = z W_out^T;  s->out holds da. */
void lam_ltm_read_bwd(const lam_segment *s, int layer)
{
    if (!is_alive(s))
        return;
    const ltm_rows own = lam_ltm_rows(s, layer);
    const size_t HK = (size_t)s->dims.HK, D = (size_t)s->dims.D;
    const lam_linear out = out_map(s), kv = lam_kv_map(s, s->B * fields_of(s->cfg).ltm_basis);
    const int id = out_param(s, layer);
    lam_linear_bwd_w(&out, lam_grad(s->params, id), out_rows(s), z_rows(s, own.z));
    lam_linear_bwd_x(&out, z_rows(s, work_of(s)->dz), out_rows(s), lam_weight(s->params, id), 0.0);
    density_bwd(s, layer);
    pull_bwd(s, layer);
    const lam_rows dkv = {work_of(s)->dkv, 0, 2 * HK}, coef = {own.coef, 0, D};
    lam_linear_bwd_w(&kv, kv_grad(s, layer), dkv, coef);
    if (!takes_block(s))
        return;
    lam_linear_bwd_x(&kv, (lam_rows){work_of(s)->dcoef, 0, D}, dkv, kv_weight(s, layer), 0.0);
    lam_ltm_fit_bwd(s, layer);
}
