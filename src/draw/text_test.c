/* text_test.c -- any bytes become text that cannot break out, and a lack of memory does not pass. */
#include "draw/text.h"

#include "data/utf8.h"
#include "io/json.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char nasty[] = "</script><!--\"'&\\\n\t\x01\xff\xe2\x82\xe2\x80\xa8\xc3\xa9\x7f]]>";

START_TEST(html_shows_every_byte_and_opens_no_tag)
{
    lam_text t = {0};
    lam_text_html(&t, nasty);
    ck_assert_str_eq(t.data, "&lt;/script&gt;&lt;!--&quot;'&amp;\\\n\t\\x01\\xff\\xe2\\x82"
                             "\xe2\x80\xa8\xc3\xa9\\x7f]]&gt;");
    lam_text_free(&t);
}
END_TEST

START_TEST(json_is_valid_and_harmless_in_a_script_for_all_bytes)
{
    lam_rng rng = test_rng(7);
    for (int round = 0; round < 2000; round++) {
        char bytes[24];
        const size_t size = lam_rng_u32(&rng) % sizeof bytes;
        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)lam_rng_u32(&rng);
        if (round == 0)
            memcpy(bytes, nasty, sizeof bytes);
        lam_text t = {0};
        lam_text_json_bytes(&t, bytes, round == 0 ? sizeof bytes : size);
        ck_assert_ptr_null(strpbrk(t.data, "<>&\n\r\x7f"));
        ck_assert_ptr_null(strstr(t.data, "\xe2\x80\xa8"));
        int32_t c;
        for (size_t i = 0; i < t.size;) { /* UTF-8 throughout */
            const int length = lam_utf8_decode((const unsigned char *)t.data + i, t.size - i, &c);
            ck_assert_int_gt(length, 0);
            i += (size_t)length;
        }
        if (!strstr(t.data, "\\u0000")) { /* which jansson does not take */
            json_t *json;
            ck_assert_msg(lam_json_parse(&json, "x", t.data, t.size) == LAM_OK, "%s", t.data);
            json_decref(json);
        }
        lam_text_free(&t);
    }
}
END_TEST

START_TEST(a_csv_field_is_quoted_where_it_must_be)
{
    lam_text t = {0};
    lam_text_csv(&t, "plain text");
    lam_text_add(&t, "|");
    lam_text_csv(&t, "a,\"b\"\nc");
    ck_assert_str_eq(t.data, "plain text|\"a,\"\"b\"\"\nc\"");
    lam_text_free(&t);
}
END_TEST

START_TEST(no_csv_field_is_a_formula)
{
    static const char *const fields[][2] = {
        {"=1+1", "'=1+1"},
        {"+1+2", "'+1+2"},
        {"-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"},
        {"@SUM(A1)", "'@SUM(A1)"},
        {"=HYPERLINK(\"http://x\",1)", "\"'=HYPERLINK(\"\"http://x\"\",1)\""},
        {"\t=1", "\"'\t=1\""},
        {"\n=1", "\"'\n=1\""},
        {"\r=1", "\\x0d=1"},
        {"\xef\xbc\x9d"
         "1",
         "'\xef\xbc\x9d"
         "1"}, /* U+FF1D */
        {"a;=1", "\"a;=1\""},
        {"a\x1b[31m", "a\\x1b[31m"},
        {"a\xff", "a\\xff"},
        {"--", "'--"},
        {"-0x10", "'-0x10"},
        {"-inf", "'-inf"},
        {"-1e5-1", "'-1e5-1"},
        {"-1", "-1"}, /* numbers stay numbers */
        {"+0.5e-3", "+0.5e-3"},
        {"-.5", "-.5"},
        {"a=1", "a=1"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        lam_text t = {0};
        lam_text_csv(&t, fields[i][0]);
        ck_assert_str_eq(t.data, fields[i][1]);
        lam_text_free(&t);
    }
}
END_TEST

START_TEST(a_number_can_be_read_back)
{
    lam_rng rng = test_rng(3);
    for (int i = 0; i < 1000; i++) {
        const double v =
            (lam_rng_uniform(&rng) - 0.5) * pow(10, (int)(lam_rng_u32(&rng) % 40) - 20);
        lam_text t = {0};
        lam_text_number(&t, v, 0, "");
        ck_assert_double_eq(strtod(t.data, NULL), v);
        lam_text_free(&t);
    }
    lam_text t = {0};
    lam_text_number(&t, 0.1, 0, "");
    lam_text_number(&t, -0.0, 3, "");
    lam_text_number(&t, NAN, 3, "null");
    ck_assert_str_eq(t.data, "0.10null");
    lam_text_free(&t);
}
END_TEST

START_TEST(a_failed_allocation_is_told_at_the_end)
{
    long failures = 0;
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_text t = {0};
        for (int i = 0; i < 5000; i++)
            lam_text_format(&t, "%d,", i);
        const int failed = test_alloc_stop();
        ck_assert_int_eq(lam_text_status(&t, "x"), failed ? LAM_ERR_MEMORY : LAM_OK);
        ck_assert(failed || (t.size == 23890 && strlen(t.data) == t.size));
        failures += failed;
        lam_text_free(&t);
    }
    ck_assert_int_ge(failures, 3);
}
END_TEST

START_TEST(a_name_can_be_shown_whatever_it_is)
{
    static const struct {
        const char *name, *shown;
    } cases[] = {{"plain <b>", "plain <b>"},
                 {"a\x01\xff\n\xc3\xa9", "a\\x01\\xff\\x0a\xc3\xa9"},
                 {"exactly fifteen", "exactly fifteen"},
                 {"sixteen letters!", "sixteen lett\xe2\x80\xa6"},
                 {"twelve bytes\xc3\xa9\xc3\xa9", "twelve bytes\xe2\x80\xa6"},
                 {"", ""}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char out[16];
        if (strlen(cases[k].shown) < sizeof out)
            ck_assert_str_eq(lam_text_plain(out, sizeof out, cases[k].name), cases[k].shown);
        char wide[64];
        if (strlen(cases[k].name) < 15)
            ck_assert_str_eq(lam_text_plain(wide, sizeof wide, cases[k].name), cases[k].shown);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, html_shows_every_byte_and_opens_no_tag);
    tcase_add_test(tests, json_is_valid_and_harmless_in_a_script_for_all_bytes);
    tcase_add_test(tests, a_csv_field_is_quoted_where_it_must_be);
    tcase_add_test(tests, no_csv_field_is_a_formula);
    tcase_add_test(tests, a_number_can_be_read_back);
    tcase_add_test(tests, a_name_can_be_shown_whatever_it_is);
    tcase_add_test(tests, a_failed_allocation_is_told_at_the_end);
    return test_run("draw/text", tests);
}
