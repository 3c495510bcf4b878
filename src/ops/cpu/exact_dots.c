/* exact_dots.c -- products of 15-bit and 8-bit integers, by the widest multiply-add that the level has.
 *
 * All of them multiply 16-bit numbers into 32-bit sums (pmaddwd, smlal), which is exact: nothing
 * saturates.  8-bit numbers are widened as they are loaded.  exact_vnni.c has other ways where there is VNNI. */
#include "ops/cpu/exact.h"

#if defined(__AVX512BW__)
#include <immintrin.h>
enum { LANES = 32 };
typedef __m512i vec;
#define ZERO()       _mm512_setzero_si512()
#define LOAD_X(p)    _mm512_loadu_si512(p)
#define LOAD_W(p)    _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define MAC(s, a, b) _mm512_add_epi32(s, _mm512_madd_epi16(a, b))
static inline __m256i halves(__m512i v)
{
    return _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
}
#elif defined(__AVX2__)
#include <immintrin.h>
enum { LANES = 16 };
typedef __m256i vec;
#define ZERO()       _mm256_setzero_si256()
#define LOAD_X(p)    _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define LOAD_W(p)    _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define MAC(s, a, b) _mm256_add_epi32(s, _mm256_madd_epi16(a, b))
static inline __m256i halves(__m256i v)
{
    return v;
}
#elif defined(__SSE4_1__)
#include <smmintrin.h>
enum { LANES = 8 };
typedef __m128i vec;
#define ZERO()       _mm_setzero_si128()
#define LOAD_X(p)    _mm_loadu_si128((const __m128i *)(const void *)(p))
#define LOAD_W(p)    _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#define MAC(s, a, b) _mm_add_epi32(s, _mm_madd_epi16(a, b))
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
#endif

/* out[i] = the sum of v[i], i < 4 */
static inline void sum_four(int32_t out[4], const vec v[4])
{
#if defined(__AVX2__)
    const __m256i x = _mm256_hadd_epi32(halves(v[0]), halves(v[1]));
    const __m256i y = _mm256_hadd_epi32(halves(v[2]), halves(v[3])), z = _mm256_hadd_epi32(x, y);
    _mm_storeu_si128((__m128i *)(void *)out,
                     _mm_add_epi32(_mm256_castsi256_si128(z), _mm256_extracti128_si256(z, 1)));
#elif defined(__SSE4_1__)
    const __m128i x = _mm_hadd_epi32(v[0], v[1]), y = _mm_hadd_epi32(v[2], v[3]);
    _mm_storeu_si128((__m128i *)(void *)out, _mm_hadd_epi32(x, y));
#elif defined(__ARM_NEON)
    vst1q_s32(out, vpaddq_s32(vpaddq_s32(v[0].s, v[1].s), vpaddq_s32(v[2].s, v[3].s)));
#else
    memcpy(out, v, 4 * sizeof *out);
#endif
}

/* Rows that are read at a time where there are several heads, and for how many rows ahead memory is asked. */
enum { SOME = 16, AHEAD = SOME };

#define INLINE static inline __attribute__((always_inline))

/* What is left of the sums behind the last whole vector: rows of bytes are not padded. */
static __attribute__((noinline)) void add_rest(int32_t *out, size_t ldo, lam_exact_rows x,
                                               lam_exact_bytes w, int from, int k)
{
    for (int r = 0; r < x.n; r++)
        for (int c = 0; c < w.n; c++)
            for (int t = from; t < k; t++)
                out[(size_t)r * ldo + (size_t)c] +=
                    (int32_t)x.p[(size_t)r * x.ld + (size_t)t] * w.p[c * w.ld + t];
}

/* Four rows by two columns. */
INLINE void tile_4x2(int32_t *out, size_t ldo, const int16_t *x, size_t ldx, const int8_t *w,
                     ptrdiff_t ldw, int whole)
{
    vec sum[8];
    int32_t all[8];
    for (int i = 0; i < 8; i++)
        sum[i] = ZERO();
    for (int t = 0; t < whole; t += LANES) {
        const vec b = LOAD_W(w + t), d = LOAD_W(w + ldw + t);
        const int16_t *at = x + t;
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++, at += ldx) {
            const vec a = LOAD_X(at);
            sum[2 * r] = MAC(sum[2 * r], a, b);
            sum[2 * r + 1] = MAC(sum[2 * r + 1], a, d);
        }
    }
    sum_four(all, sum);
    sum_four(all + 4, sum + 4);
    for (int r = 0; r < 4; r++)
        memcpy(out + (size_t)r * ldo, all + 2 * r, 2 * sizeof *all);
}

