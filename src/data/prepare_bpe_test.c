/* prepare_bpe_test.c -- byte pairs from text to folder: the same bytes, documents, given vocabularies, any number of
 * threads. */
#include "data/prepare.h"

#include "core/file.h"
#include "data/bpe_train.h"
#include "data/detok.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/toy_bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lam_corpus *corpus;

static const char *save_text(const char *name, const char *text, size_t size)
{
    const char *path = test_temp_path(name);
    must(lam_file_save(path, text, size));
    return path;
}

static lam_prepare_options options_for(const char *const *inputs, int n)
{
    lam_prepare_options o = {.kind = LAM_BPE,
                             .min_count = 2,
                             .max_vocab = 300,
                             .threads = 1,
                             .replace = true,
                             .out = test_temp_path("corpus"),
                             .n_inputs = n,
                             .inputs = inputs};
    must(lam_division_parse(&o.division, "80/10/10", LAM_DIVISION_ANY));
    return o;
}

static void prepare_and_open(const lam_prepare_options *o)
{
    lam_corpus_info info;
    lam_corpus_close(corpus);
    must(lam_prepare(&info, o));
    lam_corpus_info_free(&info);
    must(lam_corpus_open(&corpus, o->out, LAM_CORPUS_VERIFY));
}

static void finish(void)
{
    lam_corpus_close(corpus);
    corpus = NULL;
}

/* The text of a split, special tokens as they are written; *size may be NULL. */
static char *split_text(lam_split s, size_t *size)
{
    const lam_tokens *t = &corpus->split[s];
    int32_t *ids = malloc(((size_t)t->count + 1) * sizeof *ids);
    char *text;
    size_t n;
    lam_tokens_copy(t, ids, 0, (size_t)t->count);
    must(lam_detok_all(corpus->vocab, &text, &n, ids, (size_t)t->count));
    free(ids);
    if (size)
        *size = n;
    return text;
}

static void check_split(lam_split s, const char *want)
{
    char *text = split_text(s, NULL);
    ck_assert_str_eq(text, want);
    free(text);
}

/* English-like, with bytes that are no text. */
static size_t fill(char *text, size_t room)
{
    static const char *const words[] = {"the ",   "cat ", "sat ",   "on ",
                                        "mat.\n", "a ",   "\xff\n", "\xc3\xa9t\xc3\xa9 "};
    lam_rng rng = test_rng(21);
    size_t n = 0;
    while (n + 10 < room) {
        const char *word = words[lam_rng_below(&rng, 8)];
        memcpy(text + n, word, strlen(word));
        n += strlen(word);
    }
    return n;
}

START_TEST(splits_hold_the_bytes_they_were_cut_from)
{
    static char text[20000];
    const size_t n = fill(text, sizeof text);
    const char *inputs[] = {save_text("b.txt", text, n)};
    const lam_prepare_options o = options_for(inputs, 1);
    prepare_and_open(&o);
    ck_assert_int_eq(corpus->info.kind, LAM_BPE);
    ck_assert_int_eq(corpus->info.metric, LAM_PPL);
    size_t at = 0;
    for (int s = 0; s < LAM_SPLITS; s++) {
        size_t size;
        char *part = split_text((lam_split)s, &size);
        const size_t want = s == LAM_TRAIN ? n * 8 / 10 : s == LAM_VALID ? n * 9 / 10 - at : n - at;
        ck_assert_uint_eq(size, want);
        ck_assert_mem_eq(part, text + at, size);
        at += size;
        free(part);
    }
    ck_assert_int_gt(lam_vocab_find(corpus->vocab, " the", 4), 255);
    ck_assert_int_lt(corpus->info.tokens[LAM_TRAIN], (int64_t)n / 3); /* merged, then */
    int64_t counted = 0;
    for (int32_t i = 0; i < lam_vocab_size(corpus->vocab); i++)
        counted += lam_vocab_count(corpus->vocab, i);
    ck_assert_int_eq(counted, corpus->info.tokens[LAM_TRAIN]);
}
END_TEST

/* Long enough for several chunks of 1 MiB. */
START_TEST(threads_do_not_show)
{
    const size_t room = 5 << 20;
    char *text = malloc(room), *files[2][3], *names[] = {"vocab.json", "train.bin", "test.bin"};
    const char *inputs[] = {save_text("t.txt", text, fill(text, room))};
    for (int i = 0; i < 2; i++) {
        lam_prepare_options o = options_for(inputs, 1);
        o.threads = 1 + 2 * i;
        prepare_and_open(&o);
        for (int k = 0; k < 3; k++) {
            char path[4096];
            size_t size;
            must(lam_path_join(path, sizeof path, o.out, names[k]));
            must(lam_file_load(&files[i][k], &size, path, 1 << 26));
            if (i > 0)
                ck_assert_mem_eq(files[0][k], files[1][k], size);
        }
    }
    for (int k = 0; k < 3; k++) {
        free(files[0][k]);
        free(files[1][k]);
    }
    free(text);
}
END_TEST

