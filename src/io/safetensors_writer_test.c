/* safetensors_writer_test.c -- what is written is read back, or never appears. */
#include "io/safetensors.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/fault.h"
#include "support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(every_type_and_rank_comes_back)
{
    const char *const path = test_temp_path("all.safetensors");
    unsigned char data[LAM_DTYPES][64];
    lam_rng rng = test_rng(31);
    lam_st_writer *w;
    ck_assert_int_eq(lam_st_writer_create(&w, path), LAM_OK);
    ck_assert_int_eq(lam_st_writer_meta(w, "config", "{\"n\": \"\xc3\xa9\\\"\"}"), LAM_OK);
    ck_assert_int_eq(lam_st_writer_meta(w, "B", "1"), LAM_OK);
    ck_assert_int_eq(lam_st_writer_meta(w, "B", "2"), LAM_OK); /* the last one counts */
    for (lam_dtype t = 0; t < LAM_DTYPES; t++) {
        lam_shape shape = {(int)t % 9, {1, 1, 1, 1, 1, 1, 1, 1}};
        if (shape.rank > 0)
            shape.dim[shape.rank - 1] = t == LAM_U8 ? 0 : 7;
        ck_assert_int_eq(lam_st_writer_add(w, lam_dtype_name(t), t, &shape), LAM_OK);
        for (size_t i = 0; i < sizeof data[t]; i++)
            data[t][i] = (unsigned char)lam_rng_u32(&rng);
    }
    ck_assert_int_eq(lam_st_writer_begin(w), LAM_OK);
    for (lam_dtype t = 0; t < LAM_DTYPES; t++) {
        const size_t bytes = lam_dtype_size(t) * (t % 9 == 0 ? 1 : t == LAM_U8 ? 0 : 7);
        ck_assert_int_eq(lam_st_writer_data(w, data[t], bytes / 2), LAM_OK); /* in two pieces */
        ck_assert_int_eq(lam_st_writer_data(w, data[t] + bytes / 2, bytes - bytes / 2), LAM_OK);
    }
    ck_assert(!lam_path_exists(path));
    ck_assert_int_eq(lam_st_writer_finish(w), LAM_OK);

    lam_safetensors *st;
    ck_assert_msg(lam_st_open(&st, path) == LAM_OK, "%s", lam_error());
    ck_assert_int_eq(lam_st_count(st), LAM_DTYPES);
    ck_assert_str_eq(lam_st_meta(st, "config"), "{\"n\": \"\xc3\xa9\\\"\"}");
    ck_assert_str_eq(lam_st_meta(st, "B"), "2");
    for (lam_dtype t = 0; t < LAM_DTYPES; t++) {
        const lam_st_tensor *const got = lam_st_find(st, lam_dtype_name(t));
        ck_assert_ptr_nonnull(got);
        ck_assert_int_eq((int)got->dtype, (int)t);
        ck_assert_int_eq(got->shape.rank, (int)t % 9);
        ck_assert_uint_eq(got->bytes, lam_shape_count(&got->shape) * lam_dtype_size(t));
        ck_assert_mem_eq(got->data, data[t], got->bytes);
    }
    lam_st_close(st);
}
END_TEST

START_TEST(a_file_without_tensors_is_a_file)
{
    const char *const path = test_temp_path("none.safetensors");
    lam_st_writer *w;
    lam_safetensors *st;
    ck_assert_int_eq(lam_st_writer_create(&w, path), LAM_OK);
    ck_assert_int_eq(lam_st_writer_begin(w), LAM_OK);
    ck_assert_int_eq(lam_st_writer_finish(w), LAM_OK);
    ck_assert_int_eq(lam_st_open(&st, path), LAM_OK);
    ck_assert_int_eq(lam_st_count(st), 0);
    lam_st_close(st);
}
END_TEST

