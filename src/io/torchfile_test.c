/* torchfile_test.c -- tensors of a file in PyTorch's format come back, whatever their order in memory, and
 * one that lies outside of its storage is refused. */
#include "io/torchfile.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/suite.h"
#include "support/torchlike.h"

#include <stdlib.h>
#include <string.h>

enum { N = 24 };

static float floats[N];

/* An archive of one storage of N floats and one dict with a tensor "x". */
static const char *write_one(const char *name, const pk_tensor_at *at)
{
    const char *path = test_temp_path(name);
    pk p = {0};
    for (int i = 0; i < N; i++)
        floats[i] = (float)i + 0.5f;
    pk_raw(&p, "\x80\x02}", 3);
    pk_text(&p, "x");
    pk_tensor(&p, at);
    pk_raw(&p, "s.", 2);
    const zip_part parts[] = {{"archive/data.pkl", p.p, p.n, 1},
                              {"archive/data/0", floats, sizeof floats, 0},
                              {"archive/data/1", floats, 0, 0},
                              {"archive/byteorder", "little", 6, 0},
                              {"archive/version", "3\n", 2, 0}};
    zip_write(path, parts, 5);
    pk_free(&p);
    return path;
}

static lam_status read_one(const char *path, lam_torch **t, lam_strided *x)
{
    LAM_TRY(lam_torch_open(t, path));
    const lam_py *node = lam_py_get(lam_torch_root(*t), "x");
    ck_assert(lam_torch_is_tensor(node));
    return lam_torch_tensor(*t, node, "x", x);
}

START_TEST(a_tensor_comes_back_in_row_major_order)
{
    /* [2][3] from element 4 on, transposed: stride 1 down, 5 across */
    const pk_tensor_at at = {"FloatStorage", "0", N, 4, 2, {2, 3}, {1, 5}};
    lam_torch *t = NULL;
    lam_strided x;
    double all[6], middle[3];
    ck_assert_msg(read_one(write_one("t.pt", &at), &t, &x) == LAM_OK, "%s", lam_error());
    ck_assert_int_eq(x.dtype, LAM_F32);
    ck_assert_int_eq(x.shape.rank, 2);
    lam_strided_copy(all, LAM_F64, &x, 0, 6);
    lam_strided_copy(middle, LAM_F64, &x, 2, 3);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(all[i], 4.5 + i / 3 + 5 * (i % 3));
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(middle[i], all[2 + i]);
    ck_assert(lam_strided_equal(&x, &x));
    lam_shape shape = {2, {2, 3}};
    const lam_strided plain = lam_strided_plain(LAM_F64, &shape, all);
    ck_assert(lam_strided_equal(&x, &plain));
    all[5] += 1.0;
    ck_assert(!lam_strided_equal(&x, &plain));
    lam_torch_close(t);
}
END_TEST

START_TEST(scalars_and_empty_tensors_are_read)
{
    const pk_tensor_at scalar = {"FloatStorage", "0", N, 23, 0, {0}, {0}};
    const pk_tensor_at empty = {"FloatStorage", "1", 0, 7, 2, {3, 0}, {1, 1}};
    lam_torch *t = NULL;
    lam_strided x;
    float value;
    ck_assert_int_eq(read_one(write_one("scalar.pt", &scalar), &t, &x), LAM_OK);
    lam_strided_copy(&value, LAM_F32, &x, 0, 1);
    ck_assert_float_eq(value, 23.5f);
    lam_torch_close(t);
    ck_assert_msg(read_one(write_one("empty.pt", &empty), &t, &x) == LAM_OK, "%s", lam_error());
    ck_assert_uint_eq(lam_shape_count(&x.shape), 0);
    lam_torch_close(t);
}
END_TEST