/* Four rows by one column. */
INLINE void tile_4x1(int32_t *out, size_t ldo, const int16_t *x, size_t ldx, const int8_t *w,
                     int whole)
{
    vec sum[4];
    int32_t all[4];
    for (int i = 0; i < 4; i++)
        sum[i] = ZERO();
    for (int t = 0; t < whole; t += LANES) {
        const vec b = LOAD_W(w + t);
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
            sum[r] = MAC(sum[r], LOAD_X(x + (size_t)r * ldx + t), b);
    }
    sum_four(all, sum);
    for (int r = 0; r < 4; r++)
        out[(size_t)r * ldo] = all[r];
}

/* One row by up to four columns; those that are not wanted repeat the last. */
INLINE void tile_1x4(int32_t *out, const int16_t *x, const int8_t *w, ptrdiff_t ldw, int n,
                     int whole)
{
    const int8_t *const w1 = w + (n > 1 ? ldw : 0), *const w2 = w1 + (n > 2 ? ldw : 0),
                        *const w3 = w2 + (n > 3 ? ldw : 0);
    vec sum[4];
    int32_t all[4];
    for (int i = 0; i < 4; i++)
        sum[i] = ZERO();
    for (int t = 0; t < whole; t += LANES) {
        const vec a = LOAD_X(x + t);
        sum[0] = MAC(sum[0], a, LOAD_W(w + t));
        sum[1] = MAC(sum[1], a, LOAD_W(w1 + t));
        sum[2] = MAC(sum[2], a, LOAD_W(w2 + t));
        sum[3] = MAC(sum[3], a, LOAD_W(w3 + t));
    }
    sum_four(all, sum);
    memcpy(out, all, (size_t)n * sizeof *all);
}

/* Four rows by all columns. */
static void strip_4(int32_t *out, size_t ldo, const int16_t *x, size_t ldx, lam_exact_bytes w,
                    int whole)
{
    int c = 0;
    for (; c + 2 <= w.n; c += 2)
        tile_4x2(out + c, ldo, x, ldx, w.p + c * w.ld, w.ld, whole);
    if (c < w.n)
        tile_4x1(out + c, ldo, x, ldx, w.p + c * w.ld, whole);
}

static void strip_1(int32_t *out, const int16_t *x, lam_exact_bytes w, int whole)
{
    for (int c = 0; c < w.n; c += 4) {
        for (int i = c; i < c + 4; i++)
            for (int t = 0; t < whole; t += 64)
                __builtin_prefetch(w.p + (AHEAD + i) * w.ld + t);
        tile_1x4(out + c, x, w.p + c * w.ld, w.ld, w.n - c < 4 ? w.n - c : 4, whole);
    }
}

static void dots_plain(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w, int whole)
{
    int r = 0;
    for (; r + 4 <= x.n; r += 4)
        strip_4(out + (size_t)r * ldo, ldo, x.p + (size_t)r * x.ld, x.ld, w, whole);
    for (; r < x.n; r++)
        strip_1(out + (size_t)r * ldo, x.p + (size_t)r * x.ld, w, whole);
}

/* Sums of rows of bytes, columns from..K. */
static void mix_plain(int32_t *out, const int16_t *weight, const lam_exact_bytes *v, int from,
                      int K)
{
    for (int j = 0; j < v->n; j++)
        for (int c = from; c < K; c++)
            out[c] += (int32_t)weight[j] * v->p[j * v->ld + c];
}

#if defined(__AVX512BW__)
/* The machine has it, and it computes what plain code does. */
static int check_vnni(void)
{
    enum { N = 5, K = 2 * LANES };
    int16_t x[N * K];
    int8_t w[N * K];
    int32_t one[N * N + K] = {0}, two[N * N + K] = {0};
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512vnni"))
        return 0;
    for (int i = 0; i < N * K; i++) {
        x[i] = (int16_t)((i * 7919) % (2 * LAM_EXACT_ROW + 1) - LAM_EXACT_ROW);
        w[i] = (int8_t)((i * 104729) % (2 * LAM_EXACT_HEAD + 1) - LAM_EXACT_HEAD);
    }
    const lam_exact_rows rows = {x, K, N};
    const lam_exact_bytes bytes = {.p = w, .ld = K, .n = N};
    const lam_exact_ahead nothing = {0};
    dots_plain(one, N, rows, bytes, K);
    mix_plain(one + N * N, x, &bytes, 0, K);
    lam_exact_dots_vnni(two, N, rows, bytes, K);
    if (lam_exact_mix_vnni(two + N * N, x, bytes, K) != K || memcmp(one, two, sizeof one) != 0)
        return 0;
    memset(one, 0, sizeof one);
    memset(two, 0, sizeof two);
    dots_plain(one, N, (lam_exact_rows){x, K, 1}, bytes, K);
    mix_plain(one + N, x, &bytes, 0, K);
    lam_exact_head_dots_vnni(two, N, (lam_exact_rows){x, K, 1}, bytes, nothing);
    lam_exact_head_mix_vnni(two + N, K, (lam_exact_rows){x, K, 1}, bytes);
    return memcmp(one, two, sizeof one) == 0;
}

