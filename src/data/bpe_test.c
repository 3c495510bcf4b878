/* bpe_test.c -- merges by hand, short and long pieces alike, special tokens, and rules that are refused. */
#include "data/bpe.h"

#include "data/detok.h"
#include "data/vocab.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/toy_bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tokens of a text with '|' between them. */
static const char *spelled(const lam_vocab *v, const char *text, lam_special special)
{
    static char out[512];
    int32_t *ids;
    size_t n, at = 0;
    out[0] = '\0';
    must(lam_vocab_encode_special(v, &ids, &n, text, strlen(text), special));
    for (size_t i = 0; i < n; i++) {
        size_t size;
        const char *symbol = lam_vocab_symbol(v, ids[i], &size);
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%.*s", i > 0 ? "|" : "", (int)size,
                               symbol);
    }
    free(ids);
    return out;
}

/* The order of merges decides, not the length of what they make: with (b c) before (a b), "abc" is a + bc. */
START_TEST(the_lowest_rank_comes_first)
{
    const toy_merge merges[] = {{"b", "c"}, {"a", "b"}, {"ab", "d"}, {"bc", "d"}, {"a", "bcd"}};
    lam_vocab *v = toy_bpe(merges, 5, NULL, false);
    ck_assert_str_eq(spelled(v, "abc", 0), "a|bc");
    ck_assert_str_eq(spelled(v, "abd", 0), "abd");
    ck_assert_str_eq(spelled(v, "abcd", 0), "abcd"); /* bc, bcd, abcd */
    ck_assert_str_eq(spelled(v, "ab abd", 0), "ab| |abd");
    ck_assert_str_eq(spelled(v, "", 0), "");
    lam_vocab_free(v);
}
END_TEST

START_TEST(of_equal_pairs_the_left_one_is_merged)
{
    const toy_merge merges[] = {{"a", "a"}, {"aa", "a"}};
    lam_vocab *v = toy_bpe(merges, 2, NULL, false);
    ck_assert_str_eq(spelled(v, "aaa", 0), "aaa");
    ck_assert_str_eq(spelled(v, "aaaa", 0), "aa|aa"); /* both pairs, before the second rank */
    ck_assert_str_eq(spelled(v, "aaaaa", 0), "aa|aaa");
    lam_vocab_free(v);
}
END_TEST

/* By number, two ways lead to one token; a list of merges has only the ways it lists. */
START_TEST(without_a_list_any_two_halves_are_merged)
{
    const toy_merge merges[] = {{"a", "b"}, {"c", "d"}, {"ab", "c"}, {"b", "cd"}, {"abc", "d"}};
    lam_vocab *list = toy_bpe(merges, 5, NULL, false), *ranks = toy_bpe(merges, 5, NULL, true);
    ck_assert_str_eq(spelled(list, "abcd", 0), "ab|cd");
    ck_assert_str_eq(spelled(ranks, "abcd", 0), "abcd");
    ck_assert_str_eq(spelled(ranks, "bcd", 0), "bcd");
    lam_vocab_free(list);
    lam_vocab_free(ranks);
}
END_TEST

START_TEST(a_piece_may_be_taken_whole)
{
    const toy_merge merges[] = {{"b", "c"}, {"a", "b"}, {"ab", "c"}};
    lam_vocab *merged = toy_bpe(merges, 3, NULL, false);
    lam_vocab *whole = toy_bpe(merges, 3, &(lam_bpe_rules){.whole = true}, false);
    ck_assert_str_eq(spelled(merged, "abc abcb", 0), "a|bc| |a|bc|b");
    ck_assert_str_eq(spelled(whole, "abc abcb", 0), "abc| |a|bc|b"); /* " abcb" is no token */
    lam_vocab_free(merged);
    lam_vocab_free(whole);
}
END_TEST

