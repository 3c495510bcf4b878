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

/* out[c] += sum over j < n of weight[j] * v[j * ld + c], c < K; n <= LAM_EXACT_TERMS. */
void lam_exact_mix(int32_t *out, const int16_t *weight, const int8_t *v, ptrdiff_t ld, int n,
                   int K);

#if defined(__AVX512BW__)
/* Both on machines with VNNI.  The second does whole groups of columns alone and returns how many columns. */
void lam_exact_dots_vnni(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w, int k);
int lam_exact_mix_vnni(int32_t *out, const int16_t *weight, const int8_t *v, ptrdiff_t ld, int n,
                       int K);
#endif

#endif
