/* decode.c -- decoding on devices whose memory is the host's: what ref and cpu share. */
#include "ops/ops.h"

#include <assert.h>
#include <string.h>

void lam_host_put_kv(lam_dev *dev, const lam_attn_next *x)
{
    const lam_attn *a = &x->a;
    const size_t n = (size_t)a->H * (size_t)a->K;
    const lam_view to[] = {a->k, a->value}, from[] = {x->k, x->value};
    assert(a->mode == LAM_CAUSAL && a->queries == 1 && a->drop.p == 0.0);
    for (size_t b = 0; b < (size_t)a->B; b++) {
        const int32_t at = ((const int32_t *)x->at)[b];
        assert(at >= 0 && at < a->keys);
        for (int i = 0; i < 2; i++)
            lam_convert(lam_at(dev, a->kv_class, to[i].p, b * to[i].step + (size_t)at * a->ldk),
                        lam_class_dtype(dev, a->kv_class),
                        lam_at(dev, LAM_ACT, from[i].p, b * from[i].step), dev->act, n);
    }
}

void lam_host_norm_gemm(lam_dev *dev, const lam_norm_gemm *a)
{
    dev->ops->norm_fwd(dev, &a->norm);
    dev->ops->gemm(dev, &a->gemm);
}

void lam_host_put_rows(lam_dev *dev, const lam_put_rows *a)
{
    for (int i = 0; i < a->n; i++) {
        const lam_put_item *x = &a->items[i];
        const size_t width = (size_t)x->width, bytes = width * lam_class_size(dev, x->type);
        for (size_t b = 0; b < (size_t)a->B; b++) {
            const size_t at = (size_t)((const int32_t *)a->at)[b];
            memcpy(lam_at(dev, x->type, x->out.p, b * x->out.step + at * width),
                   lam_at(dev, x->type, x->in, b * width), bytes);
        }
    }
}
