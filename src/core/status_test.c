/* status_test.c -- a failure keeps its words, for its own thread only. */
#include "core/status.h"

#include "core/printable.h"
#include "support/suite.h"

#include <pthread.h>
#include <string.h>

START_TEST(no_failure_means_no_words)
{
    ck_assert_str_eq(lam_error(), "");
}
END_TEST

START_TEST(failing_returns_the_code_and_keeps_the_text)
{
    ck_assert_int_eq(lam_fail(LAM_ERR_IO, "%s: byte %d", "a.txt", 7), LAM_ERR_IO);
    ck_assert_str_eq(lam_error(), "a.txt: byte 7");
}
END_TEST

START_TEST(a_message_may_quote_the_one_before)
{
    lam_fail(LAM_ERR_IO, "inner");
    lam_fail(LAM_ERR_FORMAT, "outer: %s", lam_error());
    ck_assert_str_eq(lam_error(), "outer: inner");
}
END_TEST

START_TEST(long_messages_are_cut_at_1023_bytes)
{
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    lam_fail(LAM_ERR_ARG, "%s", text);
    ck_assert_uint_eq(strlen(lam_error()), 1023);
}
END_TEST

START_TEST(of_a_long_name_the_middle_is_cut)
{
    char name[3000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    lam_fail(LAM_ERR_ARG, "a%s: too long", name);
    ck_assert_uint_eq(strlen(lam_error()), 1023);
    ck_assert_ptr_eq(strstr(lam_error(), "axxx"), lam_error());
    ck_assert_ptr_nonnull(strstr(lam_error(), "xxx...xxx"));
    ck_assert_str_eq(lam_error() + 1023 - strlen("xxx: too long"), "xxx: too long");
}
END_TEST

START_TEST(nothing_in_a_message_moves_a_cursor)
{
    char name[3000];
    lam_fail(LAM_ERR_FORMAT, "tensor %s: two\nlines", "\x1b]0;x\x07\xc3\xa9");
    ck_assert_str_eq(lam_error(), "tensor \\x1b]0;x\\x07\xc3\xa9: two\\x0alines");
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa9", 3); /* cut where it may be, a character stays whole */
    for (int shift = 0; shift < 2; shift++) {
        char again[2048];
        lam_fail(LAM_ERR_FORMAT, "%s%s: too long", shift ? "a" : "", name);
        ck_assert_uint_le(strlen(lam_error()), 1023);
        ck_assert_str_eq(lam_printable(again, sizeof again, lam_error()), lam_error());
    }
}
END_TEST

static void *fail_elsewhere(void *seen)
{
    *(int *)seen = lam_error()[0] != '\0';
    lam_fail(LAM_ERR_ARG, "theirs");
    return NULL;
}

START_TEST(threads_do_not_see_each_other_fail)
{
    pthread_t thread;
    int seen = -1;
    lam_fail(LAM_ERR_IO, "ours");
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_elsewhere, &seen), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(seen, 0);
    ck_assert_str_eq(lam_error(), "ours");
}
END_TEST

static lam_status try_twice(lam_status first, int *reached)
{
    LAM_TRY(first);
    *reached = 1;
    return LAM_OK;
}

START_TEST(try_returns_at_the_first_failure_only)
{
    int reached = 0;
    ck_assert_int_eq(try_twice(LAM_ERR_DEVICE, &reached), LAM_ERR_DEVICE);
    ck_assert_int_eq(reached, 0);
    ck_assert_int_eq(try_twice(LAM_OK, &reached), LAM_OK);
    ck_assert_int_eq(reached, 1);
}
END_TEST

START_TEST(every_code_has_its_own_name)
{
    for (int a = LAM_OK; a <= LAM_ERR_DEVICE; a++) {
        ck_assert_str_ne(lam_status_name((lam_status)a), "unknown");
        for (int b = LAM_OK; b < a; b++)
            ck_assert_str_ne(lam_status_name((lam_status)a), lam_status_name((lam_status)b));
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, no_failure_means_no_words);
    tcase_add_test(tests, failing_returns_the_code_and_keeps_the_text);
    tcase_add_test(tests, a_message_may_quote_the_one_before);
    tcase_add_test(tests, long_messages_are_cut_at_1023_bytes);
    tcase_add_test(tests, of_a_long_name_the_middle_is_cut);
    tcase_add_test(tests, nothing_in_a_message_moves_a_cursor);
    tcase_add_test(tests, threads_do_not_see_each_other_fail);
    tcase_add_test(tests, try_returns_at_the_first_failure_only);
    tcase_add_test(tests, every_code_has_its_own_name);
    return test_run("core/status", tests);
}