static int has_vnni(void)
{
    static int known; /* 0: not asked yet, 1: no, 2: yes; threads that ask at once find the same */
    int now = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (now == 0) {
        now = 1 + check_vnni();
        __atomic_store_n(&known, now, __ATOMIC_RELAXED);
    }
    return now == 2;
}
#else
/* A constant: what depends on it is not compiled. */
INLINE int has_vnni(void)
{
    return 0;
}
#endif

void lam_exact_dots(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w, int k)
{
    const int whole = k / LANES * LANES;
    assert(k <= LAM_EXACT_TERMS);
    if (has_vnni()) {
        lam_exact_dots_vnni(out, ldo, x, w, k);
        return;
    }
    dots_plain(out, ldo, x, w, whole);
    if (whole < k)
        add_rest(out, ldo, x, w, whole, k);
}

/* ---- sums of rows of bytes ---- */

#if defined(__AVX2__)
/* 16 * blocks columns: two rows' bytes side by side meet their two weights. */
INLINE void mix_blocks(int32_t *out, const int16_t *weight, const int8_t *v,
                       const lam_exact_bytes *w, int blocks)
{
    const ptrdiff_t ld = w->ld;
    const int n = w->n;
    __m256i sum[8];
#pragma GCC unroll 8
    for (int i = 0; i < 2 * blocks; i++)
        sum[i] = _mm256_loadu_si256((const __m256i *)(const void *)(out + 8 * i));
    for (int j = 0; j < n; j += 2) {
        const int8_t *one = v + j * ld, *two = j + 1 < n ? one + ld : one;
        const uint32_t low = (uint16_t)weight[j], high = j + 1 < n ? (uint16_t)weight[j + 1] : 0;
        const __m256i by = _mm256_set1_epi32((int)(high << 16 | low));
        __builtin_prefetch(one + AHEAD * ld);
        __builtin_prefetch(one + (AHEAD + 1) * ld);
#pragma GCC unroll 4
        for (int i = 0; i < blocks; i++) {
            const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(one + 16 * i));
            const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(two + 16 * i));
            const __m256i x = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b));
            const __m256i y = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b));
            sum[2 * i] = _mm256_add_epi32(sum[2 * i], _mm256_madd_epi16(x, by));
            sum[2 * i + 1] = _mm256_add_epi32(sum[2 * i + 1], _mm256_madd_epi16(y, by));
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < 2 * blocks; i++)
        _mm256_storeu_si256((__m256i *)(void *)(out + 8 * i), sum[i]);
}
#endif

void lam_exact_mix(int32_t *out, const int16_t *weight, lam_exact_bytes v, int K)
{
    int c = 0;
    assert(v.n <= LAM_EXACT_TERMS);
    if (has_vnni())
        c = lam_exact_mix_vnni(out, weight, v, K);
#if defined(__AVX2__)
    for (; c + 64 <= K; c += 64)
        mix_blocks(out + c, weight, v.p + c, &v, 4);
    for (; c + 16 <= K; c += 16)
        mix_blocks(out + c, weight, v.p + c, &v, 1);
#endif
    if (c < K)
        mix_plain(out, weight, &v, c, K);
}

/* ---- heads ---- */

/* Rows c .. c + SOME of w as far as they exist. */
static lam_exact_bytes some_rows(lam_exact_bytes w, int c)
{
    return (lam_exact_bytes){w.p + c * w.ld, w.ld, w.n - c < SOME ? w.n - c : SOME};
}

void lam_exact_head_dots(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w, int K,
                         lam_exact_ahead ahead)
{
    if (K == LAM_VNNI_HEAD && has_vnni()) {
        lam_exact_head_dots_vnni(out, ldo, x, w, ahead);
        return;
    }
    const size_t each = lam_exact_share_of(&ahead, w.n, SOME, x.n);
    for (int c = 0; c < w.n; c += SOME) {
        lam_exact_bytes some = some_rows(w, c);
        for (int h = 0; h < x.n; h++, some.p += K) {
            lam_exact_ask(&ahead, each);
            lam_exact_dots(out + (size_t)h * ldo + c, ldo,
                           (lam_exact_rows){x.p + (size_t)h * x.ld, x.ld, 1}, some, K);
        }
    }
}

void lam_exact_head_mix(int32_t *out, size_t ldo, lam_exact_rows weight, lam_exact_bytes v, int K)
{
    assert(v.n <= LAM_EXACT_TERMS);
    if (K == LAM_VNNI_HEAD && has_vnni()) {
        lam_exact_head_mix_vnni(out, ldo, weight, v);
        return;
    }
    for (int j = 0; j < v.n; j += SOME) {
        lam_exact_bytes some = some_rows(v, j);
        for (int h = 0; h < weight.n; h++, some.p += K)
            lam_exact_mix(out + (size_t)h * ldo, weight.p + (size_t)h * weight.ld + j, some, K);
    }
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
