/* dir_test.c -- a folder is replaced as a whole or not at all. */
#include "core/file.h"

#include "support/fault.h"
#include "support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const char *folder, const char *name, const char *text)
{
    char path[4096];
    ck_assert_int_eq(lam_path_join(path, sizeof path, folder, name), LAM_OK);
    FILE *const file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fputs(text, file) < 0, 0);
    ck_assert_int_eq(fclose(file), 0);
}

static int holds(const char *folder, const char *name, const char *text)
{
    char path[4096], *got;
    size_t size;
    ck_assert_int_eq(lam_path_join(path, sizeof path, folder, name), LAM_OK);
    if (lam_file_load(&got, &size, path, 1000) != LAM_OK)
        return 0;
    const int same = strcmp(got, text) == 0;
    free(got);
    return same;
}

/* Two files and a folder below: enough to notice a mixture. */
static void fill(const char *folder, const char *text)
{
    char inner[4096];
    ck_assert_int_eq(lam_path_join(inner, sizeof inner, folder, "inner"), LAM_OK);
    ck_assert_int_eq(lam_dir_remove(folder), LAM_OK);
    ck_assert_int_eq(lam_dir_make(inner), LAM_OK);
    put(folder, "model", text);
    put(inner, "state", text);
}

static int is_whole(const char *folder, const char *text)
{
    return holds(folder, "model", text) && holds(folder, "inner/state", text);
}

START_TEST(folders_are_made_with_their_parents)
{
    struct stat info;
    ck_assert_int_eq(lam_dir_make(test_temp_path("a/b//c/")), LAM_OK);
    ck_assert_int_eq(stat(test_temp_path("a/b/c"), &info), 0);
    ck_assert(S_ISDIR(info.st_mode));
    ck_assert_int_eq(lam_dir_make(test_temp_path("a/b/c")), LAM_OK);
    ck_assert_int_eq(lam_dir_make("/"), LAM_OK);
    ck_assert_int_eq(lam_dir_make(""), LAM_ERR_ARG);

    put(test_temp_path("a"), "file", "x");
    ck_assert_int_eq(lam_dir_make(test_temp_path("a/file")), LAM_ERR_IO);
    ck_assert_int_eq(lam_dir_make(test_temp_path("a/file/b")), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "a/file: cannot make the folder: Not a directory"));
    ck_assert_int_eq(lam_dir_remove(test_temp_path("a/file/b")), LAM_OK); /* there is none */
}
END_TEST

START_TEST(what_could_be_made_is_told_without_making_it)
{
    ck_assert_int_eq(lam_dir_make(test_temp_path("may")), LAM_OK);
    ck_assert_int_eq(lam_dir_may_make(test_temp_path("may")), LAM_OK);
    ck_assert_int_eq(lam_dir_may_make(test_temp_path("may/b//c/")), LAM_OK);
    ck_assert(!lam_path_exists(test_temp_path("may/b")));
    ck_assert_int_eq(lam_dir_may_make(""), LAM_ERR_ARG);

    put(test_temp_path("may"), "file", "x");
    ck_assert_int_eq(lam_dir_may_make(test_temp_path("may/file")), LAM_ERR_IO);
    ck_assert_int_eq(lam_dir_may_make(test_temp_path("may/file/b/c")), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "may/file: cannot make the folder: Not a directory"));
    ck_assert_int_eq(chmod(test_temp_path("may"), 0500), 0);
    const int root = access(test_temp_path("may"), W_OK) == 0; /* for whom no mode holds */
    ck_assert_int_eq(lam_dir_may_make(test_temp_path("may/b")), root ? LAM_OK : LAM_ERR_IO);
    ck_assert_int_eq(chmod(test_temp_path("may"), 0700), 0);
}
END_TEST

/* As a user who may not enter the working folder: no mode stops root. */
START_TEST(a_working_folder_that_cannot_be_searched_is_named)
{
    must(lam_dir_make(test_temp_path("closed")));
    ck_assert_int_eq(chdir(test_temp_path("closed")), 0);
    ck_assert_int_eq(chmod(".", 0), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_int_eq(lam_dir_may_make("a/b"), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "a/b: cannot open: Permission denied"));
    ck_assert_int_eq(lam_dir_may_make("../a"), LAM_ERR_IO);
    ck_assert_int_eq(seteuid(getuid()), 0);
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(the_root_and_links_to_nothing_are_refused)
{
    ck_assert_int_eq(lam_dir_may_make("/"), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "/: the root of all folders"));
    ck_assert_int_eq(lam_dir_may_make("/usr/..//"), LAM_ERR_IO);
    ck_assert_int_eq(symlink("nothing", test_temp_path("dangling")), 0);
    ck_assert_int_eq(lam_dir_may_make(test_temp_path("dangling/a")), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "dangling: a link to nothing"));
}
END_TEST

