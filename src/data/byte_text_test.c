/* byte_text_test.c -- GPT-2's alphabet: known letters, and every byte there and back. */
#include "data/byte_text.h"

#include "support/suite.h"

#include <string.h>

START_TEST(known_letters)
{
    char out[64];
    ck_assert_uint_eq(lam_byte_text(out, " the\n", 5), 7);
    ck_assert_str_eq(out, "\xc4\xa0the\xc4\x8a"); /* U+0120, U+010A */
    lam_byte_text(out, "\0\x7f\xa0\xad\xc3\xa9", 6);
    ck_assert_str_eq(out, "\xc4\x80\xc4\xa1\xc5\x82\xc5\x83\xc3\x83\xc2\xa9");
}
END_TEST

START_TEST(every_byte_comes_back)
{
    char bytes[256], text[513], back[513];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    const size_t n = lam_byte_text(text, bytes, 256);
    ck_assert_int_eq(lam_byte_text_read(back, text, n), 256);
    ck_assert_mem_eq(back, bytes, 256);
}
END_TEST

START_TEST(other_characters_are_none_of_it)
{
    char out[16];
    ck_assert_int_eq(lam_byte_text_read(out, "a b", 3), -1);
    ck_assert_int_eq(lam_byte_text_read(out, "\xc2\xad", 2), -1);
    ck_assert_int_eq(lam_byte_text_read(out, "\xc5\x84", 2), -1); /* one behind the last */
    ck_assert_int_eq(lam_byte_text_read(out, "\xff", 1), -1);
    ck_assert_int_eq(lam_byte_text_read(out, "", 0), 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, known_letters);
    tcase_add_test(tests, every_byte_comes_back);
    tcase_add_test(tests, other_characters_are_none_of_it);
    return test_run("data/byte_text", tests);
}
