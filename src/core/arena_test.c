/* arena_test.c -- what was measured is what is taken. */
#include "core/arena.h"

#include "support/suite.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A layout function as the model has them: the same calls, measuring or for real. */
static void lay_out(lam_arena *arena, char *parts[], const size_t sizes[], int n)
{
    for (int i = 0; i < n; i++)
        parts[i] = lam_arena_take(arena, sizes[i]);
}

START_TEST(measuring_equals_taking)
{
    enum { PARTS = 200 };
    size_t sizes[PARTS];
    char *parts[PARTS];
    lam_rng rng = test_rng(5);
    for (int i = 0; i < PARTS; i++)
        sizes[i] = (size_t)lam_rng_below(&rng, i % 2 ? 1000 : 3);

    lam_arena arena = {0};
    lay_out(&arena, parts, sizes, PARTS);
    const size_t measured = arena.used;
    ck_assert_uint_eq(measured % LAM_ALIGN, 0);
    for (int i = 0; i < PARTS; i++)
        ck_assert_ptr_null(parts[i]);

    char *const block = aligned_alloc(LAM_ALIGN, measured);
    ck_assert_ptr_nonnull(block);
    arena = (lam_arena){block, measured, 0};
    lay_out(&arena, parts, sizes, PARTS);
    ck_assert_uint_eq(arena.used, measured);

    /* Fill each part with its number: none may have been written over by a later one. */
    for (int i = 0; i < PARTS; i++) {
        ck_assert_uint_eq((uintptr_t)parts[i] % LAM_ALIGN, 0);
        memset(parts[i], i, sizes[i]);
    }
    for (int i = 0; i < PARTS; i++)
        for (size_t j = 0; j < sizes[i]; j++)
            ck_assert_int_eq((unsigned char)parts[i][j], i);
    free(block);
}
END_TEST

START_TEST(an_empty_take_costs_nothing_and_has_an_address)
{
    _Alignas(LAM_ALIGN) char block[LAM_ALIGN];
    lam_arena arena = {block, sizeof block, 0};
    ck_assert_ptr_eq(lam_arena_take(&arena, 0), block);
    ck_assert_uint_eq(arena.used, 0);
    ck_assert_ptr_eq(lam_arena_take(&arena, sizeof block), block);
    ck_assert_ptr_eq(lam_arena_take(&arena, 0), block + sizeof block);
}
END_TEST

START_TEST(measuring_saturates_instead_of_wrapping)
{
    lam_arena arena = {0};
    lam_arena_take(&arena, SIZE_MAX);
    const size_t top = arena.used;
    ck_assert_uint_gt(top, SIZE_MAX - LAM_ALIGN);
    lam_arena_take(&arena, 1);
    ck_assert_uint_eq(arena.used, top);

    arena.used = LAM_ALIGN;
    lam_arena_take(&arena, SIZE_MAX - LAM_ALIGN);
    ck_assert_uint_eq(arena.used, top);
}
END_TEST

START_TEST(taking_more_than_measured_aborts)
{
    _Alignas(LAM_ALIGN) char block[LAM_ALIGN];
    lam_arena arena = {block, sizeof block, 0};
    lam_arena_take(&arena, sizeof block + 1);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, measuring_equals_taking);
    tcase_add_test(tests, an_empty_take_costs_nothing_and_has_an_address);
    tcase_add_test(tests, measuring_saturates_instead_of_wrapping);
    tcase_add_test_raise_signal(tests, taking_more_than_measured_aborts, SIGABRT);
    return test_run("core/arena", tests);
}
