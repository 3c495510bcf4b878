/* tensor_test.c -- names, sizes and shapes. */
#include "core/tensor.h"

#include "support/suite.h"

#include <string.h>

START_TEST(every_type_is_found_by_its_name)
{
    for (lam_dtype t = 0; t < LAM_DTYPES; t++) {
        ck_assert_int_eq((int)lam_dtype_find(lam_dtype_name(t)), (int)t);
        ck_assert_uint_ge(lam_dtype_size(t), 1);
        ck_assert_uint_le(lam_dtype_size(t), 8);
    }
    ck_assert_int_eq((int)lam_dtype_find("BF16"), LAM_BF16);
    ck_assert_uint_eq(lam_dtype_size(LAM_BF16), 2);
    for (lam_dtype t = 0; t < LAM_DTYPES; t++)
        ck_assert_int_eq(lam_dtype_is_float(t),
                         strchr("FB", lam_dtype_name(t)[0]) && t != LAM_BOOL);
    const char *const wrong[] = {"", "f32", "F3", "F322", "F8_E4M3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq((int)lam_dtype_find(wrong[i]), LAM_DTYPES);
}
END_TEST

START_TEST(count_is_the_product_or_size_max)
{
    const struct {
        lam_shape shape;
        size_t count;
    } cases[] = {
        {{0, {0}}, 1},
        {{1, {5}}, 5},
        {{3, {2, 3, 4}}, 24},
        {{2, {7, 0}}, 0},
        {{3, {0, INT64_MAX, INT64_MAX}}, 0},
        {{3, {INT64_MAX, INT64_MAX, 0}}, 0},
        {{4, {INT64_MAX, INT64_MAX, 0, INT64_MAX}}, 0},
        {{1, {-1}}, SIZE_MAX},
        {{3, {0, 2, -1}}, SIZE_MAX},
        {{2, {INT64_C(1) << 32, INT64_C(1) << 32}}, SIZE_MAX},
        {{3, {INT64_C(1) << 32, INT64_C(1) << 31, 2}}, SIZE_MAX},
        {{2, {INT64_C(1) << 32, INT64_C(1) << 31}}, (size_t)1 << 63},
        {{8, {1, 1, 1, 1, 1, 1, 1, 9}}, 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_uint_eq(lam_shape_count(&cases[i].shape), cases[i].count);
}
END_TEST

START_TEST(equality_looks_at_rank_and_used_dimensions_only)
{
    const lam_shape a = {2, {3, 4}}, b = {2, {3, 4, 99}}, c = {2, {3, 5}}, d = {1, {3}};
    ck_assert(lam_shape_equal(&a, &b));
    ck_assert(!lam_shape_equal(&a, &c));
    ck_assert(!lam_shape_equal(&a, &d));
    ck_assert(!lam_shape_equal(&d, &a));
}
END_TEST

START_TEST(text_is_readable_and_never_overruns)
{
    const lam_shape scalar = {0, {0}}, matrix = {2, {2, 3}};
    lam_shape wide = {LAM_MAX_DIMS, {0}};
    for (int i = 0; i < LAM_MAX_DIMS; i++)
        wide.dim[i] = INT64_MIN;
    char text[512];
    ck_assert_str_eq(lam_shape_text(&scalar, text, sizeof text), "[]");
    ck_assert_str_eq(lam_shape_text(&matrix, text, sizeof text), "[2, 3]");
    ck_assert_uint_eq(strlen(lam_shape_text(&wide, text, sizeof text)), 8 * 20 + 7 * 2 + 2);
    ck_assert_str_eq(lam_shape_text(&matrix, text, 4), "[2,");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_type_is_found_by_its_name);
    tcase_add_test(tests, count_is_the_product_or_size_max);
    tcase_add_test(tests, equality_looks_at_rank_and_used_dimensions_only);
    tcase_add_test(tests, text_is_readable_and_never_overruns);
    return test_run("core/tensor", tests);
}
