/* file_test.c -- a file is the old one or the new one, whatever fails and whenever the process dies. */
#include "core/file.h"

#include "core/budget.h"
#include "support/alloc.h"
#include "support/fault.h"
#include "support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BIG = 3 << 20 }; /* larger than any buffer inside */

static int content_is(const char *path, const char *data, size_t size)
{
    char *text;
    size_t got;
    ck_assert_int_eq(lam_file_load(&text, &got, path, BIG), LAM_OK);
    const int same = got == size && memcmp(text, data, size) == 0;
    free(text);
    return same;
}

/* Writes "old" without going through what is tested. */
static void put_old(const char *path)
{
    FILE *const file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fputs("old", file) < 0, 0);
    ck_assert_int_eq(fclose(file), 0);
}

static char *pattern(size_t size, unsigned factor)
{
    char *const data = malloc(size);
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * factor >> 3);
    return data;
}

START_TEST(saved_bytes_come_back)
{
    const char *const path = test_temp_path("saved");
    ck_assert_int_eq(lam_file_save(path, "hello", 5), LAM_OK);
    ck_assert(content_is(path, "hello", 5));
    ck_assert_int_eq(lam_file_save(path, "", 0), LAM_OK);
    ck_assert(content_is(path, "", 0));
    ck_assert_int_eq(test_temp_count(), 1);
}
END_TEST

START_TEST(pieces_of_every_size_add_up)
{
    const char *const path = test_temp_path("pieces");
    char *const data = pattern(BIG, 7);
    lam_rng rng = test_rng(17);
    lam_outfile *file;
    ck_assert_int_eq(lam_outfile_open(&file, path), LAM_OK);
    for (size_t at = 0; at < BIG;) {
        const uint64_t most = lam_rng_below(&rng, 4) ? 3000 : 2 << 20;
        size_t n = (size_t)lam_rng_below(&rng, most);
        n = n < BIG - at ? n : BIG - at;
        ck_assert_int_eq(lam_outfile_write(file, data + at, n), LAM_OK);
        at += n;
    }
    ck_assert(!lam_path_exists(path)); /* not before finish */
    ck_assert_int_eq(lam_outfile_finish(file), LAM_OK);
    ck_assert(content_is(path, data, BIG));
    free(data);
}
END_TEST

START_TEST(aborting_leaves_nothing)
{
    const char *const path = test_temp_path("aborted");
    lam_outfile *file;
    const int before = test_temp_count();
    ck_assert_int_eq(lam_outfile_open(&file, path), LAM_OK);
    ck_assert_int_eq(lam_outfile_write(file, "x", 1), LAM_OK);
    lam_outfile_abort(file);
    lam_outfile_abort(NULL);
    ck_assert_int_eq(test_temp_count(), before);
}
END_TEST

START_TEST(a_new_file_obeys_the_umask)
{
    const char *const path = test_temp_path("mode");
    struct stat info;
    umask(027);
    ck_assert_int_eq(lam_file_save(path, "x", 1), LAM_OK);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq((int)(info.st_mode & 0777), 0640);
}
END_TEST

START_TEST(any_failing_call_leaves_the_old_or_the_new_file)
{
    const char *const path = test_temp_path("faulty");
    char *const next = pattern(BIG, 5);
    const int before = test_temp_count();
    int old_kept = 0, faults = 0;
    for (int n = 1; test_fault_at(n, ENOSPC); n++) {
        put_old(path);
        const lam_status status = lam_file_save(path, next, BIG);
        ck_assert_int_eq(status, test_fault_happened() ? LAM_ERR_IO : LAM_OK);
        ck_assert_int_eq(test_temp_count(), before + 1); /* no temporary file */
        if (test_fault_happened()) {
            faults++;
            ck_assert_ptr_nonnull(strstr(lam_error(), path));
            ck_assert_ptr_nonnull(strstr(lam_error(), "no space left"));
        }
        if (content_is(path, "old", 3))
            old_kept++;
        else
            ck_assert(content_is(path, next, BIG));
    }
    /* write, fsync, rename, and the folder's fsync: only after the last is it the new one */
    ck_assert_int_ge(faults, 4);
    ck_assert_int_eq(old_kept, faults - 1);
    free(next);
}
END_TEST

