/* run_folder_test.c -- what a run folder holds, what of it is removed, and what is not ours. */
#include "train/run_folder.h"

#include "core/file.h"
#include "support/suite.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *in(const char *dir, const char *name)
{
    static char path[PATH_MAX];
    must(lam_path_join(path, sizeof path, dir, name));
    return path;
}

static void put(const char *dir, const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];
    must(lam_path_join(path, sizeof path, dir, folder));
    must(lam_dir_make(path));
    must(lam_file_save(in(path, name), text, strlen(text)));
}

static const char CONFIG[] = "{\n  \"model_type\": \"lamemo\",\n";

/* As a run leaves it, this or an older version's. */
static const char *a_run(const char *name)
{
    const char *const dir = test_temp_path(name);
    must(lam_dir_remove(dir));
    put(dir, "last", "config.json", CONFIG);
    put(dir, "last", "training_state.json", "{\n \"position\": {\n");
    put(dir, "last", "memory.safetensors", "x");
    put(dir, "best", "config.json", CONFIG);
    put(dir, "best", "model.safetensors", "x");
    put(dir, "", "metrics.jsonl", "{\"step\":10,\"epoch\":1,");
    put(dir, "", "train.log", "model: memory xl, 2 layers");
    return dir;
}

START_TEST(what_there_is_of_a_run_is_found)
{
    const char *const dir = a_run("found");
    lam_run_found f;
    must(lam_run_look(&f, test_temp_path("nowhere")));
    ck_assert(!f.last && !f.best && !f.records);
    put(dir, "", "notes.txt", "mine"); /* left alone */
    must(lam_run_look(&f, dir));
    ck_assert(f.last && f.best && f.records);
    must(lam_dir_remove(in(dir, "best")));
    must(lam_dir_remove(in(dir, "metrics.jsonl")));
    ck_assert_int_eq(rename(test_temp_path("found/last"), test_temp_path("found/last.old")), 0);
    put(dir, "last.new", "model.safetensors.12-0.tmp", "x");
    must(lam_run_look(&f, dir));
    ck_assert(f.last && !f.best && f.records);
}
END_TEST

START_TEST(a_run_is_removed_and_nothing_else)
{
    const char *const dir = a_run("removed");
    put(dir, "last.old", "memory.safetensors", "x");
    put(dir, "best.new", "model.safetensors", "x");
    put(dir, "lasting", "photo.jpg", "x");
    must(lam_run_remove(dir));
    static const char *const gone[] = {"last", "last.old", "last.new", "best", "best.new"};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        ck_assert_msg(!lam_path_exists(in(dir, gone[i])), "%s", gone[i]);
    ck_assert(lam_path_exists(in(dir, "lasting/photo.jpg")));
    ck_assert(lam_path_exists(in(dir, "train.log")));
    must(lam_run_remove(dir));
}
END_TEST

/* A file more in a folder of a run, or in the place of a run. */
static const struct foreign {
    const char *folder, *name, *text, *why;
} foreign[] = {
    {"best", "photo.jpg", "x", "best: holds photo.jpg, which is no part of a model"},
    {"last", "notes.txt", "x", "last: holds notes.txt, which is no part of a checkpoint"},
    {"last.new", "photo.jpg", "x", "last.new: holds photo.jpg"},
    {"best.old", "photo.jpg", "x", "best.old: holds photo.jpg"},
    {"best/model.safetensors.index.json", "photo.jpg", "x", "index.json: not a regular file"},
    {"best", "config.json", "{\"model_type\": \"gpt2\"}", "best: not a model that lamemo wrote"},
    {"", "train.log", "Dear diary,", "train.log: lamemo did not write this file"},
    {"", "metrics.jsonl", "Dear diary,", "metrics.jsonl: lamemo did not write this file"},
};

START_TEST(what_is_not_ours_is_named)
{
    const struct foreign *const f = &foreign[_i];
    const char *const dir = a_run("foreign");
    lam_run_found found;
    put(dir, f->folder, f->name, f->text);
    ck_assert_int_eq(lam_run_look(&found, dir), LAM_ERR_IO);
    ck_assert_msg(strstr(lam_error(), f->why) != NULL, "%s", lam_error());
}
END_TEST

START_TEST(a_folder_of_other_things_is_not_a_run)
{
    const char *const dir = test_temp_path("home");
    lam_run_found found;
    put(dir, "", "console.txt", ""); /* where the shell puts what we print */
    must(lam_run_look(&found, dir));
    put(dir, "photos", "cat.jpg", "x");
    ck_assert_int_eq(lam_run_look(&found, dir), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "home: holds photos and is not a run folder"));
    ck_assert_int_eq(lam_run_look(&found, "/"), LAM_ERR_IO);
    const char *const linked = a_run("linked");
    must(lam_dir_remove(in(linked, "best")));
    ck_assert_int_eq(symlink("../home", in(linked, "best")), 0);
    ck_assert_int_eq(lam_run_look(&found, linked), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "linked/best: a link, which is not followed"));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, what_there_is_of_a_run_is_found);
    tcase_add_test(tests, a_run_is_removed_and_nothing_else);
    tcase_add_loop_test(tests, what_is_not_ours_is_named, 0, sizeof foreign / sizeof *foreign);
    tcase_add_test(tests, a_folder_of_other_things_is_not_a_run);
    return test_run("train/run_folder", tests);
}
