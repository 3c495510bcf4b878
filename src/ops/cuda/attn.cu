/* cuda/attn.cu -- relative-position attention on the GPU: which kernels run, and their scratch.
 *
 * Tiles on tensor cores take bf16 calls whose head width they know and whose rows are aligned, on
 * Hopper with kernels of their own (the only ones compiled for sm_90a); the plain loops take the
 * rest: float32, dropout on P, rbias, odd widths, and a handful of queries (decoding), which would
 * leave tiles empty.  All give the same numbers up to rounding and are deterministic: a result row
 * belongs to one block, and partial sums are added in a fixed order. */
#include "ops/cuda/attn_int.cuh"

enum { FEW_QUERIES = 16, FAR = 1 << 29 };
enum kind { PLAIN, TILED, SM90 };

static bool view_on_border(lam_view v, size_t ld, size_t element)
{
    return !v.p || (lam_cuda_on_border(v.p, ld, element) && v.step * element % 16 == 0);
}

static int all_on_border(const lam_attn *a, size_t element)
{
    return (size_t)a->K * element % 16 == 0 && view_on_border(a->q, a->ldq, element) &&
           view_on_border(a->k, a->ldk, element) && view_on_border(a->value, a->ldk, element) &&
           view_on_border(a->o, a->ldo, element) && view_on_border(a->d_o, a->ldo, element) &&
           view_on_border(a->dq, a->ldq, element) && view_on_border(a->dk, a->ldk, element) &&
           view_on_border(a->dvalue, a->ldk, element) &&
           lam_cuda_on_border(a->r, a->ldr, element) && lam_cuda_on_border(a->dr, a->ldr, element);
}

static attn_call call_of(const lam_cuda_dev *dev, const lam_attn *a)
{
    assert(a->queries >= 1 && a->keys >= 1);
    attn_call c = {};
    c.a = *a;
    if (!a->r && !a->rbias)
        c.a.r_rows = 0;
    c.e_lo = a->mode == LAM_AHEAD ? 1 : -FAR;
    c.e_hi = a->mode == LAM_CAUSAL ? 0 : FAR;
    if (a->mode == LAM_CAUSAL && a->reach > 0)
        c.e_lo = 1 - a->reach;
    c.e_first = a->r_sign > 0 ? -a->r_zero : a->r_zero - (a->r_rows - 1);
    c.mask = lam_cuda_mask_of(&a->drop);
    c.aligned = all_on_border(a, dev->bf16 ? sizeof(lam_bf16) : sizeof(float));
    return c;
}

static bool is_tiled(const lam_cuda_dev *dev, const attn_call *c)
{
    return dev->bf16 && c->aligned && c->mask.threshold == 0 && !c->a.rbias &&
           attn_by_tiled_width(c->a.K, [](auto) {});
}

/* Hopper's own kernels; they are there for attention with positions to keys that are all valid. */
static bool is_sm90(const lam_cuda_dev *dev, const attn_call *c)
{
    return is_tiled(dev, c) && dev->capability == 90 && c->a.r && !c->a.valid &&
           attn_by_sm90_width(c->a.K, [](auto) {});
}

/* Backward on Hopper leaves dS (bf16, never scores or P) of some heads at a time behind, at most so
 * many bytes: three kernels need it, and to read it costs less than to compute it again. */
static const size_t ds_limit = (size_t)512 << 20;

/* Bytes of one head. */
static size_t ds_of_head(const lam_attn *a)
{
    const size_t tile = ATTN_Q_TILE * ATTN_Q_TILE * sizeof(lam_bf16);
    return (size_t)a->B * (size_t)lam_cuda_ceil(a->queries, ATTN_Q_TILE) *
           (size_t)lam_cuda_ceil(a->keys, ATTN_Q_TILE) * tile;
}

static kind kind_of(const lam_cuda_dev *dev, const attn_call *c)
{
    return is_sm90(dev, c) ? SM90 : is_tiled(dev, c) ? TILED : PLAIN;
}

/* Cuts the next n floats off the scratch. */
static float *take(float **next, size_t n)
{
    float *p = *next;
    *next += (n + 63) / 64 * 64;
    return p;
}

/* Scratch for r in the order of offsets, where it is not so already. */
static lam_bf16 *take_reversed(const attn_call *c, float **next)
{
    const size_t n = (size_t)c->a.r_rows * (size_t)c->a.H * (size_t)c->a.K;
    return c->a.r_sign < 0 ? (lam_bf16 *)take(next, n / 2) : NULL;
}

/* Takes scratch for dS of as many heads as the limit allows. */
static lam_bf16 *take_ds(attn_call *c, float **next)
{
    const size_t one = ds_of_head(&c->a), all = one * (size_t)c->a.H;
    c->key_tiles = lam_cuda_ceil(c->a.keys, ATTN_Q_TILE);
    c->heads = all <= ds_limit ? c->a.H : (int)(ds_limit / one);
    /* Not heads * one, so that less of everything never needs more. */
    return (lam_bf16 *)take(next, (all < ds_limit ? all : ds_limit) / sizeof(float));
}

/* Lays the scratch of a pass out from `base` (NULL: to measure); returns the floats it needs. */
static size_t lay_out_fwd(attn_call *c, float *base)
{
    float *next = base;
    c->rp = take_reversed(c, &next);
    return (size_t)(next - base);
}