START_TEST(the_data_begins_at_a_multiple_of_eight)
{
    const char *const path = test_temp_path("aligned.safetensors");
    const lam_shape shape = {0, {0}};
    char name[9] = "";
    for (int n = 0; n < 8; n++) { /* headers of eight lengths */
        lam_st_writer *w;
        lam_map map;
        const double x = 3.0;
        name[n] = 'x';
        ck_assert_int_eq(lam_st_writer_create(&w, path), LAM_OK);
        ck_assert_int_eq(lam_st_writer_add(w, name, LAM_F64, &shape), LAM_OK);
        ck_assert_int_eq(lam_st_writer_begin(w), LAM_OK);
        ck_assert_int_eq(lam_st_writer_data(w, &x, sizeof x), LAM_OK);
        ck_assert_int_eq(lam_st_writer_finish(w), LAM_OK);
        ck_assert_int_eq(lam_map_open(&map, path), LAM_OK);
        ck_assert_uint_eq(map.size % 8, 0);
        ck_assert_uint_eq(map.data[0] % 8, 0);
        lam_map_close(&map);
    }
}
END_TEST

START_TEST(wrong_declarations_are_refused)
{
    const lam_shape one = {1, {1}}, negative = {1, {-1}}, huge = {1, {INT64_MAX / 4}};
    lam_st_writer *w;
    ck_assert_int_eq(lam_st_writer_create(&w, test_temp_path("wrong.safetensors")), LAM_OK);
    ck_assert_int_eq(lam_st_writer_add(w, "x", LAM_F32, &one), LAM_OK);
    ck_assert_int_eq(lam_st_writer_add(w, "x", LAM_F32, &one), LAM_ERR_ARG);
    ck_assert_int_eq(lam_st_writer_add(w, "__metadata__", LAM_F32, &one), LAM_ERR_ARG);
    ck_assert_int_eq(lam_st_writer_add(w, "\xff", LAM_F32, &one), LAM_ERR_ARG);
    ck_assert_int_eq(lam_st_writer_add(w, "n", LAM_F32, &negative), LAM_ERR_ARG);
    ck_assert_int_eq(lam_st_writer_add(w, "h", LAM_F64, &huge), LAM_ERR_ARG);
    ck_assert_int_eq(lam_st_writer_meta(w, "\xff", "x"), LAM_ERR_ARG);
    ck_assert_int_eq(lam_st_writer_meta(w, "x", "\xff"), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "wrong.safetensors"));
    lam_st_writer_abort(w);
    lam_st_writer_abort(NULL);
}
END_TEST

START_TEST(too_few_or_too_many_bytes_leave_no_file)
{
    const char *const path = test_temp_path("count.safetensors");
    const lam_shape shape = {1, {4}};
    for (int many = 0; many < 2; many++) {
        lam_st_writer *w;
        ck_assert_int_eq(lam_st_writer_create(&w, path), LAM_OK);
        ck_assert_int_eq(lam_st_writer_add(w, "x", LAM_U8, &shape), LAM_OK);
        ck_assert_int_eq(lam_st_writer_begin(w), LAM_OK);
        ck_assert_int_eq(lam_st_writer_data(w, "abc", 3), LAM_OK);
        if (many)
            ck_assert_int_eq(lam_st_writer_data(w, "de", 2), LAM_ERR_ARG);
        ck_assert_int_eq(lam_st_writer_finish(w), LAM_ERR_ARG);
        ck_assert(!lam_path_exists(path));
    }
}
END_TEST

/* The whole life of a writer; whatever fails, nothing leaks and no half file appears. */
static lam_status write_one(const char *path)
{
    const lam_shape shape = {1, {4}};
    lam_st_writer *w;
    lam_status status = lam_st_writer_create(&w, path);
    if (status != LAM_OK)
        return status;
    status = lam_st_writer_meta(w, "key", "value");
    if (status == LAM_OK)
        status = lam_st_writer_add(w, "x", LAM_U8, &shape);
    if (status == LAM_OK)
        status = lam_st_writer_begin(w);
    if (status == LAM_OK)
        status = lam_st_writer_data(w, "abcd", 4);
    if (status == LAM_OK)
        return lam_st_writer_finish(w);
    lam_st_writer_abort(w);
    return status;
}

