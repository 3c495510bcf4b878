/* archive_test.c -- ranges and lists by the index; truncations and flipped bits of an archive are errors, never wrong
 * bytes. */
#include "compress/archive.h"
#include "compress/decompressor.h"

#include "support/suite.h"
#include "support/toy_archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 8300, BLOCK = 4096, BLOCKS = 3 };

static lam_engine *engine;
static uint8_t text[SIZE];
static toy_bytes archive; /* of text */
static lam_unpacker *unpacker;
static int fd;

static void put_file(const void *bytes, size_t n)
{
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(pwrite(fd, bytes, n, 0), (ssize_t)n);
}

static void set_up(void)
{
    lam_lmz_header h;
    test_temp_make();
    engine = toy_engine(test_temp_path("toy"), "cpu", 1);
    toy_text(text, SIZE);
    archive = toy_pack(engine, text, SIZE,
                       &(lam_compressor_options){.adapt = LAM_ADAPT_MIX, .block = BLOCK});
    must(lam_lmz_get_header(&h, archive.v, archive.n));
    must(lam_unpacker_create(&unpacker, engine, &h, NULL));
    fd = memfd_create("archive", 0);
    ck_assert_int_ge(fd, 0);
}

static void tear_down(void)
{
    close(fd);
    lam_unpacker_free(unpacker);
    free(archive.v);
    toy_engine_close(engine);
    test_temp_remove();
}

START_TEST(ranges_are_what_the_text_has_there)
{
    static const struct {
        uint64_t from, n;
    } cases[] = {{0, 1},        {0, SIZE},  {BLOCK - 1, 2}, {BLOCK, BLOCK},
                 {SIZE - 1, 1}, {5000, 17}, {SIZE, 0},      {4000, 4200}};
    lam_archive a;
    put_file(archive.v, archive.n);
    must(lam_archive_open(&a, fd));
    ck_assert_int_eq(a.complete, 1);
    ck_assert_uint_eq(a.n, BLOCKS);
    ck_assert_uint_eq(a.raw, SIZE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        toy_bytes out = {0};
        const lam_archive_range range = {.from = cases[i].from, .n = cases[i].n};
        must(lam_archive_extract(&a, unpacker, &range, toy_bytes_sink, &out));
        ck_assert_uint_eq(out.n, cases[i].n);
        ck_assert(out.n == 0 || memcmp(out.v, text + cases[i].from, out.n) == 0);
        free(out.v);
    }
    const lam_archive_range beyond[] = {
        {.from = SIZE, .n = 1}, {.n = UINT64_MAX}, {.from = UINT64_MAX, .n = 2}};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
        ck_assert_int_eq(lam_archive_extract(&a, unpacker, &beyond[i], toy_bytes_sink, NULL),
                         LAM_ERR_ARG);
    lam_archive_close(&a);
}
END_TEST

typedef struct damage {
    int n;
    char last[256];
} damage;

static void on_damage(void *user, const char *message)
{
    damage *const d = user;
    d->n++;
    snprintf(d->last, sizeof d->last, "%s", message);
}

/* Is it a selection of whole blocks of the text, in order? */
static int is_some_blocks(const toy_bytes *out)
{
    for (int mask = 0; mask < 1 << BLOCKS; mask++) {
        size_t at = 0;
        int same = 1;
        for (size_t i = 0; i < BLOCKS && same; i++)
            if (mask >> i & 1) {
                const size_t n = i < BLOCKS - 1 ? BLOCK : SIZE - BLOCK * (BLOCKS - 1);
                same = out->n - at >= n && memcmp(out->v + at, text + i * BLOCK, n) == 0;
                at += n;
            }
        if (same && at == out->n)
            return 1;
    }
    return 0;
}

/* By the index, with the other blocks coming out.  *damaged: some were lost. */
static toy_bytes salvage(const uint8_t *bytes, size_t n, damage *damaged, lam_status *status)
{
    lam_archive a;
    toy_bytes out = {0};
    put_file(bytes, n);
    *status = lam_archive_open(&a, fd);
    if (*status != LAM_OK)
        return out;
    const lam_archive_range range = {.n = a.raw, .on_damage = on_damage, .damage_user = damaged};
    *status = lam_archive_extract(&a, unpacker, &range, toy_bytes_sink, &out);
    if (*status == LAM_OK && !a.complete)
        *status = LAM_ERR_FORMAT;
    lam_archive_close(&a);
    return out;
}

