/* naive.c -- the naive back-end's device, its table, and the operations on ids and parameters. */
#include "support/naive.h"

#include "core/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t lam_naive_up8(int x)
{
    return ((size_t)x + 7) / 8 * 8;
}

float lam_naive_keep(const lam_drop *d, size_t index)
{
    if (d->p == 0.0)
        return 1.0f;
    const lam_u32x4 block =
        lam_philox(d->seed, index / 8, (uint64_t)lam_drop_step(d) << 32 | d->site);
    const uint32_t bits = block.v[index % 8 / 2] >> 16 * (index % 2) & 0xffff;
    return bits >= lam_drop_threshold(d->p) ? (float)lam_drop_scale(d->p) : 0.0f;
}

void lam_naive_float_embed_fwd(lam_dev *dev, const lam_embed *a)
{
    (void)dev;
    const int32_t *ids = a->ids;
    float *out = a->out;
    for (int r = 0; r < a->rows; r++)
        for (int c = 0; c < a->ld; c++) {
            const int id = ids[r] - a->first;
            const int known = c < a->width && id >= 0 && id < a->count;
            const size_t from = (size_t)id * (size_t)a->ld + (size_t)c;
            *out++ = known ? (float)a->scale * ((const float *)a->table)[from] : 0.0f;
        }
}

void lam_naive_embed_bwd(lam_dev *dev, const lam_embed *a)
{
    (void)dev;
    const int32_t *ids = a->ids;
    const float *dout = a->dout;
    for (int r = 0; r < a->rows; r++, dout += a->ld)
        for (int c = 0; c < a->width; c++) {
            const int id = ids[r] - a->first;
            if (id >= 0 && id < a->count)
                ((float *)a->dtable)[(size_t)id * (size_t)a->ld + (size_t)c] +=
                    (float)a->scale * dout[c];
        }
}

void lam_naive_xent(lam_dev *dev, const lam_xent *a)
{
    (void)dev;
    for (int r = 0; r < a->rows; r++) {
        float *z = (float *)a->logits + (size_t)r * a->ld;
        const int target = ((const int32_t *)a->target)[r];
        float *nll = (float *)a->nll + (a->index ? ((const int32_t *)a->index)[r] : r);
        float top = z[0], sum = 0.0f;
        for (int c = 1; c < a->cols; c++)
            top = z[c] > top ? z[c] : top;
        for (int c = 0; c < a->cols; c++)
            sum += expf(z[c] - top);
        const float loss = target < 0 ? 0.0f : logf(sum) - (z[target] - top);
        *nll = (a->add ? *nll : 0.0f) + loss;
        if (a->grad_scale == 0.0)
            continue;
        for (int c = 0; c < a->cols; c++)
            z[c] = target < 0
                       ? 0.0f
                       : (float)a->grad_scale * (expf(z[c] - top) / sum - (float)(c == target));
    }
}

void lam_naive_gather(lam_dev *dev, const lam_pick *a)
{
    (void)dev;
    for (int r = 0; r < a->rows; r++)
        memcpy((float *)a->out + (size_t)r * a->ld_out,
               (const float *)a->in + (size_t)((const int32_t *)a->index)[r] * a->ld_in,
               (size_t)a->width * sizeof(float));
}

void lam_naive_scatter(lam_dev *dev, const lam_pick *a)
{
    (void)dev;
    for (int r = 0; r < a->rows; r++) {
        float *to = (float *)a->out + (size_t)((const int32_t *)a->index)[r] * a->ld_out;
        for (int c = 0; c < a->width; c++)
            to[c] += ((const float *)a->in)[(size_t)r * a->ld_in + (size_t)c];
    }
}

void lam_naive_gnorm(lam_dev *dev, const lam_gnorm *a)
{
    (void)dev;
    double sum = 0.0; /* in double on every back-end */
    for (const lam_part *p = a->parts; p < a->parts + a->n_parts; p++)
        for (size_t i = 0; i < p->count; i++)
            sum += pow((double)((const float *)a->grad)[p->offset + i], 2.0);
    *(float *)a->norm = (float)sqrt(sum);
}

