/* tokenizer_json_test.c -- tokenizer.json there and back, what is refused by name, and ranks of tiktoken. */
#include "convert/tokenizer_json.h"

#include "convert/tiktoken.h"
#include "convert/vocabulary.h"
#include "core/file.h"
#include "io/json.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/toy_bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_encodes_the_same(const lam_vocab *a, const lam_vocab *b)
{
    static const char text[] = "the and  caf\xc3\xa9 \xff\n<|endoftext|> 1234 'the";
    for (int read = 0; read < 2; read++) {
        int32_t *x, *y;
        size_t n, m;
        const lam_special special = read ? LAM_SPECIAL_READ : LAM_SPECIAL_TEXT;
        must(lam_vocab_encode_special(a, &x, &n, text, sizeof text - 1, special));
        must(lam_vocab_encode_special(b, &y, &m, text, sizeof text - 1, special));
        ck_assert_uint_eq(n, m);
        ck_assert_mem_eq(x, y, n * sizeof *x);
        free(x);
        free(y);
    }
}

START_TEST(what_is_written_is_read)
{
    static const toy_merge merges[] = {
        {"t", "h"}, {"h", "e"}, {"th", "e"}, {" ", "the"}, {"\xc3", "\xa9"}};
    const char *path = test_temp_path("tokenizer.json");
    const lam_bpe_rules more = {
        .whole = _i == 1, .nfc = _i == 2, .pattern = _i == 3 ? lam_pattern_named("o200k") : NULL};
    lam_vocab *v = toy_bpe(merges, 5, &more, _i == 4), *back;
    must(lam_tokenizer_json_save(v, path));
    must(lam_vocabulary_load(&back, path, NULL));
    must(lam_vocab_same(v, back, "back"));
    ck_assert_int_eq(lam_vocab_alike(v, back), _i != 4); /* ranks come back as a list of merges */
    ck_assert_int_eq(lam_vocab_eos(back), lam_vocab_eos(v));
    check_encodes_the_same(v, back);
    lam_vocab_free(back);
    ck_assert_int_eq(lam_vocabulary_load(&back, path, "gpt2"), LAM_ERR_ARG);
    ck_assert_ptr_null(back);
    lam_vocab_free(v);
}
END_TEST

START_TEST(other_vocabularies_are_not_written)
{
    lam_vocab *v;
    must(lam_vocab_create_bytes(&v));
    ck_assert_int_eq(lam_tokenizer_json_save(v, test_temp_path("no.json")), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "not one of bytes"));
    lam_vocab_free(v);
}
END_TEST

/* ---- files of others, made by changing one of ours ---- */

/* Puts `value` (JSON) at a path of keys and places such as "model/merges/0"; "" removes what is there. */
static void put(json_t *root, const char *path, const char *value)
{
    char key[64];
    size_t n = strcspn(path, "/");
    snprintf(key, sizeof key, "%.*s", (int)n, path);
    if (path[n] == '/') {
        put(json_is_array(root) ? json_array_get(root, (size_t)atoi(key))
                                : json_object_get(root, key),
            path + n + 1, value);
        return;
    }
    json_t *item = *value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    ck_assert(*value == '\0' || item != NULL);
    if (json_is_array(root))
        json_array_insert_new(root, (size_t)atoi(key), item);
    else if (item == NULL)
        json_object_del(root, key);
    else
        json_object_set_new(root, key, item);
}

static lam_status read_changed(lam_vocab **out, const char *path, const char *value)
{
    json_t *root;
    lam_vocab *v = toy_bpe_english();
    must(lam_tokenizer_json_save(v, test_temp_path("made.json")));
    lam_vocab_free(v);
    must(lam_json_load(&root, test_temp_path("made.json"), 1 << 24));
    put(root, path, value);
    const lam_status status = lam_tokenizer_json_read(out, root, "file");
    json_decref(root);
    return status;
}

#define SPLIT(behavior, invert)                                                                    \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\w+|.\"},\"behavior\":\"" behavior            \
    "\",\"invert\":" invert "}"
#define BYTES(regex)   "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":" regex "}"
#define SEQUENCE(list) "{\"type\":\"Sequence\",\"pretokenizers\":[" list "]}"

