/* convert_test.c -- every pair of types against a naive computation that shares nothing with it.
 *
 * The naive side knows a 16-bit float only by its definition, (-1)^s m 2^e, and finds the nearest one
 * by bisection; integers pass through long double, which holds 64 bits exactly. */
#include "core/tensor.h"

#include "support/suite.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

_Static_assert(LDBL_MANT_DIG >= 64, "the naive side needs 64-bit integers in long double");

static const lam_dtype halves[] = {LAM_F16, LAM_BF16};

static uint16_t infinity_of(lam_dtype dtype)
{
    return dtype == LAM_F16 ? 0x7c00 : 0x7f80;
}

/* The value of a pattern, from the definition.  Infinity is given the value the next pattern would
 * have if the format went on: that is where rounding to it starts to make sense. */
static double half_value(uint16_t bits, lam_dtype dtype)
{
    const int fraction = dtype == LAM_F16 ? 10 : 7, bias = dtype == LAM_F16 ? 15 : 127;
    const int e = bits % 0x8000 >> fraction;
    const double m = bits % (1 << fraction) / pow(2, fraction), sign = bits & 0x8000 ? -1.0 : 1.0;
    return e ? sign * (1.0 + m) * pow(2, e - bias) : sign * m * pow(2, 1 - bias);
}

/* The pattern nearest to x >= 0, ties to the even one; values grow with their patterns. */
static uint16_t nearest_half(double x, lam_dtype dtype)
{
    uint16_t low = 0, high = infinity_of(dtype);
    while (high - low > 1) {
        const uint16_t middle = (uint16_t)((low + high) / 2);
        if (half_value(middle, dtype) <= x)
            low = middle;
        else
            high = middle;
    }
    const double below = x - half_value(low, dtype), above = half_value(high, dtype) - x;
    if (below == above)
        return low % 2 ? high : low;
    return below < above ? low : high;
}

static uint16_t narrow(double x, lam_dtype dtype)
{
    uint16_t out = 0xdead;
    lam_convert(&out, dtype, &x, LAM_F64, 1);
    return out;
}

START_TEST(every_half_widens_to_its_definition_and_back)
{
    for (int h = 0; h < 2; h++) {
        const lam_dtype dtype = halves[h];
        const uint16_t infinity = infinity_of(dtype);
        for (int i = 0; i < 0x10000; i++) {
            const uint16_t bits = (uint16_t)i;
            double x = 0;
            float y = 0;
            lam_convert(&x, LAM_F64, &bits, dtype, 1);
            lam_convert(&y, LAM_F32, &bits, dtype, 1);
            if ((bits & 0x7fff) > infinity) {
                ck_assert(isnan(x) && isnan(y));
                ck_assert_int_eq(signbit(x) != 0, bits >> 15);
                ck_assert_uint_eq(narrow(x, dtype) & 0x7fff & ~infinity & 0x3f, bits & 0x3f);
                ck_assert_uint_gt(narrow(x, dtype) & 0x7fff, infinity); /* still a NaN */
                continue;
            }
            const double value = (bits & 0x7fff) == infinity ? (bits >> 15 ? -INFINITY : INFINITY)
                                                             : half_value(bits, dtype);
            ck_assert_msg(x == value && (double)y == value, "%s 0x%04x gave %a",
                          lam_dtype_name(dtype), bits, x);
            ck_assert_int_eq(signbit(x) != 0, bits >> 15); /* minus zero too */
            ck_assert_uint_eq(narrow(x, dtype), bits);
        }
    }
}
END_TEST

START_TEST(halfway_goes_to_even_and_a_hair_more_goes_up)
{
    for (int h = 0; h < 2; h++) {
        const lam_dtype dtype = halves[h];
        for (uint16_t low = 0; low < infinity_of(dtype); low++) {
            const uint16_t high = (uint16_t)(low + 1);
            const double middle = half_value(low, dtype) / 2 + half_value(high, dtype) / 2;
            ck_assert_uint_eq(narrow(middle, dtype), low % 2 ? high : low);
            ck_assert_uint_eq(narrow(nextafter(middle, INFINITY), dtype), high);
            ck_assert_uint_eq(narrow(nextafter(middle, 0), dtype), low);
            ck_assert_uint_eq(narrow(-middle, dtype), (low % 2 ? high : low) | 0x8000);
        }
    }
}
END_TEST

