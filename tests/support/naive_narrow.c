/* naive_narrow.c -- bf16 and int8 operands for the naive loops: widened first, as anyone would begin. */
#include "support/naive.h"

#include <stdlib.h>

static float *make(size_t count)
{
    float *p = calloc(count + 1, sizeof *p);
    if (!p)
        abort();
    return p;
}

/* `rows` rows of `width` elements ld apart, as floats in the same places. */
static float *widened(const void *p, lam_class type, const float *scale, size_t rows, size_t ld,
                      size_t width)
{
    float *out = make(rows * ld);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < width; c++) {
            const size_t at = r * ld + c;
            if (type == LAM_HALF)
                lam_convert(&out[at], LAM_F32, (const uint16_t *)p + at, LAM_BF16, 1);
            else
                out[at] = scale[r] * (float)((const int8_t *)p)[at];
        }
    return out;
}

static void multiply(lam_dev *dev, const lam_gemm *a)
{
    lam_gemm b = *a;
    float *result = NULL;
    if (a->c_class == LAM_HALF) {
        b.c = result = make((size_t)a->batch * (size_t)a->m * (size_t)a->n);
        b.c_class = LAM_ACT;
        b.ldc = (size_t)a->n;
        b.step_c = (size_t)a->m * b.ldc;
    }
    lam_naive_float_gemm(dev, &b);
    for (size_t i = 0; result && i < (size_t)a->batch; i++)
        for (size_t r = 0; r < (size_t)a->m; r++)
            lam_convert((uint16_t *)a->c + i * a->step_c + r * a->ldc, LAM_BF16,
                        result + i * b.step_c + r * b.ldc, LAM_F32, (size_t)a->n);
    free(result);
}

void lam_naive_gemm(lam_dev *dev, const lam_gemm *a)
{
    lam_gemm b = *a;
    float *wide = NULL;
    if (a->b_class != LAM_ACT) {
        const int flip = a->tb == LAM_FLIP;
        b.b = wide = widened(a->b, a->b_class, a->b_scale, (size_t)(flip ? a->n : a->k), a->ldb,
                             (size_t)(flip ? a->k : a->n));
        b.b_class = LAM_ACT;
    }
    multiply(dev, &b);
    free(wide);
}

void lam_naive_attn_fwd(lam_dev *dev, const lam_attn *a)
{
    lam_attn b = *a;
    const size_t width = (size_t)a->H * (size_t)a->K;
    float *k = NULL, *value = NULL, *r = NULL;
    if (a->kv_class == LAM_HALF) {
        const size_t keys = (size_t)a->keys;
        k = make((size_t)a->B * keys * width);
        value = make((size_t)a->B * keys * width);
        for (size_t i = 0; i < (size_t)a->B * keys; i++) {
            const size_t row = i % keys * a->ldk, s = i / keys;
            lam_convert(k + i * width, LAM_F32, (const uint16_t *)a->k.p + s * a->k.step + row,
                        LAM_BF16, width);
            lam_convert(value + i * width, LAM_F32,
                        (const uint16_t *)a->value.p + s * a->value.step + row, LAM_BF16, width);
        }
        b.k = (lam_view){k, keys * width};
        b.value = (lam_view){value, keys * width};
        b.ldk = width;
    }
    if (a->r && a->r_class == LAM_HALF)
        b.r = r = widened(a->r, LAM_HALF, NULL, (size_t)a->r_rows, a->ldr, width);
    lam_naive_float_attn_fwd(dev, &b);
    free(k);
    free(value);
    free(r);
}

void lam_naive_embed_fwd(lam_dev *dev, const lam_embed *a)
{
    lam_embed b = *a;
    float *wide = NULL;
    if (a->table_class != LAM_ACT)
        b.table = wide = widened(a->table, a->table_class, a->table_scale, (size_t)a->count,
                                 (size_t)a->ld, (size_t)a->width);
    b.table_class = LAM_ACT;
    lam_naive_float_embed_fwd(dev, &b);
    free(wide);
}
