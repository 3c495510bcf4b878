/* seal_test.c -- a folder's record notices every changed byte, of the record too. */
#include "core/seal.h"

#include "core/file.h"
#include "support/suite.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {"a", "b.json", "empty"};
static const char *const texts[] = {"some bytes\0 and more\n", "{\"key\": 1}", ""};
static const size_t sizes[] = {20, 10, 0};

static const char *path_in(const char *dir, const char *name)
{
    static char path[PATH_MAX];
    must(lam_path_join(path, sizeof path, dir, name));
    return path;
}

static const char *make_sealed(const char *name)
{
    const char *const dir = test_temp_path(name);
    must(lam_dir_make(dir));
    for (int i = 0; i < 3; i++)
        must(lam_file_save(path_in(dir, names[i]), texts[i], sizes[i]));
    must(lam_seal_write(dir));
    return dir;
}

static void check_says(const char *dir, const char *name, const char *message)
{
    ck_assert_int_eq(lam_seal_check(dir, name), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), message) != NULL, "%s", lam_error());
}

START_TEST(the_record_has_length_and_checksum_of_every_file_and_of_itself)
{
    const char *const dir = make_sealed("plain");
    char *text;
    size_t size;
    must(lam_file_load(&text, &size, path_in(dir, "CRC32SUMS"), 1000));
    /* by Python's zlib.crc32 */
    ck_assert_str_eq(
        text, "7dcf9d50 20 a\ncd3517e8 10 b.json\n00000000 0 empty\n62294b1f 50 CRC32SUMS\n");
    free(text);
    must(lam_seal_write(dir)); /* once more: the old record is no part of the new one */
    must(lam_seal_check(dir, NULL));
}
END_TEST

START_TEST(every_change_of_a_byte_is_noticed_and_the_file_named)
{
    static const char *const all[] = {"a", "b.json", "CRC32SUMS"};
    const char *const dir = make_sealed("flips"), *const name = all[_i];
    char *text, message[64];
    size_t size;
    must(lam_seal_check(dir, NULL));
    must(lam_file_load(&text, &size, path_in(dir, name), 1000));
    snprintf(message, sizeof message, "flips/%s: damaged: ", name);
    for (size_t i = 0; i < 8 * size; i++) {
        text[i / 8] ^= (char)(1 << i % 8);
        must(lam_file_save(path_in(dir, name), text, size));
        check_says(dir, NULL, message);
        text[i / 8] ^= (char)(1 << i % 8);
    }
    for (size_t cut = 0; cut < size; cut++) {
        must(lam_file_save(path_in(dir, name), text, cut));
        check_says(dir, NULL, message);
    }
    must(lam_file_save(path_in(dir, name), text, size));
    must(lam_seal_check(dir, NULL));
    free(text);
}
END_TEST

START_TEST(one_file_can_be_asked_about)
{
    const char *const dir = make_sealed("one");
    must(lam_file_save(path_in(dir, "a"), "other", 5));
    must(lam_seal_check(dir, "b.json"));
    check_says(dir, "a", "one/a: damaged: 5 bytes, written were 20");
    ck_assert_int_eq(remove(path_in(dir, "b.json")), 0);
    ck_assert_int_eq(lam_seal_check(dir, "b.json"), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "one/b.json: cannot open: "));
}
END_TEST

START_TEST(a_folder_without_a_record_is_taken_as_it_is)
{
    const char *const dir = make_sealed("older");
    ck_assert_int_eq(remove(path_in(dir, "CRC32SUMS")), 0);
    must(lam_file_save(path_in(dir, "a"), "other", 5));
    must(lam_seal_check(dir, NULL));
}
END_TEST

/* Records that fit themselves, but are none of ours. */
START_TEST(a_made_up_record_reads_nothing_outside)
{
    static const char *const records[] = {
        "00000000 0 ../plain/a\n24349be3 22 CRC32SUMS\n",
        "nonsense\n099f6ca0 9 CRC32SUMS\n",
    };
    const char *const dir = make_sealed("made-up");
    must(lam_file_save(path_in(dir, "CRC32SUMS"), records[_i], strlen(records[_i])));
    check_says(dir, NULL, "made-up/CRC32SUMS: '");
}
END_TEST

START_TEST(what_never_ends_is_not_read)
{
    const char *const dir = make_sealed("endless");
    ck_assert_int_eq(remove(path_in(dir, "a")), 0);
    ck_assert_int_eq(symlink("/dev/zero", path_in(dir, "a")), 0);
    ck_assert_int_eq(lam_seal_check(dir, NULL), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "endless/a: not a regular file"));
    ck_assert_int_eq(remove(path_in(dir, "a")), 0);
    must(lam_file_save(path_in(dir, "a"), "", 0));
    ck_assert_int_eq(truncate(path_in(dir, "a"), (off_t)1 << 40), 0); /* a hole: hours of zeros */
    check_says(dir, NULL, "endless/a: damaged: 1099511627776 bytes, written were 20");
}
END_TEST

static int yes(void)
{
    return 1;
}

START_TEST(checking_can_be_stopped_and_writing_not)
{
    const char *const dir = make_sealed("stopped");
    lam_read_stop = yes;
    ck_assert_int_eq(lam_seal_check(dir, NULL), LAM_ERR_INTERRUPTED);
    must(lam_seal_write(dir));
    lam_read_stop = NULL;
    must(lam_seal_check(dir, NULL));
}
END_TEST

int main(void)
{
    test_temp_in_memory();
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, the_record_has_length_and_checksum_of_every_file_and_of_itself);
    tcase_add_loop_test(tests, every_change_of_a_byte_is_noticed_and_the_file_named, 0, 3);
    tcase_add_test(tests, one_file_can_be_asked_about);
    tcase_add_test(tests, a_folder_without_a_record_is_taken_as_it_is);
    tcase_add_loop_test(tests, a_made_up_record_reads_nothing_outside, 0, 2);
    tcase_add_test(tests, what_never_ends_is_not_read);
    tcase_add_test(tests, checking_can_be_stopped_and_writing_not);
    return test_run("core/seal", tests);
}
