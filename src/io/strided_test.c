/* strided_test.c -- strides of row-major data, and comparing element by element. */
#include "io/strided.h"

#include "support/suite.h"

#include <math.h>

START_TEST(row_major_strides_are_products_of_what_follows)
{
    const lam_shape shape = {3, {2, 3, 4}};
    const float data[24] = {0};
    const lam_strided t = lam_strided_plain(LAM_F32, &shape, data);
    ck_assert_int_eq(t.stride[0], 12);
    ck_assert_int_eq(t.stride[1], 4);
    ck_assert_int_eq(t.stride[2], 1);
}
END_TEST

/* No element has a place, so no stride is computed: products of dimensions beside a 0 need not fit. */
START_TEST(an_empty_tensor_has_no_strides)
{
    const lam_shape shapes[] = {
        {4, {0, INT64_C(1) << 62, 4, 4}}, {3, {INT64_MAX, INT64_MAX, 0}}, {2, {3, 0}}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const lam_strided t = lam_strided_plain(LAM_F32, &shapes[i], "");
        for (int k = 0; k < t.shape.rank; k++)
            ck_assert_int_eq(t.stride[k], 0);
    }
}
END_TEST

/* A tied copy of weights that diverged is still a copy. */
START_TEST(equal_means_equal_numbers_or_both_no_numbers)
{
    const lam_shape shape = {1, {3}};
    const float a[] = {1.0f, NAN, INFINITY}, b[] = {1.0f, NAN, -INFINITY},
                c[] = {NAN, NAN, INFINITY};
    const lam_strided x = lam_strided_plain(LAM_F32, &shape, a);
    const lam_strided y = lam_strided_plain(LAM_F32, &shape, b);
    const lam_strided z = lam_strided_plain(LAM_F32, &shape, c);
    ck_assert(lam_strided_equal(&x, &x));
    ck_assert(!lam_strided_equal(&x, &y));
    ck_assert(!lam_strided_equal(&x, &z));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, row_major_strides_are_products_of_what_follows);
    tcase_add_test(tests, an_empty_tensor_has_no_strides);
    tcase_add_test(tests, equal_means_equal_numbers_or_both_no_numbers);
    return test_run("io/strided", tests);
}
