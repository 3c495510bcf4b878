/* naive16.c -- bf16 memory around the naive float loops.
 *
 * An operation's ACT pointers are redirected to float copies of the allocations they point into.
 * Afterwards the elements that changed are rounded back: others, which may be WIDE neighbours in the
 * same allocation, are left alone. */
#include "support/naive16.h"

#include "support/naive.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
    char *memory;
    size_t bytes;
    float *now, *before; /* bytes / 2 floats each, while an operation runs; else NULL */
} block;

typedef struct half_dev {
    lam_dev base;
    block *blocks;
    size_t n_blocks;
} half_dev;

static lam_status half_open(lam_dev **out, const lam_dev_options *options)
{
    (void)options;
    half_dev *dev = calloc(1, sizeof *dev);
    *out = NULL;
    if (!dev)
        return lam_fail(LAM_ERR_MEMORY, "device naive16: no memory");
    dev->base = (lam_dev){
        .ops = &lam_ops_naive16, .act = LAM_BF16, .wide = LAM_F32, .tolerance = 1e-4, .pad = 8};
    *out = &dev->base;
    return LAM_OK;
}

static void half_close(lam_dev *dev)
{
    free(((half_dev *)dev)->blocks);
    free(dev);
}

static lam_status half_alloc(lam_dev *dev, void **out, size_t bytes)
{
    half_dev *d = (half_dev *)dev;
    block *more = realloc(d->blocks, (d->n_blocks + 1) * sizeof *more);
    *out = NULL;
    if (!more)
        return lam_fail(LAM_ERR_MEMORY, "device naive16: no memory");
    d->blocks = more;
    LAM_TRY(lam_ops_naive.alloc(dev, out, bytes));
    d->blocks[d->n_blocks++] = (block){.memory = *out, .bytes = bytes};
    return LAM_OK;
}

static void half_release(lam_dev *dev, void *memory)
{
    half_dev *d = (half_dev *)dev;
    for (size_t i = 0; i < d->n_blocks; i++)
        if (d->blocks[i].memory == memory) {
            d->blocks[i] = d->blocks[--d->n_blocks];
            break;
        }
    lam_ops_naive.release(dev, memory);
}

/* The float twin of an ACT address; NULL stays NULL. */
static void *wide(lam_dev *dev, const void *p)
{
    half_dev *d = (half_dev *)dev;
    for (block *b = d->blocks; p && b < d->blocks + d->n_blocks; b++) {
        if ((const char *)p < b->memory || (const char *)p > b->memory + b->bytes)
            continue;
        const size_t n = b->bytes / 2;
        if (!b->now) {
            b->now = malloc((n + 1) * sizeof(float));
            b->before = malloc((n + 1) * sizeof(float));
            if (!b->now || !b->before)
                abort();
            lam_convert(b->now, LAM_F32, b->memory, LAM_BF16, n);
            memcpy(b->before, b->now, n * sizeof(float));
        }
        return b->now + ((const char *)p - b->memory) / 2;
    }
    assert(!p);
    return NULL;
}

static lam_view wide_view(lam_dev *dev, lam_view v)
{
    return (lam_view){wide(dev, v.p), v.step};
}

/* Rounds back what the operation changed. */
static void finish(lam_dev *dev)
{
    half_dev *d = (half_dev *)dev;
    for (block *b = d->blocks; b < d->blocks + d->n_blocks; b++) {
        for (size_t i = 0; b->now && i < b->bytes / 2; i++)
            if (memcmp(&b->now[i], &b->before[i], sizeof(float)) != 0)
                lam_convert(b->memory + 2 * i, LAM_BF16, &b->now[i], LAM_F32, 1);
        free(b->now);
        free(b->before);
        b->now = b->before = NULL;
    }
}

/* ---- the ACT addresses of every argument become those of their twins ---- */

static void widen_lam_gemm(lam_dev *dev, lam_gemm *a)
{
    a->a = wide(dev, a->a);
    a->b = wide(dev, a->b);
    if (a->c_class == LAM_ACT)
        a->c = wide(dev, a->c);
    a->h = wide(dev, a->h);
}

