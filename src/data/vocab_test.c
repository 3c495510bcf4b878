/* vocab_test.c -- the published order, rare symbols, both directions, and damaged files. */
#include "data/vocab.h"

#include "core/file.h"
#include "data/detok.h"
#include "data/utf8.h"
#include "support/alloc.h"
#include "support/fault.h"
#include "support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct counted {
    const char *text;
    int64_t count;
} counted;

static int32_t remap[64];

static lam_vocab *build(const counted *list, int n, const lam_vocab_rules *rules)
{
    lam_symbols *symbols;
    int64_t counts[64];
    int32_t id;
    lam_vocab *vocab;
    ck_assert_int_eq(lam_symbols_create(&symbols), LAM_OK);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(lam_symbols_add(symbols, list[i].text, strlen(list[i].text), &id), LAM_OK);
        counts[id] = list[i].count;
    }
    ck_assert_int_eq(lam_vocab_create(&vocab, remap, symbols, counts, rules), LAM_OK);
    lam_symbols_free(symbols);
    return vocab;
}

static const char *joined(const lam_vocab *v)
{
    static char text[1024];
    text[0] = '\0';
    for (int32_t i = 0; i < lam_vocab_size(v); i++) {
        size_t size;
        strcat(text, i > 0 ? " " : "");
        strcat(text, lam_vocab_symbol(v, i, &size));
    }
    return text;
}

static const counted wiki[] = {{"<eos>", 9}, {"the", 7},  {"cat", 2},   {"<unk>", 4}, {"sat", 2},
                               {"of", 7},    {"rare", 1}, {"never", 0}, {"Zoe", 2}};
enum { WIKI = 9 };

START_TEST(order_is_by_count_then_first_appearance)
{
    const lam_vocab_rules rules = {.kind = LAM_WORDS};
    lam_vocab *v = build(wiki, WIKI, &rules);
    /* <unk> is a word of the text like any other here, yet unknown words become it. */
    ck_assert_str_eq(joined(v), "<eos> the of <unk> cat sat Zoe rare");
    ck_assert_int_eq(lam_vocab_eos(v), 0);
    ck_assert_int_eq(lam_vocab_unk(v), 3);
    ck_assert_int_eq(lam_vocab_count(v, 1), 7);
    static const int32_t want[] = {0, 1, 4, 3, 5, 2, 7, 3, 6};
    ck_assert_mem_eq(remap, want, sizeof want);
    lam_vocab_free(v);
}
END_TEST

START_TEST(rare_symbols_become_unk)
{
    const lam_vocab_rules rules = {.kind = LAM_WORDS, .unk = true, .min_count = 2, .max_size = 5};
    lam_vocab *v = build(wiki, WIKI, &rules);
    ck_assert_str_eq(joined(v), "<eos> <unk> the of cat");
    ck_assert_int_eq(lam_vocab_count(v, 1), 4);
    static const int32_t want[] = {0, 2, 4, 1, 1, 3, 1, 1, 1};
    ck_assert_mem_eq(remap, want, sizeof want);
    lam_vocab_free(v);
}
END_TEST

START_TEST(a_closed_vocabulary_has_no_way_out)
{
    const lam_vocab_rules rules = {.kind = LAM_CHARS, .min_count = 2};
    lam_vocab *v = build((counted[]){{"a", 5}, {"b", 1}, {"c", 2}}, 3, &rules);
    ck_assert_str_eq(joined(v), "a c");
    ck_assert_int_eq(lam_vocab_unk(v), -1);
    ck_assert_int_eq(lam_vocab_eos(v), -1);
    ck_assert_int_eq(remap[1], LAM_SYMBOL_LACKING);
    int32_t *ids;
    size_t n;
    ck_assert_int_eq(lam_vocab_encode(v, &ids, &n, "acb", 3), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "'b' is not in the vocabulary"));
    ck_assert_ptr_null(ids);
    lam_vocab_free(v);
}
END_TEST

