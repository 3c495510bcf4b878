/* decimal_test.c -- what is a number to a person, and nothing else. */
#include "core/decimal.h"

#include "support/suite.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *text;
    size_t size;
    double value;
} good[] = {{"12", 2, 12},         {"-0.5", 4, -0.5},  {"+3", 2, 3},     {".5", 2, 0.5},
            {"5.", 2, 5},          {"1e-3x", 4, 1e-3}, {"1e", 1, 1},     {"007", 3, 7},
            {"1e308", 5, 1e308},   {"0e-999", 6, 0},   {"80/10", 2, 80}, {"1.5GiB", 3, 1.5},
            {"5e-324", 6, 5e-324}, {"-0", 2, 0},       {"-0.0", 4, 0}};

START_TEST(decimal_numbers_are_read)
{
    double v = 7;
    ck_assert_uint_eq(lam_decimal(&v, good[_i].text), good[_i].size);
    ck_assert(v == good[_i].value && !(v == 0.0 && signbit(v)));
}
END_TEST

static const char *const bad[] = {"",    " 1",   "\t1",    "\n1",   "0x10",   "-0X1p3",  "inf",
                                  "nan", "-inf", "NAN(1)", "1e999", "-1e999", "1e-999",  "--1",
                                  "+-1", ".",    "-",      "e5",    "-.e1",   "\xd9\xa1"};

START_TEST(everything_else_is_none)
{
    double v = 7;
    ck_assert_uint_eq(lam_decimal(&v, bad[_i]), 0);
    ck_assert(v == 0.0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, decimal_numbers_are_read, 0, (int)(sizeof good / sizeof *good));
    tcase_add_loop_test(tests, everything_else_is_none, 0, (int)(sizeof bad / sizeof *bad));
    return test_run("core/decimal", tests);
}
