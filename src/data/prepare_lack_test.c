/* prepare_lack_test.c -- a text prepared with a given vocabulary: numbers, <unk>, and what is refused, where. */
#include "core/file.h"
#include "data/prepare.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

static lam_corpus_info info;
static lam_corpus *corpus;
static lam_vocab *vocab;

/* Single bytes, characters or (separated by blanks) words, in the order of their numbers; counts 7. */
static void make_vocab(lam_text_kind kind, const char *symbols, const lam_vocab_rules *how)
{
    lam_symbol list[32];
    size_t n = 0;
    lam_vocab_rules rules = *how;
    rules.kind = kind;
    rules.blanks = true;
    for (const char *at = symbols; *at != '\0'; n++) {
        const size_t size = kind == LAM_WORDS || strcmp(at, "<unk>") == 0 ? strcspn(at, " ") : 1;
        list[n] = (lam_symbol){at, size, 7};
        at += size + (kind == LAM_WORDS && at[size] == ' ');
    }
    must(lam_vocab_create_list(&vocab, list, n, &rules));
}

static const char *save_text(const char *name, const char *text)
{
    const char *path = test_temp_path(name);
    must(lam_file_save(path, text, strlen(text)));
    return path;
}

static lam_prepare_options options_for(const char *const *inputs, int n, const char *division)
{
    lam_prepare_options o = {.vocab = vocab,
                             .vocab_name = "the model",
                             .replace = true,
                             .out = test_temp_path("corpus"),
                             .n_inputs = n,
                             .inputs = inputs};
    must(lam_division_parse(&o.division, division, LAM_DIVISION_ANY));
    return o;
}

static lam_status prepare(const char *const *inputs, int n, const char *division)
{
    const lam_prepare_options o = options_for(inputs, n, division);
    lam_corpus_info_free(&info);
    return lam_prepare(&info, &o);
}

static lam_status prepare_text(const char *text, const char *division)
{
    const char *path = save_text("t.txt", text);
    return prepare(&path, 1, division);
}

/* The training split has these numbers, and the folder has the given vocabulary. */
static void has(const int32_t *want, int n)
{
    must(lam_corpus_open(&corpus, test_temp_path("corpus"), LAM_CORPUS_VERIFY));
    ck_assert_int_eq(corpus->split[LAM_TRAIN].count, n);
    for (int i = 0; i < n; i++) {
        int32_t id;
        lam_tokens_copy(&corpus->split[LAM_TRAIN], &id, i, 1);
        ck_assert_int_eq(id, want[i]);
    }
    must(lam_vocab_same(vocab, corpus->vocab, "corpus"));
    ck_assert(lam_vocab_alike(vocab, corpus->vocab));
    ck_assert_int_eq(lam_vocab_count(corpus->vocab, 0), 7); /* of the text it was made from */
    ck_assert_int_eq(info.vocab_size, lam_vocab_size(vocab));
    ck_assert_int_eq(info.kind, lam_vocab_kind(vocab));
}

START_TEST(characters_get_the_given_numbers)
{
    make_vocab(LAM_CHARS, "zcb\na", &(lam_vocab_rules){0});
    must(prepare_text("abc\na", "100/0/0"));
    has((int32_t[]){4, 2, 1, 3, 4}, 5);
    ck_assert_int_eq(info.metric, LAM_BPC);
}
END_TEST

START_TEST(other_words_become_unk_by_the_given_rules)
{
    make_vocab(LAM_WORDS, "<eos> the <unk> cat", &(lam_vocab_rules){.lower = true});
    must(prepare_text("The dog\nCAT <unk>\n", "100/0/0"));
    has((int32_t[]){1, 2, 0, 3, 2, 0}, 6);
    ck_assert_int_eq(info.unknown[LAM_TRAIN], 1); /* the other one was there before */
    ck_assert_int_eq(info.metric, LAM_PPL);
}
END_TEST

START_TEST(other_characters_become_unk_too)
{
    make_vocab(LAM_CHARS, "ab<unk>", &(lam_vocab_rules){0});
    must(prepare_text("abxa\n", "100/0/0"));
    has((int32_t[]){0, 1, 2, 0, 2}, 5);
    ck_assert_int_eq(info.unknown[LAM_TRAIN], 2);
}
END_TEST

START_TEST(newlines_go_where_the_vocabulary_leaves_them_out)
{
    make_vocab(LAM_BYTES, "ba", &(lam_vocab_rules){.drop_newlines = true});
    must(prepare_text("a\nb\n\na", "100/0/0"));
    has((int32_t[]){1, 0, 1}, 3);
}
END_TEST

