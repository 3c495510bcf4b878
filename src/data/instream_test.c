/* instream_test.c -- every packing gives the same bytes, and damage never goes unnoticed. */
#include "data/instream.h"

#include "core/budget.h"
#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"

#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { TEXT_SIZE = 400000, PACKED_MAX = 1 << 20, SMALL = 120 };

static unsigned char text[TEXT_SIZE], packed[PACKED_MAX], unpacked[PACKED_MAX];

/* Compressible, but not trivially: words of a small alphabet. */
static void make_text(void)
{
    lam_rng rng = test_rng(7);
    for (int i = 0; i < TEXT_SIZE; i++)
        text[i] = (unsigned char)(i % 7 == 0 ? ' ' : 'a' + lam_rng_below(&rng, 6));
}

/* ---- compressing ---- */

static size_t pack_plain(unsigned char *out, const unsigned char *in, size_t n)
{
    memcpy(out, in, n);
    return n;
}

static size_t deflate_with(unsigned char *out, const unsigned char *in, size_t n, int window)
{
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)in;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = PACKED_MAX / 2;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t size = z.total_out;
    deflateEnd(&z);
    return size;
}

static size_t pack_gzip(unsigned char *out, const unsigned char *in, size_t n)
{
    return deflate_with(out, in, n, 16 + MAX_WBITS);
}

/* Two members, as `cat a.gz b.gz` makes them. */
static size_t pack_gzip_twice(unsigned char *out, const unsigned char *in, size_t n)
{
    const size_t first = pack_gzip(out, in, n / 3);
    return first + pack_gzip(out + first, in + n / 3, n - n / 3);
}

static size_t pack_xz(unsigned char *out, const unsigned char *in, size_t n)
{
    size_t size = 0;
    ck_assert_int_eq(
        lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, in, n, out, &size, PACKED_MAX / 2),
        LZMA_OK);
    return size;
}

static size_t pack_zstd(unsigned char *out, const unsigned char *in, size_t n)
{
    ZSTD_CCtx *z = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    const size_t size = ZSTD_compress2(z, out, PACKED_MAX / 2, in, n);
    ck_assert(!ZSTD_isError(size));
    ZSTD_freeCCtx(z);
    return size;
}

static size_t pack_zstd_twice(unsigned char *out, const unsigned char *in, size_t n)
{
    const size_t first = pack_zstd(out, in, n / 3);
    return first + pack_zstd(out + first, in + n / 3, n - n / 3);
}

static size_t put(unsigned char *out, uint64_t v, int n)
{
    for (int i = 0; i < n; i++, v >>= 8)
        out[i] = (unsigned char)v;
    return (size_t)n;
}

typedef struct zip_entry {
    const char *name;
    const unsigned char *data;
    size_t size;
    int method; /* 0 or 8 */
    int after;  /* sizes come after the data */
    int bits64; /* sizes stand in a zip64 field */
} zip_entry;

static size_t zip_file(unsigned char *out, const zip_entry *e)
{
    static unsigned char body[PACKED_MAX];
    const size_t size = e->method == 8 ? deflate_with(body, e->data, e->size, -MAX_WBITS)
                                       : pack_plain(body, e->data, e->size);
    const uint32_t crc = (uint32_t)crc32_z(0, e->data, e->size);
    size_t n = put(out, 0x04034b50, 4);
    n += put(out + n, 20, 2);
    n += put(out + n, e->after ? 8 : 0, 2);
    n += put(out + n, (uint64_t)e->method, 2);
    n += put(out + n, 0, 4);
    n += put(out + n, e->after ? 0 : crc, 4);
    n += put(out + n, e->bits64 ? 0xffffffff : e->after ? 0 : size, 4);
    n += put(out + n, e->bits64 ? 0xffffffff : e->after ? 0 : e->size, 4);
    n += put(out + n, strlen(e->name), 2);
    n += put(out + n, e->bits64 ? 20 + 9 : 9, 2);
    n += pack_plain(out + n, (const unsigned char *)e->name, strlen(e->name));
    n +=
        pack_plain(out + n, (const unsigned char *)"UT\x05\0\1abcd", 9); /* a time, to be skipped */
    if (e->bits64) {
        n += put(out + n, 1, 2);
        n += put(out + n, 16, 2);
        n += put(out + n, e->size, 8);
        n += put(out + n, size, 8);
    }
    n += pack_plain(out + n, body, size);
    if (e->after) {
        n += put(out + n, 0x08074b50, 4);
        n += put(out + n, crc, 4);
        n += put(out + n, size, e->bits64 ? 8 : 4);
        n += put(out + n, e->size, e->bits64 ? 8 : 4);
    }
    return n;
}

