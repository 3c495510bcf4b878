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

static void round_gemm(const lam_gemm *a)
{
    if (a->c_class == LAM_ACT)
        round_rows((lam_view){a->c, a->step_c}, a->ldc, a->step_c == 0 ? 1 : a->batch, a->m, a->n);
}

static void round_norm_fwd(const lam_norm *a)
{
    round_rows(a->y, (size_t)a->ld, a->blocks, a->rows, a->width);
    if (a->add && a->gain)
        round_matrix(a->sum, a->blocks * a->rows, a->width, a->ld);
}

static void round_norm_bwd(const lam_norm *a)
{
    round_rows(a->dx, (size_t)a->ld, a->blocks, a->rows, a->width);
    round_matrix(a->dadd, a->blocks * a->rows, a->width, a->ld);
}

static void round_dropout(const lam_dropout *a)
{
    round_rows(a->out, (size_t)a->ld, a->blocks, a->rows, a->width);
}

static void round_attn_fwd(const lam_attn *a)
{
    round_rows(a->o, a->ldo, a->B, a->queries, a->H * a->K);
}

static void round_attn_next(const lam_attn_next *x)
{
    /* keys and values come rounded: they are ACT */
    round_rows(x->a.o, x->a.ldo, x->a.B, 1, x->a.H * x->a.K);
}

static void round_attn_bwd(const lam_attn *a)
{
    const int width = a->H * a->K;
    round_rows(a->dq, a->ldq, a->B, a->queries, width);
    round_rows(a->dk, a->ldk, a->B, a->keys, width);
    round_rows(a->dvalue, a->ldk, a->B, a->keys, width);
    round_rows((lam_view){a->dr, 0}, a->ldr, 1, a->r_rows, width);
}

static void round_interp_fwd(const lam_interp *a)
{
    const int width = a->H * a->K;
    round_rows(a->c_out, (size_t)width, a->B, a->rows, width);
}

static void round_interp_bwd(const lam_interp *a)
{
    const int width = a->H * a->K;
    round_rows(a->dc_new, (size_t)width, a->B, a->rows, width);
}

static void round_pool(const lam_pool *a)
{
    round_matrix(a->out, a->rows, a->width, a->ld);
}

static void round_distance(const lam_distance *a)
{
    round_matrix(a->d, a->rows, a->width, a->ld);
}

static void round_gate_fwd(const lam_gate *a)
{
    round_matrix(a->out, a->rows, a->width, a->ld);
}

static void round_gate_bwd(const lam_gate *a)
{
    round_matrix(a->dpre, a->rows, a->width, a->ld);
}

static void round_density_fwd(const lam_density *a)
{
    round_rows((lam_view){a->r, 0}, a->ldr, 1, a->B * a->H * a->queries, a->basis);
}

static void round_density_bwd(const lam_density *a)
{
    const int width = a->H * a->K;
    round_rows(a->dq, a->ldq, a->B, a->queries, width);
    round_rows(a->dpull, (size_t)width, a->B, 2, width);
}

static void round_sticky(const lam_sticky_samples *a)
{
    round_rows((lam_view){a->psi, 0}, a->ld, 1, a->B * a->samples, a->basis);
}

static void round_embed_fwd(const lam_embed *a)
{
    round_matrix(a->out, a->rows, a->width, a->ld);
}

static void round_xent(const lam_xent *a)
{
    round_rows((lam_view){a->logits, 0}, a->ld, 1, a->rows, a->cols);
}

static void round_scatter(const lam_pick *a)
{
    for (int r = 0; r < a->rows; r++)
        lam_round16((double *)a->out + (size_t)((const int32_t *)a->index)[r] * a->ld_out,
                    (size_t)a->width);
}

static void round_update(const lam_update *a)
{
    for (int i = 0; a->weight && i < a->n_parts; i++)
        lam_round16((double *)a->weight + a->parts[i].offset, a->parts[i].count);
}

static void round_ortho_begin(const lam_ortho_begin *a)
{
    lam_round16(a->x, (size_t)a->count * a->size);
}

static void round_ortho_mix(const lam_ortho_mix *a)
{
    lam_round16(a->q, (size_t)a->count * (size_t)a->n * (size_t)a->n);
}

/* These write nothing that a bf16 device stores as bf16. */
#define NOTHING(name, argument)                                                                    \
    static void round_##name(const argument *a)                                                    \
    {                                                                                              \
        (void)a;                                                                                   \
    }
NOTHING(copy, lam_copy)
NOTHING(colsum, lam_colsum)
NOTHING(attn_stats, lam_attn_stats)
NOTHING(embed_bwd, lam_embed)
NOTHING(gather, lam_pick)
NOTHING(gnorm, lam_gnorm)
NOTHING(ortho_even, lam_ortho_even)
NOTHING(tally, lam_tally)

#define ROUNDED(name, argument)                                                                    \
    static void name(lam_dev *dev, const argument *a)                                              \
    {                                                                                              \
        lam_ref_##name(dev, a);                                                                    \
        round_##name(a);                                                                           \
    }
LAM_KERNEL_OPS(ROUNDED)

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
