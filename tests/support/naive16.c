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

static void half_gemm(lam_dev *dev, const lam_gemm *a)
{
    lam_gemm b = *a;
    b.a = wide(dev, a->a);
    b.b = wide(dev, a->b);
    if (a->c_class == LAM_ACT)
        b.c = wide(dev, a->c);
    b.h = a->h ? wide(dev, a->h) : NULL;
    lam_naive_float_gemm(dev, &b);
    finish(dev);
}

static lam_norm wide_norm(lam_dev *dev, const lam_norm *a)
{
    lam_norm b = *a;
    b.x = wide_view(dev, a->x);
    b.y = wide_view(dev, a->y);
    b.add = wide(dev, a->add);
    b.sum = wide(dev, a->sum);
    b.dy = wide_view(dev, a->dy);
    b.dx = wide_view(dev, a->dx);
    b.dsum = wide_view(dev, a->dsum);
    b.dadd = wide(dev, a->dadd);
    return b;
}

static void half_norm_fwd(lam_dev *dev, const lam_norm *a)
{
    const lam_norm b = wide_norm(dev, a);
    lam_naive_norm_fwd(dev, &b);
    finish(dev);
}

static void half_norm_bwd(lam_dev *dev, const lam_norm *a)
{
    const lam_norm b = wide_norm(dev, a);
    lam_naive_norm_bwd(dev, &b);
    finish(dev);
}

static void half_dropout(lam_dev *dev, const lam_dropout *a)
{
    lam_dropout b = *a;
    b.in = wide_view(dev, a->in);
    b.out = wide_view(dev, a->out);
    lam_naive_dropout(dev, &b);
    finish(dev);
}

static void half_copy(lam_dev *dev, const lam_copy *a)
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

static void half_colsum(lam_dev *dev, const lam_colsum *a)
{
    lam_colsum b = *a;
    b.in = wide(dev, a->in);
    lam_naive_colsum(dev, &b);
    finish(dev);
}

static lam_attn wide_attn(lam_dev *dev, const lam_attn *a)
{
    lam_attn b = *a;
    b.q = wide_view(dev, a->q);
    b.k = wide_view(dev, a->k);
    b.value = wide_view(dev, a->value);
    b.r = wide(dev, a->r);
    b.o = wide_view(dev, a->o);
    b.d_o = wide_view(dev, a->d_o);
    b.dq = wide_view(dev, a->dq);
    b.dk = wide_view(dev, a->dk);
    b.dvalue = wide_view(dev, a->dvalue);
    b.dr = wide(dev, a->dr);
    return b;
}

static void half_attn_fwd(lam_dev *dev, const lam_attn *a)
{
    const lam_attn b = wide_attn(dev, a);
    lam_naive_float_attn_fwd(dev, &b);
    finish(dev);
}

static void half_attn_next(lam_dev *dev, const lam_attn_next *x)
{
    lam_attn_next y = *x;
    y.a = wide_attn(dev, &x->a);
    y.k = wide_view(dev, x->k);
    y.value = wide_view(dev, x->value);
    lam_naive_attn_next(dev, &y);
    finish(dev);
}

static void half_attn_bwd(lam_dev *dev, const lam_attn *a)
{
    const lam_attn b = wide_attn(dev, a);
    lam_naive_attn_bwd(dev, &b);
    finish(dev);
}

static void half_attn_stats(lam_dev *dev, const lam_attn_stats *a)
{
    lam_attn_stats b = *a;
    b.attn = wide_attn(dev, &a->attn);
    lam_naive_attn_stats(dev, &b);
    finish(dev);
}

static lam_interp wide_interp(lam_dev *dev, const lam_interp *a)
{
    lam_interp b = *a;
    b.c_old = wide_view(dev, a->c_old);
    b.c_new = wide_view(dev, a->c_new);
    b.c_out = wide_view(dev, a->c_out);
    b.dc_out = wide_view(dev, a->dc_out);
    b.dc_new = wide_view(dev, a->dc_new);
    return b;
}

static void half_interp_fwd(lam_dev *dev, const lam_interp *a)
{
    const lam_interp b = wide_interp(dev, a);
    lam_naive_interp_fwd(dev, &b);
    finish(dev);
}

static void half_interp_bwd(lam_dev *dev, const lam_interp *a)
{
    const lam_interp b = wide_interp(dev, a);
    lam_naive_interp_bwd(dev, &b);
    finish(dev);
}

static void half_pool(lam_dev *dev, const lam_pool *a)
{
    lam_pool b = *a;
    b.in = wide(dev, a->in);
    b.out = wide(dev, a->out);
    lam_naive_pool(dev, &b);
    finish(dev);
}

static void half_distance(lam_dev *dev, const lam_distance *a)
{
    lam_distance b = *a;
    b.a = wide(dev, a->a);
    b.b = wide(dev, a->b);
    b.d = wide(dev, a->d);
    lam_naive_distance(dev, &b);
    finish(dev);
}

