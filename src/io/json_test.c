/* json_test.c -- JSON comes back as it went, and a lack of memory never passes for success. */
#include "io/json.h"

#include "core/budget.h"
#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Nested, with names and strings longer than what jansson allocates at first. */
static const char sample[] =
    "{\"a\":{\"first\":\"\xc3\xa9\",\"list\":[1,2.5,-9223372036854775808,true,null]},"
    "\"a name that is longer than sixteen bytes\":\"a text that is longer than thirty-two bytes\","
    "\"z\":{}}";

START_TEST(text_comes_back_byte_for_byte)
{
    json_t *json;
    char *text;
    size_t size;
    ck_assert_int_eq(lam_json_parse(&json, "sample", sample, strlen(sample)), LAM_OK);
    ck_assert_int_eq(lam_json_text(&text, &size, json, JSON_COMPACT), LAM_OK);
    ck_assert_str_eq(text, sample);
    ck_assert_uint_eq(size, strlen(sample));
    free(text);
    ck_assert_int_eq(lam_json_text(&text, NULL, json, JSON_INDENT(2)), LAM_OK);
    ck_assert_ptr_nonnull(strchr(text, '\n'));
    free(text);
    json_decref(json);
}
END_TEST

START_TEST(numbers_are_short_where_nothing_is_lost)
{
    json_t *json = json_pack("[f,f]", 0.1, 1e-6), *back;
    char *text;
    must(lam_json_text_short(&text, json, JSON_COMPACT));
    ck_assert_str_eq(text, "[0.1,1e-6]");
    free(text);
    json_array_append_new(json, json_real(1.0 / 3.0));
    must(lam_json_text_short(&text, json, JSON_COMPACT));
    must(lam_json_parse(&back, "text", text, strlen(text)));
    ck_assert(json_equal(back, json));
    free(text);
    json_decref(back);
    json_decref(json);
}
END_TEST

START_TEST(a_mistake_is_located)
{
    const char text[] = "{\n  \"a\": 1,\n  \"b\": ?\n}";
    json_t *json = (json_t *)1;
    ck_assert_int_eq(lam_json_parse(&json, "conf.json", text, strlen(text)), LAM_ERR_FORMAT);
    ck_assert_ptr_null(json);
    ck_assert_msg(strncmp(lam_error(), "conf.json: not JSON: line 3, column 8", 37) == 0, "%s",
                  lam_error());
}
END_TEST

START_TEST(what_is_not_strict_json_is_refused)
{
    const char *const wrong[] = {
        "",      "{",   "{} {}", "{\"a\":1,\"a\":2}",     "\"\xff\"", "\"\\u0000\"", "[1,]",
        "{a:1}", "NaN", "1e999", "[99999999999999999999]"};
    json_t *json;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(lam_json_parse(&json, "x", wrong[i], strlen(wrong[i])) == LAM_ERR_FORMAT,
                      "accepted: %s", wrong[i]);
    ck_assert_int_eq(lam_json_parse(&json, "x", "[\"a\\u0000\"]", 11), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "x: line 1, column 10: \\u0000 is not allowed");
}
END_TEST

/* In a file a zero byte ends nothing. */
START_TEST(what_follows_the_value_is_refused_in_text_and_files)
{
    static const struct {
        const char *text;
        size_t size;
    } wrong[] = {{"{}\0", 3}, {"{}\0{}", 5}, {"{}\n\0\0", 5}, {"{}x", 3},
                 {"{}}", 3},  {"1 2", 3},    {"\0{}", 3},     {"{}\xef\xbb\xbf", 5}};
    const char *path = test_temp_path("more.json");
    json_t *json;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(lam_json_parse(&json, "x", wrong[i].text, wrong[i].size) == LAM_ERR_FORMAT,
                      "accepted: %s", wrong[i].text);
        must(lam_file_save(path, wrong[i].text, wrong[i].size));
        ck_assert_int_eq(lam_json_load(&json, path, 100), LAM_ERR_FORMAT);
        ck_assert_ptr_nonnull(strstr(lam_error(), path));
    }
    must(lam_file_save(path, " {} \r\n\t\n", 8));
    must(lam_json_load(&json, path, 100));
    json_decref(json);
}
END_TEST

START_TEST(text_is_whole_or_a_memory_error)
{
    json_t *json;
    char *text;
    long failures = 0;
    ck_assert_int_eq(lam_json_parse(&json, "sample", sample, strlen(sample)), LAM_OK);
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = lam_json_text(&text, NULL, json, JSON_COMPACT);
        const int failed = test_alloc_end(status);
        if (failed)
            ck_assert_ptr_null(text);
        else
            ck_assert_str_eq(text, sample);
        free(text);
        failures += failed;
    }
    ck_assert_int_ge(failures, 3);
    json_decref(json);
}
END_TEST

