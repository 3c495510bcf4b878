/* infinite_fit.c -- the signal of the infinity-former's long-term memory: the gate, the fit, sampling.
 *
 *   x~ = x * sigmoid(conv(x))                        kernel 3, zeros outside the block
 *   B  = G^T x~, or G_old^T Psi B_old + G_new^T x~
 *
 * Psi evaluates the old signal evenly, and then G_old^T Psi is a constant [N][N] matrix; or (sticky) where the
 * previous segment's attention was, and then it is drawn for every update.  Matrices: mem/basis.h. */
#include "mem/basis.h"
#include "mem/infinite_int.h"

#include "core/rng.h"

#include <math.h>
#include <stdlib.h>

/* Uploads [rows][N] doubles as rows ld apart. */
static lam_status put_rows(const lam_segment *s, void *to, lam_class type, const double *from,
                           int rows, size_t ld)
{
    const size_t N = (size_t)fields_of(s->cfg).ltm_basis, size = lam_class_size(s->dev, type);
    char *raw = calloc((size_t)rows * ld, size);
    if (!raw)
        return lam_fail(LAM_ERR_MEMORY, "long-term memory: no memory");
    for (size_t r = 0; r < (size_t)rows; r++)
        lam_to_class(s->dev, type, raw + r * ld * size, from + r * N, LAM_F64, N);
    s->dev->ops->upload(s->dev, to, raw, (size_t)rows * ld * size);
    const lam_status status = s->dev->ops->sync(s->dev); /* raw goes away */
    free(raw);
    return status;
}

/* A [N][N] = G_old^T Psi: what old coefficients become in new ones. */
static void carry_over(double *A, const double *G, const lam_infinite *its)
{
    const int N = its->ltm_basis;
    for (int i = 0; i < N * N; i++)
        A[i] = 0.0;
    for (int m = 0; m < its->ltm_samples; m++)
        for (int k = 0; k < N; k++) {
            const double psi = lam_bump_at(lam_basis_bump(its, k), lam_basis_sample(its, m));
            for (int j = 0; j < N; j++)
                A[j * N + k] += G[(size_t)m * (size_t)N + (size_t)j] * psi;
        }
}

static lam_status fill_matrices(const lam_segment *s, const lam_infinite *its, double *G, double *A)
{
    const int block = block_of(s);
    const size_t ld = basis_ld(s), N = (size_t)its->ltm_basis;
    LAM_TRY(lam_basis_first(G, its, block));
    LAM_TRY(put_rows(s, work_of(s)->first, LAM_ACT, G, block, ld));
    LAM_TRY(lam_basis_update(G, its, block));
    LAM_TRY(put_rows(s, work_of(s)->fresh, LAM_ACT, G + (size_t)its->ltm_samples * N, block, ld));
    if (is_sticky(s->cfg))
        return put_rows(s, work_of(s)->old, LAM_ACT, G, its->ltm_samples, ld);
    carry_over(A, G, its);
    return put_rows(s, work_of(s)->old, LAM_ACT, A, its->ltm_basis, ld);
}

lam_status lam_ltm_fill(const lam_segment *s)
{
    const lam_infinite its = fields_of(s->cfg);
    const size_t N = (size_t)its.ltm_basis;
    double *G = malloc((size_t)(its.ltm_samples + block_of(s)) * N * sizeof *G);
    double *A = malloc(N * N * sizeof *A), *bumps = malloc(2 * N * sizeof *bumps);
    lam_status status = G && A && bumps ? LAM_OK
                                        : lam_fail(LAM_ERR_MEMORY,
                                                   "long-term memory: no memory for "
                                                   "%zu basis functions",
                                                   N);
    if (status == LAM_OK) {
        for (size_t j = 0; j < N; j++) {
            bumps[j] = lam_basis_bump(&its, (int)j).centre;
            bumps[N + j] = lam_basis_bump(&its, (int)j).width;
        }
        status = put_rows(s, work_of(s)->centre, LAM_WIDE, bumps, 1, N);
    }
    if (status == LAM_OK)
        status = put_rows(s, work_of(s)->width, LAM_WIDE, bumps + N, 1, N);
    if (status == LAM_OK)
        status = fill_matrices(s, &its, G, A);
    free(G);
    free(A);
    free(bumps);
    return status;
}

static lam_rows shifted(const lam_segment *s, int tap)
{
    const size_t D = (size_t)s->dims.D;
    const size_t plane = (size_t)s->B * (size_t)block_of(s) * D;
    return (lam_rows){lam_at(s->dev, LAM_ACT, work_of(s)->shifted, (size_t)tap * plane), 0, D};
}

