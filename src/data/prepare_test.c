/* prepare_test.c -- from text to folder and back: rules, checks, failures that leave nothing. */
#include "data/prepare.h"

#include "core/file.h"
#include "data/detok.h"
#include "support/alloc.h"
#include "support/fault.h"
#include "support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *save_text(const char *name, const char *text, size_t size)
{
    const char *path = test_temp_path(name);
    ck_assert_int_eq(lam_file_save(path, text, size), LAM_OK);
    return path;
}

static lam_corpus_info info;
static lam_corpus *corpus;

static lam_prepare_options options_for(lam_text_kind kind, const char *const *inputs, int n)
{
    lam_prepare_options o = {.kind = kind,
                             .min_count = 1,
                             .replace = true,
                             .out = test_temp_path("corpus"),
                             .n_inputs = n,
                             .inputs = inputs};
    ck_assert_int_eq(lam_division_parse(&o.division, "80/10/10", LAM_DIVISION_ANY), LAM_OK);
    return o;
}

static void prepare_and_open(const lam_prepare_options *o)
{
    lam_corpus_close(corpus);
    lam_corpus_info_free(&info);
    const lam_status status = lam_prepare(&info, o);
    ck_assert_msg(status == LAM_OK, "%s", lam_error());
    ck_assert_msg(lam_corpus_open(&corpus, o->out, LAM_CORPUS_VERIFY) == LAM_OK, "%s", lam_error());
    ck_assert_str_eq(corpus->info.name, info.name);
    for (int s = 0; s < LAM_SPLITS; s++) {
        ck_assert_int_eq(corpus->info.tokens[s], info.tokens[s]);
        ck_assert_int_eq(corpus->info.unknown[s], info.unknown[s]);
    }
    ck_assert_int_eq(corpus->info.original, info.original);
    ck_assert_str_eq(corpus->info.like, info.like);
    ck_assert_int_eq(corpus->info.n_sources, info.n_sources);
}

static lam_status prepare_only(const lam_prepare_options *o)
{
    lam_corpus_info_free(&info);
    return lam_prepare(&info, o);
}

/* The symbols of a split, joined by '|'. */
static const char *split_text(lam_split s)
{
    static char text[4096];
    const lam_tokens *t = &corpus->split[s];
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < t->count; i++) {
        int32_t id;
        size_t size;
        lam_tokens_copy(t, &id, i, 1);
        const char *symbol = lam_vocab_symbol(corpus->vocab, id, &size);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i > 0 ? "|" : "",
                                 (int)size, symbol);
    }
    return text;
}

/* The bytes of text of the splits; their tokens know them, too. */
static void check_bytes(int64_t train, int64_t valid, int64_t test)
{
    const int64_t want[] = {train, valid, test};
    for (int s = 0; s < LAM_SPLITS; s++) {
        const lam_tokens *t = &corpus->split[s];
        ck_assert_int_eq(corpus->info.bytes[s], want[s]);
        if (want[s] > 0)
            ck_assert_double_eq_tol(lam_tokens_bytes(t) * t->scale, (double)want[s], 1e-9);
    }
}

START_TEST(bytes_keep_everything)
{
    char text[1000];
    for (int i = 0; i < 1000; i++)
        text[i] = (char)(i * 7);
    const char *inputs[] = {save_text("b.txt", text, 1000)};
    const lam_prepare_options o = options_for(LAM_BYTES, inputs, 1);
    prepare_and_open(&o);
    ck_assert_int_eq(info.vocab_size, 256);
    ck_assert_int_eq(info.metric, LAM_BPC);
    ck_assert_str_eq(info.name, "b");
    ck_assert_int_eq(corpus->split[LAM_TRAIN].count, 800);
    ck_assert_mem_eq(corpus->split[LAM_TRAIN].ids, text, 800);
    ck_assert_mem_eq(corpus->split[LAM_VALID].ids, text + 800, 100);
    ck_assert_mem_eq(corpus->split[LAM_TEST].ids, text + 900, 100);
    ck_assert_int_eq(info.sources[0].bytes, 1000);
    check_bytes(800, 100, 100);
}
END_TEST

START_TEST(characters_are_ordered_by_count)
{
    const char text[] = "b\xc3\xa9\x61\x61\x62\xc3\xa9\x61\x61xc"; /* béaabéaaxc */
    const char *inputs[] = {save_text("c.txt", text, sizeof text - 1)};
    const lam_prepare_options o = options_for(LAM_CHARS, inputs, 1);
    prepare_and_open(&o);
    ck_assert_str_eq(split_text(LAM_TRAIN), "b|\xc3\xa9|a|a|b|\xc3\xa9|a|a");
    ck_assert_str_eq(split_text(LAM_TEST), "c");
    check_bytes(10, 1, 1);
    size_t size;
    ck_assert_str_eq(lam_vocab_symbol(corpus->vocab, 0, &size), "a");
    ck_assert_str_eq(lam_vocab_symbol(corpus->vocab, 1, &size), "b"); /* before é: it came first */
    ck_assert_int_eq(info.vocab_size, 5);
}
END_TEST

