/* api_test.c -- the public interface gives what the inside computes, and refuses what is wrong. */
#include "lamemo.h"

#include "core/file.h"
#include "core/log.h"
#include "infer/engine.h"
#include "infer/session.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/toy_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { V = 256, TEXT = 40 };

static lamemo_engine *engine;

static void succeed(lamemo_status status)
{
    ck_assert_msg(status == LAMEMO_OK, "%s", lamemo_error());
}

static void open_engine(void)
{
    const char *dir = test_temp_path("model");
    ck_assert_msg(toy_folder_save(dir, "lamemo", 1) == LAM_OK, "%s", lam_error());
    succeed(
        lamemo_engine_open(dir, &(lamemo_engine_options){.device = "cpu", .threads = 1}, &engine));
}

static void close_engine(void)
{
    lamemo_engine_close(engine);
}

static void random_tokens(int32_t *tokens, size_t n, uint64_t seed)
{
    lam_rng rng = test_rng(seed);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (int32_t)lam_rng_below(&rng, V);
}

static lamemo_session *new_session(int streams)
{
    lamemo_session *s;
    succeed(lamemo_session_create(engine, &(lamemo_session_options){.streams = streams}, &s));
    return s;
}

START_TEST(an_engine_says_what_it_is)
{
    lamemo_model_info info;
    lamemo_engine_info(engine, &info);
    ck_assert_str_eq(info.memory, "lamemo");
    ck_assert_str_eq(info.vocabulary, "bytes");
    ck_assert_str_eq(info.device, "cpu");
    ck_assert(info.parameters > 0 && info.layers > 0 && info.width > 0 && info.heads > 0);
}
END_TEST

START_TEST(logits_as_float_are_the_same_numbers)
{
    int32_t tokens[TEXT];
    double exact[V];
    float rounded[V];
    random_tokens(tokens, TEXT, 3);
    lamemo_session *s = new_session(1);
    ck_assert_int_eq(lamemo_session_logits_float(s, rounded), LAMEMO_ERR_ARG);
    succeed(lamemo_session_feed(s, tokens, TEXT));
    succeed(lamemo_session_logits(s, exact));
    succeed(lamemo_session_logits_float(s, rounded));
    for (int i = 0; i < V; i++)
        ck_assert(rounded[i] == (float)exact[i]);
    lamemo_session_free(s);
}
END_TEST

/* Counts calls, checks that they rise, and ends the work at the call number `end`. */
typedef struct progress {
    int calls, end;
    double part;
} progress;

static int watch_it(void *user, double part)
{
    progress *p = user;
    ck_assert(part >= p->part && part <= 1.0);
    p->part = part;
    return ++p->calls == p->end;
}

START_TEST(opening_and_scoring_report_and_can_be_ended)
{
    enum { LONG = 10000 };
    static int32_t tokens[LONG];
    static double logprobs[LONG];
    progress p = {0};
    lamemo_engine *other;
    lamemo_engine_options o = {
        .device = "cpu", .threads = 1, .progress = watch_it, .progress_user = &p};
    const char *dir = test_temp_path("model");
    succeed(lamemo_engine_open(dir, &o, &other));
    ck_assert(p.calls > 4 && p.part > 0.5);
    lamemo_engine_close(other);
    p = (progress){.end = 3};
    ck_assert_int_eq(lamemo_engine_open(dir, &o, &other), LAMEMO_ERR_INTERRUPTED);
    ck_assert_ptr_null(other);

    random_tokens(tokens, LONG, 5);
    lamemo_session_options so = {.progress = watch_it, .progress_user = &p};
    p = (progress){0};
    succeed(lamemo_score(engine, tokens, LONG, &so, logprobs));
    ck_assert_int_ge(p.calls, 2);
    p = (progress){.end = 1};
    ck_assert_int_eq(lamemo_score(engine, tokens, LONG, &so, logprobs), LAMEMO_ERR_INTERRUPTED);
}
END_TEST