static void widen_lam_norm(lam_dev *dev, lam_norm *a)
{
    a->x = wide_view(dev, a->x);
    a->y = wide_view(dev, a->y);
    a->add = wide(dev, a->add);
    a->sum = wide(dev, a->sum);
    a->dy = wide_view(dev, a->dy);
    a->dx = wide_view(dev, a->dx);
    a->dsum = wide_view(dev, a->dsum);
    a->dadd = wide(dev, a->dadd);
}

static void widen_lam_norm_gemm(lam_dev *dev, lam_norm_gemm *a)
{
    widen_lam_norm(dev, &a->norm);
    widen_lam_gemm(dev, &a->gemm);
}

static void widen_lam_dropout(lam_dev *dev, lam_dropout *a)
{
    a->in = wide_view(dev, a->in);
    a->out = wide_view(dev, a->out);
}

static void widen_lam_colsum(lam_dev *dev, lam_colsum *a)
{
    a->in = wide(dev, a->in);
}

static void widen_lam_attn(lam_dev *dev, lam_attn *a)
{
    a->q = wide_view(dev, a->q);
    a->k = wide_view(dev, a->k);
    a->value = wide_view(dev, a->value);
    a->r = wide(dev, a->r);
    a->o = wide_view(dev, a->o);
    a->d_o = wide_view(dev, a->d_o);
    a->dq = wide_view(dev, a->dq);
    a->dk = wide_view(dev, a->dk);
    a->dvalue = wide_view(dev, a->dvalue);
    a->dr = wide(dev, a->dr);
}

static void widen_lam_attn_next(lam_dev *dev, lam_attn_next *a)
{
    widen_lam_attn(dev, &a->a);
    a->k = wide_view(dev, a->k);
    a->value = wide_view(dev, a->value);
}

static void widen_lam_attn_stats(lam_dev *dev, lam_attn_stats *a)
{
    widen_lam_attn(dev, &a->attn);
}

static void widen_lam_interp(lam_dev *dev, lam_interp *a)
{
    a->c_old = wide_view(dev, a->c_old);
    a->c_new = wide_view(dev, a->c_new);
    a->c_out = wide_view(dev, a->c_out);
    a->dc_out = wide_view(dev, a->dc_out);
    a->dc_new = wide_view(dev, a->dc_new);
}

static void widen_lam_pool(lam_dev *dev, lam_pool *a)
{
    a->in = wide(dev, a->in);
    a->out = wide(dev, a->out);
}

static void widen_lam_distance(lam_dev *dev, lam_distance *a)
{
    a->a = wide(dev, a->a);
    a->b = wide(dev, a->b);
    a->d = wide(dev, a->d);
}

static void widen_lam_gate(lam_dev *dev, lam_gate *a)
{
    a->in = wide(dev, a->in);
    a->pre = wide(dev, a->pre);
    a->out = wide(dev, a->out);
    a->dout = wide(dev, a->dout);
    a->dpre = wide(dev, a->dpre);
}

static void widen_lam_density(lam_dev *dev, lam_density *a)
{
    a->q = wide_view(dev, a->q);
    a->pull = wide_view(dev, a->pull);
    a->r = wide(dev, a->r);
    a->dr = wide(dev, a->dr);
    a->dq = wide_view(dev, a->dq);
    a->dpull = wide_view(dev, a->dpull);
}

static void widen_lam_sticky_samples(lam_dev *dev, lam_sticky_samples *a)
{
    a->psi = wide(dev, a->psi);
}

static void widen_lam_embed(lam_dev *dev, lam_embed *a)
{
    a->table = wide(dev, a->table);
    a->out = wide(dev, a->out);
    a->dout = wide(dev, a->dout);
}

static void widen_lam_xent(lam_dev *dev, lam_xent *a)
{
    a->logits = wide(dev, a->logits);
}

static void widen_lam_pick(lam_dev *dev, lam_pick *a)
{
    a->in = wide(dev, a->in);
    a->out = wide(dev, a->out);
}