static const struct {
    pk_tensor_at at;
    const char *why;
} wrong[] = {
    {{"FloatStorage", "0", N, 0, 2, {5, 5}, {5, 1}}, "past the end"},
    {{"FloatStorage", "0", N, 20, 1, {5}, {1}}, "past the end"},
    {{"FloatStorage", "0", N, N, 1, {1}, {1}}, "outside"},
    {{"FloatStorage", "0", N, 0, 2, {2, 2}, {INT64_MAX, 1}}, "past the end"},
    {{"FloatStorage", "0", N, 0, 2, {INT64_MAX, INT64_MAX}, {0, 0}}, "outside"},
    {{"FloatStorage", "0", N, 0, 2, {1000, 1000}, {0, 0}}, "more elements"},
    {{"FloatStorage", "0", N, 0, 1, {-1}, {1}}, "not a number >= 0"},
    {{"FloatStorage", "0", N, 0, 1, {2}, {-1}}, "not a number >= 0"},
    {{"FloatStorage", "0", N, -1, 1, {2}, {1}}, "not described"},
    {{"FloatStorage", "0", N + 1, 0, 1, {2}, {1}}, "shorter"},
    {{"DoubleStorage", "0", N, 0, 1, {2}, {1}}, "shorter"},
    {{"ComplexFloatStorage", "0", N, 0, 1, {2}, {1}}, "element type"},
    {{"FloatStorage", "7", N, 0, 1, {2}, {1}}, "archive/data/7 is missing"},
    {{"FloatStorage", "../data.pkl", N, 0, 1, {2}, {1}}, "is missing"},
};

START_TEST(a_tensor_outside_of_its_storage_is_refused)
{
    lam_torch *t = NULL;
    lam_strided x;
    ck_assert_int_eq(read_one(write_one("wrong.pt", &wrong[_i].at), &t, &x), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), wrong[_i].why), "%s", lam_error());
    lam_torch_close(t);
}
END_TEST

START_TEST(other_files_are_told_apart)
{
    lam_torch *t;
    const char *path = test_temp_path("other");
    const zip_part no_pickle[] = {{"archive/version", "3", 1, 0}};
    const zip_part big[] = {{"a/data.pkl", "\x80\x02N.", 4, 0}, {"a/byteorder", "big", 3, 0}};
    const zip_part two[] = {{"a/data.pkl", "\x80\x02N.", 4, 0}, {"b/data.pkl", "\x80\x02N.", 4, 0}};
    ck_assert_int_eq(lam_file_save(path, "\x80\x02\x8a\x0a\x6c\xfc", 6), LAM_OK);
    ck_assert_int_eq(lam_torch_open(&t, path), LAM_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(lam_error(), "before 1.6"));
    ck_assert_int_eq(lam_file_save(path, "something else", 14), LAM_OK);
    ck_assert_int_eq(lam_torch_open(&t, path), LAM_ERR_FORMAT);
    zip_write(path, no_pickle, 1);
    ck_assert_int_eq(lam_torch_open(&t, path), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "no data.pkl"));
    zip_write(path, big, 2);
    ck_assert_int_eq(lam_torch_open(&t, path), LAM_ERR_UNSUPPORTED);
    zip_write(path, two, 2);
    ck_assert_int_eq(lam_torch_open(&t, path), LAM_ERR_FORMAT);
    ck_assert_ptr_null(t);
}
END_TEST

START_TEST(no_failing_allocation_goes_unnoticed)
{
    const pk_tensor_at at = {"FloatStorage", "0", N, 0, 1, {3}, {1}};
    const char *path = write_one("alloc.pt", &at);
    lam_map map;
    long failures = 0;
    ck_assert_int_eq(lam_map_open(&map, path), LAM_OK);
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_torch *t = NULL;
        const lam_status status = lam_torch_parse(&t, "input", map.data, map.size);
        const int failed = test_alloc_end(status);
        failures += failed;
        lam_torch_close(t);
    }
    ck_assert_int_ge(failures, 10);
    lam_map_close(&map);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, a_tensor_comes_back_in_row_major_order);
    tcase_add_test(tests, scalars_and_empty_tensors_are_read);
    tcase_add_loop_test(tests, a_tensor_outside_of_its_storage_is_refused, 0,
                        (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(tests, other_files_are_told_apart);
    tcase_add_test(tests, no_failing_allocation_goes_unnoticed);
    return test_run("io/torchfile", tests);
}
