/* cpu/compress.c -- pooling and the reconstruction loss of a compressed memory.
 *
 * ref/compress.c says what is computed.  Rows are independent; a row's sum runs in the order of its columns
 * in sixteen lanes. */
#include "ops/cpu/chunks.h"
#include "ops/cpu/vecmath.h"

static void pool_row(float *out, const float *in, const lam_pool *a)
{
    const size_t ld = (size_t)a->ld, width = (size_t)a->width;
    const float share = 1.0f / (float)a->group;
    memcpy(out, in, width * sizeof *out);
    for (size_t i = 1; i < (size_t)a->group; i++)
        for (size_t c = 0; c < width; c++) {
            const float x = in[i * ld + c];
            out[c] = a->kind == LAM_MEAN ? out[c] + x : x > out[c] ? x : out[c];
        }
    for (size_t c = 0; a->kind == LAM_MEAN && c < width; c++)
        out[c] *= share;
    lam_clear_padding(out, width, ld);
}

void lam_cpu_pool(lam_dev *dev, const lam_pool *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t rows = (size_t)a->rows, ld = (size_t)a->ld, group = (size_t)a->group;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, rows *group *ld)) schedule(static)
    for (size_t r = 0; r < rows; r++)
        pool_row((float *)a->out + r * ld, (const float *)a->in + r * group * ld, a);
}

static float distance_row(float *d, const float *x, const float *y, const lam_distance *a)
{
    const size_t width = (size_t)a->width;
    const lam_f16v slope = lam_splat((float)(2.0 * a->weight * a->scale));
    lam_f16v sum = lam_splat(0.0f);
    for (size_t c = 0; c < width; c += LAM_VEC) {
        const size_t n = width - c < LAM_VEC ? width - c : LAM_VEC;
        const lam_f16v apart = lam_sub(lam_load_n(x + c, n), lam_load_n(y + c, n));
        sum = lam_fma(apart, apart, sum);
        lam_store_n(d + c, lam_mul(slope, apart), n);
    }
    lam_clear_padding(d, width, (size_t)a->ld);
    return (float)a->weight * lam_sum16(sum);
}

void lam_cpu_distance(lam_dev *dev, const lam_distance *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t rows = (size_t)a->rows, ld = (size_t)a->ld;
    float *sum = a->sum;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, rows *ld)) schedule(static)
    for (size_t r = 0; r < rows; r++)
        sum[r] = distance_row((float *)a->d + r * ld, (const float *)a->a + r * ld,
                              (const float *)a->b + r * ld, a);
}