void lam_naive_update(lam_dev *dev, const lam_update *a)
{
    (void)dev;
    const float norm = *(const float *)a->norm, b1 = (float)a->beta1, b2 = (float)a->beta2;
    float *w = a->master, *m = a->m, *v = a->v;
    const float clip = a->clip == 0.0 ? INFINITY : (float)a->clip / (norm + 1e-6f);
    if (!isfinite(norm))
        return;
    for (const lam_part *p = a->parts; p < a->parts + a->n_parts; p++)
        for (size_t i = p->offset; i < p->offset + p->count; i++) {
            const float g = ((const float *)a->grad)[i] * (clip < 1.0f ? clip : 1.0f);
            const float lr = (float)p->lr;
            float move;
            w[i] -= lr * (float)p->decay * w[i];
            if (a->kind == LAM_ADAM) {
                m[i] = b1 * m[i] + (1.0f - b1) * g;
                v[i] = b2 * v[i] + (1.0f - b2) * g * g;
                move = m[i] / (float)p->fix1 / (sqrtf(v[i] / (float)p->fix2) + (float)a->eps);
            } else if (a->kind == LAM_SGD) {
                move = m[i] = b1 * m[i] + g;
            } else {
                v[i] += g * g;
                move = g / (sqrtf(v[i]) + (float)a->eps);
            }
            w[i] -= lr * move;
            if (a->weight)
                ((float *)a->weight)[i] = w[i];
        }
}

/* One element of a cache in float or bf16. */
static void cache(const lam_attn *a, lam_view to, size_t index, float value)
{
    if (a->kv_class == LAM_HALF)
        lam_convert((uint16_t *)to.p + index, LAM_BF16, &value, LAM_F32, 1);
    else
        ((float *)to.p)[index] = value;
}

static void *of_stream(lam_view v, size_t b, size_t size)
{
    return (char *)v.p + b * v.step * size;
}

void lam_naive_attn_next(lam_dev *dev, const lam_attn_next *x)
{
    const size_t n = (size_t)(x->a.H * x->a.K), size = x->a.kv_class == LAM_HALF ? 2 : 4;
    for (size_t b = 0; b < (size_t)x->a.B; b++) {
        lam_attn a = x->a;
        a.B = 1;
        a.shift = ((const int32_t *)x->at)[b];
        a.keys = a.shift + 1;
        a.q.p = of_stream(a.q, b, 4);
        a.k.p = of_stream(a.k, b, size);
        a.value.p = of_stream(a.value, b, size);
        a.o.p = of_stream(a.o, b, 4);
        a.lse.p = of_stream(a.lse, b, 4);
        a.valid = a.valid ? (const int32_t *)a.valid + b : NULL;
        for (size_t c = 0; c < n; c++) {
            const size_t to = (size_t)a.shift * a.ldk + c;
            cache(&a, a.k, to, ((float *)x->k.p)[b * x->k.step + c]);
            cache(&a, a.value, to, ((float *)x->value.p)[b * x->value.step + c]);
        }
        lam_naive_attn_fwd(dev, &a);
    }
}

void lam_naive_norm_gemm(lam_dev *dev, const lam_norm_gemm *a)
{
    lam_naive_norm_fwd(dev, &a->norm);
    lam_naive_gemm(dev, &a->gemm);
}

void lam_naive_put_rows(lam_dev *dev, const lam_put_rows *a)
{
    for (int i = 0; i < a->n; i++) {
        const lam_put_item *x = &a->items[i];
        const size_t size = lam_class_size(dev, x->type), bytes = (size_t)x->width * size;
        for (size_t b = 0; b < (size_t)a->B; b++) {
            const size_t at = (size_t)((const int32_t *)a->at)[b];
            memcpy((char *)x->out.p + b * x->out.step * size + at * bytes,
                   (const char *)x->in + b * bytes, bytes);
        }
    }
}

