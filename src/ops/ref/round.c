/* ref/round.c -- ref16: the reference with every result that bf16 devices store as bf16 rounded to bf16.
 *
 * How wrong may a computation in bf16 be?  As wrong as this one, times a small factor: it is exact but for
 * the roundings that storing activations and weights in bf16 makes inevitable.  Sums, statistics and
 * gradients of parameters, which such a device keeps in float, are not rounded.
 * Each operation is ref's own, followed by the rounding of what it wrote. */
#include "ops/ref/ref.h"

/* Rows of blocks. */
static void round_rows(lam_view view, size_t ld, int blocks, int rows, int width)
{
    for (size_t b = 0; view.p && b < (size_t)blocks; b++)
        for (size_t r = 0; r < (size_t)rows; r++)
            lam_round16((double *)view.p + b * view.step + r * ld, (size_t)width);
}

static void round_matrix(void *p, int rows, int width, int ld)
{
    round_rows((lam_view){p, 0}, (size_t)ld, 1, rows, width);
}

static void gemm(lam_dev *dev, const lam_gemm *a)
{
    lam_ref_gemm(dev, a);
    if (a->c_class == LAM_ACT)
        round_rows((lam_view){a->c, a->step_c}, a->ldc, a->step_c == 0 ? 1 : a->batch, a->m, a->n);
}

static void norm_fwd(lam_dev *dev, const lam_norm *a)
{
    lam_ref_norm_fwd(dev, a);
    round_rows(a->y, (size_t)a->ld, a->blocks, a->rows, a->width);
    if (a->add && a->gain)
        round_matrix(a->sum, a->blocks * a->rows, a->width, a->ld);
}

static void norm_bwd(lam_dev *dev, const lam_norm *a)
{
    lam_ref_norm_bwd(dev, a);
    round_rows(a->dx, (size_t)a->ld, a->blocks, a->rows, a->width);
    round_matrix(a->dadd, a->blocks * a->rows, a->width, a->ld);
}

static void dropout(lam_dev *dev, const lam_dropout *a)
{
    lam_ref_dropout(dev, a);
    round_rows(a->out, (size_t)a->ld, a->blocks, a->rows, a->width);
}

static void attn_fwd(lam_dev *dev, const lam_attn *a)
{
    lam_ref_attn_fwd(dev, a);
    round_rows(a->o, a->ldo, a->B, a->queries, a->H * a->K);
}

static void attn_next(lam_dev *dev, const lam_attn_next *x)
{
    lam_ref_attn_next(dev, x); /* keys and values come rounded: they are ACT */
    round_rows(x->a.o, x->a.ldo, x->a.B, 1, x->a.H * x->a.K);
}

static void attn_bwd(lam_dev *dev, const lam_attn *a)
{
    const int width = a->H * a->K;
    lam_ref_attn_bwd(dev, a);
    round_rows(a->dq, a->ldq, a->B, a->queries, width);
    round_rows(a->dk, a->ldk, a->B, a->keys, width);
    round_rows(a->dvalue, a->ldk, a->B, a->keys, width);
    round_rows((lam_view){a->dr, 0}, a->ldr, 1, a->r_rows, width);
}

static void interp_fwd(lam_dev *dev, const lam_interp *a)
{
    const int width = a->H * a->K;
    lam_ref_interp_fwd(dev, a);
    round_rows(a->c_out, (size_t)width, a->B, a->rows, width);
}

static void interp_bwd(lam_dev *dev, const lam_interp *a)
{
    const int width = a->H * a->K;
    lam_ref_interp_bwd(dev, a);
    round_rows(a->dc_new, (size_t)width, a->B, a->rows, width);
}

static void pool(lam_dev *dev, const lam_pool *a)
{
    lam_ref_pool(dev, a);
    round_matrix(a->out, a->rows, a->width, a->ld);
}

static void distance(lam_dev *dev, const lam_distance *a)
{
    lam_ref_distance(dev, a);
    round_matrix(a->d, a->rows, a->width, a->ld);
}