static void save_new(void *path)
{
    char *const next = pattern(BIG, 5);
    lam_file_save(path, next, BIG);
    free(next);
}

START_TEST(dying_at_any_call_leaves_the_old_or_the_new_file)
{
    const char *const path = test_temp_path("killed");
    char *const next = pattern(BIG, 5);
    int crashes = 0, old_kept = 0;
    put_old(path);
    for (int n = 1; test_crash_at(n, save_new, (void *)path); n++) {
        crashes++;
        old_kept += content_is(path, "old", 3);
        ck_assert(content_is(path, "old", 3) || content_is(path, next, BIG));
    }
    ck_assert_int_ge(crashes, 4);
    ck_assert_int_eq(old_kept, crashes - 1);
    ck_assert(content_is(path, next, BIG));
    /* the temporary files of the dead do not stand in the way of the living */
    ck_assert_int_eq(lam_file_save(path, "newer", 5), LAM_OK);
    ck_assert(content_is(path, "newer", 5));
    free(next);
}
END_TEST

START_TEST(a_real_limit_of_the_system_is_reported)
{
    const char *const path = test_temp_path("limited");
    const struct rlimit limit = {100000, 100000};
    char *const next = pattern(BIG, 5);
    put_old(path);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(lam_file_save(path, next, BIG), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), strerror(EFBIG)));
    ck_assert(content_is(path, "old", 3));
    free(next);
}
END_TEST

START_TEST(a_file_whose_write_failed_is_never_published)
{
    const char *const path = test_temp_path("broken");
    char *const next = pattern(BIG, 5);
    lam_outfile *file;
    put_old(path);
    ck_assert_int_eq(lam_outfile_open(&file, path), LAM_OK);
    test_fault_at(1, EIO);
    ck_assert_int_eq(lam_outfile_write(file, next, BIG), LAM_ERR_IO);
    ck_assert_int_eq(lam_outfile_write(file, "more", 4), LAM_OK); /* the caller did not look */
    ck_assert_int_eq(lam_outfile_finish(file), LAM_ERR_IO);
    ck_assert(content_is(path, "old", 3));
    free(next);
}
END_TEST

START_TEST(a_place_that_does_not_exist_is_named)
{
    const char *const path = test_temp_path("no/such/folder");
    lam_outfile *file = (lam_outfile *)1;
    ck_assert_int_eq(lam_outfile_open(&file, path), LAM_ERR_IO);
    ck_assert_ptr_null(file);
    ck_assert_ptr_nonnull(strstr(lam_error(), path));

    char longer[5000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ck_assert_int_eq(lam_outfile_open(&file, longer), LAM_ERR_IO);
}
END_TEST

START_TEST(loading_ends_with_nul_and_obeys_the_limit)
{
    const char *const path = test_temp_path("limit");
    char *const data = pattern(BIG, 3);
    char *text;
    size_t size;
    ck_assert_int_eq(lam_file_save(path, data, 10000), LAM_OK);
    ck_assert_int_eq(lam_file_load(&text, &size, path, 10000), LAM_OK);
    ck_assert_uint_eq(size, 10000);
    ck_assert_mem_eq(text, data, 10000);
    ck_assert_int_eq(text[10000], '\0');
    free(text);

    ck_assert_int_eq(lam_file_load(&text, &size, path, 9999), LAM_ERR_FORMAT);
    ck_assert_ptr_null(text);
    ck_assert_uint_eq(size, 0);
    ck_assert_ptr_nonnull(strstr(lam_error(), path));
    ck_assert_ptr_nonnull(strstr(lam_error(), "9999"));
    ck_assert_int_eq(lam_file_load(&text, &size, test_temp_path("missing"), 1), LAM_ERR_IO);
    ck_assert_int_eq(lam_file_load(&text, &size, test_temp_path(""), 1), LAM_ERR_IO);
    free(data);
}
END_TEST

/* A hole takes no disk; nobody may take memory for it. */
START_TEST(a_file_beyond_the_limit_or_the_memory_is_not_read)
{
    const char *const path = test_temp_path("hole");
    char *text;
    size_t size;
    must(lam_file_save(path, "x", 1));
    ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0);
    ck_assert_int_eq(lam_file_load(&text, &size, path, (size_t)1 << 30), LAM_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(lam_error(), "longer than 1073741824 bytes"));
    ck_assert_int_eq(truncate(path, 1 << 20), 0);
    must(lam_file_load(&text, &size, path, (size_t)1 << 30));
    ck_assert_uint_eq(size, 1 << 20);
    free(text);
    lam_budget_set(1);
    ck_assert_int_eq(lam_file_load(&text, &size, path, (size_t)1 << 30), LAM_ERR_MEMORY);
    lam_budget_set(0);
    ck_assert_ptr_null(text);
    ck_assert_ptr_nonnull(strstr(lam_error(), path));
}
END_TEST