START_TEST(words_are_cut_at_lines_and_rare_ones_go)
{
    const char *text = "a a b\na b c\n\na d\nx a\ny b\n";
    const char *inputs[] = {save_text("w.txt", text, strlen(text))};
    lam_prepare_options o = options_for(LAM_WORDS, inputs, 1);
    o.min_count = 2;
    /* 18 tokens: 80 % ends in "x a", which goes to train whole; 90 % ends in the line after */
    prepare_and_open(&o);
    ck_assert_str_eq(split_text(LAM_TRAIN),
                     "a|a|b|<eos>|a|b|<unk>|<eos>|<eos>|a|<unk>|<eos>|<unk>|a|<eos>");
    ck_assert_str_eq(split_text(LAM_VALID), "<unk>|b|<eos>");
    ck_assert_int_eq(info.tokens[LAM_TEST], 0);
    ck_assert_int_eq(info.unknown[LAM_TRAIN], 3);
    ck_assert_int_eq(info.unknown[LAM_VALID], 1);
    check_bytes(21, 4, 0); /* of 25; the empty line's end is shared out */
    ck_assert_int_eq(info.vocab_size, 4);
    ck_assert_int_eq(info.metric, LAM_PPL);
    o.min_count = 1;
    o.max_vocab = 3;
    prepare_and_open(&o);
    ck_assert_str_eq(split_text(LAM_VALID), "<unk>|<unk>|<eos>");
    o.max_vocab = 0;
    o.lower = true;
    const char *more[] = {inputs[0], save_text("w2.txt", "A B", 3)};
    o.inputs = more;
    o.n_inputs = 2; /* one text after the other */
    prepare_and_open(&o);
    ck_assert_int_eq(info.tokens[0] + info.tokens[1] + info.tokens[2], 21);
    ck_assert_int_eq(lam_vocab_find(corpus->vocab, "A", 1), -1);
}
END_TEST

/* ---- folders ---- */

static const char *make_folder(const char *before, const char *after)
{
    const char *dir = test_temp_path("folder");
    static const char *const texts[] = {"b a\n a <unk>\n", "a b\n", " \nb"};
    char path[512], name[64];
    lam_dir_remove(dir);
    ck_assert_int_eq(lam_dir_make(dir), LAM_OK);
    for (int s = 0; s < LAM_SPLITS; s++) {
        snprintf(name, sizeof name, "%s%s%s", before, lam_split_name((lam_split)s), after);
        ck_assert_int_eq(lam_path_join(path, sizeof path, dir, name), LAM_OK);
        ck_assert_int_eq(lam_file_save(path, texts[s], strlen(texts[s])), LAM_OK);
    }
    return dir;
}

START_TEST(folders_keep_their_splits)
{
    static const char *const patterns[][2] = {{"", ".txt"}, {"wiki.", ".tokens"}, {"ptb.", ".txt"}};
    const char *inputs[] = {make_folder(patterns[_i][0], patterns[_i][1])};
    lam_prepare_options o = options_for(LAM_WORDS, inputs, 1);
    o.published = lam_published_find("wt103");
    o.force = true;
    prepare_and_open(&o);
    ck_assert_str_eq(split_text(LAM_TRAIN), "b|a|<eos>|a|<unk>|<eos>");
    ck_assert_str_eq(split_text(LAM_VALID), "a|b|<eos>");
    ck_assert_str_eq(split_text(LAM_TEST), "<eos>|b|<eos>");
    check_bytes(13, 4, 3); /* as the files are */
    ck_assert_str_eq(info.like, "wt103");
    ck_assert(!info.original);
    ck_assert_str_eq(info.name, "folder");
    size_t size; /* <eos> first, then by count in train, ties as they appeared */
    ck_assert_str_eq(lam_vocab_symbol(corpus->vocab, 0, &size), "<eos>");
    ck_assert_str_eq(lam_vocab_symbol(corpus->vocab, 1, &size), "a");
    ck_assert_str_eq(lam_vocab_symbol(corpus->vocab, 2, &size), "b");
    ck_assert_str_eq(lam_vocab_symbol(corpus->vocab, 3, &size), "<unk>");

    o.force = false; /* what differs is said, and nothing is written */
    o.out = test_temp_path("never");
    ck_assert_int_eq(prepare_only(&o), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "this is not wt103: train has 6 tokens, not 103227021");
    ck_assert(!lam_path_exists(o.out));
}
END_TEST

