/* emitter_test.c -- whole characters, stop strings, and nothing lost. */
#include "infer/emitter.h"

#include "core/rng.h"
#include "data/utf8.h"
#include "support/suite.h"
#include "support/toy_bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pushes every byte of `text` as a token; returns what came out, in one piece; checks each piece. */
static bool emit(const char *text, size_t n, const char *const *stops, int n_stops, char *out)
{
    lam_vocab *vocab = NULL;
    lam_emitter *e = NULL;
    bool stopped = false;
    size_t at = 0;
    ck_assert(lam_vocab_create_bytes(&vocab) == LAM_OK);
    ck_assert(lam_emitter_create(&e, vocab, stops, n_stops) == LAM_OK);
    for (size_t i = 0; i <= n; i++) {
        const char *piece;
        size_t size;
        if (i < n)
            ck_assert(lam_emitter_push(e, (unsigned char)text[i], &piece, &size, &stopped) ==
                      LAM_OK);
        else
            ck_assert(lam_emitter_finish(e, &piece, &size) == LAM_OK);
        ck_assert_ptr_nonnull(piece);   /* also when there is nothing to show yet */
        for (size_t k = 0; k < size;) { /* every piece is valid by itself */
            int32_t codepoint;
            const int length =
                lam_utf8_decode((const unsigned char *)piece + k, size - k, &codepoint);
            ck_assert_int_gt(length, 0);
            k += (size_t)length;
        }
        memcpy(out + at, piece, size);
        at += size;
    }
    out[at] = '\0';
    lam_emitter_free(e);
    lam_vocab_free(vocab);
    return stopped;
}

START_TEST(text_comes_out_as_it_went_in)
{
    const char *const texts[] = {"", "plain", "na\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x98\x80 end"};
    char out[256];
    for (int i = 0; i < 3; i++) {
        ck_assert(!emit(texts[i], strlen(texts[i]), NULL, 0, out));
        ck_assert_str_eq(out, texts[i]);
    }
}
END_TEST

START_TEST(broken_bytes_are_replaced)
{
    char out[256];
    emit("a\xFFz", 3, NULL, 0, out);
    ck_assert_str_eq(out, "a\xEF\xBF\xBDz");
    emit("a\xE2\x82", 3, NULL, 0, out); /* the text ends within a character */
    ck_assert_ptr_nonnull(strstr(out, "\xEF\xBF\xBD"));
    enum { SEED = 3 };
    printf("seed %d\n", SEED);
    lam_rng rng = {.key = SEED};
    for (int round = 0; round < 200; round++) {
        char text[60], long_out[256];
        for (int i = 0; i < 60; i++)
            text[i] = (char)lam_rng_below(&rng, 256);
        emit(text, sizeof text, NULL, 0, long_out); /* emit() checks every piece */
    }
}
END_TEST

START_TEST(nothing_comes_after_a_stop_string)
{
    const char *const stops[] = {"\n\n", "END"};
    char out[256];
    ck_assert(emit("one\ntwo\n\nthree", 14, stops, 2, out));
    ck_assert_str_eq(out, "one\ntwo");
    ck_assert(emit("EN END of it", 12, stops, 2, out));
    ck_assert_str_eq(out, "EN ");
    ck_assert(!emit("almost EN", 9, stops, 2, out)); /* held back, then let go */
    ck_assert_str_eq(out, "almost EN");
    ck_assert(!emit("E E EN\nEN", 9, stops, 2, out));
    ck_assert_str_eq(out, "E E EN\nEN");
    const char *const empty[] = {""};
    lam_emitter *e = NULL;
    ck_assert(lam_emitter_create(&e, NULL, empty, 1) == LAM_ERR_ARG);
}
END_TEST

/* Tokens of byte pairs hold parts of characters, and more than one of them. */
START_TEST(byte_pairs_come_out_in_whole_characters)
{
    static const toy_merge merges[] = {{"a", "\xe2"}, {"\x82", "\xac"}, {"\x82\xac", "b"}};
    static const struct {
        const char *token, *want;
    } steps[] = {{"a\xe2", "a"},
                 {"\x82\xac"
                  "b",
                  "\xe2\x82\xac"
                  "b"},
                 {"a\xe2", "a"},
                 {"\x82", ""},
                 {"a", "\xef\xbf\xbd\xef\xbf\xbd"
                       "a"}};
    lam_vocab *vocab = toy_bpe(merges, 3, NULL, false);
    lam_emitter *e = NULL;
    bool stopped;
    must(lam_emitter_create(&e, vocab, NULL, 0));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const char *text;
        size_t size;
        const int32_t id = lam_vocab_find(vocab, steps[i].token, strlen(steps[i].token));
        must(lam_emitter_push(e, id, &text, &size, &stopped));
        ck_assert_uint_eq(size, strlen(steps[i].want));
        ck_assert_mem_eq(text, steps[i].want, size);
    }
    lam_emitter_free(e);
    lam_vocab_free(vocab);
}
END_TEST

/* A continuation in words begins with a blank where its prompt ended in a word. */
START_TEST(the_prompt_decides_how_a_text_goes_on)
{
    const lam_symbol words[] = {{"<eos>", 5, 1}, {"the", 3, 1}, {"cat", 3, 1}};
    for (int prompted = 0; prompted < 2; prompted++) {
        lam_vocab *vocab = NULL;
        lam_emitter *e = NULL;
        const char *text;
        size_t size;
        bool stopped;
        ck_assert(lam_vocab_create_list(&vocab, words, 3, &(lam_vocab_rules){.kind = LAM_WORDS}) ==
                  LAM_OK);
        ck_assert(lam_emitter_create(&e, vocab, NULL, 0) == LAM_OK);
        if (prompted)
            lam_emitter_prompt(e, 1);
        ck_assert(lam_emitter_push(e, 2, &text, &size, &stopped) == LAM_OK);
        ck_assert_uint_eq(size, prompted ? 4 : 3);
        ck_assert_mem_eq(text, prompted ? " cat" : "cat", size);
        lam_emitter_free(e);
        lam_vocab_free(vocab);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, text_comes_out_as_it_went_in);
    tcase_add_test(tests, broken_bytes_are_replaced);
    tcase_add_test(tests, nothing_comes_after_a_stop_string);
    tcase_add_test(tests, byte_pairs_come_out_in_whole_characters);
    tcase_add_test(tests, the_prompt_decides_how_a_text_goes_on);
    return test_run("infer/emitter", tests);
}