/* The directory that follows the files: enough of it to end them. */
static size_t zip_end(unsigned char *out)
{
    memset(out, 0, 46);
    put(out, 0x02014b50, 4);
    return 46;
}

static size_t pack_zip(unsigned char *out, const unsigned char *in, size_t n)
{
    const size_t size = zip_file(out, &(zip_entry){"enwik8", in, n, 8, 0, 0});
    return size + zip_end(out + size);
}

static size_t pack_zip_stored64(unsigned char *out, const unsigned char *in, size_t n)
{
    const size_t size = zip_file(out, &(zip_entry){"a/b", in, n, 0, 0, 1});
    return size + zip_end(out + size);
}

static size_t pack_zip_after(unsigned char *out, const unsigned char *in, size_t n)
{
    const size_t size = zip_file(out, &(zip_entry){"x", in, n, 8, 1, 1});
    return size + zip_end(out + size);
}

typedef struct packing {
    const char *name, *format;
    size_t (*pack)(unsigned char *out, const unsigned char *in, size_t n);
} packing;

static const packing packings[] = {{"plain", "plain", pack_plain},
                                   {"gzip", "gzip", pack_gzip},
                                   {"gzip, two members", "gzip", pack_gzip_twice},
                                   {"zip", "zip", pack_zip},
                                   {"zip64, stored", "zip", pack_zip_stored64},
                                   {"zip, sizes after", "zip", pack_zip_after},
                                   {"xz", "xz", pack_xz},
                                   {"zstd", "zstd", pack_zstd},
                                   {"zstd, two frames", "zstd", pack_zstd_twice}};
enum { PACKINGS = sizeof packings / sizeof *packings };

/* ---- decompressing ---- */

/* Thousands of times: a file that is only overwritten, and no assertion that holds (Check writes a
 * line for each). */
static const char *save(const void *data, size_t size)
{
    const char *path = test_temp_path("file");
    const int fd = open(path, O_WRONLY | O_CREAT, 0600); /* O_TRUNC would wait for the disk */
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || ftruncate(fd, (off_t)size) != 0 ||
        close(fd) != 0)
        ck_abort_msg("%s: cannot write", path);
    return path;
}

/* Reads everything, `step` bytes at a time, into unpacked[]. */
static lam_status read_all(const char *path, const char *entry, size_t step, size_t *size)
{
    lam_instream *in;
    size_t got = 1;
    *size = 0;
    lam_status status = lam_instream_open(&in, path, entry);
    while (status == LAM_OK && got > 0 && *size + step <= PACKED_MAX) {
        status = lam_instream_read(in, unpacked + *size, step, &got);
        *size += got;
    }
    lam_instream_close(in);
    return status;
}

static void check_is_text(const char *path, const char *entry, size_t step, size_t want)
{
    size_t size;
    const lam_status status = read_all(path, entry, step, &size);
    ck_assert_msg(status == LAM_OK, "%s", lam_error());
    ck_assert_uint_eq(size, want);
    ck_assert_mem_eq(unpacked, text, want);
}

