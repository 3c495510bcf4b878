/* checkpoint_accident_test.c -- no accident costs the previous checkpoint, and damage is noticed. */
#include "train/checkpoint.h"

#include "core/file.h"
#include "support/alloc.h"
#include "support/fault.h"
#include "support/suite.h"
#include "support/toyrun.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static toyrun open_run(void)
{
    const lam_config cfg = toyrun_config("lamemo");
    const lam_settings settings = toyrun_settings();
    return toyrun_open("ref", &cfg, &settings);
}

/* Turns one bit of a byte: at the start of a file, in its middle, at its end. */
static void turn_bit(const char *path, int where, int bit)
{
    FILE *const f = fopen(path, "r+");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    const long at[] = {0, ftell(f) / 2, ftell(f) - 1};
    ck_assert_int_eq(fseek(f, at[where], SEEK_SET), 0);
    const int c = fgetc(f);
    ck_assert_int_ne(c, EOF);
    ck_assert_int_eq(fseek(f, at[where], SEEK_SET), 0);
    ck_assert_int_ne(fputc(c ^ 1 << bit, f), EOF);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(a_bit_that_turned_in_any_file_is_noticed)
{
    static const char *const files[] = {
        "config.json",        "model.safetensors",   "vocab.json", "optimizer.safetensors",
        "memory.safetensors", "training_state.json", "CRC32SUMS"};
    const char *dir = test_temp_path("turned"), *name = files[_i];
    char path[PATH_MAX], message[PATH_MAX + 64];
    toyrun a = open_run(), b = open_run();
    toyrun_steps(&a, 3, NULL);
    must(lam_trainer_save(a.trainer, dir, "{}"));
    must(lam_path_join(path, sizeof path, dir, name));
    snprintf(message, sizeof message, "%s: damaged: ", path);
    for (int i = 0; i < 24; i++) {
        turn_bit(path, i / 8, i % 8);
        ck_assert_int_eq(lam_trainer_resume(b.trainer, dir), LAM_ERR_FORMAT);
        ck_assert_msg(strncmp(lam_error(), message, strlen(message)) == 0, "%s", lam_error());
        turn_bit(path, i / 8, i % 8);
    }
    ck_assert(!toyrun_equal(&a, &b)); /* nothing was taken over */
    must(lam_trainer_resume(b.trainer, dir));
    ck_assert(toyrun_equal(&a, &b));
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

/* A checkpoint folder must hold the run after 2 steps or the one after 4, exactly. */
static void check_whole(const char *dir, const toyrun *two, const toyrun *four)
{
    toyrun r = open_run();
    ck_assert_msg(lam_trainer_resume(r.trainer, dir) == LAM_OK, "%s", lam_error());
    ck_assert(r.trainer->state.step == 2 ? toyrun_equal(&r, two) : toyrun_equal(&r, four));
    toyrun_close(&r);
}

START_TEST(a_failing_write_sync_or_rename_leaves_a_whole_checkpoint)
{
    const char *dir = test_temp_path("failing");
    toyrun two = open_run(), four = open_run();
    toyrun_steps(&two, 2, NULL);
    toyrun_steps(&four, 4, NULL);
    int calls = 0;
    test_fault_no_exchange(_i);
    for (int n = 1; test_fault_at(n, ENOSPC); n++, calls++) {
        lam_file_fault = NULL;
        must(lam_trainer_save(two.trainer, dir, "{}"));
        test_fault_no_exchange(_i); /* the hook again */
        const lam_status status = lam_trainer_save(four.trainer, dir, "{}");
        if (test_fault_happened()) {
            ck_assert_int_eq(status, LAM_ERR_IO);
            ck_assert_msg(strstr(lam_error(), "no space left") != NULL, "%s", lam_error());
        } else
            must(status);
        check_whole(dir, &two, &four);
    }
    ck_assert_int_gt(calls, 20); /* seven files: write, fsync, rename, fsync of the folder */
    toyrun_close(&two);
    toyrun_close(&four);
}
END_TEST

typedef struct saving {
    lam_trainer *trainer;
    const char *dir;
} saving;

static void save_body(void *arg)
{
    const saving *s = arg;
    if (lam_trainer_save(s->trainer, s->dir, "{}") != LAM_OK)
        abort();
}

START_TEST(a_crash_at_any_system_call_leaves_a_whole_checkpoint)
{
    const char *dir = test_temp_path("crashing");
    toyrun two = open_run(), four = open_run();
    toyrun_steps(&two, 2, NULL);
    toyrun_steps(&four, 4, NULL);
    test_fault_no_exchange(_i);
    saving s = {four.trainer, dir};
    for (int n = 1, again = 1; again; n++) {
        must(lam_trainer_save(two.trainer, dir, "{}"));
        again = test_crash_at(n, save_body, &s);
        check_whole(dir, &two, &four);
    }
    toyrun_close(&two);
    toyrun_close(&four);
}
END_TEST

START_TEST(a_lack_of_memory_is_reported_and_leaks_nothing)
{
    const lam_config cfg = toyrun_config("lamemo");
    lam_settings settings = toyrun_settings();
    settings.batch_chunk = 2;
    settings.roll = 1; /* columns remember how far they were turned */
    const char *dir = test_temp_path("nomemory");
    toyrun a = toyrun_open("ref", &cfg, &settings);
    toyrun_steps(&a, 2, NULL);
    for (long n = 1; test_alloc_fail(n); n++) {
        const lam_status status = lam_trainer_save(a.trainer, dir, "{}");
        test_alloc_end(status);
    }
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_trainer *t;
        const lam_status status = lam_trainer_create(&t, a.model, a.text, &settings, NULL);
        test_alloc_end(status);
        lam_trainer_free(t);
    }
    toyrun_close(&a);
}
END_TEST

int main(void)
{
    test_temp_in_memory();
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, a_bit_that_turned_in_any_file_is_noticed, 0, 7);
    tcase_add_loop_test(tests, a_failing_write_sync_or_rename_leaves_a_whole_checkpoint, 0, 2);
    tcase_add_loop_test(tests, a_crash_at_any_system_call_leaves_a_whole_checkpoint, 0, 2);
    tcase_add_test(tests, a_lack_of_memory_is_reported_and_leaks_nothing);
    return test_run("train/checkpoint_accident", tests);
}
