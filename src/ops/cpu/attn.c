/* attn.c -- relative-position attention on the CPU: the entry points (specified in ref/attn.c).
 *
 * One or two queries are bound by reading keys and values and go row by row; everything else goes by
 * blocks of 64 queries as small matrix products.  Neither holds more than one block of scores. */
#include "ops/cpu/attn_int.h"

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

size_t lam_cpu_attn_scratch(const lam_work *largest, int threads)
{
    return larger(
        larger(lam_attn_row_bytes(largest, threads), lam_attn_profile_bytes(largest, threads)),
        larger(lam_attn_fwd_bytes(largest, threads), lam_attn_bwd_bytes(largest, threads)));
}

void lam_cpu_attn_fwd(lam_dev *dev, const lam_attn *a)
{
    if (a->queries <= LAM_ROW_QUERIES)
        lam_attn_row_fwd(lam_cpu(dev), a);
    else
        lam_attn_block_fwd(lam_cpu(dev), a);
}

void lam_cpu_attn_bwd(lam_dev *dev, const lam_attn *a)
{
    lam_attn_block_bwd(lam_cpu(dev), a);
}
