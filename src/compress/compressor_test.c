/* compressor_test.c -- what goes in comes out, whatever its size and however it is cut; archives do not depend on the
 * device or its threads; nothing is lost to the coder. */
#include "compress/alphabet.h"
#include "compress/decompressor.h"
#include "compress/mix.h"
#include "infer/session.h"
#include "lamemo.h"

#include "support/suite.h"
#include "support/toy_archive.h"
#include "support/toy_folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lam_engine *engine; /* of this process: made before the tests */
static uint8_t text[40000];

static void set_up(void)
{
    test_temp_make();
    engine = toy_engine(test_temp_path("toy"), "cpu", 1);
    toy_text(text, sizeof text);
}

static void tear_down(void)
{
    toy_engine_close(engine);
    test_temp_remove();
}

/* Decompresses in pieces of `piece` bytes. */
static toy_bytes unpack(const toy_bytes *archive, size_t piece)
{
    toy_bytes out = {0};
    lam_decompressor *d;
    must(lam_decompressor_create(&d, engine, &(lam_decompressor_options){0}, toy_bytes_sink, &out));
    for (size_t at = 0; at < archive->n; at += piece)
        must(lam_decompressor_push(d, archive->v + at,
                                   archive->n - at < piece ? archive->n - at : piece));
    must(lam_decompressor_finish(d));
    ck_assert_uint_eq(lam_decompressor_written(d), out.n);
    lam_decompressor_free(d);
    return out;
}

static void check(const uint8_t *from, size_t n, const lam_compressor_options *o, size_t piece)
{
    toy_bytes archive = toy_pack(engine, from, n, o), back = unpack(&archive, piece);
    ck_assert_uint_eq(back.n, n);
    ck_assert(n == 0 || memcmp(back.v, from, n) == 0);
    free(archive.v);
    free(back.v);
}

START_TEST(every_size_comes_back)
{
    /* around a segment (12), a stream (4096) and a block */
    static const size_t sizes[] = {0,  1,  2,  11,   12,   13,   23,   24,
                                   25, 40, 99, 4095, 4096, 4097, 8191, 8193};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check(text, sizes[i],
              &(lam_compressor_options){.adapt = i % 2 ? LAM_ADAPT_MIX : LAM_ADAPT_NONE,
                                        .streams = 1 + (int)i % 3,
                                        .block = 4096},
              i % 3 ? 1000 : 1);
}
END_TEST

START_TEST(noise_is_stored_and_grows_by_little)
{
    lam_rng rng = test_rng(4);
    uint8_t noise[9000];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)lam_rng_below(&rng, 256);
    const lam_compressor_options o = {.adapt = LAM_ADAPT_MIX, .block = 8192};
    toy_bytes archive = toy_pack(engine, noise, sizeof noise, &o);
    ck_assert_uint_le(archive.n, sizeof noise + LAM_LMZ_HEAD + 3 + 4 +
                                     2 * (LAM_LMZ_BLOCK + LAM_LMZ_ENTRY) + 1 + LAM_LMZ_FOOTER);
    free(archive.v);
    check(noise, sizeof noise, &o, 777);
}
END_TEST

/* What the model finds likeliest, byte by byte. */
static void likeliest_text(uint8_t *out, size_t n)
{
    lam_session *session;
    int32_t token = lam_engine_start_token(engine);
    double logits[256];
    must(lam_session_create(&session, engine->model, &(lam_session_options){0}));
    for (size_t i = 0; i < n; i++) {
        must(lam_session_feed(session, &token, 1));
        must(lam_session_logits(session, logits));
        token = 0;
        for (int32_t k = 1; k < 256; k++)
            token = logits[k] > logits[token] ? k : token;
        out[i] = (uint8_t)token;
    }
    lam_session_free(session);
}

/* The bits the model itself needs for each stream of n bytes, from its own log-probabilities. */
static double entropy(const uint8_t *bytes, size_t n, int streams)
{
    double bits = 0.0;
    for (int s = 0; s < streams; s++) {
        const size_t from = lam_codec_cut(n, streams, s), to = lam_codec_cut(n, streams, s + 1);
        lam_session *session;
        int32_t token = lam_engine_start_token(engine);
        double logits[256];
        must(lam_session_create(&session, engine->model, &(lam_session_options){0}));
        for (size_t i = from; i < to; i++) {
            double sum = 0.0;
            must(lam_session_feed(session, &token, 1));
            must(lam_session_logits(session, logits));
            token = bytes[i];
            for (int k = 0; k < 256; k++)
                sum += exp(logits[k] - logits[token]);
            bits += log2(sum);
        }
        lam_session_free(session);
    }
    return bits;
}

START_TEST(the_size_is_the_cross_entropy)
{
    enum { SIZE = 10000 };
    uint8_t likely[SIZE]; /* the model has random weights, and ordinary text would be stored */
    likeliest_text(likely, SIZE);
    toy_bytes archive = toy_pack(engine, likely, SIZE,
                                 &(lam_compressor_options){.adapt = LAM_ADAPT_NONE, .streams = 2});
    lam_lmz_header h;
    must(lam_lmz_get_header(&h, archive.v, archive.n));
    const double bytes = entropy(likely, SIZE, 2) / 8.0;
    const size_t header = LAM_LMZ_HEAD + strlen(h.name) + 4;
    ck_assert_double_lt(bytes, 0.98 * SIZE);
    ck_assert_msg((double)(archive.n - header) <= bytes * 1.001 + 64, "%zu bytes, not %.0f",
                  archive.n, bytes);
    ck_assert_msg((double)archive.n > bytes, "%zu bytes, fewer than %.0f", archive.n, bytes);
    free(archive.v);
}
END_TEST