static const struct {
    lam_text_kind kind;
    const char *symbols, *text, *want;
} lacking[] = {
    {LAM_CHARS, "ab\n", "ab\nab\xc3\xa9\n",
     "t.txt, line 2, character 3: '\xc3\xa9' (U+00E9) is not in the vocabulary of the model, which "
     "has no <unk>: replace or remove it"},
    {LAM_CHARS, "ab", "abab\n", "t.txt, line 1, character 5: byte 10 is not in"},
    {LAM_CHARS, "ab\n", "ab\n\n\nxyxz", "t.txt, line 4, character 1: 'x' is not in"},
    {LAM_CHARS, "ab\n", "axyxz",
     "which has no <unk>, nor are 2 other symbols of the text: replace or remove them"},
    {LAM_CHARS, "ab\n", "axxy", "nor is 1 other symbol of the text: replace or remove them"},
    {LAM_BYTES, "ab\n", "a\nab\xff", "t.txt, line 2, byte 3: byte 255 is not in"},
    {LAM_WORDS, "<eos> a b", "a b\na\n\nb a dog", "t.txt, line 4, word 3: 'dog' is not in"},
};

START_TEST(without_unk_the_first_of_others_is_named_with_its_place)
{
    make_vocab(lacking[_i].kind, lacking[_i].symbols, &(lam_vocab_rules){0});
    ck_assert_int_eq(prepare_text(lacking[_i].text, "100/0/0"), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), lacking[_i].want) != NULL, "%s", lam_error());
    ck_assert(!lam_path_exists(test_temp_path("corpus")));
}
END_TEST

/* In the second of three files, and far into it: many blocks of symbols. */
START_TEST(the_place_is_in_the_file_that_has_it)
{
    enum { LINES = 50000 };
    char *text = malloc(3 * LINES + 8);
    for (int i = 0; i < LINES; i++)
        memcpy(text + 3 * i, "ba\n", 3);
    strcpy(text + 3 * LINES, "abax");
    const char *inputs[] = {save_text("1.txt", "ab\nab\n"), save_text("2.txt", text),
                            save_text("3.txt", "ay\n")};
    make_vocab(LAM_CHARS, "ab\n", &(lam_vocab_rules){0});
    ck_assert_int_eq(prepare(inputs, 3, "100/0/0"), LAM_ERR_FORMAT);
    ck_assert_msg(
        strstr(lam_error(), "2.txt, line 50001, character 4: 'x' is not in the vocabulary") != NULL,
        "%s", lam_error());
    free(text);
}
END_TEST

START_TEST(what_is_not_used_may_have_any_symbols)
{
    make_vocab(LAM_CHARS, "ab", &(lam_vocab_rules){0});
    must(prepare_text("abbabax", "0.004k/0.001k/0.001k"));
    has((int32_t[]){0, 1, 1, 0}, 4);
    ck_assert_int_eq(prepare_text("abbabxx", "0.004k/0.001k/0.001k"), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "line 1, character 6: 'x'") != NULL, "%s", lam_error());
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    make_vocab(LAM_WORDS, "<eos> the <unk> cat", &(lam_vocab_rules){0});
    const char *path = save_text("t.txt", "the cat\nand the dog\n");
    const lam_prepare_options o = options_for(&path, 1, "100/0/0");
    const int names = test_temp_count();
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = lam_prepare(&info, &o);
        lam_corpus_info_free(&info);
        const int failed = test_alloc_end(status);
        ck_assert_int_eq(test_temp_count(), names + !failed);
    }
}
END_TEST

static void finish(void)
{
    lam_corpus_close(corpus);
    corpus = NULL;
    lam_vocab_free(vocab);
    vocab = NULL;
    lam_corpus_info_free(&info);
    lam_dir_remove(test_temp_path("corpus"));
}

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, NULL, finish);
    tcase_add_test(tests, characters_get_the_given_numbers);
    tcase_add_test(tests, other_words_become_unk_by_the_given_rules);
    tcase_add_test(tests, other_characters_become_unk_too);
    tcase_add_test(tests, newlines_go_where_the_vocabulary_leaves_them_out);
    tcase_add_loop_test(tests, without_unk_the_first_of_others_is_named_with_its_place, 0,
                        (int)(sizeof lacking / sizeof *lacking));
    tcase_add_test(tests, the_place_is_in_the_file_that_has_it);
    tcase_add_test(tests, what_is_not_used_may_have_any_symbols);
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("data/prepare_lack", tests);
}
