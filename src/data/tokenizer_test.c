/* tokenizer_test.c -- the published rules for words, exact characters, and any cut of the input. */
#include "data/tokenizer.h"

#include "data/utf8.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { IDS_MAX = 200000 };

static int32_t ids[IDS_MAX];
static size_t n_ids;
static lam_symbols *symbols;

static lam_status keep(void *user, const int32_t *block, size_t n)
{
    (void)user;
    if (n_ids + n > IDS_MAX)
        abort();
    memcpy(ids + n_ids, block, n * sizeof *block);
    n_ids += n;
    return LAM_OK;
}

static bool blanks = true;

/* Tokenises text[0, n), fed `step` bytes at a time. */
static lam_status tokenize(lam_text_kind kind, bool lower, const char *text, size_t n, size_t step)
{
    lam_tokenizer *t = NULL;
    lam_symbols_free(symbols);
    symbols = NULL;
    n_ids = 0;
    lam_status status = lam_symbols_create(&symbols);
    const lam_tokenizer_options options = {kind, lower, blanks, symbols, keep, NULL};
    if (status == LAM_OK)
        status = lam_tokenizer_create(&t, &options);
    if (status == LAM_OK)
        lam_tokenizer_start(t, "input");
    for (size_t at = 0; at < n && status == LAM_OK; at += step)
        status = lam_tokenizer_feed(t, text + at, n - at < step ? n - at : step);
    if (status == LAM_OK)
        status = lam_tokenizer_finish(t, LAM_TEXT_COMPLETE);
    lam_tokenizer_free(t);
    return status;
}

/* The symbols joined by '|'. */
static const char *joined(void)
{
    static char text[1 << 16];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n_ids; i++) {
        size_t size;
        const char *symbol = lam_symbols_text(symbols, ids[i], &size);
        if (i > 0)
            text[used++] = '|';
        memcpy(text + used, symbol, size);
        used += size;
        text[used] = '\0';
    }
    return text;
}

static const struct {
    const char *text, *want;
} words[] = {
    {"", ""},
    {"a b\n", "a|b|<eos>"},
    {"a b", "a|b|<eos>"}, /* an unfinished line is a line */
    {" a  b \n", "a|b|<eos>"},
    {"\n", "<eos>"},
    {" \n", "<eos>"}, /* WikiText's blank line */
    {"a\n\n\nb\n", "a|<eos>|<eos>|<eos>|b|<eos>"},
    {"  ", "<eos>"}, /* a line of blanks, unfinished */
    {"a\r\nb\r\n", "a|<eos>|b|<eos>"},
    {"a\rb\r", "a|<eos>|b|<eos>"},
    {"a\r\r\nb", "a|<eos>|<eos>|b|<eos>"},
    {"a\n\rb", "a|<eos>|<eos>|b|<eos>"},
    {"\r\n", "<eos>"},
    {"a\tb\vc\fd\x1c"
     "e\x1f"
     "f\n",
     "a|b|c|d|e|f|<eos>"},
    {"a\xc2\x85"
     "b\xc2\xa0"
     "c\n",
     "a|b|c|<eos>"}, /* U+0085, U+00A0 */
    {"a\xe2\x80\xa8"
     "b\xe3\x80\x80"
     "c\xe1\x9a\x80"
     "d\n",
     "a|b|c|d|<eos>"}, /* 2028 3000 1680 */
    {"a\xe2\x80\x8b"
     "b\n",
     "a\xe2\x80\x8b"
     "b|<eos>"}, /* U+200B is no space */
    {"\xef\xbb\xbf"
     "a\n",
     "\xef\xbb\xbf"
     "a|<eos>"}, /* nor is a byte order mark */
    {"caf\xc3\xa9 \xf0\x9f\x98\x80!\n", "caf\xc3\xa9|\xf0\x9f\x98\x80!|<eos>"},
    {"<eos> <unk>\n", "<eos>|<unk>|<eos>"},
    {"a\x7f"
     "b\x01\n",
     "a\x7f"
     "b\x01|<eos>"},
};

START_TEST(words_follow_the_published_rules)
{
    const size_t n = strlen(words[_i].text);
    for (size_t step = 1; step <= n + 1; step++) {
        ck_assert_int_eq(tokenize(LAM_WORDS, false, words[_i].text, n, step), LAM_OK);
        ck_assert_str_eq(joined(), words[_i].want);
    }
    ck_assert_int_eq(lam_symbols_find(symbols, "<eos>", 5), 0);
}
END_TEST