/* The oldest block as the three taps see it: one row earlier, as it is, one row later, zeros outside. */
static void shift_block(const lam_segment *s, int layer)
{
    const lam_slot *pending = slot_of(s, layer, PENDING);
    const int L = block_of(s);
    const lam_view zeros = {NULL, 0};
    for (int tap = 0; tap < LAM_LTM_TAPS; tap++) {
        const int from = tap > 1 ? tap - 1 : 0, to = tap < 1 ? 1 - tap : 0;
        lam_mem_copy(s, lam_packed_view(s, shifted(s, tap).p, L, to),
                     lam_packed_view(s, pending->rows, pending->cap, from), L - from - to);
    }
    lam_mem_copy(s, lam_packed_view(s, shifted(s, 0).p, L, 0), zeros, 1);
    lam_mem_copy(s, lam_packed_view(s, shifted(s, LAM_LTM_TAPS - 1).p, L, L - 1), zeros, 1);
}

/* One tap of the kernel [D][LAM_LTM_TAPS][D]. */
static lam_linear tap_map(const lam_segment *s)
{
    const int D = s->dims.D;
    return (lam_linear){s->dev, 1, s->B * block_of(s), D, D, LAM_LTM_TAPS * (size_t)D};
}

static lam_gate gate_of(const lam_segment *s, int layer)
{
    return (lam_gate){.rows = s->B * block_of(s),
                      .width = s->cfg->d_model,
                      .ld = s->dims.D,
                      .in = shifted(s, 1).p,
                      .pre = lam_ltm_rows(s, layer).pre,
                      .out = work_of(s)->gated,
                      .dout = work_of(s)->gated,
                      .dpre = work_of(s)->gated};
}

static void gate_fwd(const lam_segment *s, int layer)
{
    const ltm_params *ids = params_of(s, layer);
    const size_t D = (size_t)s->dims.D;
    const lam_linear l = tap_map(s);
    shift_block(s, layer);
    for (int tap = 0; tap < LAM_LTM_TAPS; tap++) {
        const lam_epilogue e = {
            .add = tap > 0,
            .bias = tap == LAM_LTM_TAPS - 1 ? lam_vector(s->params, ids->conv_bias) : NULL};
        lam_linear_fwd(
            &l, (lam_rows){lam_ltm_rows(s, layer).pre, 0, D}, shifted(s, tap),
            lam_weights_from(s->dev, lam_weight(s->params, ids->conv), 0, (size_t)tap * D), &e);
    }
    const lam_gate gate = gate_of(s, layer);
    s->dev->ops->gate_fwd(s->dev, &gate);
}

/* C [rows][D] (+)= A X of every stream, with A a constant of `k` columns or (flipped) rows. */
static lam_gemm stream_gemm(const lam_segment *s, int rows, int k, const void *a, void *c)
{
    const size_t D = (size_t)s->dims.D;
    return (lam_gemm){.m = rows,
                      .n = s->dims.D,
                      .k = k,
                      .batch = s->B,
                      .a = a,
                      .lda = basis_ld(s),
                      .ldb = D,
                      .step_b = (size_t)k * D,
                      .c = c,
                      .c_class = LAM_ACT,
                      .ldc = D,
                      .step_c = (size_t)rows * D};
}

/* Ascending uniform numbers, as sums of exponential ones over their total; a function of the seed, the place
 * in the text and the layer, the same for every stream. */
static void draw_sorted(const lam_segment *s, int layer)
{
    enum { PIECE = 256 };
    const lam_rng start = {.key = s->drop.seed ^ 0x5354494b59ull,
                           .stream = (uint64_t)s->mem->seen * LAM_MAX_LAYERS + (uint64_t)layer};
    const int n = fields_of(s->cfg).ltm_samples;
    lam_rng rng = start;
    double total = 0.0, sum = 0.0;
    for (int i = 0; i <= n; i++)
        total -= log1p(-lam_rng_uniform(&rng));
    rng = start;
    for (int at = 0; at < n; at += PIECE) {
        double piece[PIECE], raw[PIECE];
        const int k = n - at < PIECE ? n - at : PIECE;
        for (int i = 0; i < k; i++) {
            sum -= log1p(-lam_rng_uniform(&rng));
            piece[i] = sum / total;
        }
        lam_convert(raw, s->dev->wide, piece, LAM_F64, (size_t)k);
        s->dev->ops->upload(s->dev, lam_at(s->dev, LAM_WIDE, work_of(s)->draws, (size_t)at), raw,
                            (size_t)k * lam_class_size(s->dev, LAM_WIDE));
    }
}

