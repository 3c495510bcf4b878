/* map_test.c -- a mapping shows the bytes of a regular file and refuses the rest. */
#include "core/file.h"

#include "support/suite.h"

#include <string.h>
#include <sys/stat.h>

START_TEST(a_mapping_shows_the_bytes)
{
    const char *const path = test_temp_path("bytes");
    const char text[] = "some\0bytes";
    lam_map map;
    ck_assert_int_eq(lam_file_save(path, text, sizeof text), LAM_OK);
    ck_assert_int_eq(lam_map_open(&map, path), LAM_OK);
    ck_assert_uint_eq(map.size, sizeof text);
    ck_assert_mem_eq(map.data, text, sizeof text);
    lam_map_close(&map);
    ck_assert_ptr_null(map.data);
    lam_map_close(&map); /* twice is fine */
}
END_TEST

START_TEST(an_empty_file_has_size_0_and_an_address)
{
    const char *const path = test_temp_path("empty");
    lam_map map;
    ck_assert_int_eq(lam_file_save(path, NULL, 0), LAM_OK);
    ck_assert_int_eq(lam_map_open(&map, path), LAM_OK);
    ck_assert_uint_eq(map.size, 0);
    ck_assert_ptr_nonnull(map.data);
    lam_map_close(&map);
}
END_TEST

START_TEST(what_is_not_a_file_is_refused_by_name)
{
    const char *const paths[] = {test_temp_path("missing"), test_temp_path(""), "/dev/null",
                                 test_temp_path("pipe")};
    ck_assert_int_eq(mkfifo(paths[3], 0666), 0); /* nobody writes into it: no reason to wait */
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        lam_map map = {(const unsigned char *)"x", 1};
        ck_assert_int_eq(lam_map_open(&map, paths[i]), LAM_ERR_IO);
        ck_assert_ptr_null(map.data);
        ck_assert_uint_eq(map.size, 0);
        ck_assert_ptr_nonnull(strstr(lam_error(), paths[i]));
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, a_mapping_shows_the_bytes);
    tcase_add_test(tests, an_empty_file_has_size_0_and_an_address);
    tcase_add_test(tests, what_is_not_a_file_is_refused_by_name);
    return test_run("core/map", tests);
}
