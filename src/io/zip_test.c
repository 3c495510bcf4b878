/* zip_test.c -- archives come back byte for byte, and damaged ones are refused. */
#include "io/zip.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/torchlike.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LONG = 5000 };

static unsigned char noise[LONG];

static const char *sample(void)
{
    const char *path = test_temp_path("sample.zip");
    lam_rng rng = test_rng(1);
    for (int i = 0; i < LONG; i++)
        noise[i] = (unsigned char)lam_rng_below(&rng, 7);
    const zip_part parts[] = {{"b/stored", noise, LONG, 0},
                              {"b/packed", noise, LONG, 1},
                              {"a", "hello", 5, 0},
                              {"empty", "", 0, 0}};
    zip_write(path, parts, 4);
    return path;
}

static void check_entry(lam_zip *zip, const char *name, const void *want, size_t n)
{
    const void *data;
    size_t size;
    const int i = lam_zip_find(zip, name);
    ck_assert_int_ge(i, 0);
    ck_assert_str_eq(lam_zip_name(zip, i), name);
    for (int twice = 0; twice < 2; twice++) {
        ck_assert_msg(lam_zip_load(zip, i, &data, &size) == LAM_OK, "%s", lam_error());
        ck_assert_uint_eq(size, n);
        ck_assert_int_eq(memcmp(data, want, n), 0);
    }
}

START_TEST(entries_come_back)
{
    lam_map map;
    lam_zip *zip;
    must(lam_map_open(&map, sample()));
    must(lam_zip_parse(&zip, "sample", map.data, map.size));
    ck_assert_int_eq(lam_zip_count(zip), 4);
    check_entry(zip, "b/packed", noise, LONG);
    check_entry(zip, "a", "hello", 5);
    check_entry(zip, "b/stored", noise, LONG);
    check_entry(zip, "empty", "", 0);
    ck_assert_int_eq(lam_zip_find(zip, "b"), -1);
    lam_zip_close(zip);
    lam_map_close(&map);
}
END_TEST

/* Opens and loads everything; the first failure. */
static lam_status load_all(const void *bytes, size_t n)
{
    lam_zip *zip;
    const void *data;
    size_t size;
    LAM_TRY(lam_zip_parse(&zip, "input", bytes, n));
    lam_status status = LAM_OK;
    for (int i = 0; i < lam_zip_count(zip) && status == LAM_OK; i++)
        status = lam_zip_load(zip, i, &data, &size);
    lam_zip_close(zip);
    return status;
}

START_TEST(every_cut_is_refused)
{
    lam_map map;
    ck_assert_int_eq(lam_map_open(&map, sample()), LAM_OK);
    ck_assert_int_eq(load_all(map.data, map.size), LAM_OK);
    for (size_t n = 0; n < map.size; n++) {
        unsigned char *copy =
            malloc(n + 1); /* exactly n bytes: a sanitizer sees every step beyond */
        memcpy(copy, map.data, n);
        ck_assert_msg(load_all(copy, n) != LAM_OK, "%zu of %zu bytes", n, map.size);
        free(copy);
    }
    lam_map_close(&map);
}
END_TEST

START_TEST(a_changed_byte_of_data_is_noticed)
{
    lam_map map;
    ck_assert_int_eq(lam_map_open(&map, sample()), LAM_OK);
    unsigned char *copy = malloc(map.size);
    memcpy(copy, map.data, map.size);
    unsigned char *hello = NULL;
    for (size_t i = 0; i + 5 <= map.size && !hello; i++)
        if (memcmp(copy + i, "hello", 5) == 0)
            hello = copy + i;
    ck_assert_ptr_nonnull(hello);
    *hello = 'j';
    ck_assert_int_eq(load_all(copy, map.size), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "a: its checksum is wrong"));
    free(copy);
    lam_map_close(&map);
}
END_TEST

START_TEST(any_changed_byte_is_harmless)
{
    lam_map map;
    ck_assert_int_eq(lam_map_open(&map, sample()), LAM_OK);
    unsigned char *copy = malloc(map.size);
    lam_rng rng = test_rng(2);
    for (int round = 0; round < 3000; round++) {
        memcpy(copy, map.data, map.size);
        for (int k = 0; k < 3; k++)
            copy[lam_rng_below(&rng, map.size)] = (unsigned char)lam_rng_below(&rng, 256);
        load_all(copy, map.size); /* fails or not: no crash, nothing read beyond the end */
    }
    free(copy);
    lam_map_close(&map);
}
END_TEST