void lam_naive_tally(lam_dev *dev, const lam_tally *a)
{
    (void)dev;
    float *totals = a->totals;
    double sum = 0.0, bad = 0.0;
    for (int i = 0; i < a->n; i++)
        sum += (double)((const float *)a->x)[i];
    for (int i = 0; i < a->n_norms; i++)
        bad += isfinite(((const float *)a->norms)[i]) ? 0.0 : 1.0;
    if (isfinite(sum)) {
        sum += (double)totals[0] + (double)totals[1];
        totals[0] = (float)sum;
        totals[1] = (float)(sum - (double)totals[0]);
    } else {
        totals[2] += (float)a->n;
    }
    totals[3] += bad > 0.0 ? 1.0f : 0.0f;
}

void lam_naive_repeat(lam_dev *dev, lam_graphs **graphs, uint64_t key, void (*work)(void *),
                      void *arg)
{
    (void)dev, (void)graphs, (void)key;
    work(arg);
}

void lam_naive_free_graphs(lam_dev *dev, lam_graphs *graphs)
{
    (void)dev, (void)graphs;
}

static lam_status naive_open(lam_dev **out, const lam_dev_options *options)
{
    (void)options;
    *out = malloc(sizeof **out);
    if (!*out)
        return lam_fail(LAM_ERR_MEMORY, "device naive: no memory");
    **out = (lam_dev){.ops = &lam_ops_naive,
                      .act = LAM_F32,
                      .wide = LAM_F32,
                      .tolerance = 1e-4,
                      .pad = 1,
                      .narrow = 1};
    return LAM_OK;
}

static void naive_close(lam_dev *dev)
{
    free(dev);
}

static lam_status naive_reserve(lam_dev *dev, const lam_work *largest)
{
    (void)dev, (void)largest;
    return LAM_OK;
}

static size_t naive_reserve_bytes(const lam_dev *dev, const lam_work *largest)
{
    (void)dev, (void)largest;
    return 0;
}

static lam_status naive_alloc(lam_dev *dev, void **out, size_t bytes)
{
    (void)dev;
    const size_t whole = bytes / 64 * 64 + 64;
    *out = aligned_alloc(64, whole);
    if (!*out)
        return lam_fail(LAM_ERR_MEMORY, "device naive: no memory for %zu bytes", bytes);
    memset(*out, 0, whole);
    return LAM_OK;
}

static void naive_release(lam_dev *dev, void *memory)
{
    (void)dev;
    free(memory);
}

static void naive_upload(lam_dev *dev, void *dst, const void *host, size_t bytes)
{
    (void)dev;
    if (bytes > 0) /* memcpy takes no NULL, not even for nothing */
        memcpy(dst, host, bytes);
}

static lam_status naive_download(lam_dev *dev, void *host, const void *src, size_t bytes)
{
    (void)dev;
    if (bytes > 0)
        memcpy(host, src, bytes);
    return LAM_OK;
}

static void naive_zero(lam_dev *dev, void *dst, size_t bytes)
{
    (void)dev;
    memset(dst, 0, bytes);
}

static lam_status naive_sync(lam_dev *dev)
{
    (void)dev;
    return LAM_OK;
}

#define ENTRY(name, argument) .name = lam_naive_##name,

const lam_ops lam_ops_naive = {
    LAM_OPS(ENTRY) /* every operation; then the device */
        .name = "naive",
    .summary = "float32, plain loops, for tests",
    .open = naive_open,
    .close = naive_close,
    .reserve = naive_reserve,
    .reserve_bytes = naive_reserve_bytes,
    .alloc = naive_alloc,
    .release = naive_release,
    .upload = naive_upload,
    .download = naive_download,
    .zero = naive_zero,
    .sync = naive_sync,
    .repeat = lam_naive_repeat,
    .replay = lam_host_replay,
    .free_graphs = lam_naive_free_graphs,
};
