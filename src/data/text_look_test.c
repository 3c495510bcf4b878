/* text_look_test.c -- what was written on Windows is recognised, and nothing else is. */
#include "data/text_look.h"

#include "core/log.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static char said[512];

static void keep(lam_log_level level, const char *line, void *user)
{
    (void)level, (void)user;
    snprintf(said, sizeof said, "%s", line);
}

static lam_status look(lam_text_kind kind, const char *bytes, size_t n)
{
    said[0] = '\0';
    lam_log_set_sink(keep, NULL);
    const lam_status status = lam_text_look("a.txt", kind, bytes, n);
    lam_log_set_sink(NULL, NULL);
    return status;
}

START_TEST(utf16_is_named_and_only_bytes_may_be_it)
{
    static const char little[] = "\xff\xfeH\0i\0", big[] = "\xfe\xff\0H\0i";
    ck_assert_int_eq(look(LAM_BYTES, little, sizeof little - 1), LAM_OK);
    ck_assert_ptr_nonnull(strstr(said, "a.txt: UTF-16"));
    ck_assert_ptr_nonnull(strstr(said, "iconv"));
    for (int kind = LAM_CHARS; kind <= LAM_WORDS; kind++) {
        ck_assert_int_eq(look((lam_text_kind)kind, big, sizeof big - 1), LAM_ERR_FORMAT);
        ck_assert_ptr_nonnull(strstr(lam_error(), "a.txt: UTF-16, not UTF-8"));
    }
}
END_TEST

START_TEST(cr_lf_is_named_where_it_is_kept)
{
    static const char text[] = "one\r\ntwo\r\n";
    for (int kind = LAM_BYTES; kind <= LAM_WORDS; kind++) {
        ck_assert_int_eq(look((lam_text_kind)kind, text, sizeof text - 1), LAM_OK);
        ck_assert_int_eq(strstr(said, "CR LF") != NULL, kind != LAM_WORDS);
    }
}
END_TEST

START_TEST(other_texts_are_no_reason_to_speak)
{
    static const struct {
        const char *bytes;
        size_t n;
    } texts[] = {{"", 0},   {"\xff", 1},     {"\n", 1},
                 {"\r", 1}, {"a\nb\r\n", 5}, {"\xef\xbb\xbfHi\n", 6}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int kind = LAM_BYTES; kind <= LAM_WORDS; kind++) {
            ck_assert_int_eq(look((lam_text_kind)kind, texts[i].bytes, texts[i].n), LAM_OK);
            ck_assert_str_eq(said, "");
        }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, utf16_is_named_and_only_bytes_may_be_it);
    tcase_add_test(tests, cr_lf_is_named_where_it_is_kept);
    tcase_add_test(tests, other_texts_are_no_reason_to_speak);
    return test_run("data/text_look", tests);
}