START_TEST(version_and_header_agree)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", LAMEMO_VERSION_MAJOR, LAMEMO_VERSION_MINOR,
             LAMEMO_VERSION_PATCH);
    ck_assert_str_eq(lamemo_version(), text);
    ck_assert_str_eq(lamemo_status_name(LAMEMO_ERR_FORMAT), "format");
}
END_TEST

START_TEST(a_caller_with_other_structs_is_told)
{
    const lamemo_abi mine = LAMEMO_ABI;
    lamemo_abi older = mine, smaller = mine, fewer = mine;
    succeed(lamemo_abi_check(&mine));
    older.minor++;
    ck_assert_int_eq(lamemo_abi_check(&older), LAMEMO_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "made for lamemo 0.2"));
    smaller.sampling -= 8;
    ck_assert_int_eq(lamemo_abi_check(&smaller), LAMEMO_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "lamemo_sampling has "));
    fewer.job = fewer.compress_options = 0; /* it does not use them */
    succeed(lamemo_abi_check(&fewer));
}
END_TEST

/* A field for each struct that callers lay out themselves: those in the header that have a body. */
START_TEST(the_abi_names_every_struct)
{
    const lamemo_abi mine = LAMEMO_ABI;
    const size_t *const sizes = &mine.engine_options;
    const int fields = (int)((sizeof mine - offsetof(lamemo_abi, engine_options)) / sizeof *sizes);
    char text[512];
    int structs = 0;
    FILE *f = fopen("include/lamemo.h", "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(text, sizeof text, f))
        structs += strncmp(text, "typedef struct lamemo_", 22) == 0 && strstr(text, " {\n") != NULL;
    fclose(f);
    ck_assert_int_eq(fields, structs - 1); /* but for itself */
    for (int i = 0; i < fields; i++) {
        lamemo_abi other = mine;
        (&other.engine_options)[i]++;
        ck_assert_int_eq(lamemo_abi_check(&other), LAMEMO_ERR_UNSUPPORTED);
    }
}
END_TEST

START_TEST(an_engine_tells_what_it_holds)
{
    ck_assert_int_eq(lamemo_vocab_size(engine), V);
    ck_assert_int_eq(lamemo_segment_length(engine), TOY_FOLDER_N);
    ck_assert_int_eq(lamemo_memory_length(engine), TOY_FOLDER_M);
    ck_assert_int_eq(lamemo_start_token(engine), '\n');
    ck_assert_int_eq(lamemo_eos_token(engine), -1);
}
END_TEST

START_TEST(text_becomes_tokens_and_comes_back)
{
    static const char text[] = "caf\xc3\xa9\n\xff";
    int32_t *tokens;
    char *back;
    size_t n, size;
    succeed(lamemo_encode(engine, text, sizeof text - 1, &tokens, &n));
    ck_assert_uint_eq(n, sizeof text - 1);
    succeed(lamemo_decode(engine, tokens, n, &back, &size));
    ck_assert_uint_eq(size, n);
    ck_assert_int_eq(memcmp(back, text, size + 1), 0);
    lamemo_free(back);
    ck_assert_mem_eq(lamemo_token_text(engine, tokens[4], &size), "\xa9", 1); /* half a character */
    ck_assert_uint_eq(size, 1);
    ck_assert_ptr_null(lamemo_token_text(engine, V, &size));
    ck_assert_ptr_null(lamemo_token_text(engine, -1, &size));
    tokens[2] = V;
    ck_assert_int_eq(lamemo_decode(engine, tokens, n, &back, &size), LAMEMO_ERR_ARG);
    ck_assert_ptr_null(back);
    lamemo_free(tokens);
    succeed(lamemo_encode(engine, "", 0, &tokens, &n));
    ck_assert_uint_eq(n, 0);
    lamemo_free(tokens);
}
END_TEST

/* The same text on the reference back-end, through the internal interface. */
static void reference_logits(const int32_t *tokens, int n, double *logits)
{
    const lam_ops *ops;
    lam_dev *dev;
    lam_engine *inner;
    lam_session *s;
    ck_assert_int_eq(lam_ops_find(&ops, "ref"), LAM_OK);
    ck_assert_int_eq(ops->open(&dev, &(lam_dev_options){0}), LAM_OK);
    ck_assert_int_eq(lam_engine_open(&inner, test_temp_path("model"), dev, NULL), LAM_OK);
    ck_assert_int_eq(lam_session_create(&s, inner->model, &(lam_session_options){0}), LAM_OK);
    ck_assert_int_eq(lam_session_feed(s, tokens, n), LAM_OK);
    ck_assert_int_eq(lam_session_logits(s, logits), LAM_OK);
    lam_session_free(s);
    lam_engine_close(inner);
    ops->close(dev);
}

START_TEST(logits_are_those_of_the_reference)
{
    int32_t tokens[TEXT];
    double got[V], want[V];
    lamemo_session *s = new_session(1);
    random_tokens(tokens, TEXT, 3);
    for (size_t at = 0; at < TEXT; at += 7) {
        succeed(lamemo_session_feed(s, tokens + at, TEXT - at < 7 ? TEXT - at : 7));
        succeed(lamemo_session_logits(s, got));
    }
    ck_assert_int_eq(lamemo_session_length(s), TEXT);
    reference_logits(tokens, TEXT, want);
    for (int i = 0; i < V; i++)
        ck_assert_double_eq_tol(got[i], want[i], 1e-4);
    lamemo_session_reset(s);
    ck_assert_int_eq(lamemo_session_length(s), 0);
    ck_assert_int_eq(lamemo_session_logits(s, got), LAMEMO_ERR_ARG);
    lamemo_session_free(s);
}
END_TEST

START_TEST(scores_add_up_to_what_logits_say)
{
    /* the model's own lengths, those that the text fills, and more */
    static const lamemo_session_options lengths[] = {
        {0}, {.longest = TEXT - 5, .memory = TEXT}, {.longest = 20, .memory = 1000}};
    int32_t tokens[TEXT];
    double logprobs[TEXT], logits[V];
    lamemo_session *s;
    succeed(lamemo_session_create(engine, &lengths[_i], &s));
    random_tokens(tokens, TEXT, 4);
    succeed(lamemo_score(engine, tokens, TEXT, _i == 0 ? NULL : &lengths[_i], logprobs));
    int32_t before = lamemo_start_token(engine);
    for (int i = 0; i < TEXT; before = tokens[i++]) {
        double sum = 0.0;
        succeed(lamemo_session_feed(s, &before, 1));
        succeed(lamemo_session_logits(s, logits));
        for (int v = 0; v < V; v++)
            sum += exp(logits[v]);
        ck_assert_double_eq_tol(logprobs[i], logits[tokens[i]] - log(sum), 1e-4);
    }
    succeed(lamemo_score(engine, tokens, 0, NULL, logprobs));
    lamemo_session_free(s);
}
END_TEST

/* Draws `n` tokens one by one. */
static void draw(lamemo_session *s, int32_t *out, int n)
{
    for (int i = 0; i < n; i++) {
        double logprob;
        succeed(lamemo_session_sample(s, &out[i], &logprob));
        ck_assert_double_le(logprob, 0.0);
        succeed(lamemo_session_feed(s, &out[i], 1));
    }
}

START_TEST(draws_repeat_after_reset_and_follow_the_seed)
{
    int32_t first[TEXT], again[TEXT], other[TEXT], start = 'a';
    lamemo_sampling how;
    lamemo_session *s = new_session(1);
    succeed(lamemo_session_feed(s, &start, 1));
    draw(s, first, TEXT);
    lamemo_session_reset(s);
    succeed(lamemo_session_feed(s, &start, 1));
    draw(s, again, TEXT);
    ck_assert_int_eq(memcmp(first, again, sizeof first), 0);

    lamemo_sampling_defaults(&how);
    ck_assert_double_eq(how.top_p, 0.95);
    how.seed = 7;
    succeed(lamemo_session_sampling(s, &how));
    lamemo_session_reset(s);
    succeed(lamemo_session_feed(s, &start, 1));
    draw(s, other, TEXT);
    ck_assert_int_ne(memcmp(first, other, sizeof first), 0);
    how.top_p = -0.5;
    ck_assert_int_eq(lamemo_session_sampling(s, &how), LAMEMO_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "top_p -0.5: must be above 0"));
    lamemo_session_free(s);
}
END_TEST