START_TEST(every_packing_gives_the_bytes_back)
{
    static const size_t sizes[] = {1, 2, 5000, TEXT_SIZE}, steps[] = {1, 7, 4096, 1 << 17};
    make_text();
    for (int s = 0; s < 4; s++) {
        const char *path = save(packed, packings[_i].pack(packed, text, sizes[s]));
        for (int k = s == 3 ? 1 : 0; k < 4; k++)
            check_is_text(path, NULL, steps[k], sizes[s]);
    }
    lam_instream *in;
    ck_assert_int_eq(lam_instream_open(&in, test_temp_path("file"), NULL), LAM_OK);
    ck_assert_str_eq(lam_instream_format(in), packings[_i].format);
    ck_assert_uint_gt(lam_instream_size(in), 0);
    lam_instream_close(in);
}
END_TEST

START_TEST(empty_texts_are_empty)
{
    size_t size;
    const char *path = save(packed, packings[_i].pack(packed, text, 0));
    ck_assert_int_eq(read_all(path, NULL, 100, &size), LAM_OK);
    ck_assert_uint_eq(size, 0);
}
END_TEST

START_TEST(standard_input_streams)
{
    int ends[2];
    make_text();
    const size_t n = packings[_i].pack(packed, text, 100000);
    ck_assert_int_eq(pipe(ends), 0);
    if (fork() == 0) { /* dribbles, so that reads come back short */
        for (size_t at = 0; at < n;) {
            const size_t some = at < 20 ? 1 : n - at < 777 ? n - at : 777;
            at += write(ends[1], packed + at, some) > 0 ? some : 0;
        }
        _exit(0);
    }
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    check_is_text("-", NULL, 5000, 100000);
}
END_TEST

/* Cut anywhere, the text is either complete or an error with the file's name in it. */
START_TEST(truncated_input_is_an_error)
{
    make_text();
    const size_t n = packings[_i].pack(packed, text, SMALL);
    const int is_plain = _i == 0;
    size_t complete = 0;
    for (size_t cut = 0; cut < n; cut++) {
        size_t size;
        const char *path = save(packed, cut);
        const lam_status status = read_all(path, NULL, 64, &size);
        if (is_plain || cut < 6) { /* too short to be recognised: it is plain text */
            continue;
        } else if (status == LAM_OK) {
            /* A whole member, a whole frame, or a zip archive without its directory. */
            ck_assert_mem_eq(unpacked, text, size);
            complete++;
        } else if (status != LAM_ERR_FORMAT || strstr(lam_error(), path) == NULL ||
                   strstr(lam_error(), "at byte") == NULL) {
            ck_abort_msg("cut at %zu: %s", cut, lam_error());
        }
    }
    ck_assert_uint_le(complete, 46);
}
END_TEST