START_TEST(what_is_not_a_regular_file_is_refused_and_not_waited_for)
{
    const char *const pipe = test_temp_path("pipe");
    char *text;
    size_t size;
    int fd;
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    const char *const others[] = {pipe, "/dev/zero", test_temp_path("")};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(lam_file_load(&text, &size, others[i], 1000), LAM_ERR_IO);
        ck_assert_ptr_null(text);
        ck_assert_ptr_nonnull(strstr(lam_error(), "not a regular file"));
    }
    ck_assert_int_eq(lam_file_save(test_temp_path("aim"), "x", 1), LAM_OK);
    ck_assert_int_eq(symlink("aim", test_temp_path("link")), 0);
    ck_assert_int_eq(lam_file_load(&text, &size, test_temp_path("link"), 1000), LAM_OK);
    free(text);
    ck_assert_int_eq(lam_file_open(&fd, test_temp_path("link"), O_RDWR | O_NOFOLLOW), LAM_ERR_IO);
    ck_assert_int_eq(fd, -1);
    ck_assert_ptr_nonnull(strstr(lam_error(), "link: a link, which is not followed"));
}
END_TEST

START_TEST(every_failing_allocation_is_a_memory_error)
{
    const char *const path = test_temp_path("memory");
    char *text;
    size_t size;
    char *const data = pattern(10000, 3);
    long failures = 0;
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_status status = lam_file_save(path, data, 10000);
        if (status == LAM_OK)
            status = lam_file_load(&text, &size, path, 10000);
        const int failed = test_alloc_end(status);
        failures += failed;
        if (status == LAM_OK)
            free(text);
    }
    ck_assert_int_ge(failures, 2); /* the buffer of saving, and that of loading */
    free(data);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, saved_bytes_come_back);
    tcase_add_test(tests, pieces_of_every_size_add_up);
    tcase_add_test(tests, aborting_leaves_nothing);
    tcase_add_test(tests, a_new_file_obeys_the_umask);
    tcase_add_test(tests, any_failing_call_leaves_the_old_or_the_new_file);
    tcase_add_test(tests, dying_at_any_call_leaves_the_old_or_the_new_file);
    tcase_add_test(tests, a_real_limit_of_the_system_is_reported);
    tcase_add_test(tests, a_file_whose_write_failed_is_never_published);
    tcase_add_test(tests, a_place_that_does_not_exist_is_named);
    tcase_add_test(tests, loading_ends_with_nul_and_obeys_the_limit);
    tcase_add_test(tests, a_file_beyond_the_limit_or_the_memory_is_not_read);
    tcase_add_test(tests, what_is_not_a_regular_file_is_refused_and_not_waited_for);
    tcase_add_test(tests, every_failing_allocation_is_a_memory_error);
    return test_run("core/file", tests);
}
