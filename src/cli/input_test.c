/* input_test.c -- are texts, lines and escapes what the user wrote? */
#include "cli/input.h"

#include "core/file.h"
#include "support/suite.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static void write_file(char path[PATH_MAX], const char *name, const char *text, size_t size)
{
    snprintf(path, PATH_MAX, "%s", test_temp_path(name));
    must(lam_file_save(path, text, size));
}

START_TEST(escapes_become_bytes)
{
    static const struct {
        const char *text, *bytes; /* NULL: refused */
    } rows[] = {{"plain", "plain"},     {"", ""},         {"\\n", "\n"},
                {"a\\tb\\r", "a\tb\r"}, {"\\\\n", "\\n"}, {"\\x41\\xe9z", "A\xe9z"},
                {"\\q", NULL},          {"\\", NULL},     {"\\x4", NULL},
                {"\\x00", NULL},        {"\\xg1", NULL},  {"end\\\\\\", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", rows[i].text);
        const lam_status status = lam_unescape(text, "--stop");
        ck_assert_msg(status == (rows[i].bytes ? LAM_OK : LAM_ERR_ARG), "%s", rows[i].text);
        if (rows[i].bytes)
            ck_assert_str_eq(text, rows[i].bytes);
    }
}
END_TEST

START_TEST(lines_are_texts_and_empty_ones_are_not)
{
    char path[PATH_MAX], name[PATH_MAX + 8];
    lam_texts texts = {0};
    write_file(path, "lines", "one\r\n\n two \nthree", 17);
    must(lam_texts_add_lines(&texts, path, "text"));
    ck_assert_int_eq(texts.n, 3);
    ck_assert_str_eq(texts.v[0].text, "one");
    ck_assert_str_eq(texts.v[1].text, " two ");
    ck_assert_uint_eq(texts.v[1].size, 5);
    ck_assert_str_eq(texts.v[2].text, "three");
    snprintf(name, sizeof name, "%s:4", path);
    ck_assert_str_eq(texts.v[2].name, name);
    lam_texts_free(&texts);

    write_file(path, "zero", "a\0b\n", 4);
    ck_assert_int_eq(lam_texts_add_lines(&texts, path, "text"), LAM_ERR_FORMAT);
    lam_texts_free(&texts);
}
END_TEST

START_TEST(json_lines_are_strings_or_objects)
{
    static const char good[] = "\"a\\nb\"\n{\"text\": \"c\", \"more\": [1]}\n";
    static const char *const bad[] = {"{\"prompt\": \"a\"}", "[1]", "{\"text\": 3}", "{", "3"};
    char path[PATH_MAX];
    lam_texts texts = {0};
    write_file(path, "good.jsonl", good, sizeof good - 1);
    must(lam_texts_add_lines(&texts, path, "text"));
    ck_assert_int_eq(texts.n, 2);
    ck_assert_str_eq(texts.v[0].text, "a\nb");
    ck_assert_str_eq(texts.v[1].text, "c");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(path, "bad.jsonl", bad[i], strlen(bad[i]));
        ck_assert_int_eq(lam_texts_add_lines(&texts, path, "text"), LAM_ERR_FORMAT);
        ck_assert_msg(strstr(lam_error(), "bad.jsonl:1: ") != NULL, "%s", lam_error());
    }
    ck_assert_int_eq(texts.n, 2);
    lam_texts_free(&texts);
}
END_TEST

START_TEST(a_file_without_its_at_is_pointed_out)
{
    char path[PATH_MAX], with_at[PATH_MAX + 1];
    lam_texts texts = {0};
    write_file(path, "story", "once", 4);
    ck_assert_int_eq(lam_texts_add(&texts, path), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "is a file: @"));
    snprintf(with_at, sizeof with_at, "@%s", path);
    must(lam_texts_add(&texts, with_at));
    must(lam_texts_add(&texts, "upon"));
    ck_assert_str_eq(texts.v[0].text, "once");
    ck_assert_str_eq(texts.v[0].name, path);
    ck_assert_int_eq(texts.v[0].from_file, true);
    ck_assert_str_eq(texts.v[1].text, "upon");
    ck_assert_int_eq(texts.v[1].from_file, false);
    lam_texts_free(&texts);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, escapes_become_bytes);
    tcase_add_test(tests, lines_are_texts_and_empty_ones_are_not);
    tcase_add_test(tests, json_lines_are_strings_or_objects);
    tcase_add_test(tests, a_file_without_its_at_is_pointed_out);
    return test_run("cli/input", tests);
}
