/* scratch_test.c -- what goes in comes out; a full disk is named. */
#include "data/scratch.h"

#include "support/suite.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

static char bytes[100000];

START_TEST(a_text_comes_back_whole)
{
    lam_scratch *s;
    const char *text;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * i >> 3);
    must(lam_scratch_create(&s, test_temp_path("")));
    must(lam_scratch_put(s, bytes, 10));
    must(lam_scratch_put(s, bytes + 10, 0));
    must(lam_scratch_put(s, bytes + 10, sizeof bytes - 10));
    ck_assert_uint_eq(lam_scratch_size(s), sizeof bytes);
    for (int i = 0; i < 2; i++) {
        must(lam_scratch_map(s, &text));
        ck_assert_mem_eq(text, bytes, sizeof bytes);
    }
    lam_scratch_free(s);
    ck_assert_int_eq(test_temp_count(), 0);
    must(lam_scratch_create(&s, test_temp_path("")));
    must(lam_scratch_map(s, &text)); /* an empty one */
    ck_assert_ptr_nonnull(text);
    lam_scratch_free(s);
}
END_TEST

START_TEST(a_missing_folder_and_a_full_disk_are_named)
{
    lam_scratch *s;
    ck_assert_int_eq(lam_scratch_create(&s, "no/such/folder"), LAM_ERR_IO);
    ck_assert_ptr_null(s);
    ck_assert_ptr_nonnull(strstr(lam_error(), "no/such/folder"));
    const struct rlimit small = {1 << 16, 1 << 16};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    must(lam_scratch_create(&s, test_temp_path("")));
    ck_assert_int_eq(lam_scratch_put(s, bytes, sizeof bytes), LAM_ERR_IO);
    lam_scratch_free(s);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, a_text_comes_back_whole);
    tcase_add_test(tests, a_missing_folder_and_a_full_disk_are_named);
    return test_run("data/scratch", tests);
}
