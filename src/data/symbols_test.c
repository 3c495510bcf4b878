/* symbols_test.c -- numbers in the order of appearance, for any bytes, and many of them. */
#include "data/symbols.h"

#include "support/alloc.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(symbols_are_numbered_as_they_appear)
{
    enum { N = 200000 };
    lam_symbols *set;
    char name[32];
    int32_t id;
    ck_assert_int_eq(lam_symbols_create(&set), LAM_OK);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < N; i++) {
            const size_t n = (size_t)snprintf(name, sizeof name, "%x", i * 7);
            const int32_t before = lam_symbols_find(set, name, n);
            const lam_status status = lam_symbols_add(set, name, n, &id);
            if (status != LAM_OK || id != i || before != (round == 0 ? -1 : i))
                ck_abort_msg("'%s' was %d and is %d, not %d", name, before, id, i);
        }
    ck_assert_int_eq(lam_symbols_count(set), N);
    for (int i = 0; i < N; i++) {
        size_t size;
        snprintf(name, sizeof name, "%x", i * 7);
        const char *text = lam_symbols_text(set, i, &size);
        if (strcmp(text, name) != 0 || size != strlen(name))
            ck_abort_msg("symbol %d is '%s', not '%s'", i, text, name);
    }
    lam_symbols_free(set);
}
END_TEST

START_TEST(any_bytes_are_a_symbol)
{
    lam_symbols *set;
    int32_t a, b, c, empty;
    size_t size;
    ck_assert_int_eq(lam_symbols_create(&set), LAM_OK);
    ck_assert_int_eq(lam_symbols_add(set, "x\0y", 3, &a), LAM_OK);
    ck_assert_int_eq(lam_symbols_add(set, "x\0z", 3, &b), LAM_OK);
    ck_assert_int_eq(lam_symbols_add(set, "x", 1, &c), LAM_OK);
    ck_assert_int_eq(lam_symbols_add(set, "", 0, &empty), LAM_OK);
    ck_assert(a == 0 && b == 1 && c == 2 && empty == 3);
    ck_assert_mem_eq(lam_symbols_text(set, a, &size), "x\0y", 4);
    ck_assert_uint_eq(size, 3);
    ck_assert_int_eq(lam_symbols_find(set, "x\0", 2), -1);
    lam_symbols_free(set);
}
END_TEST

START_TEST(a_symbol_has_a_longest_length)
{
    static char text[LAM_SYMBOL_MAX + 1];
    lam_symbols *set;
    int32_t id;
    ck_assert_int_eq(lam_symbols_create(&set), LAM_OK);
    ck_assert_int_eq(lam_symbols_add(set, text, LAM_SYMBOL_MAX, &id), LAM_OK);
    ck_assert_int_eq(lam_symbols_add(set, text, LAM_SYMBOL_MAX + 1, &id), LAM_ERR_FORMAT);
    lam_symbols_free(set);
}
END_TEST

/* After a failed add the set is as before, and goes on working. */
START_TEST(without_memory_nothing_is_lost)
{
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_symbols *set;
        int32_t id = 0, added = 0;
        lam_status status = lam_symbols_create(&set);
        for (int i = 0; i < 5000 && status == LAM_OK; i++) {
            status = lam_symbols_add(set, &i, sizeof i, &id);
            added += status == LAM_OK;
        }
        test_alloc_end(status);
        if (set != NULL) {
            ck_assert_int_eq(lam_symbols_count(set), added);
            for (int i = 0; i < 5000; i++)
                if (lam_symbols_add(set, &i, sizeof i, &id) != LAM_OK || id != i)
                    ck_abort_msg("symbol %d became %d", i, id);
        }
        lam_symbols_free(set);
    }
}
END_TEST

/* Strings that all had the same hash while it had no secret: each was compared with all before it. */
START_TEST(strings_made_to_collide_are_symbols_like_others)
{
    enum { N = 100000 };
    const uint64_t factor = 0xd6e8feb86659fd93u, start = 0x9e3779b97f4a7c15u ^ 8;
    uint64_t inverse = factor;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - factor * inverse;
    lam_symbols *set;
    must(lam_symbols_create(&set));
    for (int32_t i = 0; i < N; i++) {
        uint64_t word = (uint64_t)i << 32 | 12345;
        word = (word ^ word >> 32) * inverse;
        word = (word ^ word >> 32) * inverse ^ start;
        int32_t id = -1;
        if (lam_symbols_add(set, &word, sizeof word, &id) != LAM_OK || id != i)
            ck_abort_msg("string %d became %d", i, id);
    }
    lam_symbols_free(set);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, symbols_are_numbered_as_they_appear);
    tcase_add_test(tests, any_bytes_are_a_symbol);
    tcase_add_test(tests, strings_made_to_collide_are_symbols_like_others);
    tcase_add_test(tests, a_symbol_has_a_longest_length);
    tcase_add_test(tests, without_memory_nothing_is_lost);
    return test_run("data/symbols", tests);
}
