/* ref/decode.c -- one new row per stream: the specification, by way of the attention for all rows. */
#include "ops/ref/ref.h"

#include <assert.h>
#include <string.h>

void lam_ref_attn_next(lam_dev *dev, const lam_attn_next *x)
{
    const int at = *(const int32_t *)x->at;
    const size_t bytes = (size_t)x->a.H * (size_t)x->a.K * sizeof(double);
    lam_attn a = x->a;
    assert(a.mode == LAM_CAUSAL && a.queries == 1 && at >= 0 && at < a.keys);
    for (size_t b = 0; b < (size_t)a.B; b++) {
        memcpy(lam_ref_row(a.k, a.ldk, b, (size_t)at), lam_ref_row(x->k, 0, b, 0), bytes);
        memcpy(lam_ref_row(a.value, a.ldk, b, (size_t)at), lam_ref_row(x->value, 0, b, 0), bytes);
    }
    a.shift = at;
    a.keys = at + 1;
    lam_ref_attn_fwd(dev, &a);
}

void lam_ref_place(lam_dev *dev, const lam_place *a)
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
