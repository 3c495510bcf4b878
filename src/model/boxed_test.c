/* boxed_test.c -- models that come with lamemo are found by name, and nothing else is. */
#include "model/boxed.h"

#include "core/file.h"
#include "model/folder.h"
#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

static char found[4096];

static void fill_box(void)
{
    ck_assert_int_eq(lam_dir_make(test_temp_path("box/whole")), LAM_OK);
    ck_assert_int_eq(lam_file_save(test_temp_path("box/whole/config.json"), "{}", 2), LAM_OK);
    ck_assert_int_eq(lam_dir_make(test_temp_path("box/card")), LAM_OK); /* without weights */
    ck_assert_int_eq(setenv("LAMEMO_MODELS", test_temp_path("box"), 1), 0);
}

START_TEST(a_model_is_found_by_name)
{
    fill_box();
    ck_assert(lam_boxed_find(found, sizeof found, "whole"));
    ck_assert_str_eq(found, test_temp_path("box/whole"));
    ck_assert_int_eq(lam_folder_find(found, sizeof found, "whole"), LAM_OK);
    ck_assert_str_eq(found, test_temp_path("box/whole"));
}
END_TEST

START_TEST(what_is_no_name_of_a_model_is_not_found)
{
    static const char *const names[] = {"",        "absent",    "card",         ".",
                                        "..",      "./whole",   "../box/whole", ".whole",
                                        "whole/.", "box/whole", "/whole"};
    fill_box();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(!lam_boxed_find(found, sizeof found, names[i]), "%s", names[i]);
    ck_assert_int_eq(lam_folder_find(found, sizeof found, "absent"), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "absent: there is no such folder, nor does a model"));
    ck_assert(!lam_boxed_find(found, 8, "whole")); /* its path does not fit */
}
END_TEST

/* A folder of that name here comes first, even if it holds no model. */
START_TEST(a_folder_at_hand_wins)
{
    fill_box();
    ck_assert_int_eq(setenv("LAMEMO_MODELS", test_temp_path(""), 1), 0);
    ck_assert_int_eq(lam_dir_make(test_temp_path("src")), LAM_OK);
    ck_assert_int_eq(lam_file_save(test_temp_path("src/config.json"), "{}", 2), LAM_OK);
    ck_assert(lam_boxed_find(found, sizeof found, "src"));
    ck_assert_int_eq(lam_folder_find(found, sizeof found, "src"), LAM_ERR_FORMAT);
}
END_TEST

/* Without LAMEMO_MODELS: seen from this very program, build/PRESET/tests/NAME, nothing is called so. */
START_TEST(an_empty_variable_counts_as_none)
{
    ck_assert_int_eq(setenv("LAMEMO_MODELS", "", 1), 0);
    ck_assert(!lam_boxed_find(found, sizeof found, "no-such-model"));
    ck_assert_int_eq(unsetenv("LAMEMO_MODELS"), 0);
    ck_assert(!lam_boxed_find(found, sizeof found, "no-such-model"));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, a_model_is_found_by_name);
    tcase_add_test(tests, what_is_no_name_of_a_model_is_not_found);
    tcase_add_test(tests, a_folder_at_hand_wins);
    tcase_add_test(tests, an_empty_variable_counts_as_none);
    return test_run("model/boxed", tests);
}