static const struct {
    const char *path, *value;
} fine[] = {
    {"model/type", ""},                       /* older files */
    {"model/unk_token", "\"<|endoftext|>\""}, /* never needed */
    {"model/dropout", "0.0"},
    {"model/continuing_subword_prefix", "null"},
    {"post_processor", "{\"type\":\"TemplateProcessing\"}"},
    {"normalizer", "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]}"},
    {"pre_tokenizer", SEQUENCE(SPLIT("Isolated", "false") "," BYTES("false"))},
    {"pre_tokenizer", SEQUENCE(SPLIT("Removed", "true") "," BYTES("false"))},
    {"pre_tokenizer", SEQUENCE(BYTES("true"))},
    {"pre_tokenizer", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"},
    {"model/merges/0", "[\"i\",\"s\"]"}, /* needs a token "is", added below */
    {"added_tokens/1", "{\"id\":400,\"content\":\"<x>\",\"special\":false}"},
};

START_TEST(what_others_write_is_read)
{
    lam_vocab *v;
    if (strcmp(fine[_i].path, "model/merges/0") == 0) {
        ck_assert_int_eq(read_changed(&v, fine[_i].path, fine[_i].value), LAM_ERR_FORMAT);
        ck_assert_ptr_nonnull(strstr(lam_error(), "merge 0 joins 105 and 115"));
        must(read_changed(&v, "model/merges/1", "[\"t\",\"he\"]") == LAM_ERR_FORMAT ? LAM_OK
                                                                                    : LAM_ERR_ARG);
        ck_assert_ptr_nonnull(strstr(lam_error(), "another did")); /* it is there already */
        return;
    }
    must(read_changed(&v, fine[_i].path, fine[_i].value));
    if (strcmp(fine[_i].path, "added_tokens/1") == 0) {
        size_t size;
        ck_assert_int_eq(lam_vocab_size(v), 401); /* the numbers between are filled */
        ck_assert_str_eq(lam_vocab_symbol(v, 399, &size), "<|unused_399|>");
        ck_assert_str_eq(lam_vocab_symbol(v, 400, &size), "<x>");
    }
    lam_vocab_free(v);
}
END_TEST

static const struct {
    const char *path, *value, *want;
    lam_status status;
} refused[] = {
    {"model/type", "\"WordPiece\"", "model 'WordPiece'", LAM_ERR_UNSUPPORTED},
    {"model/dropout", "0.1", "dropout", LAM_ERR_UNSUPPORTED},
    {"model/byte_fallback", "true", "byte_fallback", LAM_ERR_UNSUPPORTED},
    {"model/end_of_word_suffix", "\"</w>\"", "end_of_word_suffix", LAM_ERR_UNSUPPORTED},
    {"model/merges", "", "no merges", LAM_ERR_FORMAT},
    {"model/merges/0", "\"ab\"", "merge 0", LAM_ERR_FORMAT},
    {"model/merges/0", "[\"a\",\"nothing\"]", "merge 0", LAM_ERR_FORMAT},
    {"model/merges/0", "\"a x\"", "merge 0 joins", LAM_ERR_FORMAT},
    {"model/vocab/\xe2\x96\x81the", "300", "not a byte-level BPE", LAM_ERR_UNSUPPORTED},
    {"model/vocab/zz", "97", "two tokens have the number 97", LAM_ERR_FORMAT},
    {"model/vocab/zz", "-1", "token -1", LAM_ERR_FORMAT},
    {"model/vocab/zz", "4000000", "have no token", LAM_ERR_FORMAT},
    {"model/vocab/zz", "1e3", "no number", LAM_ERR_FORMAT},
    {"model/vocab/\xc4\x80", "", "byte 0x00 has no token", LAM_ERR_FORMAT},
    {"normalizer", "{\"type\":\"NFKC\"}", "normalizer 'NFKC'", LAM_ERR_UNSUPPORTED},
    {"pre_tokenizer", "null", "pre_tokenizer 'none'", LAM_ERR_UNSUPPORTED},
    {"pre_tokenizer", "{\"type\":\"Metaspace\"}", "'Metaspace'", LAM_ERR_UNSUPPORTED},
    {"pre_tokenizer", SPLIT("Isolated", "false"), "no ByteLevel", LAM_ERR_UNSUPPORTED},
    {"pre_tokenizer", BYTES("false"), "without a pattern", LAM_ERR_UNSUPPORTED},
    {"pre_tokenizer", SEQUENCE(SPLIT("MergedWithNext", "false") "," BYTES("false")),
     "'MergedWithNext'", LAM_ERR_UNSUPPORTED},
    {"pre_tokenizer",
     SEQUENCE(SPLIT("Isolated", "false") "," SPLIT("Isolated", "false") "," BYTES("false")),
     "several Splits", LAM_ERR_UNSUPPORTED},
    {"pre_tokenizer", SEQUENCE(SPLIT("Isolated", "false") "," BYTES("true")), "use_regex",
     LAM_ERR_UNSUPPORTED},
    {"pre_tokenizer/add_prefix_space", "true", "add_prefix_space", LAM_ERR_UNSUPPORTED},
    {"added_tokens/1", "{\"id\":300,\"content\":\"<y>\",\"lstrip\":true}", "lstrip",
     LAM_ERR_UNSUPPORTED},
    {"added_tokens/1", "{\"id\":300,\"content\":\"  \",\"special\":false}", "not special",
     LAM_ERR_UNSUPPORTED},
    {"added_tokens/1", "{\"content\":\"<y>\"}", "no id", LAM_ERR_FORMAT},
    {"added_tokens/1", "{\"id\":98,\"content\":\"<|endoftext|>\",\"special\":true}", "two numbers",
     LAM_ERR_FORMAT},
};

START_TEST(what_is_not_supported_is_named)
{
    lam_vocab *v;
    ck_assert_int_eq(read_changed(&v, refused[_i].path, refused[_i].value), refused[_i].status);
    ck_assert_ptr_null(v);
    ck_assert_msg(strncmp(lam_error(), "file", 4) == 0 && strstr(lam_error(), refused[_i].want),
                  "%s", lam_error());
}
END_TEST

START_TEST(another_vocab_json_is_refused)
{
    const char *path = test_temp_path("vocab.json");
    lam_vocab *v;
    must(lam_file_save(path, "{\"the\": 0}", 10));
    ck_assert_int_eq(lam_vocabulary_load(&v, path, NULL), LAM_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(lam_error(), "without merges"));
}
END_TEST

/* ---- ranks ---- */

/* All bytes, then "th" and "the", with `extra` behind. */
static const char *save_ranks(const char *extra)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *path = test_temp_path("small.tiktoken");
    static char text[8192];
    size_t n = 0;
    for (int i = 0; i < 256; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%c%c== %d\n", digits[i >> 2],
                              digits[(i & 3) << 4], i);
    n += (size_t)snprintf(text + n, sizeof text - n, "dGg= 256\r\ndGhl 257\n%s", extra);
    must(lam_file_save(path, text, n));
    return path;
}