/* Draws after one token, in the way given. */
static void draw_by(int32_t out[TEXT], const lamemo_sampling *how)
{
    const int32_t start = 'a';
    lamemo_session *s = new_session(1);
    succeed(lamemo_session_sampling(s, how));
    succeed(lamemo_session_feed(s, &start, 1));
    draw(s, out, TEXT);
    lamemo_session_free(s);
}

START_TEST(zero_is_the_default_in_every_field_of_sampling)
{
    int32_t by_default[TEXT], got[TEXT], greedy[TEXT];
    lamemo_sampling defaults;
    lamemo_sampling_defaults(&defaults);
    draw_by(by_default, &defaults);
    draw_by(got, &(lamemo_sampling){0});
    ck_assert_int_eq(memcmp(by_default, got, sizeof got), 0);
    draw_by(got, &(lamemo_sampling){.seed = 42, .top_p = 0.95});
    ck_assert_int_eq(memcmp(by_default, got, sizeof got), 0);
    draw_by(got, &(lamemo_sampling){.temperature = 2.0});
    ck_assert_int_ne(memcmp(by_default, got, sizeof got), 0);

    draw_by(greedy, &(lamemo_sampling){.greedy = 1, .seed = 7});
    draw_by(got, &(lamemo_sampling){.top_k = 1});
    ck_assert_int_eq(memcmp(greedy, got, sizeof got), 0);
    ck_assert_int_ne(memcmp(greedy, by_default, sizeof greedy), 0);
}
END_TEST

