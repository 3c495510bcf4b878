/* zip_test.c -- archives come back byte for byte, and damaged ones are refused. */
#include "io/zip.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/torchlike.h"

#include <stdlib.h>
#include <string.h>

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
    lam_zip *zip;
    ck_assert_msg(lam_zip_open(&zip, sample()) == LAM_OK, "%s", lam_error());
    ck_assert_int_eq(lam_zip_count(zip), 4);
    check_entry(zip, "b/packed", noise, LONG);
    check_entry(zip, "a", "hello", 5);
    check_entry(zip, "b/stored", noise, LONG);
    check_entry(zip, "empty", "", 0);
    ck_assert_int_eq(lam_zip_find(zip, "b"), -1);
    lam_zip_close(zip);
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
    lam_zip *zip;
    zip_write(test_temp_path("twice.zip"), parts, 2);
    ck_assert_int_eq(lam_zip_open(&zip, test_temp_path("twice.zip")), LAM_ERR_FORMAT);
    ck_assert_ptr_null(zip);
    ck_assert_ptr_nonnull(strstr(lam_error(), "two entries are called x"));
    ck_assert_int_eq(lam_zip_open(&zip, test_temp_path("nothing.zip")), LAM_ERR_IO);
}
END_TEST

/* minizip's own allocations are not ours to fail. */
START_TEST(no_failing_allocation_goes_unnoticed)
{
    lam_map map;
    long failures = 0;
    ck_assert_int_eq(lam_map_open(&map, sample()), LAM_OK);
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = load_all(map.data, map.size);
        const int failed = test_alloc_stop();
        ck_assert_int_eq(status, failed ? LAM_ERR_MEMORY : LAM_OK);
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
    tcase_add_test(tests, no_failing_allocation_goes_unnoticed);
    return test_run("io/zip", tests);
}
