/* exact_dots.c -- products of 15-bit and 8-bit integers, by the widest multiply-add that the level has.
 *
 * All of them multiply 16-bit numbers into 32-bit sums (pmaddwd, vpdpwssd, smlal), which is exact: nothing
 * saturates.  8-bit numbers are widened as they are loaded. */
#include "ops/cpu/exact.h"

#if defined(__AVX512BW__)
#include <immintrin.h>
enum { LANES = 32 };
typedef __m512i vec;
#define ZERO()       _mm512_setzero_si512()
#define LOAD_X(p)    _mm512_loadu_si512(p)
#define LOAD_W(p)    _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define MAC(s, a, b) _mm512_add_epi32(s, _mm512_madd_epi16(a, b))
#define SUM(v)       _mm512_reduce_add_epi32(v)
#elif defined(__AVX2__)
#include <immintrin.h>
enum { LANES = 16 };
typedef __m256i vec;
#define ZERO()       _mm256_setzero_si256()
#define LOAD_X(p)    _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define LOAD_W(p)    _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define MAC(s, a, b) _mm256_add_epi32(s, _mm256_madd_epi16(a, b))
#define SUM(v)       sum_of(v)
static inline int32_t sum_of(__m256i v)
{
    const __m128i x = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i y = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(y, _mm_shuffle_epi32(y, 0xb1)));
}
#elif defined(__SSE4_1__)
#include <smmintrin.h>
enum { LANES = 8 };
typedef __m128i vec;
#define ZERO()       _mm_setzero_si128()
#define LOAD_X(p)    _mm_loadu_si128((const __m128i *)(const void *)(p))
#define LOAD_W(p)    _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#define MAC(s, a, b) _mm_add_epi32(s, _mm_madd_epi16(a, b))
#define SUM(v)       sum_of(v)
static inline int32_t sum_of(__m128i x)
{
    const __m128i y = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(y, _mm_shuffle_epi32(y, 0xb1)));
}
#elif defined(__ARM_NEON)
#include <arm_neon.h>
enum { LANES = 8 };
typedef struct vec {
    int16x8_t h;
    int32x4_t s;
} vec;
#define ZERO()       ((vec){vdupq_n_s16(0), vdupq_n_s32(0)})
#define LOAD_X(p)    ((vec){vld1q_s16(p), vdupq_n_s32(0)})
#define LOAD_W(p)    ((vec){vmovl_s8(vld1_s8(p)), vdupq_n_s32(0)})
#define MAC(s, a, b) mac(s, a, b)
#define SUM(v)       vaddvq_s32((v).s)
static inline vec mac(vec sum, vec a, vec b)
{
    sum.s = vmlal_s16(sum.s, vget_low_s16(a.h), vget_low_s16(b.h));
    sum.s = vmlal_high_s16(sum.s, a.h, b.h);
    return sum;
}
#else
enum { LANES = 1 };
typedef int32_t vec;
#define ZERO()       0
#define LOAD_X(p)    (*(p))
#define LOAD_W(p)    (*(p))
#define MAC(s, a, b) ((s) + (a) * (b))
#define SUM(v)       (v)
#endif

#define INLINE static inline __attribute__((always_inline))

/* R by C sums, unrolled: R and C are constants where this is called. */
INLINE void tile(int32_t *out, size_t ldo, const int16_t *x, size_t ldx, const int8_t *w,
                 ptrdiff_t ldw, int k, int R, int C)
{
    vec sum[4][3];
    const int whole = k / LANES * LANES;
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 3
        for (int c = 0; c < C; c++)
            sum[r][c] = ZERO();
    for (int t = 0; t < whole; t += LANES) {
        vec b[3];
#pragma GCC unroll 3
        for (int c = 0; c < C; c++)
            b[c] = LOAD_W(w + c * ldw + t);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            const vec a = LOAD_X(x + (size_t)r * ldx + t);
#pragma GCC unroll 3
            for (int c = 0; c < C; c++)
                sum[r][c] = MAC(sum[r][c], a, b[c]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 3
        for (int c = 0; c < C; c++) {
            int32_t all = SUM(sum[r][c]);
            for (int t = whole; t < k; t++) /* rows of bytes are not padded */
                all += (int32_t)x[(size_t)r * ldx + (size_t)t] * w[c * ldw + t];
            out[(size_t)r * ldo + (size_t)c] = all;
        }
}

/* Up to four rows by all columns. */
INLINE void strip(int32_t *out, size_t ldo, const int16_t *x, size_t ldx, lam_exact_bytes w, int k,
                  int R)
{
    int c = 0;
    for (; c + 3 <= w.n; c += 3)
        tile(out + c, ldo, x, ldx, w.p + c * w.ld, w.ld, k, R, 3);
    for (; c < w.n; c++)
        tile(out + c, ldo, x, ldx, w.p + c * w.ld, w.ld, k, R, 1);
}

void lam_exact_dots(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w, int k)
{
    int r = 0;
    assert(k <= LAM_EXACT_TERMS);
    for (; r + 4 <= x.n; r += 4)
        strip(out + (size_t)r * ldo, ldo, x.p + (size_t)r * x.ld, x.ld, w, k, 4);
    for (; r < x.n; r++)
        strip(out + (size_t)r * ldo, ldo, x.p + (size_t)r * x.ld, x.ld, w, k, 1);
}

void lam_exact_mix(int32_t *out, const int16_t *weight, const int8_t *v, ptrdiff_t ld, int n, int K)
{
    for (int j = 0; j < n; j++)
        for (int c = 0; c < K; c++)
            out[c] += (int32_t)weight[j] * v[j * ld + c];
}

/* ---- quantising ---- */

static int32_t largest(const float *x, size_t n)
{
    int32_t size = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t now = lam_exact_size(x[i]);
        size = now > size ? now : size;
    }
    return size;
}

float lam_cpu_exact_row(int16_t *q, const float *x, size_t n)
{
    const lam_exact_grid grid = lam_exact_grid_of(largest(x, n), LAM_EXACT_ROW);
    if (grid.up > 0.0f)
        for (size_t i = 0; i < n; i++)
            q[i] = (int16_t)lam_exact_round(x[i] * grid.up);
    else
        memset(q, 0, n * sizeof *q);
    memset(q + n, 0, (lam_exact_padded(n) - n) * sizeof *q);
    return grid.scale;
}

float lam_cpu_exact_head(int8_t *q, const float *x, size_t n)
{
    const lam_exact_grid grid = lam_exact_grid_of(largest(x, n), LAM_EXACT_HEAD);
    if (grid.up > 0.0f)
        for (size_t i = 0; i < n; i++)
            q[i] = (int8_t)lam_exact_round(x[i] * grid.up);
    else
        memset(q, 0, n);
    return grid.scale;
}