START_TEST(double_is_rounded_once_not_twice)
{
    /* 1 + 2^-8 + 2^-40 is just above the middle of two bf16; as a float it is exactly the middle. */
    ck_assert_uint_eq(narrow(1.0 + 0x1p-8 + 0x1p-40, LAM_BF16), 0x3f81);
    ck_assert_uint_eq(narrow((double)(float)(1.0 + 0x1p-8 + 0x1p-40), LAM_BF16), 0x3f80);
}
END_TEST

/* --- all pairs: a naive reader and a naive expectation ----------------------------------------- */

static long double value_of(const unsigned char *at, lam_dtype dtype)
{
    union {
        double f64;
        float f32;
        int64_t i64;
        int32_t i32;
        int16_t i16;
        int8_t i8;
        uint64_t u64;
        uint32_t u32;
        uint16_t u16;
        uint8_t u8;
    } v = {0};
    memcpy(&v, at, lam_dtype_size(dtype));
    const long double all[LAM_DTYPES] = {v.f64, v.f32, 0,     0,     v.i64, v.i32,    v.i16,
                                         v.i8,  v.u64, v.u32, v.u16, v.u8,  v.u8 != 0};
    if (dtype != LAM_F16 && dtype != LAM_BF16)
        return all[dtype];
    const uint16_t magnitude = v.u16 & 0x7fff, infinity = infinity_of(dtype);
    if (magnitude >= infinity)
        return magnitude > infinity ? NAN : v.u16 >> 15 ? -INFINITY : INFINITY;
    return half_value(v.u16, dtype);
}

/* The value that lam_convert should have stored for x. */
static long double expected(long double x, lam_dtype dtype)
{
    static const long double lowest[LAM_DTYPES] = {
        [LAM_I64] = -0x1p63L, [LAM_I32] = -0x1p31L, [LAM_I16] = -0x1p15L, [LAM_I8] = -0x1p7L};
    static const long double highest[LAM_DTYPES] = {
        [LAM_I64] = 0x1p63L - 1, [LAM_I32] = 0x1p31L - 1, [LAM_I16] = 0x1p15L - 1,
        [LAM_I8] = 0x1p7L - 1,   [LAM_U64] = 0x1p64L - 1, [LAM_U32] = 0x1p32L - 1,
        [LAM_U16] = 0x1p16L - 1, [LAM_U8] = 0x1p8L - 1};
    if (dtype == LAM_BOOL)
        return x != 0;
    if (dtype == LAM_F64)
        return (double)x;
    if (dtype == LAM_F32)
        return (float)(double)x;
    if (dtype == LAM_F16 || dtype == LAM_BF16) {
        if (isnan(x))
            return x;
        const uint16_t bits = nearest_half(fabs((double)x), dtype);
        const long double size = bits == infinity_of(dtype) ? INFINITY : half_value(bits, dtype);
        return signbit(x) ? -size : size;
    }
    if (isnan(x))
        return 0;
    return fminl(fmaxl(truncl(x), lowest[dtype]), highest[dtype]) + 0.0L; /* no minus zero */
}

/* Elements of any type: random bytes, and floats of ordinary size, and the edges. */
static void fill(unsigned char *bytes, size_t n, lam_dtype dtype, lam_rng *rng)
{
    static const double edges[] = {0.0,  -0.0,   0.5,     -0.5,     1.0,       -1.0,    127.5,
                                   -129, 255.9,  256,     32768,    -32769,    65504,   65520,
                                   1e-8, 0x1p31, -0x1p31, 0x1p32,   0x1p63,    -0x1p63, 0x1p64,
                                   1e30, -1e30,  1e300,   INFINITY, -INFINITY, NAN};
    const size_t size = lam_dtype_size(dtype), edge_count = sizeof edges / sizeof *edges;
    for (size_t i = 0; i < n * size; i++)
        bytes[i] = (unsigned char)lam_rng_u32(rng);
    if (dtype > LAM_BF16) { /* integers: all zeros and all ones, and the largest and smallest */
        memset(bytes, 0, size);
        memset(bytes + size, 0xff, 3 * size);
        bytes[3 * size - 1] = 0x7f;
        memset(bytes + 3 * size, 0, size);
        bytes[4 * size - 1] = 0x80;
        return;
    }
    for (size_t i = 0; i < n / 2; i++) {
        const double x =
            i < edge_count ? edges[i] : lam_rng_normal(rng) * pow(10, (double)(i % 24) - 8);
        const float y = (float)x;
        if (dtype == LAM_F64)
            memcpy(bytes + i * size, &x, size);
        else if (dtype == LAM_F32)
            memcpy(bytes + i * size, &y, size);
    }
}