static const struct {
    const char *text, *want;
} prose[] = {
    {"him, him. him;\n", "him|,|him|.|him|;|<eos>"},
    {"Don't. 'Tis dogs' \xe2\x80\x99n it\xe2\x80\x99s",
     "Don't|.|'@|Tis|dogs|@'|\xe2\x80\x99@|n|it\xe2\x80\x99s|<eos>"},
    {"\"Yes,\" he said", "\"@|Yes|,|@\"|he|said|<eos>"},
    {"well-known 3,000.5", "well|@-@|known|3|@,@|000|@.@|5|<eos>"},
    {"(a) f(x) $5 5%", "(|a|)|f|@(@|x|)|$|5|5|%|<eos>"},
    {"a - b -- c", "a|-|b|-|@-|c|<eos>"},
    {"@me a@b x@ @", "@@|me|a|@@@|b|x|@|@|<eos>"},
    {"a ...", "a|.|.|.|<eos>"},
    {" \n.\n", "<eos>|.|<eos>"},
    {"x,\r\ny", "x|,|<eos>|y|<eos>"},
    {"", ""},
};

START_TEST(punctuation_is_set_apart)
{
    const size_t n = strlen(prose[_i].text);
    blanks = false;
    for (size_t step = 1; step <= n + 1; step++) {
        ck_assert_int_eq(tokenize(LAM_WORDS, false, prose[_i].text, n, step), LAM_OK);
        ck_assert_str_eq(joined(), prose[_i].want);
    }
}
END_TEST

START_TEST(lower_case_reaches_every_word)
{
    const char text[] = "The \xc3\x89"
                        "COLE Stra\xc3\x9f"
                        "e\n";
    for (size_t step = 1; step < sizeof text; step++) {
        ck_assert_int_eq(tokenize(LAM_WORDS, true, text, sizeof text - 1, step), LAM_OK);
        ck_assert_str_eq(joined(), "the|\xc3\xa9"
                                   "cole|stra\xc3\x9f"
                                   "e|<eos>");
    }
    ck_assert_int_eq(tokenize(LAM_CHARS, true, "AbA", 3, 3), LAM_OK);
    ck_assert_str_eq(joined(), "a|b|a");
    ck_assert_int_eq(lam_symbols_count(symbols), 2);
}
END_TEST

START_TEST(characters_and_bytes_are_exact)
{
    const char text[] = "a\xc3\xa9\r\n \xf0\x9f\x98\x80"
                        "a";
    for (size_t step = 1; step < sizeof text; step++) {
        ck_assert_int_eq(tokenize(LAM_CHARS, false, text, sizeof text - 1, step), LAM_OK);
        ck_assert_str_eq(joined(), "a|\xc3\xa9|\r|\n| |\xf0\x9f\x98\x80|a");
        ck_assert_int_eq(ids[6], 0);
        ck_assert_int_eq(tokenize(LAM_BYTES, false, text, sizeof text, step), LAM_OK);
        ck_assert_uint_eq(n_ids, sizeof text);
        for (size_t i = 0; i < sizeof text; i++) {
            size_t size;
            ck_assert_int_eq(*lam_symbols_text(symbols, ids[i], &size), text[i]);
            ck_assert_uint_eq(size, 1);
        }
    }
}
END_TEST

static size_t first_error(const unsigned char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t c;
        const utf8proc_ssize_t size = utf8proc_iterate(s + i, (utf8proc_ssize_t)(n - i), &c);
        if (size <= 0 || c == 0)
            return i;
        i += (size_t)size;
    }
    return n;
}

/* The offset in the message is that of the first byte that begins no character. */
START_TEST(invalid_utf8_is_refused_at_its_offset)
{
    static const char *const pieces[] = {"a",    " ",    "\n",       "\xc3\xa9", "\xe2\x82\xac",
                                         "\xc3", "\x80", "\xed\xa0", "\xf0\x9f", "\xff"};
    lam_rng rng = test_rng(3);
    int refused = 0;
    for (int round = 0; round < 4000; round++) {
        char text[64] = "", want[64];
        const int n = 1 + (int)lam_rng_below(&rng, 12);
        for (int i = 0; i < n; i++)
            strcat(text, pieces[lam_rng_below(&rng, i < n - 1 ? 6 : 10)]);
        const size_t size = strlen(text), at = first_error((unsigned char *)text, size);
        const lam_text_kind kind = round % 2 ? LAM_WORDS : LAM_CHARS;
        const size_t step = 1 + lam_rng_below(&rng, size);
        const lam_status status = tokenize(kind, false, text, size, step);
        ck_assert_int_eq(status, at < size ? LAM_ERR_FORMAT : LAM_OK);
        if (at < size) {
            snprintf(want, sizeof want, "input: not valid UTF-8 at byte %zu", at);
            ck_assert_str_eq(lam_error(), want);
            refused++;
        }
    }
    ck_assert_int_gt(refused, 1000);
    ck_assert_int_eq(tokenize(LAM_CHARS, false, "ab\0c", 4, 4), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "input: not text: a zero byte at byte 2");
}
END_TEST