START_TEST(all_bytes_are_their_own_numbers)
{
    lam_vocab *v;
    int32_t *ids;
    size_t n, size;
    char text[256], *back;
    for (int i = 0; i < 256; i++)
        text[i] = (char)i;
    ck_assert_int_eq(lam_vocab_create_bytes(&v), LAM_OK);
    ck_assert_int_eq(lam_vocab_size(v), 256);
    ck_assert_int_eq(lam_vocab_encode(v, &ids, &n, text, 256), LAM_OK);
    ck_assert_uint_eq(n, 256);
    for (int i = 0; i < 256; i++)
        ck_assert_int_eq(ids[i], i);
    ck_assert_int_eq(lam_detok_all(v, &back, &size, ids, n), LAM_OK);
    ck_assert_uint_eq(size, 256);
    ck_assert_mem_eq(back, text, 256);
    free(back);
    free(ids);
    lam_vocab_free(v);
}
END_TEST

START_TEST(enwik8_knows_no_newline)
{
    const lam_vocab_rules rules = {.kind = LAM_BYTES, .drop_newlines = true};
    lam_vocab *v = build((counted[]){{"\n", 50}, {"e", 5}, {" ", 9}, {"\xc3", 5}}, 4, &rules);
    int32_t *ids;
    size_t n;
    ck_assert_str_eq(joined(v), "  e \xc3");
    ck_assert_int_eq(remap[0], LAM_SYMBOL_DROPPED);
    ck_assert_int_eq(lam_vocab_encode(v, &ids, &n, "e\n\ne", 4), LAM_OK);
    ck_assert_uint_eq(n, 2);
    free(ids);
    ck_assert_int_eq(lam_vocab_encode(v, &ids, &n, "\x01", 1), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "byte 1 is not in the vocabulary, which has no <unk>");
    lam_vocab_free(v);
}
END_TEST

START_TEST(messages_show_symbols_as_people_can_find_them)
{
    char shown[LAM_SYMBOL_SHOWN], word[100] = "a";
    ck_assert_str_eq(lam_symbol_show(shown, "the", 3), "'the'");
    ck_assert_str_eq(lam_symbol_show(shown, "\r", 1), "byte 13");
    ck_assert_str_eq(lam_symbol_show(shown, "\xff", 1), "byte 255");
    ck_assert_str_eq(lam_symbol_show(shown, "\xe2\x80\x8b", 3), "'\xe2\x80\x8b' (U+200B)");
    for (int i = 0; i < 40; i++) /* two bytes each, so that byte 40 is within one */
        strcat(word, "\xc3\xa9");
    lam_symbol_show(shown, word, strlen(word));
    ck_assert_uint_eq(strlen(shown), 39 + 2);
    ck_assert(lam_utf8_valid(shown, strlen(shown)));
}
END_TEST

START_TEST(a_prompt_of_words_follows_the_corpus)
{
    const lam_vocab_rules rules = {.kind = LAM_WORDS, .lower = true, .unk = true};
    lam_vocab *v = build(wiki, WIKI, &rules);
    static const int32_t want[] = {2, 1, 0, 0, 5};
    int32_t *ids;
    size_t n;
    ck_assert_int_eq(lam_vocab_encode(v, &ids, &n, "THE dog\r\n\n sat", 14), LAM_OK);
    ck_assert_uint_eq(n, 5);
    ck_assert_mem_eq(ids, want, sizeof want);
    free(ids);
    ck_assert_int_eq(lam_vocab_encode(v, &ids, &n, "", 0), LAM_OK);
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_nonnull(ids);
    free(ids);
    lam_vocab_free(v);
}
END_TEST

/* ---- the file ---- */