START_TEST(every_pair_of_types_agrees_with_the_naive_conversion)
{
    enum { N = 1500 }; /* not a multiple of any block */
    static unsigned char src[N * 8 + 1], dst[N * 8 + 2];
    lam_rng rng = test_rng(21);
    for (lam_dtype from = 0; from < LAM_DTYPES; from++) {
        fill(src + 1, N, from, &rng); /* off by one: no alignment is promised */
        for (lam_dtype to = 0; to < LAM_DTYPES; to++) {
            const size_t in = lam_dtype_size(from), out = lam_dtype_size(to);
            memset(dst, 0xa5, sizeof dst);
            lam_convert(dst + 1, to, src + 1, from, N);
            ck_assert_uint_eq(dst[0], 0xa5);
            ck_assert_uint_eq(dst[1 + N * out], 0xa5);
            if (from == to) {
                ck_assert_mem_eq(dst + 1, src + 1, N * in);
                continue;
            }
            for (size_t i = 0; i < N; i++) {
                const long double x = value_of(src + 1 + i * in, from);
                const long double got = value_of(dst + 1 + i * out, to);
                const long double want = expected(x, to);
                ck_assert_msg(isnan(want) ? isnan(got)
                                          : got == want && !signbit(got) == !signbit(want),
                              "%s -> %s: %.20Lg gave %.20Lg, not %.20Lg", lam_dtype_name(from),
                              lam_dtype_name(to), x, got, want);
            }
        }
    }
}
END_TEST

START_TEST(booleans_are_stored_as_one)
{
    const double x[] = {0.0, 0.25, -3.0, NAN};
    const int64_t y[] = {0, 256, INT64_MIN, 1};
    const unsigned char answer[] = {0, 1, 1, 1};
    unsigned char out[4];
    lam_convert(out, LAM_BOOL, x, LAM_F64, 4);
    ck_assert_mem_eq(out, answer, 4);
    lam_convert(out, LAM_BOOL, y, LAM_I64, 4);
    ck_assert_mem_eq(out, answer, 4);
}
END_TEST

START_TEST(nothing_and_in_place_are_fine)
{
    float x[3] = {1, 2, 3};
    lam_convert(x, LAM_F32, x, LAM_F32, 3);
    ck_assert_float_eq(x[2], 3);
    lam_convert(NULL, LAM_F32, NULL, LAM_F32, 0);
    lam_convert(NULL, LAM_F32, NULL, LAM_F64, 0);
}
END_TEST

START_TEST(the_first_number_that_is_not_finite_is_found_wherever_it_is)
{
    static const lam_dtype floats[] = {LAM_F64, LAM_F32, LAM_F16, LAM_BF16};
    static const double bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    enum { N = 700 };
    char raw[N * sizeof(double) + 1], *const data = raw + 1; /* at an odd address */
    for (int t = 0; t < 4; t++) {
        const size_t size = lam_dtype_size(floats[t]);
        for (int i = 0; i < N; i++) {
            const double x = i % 3 ? 65504.0 : -0x1p-14; /* the ends of float16 */
            lam_convert(data + (size_t)i * size, floats[t], &x, LAM_F64, 1);
        }
        ck_assert_uint_eq(lam_finite_count(data, floats[t], N), N);
        ck_assert_uint_eq(lam_finite_count(data, floats[t], 0), 0);
        for (size_t at = N; at-- > 0;) {
            lam_convert(data + at * size, floats[t], &bad[at % 4], LAM_F64, 1);
            ck_assert_uint_eq(lam_finite_count(data, floats[t], N), at);
            ck_assert_uint_eq(lam_finite_count(data, floats[t], at), at);
        }
    }
    memset(raw, 0xff, sizeof raw); /* integers are numbers whatever their bits */
    ck_assert_uint_eq(lam_finite_count(data, LAM_I64, N), N);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_half_widens_to_its_definition_and_back);
    tcase_add_test(tests, halfway_goes_to_even_and_a_hair_more_goes_up);
    tcase_add_test(tests, double_is_rounded_once_not_twice);
    tcase_add_test(tests, every_pair_of_types_agrees_with_the_naive_conversion);
    tcase_add_test(tests, booleans_are_stored_as_one);
    tcase_add_test(tests, nothing_and_in_place_are_fine);
    tcase_add_test(tests, the_first_number_that_is_not_finite_is_found_wherever_it_is);
    return test_run("core/convert", tests);
}