START_TEST(special_tokens_are_read_only_when_asked)
{
    lam_vocab *v = toy_bpe_english();
    ck_assert_int_eq(lam_vocab_eos(v), lam_vocab_size(v) - 1);
    ck_assert_str_eq(spelled(v, "the<|endoftext|> the", LAM_SPECIAL_READ),
                     "the|<|endoftext|>| the");
    ck_assert_str_eq(spelled(v, "<|endoftext|>", LAM_SPECIAL_TEXT), "<|||e|n|d|o|f|t|e|x|t|||>");
    ck_assert_str_eq(spelled(v, "<|endoftext", LAM_SPECIAL_READ), "<|||e|n|d|o|f|t|e|x|t");
    /* A text ends where a special token begins: two blanks, then a word, would be ' ' and " the". */
    ck_assert_str_eq(spelled(v, "a  <|endoftext|>the", LAM_SPECIAL_READ),
                     "a| | |<|endoftext|>|the");
    lam_vocab_free(v);
}
END_TEST

/* Random texts of few letters, so that ranks meet; the same text is encoded as one long piece (a heap of pairs), and by
 * looking for the lowest rank by hand. */
static size_t by_hand(const lam_vocab *v, int32_t *ids, size_t n)
{
    const lam_bpe_rules *r = lam_bpe_rules_of(lam_vocab_bpe(v));
    for (size_t m = 0; m < r->n_merges; m++) /* here a merge never makes a pair of a lower rank */
        for (size_t i = 0; i + 1 < n; i++)
            if (ids[i] == r->merges[m].left && ids[i + 1] == r->merges[m].right) {
                char both[64];
                size_t a, b;
                const char *left = lam_vocab_symbol(v, ids[i], &a);
                memcpy(both, left, a);
                const char *right = lam_vocab_symbol(v, ids[i + 1], &b);
                memcpy(both + a, right, b);
                ids[i] = lam_vocab_find(v, both, a + b);
                memmove(&ids[i + 1], &ids[i + 2], (n - i - 2) * sizeof *ids);
                n--;
            }
    return n;
}

START_TEST(short_and_long_pieces_are_merged_alike)
{
    const toy_merge merges[] = {{"a", "b"},   {"b", "a"},   {"a", "a"},    {"ab", "a"}, {"aa", "b"},
                                {"ab", "ab"}, {"ba", "ba"}, {"abab", "a"}, {"aa", "aa"}};
    lam_vocab *v = toy_bpe(merges, sizeof merges / sizeof *merges, NULL, false);
    lam_rng rng = test_rng(11);
    for (int round = 0; round < 300; round++) {
        char text[200];
        int32_t want[200], *ids;
        size_t n, size = 1 + lam_rng_below(&rng, sizeof text);
        for (size_t i = 0; i < size; i++) {
            text[i] = "aabc"[lam_rng_below(&rng, 4)];
            want[i] = text[i];
        }
        must(lam_vocab_encode(v, &ids, &n, text, size));
        ck_assert_uint_eq(n, by_hand(v, want, size));
        ck_assert_mem_eq(ids, want, n * sizeof *ids);
        free(ids);
    }
    lam_vocab_free(v);
}
END_TEST

/* Any bytes, and every way to cut the work in two. */
START_TEST(any_bytes_come_back)
{
    static const char *const parts[] = {"the",      " and", "  ", "\n", "\xc3\xa9",         "\xff",
                                        "\xe2\x82", "42",   "'s", "\0", "\xf0\x9f\x98\x80", "ing"};
    lam_vocab *v = toy_bpe_english();
    lam_rng rng = test_rng(5);
    for (int round = 0; round < 200; round++) {
        char text[256], *back;
        int32_t *ids;
        size_t n, size = 0, back_size;
        while (size < 200) {
            const char *part = parts[lam_rng_below(&rng, 12)];
            memcpy(text + size, part, strlen(part) + (*part == '\0'));
            size += strlen(part) + (*part == '\0');
        }
        must(lam_vocab_encode(v, &ids, &n, text, size));
        must(lam_detok_all(v, &back, &back_size, ids, n));
        ck_assert_uint_eq(back_size, size);
        ck_assert_mem_eq(back, text, size);
        size_t bytes = 0;
        for (size_t i = 0; i < n; i++)
            bytes += (size_t)lam_vocab_bytes(v, ids[i]);
        ck_assert_uint_eq(bytes, size);
        free(back);
        free(ids);
    }
    lam_vocab_free(v);
}
END_TEST