typedef struct heard {
    char text[8192];
    size_t size;
    int32_t tokens[TEXT];
    int n, last, limit;
    lamemo_finish finish;
} heard;

static int hear(void *user, const lamemo_piece *piece)
{
    heard *h = user;
    memcpy(h->text + h->size, piece->text, piece->size);
    h->size += piece->size;
    if (piece->token >= 0)
        h->tokens[h->n++] = piece->token;
    h->last += piece->last;
    h->finish = piece->finish;
    return h->limit > 0 && h->n >= h->limit;
}

START_TEST(generating_equals_feeding_and_drawing)
{
    int32_t prompt[TEXT], by_hand[TEXT];
    heard h = {0}, broken = {.limit = 5};
    lamemo_session *s = new_session(1);
    random_tokens(prompt, TEXT, 5);
    const lamemo_generate_options o = {.tokens = TEXT};
    succeed(lamemo_generate(engine, prompt, TEXT, &o, hear, &h));
    ck_assert_int_eq(h.n, TEXT);
    ck_assert_int_eq(h.last, 1);
    ck_assert_int_eq(h.finish, LAMEMO_FINISH_LENGTH);

    succeed(lamemo_session_feed(s, prompt, TEXT));
    draw(s, by_hand, TEXT);
    ck_assert_int_eq(memcmp(h.tokens, by_hand, sizeof by_hand), 0);

    succeed(lamemo_generate(engine, prompt, TEXT, &o, hear, &broken));
    ck_assert_int_eq(broken.n, 5);
    ck_assert_int_eq(broken.finish, LAMEMO_FINISH_BREAK);
    ck_assert_int_eq(lamemo_generate(engine, prompt, 0, NULL, hear, &(heard){.limit = 3}),
                     LAMEMO_OK);
    lamemo_session_free(s);
}
END_TEST