START_TEST(ranks_need_a_pattern_unless_they_are_known)
{
    lam_vocab *v;
    int32_t *ids;
    size_t n, size;
    const char *path = save_ranks("");
    ck_assert_int_eq(lam_vocabulary_load(&v, path, NULL), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "a tiktoken file of 258 tokens"));
    ck_assert_ptr_nonnull(strstr(lam_error(), "--pattern"));
    must(lam_vocabulary_load(&v, path, "cl100k"));
    ck_assert_str_eq(lam_bpe_rules_of(lam_vocab_bpe(v))->pattern, lam_pattern_named("cl100k"));
    ck_assert_int_eq(lam_vocab_size(v), 259);
    ck_assert_str_eq(lam_vocab_symbol(v, 257, &size), "the");
    ck_assert_int_eq(lam_vocab_eos(v), 258);
    must(lam_vocab_encode(v, &ids, &n, "the them", 8));
    ck_assert_uint_eq(n, 4);
    ck_assert_int_eq(ids[0], 257);
    ck_assert_int_eq(ids[3], 'm');
    free(ids);
    lam_vocab_free(v);
}
END_TEST

static const struct {
    const char *extra, *want;
} bad_ranks[] = {
    {"dGg", "line 259"},         {"dG?= 258", "line 259"},   {"dGh 258", "line 259"},
    {"dGhl x", "line 259"},      {"dGhl ", "line 259"},      {"==== 258", "line 259"},
    {"dGhl 258", "there twice"}, {"dGhh 257", "number 257"}, {"dGhh 99999999999", "line 259"},
    {"dGhh 5000000", "5000000"},
};

START_TEST(damaged_ranks_are_named)
{
    lam_vocab *v;
    ck_assert_int_eq(lam_tiktoken_load(&v, save_ranks(bad_ranks[_i].extra), "gpt2"),
                     LAM_ERR_FORMAT);
    ck_assert_ptr_null(v);
    ck_assert_msg(strstr(lam_error(), "small.tiktoken") && strstr(lam_error(), bad_ranks[_i].want),
                  "%s", lam_error());
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    const char *json = test_temp_path("memory.json"), *ranks = save_ranks("");
    lam_vocab *made = toy_bpe_english();
    json_t *root;
    must(lam_tokenizer_json_save(made, json));
    must(lam_json_load(&root, json, 1 << 24)); /* loading: see io/json.h */
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_vocab *v = NULL, *w = NULL;
        lam_status status = lam_tokenizer_json_read(&v, root, "file");
        if (status == LAM_OK)
            status = lam_tiktoken_load(&w, ranks, "gpt2");
        if (status == LAM_OK)
            status = lam_tokenizer_json_save(made, json);
        const int failed = test_alloc_stop();
        ck_assert_int_eq(status, failed ? LAM_ERR_MEMORY : LAM_OK);
        lam_vocab_free(v);
        lam_vocab_free(w);
    }
    json_decref(root);
    lam_vocab_free(made);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    test_temp_in_memory();
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, what_is_written_is_read, 0, 5);
    tcase_add_test(tests, other_vocabularies_are_not_written);
    tcase_add_loop_test(tests, what_others_write_is_read, 0, (int)(sizeof fine / sizeof *fine));
    tcase_add_loop_test(tests, what_is_not_supported_is_named, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tests, another_vocab_json_is_refused);
    tcase_add_test(tests, ranks_need_a_pattern_unless_they_are_known);
    tcase_add_loop_test(tests, damaged_ranks_are_named, 0,
                        (int)(sizeof bad_ranks / sizeof *bad_ranks));
    tcase_add_test(tests, without_memory_it_fails_cleanly);
    return test_run("convert/tokenizer_json", tests);
}