START_TEST(a_word_that_train_lacks_needs_an_unk)
{
    char path[512];
    const char *inputs[] = {make_folder("", ".txt")};
    ck_assert_int_eq(lam_path_join(path, sizeof path, inputs[0], "train.txt"), LAM_OK);
    ck_assert_int_eq(lam_file_save(path, "a\n", 2), LAM_OK);
    lam_prepare_options o = options_for(LAM_WORDS, inputs, 1);
    o.published = lam_published_find("wt103");
    o.force = true;
    ck_assert_int_eq(prepare_only(&o), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "valid has 'b', which train lacks; there is no <unk>");
    o.published = lam_published_find("wt2"); /* counts on all splits */
    prepare_and_open(&o);
    ck_assert_int_eq(info.vocab_size, 3);
}
END_TEST

/* ---- enwik8 and text8, on stand-ins ---- */

START_TEST(enwik8_loses_its_newlines_after_the_cut)
{
    char text[100];
    memset(text, 'x', sizeof text);
    for (int i = 4; i < 100; i += 5)
        text[i] = '\n';
    memcpy(text + 90, "y\ny\ny", 5);
    const char *inputs[] = {save_text("mine", text, 100)};
    lam_prepare_options o = options_for(LAM_BYTES, inputs, 1);
    o.published = lam_published_find("enwik8");
    o.force = true;
    prepare_and_open(&o);
    ck_assert_int_eq(info.tokens[LAM_TRAIN], 90 - 18);
    ck_assert_str_eq(split_text(LAM_VALID), "y|y|y");
    ck_assert_str_eq(split_text(LAM_TEST), "x|x|x|x");
    ck_assert_int_eq(info.vocab_size, 2);
    ck_assert_str_eq(info.name, "mine");

    o.force = false;
    ck_assert_int_eq(prepare_only(&o), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "mine is not enwik8: it has 100 bytes, not 100000000");
}
END_TEST

START_TEST(text8_is_stripped_split_by_split)
{
    char text[101];
    memset(text, 'x', 100);
    memcpy(text, "  a b", 5);
    memcpy(text + 89, " c", 2); /* a blank on either side of the cut at 90, and of the end */
    memcpy(text + 93, "  ", 2);
    memcpy(text + 95, " d e ", 5);
    const char *inputs[] = {save_text("mine", text, 100)};
    lam_prepare_options o = options_for(LAM_CHARS, inputs, 1);
    o.published = lam_published_find("text8");
    o.force = true;
    prepare_and_open(&o);
    ck_assert_int_eq(info.tokens[LAM_TRAIN], 90 - 2 - 1);
    ck_assert_str_eq(split_text(LAM_VALID), "c|x|x");
    ck_assert_str_eq(split_text(LAM_TEST), "d| |e");
    /* what was stripped is not counted either */
    ck_assert_int_eq(lam_vocab_count(corpus->vocab, lam_vocab_find(corpus->vocab, " ", 1)), 2);
}
END_TEST

START_TEST(a_stand_in_never_carries_a_published_name)
{
    static const char *const names[] = {"enwik8", "text8", "WikiText-103", "PTB"};
    const char *inputs[] = {save_text("enwik8", "some text", 9)};
    lam_prepare_options o = options_for(LAM_BYTES, inputs, 1);
    prepare_and_open(&o);
    ck_assert_str_eq(info.name, "enwik8-own");
    for (int i = 0; i < 4; i++) {
        o.name = names[i];
        ck_assert_int_eq(prepare_only(&o), LAM_ERR_ARG);
    }
    o.name = NULL;
    o.published = lam_published_find("enwik8");
    o.force = true;
    prepare_and_open(&o);
    ck_assert_str_eq(info.name, "enwik8-altered");
    ck_assert(!info.original);
    o.name = "text8";
    ck_assert_int_eq(prepare_only(&o), LAM_ERR_FORMAT);
    o.name = "mine";
    prepare_and_open(&o);
    ck_assert_str_eq(info.name, "mine");
}
END_TEST

/* ---- errors ---- */

/* Every write, fsync and rename fails once: the old corpus stays, and nothing lies around. */
START_TEST(a_failure_leaves_the_old_corpus_alone)
{
    const char *inputs[] = {save_text("old.txt", "a b c d e f g h i j", 19)};
    const char *later[] = {save_text("new.txt", "k l m n", 7)};
    const lam_prepare_options old = options_for(LAM_BYTES, inputs, 1);
    const lam_prepare_options new = options_for(LAM_BYTES, later, 1);
    prepare_and_open(&old);
    const int names = test_temp_count();
    int failures = 0, kept = 0;
    for (int n = 1; test_fault_at(n, ENOSPC); n++) {
        const lam_status status = prepare_only(&new);
        ck_assert(status == LAM_OK || test_fault_happened());
        lam_corpus_close(corpus);
        must(lam_corpus_open(&corpus, old.out, LAM_CORPUS_VERIFY));
        if (status == LAM_OK)
            ck_assert_str_eq(corpus->info.name, "new");
        failures += status != LAM_OK;
        kept += strcmp(corpus->info.name, "old") == 0;
        ck_assert_int_eq(test_temp_count(), names);
        lam_file_fault = NULL;
        prepare_and_open(&old);
    }
    ck_assert_int_gt(failures, 10);
    /* The last is the fsync of the parent, when the new one is in place. */
    ck_assert_int_eq(kept, failures - 1);
}
END_TEST

