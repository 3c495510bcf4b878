/* prepare_splits_test.c -- no byte of a held-out file is in train, whatever the files are called.
 *
 * Every file is full of a letter that says what it is: t for train, v for valid, e for test, o for any other text.  The
 * token files of the corpus, which has a byte for each, are read back. */
#include "data/prepare.h"

#include "core/file.h"
#include "core/log.h"
#include "data/split_name.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

enum { FILES = 8, SIZE = 40 };

static lam_corpus_info info;
static char notes[4096]; /* what was logged */

static void listen(lam_log_level level, const char *line, void *user)
{
    (void)level, (void)user;
    strncat(notes, line, sizeof notes - strlen(notes) - 1);
    strncat(notes, "\n", sizeof notes - strlen(notes) - 1);
}

static char letter(const char *name)
{
    const int ending =
        strncmp(name, "wiki", 4) == 0 ? lam_split_ending_of(name, 0).split : LAM_SPLIT_NONE;
    const int word = lam_split_guess_of(name).split, split = word < LAM_SPLITS ? word : ending;
    return split < LAM_SPLITS ? "tve"[split] : 'o';
}

/* "a b/c" makes the files a and b/c in an empty folder, which it returns. */
static const char *make_files(const char *names)
{
    const char *dir = test_temp_path("folder");
    char list[512], path[512], text[SIZE + 1];
    lam_dir_remove(dir);
    ck_assert_int_eq(lam_dir_make(dir), LAM_OK);
    snprintf(list, sizeof list, "%s", names);
    for (char *rest = list, *name = strtok_r(list, " ", &rest); name;
         name = strtok_r(NULL, " ", &rest)) {
        char *slash = strchr(name, '/');
        if (slash != NULL) {
            *slash = '\0';
            ck_assert_int_eq(lam_path_join(path, sizeof path, dir, name), LAM_OK);
            if (!lam_path_exists(path))
                ck_assert_int_eq(lam_dir_make(path), LAM_OK);
            *slash = '/';
        }
        ck_assert_int_eq(lam_path_join(path, sizeof path, dir, name), LAM_OK);
        memset(text, letter(name), SIZE);
        ck_assert_int_eq(lam_file_save(path, text, SIZE), LAM_OK);
    }
    return dir;
}

static lam_prepare_options options_for(const char *const *inputs, int n)
{
    lam_prepare_options o = {.kind = LAM_BYTES,
                             .min_count = 1,
                             .replace = true,
                             .out = test_temp_path("corpus"),
                             .n_inputs = n,
                             .inputs = inputs};
    ck_assert_int_eq(lam_division_parse(&o.division, "80/10/10", LAM_DIVISION_ANY), LAM_OK);
    return o;
}

static lam_status prepare(const lam_prepare_options *o)
{
    notes[0] = '\0';
    lam_corpus_info_free(&info);
    return lam_prepare(&info, o);
}

/* The letters of a split and how often each occurs in a row: "t40v40". */
static const char *letters(lam_split s)
{
    static char text[256];
    lam_corpus *corpus;
    size_t used = 0;
    ck_assert_msg(lam_corpus_open(&corpus, test_temp_path("corpus"), LAM_CORPUS_VERIFY) == LAM_OK,
                  "%s", lam_error());
    const lam_tokens *t = &corpus->split[s];
    text[0] = '\0';
    for (int64_t i = 0, n = 0; i < t->count; i++) {
        n++;
        if (i + 1 == t->count || t->ids[i + 1] != t->ids[i]) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%c%d", t->ids[i], (int)n);
            n = 0;
        }
    }
    lam_corpus_close(corpus);
    return text;
}

/* ---- folders ---- */