static size_t lay_out_bwd(attn_call *c, float *base, kind how)
{
    const lam_attn *a = &c->a;
    const size_t B = (size_t)a->B, H = (size_t)a->H, K = (size_t)a->K, keys = (size_t)a->keys;
    const size_t rows = (size_t)a->r_rows;
    float *next = base;

    c->q_pad = lam_cuda_ceil(a->queries, ATTN_Q_TILE) * ATTN_Q_TILE;
    c->delta = take(&next, B * H * (size_t)c->q_pad);
    if (how != PLAIN) {
        c->groups = a->r_rows > 0 ? attn_groups(a->B, a->H, a->K, a->r_rows) : 0;
        c->lse2 = take(&next, B * H * (size_t)c->q_pad);
        c->dr_part = take(&next, (size_t)c->groups * rows * H * K);
    }
    if (how == SM90) {
        const size_t n = B * H * (size_t)c->q_pad * K, tiles = (size_t)c->q_pad / ATTN_Q_TILE;
        c->rp = take_reversed(c, &next);
        c->qu = (lam_bf16 *)take(&next, n / 2);
        c->qv = (lam_bf16 *)take(&next, n / 2);
        c->ds = take_ds(c, &next);
        c->du_part = take(&next, B * tiles * H * K);
        c->dv_part = take(&next, B * tiles * H * K);
    } else if (how == TILED) {
        const size_t tiles = (size_t)lam_cuda_ceil(a->keys, attn_own(a->K));
        const size_t own = (size_t)attn_own(a->K), r_tiles = (rows + own - 1) / own;
        c->k_bias = take(&next, B * H * keys);
        c->r_bias = take(&next, H * rows);
        c->du_part = take(&next, B * tiles * H * K);
        c->dv_part = take(&next, (size_t)c->groups * r_tiles * H * K);
    } else {
        c->k_sum = take(&next, B * H * keys);
        c->r_sum = take(&next, H * rows);
        c->du_part = take(&next, ATTN_CHUNKS * H * K);
        c->dv_part = take(&next, ATTN_CHUNKS * H * K);
    }
    return (size_t)(next - base);
}

static size_t larger(size_t x, size_t y)
{
    return x > y ? x : y;
}

/* A call with less of everything never needs more, except that fewer rows of r make more groups:
 * groups * ceil(rows / own) * H <= 512 + H * ceil(rows / own) bounds all of them. */
size_t lam_cuda_attn_scratch(const lam_work *largest)
{
    attn_call c = {};
    c.a.B = largest->B;
    c.a.H = largest->H;
    c.a.K = largest->K;
    c.a.queries = largest->queries;
    c.a.keys = largest->keys;
    const size_t tiled = larger(lay_out_bwd(&c, NULL, TILED), lay_out_bwd(&c, NULL, SM90));
    c.a.r_rows = largest->r_rows; /* what the tiled ways need for r is bounded by `rows` */
    const size_t plain = lay_out_bwd(&c, NULL, PLAIN);
    const size_t own = ATTN_OWN, H = (size_t)largest->H, K = (size_t)largest->K;
    const size_t blocks = 512 + H * (((size_t)largest->r_rows + own - 1) / own + 1) * 2;
    const size_t rows = blocks * (own + 1) * K + H * (size_t)largest->r_rows * (K / 2 + 2) + 5 * 64;
    return sizeof(float) * (larger(plain, tiled + rows) + 64);
}

extern "C" void lam_cuda_attn_fwd(lam_dev *base, const lam_attn *a)
{
    lam_cuda_dev *dev = lam_cuda(base);
    attn_call c = call_of(dev, a);
    const kind how = a->queries < FEW_QUERIES ? PLAIN : kind_of(dev, &c);
    if (how == SM90) {
        const size_t bytes = sizeof(float) * lay_out_fwd(&c, NULL);
        lay_out_fwd(&c, (float *)lam_cuda_scratch(dev, bytes));
        lam_cuda_attn_reverse(dev, &c);
        lam_cuda_attn_sm90_fwd(dev, &c);
    } else if (how == TILED)
        lam_cuda_attn_tile_fwd(dev, &c);
    else
        lam_cuda_attn_simt_fwd(dev, &c);
}

extern "C" void lam_cuda_attn_bwd(lam_dev *base, const lam_attn *a)
{
    lam_cuda_dev *dev = lam_cuda(base);
    attn_call c = call_of(dev, a);
    kind how = kind_of(dev, &c);
    if (how == SM90 && ds_of_head(a) > ds_limit)
        how = TILED;
    const size_t bytes = sizeof(float) * lay_out_bwd(&c, NULL, how);
    lay_out_bwd(&c, (float *)lam_cuda_scratch(dev, bytes), how);

    lam_cuda_attn_prepare(dev, &c);
    if (how == SM90) {
        lam_cuda_attn_reverse(dev, &c);
        lam_cuda_attn_sm90_bwd(dev, &c);
    } else if (how == TILED) {
        lam_cuda_attn_tile_bwd_kv(dev, &c);
        if (a->r)
            lam_cuda_attn_tile_bwd_r(dev, &c);
        lam_cuda_attn_tile_bwd_q(dev, &c);
    } else {
        lam_cuda_attn_simt_bwd(dev, &c);
    }
}

extern "C" void lam_cuda_attn_stats(lam_dev *base, const lam_attn_stats *x)
{
    lam_cuda_dev *dev = lam_cuda(base);
    const attn_call c = call_of(dev, &x->attn);
    lam_cuda_attn_stats_run(dev, &c, x);
}