/* Cutting the input differently changes nothing. */
START_TEST(blocks_may_end_anywhere)
{
    static const char *const pieces[] = {"w",  "xy",       "long-word",    " ",
                                         "\n", "\r",       "\r\n",         "\xc3\xa9",
                                         "\t", "\xc2\xa0", "\xe2\x80\xa8", "\xf0\x9f\x98\x80"};
    lam_rng rng = test_rng(4);
    for (int round = 0; round < 200; round++) {
        char text[1024] = "";
        for (int i = 0; i < 60; i++)
            strcat(text, pieces[lam_rng_below(&rng, 12)]);
        const size_t size = strlen(text);
        const lam_text_kind kind = round % 2 ? LAM_WORDS : LAM_CHARS;
        ck_assert_int_eq(tokenize(kind, false, text, size, size), LAM_OK);
        char *whole = strdup(joined());
        for (size_t step = 1; step < 9; step++) {
            ck_assert_int_eq(tokenize(kind, false, text, size, step), LAM_OK);
            ck_assert_str_eq(joined(), whole);
        }
        free(whole);
    }
}
END_TEST

START_TEST(a_word_has_a_longest_length)
{
    static char text[LAM_SYMBOL_MAX + 2];
    memset(text, 'x', sizeof text);
    for (size_t step = 1000; step <= sizeof text; step += sizeof text - 1000) {
        ck_assert_int_eq(tokenize(LAM_WORDS, false, text, LAM_SYMBOL_MAX, step), LAM_OK);
        ck_assert_uint_eq(n_ids, 2);
        ck_assert_int_eq(tokenize(LAM_WORDS, false, text, LAM_SYMBOL_MAX + 1, step),
                         LAM_ERR_FORMAT);
        ck_assert_ptr_nonnull(strstr(lam_error(), "a word longer than 65536 bytes"));
    }
    text[LAM_SYMBOL_MAX + 1] = ' ';
    ck_assert_int_eq(tokenize(LAM_WORDS, false, text, sizeof text, sizeof text), LAM_ERR_FORMAT);
    ck_assert_int_eq(tokenize(LAM_WORDS, true, text, sizeof text, sizeof text), LAM_ERR_FORMAT);
}
END_TEST

START_TEST(a_prompt_stays_open)
{
    lam_tokenizer *t;
    ck_assert_int_eq(lam_symbols_create(&symbols), LAM_OK);
    const lam_tokenizer_options options = {LAM_WORDS, false, true, symbols, keep, NULL};
    ck_assert_int_eq(lam_tokenizer_create(&t, &options), LAM_OK);
    ck_assert_int_eq(lam_tokenizer_feed(t, "a\nb c", 5), LAM_OK);
    ck_assert_int_eq(lam_tokenizer_finish(t, LAM_TEXT_OPEN), LAM_OK);
    ck_assert_str_eq(joined(), "a|<eos>|b|c");
    lam_tokenizer_free(t);
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = tokenize((lam_text_kind)_i, false, "a b a\n", 6, 3);
        test_alloc_end(status);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, words_follow_the_published_rules, 0,
                        (int)(sizeof words / sizeof *words));
    tcase_add_loop_test(tests, punctuation_is_set_apart, 0, (int)(sizeof prose / sizeof *prose));
    tcase_add_test(tests, lower_case_reaches_every_word);
    tcase_add_test(tests, characters_and_bytes_are_exact);
    tcase_add_test(tests, invalid_utf8_is_refused_at_its_offset);
    tcase_add_test(tests, blocks_may_end_anywhere);
    tcase_add_test(tests, a_word_has_a_longest_length);
    tcase_add_test(tests, a_prompt_stays_open);
    tcase_add_loop_test(tests, without_memory_it_fails_cleanly, 0, 3);
    return test_run("data/tokenizer", tests);
}