static lam_gate wide_gate(lam_dev *dev, const lam_gate *a)
{
    lam_gate b = *a;
    b.in = wide(dev, a->in);
    b.pre = wide(dev, a->pre);
    b.out = wide(dev, a->out);
    b.dout = wide(dev, a->dout);
    b.dpre = wide(dev, a->dpre);
    return b;
}

static lam_density wide_density(lam_dev *dev, const lam_density *a)
{
    lam_density b = *a;
    b.q = wide_view(dev, a->q);
    b.pull = wide_view(dev, a->pull);
    b.r = wide(dev, a->r);
    b.dr = wide(dev, a->dr);
    b.dq = wide_view(dev, a->dq);
    b.dpull = wide_view(dev, a->dpull);
    return b;
}

static lam_sticky_samples wide_sticky(lam_dev *dev, const lam_sticky_samples *a)
{
    lam_sticky_samples b = *a;
    b.psi = wide(dev, a->psi);
    return b;
}

static void half_gate_fwd(lam_dev *dev, const lam_gate *a)
{
    const lam_gate b = wide_gate(dev, a);
    lam_naive_gate_fwd(dev, &b);
    finish(dev);
}

static void half_gate_bwd(lam_dev *dev, const lam_gate *a)
{
    const lam_gate b = wide_gate(dev, a);
    lam_naive_gate_bwd(dev, &b);
    finish(dev);
}

static void half_density_fwd(lam_dev *dev, const lam_density *a)
{
    const lam_density b = wide_density(dev, a);
    lam_naive_density_fwd(dev, &b);
    finish(dev);
}

static void half_density_bwd(lam_dev *dev, const lam_density *a)
{
    const lam_density b = wide_density(dev, a);
    lam_naive_density_bwd(dev, &b);
    finish(dev);
}

static void half_sticky(lam_dev *dev, const lam_sticky_samples *a)
{
    const lam_sticky_samples b = wide_sticky(dev, a);
    lam_naive_sticky(dev, &b);
    finish(dev);
}

static void half_embed_fwd(lam_dev *dev, const lam_embed *a)
{
    lam_embed b = *a;
    b.table = wide(dev, a->table);
    b.out = wide(dev, a->out);
    lam_ops_naive.embed_fwd(dev, &b);
    finish(dev);
}

static void half_embed_bwd(lam_dev *dev, const lam_embed *a)
{
    lam_embed b = *a;
    b.dout = wide(dev, a->dout);
    lam_ops_naive.embed_bwd(dev, &b);
    finish(dev);
}

static void half_xent(lam_dev *dev, const lam_xent *a)
{
    lam_xent b = *a;
    b.logits = wide(dev, a->logits);
    lam_ops_naive.xent(dev, &b);
    finish(dev);
}

static lam_pick wide_pick(lam_dev *dev, const lam_pick *a)
{
    lam_pick b = *a;
    b.in = wide(dev, a->in);
    b.out = wide(dev, a->out);
    return b;
}

static void half_gather(lam_dev *dev, const lam_pick *a)
{
    const lam_pick b = wide_pick(dev, a);
    lam_ops_naive.gather(dev, &b);
    finish(dev);
}

static void half_scatter(lam_dev *dev, const lam_pick *a)
{
    const lam_pick b = wide_pick(dev, a);
    lam_ops_naive.scatter(dev, &b);
    finish(dev);
}

static void half_gnorm(lam_dev *dev, const lam_gnorm *a)
{
    lam_ops_naive.gnorm(dev, a);
}

static void half_update(lam_dev *dev, const lam_update *a)
{
    lam_update b = *a;
    b.weight = wide(dev, a->weight);
    lam_ops_naive.update(dev, &b);
    finish(dev);
}

static void half_ortho_begin(lam_dev *dev, const lam_ortho_begin *a)
{
    lam_ortho_begin b = *a;
    b.x = wide(dev, a->x);
    lam_naive_ortho_begin(dev, &b);
    finish(dev);
}

static void half_ortho_mix(lam_dev *dev, const lam_ortho_mix *a)
{
    lam_ortho_mix b = *a;
    b.A = wide(dev, a->A);
    b.P = wide(dev, a->P);
    b.q = wide(dev, a->q);
    lam_naive_ortho_mix(dev, &b);
    finish(dev);
}

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

/* These touch no ACT. */
static void half_put_rows(lam_dev *dev, const lam_put_rows *a)
{
    lam_naive_put_rows(dev, a);
}

static void half_ortho_even(lam_dev *dev, const lam_ortho_even *a)
{
    lam_naive_ortho_even(dev, a);
}

static void half_tally(lam_dev *dev, const lam_tally *a)
{
    lam_naive_tally(dev, a);
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
    .free_graphs = lam_naive_free_graphs,
};