/* What is heard of a generation and what is asked for are the same pieces. */
START_TEST(pieces_can_be_asked_for_one_at_a_time)
{
    const char *const stops[] = {"e"};
    const lamemo_generate_options options = {
        .tokens = TEXT / 3, .samples = 3, .stops = stops, .n_stops = 1, .top = 4};
    int32_t prompt[9000]; /* three steps of reading */
    heard told = {0}, asked = {0};
    random_tokens(prompt, 9000, 9);
    succeed(lamemo_generate(engine, prompt, 9000, &options, hear, &told));

    lamemo_generation *g;
    int more = 1, empty = 0, ended = 0;
    succeed(lamemo_generation_create(engine, prompt, 9000, &options, &g));
    while (more) {
        lamemo_piece piece;
        succeed(lamemo_generation_next(g, &piece, &more));
        if (piece.token < 0 && piece.size == 0 && !piece.last) {
            empty++;
            continue;
        }
        ck_assert_int_eq(piece.n_top, piece.token < 0 ? 0 : 4);
        for (int i = 0; i < piece.n_top; i++) {
            ck_assert(i == 0 || piece.top[i].logprob <= piece.top[i - 1].logprob);
            if (piece.top[i].token == piece.token)
                ck_assert_double_eq_tol(piece.top[i].logprob, piece.logprob, 1e-12);
        }
        ended += piece.last;
        hear(&asked, &piece);
    }
    ck_assert_int_eq(empty, 3); /* 9000 - 1 tokens, 4096 at a time */
    ck_assert_int_eq(ended, 3);
    ck_assert_int_eq(asked.n, told.n);
    ck_assert_mem_eq(&asked, &told, sizeof asked);
    lamemo_generation_free(g);
    succeed(lamemo_generation_create(engine, prompt, 9000, &options, &g));
    lamemo_generation_free(g); /* early */
}
END_TEST

/* What follows is the same: compares logits of one more token. */
static void same_future(lamemo_session *a, lamemo_session *b)
{
    double x[2 * V] = {0}, y[2 * V] = {0};
    const int32_t next[2] = {'x', 'y'};
    succeed(lamemo_session_feed(a, next, 1));
    succeed(lamemo_session_feed(b, next, 1));
    succeed(lamemo_session_logits(a, x));
    succeed(lamemo_session_logits(b, y));
    ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
}

START_TEST(a_snapshot_and_a_saved_session_bring_the_moment_back)
{
    int32_t tokens[2 * TEXT];
    lamemo_snapshot *then;
    lamemo_session *a = new_session(2), *b = new_session(2), *one = new_session(1);
    const char *path = test_temp_path("saved");
    random_tokens(tokens, 2 * TEXT, 6);
    succeed(lamemo_session_feed(a, tokens, TEXT));
    succeed(lamemo_session_snapshot(a, &then));
    succeed(lamemo_session_save(a, path));
    succeed(lamemo_session_restore(b, then));
    ck_assert_int_eq(lamemo_session_length(b), TEXT);
    same_future(a, b);
    succeed(lamemo_session_load(a, path));
    succeed(lamemo_session_restore(b, then));
    same_future(a, b);
    ck_assert_int_eq(lamemo_session_restore(one, then), LAMEMO_ERR_ARG);
    ck_assert_int_eq(lamemo_session_load(one, path), LAMEMO_ERR_ARG);
    ck_assert_int_eq(lamemo_session_load(a, test_temp_path("none")), LAMEMO_ERR_IO);
    lamemo_snapshot_free(then);
    lamemo_session_free(a);
    lamemo_session_free(b);
    lamemo_session_free(one);
}
END_TEST