/* Flip any bit: an error, or the same bytes (names and times are not protected), never others. */
START_TEST(corrupt_input_is_never_wrong_text)
{
    make_text();
    const size_t n = packings[_i].pack(packed, text, SMALL);
    int noticed = 0;
    for (size_t bit = 8 * 8; _i > 0 && bit < 8 * n; bit++) {
        size_t size;
        packed[bit / 8] ^= (unsigned char)(1 << bit % 8);
        const lam_status status = read_all(save(packed, n), NULL, 64, &size);
        if (status == LAM_OK && (size != SMALL || memcmp(unpacked, text, SMALL) != 0))
            ck_abort_msg("%s: bit %zu", packings[_i].name, bit);
        noticed += status != LAM_OK;
        packed[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    ck_assert(_i == 0 || noticed > (int)n);
}
END_TEST

START_TEST(random_bytes_after_a_magic_do_not_hurt)
{
    static const char *const magics[] = {"\x1f\x8b\x08", "PK\x03\x04", "\xfd\x37zXZ",
                                         "\x28\xb5\x2f\xfd"};
    static const size_t sizes[] = {3, 4, 6, 4};
    lam_rng rng = test_rng(11);
    for (int round = 0; round < 2000; round++) {
        size_t size;
        const int k = round % 4;
        const size_t n = sizes[k] + lam_rng_below(&rng, 200);
        for (size_t i = 0; i < n; i++)
            packed[i] = (unsigned char)lam_rng_below(&rng, round % 3 == 0 ? 4 : 256);
        memcpy(packed, magics[k], sizes[k]);
        const lam_status status = read_all(save(packed, n), NULL, 512, &size);
        if (status != LAM_OK && strstr(lam_error(), test_temp_path("file")) == NULL)
            ck_abort_msg("round %d: %s", round, lam_error());
    }
}
END_TEST

START_TEST(archives_are_searched_by_name)
{
    make_text();
    size_t n = zip_file(packed, &(zip_entry){"wikitext-2/", text, 0, 0, 0, 0});
    n += zip_file(packed + n, &(zip_entry){"wikitext-2/wiki.test.tokens", text, 100, 8, 1, 0});
    n += zip_file(packed + n, &(zip_entry){"wikitext-2/wiki.train.tokens", text, 5000, 8, 0, 0});
    n += zip_end(packed + n);
    const char *path = save(packed, n);
    size_t size;
    check_is_text(path, NULL, 4096, 100); /* the first file, not the folder */
    check_is_text(path, "wiki.train.tokens", 4096, 5000);
    check_is_text(path, "wikitext-2/wiki.train.tokens", 4096, 5000);
    ck_assert_int_eq(read_all(path, "tokens", 64, &size), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "no file called tokens"));
}
END_TEST

START_TEST(what_cannot_be_read_is_named)
{
    lam_instream *in;
    size_t size;
    ck_assert_int_eq(lam_instream_open(&in, "no/such/file", NULL), LAM_ERR_IO);
    ck_assert_ptr_null(in);
    ck_assert_ptr_nonnull(strstr(lam_error(), "no/such/file"));
    ck_assert_int_eq(lam_instream_open(&in, "/", NULL), LAM_ERR_IO);

    const char *path = save("plain", 5);
    ck_assert_int_eq(lam_instream_open(&in, path, "x"), LAM_ERR_FORMAT);

    size_t n = zip_file(packed, &(zip_entry){"x", text, 10, 8, 0, 0});
    packed[8] = 12; /* bzip2 */
    ck_assert_int_eq(read_all(save(packed, n), NULL, 64, &size), LAM_ERR_UNSUPPORTED);
    packed[8] = 8;
    packed[6] = 1; /* encrypted */
    ck_assert_int_eq(read_all(save(packed, n), NULL, 64, &size), LAM_ERR_UNSUPPORTED);
    packed[6] = 8; /* stored, and the size is not known */
    packed[8] = packed[18] = packed[22] = 0;
    ck_assert_int_eq(read_all(save(packed, n), NULL, 64, &size), LAM_ERR_UNSUPPORTED);
}
END_TEST

START_TEST(a_whole_text_loads_up_to_its_limit)
{
    make_text();
    const char *path = save(packed, packings[_i].pack(packed, text, TEXT_SIZE));
    char *whole;
    size_t size;
    must(lam_instream_load(&whole, &size, path, TEXT_SIZE));
    ck_assert_uint_eq(size, TEXT_SIZE);
    ck_assert_mem_eq(whole, text, TEXT_SIZE);
    ck_assert_int_eq(whole[size], '\0');
    free(whole);
    ck_assert_int_eq(lam_instream_load(&whole, &size, path, TEXT_SIZE - 1), LAM_ERR_FORMAT);
    ck_assert(whole == NULL && size == 0);
    lam_budget_set(1);
    ck_assert_int_eq(lam_instream_load(&whole, &size, path, TEXT_SIZE), LAM_ERR_MEMORY);
    lam_budget_set(0);
    ck_assert(whole == NULL && size == 0);
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = lam_instream_load(&whole, &size, path, TEXT_SIZE);
        test_alloc_end(status);
        free(whole);
    }
}
END_TEST

/* The first `asked` questions are answered with no. */
static int asked;
static int stop_later(void)
{
    return asked-- <= 0;
}

