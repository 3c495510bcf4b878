/* grow_test.c -- what is in an array stays while it grows, and after a failure. */
#include "core/grow.h"

#include "support/alloc.h"
#include "support/suite.h"

#include <stdint.h>
#include <stdlib.h>

START_TEST(elements_stay_and_moves_are_few)
{
    int64_t *list = NULL;
    size_t room = 0, moves = 0;
    for (size_t n = 0; n < 10000; n++) {
        const size_t before = room;
        must(lam_grow(&list, &room, n + 1, sizeof *list, "numbers"));
        ck_assert_uint_gt(room, n);
        moves += room != before;
        list[n] = (int64_t)(n * n);
    }
    for (size_t n = 0; n < 10000; n++)
        ck_assert_int_eq(list[n], (int64_t)(n * n));
    ck_assert_uint_le(moves, 11);
    must(lam_grow(&list, &room, 1, sizeof *list, "numbers")); /* never smaller */
    ck_assert_uint_ge(room, 10000);
    free(list);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    double *list = NULL;
    size_t room = 0;
    must(lam_grow(&list, &room, 3, sizeof *list, "numbers"));
    list[2] = 0.5;
    const size_t before = room;
    ck_assert_int_eq(lam_grow(&list, &room, SIZE_MAX / 4, sizeof *list, "numbers"), LAM_ERR_MEMORY);
    ck_assert_uint_eq(room, before);
    ck_assert_double_eq(list[2], 0.5);
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = lam_grow(&list, &room, room + 1, sizeof *list, "numbers");
        if (test_alloc_end(status))
            ck_assert_str_eq(lam_error(), "no memory for 32 numbers");
        ck_assert_double_eq(list[2], 0.5);
    }
    free(list);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, elements_stay_and_moves_are_few);
    tcase_add_test(tests, what_does_not_fit_is_refused);
    return test_run("core/grow", tests);
}