/* The same for memory: whichever allocation fails, nothing is left, and nothing leaks. */
START_TEST(without_memory_it_fails_cleanly)
{
    const char *inputs[] = {save_text("m.txt", "a b a\nb c\na d\n", 14)};
    lam_prepare_options o = options_for((lam_text_kind)_i, inputs, 1);
    o.out = test_temp_path("memory");
    const int names = test_temp_count();
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = lam_prepare(&info, &o);
        lam_corpus_info_free(&info);
        const int failed = test_alloc_end(status);
        if (test_temp_count() != names + !failed)
            ck_abort_msg("allocation %ld left something behind", n);
        lam_dir_remove(o.out);
    }
}
END_TEST

static int stop_at_once(void *user, const lam_prepare_progress *p)
{
    (void)user, (void)p;
    return 1;
}

START_TEST(bad_input_leaves_nothing)
{
    const char *inputs[] = {save_text("bad.txt", "abc\xff", 4)}, *empty[] = {save_text("e", "", 0)};
    const char *missing[] = {"no/such/file"};
    lam_prepare_options o = options_for(LAM_CHARS, inputs, 1);
    o.out = test_temp_path("nothing");
    const int names = test_temp_count();
    ck_assert_int_eq(prepare_only(&o), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "bad.txt: not valid UTF-8 at byte 3"));
    o.inputs = empty;
    ck_assert_int_eq(prepare_only(&o), LAM_ERR_FORMAT);
    o.inputs = missing;
    ck_assert_int_eq(prepare_only(&o), LAM_ERR_IO);
    o.inputs = inputs;
    o.kind = LAM_BYTES;
    o.progress = stop_at_once;
    ck_assert_int_eq(prepare_only(&o), LAM_ERR_INTERRUPTED);
    ck_assert_int_eq(test_temp_count(), names);
}
END_TEST

START_TEST(other_peoples_folders_are_not_touched)
{
    char path[512];
    const char *inputs[] = {save_text("t.txt", "text", 4)}, *dir = test_temp_path("precious");
    lam_prepare_options o = options_for(LAM_BYTES, inputs, 1);
    o.out = dir;
    ck_assert_int_eq(lam_dir_make(dir), LAM_OK);
    prepare_and_open(&o); /* an empty folder is fine */
    o.replace = false;
    ck_assert_int_eq(prepare_only(&o), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "there is a corpus already"));

    static const char *const marked[] = {"corpus.json", "vocab.json", "train.bin"};
    for (int i = 0; i < 3; i++) {
        must(lam_path_join(path, sizeof path, dir, marked[i]));
        must(lam_file_save(path, "mine", 4));
    }
    o.replace = true;
    ck_assert_int_eq(prepare_only(&o), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "exists and is not a corpus folder"));
    ck_assert_int_eq(lam_path_join(path, sizeof path, dir, "vocab.json"), LAM_OK);
    ck_assert(lam_path_exists(path));
}
END_TEST

static void finish(void)
{
    lam_corpus_close(corpus);
    corpus = NULL;
    lam_corpus_info_free(&info);
}

int main(void)
{
    test_temp_in_memory();
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, NULL, finish);
    tcase_add_test(tests, bytes_keep_everything);
    tcase_add_test(tests, characters_are_ordered_by_count);
    tcase_add_test(tests, words_are_cut_at_lines_and_rare_ones_go);
    tcase_add_loop_test(tests, folders_keep_their_splits, 0, 3);
    tcase_add_test(tests, a_word_that_train_lacks_needs_an_unk);
    tcase_add_test(tests, enwik8_loses_its_newlines_after_the_cut);
    tcase_add_test(tests, text8_is_stripped_split_by_split);
    tcase_add_test(tests, a_stand_in_never_carries_a_published_name);
    tcase_add_test(tests, a_failure_leaves_the_old_corpus_alone);
    tcase_add_loop_test(tests, without_memory_it_fails_cleanly, LAM_CHARS, LAM_WORDS + 1);
    tcase_add_test(tests, bad_input_leaves_nothing);
    tcase_add_test(tests, other_peoples_folders_are_not_touched);
    return test_run("data/prepare", tests);
}