static lam_status check_seal(const char *path)
{
    lam_safetensors *st;
    LAM_TRY(lam_st_open(&st, path));
    const lam_status status = lam_st_check_seal(st);
    lam_st_close(st);
    return status;
}

START_TEST(a_seal_tells_every_change)
{
    const char *const path = test_temp_path("sealed.safetensors");
    const lam_shape shape = {1, {5}};
    lam_st_writer *w;
    char *bytes;
    size_t size;
    ck_assert_int_eq(lam_st_writer_create(&w, path), LAM_OK);
    ck_assert_int_eq(lam_st_writer_add(w, "x", LAM_U8, &shape), LAM_OK);
    ck_assert_int_eq(lam_st_writer_seal(w), LAM_OK);
    ck_assert_int_eq(lam_st_writer_begin(w), LAM_OK);
    ck_assert_int_eq(lam_st_writer_data(w, "abc", 3), LAM_OK);
    ck_assert_int_eq(lam_st_writer_data(w, "de", 2), LAM_OK);
    ck_assert_int_eq(lam_st_writer_finish(w), LAM_OK);
    ck_assert_int_eq(check_seal(path), LAM_OK);
    ck_assert_int_eq(lam_file_load(&bytes, &size, path, 1 << 16), LAM_OK);
    for (size_t i = 0; i < size; i++) {
        bytes[i]++;
        ck_assert_int_eq(lam_file_save(path, bytes, size), LAM_OK);
        ck_assert_int_eq(check_seal(path), LAM_ERR_FORMAT);
        ck_assert_ptr_nonnull(strstr(lam_error(), path));
        bytes[i]--;
    }
    free(bytes);
    ck_assert_int_eq(write_one(path), LAM_OK);
    ck_assert_int_eq(check_seal(path), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "does not end with a checksum"));
}
END_TEST

static int opens(const char *path)
{
    lam_safetensors *st;
    if (lam_st_open(&st, path) != LAM_OK)
        return 0;
    const int whole = lam_st_find(st, "x") && lam_st_meta(st, "key") &&
                      memcmp(lam_st_find(st, "x")->data, "abcd", 4) == 0;
    lam_st_close(st);
    return whole;
}

START_TEST(every_failing_allocation_is_a_memory_error)
{
    const char *const path = test_temp_path("memory.safetensors");
    long failures = 0;
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = write_one(path);
        const int failed = test_alloc_end(status);
        ck_assert_int_eq(opens(path), !failed);
        failures += failed;
    }
    ck_assert_int_ge(failures, 10);
}
END_TEST

START_TEST(every_failing_call_of_the_system_is_reported)
{
    const char *const path = test_temp_path("faulty.safetensors");
    int faults = 0;
    for (int n = 1; test_fault_at(n, ENOSPC); n++) {
        const lam_status status = write_one(path);
        ck_assert_int_eq(status, test_fault_happened() ? LAM_ERR_IO : LAM_OK);
        ck_assert(!lam_path_exists(path) || opens(path));
        faults += test_fault_happened();
        lam_dir_remove(path);
    }
    ck_assert_int_eq(faults, 4); /* write, fsync, rename, fsync of the folder */
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, every_type_and_rank_comes_back);
    tcase_add_test(tests, a_file_without_tensors_is_a_file);
    tcase_add_test(tests, the_data_begins_at_a_multiple_of_eight);
    tcase_add_test(tests, wrong_declarations_are_refused);
    tcase_add_test(tests, too_few_or_too_many_bytes_leave_no_file);
    tcase_add_test(tests, a_seal_tells_every_change);
    tcase_add_test(tests, every_failing_allocation_is_a_memory_error);
    tcase_add_test(tests, every_failing_call_of_the_system_is_reported);
    return test_run("io/safetensors_writer", tests);
}