/* Adds `by` to the first number (4 bytes) of tensor `name` in the file, whose checksum becomes that of the change. */
static void damage(const char *path, const char *name, int by)
{
    char *bytes, key[32], *at;
    size_t size;
    int64_t header;
    int32_t number;
    ck_assert_msg(lam_file_load(&bytes, &size, path, 1 << 24) == LAM_OK, "%s", lam_error());
    memcpy(&header, bytes, sizeof header);
    snprintf(key, sizeof key, "\"%s\"", name);
    at = strstr(strstr(bytes + 8, key), "data_offsets\":[") + strlen("data_offsets\":[");
    at = bytes + 8 + header + strtol(at, NULL, 10);
    memcpy(&number, at, sizeof number);
    number += by;
    memcpy(at, &number, sizeof number);
    const uint32_t crc = (uint32_t)crc32_z(0, (const unsigned char *)bytes, size - sizeof crc);
    memcpy(bytes + size - sizeof crc, &crc, sizeof crc);
    ck_assert_msg(lam_file_save(path, bytes, size) == LAM_OK, "%s", lam_error());
    free(bytes);
}

START_TEST(a_failed_load_leaves_the_session_as_it_was)
{
    static const struct {
        const char *tensor;
        int by;
    } wrong[] = {{"rows", -1}, {"rows", 1 << 20}, {"numbers", 1 << 19}, {"calls", 1 << 20}};
    int32_t tokens[TEXT];
    lamemo_session *a = new_session(1), *b = new_session(1);
    const char *path = test_temp_path("damaged");
    random_tokens(tokens, TEXT, 8);
    succeed(lamemo_session_feed(a, tokens, TEXT));
    succeed(lamemo_session_feed(b, tokens, TEXT));
    succeed(lamemo_session_save(a, path));
    damage(path, wrong[_i].tensor, wrong[_i].by);
    ck_assert_int_ne(lamemo_session_load(a, path), LAMEMO_OK);
    ck_assert_int_eq(lamemo_session_length(a), TEXT);
    same_future(a, b);
    lamemo_session_free(a);
    lamemo_session_free(b);
}
END_TEST

START_TEST(an_engine_has_a_limit_on_memory_for_its_sessions)
{
    const lamemo_engine_options limited = {
        .device = "cpu", .threads = 1, .max_memory = (size_t)1 << 30};
    lamemo_engine *small;
    lamemo_session *s;
    succeed(lamemo_engine_open(test_temp_path("model"), &limited, &small));
    ck_assert_int_eq(lamemo_session_create(small, &(lamemo_session_options){.memory = 1 << 20}, &s),
                     LAMEMO_ERR_MEMORY);
    ck_assert_ptr_null(s);
    ck_assert_msg(strstr(lamemo_error(), "memory of 1048576: device cpu: needs ") &&
                      strstr(lamemo_error(), " available; ") &&
                      strstr(lamemo_error(), "max_memory"),
                  "%s", lamemo_error());
    succeed(lamemo_session_create(small, NULL, &s));
    lamemo_session_free(s);
    lamemo_engine_close(small);
}
END_TEST