START_TEST(two_entries_of_one_name_are_refused)
{
    const zip_part parts[] = {{"x", "1", 1, 0}, {"x", "2", 1, 0}};
    lam_map map;
    lam_zip *zip;
    zip_write(test_temp_path("twice.zip"), parts, 2);
    must(lam_map_open(&map, test_temp_path("twice.zip")));
    ck_assert_int_eq(lam_zip_parse(&zip, "twice", map.data, map.size), LAM_ERR_FORMAT);
    ck_assert_ptr_null(zip);
    ck_assert_ptr_nonnull(strstr(lam_error(), "two entries are called x"));
    lam_map_close(&map);
}
END_TEST

/* ---- hand-made archives that minizip cannot write ---- */

typedef struct maker {
    unsigned char bytes[4096], entries[2048]; /* entries: of the directory */
    size_t n, used, count;
} maker;

static size_t put(unsigned char *to, uint64_t value, int width)
{
    for (int i = 0; i < width; i++)
        to[i] = (unsigned char)(value >> 8 * i);
    return (size_t)width;
}

static size_t put_all(unsigned char *to, const uint64_t *values, const char *widths)
{
    size_t n = 0;
    for (int i = 0; widths[i]; i++)
        n += put(to + n, values[i], widths[i] - '0');
    return n;
}

static size_t put_text(unsigned char *to, const char *text)
{
    memcpy(to, text, strlen(text));
    return strlen(text);
}

/* What stands where a number of 64 bits follows in the extra field. */
static const uint64_t SMALL = 0xffffffff;

/* Adds bytes, and an entry of the directory that says so in Zip64's extra field. */
static size_t make_local(maker *m, const char *name, const void *data, size_t size)
{
    const size_t place = m->n, length = strlen(name);
    const uint64_t crc = crc32_z(0, data, size);
    m->n += put_text(m->bytes + m->n, "PK\3\4");
    m->n += put_all(m->bytes + m->n, (uint64_t[]){45, 0, 0, 0, crc, SMALL, SMALL, length, 20},
                    "222444422");
    m->n += put_text(m->bytes + m->n, name);
    m->n += put_all(m->bytes + m->n, (uint64_t[]){1, 16, size, size}, "2288");
    memcpy(m->bytes + m->n, data, size);
    m->n += size;
    return place;
}

static void make_entry(maker *m, const char *name, const void *data, size_t size, size_t place)
{
    const uint64_t crc = crc32_z(0, data, size), length = strlen(name);
    unsigned char *to = m->entries;
    m->used += put_text(to + m->used, "PK\1\2");
    m->used +=
        put_all(to + m->used,
                (uint64_t[]){45, 45, 0, 0, 0, crc, SMALL, SMALL, length, 32, 0, 0, 0, 0, SMALL},
                "222244442222244");
    m->used += put_text(to + m->used, name);
    m->used += put_all(to + m->used, (uint64_t[]){0x4246, 0}, "22"); /* another field: skipped */
    m->used += put_all(to + m->used, (uint64_t[]){1, 24, size, size, place}, "22888");
    m->count++;
}

static void make_end(maker *m)
{
    const size_t place = m->n, end = m->n + m->used;
    memcpy(m->bytes + m->n, m->entries, m->used);
    m->n = end;
    m->n += put_text(m->bytes + m->n, "PK\6\6");
    m->n +=
        put_all(m->bytes + m->n, (uint64_t[]){44, 45, 45, 0, 0, m->count, m->count, m->used, place},
                "822448888");
    m->n += put_text(m->bytes + m->n, "PK\6\7");
    m->n += put_all(m->bytes + m->n, (uint64_t[]){0, end, 1}, "484");
    m->n += put_text(m->bytes + m->n, "PK\5\6");
    m->n +=
        put_all(m->bytes + m->n, (uint64_t[]){0, 0, 0xffff, 0xffff, SMALL, SMALL, 0}, "2222442");
}