/* Zeros of no more packed bytes than a short letter. */
START_TEST(a_packed_text_out_of_proportion_is_refused)
{
    enum { MEMBER = 4 << 20 };
    const char *const path = test_temp_path("bomb.gz");
    unsigned char *const zeros = calloc(MEMBER, 1), *const member = malloc(MEMBER);
    lam_outfile *file;
    char *whole;
    size_t size;
    const size_t n = pack_gzip(member, zeros, MEMBER);
    for (int count = 12; count < 14; count++) { /* 48 MiB, and 4 more */
        must(lam_outfile_open(&file, path));
        for (int i = 0; i < count; i++)
            must(lam_outfile_write(file, member, n));
        must(lam_outfile_finish(file));
        const lam_status status = lam_instream_load(&whole, &size, path, 1 << 30);
        ck_assert_int_eq(status, count == 12 ? LAM_OK : LAM_ERR_FORMAT);
        free(whole);
    }
    ck_assert_msg(strstr(lam_error(), "bomb.gz: ") && strstr(lam_error(), "unpack it before"), "%s",
                  lam_error());
    free(zeros);
    free(member);
}
END_TEST

START_TEST(a_named_pipe_is_waited_for_until_somebody_asks_to_stop)
{
    const char *const path = test_temp_path("pipe");
    char *whole;
    size_t size;
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    lam_read_stop = stop_later;
    asked = 1; /* nobody writes */
    ck_assert_int_eq(lam_instream_load(&whole, &size, path, 100), LAM_ERR_INTERRUPTED);
    ck_assert_ptr_nonnull(strstr(lam_error(), "pipe: stopped while it was read"));
    if (fork() == 0) { /* somebody writes, later */
        usleep(100000);
        FILE *const f = fopen(path, "w");
        fputs("a text", f);
        fclose(f);
        _exit(0);
    }
    asked = 1000;
    must(lam_instream_load(&whole, &size, path, 100));
    ck_assert_str_eq(whole, "a text");
    free(whole);
    lam_read_stop = NULL;
}
END_TEST

START_TEST(devices_are_no_texts)
{
    char *whole;
    size_t size;
    ck_assert_int_eq(lam_instream_load(&whole, &size, "/dev/zero", 100), LAM_ERR_IO);
    ck_assert_str_eq(lam_error(), "/dev/zero: is a device, not a text");
    must(lam_instream_load(&whole, &size, "/dev/null", 100));
    ck_assert_uint_eq(size, 0);
    free(whole);
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    make_text();
    const char *path = save(packed, packings[_i].pack(packed, text, SMALL));
    for (long n = 1; test_alloc_fail(n); n++) {
        size_t size;
        const lam_status status = read_all(path, NULL, 64, &size);
        test_alloc_end(status);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, every_packing_gives_the_bytes_back, 0, PACKINGS);
    tcase_add_loop_test(tests, empty_texts_are_empty, 0, PACKINGS);
    tcase_add_loop_test(tests, standard_input_streams, 0, PACKINGS);
    tcase_add_loop_test(tests, truncated_input_is_an_error, 0, PACKINGS);
    tcase_add_loop_test(tests, corrupt_input_is_never_wrong_text, 0, PACKINGS);
    tcase_add_test(tests, a_packed_text_out_of_proportion_is_refused);
    tcase_add_test(tests, random_bytes_after_a_magic_do_not_hurt);
    tcase_add_test(tests, archives_are_searched_by_name);
    tcase_add_test(tests, what_cannot_be_read_is_named);
    tcase_add_loop_test(tests, a_whole_text_loads_up_to_its_limit, 0, PACKINGS);
    tcase_add_test(tests, a_named_pipe_is_waited_for_until_somebody_asks_to_stop);
    tcase_add_test(tests, devices_are_no_texts);
    tcase_add_loop_test(tests, without_memory_it_fails_cleanly, 0, PACKINGS);
    return test_run("data/instream", tests);
}
