/* convert.c -- lam_convert: converts between any two element types; also counts non-finite values.
 *
 * Conversion runs in blocks through one of two wide forms: double for floats, sign and 64 bits for
 * integers. bf16 and f16 are rounded once, directly from double; going through float would round twice.
 * Values may lie at any address (files promise no alignment), so elements are copied in and out. Integers
 * beyond 2^53 are rounded to double on the way to a float type. */
#include "core/tensor.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* A 16-bit float: a sign, then this many bits. */
typedef struct format {
    int exponent;
    int fraction;
} format;

static const format f16 = {5, 10}, bf16 = {8, 7};

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The nearest value of the format, ties to even; beyond the largest comes infinity. */
static uint16_t narrow(double x, format f)
{
    const uint64_t bits = bits_of(x);
    const uint64_t sign = bits >> 63 << (f.exponent + f.fraction);
    const uint64_t infinity = ((UINT64_C(1) << f.exponent) - 1) << f.fraction;
    const uint64_t fraction = bits & 0xfffffffffffff;
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;

    if (exponent == 1024) /* NaN keeps its leading payload bits and becomes quiet */
        return (uint16_t)(sign | infinity |
                          (fraction
                               ? fraction >> (52 - f.fraction) | UINT64_C(1) << (f.fraction - 1)
                               : 0));

    const int lowest = 2 - (1 << (f.exponent - 1)); /* exponent of the smallest normal number */
    const int under = exponent < lowest ? lowest - exponent : 0;
    const int shift = 52 - f.fraction + under;
    if (shift > 53)
        return (uint16_t)sign; /* below half of the smallest subnormal; all double subnormals too */

    const uint64_t mantissa = fraction | UINT64_C(1) << 52;
    const uint64_t half = UINT64_C(1) << (shift - 1);
    const uint64_t rest = mantissa & (2 * half - 1);
    uint64_t result = mantissa >> shift;
    result += rest > half || (rest == half && result % 2);
    /* A normal mantissa brings its leading 1, which counts as one exponent; so does a carry. */
    result += under ? 0 : (uint64_t)(exponent - lowest) << f.fraction;
    return (uint16_t)(sign | (result < infinity ? result : infinity));
}