START_TEST(zip64_is_read)
{
    static maker m;
    lam_zip *zip;
    make_entry(&m, "a/big", noise, 1000, make_local(&m, "a/big", noise, 1000));
    make_entry(&m, "a/hello", "hello", 5, make_local(&m, "a/hello", "hello", 5));
    make_end(&m);
    ck_assert_msg(lam_zip_parse(&zip, "input", m.bytes, m.n) == LAM_OK, "%s", lam_error());
    ck_assert_int_eq(lam_zip_count(zip), 2);
    check_entry(zip, "a/big", noise, 1000);
    check_entry(zip, "a/hello", "hello", 5);
    lam_zip_close(zip);
    for (size_t n = 0; n < m.n; n++) {
        unsigned char *copy = malloc(n + 1);
        memcpy(copy, m.bytes, n);
        ck_assert_msg(load_all(copy, n) != LAM_OK, "%zu of %zu bytes", n, m.n);
        free(copy);
    }
    lam_rng rng = test_rng(3);
    unsigned char *copy = malloc(m.n);
    for (int round = 0; round < 3000; round++) {
        memcpy(copy, m.bytes, m.n);
        copy[lam_rng_below(&rng, m.n)] = (unsigned char)lam_rng_below(&rng, 256);
        load_all(copy, m.n);
    }
    free(copy);
}
END_TEST

START_TEST(numbers_that_zip64_promises_and_lacks_are_refused)
{
    static maker m;
    make_entry(&m, "a", "hello", 5, make_local(&m, "a", "hello", 5));
    put(m.entries + 46 + 1 + 4, 2, 2); /* its field is not Zip64's any more */
    make_end(&m);
    ck_assert_int_eq(load_all(m.bytes, m.n), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "the sizes that Zip64 promises"), "%s", lam_error());
}
END_TEST

START_TEST(entries_that_overlap_are_refused)
{
    static maker m;
    const size_t place = make_local(&m, "a", noise, 1000);
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        make_entry(&m, names[i], noise, 1000, place);
    make_end(&m);
    ck_assert_int_eq(load_all(m.bytes, m.n), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "entries overlap"), "%s", lam_error());
}
END_TEST

/* Deflate makes a thousandth of zeros: 180 kB would become 180 MB. */
START_TEST(memory_is_bounded_by_the_archive)
{
    enum { MANY = 30000000, PARTS = 6 };
    static const char *const names[PARTS] = {"a", "b", "c", "d", "e", "f"};
    char *zeros = calloc(MANY, 1);
    zip_part parts[PARTS];
    for (int i = 0; i < PARTS; i++)
        parts[i] = (zip_part){names[i], zeros, MANY, 1};
    zip_write(test_temp_path("bomb.zip"), parts, PARTS);
    free(zeros);
    lam_map map;
    must(lam_map_open(&map, test_temp_path("bomb.zip")));
    test_alloc_measure();
    const lam_status status = load_all(map.data, map.size);
    const size_t peak = test_alloc_peak();
    ck_assert_int_eq(status, LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "entry b unpacks to 30000000 bytes"), "%s", lam_error());
    ck_assert_uint_lt(peak, LAM_ZIP_FLOOR + (LAM_ZIP_RATIO + 1) * map.size);
    lam_map_close(&map);
}
END_TEST

/* zlib's own allocations are not ours to fail. */
START_TEST(no_failing_allocation_goes_unnoticed)
{
    lam_map map;
    long failures = 0;
    ck_assert_int_eq(lam_map_open(&map, sample()), LAM_OK);
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = load_all(map.data, map.size);
        const int failed = test_alloc_end(status);
        failures += failed;
    }
    ck_assert_int_ge(failures, 6);
    lam_map_close(&map);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, entries_come_back);
    tcase_add_test(tests, every_cut_is_refused);
    tcase_add_test(tests, a_changed_byte_of_data_is_noticed);
    tcase_add_test(tests, any_changed_byte_is_harmless);
    tcase_add_test(tests, two_entries_of_one_name_are_refused);
    tcase_add_test(tests, zip64_is_read);
    tcase_add_test(tests, numbers_that_zip64_promises_and_lacks_are_refused);
    tcase_add_test(tests, entries_that_overlap_are_refused);
    tcase_add_test(tests, memory_is_bounded_by_the_archive);
    tcase_add_test(tests, no_failing_allocation_goes_unnoticed);
    return test_run("io/zip", tests);
}
