/* pieces_test.c -- where texts are cut: as published, with any bytes, and wherever one begins. */
#include "data/pieces.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

/* The pieces of a text with '|' between them. */
static const char *cut(const char *pattern, const char *text, size_t size)
{
    static char out[512];
    lam_pattern *p;
    lam_pieces *pieces;
    size_t n = 0, to;
    must(lam_pattern_create(&p, pattern));
    must(lam_pieces_create(&pieces, p));
    lam_pieces_start(pieces, text, size, 0);
    for (size_t from = 0; from < size; from = to) {
        must(lam_pieces_next(pieces, from, &to));
        ck_assert_uint_gt(to, from);
        out[n] = '|';
        n += from > 0;
        memcpy(out + n, text + from, to - from);
        n += to - from;
    }
    out[n] = '\0';
    lam_pieces_free(pieces);
    lam_pattern_free(p);
    return out;
}

static const struct {
    const char *pattern, *text, *want;
} published[] = {
    {"gpt2", "Hello world's  end.\n\n  Yes!",
     "Hello| world|'s| | end|.|\n\n |"
     " Yes|!"},
    {"gpt2", "I'LL 1234 a\t\tb", "I|'|LL| 1234| a|\t|\t|b"},
    {"gpt2", "a   ", "a|   "},
    {"cl100k", "I'LL 1234 a\t\tb", "I|'LL| |123|4| a|\t|\tb"},
    {"cl100k", "x;\n\n  y\n", "x|;\n\n| | y|\n"},
    {"o200k", "CamelCASE it's a/b\n/c", "Camel|CASE| it's| a|/b|\n|/c"},
    {"qwen2", " 12", " |1|2"},
    {"gpt2", "na\xc3\xafve\xc2\xa0x \xe2\x82\xac", "na\xc3\xafve|\xc2\xa0|x| \xe2\x82\xac"},
    {"gpt2",
     "a\xe1\xa0\x8e"
     "b",
     "a|\xe1\xa0\x8e|b"}, /* U+180E is no white space */
};

START_TEST(published_patterns_cut_as_published)
{
    const char *pattern = lam_pattern_named(published[_i].pattern), *text = published[_i].text;
    ck_assert_ptr_nonnull(pattern);
    ck_assert_str_eq(cut(pattern, text, strlen(text)), published[_i].want);
}
END_TEST

START_TEST(what_is_no_utf8_is_kept)
{
    const char *gpt2 = lam_pattern_named("gpt2");
    ck_assert_str_eq(cut(gpt2,
                         "ab\xff\xfe"
                         "cd",
                         6),
                     "ab|\xff\xfe|cd");
    ck_assert_str_eq(cut(gpt2, "\x80", 1), "\x80");
    ck_assert_str_eq(cut(gpt2, "a\xe2\x82", 3), "a|\xe2\x82");         /* cut at the end */
    ck_assert_str_eq(cut(gpt2, "a \xff b", 5), "a| |\xff| b");         /* ends as a text does */
    ck_assert_str_eq(cut(gpt2, "\xed\xa0\x80x", 4), "\xed\xa0\x80|x"); /* a surrogate */
}
END_TEST

START_TEST(what_a_pattern_leaves_is_a_piece_too)
{
    ck_assert_str_eq(cut("[0-9]+", "ab12c3", 6), "ab|12|c|3");
    ck_assert_str_eq(cut("[0-9]+", "abc", 3), "abc");
}
END_TEST

static const char *const wrong[] = {
    "(",         /* not a pattern */
    "a*",        /* matches nothing */
    "(?<=a)b|.", /* looks back */
    "\\bx|.",    /* likewise */
    "^a|.",      /* likewise: is it the first? */
    "\\Ca",      /* half a character */
    "\\A.",
};

START_TEST(patterns_that_depend_on_more_are_refused)
{
    lam_pattern *p;
    ck_assert_int_eq(lam_pattern_create(&p, wrong[_i]), LAM_ERR_FORMAT);
    ck_assert_ptr_null(p);
    ck_assert_ptr_nonnull(strstr(lam_error(), "pattern '"));
    must(lam_pattern_create(&p, "[^a]+|a"));
    lam_pattern_free(p);
}
END_TEST

/* A run that is too long is cut at LAM_PIECE_MAX, at the end of a character, from wherever it begins. */
START_TEST(long_runs_are_cut)
{
    enum { CHARS = LAM_PIECE_MAX / 3 + 10, SIZE = 3 * CHARS };
    char *text = malloc(SIZE);
    lam_pattern *p;
    lam_pieces *pieces;
    size_t to;
    must(lam_pattern_create(&p, lam_pattern_named("gpt2")));
    must(lam_pieces_create(&pieces, p));
    for (int i = 0; i < CHARS; i++)
        memcpy(text + 3 * i, "\xe6\x97\xa5", 3);
    lam_pieces_start(pieces, text, SIZE, 0);
    must(lam_pieces_next(pieces, 0, &to));
    ck_assert_uint_eq(to, LAM_PIECE_MAX / 3 * 3);
    must(lam_pieces_next(pieces, to, &to));
    ck_assert_uint_eq(to, SIZE);
    lam_pieces_start(pieces, text, SIZE, 60);
    must(lam_pieces_next(pieces, 60, &to));
    ck_assert_uint_eq(to, SIZE);

    memset(text, 0xff, SIZE);
    lam_pieces_start(pieces, text, SIZE, 0);
    must(lam_pieces_next(pieces, 0, &to));
    ck_assert_uint_eq(to, LAM_PIECE_MAX);
    must(lam_pieces_next(pieces, to, &to));
    ck_assert_uint_eq(to, SIZE);
    lam_pieces_free(pieces);
    lam_pattern_free(p);
    free(text);
}
END_TEST