/* Here it is a link to itself; mostly it is a folder that others may not enter. */
START_TEST(what_cannot_be_looked_at_is_not_missing)
{
    int there = 1;
    must(lam_dir_make(test_temp_path("look")));
    ck_assert_int_eq(symlink("loop", test_temp_path("look/loop")), 0);
    put(test_temp_path("look"), "file", "x");
    must(lam_path_look(&there, test_temp_path("look/none")));
    ck_assert(!there);
    must(lam_path_look(&there, test_temp_path("look/file/none")));
    ck_assert(!there);
    must(lam_path_look(&there, test_temp_path("look/file")));
    ck_assert(there);
    ck_assert_int_eq(lam_path_look(&there, test_temp_path("look/loop/x")), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "look/loop/x: cannot open: "));
}
END_TEST

START_TEST(paths_are_joined_or_refused)
{
    char out[10];
    ck_assert_int_eq(lam_path_join(out, sizeof out, "abc", "defgh"), LAM_OK);
    ck_assert_str_eq(out, "abc/defgh");
    ck_assert_int_eq(lam_path_join(out, sizeof out, "abc/", "defgh"), LAM_OK);
    ck_assert_str_eq(out, "abc/defgh");
    ck_assert_int_eq(lam_path_join(out, sizeof out, "abcd", "defgh"), LAM_ERR_ARG);
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(removing_takes_the_tree_and_no_more)
{
    const char *const tree = test_temp_path("tree"), *const other = test_temp_path("other");
    fill(tree, "x");
    fill(other, "kept");
    ck_assert_int_eq(symlink(other, test_temp_path("tree/link")), 0);
    ck_assert_int_eq(lam_dir_remove(tree), LAM_OK);
    ck_assert(!lam_path_exists(tree));
    ck_assert(is_whole(other, "kept")); /* links are not followed */
    ck_assert_int_eq(lam_dir_remove(tree), LAM_OK);
}
END_TEST

START_TEST(a_folder_takes_the_place_of_none_or_of_another)
{
    const char *const target = test_temp_path("t"), *const temporary = test_temp_path("t.new");
    for (int exchange = 0; exchange < 2; exchange++) {
        test_fault_no_exchange(!exchange);
        ck_assert_int_eq(lam_dir_remove(target), LAM_OK);
        for (int round = 0; round < 3; round++) {
            const char text[2] = {(char)('a' + round), '\0'};
            fill(temporary, text);
            ck_assert_int_eq(lam_dir_replace(target, temporary), LAM_OK);
            ck_assert(is_whole(target, text));
            ck_assert(!lam_path_exists(temporary));
            ck_assert(!lam_path_exists(test_temp_path("t.old")));
        }
        fill(temporary, "slash");
        ck_assert_int_eq(lam_dir_replace(test_temp_path("t/"), test_temp_path("t.new/")), LAM_OK);
        ck_assert(is_whole(target, "slash"));
    }
}
END_TEST

/* With and without the exchange of names. */
START_TEST(any_failing_call_leaves_one_whole_folder)
{
    const char *const target = test_temp_path("f"), *const temporary = test_temp_path("f.new");
    test_fault_no_exchange(_i);
    int faults = 0, old_kept = 0;
    for (int n = 1; test_fault_at(n, EIO); n++) {
        fill(target, "old");
        fill(temporary, "new");
        const lam_status status = lam_dir_replace(target, temporary);
        ck_assert_int_eq(status, test_fault_happened() ? LAM_ERR_IO : LAM_OK);
        if (test_fault_happened()) {
            faults++;
            old_kept += is_whole(target, "old");
            ck_assert_ptr_nonnull(strstr(lam_error(), test_temp_path("f")));
        }
        ck_assert(is_whole(target, "old") || is_whole(target, "new"));
    }
    ck_assert(is_whole(target, "new"));
    /* two files, two folders, the renames, and last the parent's fsync, after which it is new */
    ck_assert_int_eq(faults, _i ? 7 : 6);
    ck_assert_int_eq(old_kept, faults - 1);
}
END_TEST

static void replace(void *unused)
{
    (void)unused;
    lam_dir_replace(test_temp_path("k"), test_temp_path("k.new"));
}

START_TEST(dying_at_any_call_leaves_a_folder_that_recovers)
{
    const char *const target = test_temp_path("k");
    test_fault_no_exchange(_i);
    int without = 0;
    for (int n = 1;; n++) {
        fill(target, "old");
        fill(test_temp_path("k.new"), "new");
        const int died = test_crash_at(n, replace, NULL);
        without += !lam_path_exists(target);
        ck_assert_int_eq(lam_dir_recover(target), LAM_OK);
        ck_assert(is_whole(target, "old") || is_whole(target, "new"));
        ck_assert(!lam_path_exists(test_temp_path("k.old")));
        if (!died)
            break;
    }
    ck_assert(is_whole(target, "new"));
    ck_assert_int_eq(without, _i); /* two renames have a moment without `target`, one has none */
}
END_TEST

START_TEST(a_new_folder_takes_the_place_of_none_or_of_an_empty_one_only)
{
    const char *const target = test_temp_path("p"), *const temporary = test_temp_path("p.new");
    fill(temporary, "x");
    ck_assert_int_eq(lam_dir_place(target, temporary), LAM_OK);
    ck_assert(is_whole(target, "x"));
    fill(temporary, "y");
    ck_assert_int_eq(lam_dir_place(target, temporary), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "p: cannot make the folder: "));
    ck_assert(is_whole(target, "x") && is_whole(temporary, "y"));
    ck_assert_int_eq(lam_dir_remove(target), LAM_OK);
    ck_assert_int_eq(lam_dir_make(target), LAM_OK);
    ck_assert_int_eq(lam_dir_place(target, temporary), LAM_OK);
    ck_assert(is_whole(target, "y"));
}
END_TEST