static void widen_lam_update(lam_dev *dev, lam_update *a)
{
    a->weight = wide(dev, a->weight);
}

static void widen_lam_ortho_begin(lam_dev *dev, lam_ortho_begin *a)
{
    a->x = wide(dev, a->x);
}

static void widen_lam_ortho_mix(lam_dev *dev, lam_ortho_mix *a)
{
    a->A = wide(dev, a->A);
    a->P = wide(dev, a->P);
    a->q = wide(dev, a->q);
}

/* These have no ACT addresses; copy moves elements of any class without reading them. */
#define NO_ACT(argument)                                                                           \
    static void widen_##argument(lam_dev *dev, argument *a)                                        \
    {                                                                                              \
        (void)dev, (void)a;                                                                        \
    }
NO_ACT(lam_copy)
NO_ACT(lam_gnorm)
NO_ACT(lam_ortho_even)
NO_ACT(lam_tally)
NO_ACT(lam_put_rows)

/* ---- the operations: naive's, which take addresses of floats ---- */

static void copy_by_class(lam_dev *dev, const lam_copy *a)
{
    for (size_t b = 0; b < (size_t)a->blocks; b++) {
        void *out = lam_at(dev, a->type, a->out.p, b * a->out.step);
        const size_t bytes = a->count * lam_class_size(dev, a->type);
        if (a->in.p)
            memmove(out, lam_at(dev, a->type, a->in.p, b * a->in.step), bytes);
        else
            memset(out, 0, bytes);
    }
}

static void float_norm_gemm(lam_dev *dev, const lam_norm_gemm *a)
{
    lam_naive_norm_fwd(dev, &a->norm);
    lam_naive_float_gemm(dev, &a->gemm);
}

/* Naive's own ask the device what ACT is, or know that all classes have four bytes. */
#define lam_naive_gemm      lam_naive_float_gemm
#define lam_naive_attn_fwd  lam_naive_float_attn_fwd
#define lam_naive_copy      copy_by_class
#define lam_naive_norm_gemm float_norm_gemm

#define AROUND(name, argument)                                                                     \
    static void half_##name(lam_dev *dev, const argument *a)                                       \
    {                                                                                              \
        argument b = *a;                                                                           \
        widen_##argument(dev, &b);                                                                 \
        lam_naive_##name(dev, &b);                                                                 \
        finish(dev);                                                                               \
    }
LAM_OPS(AROUND)

/* ---- the device ---- */

static lam_status half_reserve(lam_dev *dev, const lam_work *largest)
{
    return lam_ops_naive.reserve(dev, largest);
}

static size_t half_reserve_bytes(const lam_dev *dev, const lam_work *largest)
{
    return lam_ops_naive.reserve_bytes(dev, largest);
}

static void half_upload(lam_dev *dev, void *dst, const void *host, size_t bytes)
{
    lam_ops_naive.upload(dev, dst, host, bytes);
}

static lam_status half_download(lam_dev *dev, void *host, const void *src, size_t bytes)
{
    return lam_ops_naive.download(dev, host, src, bytes);
}

static void half_zero(lam_dev *dev, void *dst, size_t bytes)
{
    lam_ops_naive.zero(dev, dst, bytes);
}

static lam_status half_sync(lam_dev *dev)
{
    return lam_ops_naive.sync(dev);
}

#define ENTRY(name, argument) .name = half_##name,

const lam_ops lam_ops_naive16 = {
    LAM_OPS(ENTRY) /* every operation; then the device */
        .name = "naive16",
    .summary = "bf16 around plain float loops, for tests",
    .open = half_open,
    .close = half_close,
    .reserve = half_reserve,
    .reserve_bytes = half_reserve_bytes,
    .alloc = half_alloc,
    .release = half_release,
    .upload = half_upload,
    .download = half_download,
    .zero = half_zero,
    .sync = half_sync,
    .repeat = lam_naive_repeat,
    .replay = lam_host_replay,
    .free_graphs = lam_naive_free_graphs,
};
