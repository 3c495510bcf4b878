/* size_test.c -- a product and a sum that do not fit are noticed, the largest that fit are not refused. */
#include "core/size.h"

#include "support/suite.h"

START_TEST(what_fits_is_computed_and_the_rest_is_refused)
{
    const size_t most = SIZE_MAX, half = most / 2;
    const struct {
        size_t a, b, c, want;
        bool fits;
    } cases[] = {
        {0, 0, 0, 0, true},           {3, 4, 5, 17, true},
        {0, most, most, most, true},  {most, 0, most, most, true},
        {most, 1, 0, most, true},     {half, 2, 1, most, true},
        {half, 2, 2, most, false},    {most, 1, 1, most, false},
        {most, most, 0, most, false}, {(size_t)1 << 32, (size_t)1 << 32, 0, most, false},
        {1, 1, most, most, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t got = 7;
        ck_assert_int_eq(lam_size_muladd(&got, cases[i].a, cases[i].b, cases[i].c), cases[i].fits);
        ck_assert_uint_eq(got, cases[i].want);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, what_fits_is_computed_and_the_rest_is_refused);
    return test_run("core/size", tests);
}