/* Outside the blocks one bit of every byte; inside a few, since each costs a decoding of all blocks. */
START_TEST(flipped_bits_are_noticed_and_the_other_blocks_come_out)
{
    lam_archive a, changed;
    put_file(archive.v, archive.n);
    must(lam_archive_open(&a, fd));
    const lam_archive_block *const last = &a.blocks[BLOCKS - 1];
    const size_t from = (size_t)a.blocks[0].at,
                 to = (size_t)last->at + LAM_LMZ_BLOCK + last->stored;
    for (size_t i = 0; i < archive.n; i++) {
        const uint8_t bit = (uint8_t)(1 << i % 8);
        const int inside = i >= from && i < to;
        if (inside && i != from + 2 && i != last->at && i % 701 != 0)
            continue;
        archive.v[i] ^= bit;
        put_file(archive.v, archive.n);
        if (inside) {
            damage found = {0};
            lam_status status;
            toy_bytes out = salvage(archive.v, archive.n, &found, &status);
            ck_assert_int_eq(status, LAM_ERR_FORMAT);
            ck_assert_msg(is_some_blocks(&out), "byte %zu: wrong bytes", i);
            ck_assert_msg(found.n == 1 && strncmp(found.last, "block ", 6) == 0, "byte %zu: %s", i,
                          found.last);
            ck_assert_uint_ge(out.n, SIZE - BLOCK); /* the other two came */
            free(out.v);
        } else if (lam_archive_open(&changed, fd) == LAM_OK) { /* the index: blocks are found */
            ck_assert_msg(!changed.complete && changed.n == BLOCKS, "byte %zu: not noticed", i);
            lam_archive_close(&changed);
        } else {
            ck_assert_uint_lt(i, from);
        }
        archive.v[i] ^= bit;
    }
    lam_archive_close(&a);
}
END_TEST

/* The same as a stream: where a header is gone nothing more comes, but never wrong bytes. */
static lam_status stream(const uint8_t *bytes, size_t n, toy_bytes *out)
{
    lam_decompressor *d;
    must(lam_decompressor_create(&d, engine, &(lam_decompressor_options){0}, toy_bytes_sink, out));
    lam_status status = lam_decompressor_push(d, bytes, n);
    if (status == LAM_OK)
        status = lam_decompressor_finish(d);
    lam_decompressor_free(d);
    return status;
}

START_TEST(every_truncation_is_noticed)
{
    lam_archive a;
    for (size_t n = 0; n < archive.n; n++) {
        put_file(archive.v, n);
        if (lam_archive_open(&a, fd) != LAM_OK)
            continue;
        ck_assert_msg(!a.complete, "%zu bytes: not noticed", n);
        lam_archive_close(&a);
    }
    put_file(archive.v, archive.n);
    must(lam_archive_open(&a, fd));
    const size_t second = (size_t)a.blocks[1].at;
    const size_t sizes[] = {0,
                            3,
                            4,
                            63,
                            66,
                            second - 9,
                            second,
                            second + 5,
                            second + 30,
                            archive.n - 20,
                            archive.n - 1};
    lam_archive_close(&a);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        toy_bytes part = {0};
        ck_assert_msg(stream(archive.v, sizes[i], &part) == LAM_ERR_FORMAT, "%zu bytes", sizes[i]);
        ck_assert(is_some_blocks(&part));
        free(part.v);
    }
    toy_bytes out = {0}, longer = {0};
    toy_bytes_sink(&longer, archive.v, archive.n);
    toy_bytes_sink(&longer, "x", 1);
    ck_assert_int_eq(stream(longer.v, longer.n, &out), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "follows the end"));
    free(out.v);
    free(longer.v);
}
END_TEST

START_TEST(a_stream_names_the_damaged_block)
{
    lam_archive a;
    toy_bytes out = {0};
    put_file(archive.v, archive.n);
    must(lam_archive_open(&a, fd));
    const size_t at = (size_t)a.blocks[1].at + LAM_LMZ_BLOCK + a.blocks[1].stored / 2;
    archive.v[at] ^= 1;
    ck_assert_int_eq(stream(archive.v, archive.n, &out), LAM_ERR_FORMAT);
    ck_assert_ptr_eq(strstr(lam_error(), "block 2: damaged"), lam_error());
    ck_assert_uint_eq(out.n, BLOCK);
    archive.v[at] ^= 1;
    lam_archive_close(&a);
    free(out.v);
}
END_TEST

/* Limits hold before anything is allocated. */
START_TEST(headers_out_of_range_are_refused)
{
    lam_lmz_header h, got;
    uint8_t bytes[LAM_LMZ_HEADER];
    must(lam_lmz_get_header(&h, archive.v, archive.n));
    for (int i = 0; i < 8; i++) {
        lam_lmz_header bad = h;
        switch (i) {
        case 0:
            bad.streams = 0;
            break;
        case 1:
            bad.streams = LAM_STREAMS_MOST + 1;
            break;
        case 2:
            bad.segment = 0;
            break;
        case 3:
            bad.segment = 1 << 30;
            break;
        case 4:
            bad.memory = 1 << 30;
            break;
        case 5:
            bad.block = 16;
            break;
        case 6:
            bad.block = UINT32_MAX;
            break;
        default:
            strcpy(bad.name, "../../etc");
            break;
        }
        const size_t n = lam_lmz_put_header(bytes, &bad);
        ck_assert_int_eq(lam_lmz_get_header(&got, bytes, n), LAM_ERR_FORMAT);
    }
}
END_TEST

int main(void)
{
    test_temp_in_memory();
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, ranges_are_what_the_text_has_there);
    tcase_add_test(tests, flipped_bits_are_noticed_and_the_other_blocks_come_out);
    tcase_add_test(tests, every_truncation_is_noticed);
    tcase_add_test(tests, a_stream_names_the_damaged_block);
    tcase_add_test(tests, headers_out_of_range_are_refused);
    return test_run("compress/archive", tests);
}