static const struct {
    const char *files;
    bool recursive;
    const char *split[LAM_SPLITS];
} kept[] = {
    {"train.txt valid.txt test.txt", false, {"t40", "v40", "e40"}},
    {"train.txt val.txt test.txt", false, {"t40", "v40", "e40"}},
    {"train.txt validation.txt test.txt", false, {"t40", "v40", "e40"}},
    {"train.txt dev.txt test.txt", false, {"t40", "v40", "e40"}},
    {"TRAIN.TXT Dev.txt Test.Txt", false, {"t40", "v40", "e40"}},
    {"train.txt.gz valid.txt.xz test.txt.zst", false, {"t40", "v40", "e40"}},
    {"train.xz val.gz test.zst", false, {"t40", "v40", "e40"}},
    {"train valid test", false, {"t40", "v40", "e40"}},
    {"train.tokens valid.tokens test.tokens", false, {"t40", "v40", "e40"}},
    {"wiki.train.tokens wiki.valid.tokens wiki.test.tokens", false, {"t40", "v40", "e40"}},
    {"wiki.train.raw wiki.valid.raw wiki.test.raw", false, {"t40", "v40", "e40"}},
    {"wikitext-2.train.xz wikitext-2.valid.xz wikitext-2.test.xz", false, {"t40", "v40", "e40"}},
    {"my_train_set.txt my_dev_set.txt", false, {"t40", "v40", ""}},
    {"trainset.txt devset.txt testset.txt", false, {"t40", "v40", "e40"}},
    {"TrainData.txt ValidationData.txt", false, {"t40", "v40", ""}},
    {"wikiTrain.txt wikiVal.txt wikiTest.txt", false, {"t40", "v40", "e40"}},
    {"train.txt valid.txt", false, {"t40", "v40", ""}},
    {"train.txt test.txt", false, {"t40", "", "e40"}},
    {"train-00000-of-00002.txt train-00001-of-00002.txt valid-00000-of-00001.txt",
     false,
     {"t80", "v40", ""}},
    {"train1.txt train2.txt test1.txt", false, {"t80", "", "e40"}},
    {"train.txt test.txt README.txt notes.md", false, {"t40", "", "e40"}},
    {"ptb.train.txt ptb.valid.txt ptb.test.txt ptb.char.train.txt ptb.char.test.txt",
     false,
     {"t40", "v40", "e40"}},
    {"train/b.txt train/a.txt val/c.txt test/d.txt", true, {"t80", "v40", "e40"}},
    {"wikitrain.txt wikivalid.txt wikitest.txt", false, {"t40", "v40", "e40"}},
    {"WIKITRAIN.txt WIKITEST.txt", false, {"o40", "", "o40"}},
    {"wikitrainset.txt wikidevset.txt", false, {"t40", "v40", ""}},
    {"wikitrain-1.txt wikitrain-2.txt wikitest-1.txt", false, {"t80", "", "e40"}},
    {"wikitrain.txt wikitest.txt protest.txt constraint.txt", false, {"t40", "", "e40"}},
    {"wikitrain/a.txt wikitest/b.txt", true, {"t40", "", "e40"}},
    {"latest-wikitrain.txt latest-wikitest.txt", false, {"o40", "", "o40"}},
};

START_TEST(folders_keep_their_splits)
{
    const char *inputs[] = {make_files(kept[_i].files)};
    lam_prepare_options o = options_for(inputs, 1);
    o.recursive = kept[_i].recursive;
    ck_assert_msg(prepare(&o) == LAM_OK, "%s: %s", kept[_i].files, lam_error());
    for (int s = 0; s < LAM_SPLITS; s++)
        ck_assert_str_eq(letters((lam_split)s), kept[_i].split[s]);
    o.cut = true; /* --split of what is split */
    ck_assert_int_eq(prepare(&o), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "has splits of its own"));
}
END_TEST