START_TEST(documents_are_separated_when_asked)
{
    const char *inputs[] = {save_text("1.txt", "the cat", 7), save_text("2.txt", "", 0),
                            save_text("3.txt", "sat", 3)};
    lam_prepare_options o = options_for(inputs, 3);
    must(lam_division_parse(&o.division, "0.5/0.4/0.1", LAM_DIVISION_ANY));
    prepare_and_open(&o);
    check_split(LAM_TRAIN, "the c");
    check_split(LAM_VALID, "atsa");
    check_split(LAM_TEST, "t");
    ck_assert_int_eq(lam_vocab_count(corpus->vocab, lam_vocab_eos(corpus->vocab)), 0);
    o.documents = LAM_DOCUMENTS_FILES;
    prepare_and_open(&o);
    check_split(LAM_TRAIN, "the cat<|endoftext|>"); /* whole documents */
    check_split(LAM_VALID, "sat<|endoftext|>");     /* an empty one is none */
    check_split(LAM_TEST, "");
    ck_assert_int_eq(corpus->info.separator, lam_vocab_eos(corpus->vocab));
    ck_assert_int_eq(corpus->info.documents[LAM_TRAIN], 1);
    ck_assert_int_eq(corpus->info.documents[LAM_VALID], 1);
    ck_assert_int_eq(corpus->info.documents[LAM_TEST], 0);
    ck_assert_int_eq(corpus->split[LAM_TRAIN].separator, corpus->info.separator);
    must(lam_division_parse(&o.division, "100/0/0", LAM_DIVISION_ANY));
    prepare_and_open(&o);
    check_split(LAM_TRAIN, "the cat<|endoftext|>sat<|endoftext|>");
    ck_assert_int_eq(lam_vocab_count(corpus->vocab, lam_vocab_eos(corpus->vocab)), 2);
}
END_TEST

START_TEST(special_tokens_are_text_unless_asked)
{
    static const char text[] = "one<|endoftext|>two<|endoftext|>";
    const char *inputs[] = {save_text("s.txt", text, sizeof text - 1)};
    lam_prepare_options o = options_for(inputs, 1);
    o.max_vocab = LAM_BPE_SMALLEST;
    must(lam_division_parse(&o.division, "100/0/0", LAM_DIVISION_ANY));
    prepare_and_open(&o);
    ck_assert_int_eq(corpus->info.tokens[LAM_TRAIN], (int64_t)sizeof text - 1);
    o.special = LAM_SPECIAL_READ;
    prepare_and_open(&o);
    ck_assert_int_eq(corpus->info.tokens[LAM_TRAIN], 3 + 1 + 3 + 1);
    check_split(LAM_TRAIN, text);
}
END_TEST

START_TEST(a_given_vocabulary_is_used_and_counted_once)
{
    const char *inputs[] = {save_text("g.txt", "the the and e\xcc\x81", 15)};
    lam_prepare_options o = options_for(inputs, 1);
    lam_vocab *given = toy_bpe_english();
    must(lam_division_parse(&o.division, "100/0/0", LAM_DIVISION_ANY));
    o.vocab = given;
    o.vocab_name = "toy";
    prepare_and_open(&o);
    must(lam_vocab_same(given, corpus->vocab, "corpus"));
    ck_assert(lam_vocab_alike(given, corpus->vocab));
    ck_assert_int_eq(corpus->info.tokens[LAM_TRAIN], 7); /* the| the| and| |e|cc|81 */
    const int32_t the = lam_vocab_find(given, " the", 4);
    ck_assert_int_eq(lam_vocab_count(corpus->vocab, the), 1);
    lam_vocab_free(given);

    must(lam_vocab_load(&given, test_temp_path("corpus/vocab.json")));
    const char *others[] = {save_text("h.txt", " the the the", 12)};
    o.vocab = given; /* counted: the counts stay those of the first text */
    o.inputs = others;
    prepare_and_open(&o);
    ck_assert_int_eq(lam_vocab_count(corpus->vocab, the), 1);
    lam_vocab_free(given);

    const toy_merge merges[] = {{"\xc3", "\xa9"}};
    given = toy_bpe(merges, 1, &(lam_bpe_rules){.nfc = true}, false);
    o.vocab = given;
    o.inputs = inputs;
    prepare_and_open(&o);
    check_split(LAM_TRAIN, "the the and \xc3\xa9");
    lam_vocab_free(given);
}
END_TEST

static int stop(void *user, const lam_prepare_progress *p)
{
    return strcmp(p->stage, user) == 0;
}

START_TEST(it_can_be_stopped_in_every_stage)
{
    static const char *const stages[] = {"reading", "counting", "merging", "writing"};
    static char text[20000];
    const char *inputs[] = {save_text("p.txt", text, fill(text, sizeof text))};
    lam_prepare_options o = options_for(inputs, 1);
    lam_corpus_info info;
    o.out = test_temp_path("never");
    o.max_vocab = 1000;
    o.min_count = 1;
    o.progress = stop;
    o.user = (void *)stages[_i];
    ck_assert_int_eq(lam_prepare(&info, &o), LAM_ERR_INTERRUPTED);
    ck_assert_ptr_nonnull(strstr(lam_error(), stages[_i]));
    ck_assert(!lam_path_exists(o.out));
    lam_corpus_info_free(&info);
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    static const char text[] = "the cat sat on the mat\n";
    const char *inputs[] = {save_text("m.txt", text, sizeof text - 1)};
    lam_prepare_options o = options_for(inputs, 1);
    o.max_vocab = 260;
    o.documents = LAM_DOCUMENTS_FILES;
    o.out = test_temp_path("memory");
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_corpus_info info;
        const lam_status status = lam_prepare(&info, &o);
        const int failed = test_alloc_end(status);
        ck_assert(!failed || !lam_path_exists(o.out));
        lam_corpus_info_free(&info);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    test_temp_in_memory();
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, NULL, finish);
    tcase_add_test(tests, splits_hold_the_bytes_they_were_cut_from);
    tcase_add_test(tests, threads_do_not_show);
    tcase_add_test(tests, documents_are_separated_when_asked);
    tcase_add_test(tests, special_tokens_are_text_unless_asked);
    tcase_add_test(tests, a_given_vocabulary_is_used_and_counted_once);
    tcase_add_loop_test(tests, it_can_be_stopped_in_every_stage, 0, 4);
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("data/prepare_bpe", tests);
}
