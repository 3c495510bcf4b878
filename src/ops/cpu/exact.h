/* cpu/exact.h -- what the files of exact arithmetic on the cpu share (specified in ops/exact.h).
 *
 * All of them are named exact*.c, because only those are compiled with -ffp-contract=off: a fused multiply-add
 * would round once where the specification rounds twice.  Sums of integers have no order, so threads and
 * vectors may divide them in any way; loops over floats leave the vectors to the compiler. */
#ifndef LAM_OPS_CPU_EXACT_H
#define LAM_OPS_CPU_EXACT_H

#include "core/arena.h"
#include "ops/cpu/cpu.h"
#include "ops/exact.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define LAM_CPU_EXACT_OP(name, argument) void lam_cpu_exact_##name(lam_dev *dev, const argument *a);
LAM_EXACT_OPS(LAM_CPU_EXACT_OP)
#undef LAM_CPU_EXACT_OP

size_t lam_cpu_exact_gemm_scratch(int threads);
size_t lam_cpu_exact_attn_scratch(const lam_work *largest, int threads);
size_t lam_cpu_exact_next_scratch(const lam_work *largest, int threads);

/* The host may have set another rounding, or flushing of subnormals.  Every thread that computes is put into
 * the default state and back. */
static inline uint64_t lam_cpu_exact_begin(void)
{
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return before;
#elif defined(__aarch64__)
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
    return before;
#else
    return 0;
#endif
}

static inline void lam_cpu_exact_end(uint64_t before)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before) : "memory");
#else
    (void)before;
#endif
}

/* 15-bit rows are padded with zeros to a multiple of this, and begin on such a border. */
enum { LAM_EXACT_PAD = 32 };

static inline size_t lam_exact_padded(size_t n)
{
    return (n + LAM_EXACT_PAD - 1) / LAM_EXACT_PAD * LAM_EXACT_PAD;
}

/* x [n] -> q [lam_exact_padded(n)], 15 bits; returns the scale. */
float lam_cpu_exact_row(int16_t *q, const float *x, size_t n);
/* x [n] -> q [n], 8 bits; returns the scale. */
float lam_cpu_exact_head(int8_t *q, const float *x, size_t n);

/* Rows of 15-bit numbers, and rows of 8-bit ones, each k long. */
typedef struct lam_exact_rows {
    const int16_t *p; /* padded */
    size_t ld;
    int n;
} lam_exact_rows;

typedef struct lam_exact_bytes {
    const int8_t *p;
    ptrdiff_t ld; /* may be negative */
    int n;
} lam_exact_bytes;

/* out[r * ldo + c] = x_r . w_c for all r < x.n, c < w.n; k <= LAM_EXACT_TERMS. */
void lam_exact_dots(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w, int k);

/* out[c] += sum of weight[j] * v_j[c] over all rows of v, at most LAM_EXACT_TERMS; c < K. */
void lam_exact_mix(int32_t *out, const int16_t *weight, lam_exact_bytes v, int K);

/* Memory that will be read soon: lines of 64 bytes. */
typedef struct lam_exact_ahead {
    const char *p;
    size_t lines;
} lam_exact_ahead;

/* Asks for its next lines, at most n. */
static inline void lam_exact_ask(lam_exact_ahead *ahead, size_t n)
{
    const size_t now = n < ahead->lines ? n : ahead->lines;
    for (size_t i = 0; i < now; i++)
        __builtin_prefetch(ahead->p + 64 * i);
    ahead->p += 64 * now;
    ahead->lines -= now;
}

/* How many lines to ask for each time, if there are `heads` times for every `some` of n rows. */
static inline size_t lam_exact_share_of(const lam_exact_ahead *ahead, int n, int some, int heads)
{
    const size_t times = (size_t)((n + some - 1) / some) * (size_t)heads;
    return times > 0 ? (ahead->lines + times - 1) / times : 0;
}

/* The same for all heads of a row, which lie side by side and are K wide, rows in the order in which they lie in memory:
 *   out[h * ldo + c] = x_h . w_c[h * K ..];   out[h * ldo + c] += sum of weight_h[j] * v_j[h * K + c]
 * Row h of x, weight and out is for head h; x.n heads, at most LAM_EXACT_HEADS.  `ahead` is asked for meanwhile,
 * evenly. */
enum { LAM_EXACT_HEADS = 16 };
void lam_exact_head_dots(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w, int K,
                         lam_exact_ahead ahead);
void lam_exact_head_mix(int32_t *out, size_t ldo, lam_exact_rows weight, lam_exact_bytes v, int K);

/* Of the level with AVX-512, on machines with VNNI.  The second does whole groups of columns alone and returns how many
 * columns; the last two need heads of LAM_VNNI_HEAD columns. */
enum { LAM_VNNI_HEAD = 64 };
void lam_exact_dots_vnni(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w, int k);
int lam_exact_mix_vnni(int32_t *out, const int16_t *weight, lam_exact_bytes v, int K);
void lam_exact_head_dots_vnni(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w,
                              lam_exact_ahead ahead);
void lam_exact_head_mix_vnni(int32_t *out, size_t ldo, lam_exact_rows weight, lam_exact_bytes v);

/* ---- parts of attention ---- */

/* Positions as bytes: those of `a`, or what scratch then holds; *used bytes of it. */
lam_attn lam_cpu_exact_places(const lam_cpu_dev *dev, const lam_attn *a, size_t *used);

/* A head of q + bias [K] (bias may be NULL) -> out, 15 bits; returns the scale. */
float lam_cpu_exact_query(int16_t *out, const float *q, const float *bias, int K);

/* What one query's scores and weights are made of, for each key. */
typedef struct lam_exact_scores {
    const int32_t *ac, *bd; /* bd NULL: none */
    const float *k_scale, *v_scale, *r_scale;
    const float *r_bias; /* NULL: none */
    float u, v, scale;   /* u, v: scales of q + u and q + v */
} lam_exact_scores;

/* Weights [n] of the values; p [n] is scratch.  Returns the factor of the sums of values. */
float lam_cpu_exact_softmax(int16_t *weight, float *lse, float *p, const lam_exact_scores *x,
                            int n);
void lam_cpu_exact_store(float *o, const double *total, float share, int K);

#endif
