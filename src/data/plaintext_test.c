/* plaintext_test.c -- marks, line ends and encodings, cut anywhere. */
#include "data/plaintext.h"

#include "core/log.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char said[512], text[1 << 16];
static size_t n_text;

static void listen(lam_log_level level, const char *line, void *user)
{
    (void)level, (void)user;
    snprintf(said, sizeof said, "%s", line);
}

static lam_status keep(void *user, const void *bytes, size_t n)
{
    (void)user;
    ck_assert_uint_lt(n_text + n, sizeof text);
    memcpy(text + n_text, bytes, n);
    n_text += n;
    text[n_text] = '\0';
    return LAM_OK;
}

static lam_status read_by(const lam_plaintext_options *options, const char *bytes, size_t n,
                          size_t step)
{
    lam_plaintext_options o = *options;
    lam_plaintext *p;
    o.name = "a.txt";
    o.sink = o.sink != NULL ? o.sink : keep;
    said[0] = text[0] = '\0';
    n_text = 0;
    lam_log_set_sink(listen, NULL);
    lam_status status = lam_plaintext_create(&p, &o);
    for (size_t at = 0; at < n && status == LAM_OK; at += step)
        status = lam_plaintext_feed(p, bytes + at, n - at < step ? n - at : step);
    if (status == LAM_OK)
        status = lam_plaintext_finish(p);
    lam_plaintext_free(p);
    lam_log_set_sink(NULL, NULL);
    return status;
}

static const struct {
    const char *bytes;
    size_t n;
    lam_plaintext_options o;
    const char *want;
    size_t size;
} cases[] = {
#define TEXT(t) t, sizeof t - 1
    {TEXT("one\r\ntwo\rthree\r\r\n\n"), {0}, TEXT("one\ntwo\rthree\r\n\n")},
    {TEXT("one\r\n"), {.keep_crlf = true}, TEXT("one\r\n")},
    {TEXT("one\r"), {0}, TEXT("one\r")},
    {TEXT("\xef\xbb\xbfHi"), {0}, TEXT("Hi")},
    {TEXT("\xef\xbb\xbfHi\r\n"), {.exact = true}, TEXT("\xef\xbb\xbfHi\r\n")},
    {TEXT("a\xef\xbb\xbf"), {0}, TEXT("a\xef\xbb\xbf")}, /* only in front */
    {TEXT(""), {0}, TEXT("")},
    {TEXT("\0binary\r\n"), {0}, TEXT("\0binary\r\n")}, /* bytes that are no text */
    {TEXT("caf\xe9\r\n"), {.encoding = "latin1"}, TEXT("caf\xc3\xa9\n")},
    {TEXT("\x93q\x94"), {.encoding = "windows-1252"}, TEXT("\xe2\x80\x9cq\xe2\x80\x9d")},
    {TEXT("\xff\xfeH\0\xe9\0\r\0\n\0"), {.encoding = "utf-16"}, TEXT("H\xc3\xa9\n")},
    {TEXT("\xfe\xff\0H\0i"), {.encoding = "UTF-16"}, TEXT("Hi")},
    {TEXT("\xff\xfeH\0i\0"), {.encoding = "utf-16le"}, TEXT("Hi")},
    {TEXT("\xff\xfeH\0i\0"), {.encoding = "auto"}, TEXT("Hi")},
    {TEXT("\xff\xfeH\0i\0"), {.encoding = "marked"}, TEXT("Hi")},
    {TEXT("H\0e\0l\0l\0o\0 \0y\0o\0u\0"), {.encoding = "auto"}, TEXT("Hello you")},
    {TEXT("\xff\xfe\0\0H\0\0\0"), {.encoding = "auto"}, TEXT("H")},
    {TEXT("caf\xc3\xa9"), {.encoding = "auto"}, TEXT("caf\xc3\xa9")},
    {TEXT("caf\xe9"), {.encoding = "auto"}, TEXT("caf\xc3\xa9")},
    {TEXT("caf\xe9"), {.encoding = "marked"}, TEXT("caf\xe9")},
    {TEXT("\x83\x65\x83\x58\x83\x67"),
     {.encoding = "shift_jis"},
     TEXT("\xe3\x83\x86\xe3\x82\xb9\xe3\x83\x88")},
};

START_TEST(text_is_as_tokenizers_want_it)
{
    for (size_t step = 1; step <= cases[_i].n + 1; step++) {
        const lam_status status = read_by(&cases[_i].o, cases[_i].bytes, cases[_i].n, step);
        ck_assert_msg(status == LAM_OK, "%s", lam_error());
        ck_assert_uint_eq(n_text, cases[_i].size);
        ck_assert_mem_eq(text, cases[_i].want, n_text);
    }
    char *all;
    size_t size;
    lam_plaintext_options o = cases[_i].o;
    o.name = "a.txt";
    ck_assert_int_eq(lam_plaintext_all(&all, &size, cases[_i].bytes, cases[_i].n, &o), LAM_OK);
    ck_assert_uint_eq(size, cases[_i].size);
    ck_assert_mem_eq(all, cases[_i].want, size + 1);
    free(all);
}
END_TEST

START_TEST(long_texts_go_through_in_blocks)
{
    enum { LINES = 9000 };
    static char crlf[4 * LINES];
    for (int i = 0; i < LINES; i++)
        memcpy(crlf + 4 * i, "\xe9x\r\n", 4);
    for (size_t step = 4093; step < sizeof crlf + 4093; step += 8209) {
        ck_assert_int_eq(
            read_by(&(lam_plaintext_options){.encoding = "latin1"}, crlf, sizeof crlf, step),
            LAM_OK);
        ck_assert_uint_eq(n_text, 4 * LINES);
        for (int i = 0; i < LINES; i++)
            ck_assert_mem_eq(text + 4 * i, "\xc3\xa9x\n", 4);
        ck_assert_str_eq(
            said, "a.txt: 9000 lines end with CR LF, which became LF (--keep-crlf keeps it)");
    }
}
END_TEST

