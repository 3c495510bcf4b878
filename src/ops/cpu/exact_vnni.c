/* exact_vnni.c -- the sums of exact_dots.c with AVX-512 VNNI, which multiplies and adds in one instruction.
 *
 * x86-64-v4 does not include it: exact_dots.c asks at run time.  There are two such instructions:
 *   dpwssd  adds two products of 16-bit numbers.  Bytes are widened as they are loaded; four rows share that.
 *   dpbusd  adds four products of an unsigned and a signed byte.  With x = 256 high + low and w = (w ^ 0x80) - 128,
 *             sum x w = 256 sum high (w ^ 0x80) + sum low (w ^ 0x80) - 128 sum x,
 *           so that a single row reads 64 bytes of w as they lie.
 * Sums may wrap around on the way; for LAM_EXACT_TERMS terms the result fits again. */
#include "ops/cpu/exact.h"

#if defined(__AVX512BW__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512vnni")))
#define INLINE static inline TARGET __attribute__((always_inline))

/* ---- instructions ---- */

/* Their intrinsics make gcc 12 copy many sums at every step. */
INLINE void dpwssd(__m512i *sum, __m512i a, __m512i b)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
}

INLINE void dpbusd(__m512i *sum, __m512i a, __m512i b)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(b));
}

/* Bytes of w, unsigned. */
INLINE __m512i as_unsigned(__m512i bytes)
{
    return _mm512_xor_si512(bytes, _mm512_set1_epi8(-128));
}

/* ---- sums of vectors ---- */