/* Published patterns go back over blanks: that must not pass for a hostile one. */
START_TEST(published_patterns_cut_any_long_run)
{
    enum { SIZE = 3 * LAM_PIECE_MAX + 1 };
    char *const text = malloc(SIZE);
    for (int i = 0; lam_pattern_names[i] != NULL; i++)
        for (const char *run = " \na1!"; *run != '\0'; run++) {
            lam_pattern *p;
            lam_pieces *pieces;
            must(lam_pattern_create(&p, lam_pattern_named(lam_pattern_names[i])));
            must(lam_pieces_create(&pieces, p));
            memset(text, *run, SIZE);
            lam_pieces_start(pieces, text, SIZE, 0);
            for (size_t at = 0; at < SIZE;)
                must(lam_pieces_next(pieces, at, &at));
            lam_pieces_free(pieces);
            lam_pattern_free(p);
        }
    free(text);
}
END_TEST

static int stop_now(void)
{
    return 1;
}

/* Patterns come with vocabularies, from outside. */
static lam_status some_pieces(const char *pattern, const char *text, size_t size, size_t *to)
{
    lam_pattern *p;
    lam_pieces *pieces;
    must(lam_pattern_create(&p, pattern));
    must(lam_pieces_create(&pieces, p));
    lam_pieces_start(pieces, text, size, 0);
    lam_status status = lam_pieces_next(pieces, 0, to);
    while (status == LAM_OK && *to < size)
        status = lam_pieces_next(pieces, *to, to);
    lam_pieces_free(pieces);
    lam_pattern_free(p);
    return status;
}

START_TEST(a_search_can_be_stopped_and_is_limited)
{
    enum { SIZE = LAM_PIECE_MAX };
    char *const text = malloc(SIZE);
    size_t to;
    memset(text, 'x', SIZE);
    must(some_pieces("y", text, SIZE, &to));
    ck_assert_uint_eq(to, SIZE);
    lam_read_stop = stop_now;
    ck_assert_int_eq(some_pieces("y", text, SIZE, &to), LAM_ERR_INTERRUPTED);
    ck_assert_int_eq(some_pieces("x", text, SIZE, &to), LAM_ERR_INTERRUPTED);
    lam_read_stop = NULL;
    /* One that recurses takes some memory, not what there is. */
    ck_assert_int_eq(some_pieces("(x(?1)?y|x)", text, SIZE, &to), LAM_ERR_FORMAT);
    ck_assert_int_eq(some_pieces("(?:x+x+)+y|z", text, SIZE, &to), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "limit exceeded"), "%s", lam_error());
    /* An attempt that looks at everything once for every letter ends before it looked at all that often. */
    ck_assert_int_eq(some_pieces("(?:x(?=(?:x(?=[^y]*+))*+))++", text, SIZE, &to), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "limit exceeded"), "%s", lam_error());
    free(text);
}
END_TEST

/* Every attempt is within the limits, but there are as many as letters. */
START_TEST(a_slow_pattern_is_refused_by_name)
{
    enum { SIZE = 8 * LAM_PIECE_MAX };
    char *const text = malloc(SIZE);
    size_t to;
    memset(text, 'x', SIZE);
    ck_assert_int_eq(some_pieces("x(?=[^y]*+)", text, SIZE, &to), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "pattern 'x(?=[^y]*+)' is too slow: 2 s of computing for "),
                  "%s", lam_error());
    ck_assert_uint_lt(to, SIZE / 2);
    free(text);
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_pattern *p = NULL;
        lam_pieces *pieces = NULL;
        lam_status status = lam_pattern_create(&p, "a|\\s");
        if (status == LAM_OK)
            status = lam_pieces_create(&pieces, p);
        test_alloc_end(status);
        lam_pieces_free(pieces);
        lam_pattern_free(p);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, published_patterns_cut_as_published, 0,
                        (int)(sizeof published / sizeof *published));
    tcase_add_test(tests, what_is_no_utf8_is_kept);
    tcase_add_test(tests, what_a_pattern_leaves_is_a_piece_too);
    tcase_add_loop_test(tests, patterns_that_depend_on_more_are_refused, 0,
                        (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(tests, long_runs_are_cut);
    tcase_add_test(tests, published_patterns_cut_any_long_run);
    tcase_add_test(tests, a_search_can_be_stopped_and_is_limited);
    tcase_add_test(tests, a_slow_pattern_is_refused_by_name);
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("data/pieces", tests);
}