/* Encoding may stop at any piece and go on there. */
START_TEST(a_text_may_be_encoded_in_parts)
{
    static const char text[] = "the and\n\n  the<|endoftext|>\xff\xfethe  a\xc3\xa9 's 1234   ";
    lam_vocab *v = toy_bpe_english();
    const lam_bpe_text t = {text, sizeof text - 1, LAM_SPECIAL_READ};
    lam_bpe_coder *coder;
    lam_ids whole = {0};
    size_t end;
    must(lam_bpe_coder_create(&coder, lam_vocab_bpe(v)));
    must(lam_bpe_encode(coder, &whole, &t, 0, t.size, &end));
    ck_assert_uint_eq(end, t.size);
    for (size_t goal = 0; goal <= t.size; goal++) {
        lam_ids parts = {0};
        must(lam_bpe_encode(coder, &parts, &t, 0, goal, &end));
        ck_assert_uint_ge(end, goal);
        must(lam_bpe_encode(coder, &parts, &t, end, t.size, &end));
        ck_assert_uint_eq(parts.n, whole.n);
        ck_assert_mem_eq(parts.v, whole.v, whole.n * sizeof *whole.v);
        free(parts.v);
    }
    free(whole.v);
    lam_bpe_coder_free(coder);
    lam_vocab_free(v);
}
END_TEST

START_TEST(tokens_have_as_many_bytes_as_their_text)
{
    lam_vocab *v = toy_bpe_english(), *bytes, *words;
    const lam_symbol list[] = {{"<eos>", 5, 1}, {"the", 3, 1}};
    ck_assert_int_eq(lam_vocab_bytes(v, 'a'), 1);
    ck_assert_int_eq(lam_vocab_bytes(v, lam_vocab_find(v, " the", 4)), 4);
    ck_assert_int_eq(lam_vocab_bytes(v, lam_vocab_eos(v)), 0);
    must(lam_vocab_create_bytes(&bytes));
    ck_assert_int_eq(lam_vocab_bytes(bytes, 200), 1);
    must(lam_vocab_create_list(&words, list, 2, &(lam_vocab_rules){.kind = LAM_WORDS}));
    ck_assert_int_eq(lam_vocab_bytes(words, 0), 1);
    ck_assert_int_eq(lam_vocab_bytes(words, 1), 4);
    lam_vocab_free(v);
    lam_vocab_free(bytes);
    lam_vocab_free(words);
}
END_TEST

START_TEST(a_text_may_be_normalised_first)
{
    const toy_merge merges[] = {{"\xc3", "\xa9"}};
    lam_vocab *v = toy_bpe(merges, 1, &(lam_bpe_rules){.nfc = true}, false);
    ck_assert_str_eq(spelled(v, "e\xcc\x81", 0), "\xc3\xa9");
    lam_vocab_free(v);
}
END_TEST

/* ---- the file, and what is refused ---- */

START_TEST(a_saved_vocabulary_encodes_the_same)
{
    const char *path = test_temp_path("bpe.json");
    const toy_merge merges[] = {{"b", "c"}, {"a", "b"}, {"ab", "c"}, {"\xc3", "\xa9"}};
    for (int i = 0; i < 4; i++) {
        const lam_bpe_rules more = {.whole = i == 1, .nfc = i == 2, .pattern = i == 3 ? "." : NULL};
        lam_vocab *v = toy_bpe(merges, 4, &more, i == 2), *back;
        must(lam_vocab_save(v, path));
        must(lam_vocab_load(&back, path));
        must(lam_vocab_same(v, back, "back"));
        ck_assert(lam_vocab_alike(v, back));
        ck_assert_int_eq(lam_vocab_eos(back), lam_vocab_eos(v));
        char want[512];
        snprintf(want, sizeof want, "%s", spelled(v, "abc e\xcc\x81 \xc3\xa9", 0));
        ck_assert_str_eq(spelled(back, "abc e\xcc\x81 \xc3\xa9", 0), want);
        lam_vocab *other = toy_bpe(merges, 4, &(lam_bpe_rules){.whole = i != 1}, i == 2);
        ck_assert(!lam_vocab_alike(v, other));
        lam_vocab_free(other);
        lam_vocab_free(back);
        lam_vocab_free(v);
    }
}
END_TEST