INLINE __m512i add_pairs(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

INLINE __m512i add_lanes(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

/* Element i of the result is the sum of v[i]: a transposition that adds as it goes. */
INLINE __m512i sum_each(const __m512i v[16])
{
    __m512i four[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512i ab = add_pairs(v[4 * i], v[4 * i + 1]);
        const __m512i cd = add_pairs(v[4 * i + 2], v[4 * i + 3]);
        four[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    }
    return add_lanes(add_lanes(four[0], four[1]), add_lanes(four[2], four[3]));
}

/* ---- four rows by four columns ---- */

enum { WORDS = 32, BYTES = 64, AHEAD = 64 /* rows */ };

/* Terms t .. t + WORDS, of which `some` exist unless `whole`. */
INLINE void add_terms(__m512i sum[16], const int16_t *x, size_t ldx, const int8_t *const w[4],
                      int t, __mmask32 some, int whole)
{
    __m512i a[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
        a[r] = _mm512_loadu_si512(x + (size_t)r * ldx + (size_t)t);
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        const __m256i bytes = whole ? _mm256_loadu_si256((const __m256i *)(const void *)(w[c] + t))
                                    : _mm256_maskz_loadu_epi8(some, w[c] + t);
        const __m512i b = _mm512_cvtepi8_epi16(bytes);
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
            dpwssd(&sum[4 * r + c], a[r], b);
    }
}

/* Columns c .. c + 4 of w as far as they exist. */
INLINE void tile_4x4(int32_t *out, size_t ldo, const int16_t *x, size_t ldx, lam_exact_bytes w,
                     int c, int k)
{
    const int n = w.n - c < 4 ? w.n - c : 4, last = w.n - 1;
    const int8_t *const at[4] = {w.p + c * w.ld, w.p + (c + 1 < w.n ? c + 1 : last) * w.ld,
                                 w.p + (c + 2 < w.n ? c + 2 : last) * w.ld,
                                 w.p + (c + 3 < w.n ? c + 3 : last) * w.ld};
    const __mmask8 wanted = (__mmask8)((1u << n) - 1);
    __m512i sum[16];
    int t = 0;
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        sum[i] = _mm512_setzero_si512();
    for (; t + WORDS <= k; t += WORDS)
        add_terms(sum, x, ldx, at, t, 0, 1);
    if (t < k)
        add_terms(sum, x, ldx, at, t, (__mmask32)((1u << (k - t)) - 1), 0);
    const __m512i all = sum_each(sum);
    out += c;
    _mm_mask_storeu_epi32(out, wanted, _mm512_castsi512_si128(all));
    _mm_mask_storeu_epi32(out + ldo, wanted, _mm512_extracti32x4_epi32(all, 1));
    _mm_mask_storeu_epi32(out + 2 * ldo, wanted, _mm512_extracti32x4_epi32(all, 2));
    _mm_mask_storeu_epi32(out + 3 * ldo, wanted, _mm512_extracti32x4_epi32(all, 3));
}

/* ---- one row ---- */

/* 15-bit numbers as 256 high + low, with zeros behind. */
typedef struct halved {
    _Alignas(64) int8_t high[LAM_EXACT_TERMS];
    _Alignas(64) int8_t low[LAM_EXACT_TERMS];
    __m512i less; /* 128 times their sum, everywhere */
} halved;

static TARGET void halve(halved *out, const int16_t *x, int n)
{
    int32_t sum = 0;
    for (int i = 0; i < n; i++) {
        const int16_t high = (int16_t)((x[i] + 128) >> 8);
        out->high[i] = (int8_t)high;
        out->low[i] = (int8_t)(x[i] - 256 * high);
        sum += x[i];
    }
    for (int i = n; i % BYTES != 0; i++)
        out->high[i] = out->low[i] = 0;
    out->less = _mm512_set1_epi32(128 * sum);
}

/* Its elements add up to the sum of x w, and x->less once. */
INLINE __m512i dot(const halved *x, const int8_t *w, int k)
{
    const __mmask64 some = ((__mmask64)1 << (k % BYTES)) - 1;
    const int whole = k - k % BYTES;
    __m512i high = _mm512_setzero_si512(), low = high;
    for (int t = 0; t < whole; t += BYTES) {
        const __m512i b = as_unsigned(_mm512_loadu_si512(w + t));
        dpbusd(&high, b, _mm512_load_si512(x->high + t));
        dpbusd(&low, b, _mm512_load_si512(x->low + t));
    }
    if (some) {
        const __m512i b = as_unsigned(_mm512_maskz_loadu_epi8(some, w + whole));
        dpbusd(&high, b, _mm512_load_si512(x->high + whole));
        dpbusd(&low, b, _mm512_load_si512(x->low + whole));
    }
    return _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
}

INLINE void dots_of(int32_t *out, const halved *row, lam_exact_bytes w, int k)
{
    const int8_t *at = w.p;
    int c = 0;
    __m512i sum[16];
    for (; c + 16 <= w.n; c += 16) {
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++, at += w.ld) {
            _mm_prefetch(at + AHEAD * w.ld, _MM_HINT_T0);
            sum[i] = dot(row, at, k);
        }
        _mm512_storeu_si512(out + c, _mm512_sub_epi32(sum_each(sum), row->less));
    }
    if (c == w.n)
        return;
    for (int i = 0; i < 16; i++, at += c + i < w.n ? w.ld : 0)
        sum[i] = dot(row, at, k);
    _mm512_mask_storeu_epi32(out + c, (__mmask16)((1u << (w.n - c)) - 1),
                             _mm512_sub_epi32(sum_each(sum), row->less));
}

static TARGET void one_row(int32_t *out, const int16_t *x, lam_exact_bytes w, int k)
{
    halved row;
    halve(&row, x, k);
    if (k == BYTES) /* most heads: the halves stay in registers */
        dots_of(out, &row, w, BYTES);
    else
        dots_of(out, &row, w, k);
}

/* Rows from .. to - 1. */
INLINE void ask_for(const lam_exact_bytes *w, int from, int to, int k)
{
    for (int i = from; i < to; i++)
        for (int t = 0; t < k; t += BYTES)
            _mm_prefetch(w->p + i * w->ld + t, _MM_HINT_T0);
}

TARGET void lam_exact_dots_vnni(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w,
                                int k)
{
    const int strips = x.n / 4;
    int r = 0;
    for (int i = 0; i < strips; i++, r += 4) {
        /* What lies behind w probably comes next: each strip asks for a part of it.  Short rows are keys: there, the
         * first strip asks for the rows that it will read soon. */
        int from = w.n + 4 * i / strips, to = w.n + 4 * (i + 1) / strips;
        if (k <= BYTES) {
            from = 8;
            to = i == 0 ? 12 : 8;
        }
        for (int c = 0; c < w.n; c += 4) {
            ask_for(&w, c + from, c + to, k);
            tile_4x4(out + (size_t)r * ldo, ldo, x.p + (size_t)r * x.ld, x.ld, w, c, k);
        }
    }
    for (; r < x.n; r++)
        one_row(out + (size_t)r * ldo, x.p + (size_t)r * x.ld, w, k);
}

/* ---- sums of rows of bytes ---- */

/* Sum i of lane q has columns 16 q + 4 i and the three behind. */
INLINE void add_columns(int32_t *out, __m512i sum, int i)
{
    int32_t all[16];
    _mm512_storeu_si512(all, sum);
    for (int q = 0; q < 4; q++)
        for (int c = 0; c < 4; c++)
            out[16 * q + 4 * i + c] += all[4 * q + c];
}

/* BYTES columns of four rows: their bytes side by side meet the rows' weights from j on. */
INLINE void mix_four(__m512i high[4], __m512i low[4], const halved *weight, int j,
                     const int8_t *const v[4])
{
    __m512i x[4];
    int32_t four[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        x[i] = as_unsigned(_mm512_loadu_si512(v[i]));
    const __m512i ab[2] = {_mm512_unpacklo_epi8(x[0], x[1]), _mm512_unpackhi_epi8(x[0], x[1])};
    const __m512i cd[2] = {_mm512_unpacklo_epi8(x[2], x[3]), _mm512_unpackhi_epi8(x[2], x[3])};
    memcpy(&four[0], weight->high + j, sizeof four[0]);
    memcpy(&four[1], weight->low + j, sizeof four[1]);
    const __m512i by[2] = {_mm512_set1_epi32(four[0]), _mm512_set1_epi32(four[1])};
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512i all = i % 2 ? _mm512_unpackhi_epi16(ab[i / 2], cd[i / 2])
                                  : _mm512_unpacklo_epi16(ab[i / 2], cd[i / 2]);
        dpbusd(&high[i], all, by[0]);
        dpbusd(&low[i], all, by[1]);
    }
}

static TARGET void mix_bytes(int32_t *out, const halved *weight, lam_exact_bytes w)
{
    const int8_t *v = w.p;
    const ptrdiff_t ld = w.ld;
    __m512i high[4], low[4];
    int j = 0;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        high[i] = low[i] = _mm512_setzero_si512();
    for (; j + 4 <= w.n; j += 4, v += 4 * ld) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            _mm_prefetch(v + (AHEAD + i) * ld, _MM_HINT_T0);
        mix_four(high, low, weight, j, (const int8_t *const[]){v, v + ld, v + 2 * ld, v + 3 * ld});
    }
    if (j < w.n) { /* weights behind the last are 0 */
        const int8_t *const b = j + 1 < w.n ? v + ld : v, *const c = j + 2 < w.n ? b + ld : b;
        mix_four(high, low, weight, j, (const int8_t *const[]){v, b, c, c});
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        add_columns(
            out,
            _mm512_sub_epi32(_mm512_add_epi32(_mm512_slli_epi32(high[i], 8), low[i]), weight->less),
            i);
}

TARGET int lam_exact_mix_vnni(int32_t *out, const int16_t *weight, lam_exact_bytes v, int K)
{
    halved x;
    int c = 0;
    halve(&x, weight, v.n);
    for (; c + BYTES <= K; c += BYTES) {
        mix_bytes(out + c, &x, v);
        v.p += BYTES;
    }
    return c;
}

/* ---- all heads of a row ---- */

/* SOME rows at a time, all heads of them; the next SOME are asked for meanwhile.  So memory is read nearly in order. */
enum { HEAD = LAM_VNNI_HEAD, SOME = 16 };

typedef struct halved_head {
    __m512i high, low, less;
} halved_head;

/* A head of rows c .. c + 4 of w, or of its last ones: element 4 q + i of the result is a part of the sum of row i. */
INLINE __m512i four_rows(const halved_head *x, lam_exact_bytes w, int c, ptrdiff_t from)
{
    __m512i sum[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const int8_t *const at = w.p + (c + i < w.n ? c + i : w.n - 1) * w.ld + from;
        const __m512i b = as_unsigned(_mm512_loadu_si512(at));
        _mm_prefetch(at + SOME * w.ld, _MM_HINT_T0);
        sum[i] = _mm512_setzero_si512();
        dpbusd(&sum[i], b, x->high);
        sum[i] = _mm512_slli_epi32(sum[i], 8);
        dpbusd(&sum[i], b, x->low);
    }
    const __m512i ab = add_pairs(sum[0], sum[1]), cd = add_pairs(sum[2], sum[3]);
    return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

TARGET void lam_exact_head_dots_vnni(int32_t *out, size_t ldo, lam_exact_rows x, lam_exact_bytes w,
                                     lam_exact_ahead ahead)
{
    const size_t each = lam_exact_share_of(&ahead, w.n, SOME, x.n);
    halved_head head[LAM_EXACT_HEADS];
    assert(x.n <= LAM_EXACT_HEADS);
    for (int h = 0; h < x.n; h++) {
        halved one;
        halve(&one, x.p + (size_t)h * x.ld, HEAD);
        head[h] = (halved_head){_mm512_load_si512(one.high), _mm512_load_si512(one.low), one.less};
    }
    for (int c = 0; c < w.n; c += SOME) {
        const int n = w.n - c < SOME ? w.n - c : SOME;
        for (int h = 0; h < x.n; h++) {
            __m512i part[4];
            lam_exact_ask(&ahead, each);
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                part[i] = four_rows(&head[h], w, c + 4 * i, h * HEAD);
            const __m512i sum = add_lanes(add_lanes(part[0], part[1]), add_lanes(part[2], part[3]));
            _mm512_mask_storeu_epi32(out + (size_t)h * ldo + c, (__mmask16)((1u << n) - 1),
                                     _mm512_sub_epi32(sum, head[h].less));
        }
    }
}

/* SOME rows of a head, of which n exist, into its sums. */
INLINE void mix_some(__m512i sums[8], const halved *weight, int j, const int8_t *v, ptrdiff_t ld,
                     int n)
{
    __m512i high[4], low[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        high[i] = sums[i];
        low[i] = sums[4 + i];
    }
    for (int i = 0; i < n; i += 4, v += 4 * ld) {
        const int8_t *const b = i + 1 < n ? v + ld : v, *const c = i + 2 < n ? b + ld : b;
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
            _mm_prefetch(v + (SOME + r) * ld, _MM_HINT_T0);
        mix_four(high, low, weight, j + i,
                 (const int8_t *const[]){v, b, c, i + 3 < n ? c + ld : c});
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        sums[i] = high[i];
        sums[4 + i] = low[i];
    }
}

TARGET void lam_exact_head_mix_vnni(int32_t *out, size_t ldo, lam_exact_rows weight,
                                    lam_exact_bytes v)
{
    halved head[LAM_EXACT_HEADS];
    __m512i sums[LAM_EXACT_HEADS][8];
    assert(weight.n <= LAM_EXACT_HEADS && v.n <= LAM_EXACT_TERMS);
    memset(sums, 0, (size_t)weight.n * sizeof *sums);
    for (int h = 0; h < weight.n; h++)
        halve(&head[h], weight.p + (size_t)h * weight.ld, v.n);
    for (int j = 0; j < v.n; j += SOME)
        for (int h = 0; h < weight.n; h++)
            mix_some(sums[h], &head[h], j, v.p + j * v.ld + h * HEAD, v.ld,
                     v.n - j < SOME ? v.n - j : SOME);
    for (int h = 0; h < weight.n; h++)
        for (int i = 0; i < 4; i++)
            add_columns(
                out + (size_t)h * ldo,
                _mm512_sub_epi32(_mm512_add_epi32(_mm512_slli_epi32(sums[h][i], 8), sums[h][4 + i]),
                                 head[h].less),
                i);
}
#endif