START_TEST(recovering_what_is_whole_or_absent_does_nothing)
{
    const char *const target = test_temp_path("r");
    ck_assert_int_eq(lam_dir_recover(target), LAM_OK);
    ck_assert(!lam_path_exists(target));
    fill(target, "x");
    ck_assert_int_eq(lam_dir_recover(target), LAM_OK);
    ck_assert(is_whole(target, "x"));
}
END_TEST

START_TEST(a_missing_source_is_refused_by_name)
{
    const char *const target = test_temp_path("m"), *const temporary = test_temp_path("m.new");
    fill(target, "old");
    ck_assert_int_eq(lam_dir_replace(target, temporary), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), temporary));
    ck_assert(is_whole(target, "old"));
}
END_TEST

static lam_status fill_then(void *user, const char *dir)
{
    const lam_status *const status = user;
    fill(dir, "new");
    return *status == LAM_OK ? LAM_OK : lam_fail(*status, "the reason");
}

START_TEST(a_folder_is_written_whole_or_not_at_all)
{
    const char *const target = test_temp_path("w");
    const int names = test_temp_count();
    lam_status status = LAM_ERR_NUMERIC;
    for (int old = 0; old < 2; old++) { /* where there was nothing; where there was one */
        if (old)
            fill(target, "old");
        ck_assert_int_eq(lam_dir_write(target, ".new", fill_then, &status), LAM_ERR_NUMERIC);
        ck_assert_str_eq(lam_error(), "the reason");
        ck_assert_int_eq(test_temp_count(), names + old);
        ck_assert(is_whole(target, "old") == old);
    }
    fill(test_temp_path("w.new"), "half"); /* what a crash left is not taken over */
    put(test_temp_path("w.new"), "stray", "x");
    status = LAM_OK;
    ck_assert_int_eq(lam_dir_write(target, ".new", fill_then, &status), LAM_OK);
    ck_assert(is_whole(target, "new"));
    ck_assert(!lam_path_exists(test_temp_path("w/stray")));
    ck_assert_int_eq(test_temp_count(), names + 1);
    ck_assert_int_eq(lam_dir_remove(target), LAM_OK);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, folders_are_made_with_their_parents);
    tcase_add_test(tests, what_could_be_made_is_told_without_making_it);
    tcase_add_test(tests, a_working_folder_that_cannot_be_searched_is_named);
    tcase_add_test(tests, the_root_and_links_to_nothing_are_refused);
    tcase_add_test(tests, what_cannot_be_looked_at_is_not_missing);
    tcase_add_test(tests, paths_are_joined_or_refused);
    tcase_add_test(tests, removing_takes_the_tree_and_no_more);
    tcase_add_test(tests, a_folder_takes_the_place_of_none_or_of_another);
    tcase_add_loop_test(tests, any_failing_call_leaves_one_whole_folder, 0, 2);
    tcase_add_loop_test(tests, dying_at_any_call_leaves_a_folder_that_recovers, 0, 2);
    tcase_add_test(tests, a_new_folder_takes_the_place_of_none_or_of_an_empty_one_only);
    tcase_add_test(tests, recovering_what_is_whole_or_absent_does_nothing);
    tcase_add_test(tests, a_missing_source_is_refused_by_name);
    tcase_add_test(tests, a_folder_is_written_whole_or_not_at_all);
    return test_run("core/dir", tests);
}