/* Of a long text the first bytes may be ASCII, which says nothing: the first other byte decides, wherever it is. */
START_TEST(auto_judges_at_the_first_byte_that_says_something)
{
    enum { PLAIN = 20000, LONG = 40000 };
    static char words[LONG];
    const size_t steps[] = {1, 4093, LONG};
    const lam_plaintext_options o = {.encoding = "auto"};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        memset(words, 'a', sizeof words);
        words[PLAIN] = (char)0xe9;
        ck_assert_int_eq(read_by(&o, words, LONG, steps[k]), LAM_OK);
        ck_assert_uint_eq(n_text, LONG + 1);
        ck_assert_mem_eq(text + PLAIN - 1,
                         "a\xc3\xa9"
                         "a",
                         4);
        ck_assert_str_eq(said, "a.txt: read as windows-1252");
        memcpy(words + PLAIN, "\xc3\xa9", 2); /* UTF-8 stays as it is */
        ck_assert_int_eq(read_by(&o, words, LONG, steps[k]), LAM_OK);
        ck_assert_uint_eq(n_text, LONG);
        ck_assert_mem_eq(text, words, LONG);
        memset(words + PLAIN, 'a', 2);
        words[LONG - 1] = (char)0xe9; /* the last one of all */
        ck_assert_int_eq(read_by(&o, words, LONG, steps[k]), LAM_OK);
        ck_assert_mem_eq(text + LONG - 1, "\xc3\xa9", 3);
        words[PLAIN] = (char)0xe9;
        words[PLAIN + 1] = (char)0x81; /* no character of windows-1252 */
        ck_assert_int_eq(read_by(&o, words, LONG, steps[k]), LAM_ERR_FORMAT);
        ck_assert_ptr_nonnull(strstr(lam_error(), "not valid windows-1252 at byte 20001"));
    }
}
END_TEST

static const struct {
    const char *bytes;
    size_t n;
    lam_plaintext_options o;
    const char *error; /* a part of it */
} refused[] = {
    {TEXT("\xff\xfeH\0i\0"), {.kind = LAM_CHARS}, "a.txt: utf-16, not UTF-8: --encoding utf-16"},
    {TEXT("\0H\0e\0l\0l\0o"), {.kind = LAM_WORDS}, "--encoding utf-16be converts it"},
    {TEXT("\xff\xfeH\0i"), {.encoding = "utf-16"}, "ends inside a character"},
    {TEXT("ab\xff"),
     {.encoding = "ascii"},
     "a.txt: not valid ascii at byte 2; it begins like latin1: --encoding latin1"},
    {TEXT("ab\x81\x94"),
     {.encoding = "windows-1252"},
     "at byte 2; it is damaged or in another encoding: --encoding names that"},
    {TEXT("x"), {.encoding = "latin-9000"}, "unknown encoding 'latin-9000'"},
    {TEXT("x"), {.encoding = "ascii//IGNORE"}, "unknown encoding"},
    {TEXT("x"), {.encoding = ""}, "unknown encoding"},
};

START_TEST(what_cannot_be_read_is_said)
{
    ck_assert_int_ne(read_by(&refused[_i].o, refused[_i].bytes, refused[_i].n, 100), LAM_OK);
    ck_assert_msg(strstr(lam_error(), refused[_i].error) != NULL, "%s", lam_error());
}
END_TEST

static lam_status refuse(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return lam_fail(LAM_ERR_FORMAT, "a.txt: not valid UTF-8 at byte 3");
}

START_TEST(a_refusal_names_the_likely_encoding)
{
    const lam_plaintext_options o = {.kind = LAM_CHARS, .sink = refuse};
    ck_assert_int_eq(read_by(&o, "caf\xe9 x", 6, 6), LAM_ERR_FORMAT);
    ck_assert_str_eq(
        lam_error(),
        "a.txt: not valid UTF-8 at byte 3; if it is latin1, --encoding latin1 converts it");
    ck_assert_int_eq(read_by(&o, "\x93q\x94 x", 5, 6), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "--encoding windows-1252"));
    ck_assert_int_eq(read_by(&o, "fine", 4, 6), LAM_ERR_FORMAT); /* of something else */
    ck_assert_str_eq(lam_error(), "a.txt: not valid UTF-8 at byte 3");
    ck_assert_int_eq(read_by(&o,
                             "\x7f"
                             "ELF\0\x93q",
                             7, 7),
                     LAM_ERR_FORMAT); /* a program */
    ck_assert_str_eq(
        lam_error(),
        "a.txt: not valid UTF-8 at byte 3; only bytes and bpe take a file that is not text");
    ck_assert_int_eq(read_by(&(lam_plaintext_options){0}, "\xff\xfeH\0i\0", 6, 6), LAM_OK);
    ck_assert_ptr_nonnull(strstr(said, "a.txt: utf-16, taken as it is"));
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    for (long n = 1; test_alloc_fail(n); n++) {
        char *all;
        size_t size;
        const lam_plaintext_options o = {.name = "a.txt", .encoding = "latin1"};
        const lam_status status = lam_plaintext_all(&all, &size, "caf\xe9\r\n", 6, &o);
        test_alloc_end(status);
        free(all);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, text_is_as_tokenizers_want_it, 0,
                        (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tests, long_texts_go_through_in_blocks);
    tcase_add_test(tests, auto_judges_at_the_first_byte_that_says_something);
    tcase_add_loop_test(tests, what_cannot_be_read_is_said, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tests, a_refusal_names_the_likely_encoding);
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("data/plaintext", tests);
}