START_TEST(what_is_wrong_is_refused_by_name)
{
    const int32_t bad[2] = {1, V};
    lamemo_engine *none;
    lamemo_session *s = new_session(1), *t;
    heard h = {0};
    double logprobs[2];
    ck_assert_int_eq(lamemo_engine_open(test_temp_path("nowhere"), NULL, &none), LAMEMO_ERR_IO);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(lamemo_engine_open("x", &(lamemo_engine_options){.device = "abacus"}, &none),
                     LAMEMO_ERR_ARG);
    ck_assert_int_eq(
        lamemo_engine_open("x", &(lamemo_engine_options){.device = "cpu", .threads = 1025}, &none),
        LAMEMO_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "1025 threads"));
    ck_assert_int_eq(
        lamemo_session_create(engine, &(lamemo_session_options){.threads = 1 << 30}, &t),
        LAMEMO_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "must be 0 (all) to 1024"));
    ck_assert_int_eq(lamemo_engine_open("x", &(lamemo_engine_options){.weights = "int4"}, &none),
                     LAMEMO_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "'int4'"));
    ck_assert_int_eq(lamemo_engine_open("x", &(lamemo_engine_options){.cache = "int8"}, &none),
                     LAMEMO_ERR_ARG);
    ck_assert_int_eq(lamemo_session_create(engine, &(lamemo_session_options){.streams = -1}, &t),
                     LAMEMO_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "streams"));
    ck_assert_int_eq(
        lamemo_session_create(engine, &(lamemo_session_options){.memory = 0x7fffffff}, &t),
        LAMEMO_ERR_ARG);
    ck_assert_ptr_null(t);
    ck_assert_int_eq(lamemo_session_feed(s, bad, 2), LAMEMO_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "token 256"));
    ck_assert_int_eq(lamemo_session_length(s), 0);
    ck_assert_int_eq(lamemo_session_segment(s, TOY_FOLDER_N + 1), LAMEMO_ERR_ARG);
    ck_assert_int_eq(lamemo_generate(engine, bad, 2, NULL, hear, &h), LAMEMO_ERR_ARG);
    ck_assert_int_eq(lamemo_score(engine, bad, 2, NULL, logprobs), LAMEMO_ERR_ARG);
    ck_assert_int_eq(
        lamemo_score(engine, bad, 1, &(lamemo_session_options){.streams = 2}, logprobs),
        LAMEMO_ERR_ARG);
    lamemo_session_free(s);
    lamemo_session_free(NULL);
    lamemo_engine_close(NULL);
    lamemo_snapshot_free(NULL);
}
END_TEST

/* Opening is left out: jansson itself misses a failed allocation inside a long word. */
/* An engine whose last `n` weights, of the output's bias, are `value`; NULL: it was refused. */
static lamemo_engine *changed_engine(const char *dir, float value, int n)
{
    char path[4200], *bytes;
    size_t size;
    lamemo_engine *e;
    must(toy_folder_save(dir, "lamemo", 1));
    must(lam_path_join(path, sizeof path, dir, "model.safetensors"));
    must(lam_file_load(&bytes, &size, path, 1 << 24));
    for (int i = 1; i <= n; i++)
        memcpy(bytes + size - (size_t)i * sizeof value, &value, sizeof value);
    must(lam_file_save(path, bytes, size));
    free(bytes);
    lamemo_engine_open(dir, &(lamemo_engine_options){.device = "cpu", .threads = 1}, &e);
    return e;
}

static void check_not_finite(lamemo_status status, const char *dir)
{
    ck_assert_int_eq(status, LAMEMO_ERR_NUMERIC);
    ck_assert_ptr_nonnull(strstr(lamemo_error(), dir));
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "not finite"));
}

START_TEST(numbers_that_are_not_finite_are_errors_and_name_the_model)
{
    const char *dir = test_temp_path("wild");
    const int32_t text[2] = {65, 66};
    int32_t token;
    double logits[V], logprobs[2];
    heard h = {0};
    lamemo_session *s;
    ck_assert_ptr_null(changed_engine(dir, NAN, 1));
    ck_assert_ptr_nonnull(strstr(lamemo_error(), dir));
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "tensor crit.out_layers.0.bias is not finite"));
    /* Finite weights: the last norm makes numbers that no float holds of what goes to the output. */
    lamemo_engine *e = changed_engine(dir, 3e38f, V + 32);
    ck_assert_msg(e != NULL, "%s", lamemo_error());
    succeed(lamemo_session_create(e, NULL, &s));
    succeed(lamemo_session_feed(s, text, 2));
    check_not_finite(lamemo_session_logits(s, logits), dir);
    check_not_finite(lamemo_session_sample(s, &token, NULL), dir);
    check_not_finite(lamemo_score(e, text, 2, NULL, logprobs), dir);
    check_not_finite(lamemo_generate(e, text, 2, NULL, hear, &h), dir);
    lamemo_session_free(s);
    lamemo_engine_close(e);
}
END_TEST

