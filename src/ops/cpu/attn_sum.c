/* attn_sum.c -- partial sums of the tasks of attention's backward pass. */
#include "ops/cpu/attn_sum.h"

enum { TASKS = 16 }; /* aimed at: more balance better among threads, and hold more partial sums */

static void carve(lam_attn_sum *out, lam_arena *arena, const lam_work *size)
{
    const size_t width = (size_t)lam_ceil(size->K, LAM_VEC);
    const size_t rows = (size_t)lam_ceil(size->r_rows, LAM_VEC);
    *out = (lam_attn_sum){.dr = lam_take_floats(arena, rows * width),
                          .drbias = lam_take_floats(arena, rows),
                          .du = lam_take_floats(arena, width),
                          .dv = lam_take_floats(arena, width)};
}

static size_t bytes_a_task(const lam_work *size)
{
    lam_arena count = {0};
    lam_attn_sum unused;
    carve(&unused, &count, size);
    return count.used;
}

lam_attn_sums lam_attn_sums_make(const lam_work *size)
{
    const int wanted = (TASKS + size->H - 1) / size->H;
    const int ranges = size->B < wanted ? size->B : wanted;
    return (lam_attn_sums){.size = *size, .ranges = ranges, .tasks = size->H * ranges};
}

/* There are at most H + TASKS - 1 tasks.  Not their number itself, which may shrink as H grows. */
size_t lam_attn_sums_bytes(const lam_work *largest)
{
    const size_t pairs = (size_t)largest->B * (size_t)largest->H, most = (size_t)largest->H + TASKS;
    return bytes_a_task(largest) * (pairs < most ? pairs : most);
}

lam_span lam_attn_streams(const lam_attn_sums *sums, int task)
{
    const int range = task % sums->ranges, B = sums->size.B;
    if (task >= sums->tasks)
        return (lam_span){0, 0};
    return (lam_span){B * range / sums->ranges, B * (range + 1) / sums->ranges};
}

lam_attn_sum lam_attn_sum_at(const lam_attn_sums *sums, int task)
{
    const size_t bytes = bytes_a_task(&sums->size);
    lam_arena arena = {sums->base + bytes * (size_t)task, bytes, 0};
    lam_attn_sum out;
    carve(&out, &arena, &sums->size);
    return out;
}

void lam_attn_sum_clear(const lam_attn_sums *sums, int task)
{
    const size_t bytes = bytes_a_task(&sums->size);
    memset(sums->base + bytes * (size_t)task, 0, bytes);
}

/* One row of dr. */
static void reduce_dr(float *out, const lam_attn_sum *parts, int n, size_t at, int K)
{
    for (int c = 0; c < K; c += LAM_VEC) {
        lam_f16v sum = lam_load(parts[0].dr + at + c);
        for (int t = 1; t < n; t++)
            sum = lam_add(sum, lam_load(parts[t].dr + at + c));
        lam_store_n(out + c, sum, K - c < LAM_VEC ? (size_t)(K - c) : LAM_VEC);
    }
}

void lam_attn_sums_reduce(const lam_attn_sums *sums, const lam_attn *a, int h)
{
    const int n = sums->ranges;
    lam_attn_sum parts[TASKS];
    for (int t = 0; t < n; t++)
        parts[t] = lam_attn_sum_at(sums, h * n + t);

    const size_t K = (size_t)a->K, width = (size_t)lam_ceil(a->K, LAM_VEC), head = (size_t)h * K;
    const float scale = (float)a->scale;
    float *dr = a->dr, *drbias = a->drbias, *du = a->du, *dv = a->dv;
    for (int p = 0; (dr || drbias) && p < a->r_rows; p++) {
        const size_t row = (size_t)(a->r_sign > 0 ? p : a->r_rows - 1 - p);
        if (dr)
            reduce_dr(dr + row * a->ldr + head, parts, n, (size_t)p * width, a->K);
        for (int t = 0; drbias && t < n; t++)
            drbias[row * (size_t)a->H + (size_t)h] += scale * parts[t].drbias[p];
    }
    for (size_t c = 0; c < K; c++)
        for (int t = 0; t < n; t++) {
            if (du)
                du[head + c] += scale * parts[t].du[c];
            if (dv)
                dv[head + c] += scale * parts[t].dv[c];
        }
}