static const struct {
    const char *files, *error; /* a part of it */
} refused[] = {
    {"test.txt book.txt", "test.txt looks like the test split, but no train split is beside it"},
    {"valid.txt", "valid.txt looks like the valid split, but no train split is beside it"},
    {"train.txt valid.csv", "valid.csv looks like the valid split, but not like a text"},
    {"train.txt test.pdf", "test.pdf looks like the test split, but not like a text"},
    {"train.txt test/a.txt", "test/ looks like the test split, but is a folder: --recursive"},
    {"train.txt valid.txt test-train.txt", "test-train.txt: the name speaks of splits"},
    {"train.txt heldout.txt", "heldout.txt: the name speaks of splits"},
    {"train.txt train.txt.gz test.txt", "train.txt and train.txt.gz are both the train split"},
    {"train.txt train.tokens test.txt", "both the train split"},
    {"train.txt val.txt dev.txt", "dev.txt and val.txt are both the valid split"},
    {"a.train.txt b.valid.txt b.test.txt", "look like splits of two different texts"},
    {"wikitext-2.train.txt wikitext-103.test.txt", "look like splits of two different texts"},
    {"a.pdf b.png",
     "holds no text (.txt, .tokens, .raw, also .gz, .xz, .zst), but files such as a.pdf"},
    {"train.jsonl valid.jsonl",
     "holds no text, but files such as train.jsonl: --json-field NAME reads JSON lines"},
    {"train.txt valid.jsonl", "valid.jsonl looks like the valid split, but not like a text"},
    {"wikivalid.txt wikitest.txt", "wikitest.txt looks like the test split, but no train split"},
    {"sub/a.txt", "holds no text, but folders such as sub/: --recursive reads them"},
    {"", "holds no text"},
};

START_TEST(what_only_looks_like_a_split_is_refused)
{
    const char *inputs[] = {make_files(refused[_i].files)};
    lam_prepare_options o = options_for(inputs, 1);
    o.out = test_temp_path("never");
    ck_assert_int_eq(prepare(&o), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), refused[_i].error) != NULL, "%s: %s", refused[_i].files,
                  lam_error());
    ck_assert(!lam_path_exists(o.out));
}
END_TEST

START_TEST(texts_that_are_no_splits_are_joined)
{
    const char *inputs[] = {make_files("b.txt a.txt testament.txt protest.txt sub/c.txt")};
    lam_prepare_options o = options_for(inputs, 1);
    ck_assert_msg(prepare(&o) == LAM_OK, "%s", lam_error());
    ck_assert_str_eq(letters(LAM_TRAIN), "o128");
    ck_assert_int_eq(info.n_sources, 4);
    ck_assert_str_eq(info.sources[0].name, "a.txt");
    ck_assert_int_eq(info.sources[0].split, LAM_SPLITS);
    ck_assert_ptr_nonnull(strstr(notes, "not read: sub/ (--recursive reads folders)"));
    o.recursive = true;
    ck_assert_msg(prepare(&o) == LAM_OK, "%s", lam_error());
    ck_assert_int_eq(info.n_sources, 5);
    ck_assert_str_eq(info.sources[3].name, "sub/c.txt");
    /* nothing is held out here */
    inputs[0] = make_files("train.txt README.md");
    ck_assert_int_eq(prepare(&o), LAM_OK);
    ck_assert_str_eq(letters(LAM_TEST), "t4");
    /* --join: names mean nothing */
    inputs[0] = make_files("train.txt test.txt");
    o.join = o.cut = true;
    ck_assert_int_eq(prepare(&o), LAM_OK);
    ck_assert_str_eq(letters(LAM_TRAIN), "e40t24");
}
END_TEST

static const char *const chances[] = {
    "constraint.txt protest.txt contest.txt restrain.txt", /* no two of them differ in the split alone */
    "strain.txt latest.txt festival.txt medieval.txt",
    "wikitest.txt",
    "wikitrain.txt bookstest.txt",
};

START_TEST(a_word_that_ends_like_a_split_is_none_by_itself)
{
    const char *inputs[] = {make_files(chances[_i])};
    const lam_prepare_options o = options_for(inputs, 1);
    ck_assert_msg(prepare(&o) == LAM_OK, "%s: %s", chances[_i], lam_error());
    const int64_t all = info.n_sources * SIZE;
    ck_assert_int_eq(info.tokens[LAM_TRAIN], 8 * all / 10);
    ck_assert_int_eq(info.sources[0].split, LAM_SPLITS);
}
END_TEST

/* ---- files on the command line ---- */

