/* utf8_test.c -- strict both ways, on every code point and every short sequence. */
#include "data/utf8.h"

#include "support/suite.h"

#include <string.h>
#include <utf8proc.h>

/* Check writes a line for every assertion, and there are millions of cases: fail only. */
static void claim(bool holds, const char *what, int32_t where)
{
    if (!holds)
        ck_abort_msg("%s, at %x", what, (unsigned)where);
}

START_TEST(every_code_point_survives)
{
    for (int32_t c = 0; c < LAM_CODEPOINTS; c++) {
        char text[LAM_UTF8_MAX];
        int32_t back = -1;
        if (c >= 0xd800 && c <= 0xdfff)
            continue;
        const int n = lam_utf8_encode(text, c);
        claim(lam_utf8_decode((unsigned char *)text, (size_t)n, &back) == n, "length", c);
        claim(back == c, "code point", c);
        for (int cut = 1; cut < n; cut++)
            claim(lam_utf8_decode((unsigned char *)text, (size_t)cut, &back) == 0, "cut", c);
    }
}
END_TEST

/* All sequences of three bytes, and all of four from the interesting leads, against utf8proc. */
START_TEST(what_is_not_utf8_is_refused)
{
    static const unsigned char fourth[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++)
            for (int c = 0; c < 256; c += a < 0xe0 ? 51 : 1)
                for (size_t d = 0; d < (a < 0xf0 ? 1 : sizeof fourth); d++) {
                    const unsigned char s[] = {(unsigned char)a, (unsigned char)b, (unsigned char)c,
                                               fourth[d]};
                    utf8proc_int32_t want = -1;
                    int32_t got = -1;
                    const int n = (int)utf8proc_iterate(s, 4, &want);
                    const int32_t where = a << 16 | b << 8 | c;
                    claim(lam_utf8_decode(s, 4, &got) == (n > 0 ? n : -1), "length", where);
                    claim(n <= 0 || got == want, "code point", where);
                }
}
END_TEST

/* A cut sequence is "more needed" exactly when some continuation is valid. */
START_TEST(a_cut_is_told_from_an_error)
{
    int32_t c;
    ck_assert_int_eq(lam_utf8_decode((const unsigned char *)"", 0, &c), 0);
    ck_assert_int_eq(lam_utf8_decode((const unsigned char *)"\xe0", 1, &c), 0);
    ck_assert_int_eq(lam_utf8_decode((const unsigned char *)"\xe0\x9f", 2, &c), -1); /* overlong */
    ck_assert_int_eq(lam_utf8_decode((const unsigned char *)"\xed\xa0", 2, &c), -1); /* surrogate */
    ck_assert_int_eq(lam_utf8_decode((const unsigned char *)"\xf4\x90", 2, &c), -1); /* too high */
    ck_assert_int_eq(lam_utf8_decode((const unsigned char *)"\xf0\x90\x80", 3, &c), 0);
    ck_assert_int_eq(lam_utf8_decode((const unsigned char *)"\xc1", 1, &c), -1);
    ck_assert_int_eq(lam_utf8_decode((const unsigned char *)"\x80", 1, &c), -1);
}
END_TEST

START_TEST(white_space_is_pythons)
{
    static const int32_t list[] = {0x09,   0x0a,   0x0b,   0x0c,   0x0d,   0x1c,   0x1d,   0x1e,
                                   0x1f,   0x20,   0x85,   0xa0,   0x1680, 0x2000, 0x2001, 0x2002,
                                   0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a,
                                   0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
    size_t next = 0;
    for (int32_t c = 0; c < LAM_CODEPOINTS; c++) {
        const bool want = next < sizeof list / sizeof *list && list[next] == c;
        claim(lam_utf8_is_space(c) == want, "white space", c);
        next += want;
    }
    ck_assert_uint_eq(next, 29);
}
END_TEST

START_TEST(lower_case_is_unicode)
{
    ck_assert_int_eq(lam_utf8_lower('A'), 'a');
    ck_assert_int_eq(lam_utf8_lower(0xc9), 0xe9);     /* É */
    ck_assert_int_eq(lam_utf8_lower(0x0416), 0x0436); /* Ж */
    ck_assert_int_eq(lam_utf8_lower('1'), '1');
}
END_TEST

START_TEST(characters_are_counted_once_however_long)
{
    ck_assert_int_eq(lam_utf8_count(""), 0);
    ck_assert_int_eq(lam_utf8_count("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), 4);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_code_point_survives);
    tcase_add_test(tests, what_is_not_utf8_is_refused);
    tcase_add_test(tests, a_cut_is_told_from_an_error);
    tcase_add_test(tests, white_space_is_pythons);
    tcase_add_test(tests, lower_case_is_unicode);
    tcase_add_test(tests, characters_are_counted_once_however_long);
    return test_run("data/utf8", tests);
}