static void check_same(const lam_vocab *a, const lam_vocab *b)
{
    ck_assert_int_eq(lam_vocab_kind(a), lam_vocab_kind(b));
    ck_assert_int_eq(lam_vocab_size(a), lam_vocab_size(b));
    ck_assert_int_eq(lam_vocab_eos(a), lam_vocab_eos(b));
    ck_assert_int_eq(lam_vocab_unk(a), lam_vocab_unk(b));
    for (int32_t i = 0; i < lam_vocab_size(a); i++) {
        size_t na, nb;
        const char *ta = lam_vocab_symbol(a, i, &na), *tb = lam_vocab_symbol(b, i, &nb);
        ck_assert_uint_eq(na, nb);
        ck_assert_mem_eq(ta, tb, na);
        ck_assert_int_eq(lam_vocab_count(a, i), lam_vocab_count(b, i));
        ck_assert_int_eq(lam_vocab_find(b, ta, na), i);
    }
}

START_TEST(a_saved_vocabulary_comes_back)
{
    const char *path = test_temp_path("vocab.json");
    const lam_vocab_rules words = {.kind = LAM_WORDS, .lower = true, .blanks = true, .unk = true};
    const lam_vocab_rules bytes = {.kind = LAM_BYTES, .drop_newlines = true};
    lam_vocab *v[3], *back;
    v[0] = build((counted[]){{"<eos>", 2}, {"\"q\"\\", 3}, {"\xc3\xa9\x01", 1}}, 3, &words);
    v[1] = build((counted[]){{"\xff", 2}, {"a", 3}}, 2, &bytes);
    ck_assert_int_eq(lam_vocab_create_bytes(&v[2]), LAM_OK);
    for (int i = 0; i < 3; i++) {
        int32_t *ids;
        size_t n;
        ck_assert_int_eq(lam_vocab_save(v[i], path), LAM_OK);
        ck_assert_int_eq(lam_vocab_load(&back, path), LAM_OK);
        check_same(v[i], back);
        ck_assert_int_eq(
            lam_vocab_encode(back, &ids, &n, i == 0 ? "\xc3\x89\x01" : "a\n", 3 - (i > 0)),
            LAM_OK); /* lower case and dropping are remembered */
        ck_assert_uint_eq(n, i == 2 ? 2 : 1);
        ck_assert_int_ne(ids[0], lam_vocab_unk(back));
        free(ids);
        lam_vocab_free(back);
        lam_vocab_free(v[i]);
    }
}
END_TEST

