/* printable_test.c -- nothing that a terminal would obey is left, and everything else is as it was. */
#include "core/printable.h"

#include "support/suite.h"

#include <string.h>

static const struct {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {"layers.0.weight", "layers.0.weight"},
    {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"},
    {"two\nlines\ttab\rback\x7f", "two\\x0alines\\x09tab\\x0dback\\x7f"},
    {"\xc2\x9b"
     "2J \xc2\x85 \xc2\xa0",
     "\\u009b2J \\u0085 \xc2\xa0"},
    {"\x9b"
     "2J",
     "\\x9b2J"},                                           /* C1 as one byte is no UTF-8 */
    {"\xc3", "\\xc3"},                                     /* cut */
    {"\xc0\x9b\xed\xa0\x80", "\\xc0\\x9b\\xed\\xa0\\x80"}, /* overlong; a surrogate */
    {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},          /* beyond Unicode */
    {"\\x1b", "\\x1b"},
};

START_TEST(control_characters_are_written_out_and_nothing_else)
{
    char out[256], again[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_str_eq(lam_printable(out, sizeof out, cases[i].text), cases[i].shown);
        ck_assert_str_eq(lam_printable(again, sizeof again, out), out);
    }
}
END_TEST

START_TEST(all_bytes_become_harmless)
{
    char out[LAM_PRINTABLE_MAX];
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            const char text[] = {(char)a, (char)b};
            const size_t used = lam_printable_next(out, text, 2);
            ck_assert(used == 1 || used == 2);
            for (const char *c = out; *c; c++)
                ck_assert((unsigned char)*c >= 0x20 && *c != 0x7f);
            ck_assert(!((unsigned char)out[0] == 0xc2 && (unsigned char)out[1] < 0xa0));
        }
}
END_TEST

START_TEST(what_does_not_fit_is_cut_between_characters)
{
    char out[8];
    ck_assert_str_eq(lam_printable(out, 8, "abcdefgh"), "abcdefg");
    ck_assert_str_eq(lam_printable(out, 8, "abcd\x1b"), "abcd");
    ck_assert_str_eq(lam_printable(out, 8, "abc\x1b"), "abc\\x1b");
    ck_assert_str_eq(lam_printable(out, 8, "abcdef\xc3\xa9"), "abcdef");
    ck_assert_str_eq(lam_printable(out, 1, "a"), "");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, control_characters_are_written_out_and_nothing_else);
    tcase_add_test(tests, all_bytes_become_harmless);
    tcase_add_test(tests, what_does_not_fit_is_cut_between_characters);
    return test_run("core/printable", tests);
}
