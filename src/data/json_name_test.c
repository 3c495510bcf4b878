/* json_name_test.c -- any bytes become a JSON string; what is UTF-8 stays. */
#include "data/json_name.h"

#include "support/suite.h"

static const char *const names[][2] = {
    {"", ""},
    {"plain", "plain"},
    {"caf\xc3\xa9", "caf\xc3\xa9"},
    {"caf\xe9", "caf\xEF\xBF\xBD"},
    {"\xff\xfe.txt", "\xEF\xBF\xBD\xEF\xBF\xBD.txt"},
    {"cut \xe2\x82", "cut \xEF\xBF\xBD\xEF\xBF\xBD"},
};

START_TEST(bytes_of_no_character_are_replaced)
{
    json_t *string = lam_json_name(names[_i][0]);
    ck_assert_str_eq(json_string_value(string), names[_i][1]);
    json_decref(string);
}
END_TEST

START_TEST(a_zero_byte_stays)
{
    json_t *string = lam_json_bytes("a\0\xff", 3);
    ck_assert_uint_eq(json_string_length(string), 5);
    ck_assert_mem_eq(json_string_value(string), "a\0\xEF\xBF\xBD", 5);
    json_decref(string);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, bytes_of_no_character_are_replaced, 0,
                        (int)(sizeof names / sizeof *names));
    tcase_add_test(tests, a_zero_byte_stays);
    return test_run("data/json_name", tests);
}