/* The old signal where the previous segment looked: SAMPLES = Psi B. */
static void sample_signal(const lam_segment *s, int layer)
{
    const lam_slot *mu = slot_of(s, layer, MEAN_WAS), *var = mu + 1;
    const lam_config *cfg = s->cfg;
    const size_t H = (size_t)cfg->n_head, ld = basis_ld(s);
    draw_sorted(s, layer);
    s->dev->ops->sticky(s->dev,
                        &(lam_sticky_samples){.B = s->B,
                                              .rows = mu->n,
                                              .H = cfg->n_head,
                                              .bins = LAM_LTM_BINS,
                                              .samples = fields_of(cfg).ltm_samples,
                                              .basis = fields_of(cfg).ltm_basis,
                                              .within = fields_of(cfg).ltm_sticky == UNIFORM,
                                              .mu = {mu->rows, (size_t)mu->cap * H},
                                              .var = {var->rows, (size_t)var->cap * H},
                                              .draws = work_of(s)->draws,
                                              .centre = work_of(s)->centre,
                                              .width = work_of(s)->width,
                                              .edge = work_of(s)->edges,
                                              .psi = work_of(s)->psi,
                                              .ld = ld});
    lam_gemm g = stream_gemm(s, fields_of(cfg).ltm_samples, fields_of(cfg).ltm_basis,
                             work_of(s)->psi, work_of(s)->samples);
    g.step_a = (size_t)fields_of(cfg).ltm_samples * ld;
    g.b = slot_of(s, layer, SIGNAL)->rows;
    s->dev->ops->gemm(s->dev, &g);
}

void lam_ltm_fit(const lam_segment *s, int layer)
{
    const lam_slot *signal = slot_of(s, layer, SIGNAL);
    const int N = fields_of(s->cfg).ltm_basis;
    void *coef = lam_ltm_rows(s, layer).coef;
    if (!takes_block(s)) {
        lam_mem_copy(s, lam_packed_view(s, coef, N, 0), lam_packed_view(s, signal->rows, N, 0), N);
        return;
    }
    const int old = signal->n > 0;
    if (old) {
        const int sticky = is_sticky(s->cfg), k = sticky ? fields_of(s->cfg).ltm_samples : N;
        if (sticky)
            sample_signal(s, layer);
        lam_gemm g = stream_gemm(s, N, k, work_of(s)->old, coef);
        g.ta = sticky ? LAM_FLIP : LAM_KEEP;
        g.b = sticky ? work_of(s)->samples : signal->rows;
        s->dev->ops->gemm(s->dev, &g);
    }
    gate_fwd(s, layer);
    lam_gemm g =
        stream_gemm(s, N, block_of(s), (old ? work_of(s)->fresh : work_of(s)->first), coef);
    g.ta = LAM_FLIP;
    g.b = work_of(s)->gated;
    g.beta = old;
    s->dev->ops->gemm(s->dev, &g);
}

/* forward was B = .. + G^T x~, x~ = x sigmoid(conv(x)); x is constant. */
void lam_ltm_fit_bwd(const lam_segment *s, int layer)
{
    const ltm_params *ids = params_of(s, layer);
    const int N = fields_of(s->cfg).ltm_basis;
    const size_t D = (size_t)s->dims.D;
    const int old = slot_of(s, layer, SIGNAL)->n > 0;
    lam_gemm g = stream_gemm(s, block_of(s), N, (old ? work_of(s)->fresh : work_of(s)->first),
                             work_of(s)->gated);
    g.b = work_of(s)->dcoef;
    s->dev->ops->gemm(s->dev, &g);
    shift_block(s, layer);
    const lam_gate gate = gate_of(s, layer);
    s->dev->ops->gate_bwd(s->dev, &gate);

    const lam_linear l = tap_map(s);
    for (int tap = 0; tap < LAM_LTM_TAPS; tap++)
        lam_linear_bwd_w(&l,
                         lam_at(s->dev, LAM_WIDE, lam_grad(s->params, ids->conv), (size_t)tap * D),
                         (lam_rows){work_of(s)->gated, 0, D}, shifted(s, tap));
    s->dev->ops->colsum(s->dev,
                        &(lam_colsum){s->B * block_of(s), s->cfg->d_model, s->dims.D,
                                      work_of(s)->gated, lam_grad(s->params, ids->conv_bias)});
}