static const char *const damaged[] = {
    "",
    "[]",
    "{}",
    "{\"format\":\"lamemo-vocab\"}",
    "{\"format\":\"other\",\"version\":1,\"kind\":\"words\",\"lower\":false,\"drop_newlines\":"
    "false,"
    "\"symbols\":[\"<eos>\"],\"counts\":[1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":2,\"kind\":\"words\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":[\"<eos>\"],\"counts\":[1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"runes\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":[\"<eos>\"],\"counts\":[1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"words\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":[\"the\"],\"counts\":[1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"words\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":[\"<eos>\",\"<eos>\"],\"counts\":[1,1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"words\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":[\"<eos>\",3],\"counts\":[1,1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"words\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":[\"<eos>\"],\"counts\":[1,2]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"words\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":[\"<eos>\"],\"counts\":[-1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"words\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":{\"<eos>\":0},\"counts\":[1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"bytes\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":[256],\"counts\":[1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"bytes\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":[\"a\"],\"counts\":[1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"chars\",\"lower\":false,"
    "\"drop_newlines\":false,\"symbols\":[],\"counts\":[]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"chars\",\"lower\":false,\"size\":2,"
    "\"drop_newlines\":false,\"symbols\":[\"a\"],\"counts\":[1]}",
    "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"chars\",\"lower\":false,\"size\":\"1\","
    "\"drop_newlines\":false,\"symbols\":[\"a\"],\"counts\":[1]}",
};

START_TEST(damaged_files_are_refused_by_name)
{
    const char *path = test_temp_path("damaged.json");
    lam_vocab *v;
    ck_assert_int_eq(lam_file_save(path, damaged[_i], strlen(damaged[_i])), LAM_OK);
    ck_assert_int_eq(lam_vocab_load(&v, path), LAM_ERR_FORMAT);
    ck_assert_ptr_null(v);
    ck_assert_msg(strstr(lam_error(), "damaged.json") != NULL, "%s", lam_error());
    ck_assert_int_eq(lam_vocab_load(&v, "no/such.json"), LAM_ERR_IO);
}
END_TEST

static const lam_vocab_rules plain = {.kind = LAM_WORDS, .blanks = true, .unk = true};

START_TEST(without_memory_it_fails_cleanly)
{
    const char *path = test_temp_path("memory.json");
    lam_vocab *made = build(wiki, WIKI, &plain);
    for (long n = 1; test_alloc_fail(n); n++) {
        int32_t *ids = NULL;
        size_t count, size;
        char *text = NULL;
        lam_status status = lam_vocab_save(made, path); /* loading: see io/json.h */
        if (status == LAM_OK)
            status = lam_vocab_encode(made, &ids, &count, "the cat", 7);
        if (status == LAM_OK)
            status = lam_detok_all(made, &text, &size, ids, count);
        test_alloc_end(status);
        free(text);
        free(ids);
    }
    lam_vocab_free(made);
}
END_TEST

/* ---- readable text ---- */

static lam_status ignore_tokens(void *user, const int32_t *ids, size_t n)
{
    (void)user, (void)ids, (void)n;
    return LAM_OK;
}

static const struct {
    const char *words, *want;
} readable[] = {
    {"the cat sat", "the cat sat"},
    {"Hello , world !", "Hello, world!"},
    {"( a ) [ b ]", "(a) [b]"},
    {"it 's the boys ' do n't", "it's the boys' don't"},
    {"the 19 @-@ year @-@ old 1 @,@ 000 @.@ 5", "the 19-year-old 1,000.5"},
    {"he said \" yes \" and \" no . \"", "he said \"yes\" and \"no.\""},
    {"= Title = <eos> \" open <eos> a \" b \"", "= Title =\n\"open\na \"b\""},
    {"<eos> <eos> x", "\n\nx"},
    {"$ 5 # 3 50 %", "$5 #3 50%"},
};

/* A text of words and punctuation comes back as it was written. */
static const char *const written[] = {
    "Hello, world!",
    "He said: \"Don't you dare - I'm not 'ready' yet.\"",
    "(See f(x), [1] or {2}; 50% of $3,000.50 is #1...)",
    "well-known 19-year-olds, e.g. the U.S. and http://x.org/a_b?c=d&e=f",
    "a--b -- c/d and/or @name me@x.org \xe2\x80\x9cQuoted,\xe2\x80\x9d it\xe2\x80\x99s "
    "\xc2\xabs\xc2\xbb",
    "\xc3\x9c"
    "ber stra\xc3\x9f"
    "e 3\xe2\x82\xac \xd0\x9c\xd0\xb8\xd1\x80!\nnew line\n\nafter a blank one",
    "dogs' bones: \"\"empty\"\" -5 +3 *bold* <b> x^2 ~10 {{a}}",
};

START_TEST(text_comes_back_as_people_write_it)
{
    const char *text = written[_i];
    const lam_vocab_rules rules = {.kind = LAM_WORDS, .unk = true};
    lam_symbols *symbols;
    lam_tokenizer *t;
    lam_vocab *v;
    int64_t counts[256];
    int32_t *ids, numbers[256];
    size_t n, size;
    char *back;
    ck_assert_int_eq(lam_symbols_create(&symbols), LAM_OK);
    const lam_tokenizer_options how = {
        .kind = LAM_WORDS, .symbols = symbols, .sink = ignore_tokens};
    ck_assert_int_eq(lam_tokenizer_create(&t, &how), LAM_OK);
    ck_assert_int_eq(lam_tokenizer_feed(t, text, strlen(text)), LAM_OK);
    ck_assert_int_eq(lam_tokenizer_finish(t, LAM_TEXT_OPEN), LAM_OK);
    lam_tokenizer_free(t);
    for (int i = 0; i < 256; i++)
        counts[i] = 1;
    ck_assert_int_eq(lam_vocab_create(&v, numbers, symbols, counts, &rules), LAM_OK);
    const char *path = test_temp_path("words.json"); /* the file keeps the rule */
    ck_assert_int_eq(lam_vocab_save(v, path), LAM_OK);
    lam_vocab_free(v);
    ck_assert_int_eq(lam_vocab_load(&v, path), LAM_OK);
    ck_assert(!lam_vocab_blanks(v));
    ck_assert_int_eq(lam_vocab_encode(v, &ids, &n, text, strlen(text)), LAM_OK);
    ck_assert_int_eq(lam_detok_all(v, &back, &size, ids, n), LAM_OK);
    ck_assert_str_eq(back, text);
    free(back);
    free(ids);
    lam_vocab_free(v);
    lam_symbols_free(symbols);
}
END_TEST

START_TEST(a_vocabulary_without_the_rule_has_words_between_blanks)
{
    static const char old[] =
        "{\"format\":\"lamemo-vocab\",\"version\":1,\"kind\":\"words\",\"lower\":false,"
        "\"drop_newlines\":false,\"symbols\":[\"<eos>\",\"him,\",\"<unk>\"],"
        "\"counts\":[1,1,1]}";
    lam_vocab *v;
    int32_t *ids;
    size_t n;
    const char *path = test_temp_path("old.json");
    ck_assert_int_eq(lam_file_save(path, old, strlen(old)), LAM_OK);
    ck_assert_int_eq(lam_vocab_load(&v, path), LAM_OK);
    ck_assert(lam_vocab_blanks(v));
    ck_assert_int_eq(lam_vocab_encode(v, &ids, &n, "him, x", 6), LAM_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(ids[0], 1);
    free(ids);
    lam_vocab_free(v);
}
END_TEST

START_TEST(words_read_well)
{
    lam_symbols *symbols;
    lam_vocab *v;
    int64_t counts[64];
    int32_t *ids, numbers[64];
    size_t n, size;
    char *text, copy[256];
    ck_assert_int_eq(lam_symbols_create(&symbols), LAM_OK);
    snprintf(copy, sizeof copy, "%s", readable[_i].words);
    for (char *w = strtok(copy, " "); w != NULL; w = strtok(NULL, " ")) {
        int32_t id;
        ck_assert_int_eq(lam_symbols_add(symbols, w, strlen(w), &id), LAM_OK);
        counts[id] = 1;
    }
    ck_assert_int_eq(lam_vocab_create(&v, numbers, symbols, counts, &plain), LAM_OK);
    const char *words = readable[_i].words;
    ck_assert_int_eq(lam_vocab_encode(v, &ids, &n, words, strlen(words)), LAM_OK);
    ck_assert_int_eq(lam_detok_all(v, &text, &size, ids, n), LAM_OK);
    ck_assert_str_eq(text, readable[_i].want);
    ck_assert_uint_eq(size, strlen(text));
    free(text);
    free(ids);
    lam_vocab_free(v);
    lam_symbols_free(symbols);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, order_is_by_count_then_first_appearance);
    tcase_add_test(tests, rare_symbols_become_unk);
    tcase_add_test(tests, a_closed_vocabulary_has_no_way_out);
    tcase_add_test(tests, all_bytes_are_their_own_numbers);
    tcase_add_test(tests, enwik8_knows_no_newline);
    tcase_add_test(tests, messages_show_symbols_as_people_can_find_them);
    tcase_add_test(tests, a_prompt_of_words_follows_the_corpus);
    tcase_add_test(tests, a_saved_vocabulary_comes_back);
    tcase_add_loop_test(tests, damaged_files_are_refused_by_name, 0,
                        (int)(sizeof damaged / sizeof *damaged));
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    tcase_add_loop_test(tests, text_comes_back_as_people_write_it, 0,
                        (int)(sizeof written / sizeof *written));
    tcase_add_test(tests, a_vocabulary_without_the_rule_has_words_between_blanks);
    tcase_add_loop_test(tests, words_read_well, 0, (int)(sizeof readable / sizeof *readable));
    return test_run("data/vocab", tests);
}
