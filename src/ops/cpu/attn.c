/* attn.c -- relative-position attention on the CPU: the entry points (specified in ref/attn.c).
 *
 * One or two queries are bound by reading keys and values and go row by row; everything else goes by
 * blocks of 64 queries as small matrix products.  Neither holds more than one block of scores.
 * Blocks read floats: what is cached in bf16 is widened for them first, once for all their queries. */
#include "ops/cpu/attn_int.h"
#include "ops/cpu/narrow.h"

enum { WORK_A_THREAD = 1 << 19 }; /* multiply-adds worth waking a thread for: some 10 us */

int lam_attn_threads(const lam_cpu_dev *dev, const lam_attn *a, int products, int tasks)
{
    size_t pairs = 0;
    for (int i = 0; i < a->queries; i++) {
        const lam_span s = lam_attn_sees(a, i);
        pairs += (size_t)(s.hi - s.lo);
    }
    const size_t work = pairs * (size_t)a->B * (size_t)a->H * (size_t)a->K * (size_t)products;
    const size_t useful = 1 + work / WORK_A_THREAD;
    int n = dev->threads < tasks ? dev->threads : tasks;
    if ((size_t)n > useful)
        n = (int)useful;
    return n;
}

lam_work lam_attn_work(const lam_attn *a)
{
    return (lam_work){.B = a->B,
                      .H = a->H,
                      .K = a->K,
                      .queries = a->queries,
                      .keys = a->keys,
                      .r_rows = a->r || a->rbias ? a->r_rows : 0};
}

static size_t larger(size_t x, size_t y)
{
    return x > y ? x : y;
}

/* Keys, values and positions as floats. */
typedef struct wide {
    float *k, *value, *r;
} wide;

static wide carve(lam_arena *arena, const lam_work *size)
{
    const size_t HK = (size_t)size->H * (size_t)size->K;
    const size_t rows = (size_t)size->B * (size_t)size->keys;
    return (wide){.k = lam_take_floats(arena, rows * HK),
                  .value = lam_take_floats(arena, rows * HK),
                  .r = lam_take_floats(arena, (size_t)size->r_rows * HK)};
}

static size_t wide_bytes(const lam_work *size)
{
    lam_arena count = {0};
    (void)carve(&count, size);
    return count.used;
}

size_t lam_cpu_attn_scratch(const lam_work *largest, int threads)
{
    const size_t blocks =
        larger(lam_attn_fwd_bytes(largest, threads), lam_attn_bwd_bytes(largest, threads));
    const size_t rows =
        larger(lam_attn_row_bytes(largest, threads), lam_attn_stats_bytes(largest, threads));
    return larger(rows, blocks + (largest->narrow ? wide_bytes(largest) + LAM_ALIGN : 0));
}

static void widen_rows(const lam_cpu_dev *dev, float *to, const lam_attn *a, lam_view from,
                       int blocks, int rows, size_t ld)
{
    const size_t HK = (size_t)a->H * (size_t)a->K, per = (size_t)rows;
#pragma omp parallel for num_threads(lam_cpu_team(dev, (size_t)blocks *per *HK)) schedule(static)
    for (size_t i = 0; i < (size_t)blocks * per; i++)
        lam_widen_row(to + i * HK, (const uint16_t *)from.p + i / per * from.step + i % per * ld,
                      LAM_HALF, 1.0f, HK);
}

/* The same attention on floats, which stand at the end of the scratch: blocks use its beginning. */
static lam_attn widened(const lam_cpu_dev *dev, const lam_attn *a)
{
    const lam_work size = lam_attn_work(a);
    const size_t HK = (size_t)a->H * (size_t)a->K, bytes = wide_bytes(&size);
    char *scratch = lam_cpu_scratch(dev, bytes);
    lam_arena arena = {scratch + (dev->scratch_bytes - bytes) / LAM_ALIGN * LAM_ALIGN, bytes, 0};
    const wide x = carve(&arena, &size);
    lam_attn b = *a;
    if (a->kv_class == LAM_HALF) {
        widen_rows(dev, x.k, a, a->k, a->B, a->keys, a->ldk);
        widen_rows(dev, x.value, a, a->value, a->B, a->keys, a->ldk);
        b.k = (lam_view){x.k, (size_t)a->keys * HK};
        b.value = (lam_view){x.value, (size_t)a->keys * HK};
        b.ldk = HK;
        b.kv_class = LAM_ACT;
    }
    if (a->r && a->r_class == LAM_HALF) {
        widen_rows(dev, x.r, a, (lam_view){(void *)(uintptr_t)a->r, 0}, 1, a->r_rows, a->ldr);
        b.r = x.r;
        b.ldr = HK;
        b.r_class = LAM_ACT;
    }
    return b;
}

void lam_cpu_attn_fwd(lam_dev *dev, const lam_attn *a)
{
    const int narrow = a->kv_class == LAM_HALF || (a->r && a->r_class == LAM_HALF);
    if (a->queries <= LAM_ROW_QUERIES) {
        lam_attn_row_fwd(lam_cpu(dev), a, NULL);
    } else if (narrow) {
        const lam_attn b = widened(lam_cpu(dev), a);
        lam_attn_block_fwd(lam_cpu(dev), &b);
    } else {
        lam_attn_block_fwd(lam_cpu(dev), a);
    }
}

/* lam_host_put_kv into bf16, sixteen numbers at a time. */
static void put_halves(const lam_attn_next *x)
{
    const lam_attn *a = &x->a;
    const lam_view to[] = {a->k, a->value}, from[] = {x->k, x->value};
    for (size_t b = 0; b < (size_t)a->B; b++) {
        const size_t row = (size_t)((const int32_t *)x->at)[b] * a->ldk;
        for (int i = 0; i < 2; i++)
            lam_narrow_row((uint16_t *)to[i].p + b * to[i].step + row,
                           (const float *)from[i].p + b * from[i].step,
                           (size_t)a->H * (size_t)a->K);
    }
}

/* One call for all streams: threads and scratch are planned for the oldest. */
void lam_cpu_attn_next(lam_dev *dev, const lam_attn_next *x)
{
    const int32_t *at = x->at;
    lam_attn a = x->a;
    if (a.kv_class == LAM_HALF)
        put_halves(x);
    else
        lam_host_put_kv(dev, x);
    a.shift = 0;
    for (int b = 0; b < a.B; b++)
        a.shift = at[b] > a.shift ? at[b] : a.shift;
    a.keys = a.shift + 1;
    lam_attn_row_fwd(lam_cpu(dev), &a, at);
}

void lam_cpu_attn_bwd(lam_dev *dev, const lam_attn *a)
{
    lam_attn_block_bwd(lam_cpu(dev), a);
}