static double widen(uint16_t half, format f)
{
    const uint64_t sign = (uint64_t)half >> (f.exponent + f.fraction) << 63;
    const uint64_t fraction = half & ((UINT64_C(1) << f.fraction) - 1);
    const int top = (1 << f.exponent) - 1, bias = top / 2;
    const int exponent = half >> f.fraction & top;

    uint64_t bits;
    if (exponent == 0)
        bits = bits_of(ldexp((double)fraction, 1 - bias - f.fraction));
    else
        bits = (uint64_t)(exponent == top ? 0x7ff : exponent - bias + 1023) << 52 |
               fraction << (52 - f.fraction);
    bits |= sign;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A bf16 is the upper half of a float.  Without a branch, so that compilers make vectors of it: decoding converts
 * the logits of every token. */
static double widen_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

typedef enum kind { FLOAT, SIGNED, UNSIGNED, TRUTH } kind;

static kind kind_of(lam_dtype dtype)
{
    if (dtype <= LAM_BF16)
        return FLOAT;
    if (dtype <= LAM_I8)
        return SIGNED;
    return dtype <= LAM_U8 ? UNSIGNED : TRUTH;
}

typedef struct wide {
    uint64_t bits; /* two's complement when negative */
    int negative;
} wide;

#define LOAD(type, expr)                                                                           \
    for (size_t i = 0; i < n; i++) {                                                               \
        type x;                                                                                    \
        memcpy(&x, src + i * sizeof x, sizeof x);                                                  \
        out[i] = expr;                                                                             \
    }
#define STORE(type, expr)                                                                          \
    for (size_t i = 0; i < n; i++) {                                                               \
        const type x = expr;                                                                       \
        memcpy(dst + i * sizeof x, &x, sizeof x);                                                  \
    }

static void load_floats(double *out, const char *src, lam_dtype dtype, size_t n)
{
    switch (dtype) {
    case LAM_F64:
        LOAD(double, x)
        break;
    case LAM_F32:
        LOAD(float, (double)x)
        break;
    case LAM_F16:
        LOAD(uint16_t, widen(x, f16))
        break;
    default:
        assert(dtype == LAM_BF16);
        LOAD(uint16_t, widen_bf16(x))
        break;
    }
}

static void store_floats(char *dst, lam_dtype dtype, const double *in, size_t n)
{
    switch (dtype) {
    case LAM_F64:
        STORE(double, in[i])
        break;
    case LAM_F32:
        STORE(float, (float)in[i])
        break;
    case LAM_F16:
        STORE(uint16_t, narrow(in[i], f16))
        break;
    default:
        assert(dtype == LAM_BF16);
        STORE(uint16_t, narrow(in[i], bf16))
        break;
    }
}

static wide from_signed(int64_t x)
{
    return (wide){(uint64_t)x, x < 0};
}

static void load_integers(wide *out, const char *src, lam_dtype dtype, size_t n)
{
    switch (dtype) {
    case LAM_I64:
        LOAD(int64_t, from_signed(x))
        break;
    case LAM_I32:
        LOAD(int32_t, from_signed(x))
        break;
    case LAM_I16:
        LOAD(int16_t, from_signed(x))
        break;
    case LAM_I8:
        LOAD(int8_t, from_signed(x))
        break;
    case LAM_U64:
        LOAD(uint64_t, ((wide){x, 0}))
        break;
    case LAM_U32:
        LOAD(uint32_t, ((wide){x, 0}))
        break;
    case LAM_U16:
        LOAD(uint16_t, ((wide){x, 0}))
        break;
    case LAM_U8:
        LOAD(uint8_t, ((wide){x, 0}))
        break;
    default:
        assert(dtype == LAM_BOOL);
        LOAD(uint8_t, ((wide){x != 0, 0}))
        break;
    }
}

/* The nearest value that the type holds, as the low bytes of the result. */
static uint64_t saturate(wide x, lam_dtype dtype)
{
    const kind to = kind_of(dtype);
    if (to == TRUTH)
        return x.bits != 0;
    const uint64_t all = UINT64_MAX >> (64 - 8 * lam_dtype_size(dtype));
    const uint64_t highest = to == SIGNED ? all >> 1 : all;
    if (!x.negative)
        return x.bits < highest ? x.bits : highest;
    const uint64_t lowest = to == SIGNED ? ~highest : 0; /* sign-extended */
    return lowest && x.bits > lowest ? x.bits : lowest;
}

static void store_integers(char *dst, lam_dtype dtype, const wide *in, size_t n)
{
    switch (lam_dtype_size(dtype)) {
    case 8:
        STORE(uint64_t, saturate(in[i], dtype))
        break;
    case 4:
        STORE(uint32_t, (uint32_t)saturate(in[i], dtype))
        break;
    case 2:
        STORE(uint16_t, (uint16_t)saturate(in[i], dtype))
        break;
    default:
        STORE(uint8_t, (uint8_t)saturate(in[i], dtype))
        break;
    }
}

static wide truncated(double x, lam_dtype dtype)
{
    if (dtype == LAM_BOOL)
        return (wide){x != 0.0, 0}; /* as C's _Bool: a half is true */
    if (isnan(x))
        return (wide){0, 0};
    if (x < 0.0)
        return from_signed(x > -0x1p63 ? (int64_t)x : INT64_MIN);
    return (wide){x < 0x1p64 ? (uint64_t)x : UINT64_MAX, 0};
}

enum { BLOCK = 256 };

static void convert_block(char *dst, lam_dtype dst_type, const char *src, lam_dtype src_type,
                          size_t n)
{
    double floats[BLOCK];
    wide integers[BLOCK];
    const int to_float = kind_of(dst_type) == FLOAT;

    if (kind_of(src_type) == FLOAT) {
        load_floats(floats, src, src_type, n);
        for (size_t i = 0; !to_float && i < n; i++)
            integers[i] = truncated(floats[i], dst_type);
    } else {
        load_integers(integers, src, src_type, n);
        for (size_t i = 0; to_float && i < n; i++)
            floats[i] =
                integers[i].negative ? (double)(int64_t)integers[i].bits : (double)integers[i].bits;
    }
    if (to_float)
        store_floats(dst, dst_type, floats, n);
    else
        store_integers(dst, dst_type, integers, n);
}

void lam_convert(void *dst, lam_dtype dst_type, const void *src, lam_dtype src_type, size_t n)
{
    const size_t dst_size = lam_dtype_size(dst_type), src_size = lam_dtype_size(src_type);
    if (dst_type == src_type) {
        if (n && dst != src)
            memcpy(dst, src, n * dst_size);
        return;
    }
    if (dst_type == LAM_F64 && kind_of(src_type) == FLOAT &&
        (uintptr_t)dst % _Alignof(double) == 0) { /* logits, say: without a detour */
        load_floats(dst, src, src_type, n);
        return;
    }
    for (size_t i = 0; i < n; i += BLOCK)
        convert_block((char *)dst + i * dst_size, dst_type, (const char *)src + i * src_size,
                      src_type, n - i < BLOCK ? n - i : BLOCK);
}

/* A float is infinite or NaN where every bit of its exponent is set: one more then carries into the sign.  A block is looked
 * at as a whole, without leaving early: this the compiler can do many at a time, also where the machine compares no 64-bit
 * integers, and files have hundreds of millions. */
#define FINITE(type, mask)                                                                         \
    for (size_t at = 0; at < n; at += BLOCK) {                                                     \
        const size_t end = n - at < BLOCK ? n : at + BLOCK;                                        \
        type bad = 0;                                                                              \
        for (size_t i = at; i < end; i++) {                                                        \
            type x;                                                                                \
            memcpy(&x, src + i * sizeof x, sizeof x);                                              \
            bad |= (type)((x & (mask)) + ((mask) & (~(mask) + 1)));                                \
        }                                                                                          \
        if (bad >> (8 * sizeof bad - 1))                                                           \
            return first_bad(src, dtype, at, end);                                                 \
    }

static size_t first_bad(const char *src, lam_dtype dtype, size_t from, size_t end)
{
    const size_t size = lam_dtype_size(dtype);
    double x = 0.0;
    for (; from < end; from++) {
        load_floats(&x, src + from * size, dtype, 1);
        if (!isfinite(x))
            break;
    }
    return from;
}

size_t lam_finite_count(const void *data, lam_dtype dtype, size_t n)
{
    const char *src = data;
    switch (dtype) {
    case LAM_F64:
        FINITE(uint64_t, UINT64_C(0x7ff) << 52)
        break;
    case LAM_F32:
        FINITE(uint32_t, UINT32_C(0x7f800000))
        break;
    case LAM_F16:
        FINITE(uint16_t, 0x7c00)
        break;
    case LAM_BF16:
        FINITE(uint16_t, 0x7f80)
        break;
    default:
        break;
    }
    return n;
}