START_TEST(no_failing_allocation_goes_unnoticed)
{
    long failures = 0;
    for (long n = 1; test_alloc_fail(n); n++) {
        lamemo_session *s = NULL;
        lamemo_snapshot *p = NULL;
        lamemo_generation *g = NULL;
        lamemo_piece piece;
        int more;
        int32_t *tokens = NULL, next;
        size_t count;
        lamemo_status status = lamemo_session_create(engine, NULL, &s);
        if (status == LAMEMO_OK)
            status = lamemo_encode(engine, "abc", 3, &tokens, &count);
        if (status == LAMEMO_OK)
            status = lamemo_session_feed(s, tokens, count);
        if (status == LAMEMO_OK)
            status = lamemo_session_sample(s, &next, NULL);
        if (status == LAMEMO_OK)
            status = lamemo_session_snapshot(s, &p);
        if (status == LAMEMO_OK)
            status = lamemo_generation_create(engine, tokens, count, NULL, &g);
        if (status == LAMEMO_OK)
            status = lamemo_generation_next(g, &piece, &more); /* reads */
        if (status == LAMEMO_OK)
            status = lamemo_generation_next(g, &piece, &more);
        const int failed = test_alloc_stop();
        failures += failed;
        ck_assert_int_eq(status != LAMEMO_OK, failed);
        lamemo_generation_free(g);
        lamemo_snapshot_free(p);
        lamemo_session_free(s);
        lamemo_free(tokens);
    }
    ck_assert_int_gt(failures, 20);
}
END_TEST

static void count_line(lamemo_log_level level, const char *line, void *user)
{
    (void)level;
    *(size_t *)user += strlen(line);
}

START_TEST(messages_can_be_taken_over)
{
    size_t bytes = 0;
    lamemo_log_to(count_line, &bytes, LAMEMO_LOG_WARN);
    lam_log(LAM_LOG_INFO, "not this one");
    ck_assert_uint_eq(bytes, 0);
    lam_log(LAM_LOG_WARN, "this one");
    ck_assert_uint_eq(bytes, 8);
    lamemo_log_to(NULL, NULL, LAMEMO_LOG_INFO);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_unchecked_fixture(tests, open_engine, close_engine);
    tcase_add_test(tests, version_and_header_agree);
    tcase_add_test(tests, a_caller_with_other_structs_is_told);
    tcase_add_test(tests, the_abi_names_every_struct);
    tcase_add_test(tests, an_engine_says_what_it_is);
    tcase_add_test(tests, logits_as_float_are_the_same_numbers);
    tcase_add_test(tests, opening_and_scoring_report_and_can_be_ended);
    tcase_add_test(tests, an_engine_tells_what_it_holds);
    tcase_add_test(tests, text_becomes_tokens_and_comes_back);
    tcase_add_test(tests, logits_are_those_of_the_reference);
    tcase_add_loop_test(tests, scores_add_up_to_what_logits_say, 0, 3);
    tcase_add_test(tests, draws_repeat_after_reset_and_follow_the_seed);
    tcase_add_test(tests, zero_is_the_default_in_every_field_of_sampling);
    tcase_add_test(tests, generating_equals_feeding_and_drawing);
    tcase_add_test(tests, pieces_can_be_asked_for_one_at_a_time);
    tcase_add_test(tests, a_snapshot_and_a_saved_session_bring_the_moment_back);
    tcase_add_loop_test(tests, a_failed_load_leaves_the_session_as_it_was, 0, 4);
    tcase_add_test(tests, an_engine_has_a_limit_on_memory_for_its_sessions);
    tcase_add_test(tests, what_is_wrong_is_refused_by_name);
    tcase_add_test(tests, numbers_that_are_not_finite_are_errors_and_name_the_model);
    tcase_add_test(tests, no_failing_allocation_goes_unnoticed);
    tcase_add_test(tests, messages_can_be_taken_over);
    return test_run("infer/api", tests);
}