static void gate_fwd(lam_dev *dev, const lam_gate *a)
{
    lam_ref_gate_fwd(dev, a);
    round_matrix(a->out, a->rows, a->width, a->ld);
}

static void gate_bwd(lam_dev *dev, const lam_gate *a)
{
    lam_ref_gate_bwd(dev, a);
    round_matrix(a->dpre, a->rows, a->width, a->ld);
}

static void density_fwd(lam_dev *dev, const lam_density *a)
{
    lam_ref_density_fwd(dev, a);
    round_rows((lam_view){a->r, 0}, a->ldr, 1, a->B * a->H * a->queries, a->basis);
}

static void density_bwd(lam_dev *dev, const lam_density *a)
{
    const int width = a->H * a->K;
    lam_ref_density_bwd(dev, a);
    round_rows(a->dq, a->ldq, a->B, a->queries, width);
    round_rows(a->dpull, (size_t)width, a->B, 2, width);
}

static void sticky(lam_dev *dev, const lam_sticky_samples *a)
{
    lam_ref_sticky(dev, a);
    round_rows((lam_view){a->psi, 0}, a->ld, 1, a->B * a->samples, a->basis);
}

static void embed_fwd(lam_dev *dev, const lam_embed *a)
{
    lam_ref_embed_fwd(dev, a);
    round_matrix(a->out, a->rows, a->width, a->ld);
}

static void xent(lam_dev *dev, const lam_xent *a)
{
    lam_ref_xent(dev, a);
    round_rows((lam_view){a->logits, 0}, a->ld, 1, a->rows, a->cols);
}

static void scatter(lam_dev *dev, const lam_pick *a)
{
    lam_ref_scatter(dev, a);
    for (int r = 0; r < a->rows; r++)
        lam_round16((double *)a->out + (size_t)((const int32_t *)a->index)[r] * a->ld_out,
                    (size_t)a->width);
}

static void update(lam_dev *dev, const lam_update *a)
{
    lam_ref_update(dev, a);
    for (int i = 0; a->weight && i < a->n_parts; i++)
        lam_round16((double *)a->weight + a->parts[i].offset, a->parts[i].count);
}

static void ortho_begin(lam_dev *dev, const lam_ortho_begin *a)
{
    lam_ref_ortho_begin(dev, a);
    lam_round16(a->x, (size_t)a->count * a->size);
}

static void ortho_mix(lam_dev *dev, const lam_ortho_mix *a)
{
    lam_ref_ortho_mix(dev, a);
    lam_round16(a->q, (size_t)a->count * (size_t)a->n * (size_t)a->n);
}

/* These write nothing that a bf16 device stores as bf16. */
#define EXACT(name, argument)                                                                      \
    static void name(lam_dev *dev, const argument *a)                                              \
    {                                                                                              \
        lam_ref_##name(dev, a);                                                                    \
    }
EXACT(copy, lam_copy)
EXACT(colsum, lam_colsum)
EXACT(attn_stats, lam_attn_stats)
EXACT(embed_bwd, lam_embed)
EXACT(gather, lam_pick)
EXACT(gnorm, lam_gnorm)
EXACT(ortho_even, lam_ortho_even)
EXACT(tally, lam_tally)

static lam_status open16(lam_dev **out, const lam_dev_options *options)
{
    *out = NULL;
    if (options->exact)
        return lam_fail(
            LAM_ERR_UNSUPPORTED,
            "device ref16: it is there to round; exact arithmetic has ref, cpu and cuda");
    LAM_TRY(lam_ref_open(out, &lam_ops_ref16, options));
    (*out)->rounds = 1;
    return LAM_OK;
}

#define ENTRY(name, argument) .name = name,

const lam_ops lam_ops_ref16 = {
    LAM_KERNEL_OPS(ENTRY) LAM_SHARED_OPS(LAM_HOST_ENTRY) /* every operation; then the device */
        .name = "ref16",
    .summary = "float64, what bf16 would store rounded to it, naive loops, one thread",
    .open = open16,
    LAM_REF_SERVICES,
};