/* jansson calls some failed allocations a syntax error; that is a failure all the same.  Tokens are
 * short here, for the reason given in json.h. */
START_TEST(parsing_without_memory_fails)
{
    const char text[] = "{\"a\":{\"b\":\"c\",\"list\":[1,2.5,-1000000,true,null]},\"z\":{}}";
    json_t *json;
    long failures = 0;
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = lam_json_parse(&json, "short", text, strlen(text));
        const int failed = test_alloc_stop();
        ck_assert(failed ? status == LAM_ERR_MEMORY || status == LAM_ERR_FORMAT : status == LAM_OK);
        ck_assert_int_eq(json == NULL, failed);
        failures += status == LAM_ERR_MEMORY;
        json_decref(json);
    }
    ck_assert_int_ge(failures, 10);
}
END_TEST

/* "{}" a million times: three bytes of text, 230 of memory. */
START_TEST(memory_stays_in_proportion_to_the_text)
{
    static const char *const pieces[] = {"{},",   "[],", "[[[]]],",   "{\"\":[]},",
                                         "\"\",", "1,",  "{\"a\":1},"};
    static const int refused[] = {1, 1, 1, 1, 0, 0, 0};
    enum { SIZE = 1000000 };
    char *text = malloc(SIZE + 16);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        json_t *json;
        size_t n = 1;
        text[0] = '[';
        for (; n + strlen(pieces[i]) < SIZE; n += strlen(pieces[i]))
            strcpy(text + n, pieces[i]);
        text[n - 1] = ']';
        test_alloc_measure();
        const lam_status status = lam_json_parse(&json, "input", text, n);
        const size_t peak = test_alloc_peak();
        ck_assert_msg(status == (refused[i] ? LAM_ERR_FORMAT : LAM_OK), "%s: %s", pieces[i],
                      lam_error());
        ck_assert_msg(peak < 60 * SIZE, "%s: %zu bytes", pieces[i], peak);
        json_decref(json);
    }
    /* Those inside of strings are none. */
    json_t *json;
    memset(text, '[', SIZE);
    memcpy(text, "\"\\\"", 3);
    text[SIZE - 1] = '"';
    must(lam_json_parse(&json, "input", text, SIZE));
    json_decref(json);
    free(text);
}
END_TEST

START_TEST(zeros_take_no_memory)
{
    const char *const path = test_temp_path("sparse.json");
    json_t *json;
    must(lam_file_save(path, "{\"a\": 1}", 8));
    ck_assert_int_eq(truncate(path, 1 << 29), 0);
    test_alloc_measure();
    const lam_status status = lam_json_load(&json, path, 1 << 30);
    ck_assert_uint_lt(test_alloc_peak(), 1 << 20);
    ck_assert_int_eq(status, LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "sparse.json: not JSON: it has a byte 0"), "%s", lam_error());
    ck_assert_int_eq(lam_json_load(&json, path, 1 << 20), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "sparse.json: longer than 1048576 bytes"), "%s", lam_error());
}
END_TEST

START_TEST(memory_is_asked_for_before_parsing)
{
    enum { SIZE = (1 << 16) + 1 };
    char *const text = malloc(SIZE);
    json_t *json;
    for (int i = 0; i < SIZE; i++) /* [0,0,...,0] */
        text[i] = i == 0 ? '[' : i == SIZE - 1 ? ']' : i % 2 == 1 ? '0' : ',';
    must(lam_json_parse(&json, "input", text, SIZE));
    ck_assert_uint_eq(json_array_size(json), SIZE / 2);
    json_decref(json);
    lam_budget_set(1);
    ck_assert_int_eq(lam_json_parse(&json, "input", text, SIZE), LAM_ERR_MEMORY);
    ck_assert_msg(strstr(lam_error(), "input: needs "), "%s", lam_error());
    must(lam_json_parse(&json, "input", "[0,0]", 5));
    json_decref(json);
    lam_budget_set(0);
    free(text);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, text_comes_back_byte_for_byte);
    tcase_add_test(tests, numbers_are_short_where_nothing_is_lost);
    tcase_add_test(tests, a_mistake_is_located);
    tcase_add_test(tests, what_is_not_strict_json_is_refused);
    tcase_add_test(tests, what_follows_the_value_is_refused_in_text_and_files);
    tcase_add_test(tests, text_is_whole_or_a_memory_error);
    tcase_add_test(tests, memory_stays_in_proportion_to_the_text);
    tcase_add_test(tests, zeros_take_no_memory);
    tcase_add_test(tests, memory_is_asked_for_before_parsing);
    tcase_add_test(tests, parsing_without_memory_fails);
    return test_run("io/json", tests);
}
