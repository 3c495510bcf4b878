/* corpus_test.c -- a corpus folder whose parts disagree, or were swapped or damaged, is not opened. */
#include "data/corpus.h"

#include "core/file.h"
#include "data/prepare.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Twenty bytes, of which the first sixteen are for training; returns the folder. */
static const char *make_corpus(void)
{
    const char *const text = test_temp_path("a.txt");
    lam_prepare_options o = {.kind = LAM_BYTES,
                             .min_count = 1,
                             .replace = true,
                             .out = test_temp_path("corpus"),
                             .n_inputs = 1,
                             .inputs = &text};
    lam_corpus_info info;
    must(lam_file_save(text, "abcdefghijklmnopqrst", 20));
    must(lam_division_parse(&o.division, "80/10/10", LAM_DIVISION_ANY));
    must(lam_dir_remove(o.out)); /* a test may have left one that is no corpus any more */
    must(lam_prepare(&info, &o));
    lam_corpus_info_free(&info);
    return o.out;
}

static void replace_in_file(const char *dir, const char *const change[3])
{
    const char *from = change[1], *to = change[2];
    char path[512], *text, *at;
    size_t size;
    must(lam_path_join(path, sizeof path, dir, change[0]));
    must(lam_file_load(&text, &size, path, 1 << 20));
    ck_assert_ptr_nonnull(at = strstr(text, from));
    char *changed = calloc(1, size + 100);
    memcpy(changed, text, (size_t)(at - text));
    strcat(strcat(changed, to), at + strlen(from));
    must(lam_file_save(path, changed, strlen(changed)));
    free(changed);
    free(text);
}

static const char *const changes[][3] = {
    {"corpus.json", "\"vocab_size\": 256", "\"vocab_size\": 255"},
    {"corpus.json", "\"train\": 16", "\"train\": 15"},
    {"corpus.json", "\"kind\": \"bytes\"", "\"kind\": \"bits\""},
    {"corpus.json", "\"kind\": \"bytes\"", "\"kind\": \"words\""},
    {"corpus.json", "\"kind\": \"bytes\"", "\"kind\": \"chars\""},
    {"vocab.json", "\"size\": 256", "\"size\": 255"},
    {"corpus.json", "\"metric\": \"bpc\"", "\"metric\": \"\""},
    {"corpus.json", "\"version\": 1", "\"version\": 9"},
    {"corpus.json", "\"md5\"", "\"md6\""},
    {"corpus.json", "lamemo-corpus", "lamemo-corps"},
    {"corpus.json", "\"like\"", "\"love\""},
    {"corpus.json", "{", "["},
    {"vocab.json", "\"kind\": \"bytes\"", "\"kind\": \"chars\""},
};

/* Its first byte is token 0, which ends no document. */
START_TEST(a_text_is_a_test_split_without_documents)
{
    lam_vocab *vocab;
    lam_corpus *c;
    must(lam_vocab_create_bytes(&vocab));
    must(lam_corpus_of_text(&c, "a text", vocab, "\0ab", 3));
    ck_assert_int_eq(c->split[LAM_TEST].count, 3);
    ck_assert_int_eq(c->split[LAM_TEST].separator, -1);
    ck_assert_double_eq(lam_tokens_bytes(&c->split[LAM_TEST]), 3);
    ck_assert_int_eq(c->split[LAM_TRAIN].count, 0);
    lam_corpus_close(c);
    ck_assert_int_eq(lam_vocab_size(vocab), 256); /* kept, not owned */
    lam_vocab_free(vocab);
}
END_TEST

START_TEST(parts_that_disagree_are_refused)
{
    const char *const dir = make_corpus();
    lam_corpus *none;
    replace_in_file(dir, changes[_i]);
    ck_assert_int_eq(lam_corpus_open(&none, dir, LAM_CORPUS_TRUST), LAM_ERR_FORMAT);
    ck_assert_ptr_null(none);
    ck_assert_ptr_nonnull(strstr(lam_error(), "corpus/"));
}
END_TEST

START_TEST(swapped_or_damaged_splits_are_refused)
{
    char train[512], valid[512], *text;
    size_t size;
    lam_corpus *none;
    const char *const dir = make_corpus();
    must(lam_path_join(train, sizeof train, dir, "train.bin"));
    must(lam_path_join(valid, sizeof valid, dir, "valid.bin"));
    must(lam_file_load(&text, &size, train, 1 << 20));
    text[70] ^= 1;
    must(lam_file_save(train, text, size));
    ck_assert_int_eq(lam_corpus_open(&none, dir, LAM_CORPUS_VERIFY), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "train.bin: the checksum of the tokens is wrong"));
    text[70] ^= 1;
    must(lam_file_save(valid, text, size));
    must(lam_file_save(train, text, size));
    ck_assert_int_eq(lam_corpus_open(&none, dir, LAM_CORPUS_TRUST), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "valid.bin: holds the train split"));
    ck_assert_int_eq(remove(valid), 0);
    ck_assert_int_eq(lam_corpus_open(&none, dir, LAM_CORPUS_TRUST), LAM_ERR_IO);
    free(text);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, parts_that_disagree_are_refused, 0,
                        (int)(sizeof changes / sizeof *changes));
    tcase_add_test(tests, a_text_is_a_test_split_without_documents);
    tcase_add_test(tests, swapped_or_damaged_splits_are_refused);
    return test_run("data/corpus", tests);
}
