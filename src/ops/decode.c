/* decode.c -- decoding on a device whose memory is the host's: attention for all rows knows how to do one. */
#include "ops/ops.h"

#include <assert.h>
#include <string.h>

void lam_host_attn_next(lam_dev *dev, const lam_attn_next *x)
{
    const size_t at = (size_t) * (const int32_t *)x->at;
    const size_t bytes = (size_t)x->a.H * (size_t)x->a.K * lam_class_size(dev, LAM_ACT);
    lam_attn a = x->a;
    assert(a.mode == LAM_CAUSAL && a.queries == 1 && at < (size_t)a.keys);
    for (size_t b = 0; b < (size_t)a.B; b++) {
        memcpy(lam_at(dev, LAM_ACT, a.k.p, b * a.k.step + at * a.ldk),
               lam_at(dev, LAM_ACT, x->k.p, b * x->k.step), bytes);
        memcpy(lam_at(dev, LAM_ACT, a.value.p, b * a.value.step + at * a.ldk),
               lam_at(dev, LAM_ACT, x->value.p, b * x->value.step), bytes);
    }
    a.shift = (int)at;
    a.keys = (int)at + 1;
    dev->ops->attn_fwd(dev, &a);
}

void lam_host_place(lam_dev *dev, const lam_place *a)
{
    const size_t at = (size_t) * (const int32_t *)a->at;
    for (int i = 0; i < a->n; i++) {
        const lam_place_item *x = &a->items[i];
        const size_t width = (size_t)x->width, bytes = width * lam_class_size(dev, x->type);
        for (size_t b = 0; b < (size_t)a->B; b++)
            memcpy(lam_at(dev, x->type, x->out.p, b * x->out.step + at * width),
                   lam_at(dev, x->type, x->in, b * width), bytes);
    }
}