START_TEST(named_files_keep_their_splits)
{
    char path[3][512];
    const char *inputs[3];
    const char *dir = make_files("test.txt train.txt valid.txt");
    static const char *const names[] = {"test.txt", "train.txt", "valid.txt"}; /* in any order */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(lam_path_join(path[i], sizeof path[i], dir, names[i]), LAM_OK);
        inputs[i] = path[i];
    }
    lam_prepare_options o = options_for(inputs, 3);
    ck_assert_msg(prepare(&o) == LAM_OK, "%s", lam_error());
    ck_assert_str_eq(letters(LAM_TRAIN), "t40");
    ck_assert_str_eq(letters(LAM_VALID), "v40");
    ck_assert_str_eq(letters(LAM_TEST), "e40");
    o.n_inputs = 1; /* one text, whatever it is called, is cut */
    ck_assert_int_eq(prepare(&o), LAM_OK);
    ck_assert_str_eq(letters(LAM_TRAIN), "e32");
    o.n_inputs = 3;
    memcpy(strstr(path[2], "valid"), "other", 5);
    ck_assert_int_eq(lam_file_save(path[2], "o", 1), LAM_OK);
    ck_assert_int_eq(prepare(&o), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(
        strstr(lam_error(), "other.txt is no split, though train.txt looks like one"));
}
END_TEST

/* ---- overlap ---- */

START_TEST(text_in_two_splits_is_pointed_out)
{
    char text[4096], path[512];
    const char *dir = make_files("train.txt valid.txt");
    const char *inputs[] = {dir};
    lam_rng rng = test_rng(7);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + lam_rng_below(&rng, 20));
    const lam_prepare_options o = options_for(inputs, 1);
    ck_assert_int_eq(lam_path_join(path, sizeof path, dir, "train.txt"), LAM_OK);
    ck_assert_int_eq(lam_file_save(path, text, 3000), LAM_OK);
    ck_assert_int_eq(lam_path_join(path, sizeof path, dir, "valid.txt"), LAM_OK);
    ck_assert_int_eq(lam_file_save(path, text + 3000, 1000), LAM_OK);
    ck_assert_int_eq(prepare(&o), LAM_OK);
    ck_assert_str_eq(notes, "");
    ck_assert_int_eq(lam_file_save(path, text + 2333, 1500), LAM_OK); /* begins with 667 of train */
    ck_assert_int_eq(prepare(&o), LAM_OK);
    ck_assert_ptr_nonnull(strstr(notes, "2 of 5 chunks of the valid split (256 tokens each) are in "
                                        "the train split, too: the first is token 0 of valid and "
                                        "2333 of train: '"));
    /* the same file is said even if it is short */
    inputs[0] = make_files("train.txt test.txt");
    ck_assert_int_eq(lam_path_join(path, sizeof path, inputs[0], "test.txt"), LAM_OK);
    ck_assert_int_eq(lam_file_save(path, "tttttttttttttttttttttttttttttttttttttttt", SIZE), LAM_OK);
    ck_assert_int_eq(prepare(&o), LAM_OK);
    ck_assert_str_eq(notes, "train.txt (train) and test.txt (test) are the same text\n");
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    const char *inputs[] = {make_files("train.txt valid.txt test.txt README.md")};
    const lam_prepare_options o = options_for(inputs, 1);
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = prepare(&o);
        test_alloc_end(status);
    }
}
END_TEST

static void hear(void)
{
    test_temp_make();
    lam_log_set_sink(listen, NULL);
}

static void leave(void)
{
    lam_corpus_info_free(&info);
    test_temp_remove();
}

int main(void)
{
    test_temp_in_memory();
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, hear, leave);
    tcase_add_loop_test(tests, folders_keep_their_splits, 0, (int)(sizeof kept / sizeof *kept));
    tcase_add_loop_test(tests, what_only_looks_like_a_split_is_refused, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tests, texts_that_are_no_splits_are_joined);
    tcase_add_loop_test(tests, a_word_that_ends_like_a_split_is_none_by_itself, 0,
                        (int)(sizeof chances / sizeof *chances));
    tcase_add_test(tests, named_files_keep_their_splits);
    tcase_add_test(tests, text_in_two_splits_is_pointed_out);
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("data/prepare_splits", tests);
}