/* A vocabulary of all bytes and "ab", with one thing wrong. */
static lam_status wrong(int what)
{
    char bytes[256];
    static char long_token[LAM_TOKEN_MAX + 1];
    lam_symbol list[260];
    int32_t special[] = {257, 258};
    lam_merge merges[] = {{'a', 'b'}, {'a', 'b'}, {'a', 'c'}, {'a', 257}, {-1, 'a'}};
    lam_vocab *v;
    size_t n = 259;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
        list[i] = (lam_symbol){&bytes[i], 1, 0};
    }
    list[256] = (lam_symbol){"ab", 2, 0};
    list[257] = (lam_symbol){"<s>", 3, 0};
    list[258] = (lam_symbol){"<t>", 3, 0};
    lam_bpe_rules rules = {.pattern = ".",
                           .merges = merges,
                           .n_merges = 1,
                           .special = special,
                           .n_special = 2,
                           .separator = 257};
    memset(long_token, 'x', sizeof long_token);
    switch (what) {
    case 1:
        rules.n_merges = 2;
        break; /* twice */
    case 2:
        rules.merges = merges + 2;
        break; /* makes no token */
    case 3:
        rules.merges = merges + 3;
        break; /* of a special one */
    case 4:
        rules.merges = merges + 4;
        break; /* of no token */
    case 5:
        rules.separator = 256;
        break; /* not special */
    case 6:
        special[0] = 258;
        break; /* not rising */
    case 7:
        special[1] = 300;
        break; /* no token */
    case 8:
        list['q'] = (lam_symbol){"qq", 2, 0};
        break; /* a byte without one */
    case 9:
        list[256] = list['b'];
        break; /* a token twice */
    case 10:
        list[258].size = 0;
        break; /* empty */
    case 11:
        list[258] = (lam_symbol){long_token, sizeof long_token, 0};
        break;
    case 12:
        rules.pattern = "(";
        break;
    case 13:
        special[0] = 'a';
        rules.separator = -1;
        break; /* the byte is no token then */
    default:
        break;
    }
    const lam_status status = lam_vocab_create_bpe(&v, list, n, &rules, "file");
    const bool right = (v == NULL) == (status != LAM_OK);
    lam_vocab_free(v);
    return right ? status : LAM_ERR_NUMERIC;
}

START_TEST(what_cannot_be_is_refused)
{
    ck_assert_int_eq(wrong(_i), _i == 0 ? LAM_OK : LAM_ERR_FORMAT);
    ck_assert(_i == 0 || strncmp(lam_error(), "file: ", 6) == 0);
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    const char *path = test_temp_path("memory.json");
    char text[300];
    memset(text, 'a', sizeof text); /* a long piece */
    lam_vocab *made = toy_bpe_english();
    for (long n = 1; test_alloc_fail(n); n++) {
        int32_t *ids = NULL;
        size_t count;
        lam_status status = lam_vocab_save(made, path);
        if (status == LAM_OK)
            status = lam_vocab_encode(made, &ids, &count, text, sizeof text);
        if (status == LAM_OK)
            status = wrong(0);
        test_alloc_end(status);
        free(ids);
    }
    lam_vocab_free(made);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, the_lowest_rank_comes_first);
    tcase_add_test(tests, of_equal_pairs_the_left_one_is_merged);
    tcase_add_test(tests, without_a_list_any_two_halves_are_merged);
    tcase_add_test(tests, a_piece_may_be_taken_whole);
    tcase_add_test(tests, special_tokens_are_read_only_when_asked);
    tcase_add_test(tests, short_and_long_pieces_are_merged_alike);
    tcase_add_test(tests, any_bytes_come_back);
    tcase_add_test(tests, a_text_may_be_encoded_in_parts);
    tcase_add_test(tests, tokens_have_as_many_bytes_as_their_text);
    tcase_add_test(tests, a_text_may_be_normalised_first);
    tcase_add_test(tests, a_saved_vocabulary_encodes_the_same);
    tcase_add_loop_test(tests, what_cannot_be_is_refused, 0, 14);
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("data/bpe", tests);
}
