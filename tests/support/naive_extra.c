/* naive_extra.c -- what compressed and continuous memories need, as naive float32 loops. */
#include "support/naive.h"

#include <math.h>

void lam_naive_pool(lam_dev *dev, const lam_pool *a)
{
    (void)dev;
    for (int r = 0; r < a->rows; r++)
        for (int c = 0; c < a->ld; c++) {
            const float *in = (const float *)a->in + (size_t)(r * a->group * a->ld + c);
            float x = in[0];
            for (int i = 1; i < a->group; i++) {
                const float next = in[i * a->ld];
                x = a->kind == LAM_MEAN ? x + next : fmaxf(x, next);
            }
            x = a->kind == LAM_MEAN ? x / (float)a->group : x;
            ((float *)a->out)[r * a->ld + c] = c < a->width ? x : 0.0f;
        }
}

void lam_naive_distance(lam_dev *dev, const lam_distance *a)
{
    (void)dev;
    for (int r = 0; r < a->rows; r++) {
        float sum = 0.0f;
        for (int c = 0; c < a->ld; c++) {
            const int i = r * a->ld + c;
            const float apart =
                c < a->width ? ((const float *)a->a)[i] - ((const float *)a->b)[i] : 0.0f;
            sum += apart * apart;
            ((float *)a->d)[i] = 2.0f * (float)a->weight * (float)a->scale * apart;
        }
        ((float *)a->sum)[r] = (float)a->weight * sum;
    }
}