START_TEST(archives_do_not_depend_on_device_and_threads)
{
    static const struct {
        const char *device;
        int threads;
    } cases[] = {{"ref", 1}, {"cpu", 2}, {"cpu", 7}};
    for (int adapt = 0; adapt < 2; adapt++) {
        const lam_compressor_options o = {.adapt = (lam_adapt)adapt, .streams = 3, .block = 8192};
        toy_bytes first = toy_pack(engine, text, 9000, &o);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            lam_engine *const other =
                toy_engine(test_temp_path("toy"), cases[i].device, cases[i].threads);
            toy_bytes again = toy_pack(other, text, 9000, &o);
            ck_assert_uint_eq(again.n, first.n);
            ck_assert_int_eq(memcmp(again.v, first.v, first.n), 0);
            free(again.v);
            toy_engine_close(other);
        }
        free(first.v);
    }
}
END_TEST

START_TEST(another_model_or_fast_arithmetic_is_refused)
{
    const lam_compressor_options o = {.adapt = LAM_ADAPT_NONE};
    toy_bytes archive = toy_pack(engine, text, 100, &o), out = {0};
    const char *const dir = test_temp_path("other");
    lam_engine *other = toy_engine(dir, "cpu", 1);
    must(toy_folder_save(dir, "lamemo", 2)); /* other weights under the same name */
    toy_engine_close(other);
    const lam_ops *ops;
    lam_dev *dev;
    lam_decompressor *d;
    lam_compressor *c;
    must(lam_ops_find(&ops, "cpu"));
    for (int exact = 0; exact < 2; exact++) {
        must(ops->open(&dev, &(lam_dev_options){.threads = 1, .exact = exact}));
        must(lam_engine_open(&other, dir, dev, &(lam_storage){0}));
        if (exact) {
            must(lam_decompressor_create(&d, other, &(lam_decompressor_options){0}, toy_bytes_sink,
                                         &out));
            ck_assert_int_eq(lam_decompressor_push(d, archive.v, archive.n), LAM_ERR_FORMAT);
            ck_assert_ptr_nonnull(strstr(lam_error(), "made with model toy"));
            ck_assert_ptr_nonnull(strstr(lam_error(), "the model given is other"));
            ck_assert_uint_eq(out.n, 0);
            lam_decompressor_free(d);
        } else {
            ck_assert_int_eq(lam_compressor_create(&c, other, &o, toy_bytes_sink, &out),
                             LAM_ERR_UNSUPPORTED);
            ck_assert_ptr_nonnull(strstr(lam_error(), "numerics exact"));
        }
        toy_engine_close(other);
    }
    free(archive.v);
}
END_TEST

static int collect(void *user, const void *bytes, size_t n)
{
    return toy_bytes_sink(user, bytes, n) != LAM_OK;
}

static int refuse(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return 1;
}

START_TEST(the_public_interface_does_the_same)
{
    lamemo_engine *e;
    lamemo_compressor *c;
    lamemo_decompressor *d;
    toy_bytes archive = {0}, back = {0};
    const lamemo_engine_options wanted = {.device = "cpu", .threads = 1, .numerics = "exact"};
    const lamemo_compress_options o = {.streams = 2, .block = 4096};
    must((lam_status)lamemo_engine_open(test_temp_path("toy"), &wanted, &e));
    must((lam_status)lamemo_compressor_create(e, &o, collect, &archive, &c));
    for (size_t at = 0; at < 6000; at += 600)
        must((lam_status)lamemo_compressor_push(c, text + at, 600));
    must((lam_status)lamemo_compressor_finish(c));
    ck_assert_int_eq(lamemo_compressor_push(c, text, 1), LAMEMO_ERR_ARG);
    lamemo_compressor_free(c);
    must((lam_status)lamemo_decompressor_create(e, NULL, collect, &back, &d));
    must((lam_status)lamemo_decompressor_push(d, archive.v, archive.n));
    must((lam_status)lamemo_decompressor_finish(d));
    lamemo_decompressor_free(d);
    ck_assert_uint_eq(back.n, 6000);
    ck_assert_int_eq(memcmp(back.v, text, 6000), 0);

    ck_assert_int_eq(lamemo_compressor_create(e, &o, refuse, NULL, &c), LAMEMO_ERR_INTERRUPTED);
    ck_assert_ptr_null(c);
    const lamemo_compress_options bad[] = {
        {.adapt = "what"}, {.streams = -1}, {.streams = 5000}, {.block = 1}, {.threads = -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(lamemo_compressor_create(e, &bad[i], collect, &archive, &c),
                         LAMEMO_ERR_ARG);
    lamemo_engine_close(e);
    free(archive.v);
    free(back.v);
}
END_TEST

int main(void)
{
    test_temp_in_memory();
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, every_size_comes_back);
    tcase_add_test(tests, noise_is_stored_and_grows_by_little);
    tcase_add_test(tests, the_size_is_the_cross_entropy);
    tcase_add_test(tests, archives_do_not_depend_on_device_and_threads);
    tcase_add_test(tests, another_model_or_fast_arithmetic_is_refused);
    tcase_add_test(tests, the_public_interface_does_the_same);
    return test_run("compress/compressor", tests);
}
