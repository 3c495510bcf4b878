/* own_test.c -- what others made is neither replaced nor removed, and is named. */
#include "core/own.h"

#include "support/suite.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[] = {"head.json", "part-*", NULL};
static const lam_mark marks[] = {{"head.json", "ours"}, {"part-1", "ours too"}, {0}};
static const lam_kind kind = {"model", names, marks};

static const char *in(const char *dir, const char *name)
{
    static char path[PATH_MAX];
    must(lam_path_join(path, sizeof path, dir, name));
    return path;
}

static void put(const char *dir, const char *name, const char *text)
{
    must(lam_file_save(in(dir, name), text, strlen(text)));
}

static int holds(const char *dir, const char *name, const char *text)
{
    char *got;
    size_t size;
    if (lam_file_load(&got, &size, in(dir, name), 1000) != LAM_OK)
        return 0;
    const int same = strcmp(got, text) == 0;
    free(got);
    return same;
}

/* An empty folder of that name. */
static const char *fresh(const char *name)
{
    const char *const dir = test_temp_path(name);
    must(lam_dir_remove(dir));
    must(lam_dir_make(dir));
    return dir;
}

#define refused(call, text)                                                                        \
    do {                                                                                           \
        ck_assert_int_eq(call, LAM_ERR_IO);                                                        \
        ck_assert_msg(strstr(lam_error(), text) != NULL, "%s", lam_error());                       \
    } while (0)

START_TEST(a_file_is_ours_by_its_beginning)
{
    const char *const dir = fresh("files");
    must(lam_own_file(in(dir, "none"), "mark"));
    put(dir, "empty", "");
    must(lam_own_file(in(dir, "empty"), "mark"));
    put(dir, "ours", "<a mark>");
    must(lam_own_file(in(dir, "ours"), "mark"));
    put(dir, "letter", "Dear aunt,");
    refused(lam_own_file(in(dir, "letter"), "mark"), "letter: there is a file already");
    ck_assert_int_eq(symlink("ours", in(dir, "link")), 0);
    refused(lam_own_file(in(dir, "link"), "mark"), "link: a link, which is not followed");
    ck_assert_int_eq(mkfifo(in(dir, "pipe"), 0600), 0);
    refused(lam_own_file(in(dir, "pipe"), "mark"), "pipe: not a regular file");
    refused(lam_own_file(dir, "mark"), "files: not a regular file");
}
END_TEST

START_TEST(a_folder_is_ours_by_a_mark_and_by_every_name)
{
    const char *const dir = fresh("folder");
    must(lam_own_folder(test_temp_path("nowhere"), &kind));
    must(lam_own_folder(dir, &kind));
    put(dir, "part-2", "x");
    refused(lam_own_folder(dir, &kind), "folder: not a model that lamemo wrote");
    put(dir, "head.json", "of others");
    refused(lam_own_folder(dir, &kind), "folder: not a model that lamemo wrote");
    put(dir, "part-1", "ours too");
    must(lam_own_folder(dir, &kind));
    put(dir, "part-1", "x");
    put(dir, "head.json", "ours");
    must(lam_own_folder(dir, &kind));
    put(dir, "photo.jpg", "x");
    refused(lam_own_folder(dir, &kind), "folder: holds photo.jpg, which is no part of a model");
    ck_assert_int_eq(unlink(in(dir, "photo.jpg")), 0);
    must(lam_dir_make(in(dir, "part-photos"))); /* a folder, whatever it is called */
    refused(lam_own_folder(dir, &kind), "folder/part-photos: not a regular file");
    ck_assert_int_eq(rmdir(in(dir, "part-photos")), 0);
    ck_assert_int_eq(symlink("head.json", in(dir, "part-3")), 0);
    refused(lam_own_folder(dir, &kind), "folder/part-3: not a regular file");
    ck_assert_int_eq(unlink(in(dir, "part-3")), 0);
    ck_assert_int_eq(symlink("folder", test_temp_path("alias")), 0);
    refused(lam_own_folder(test_temp_path("alias"), &kind), "alias: a link, which is not followed");
}
END_TEST

START_TEST(what_a_crash_left_may_lack_its_mark)
{
    const char *const dir = fresh("rest");
    put(dir, "part-7", "x");
    put(dir, "head.json.4711-0.tmp", "x");
    must(lam_own_rest(dir, &kind));
    refused(lam_own_folder(dir, &kind), "rest: holds head.json.4711-0.tmp");
    put(dir, "letter.4711-0.tmp", "x");
    refused(lam_own_rest(dir, &kind), "rest: holds letter.4711-0.tmp");
}
END_TEST

START_TEST(there_is_room_beside_empty_files_only)
{
    const char *const dir = fresh("room");
    must(lam_own_room(test_temp_path("nowhere"), "run"));
    must(lam_own_room(dir, "run"));
    put(dir, "console.txt", ""); /* where the shell puts what we print */
    must(lam_own_room(dir, "run"));
    must(lam_dir_make(in(dir, "photos")));
    refused(lam_own_room(dir, "run"), "room: holds photos and is not a run folder");
}
END_TEST

START_TEST(other_peoples_folders_are_not_replaced)
{
    const char *const dir = test_temp_path("mine");
    must(lam_own_target(dir, &kind, 0));
    must(lam_dir_make(dir));
    must(lam_own_target(dir, &kind, 0));
    put(dir, "part-1", "x");
    refused(lam_own_target(dir, &kind, 1), "mine: exists and is not a model folder");
    put(dir, "head.json", "{\"mine\": 1}");
    refused(lam_own_target(dir, &kind, 1), "mine: exists and is not a model folder");
    put(dir, "head.json", "ours");
    refused(lam_own_target(dir, &kind, 0), "mine: there is a model already; --replace");
    must(lam_own_target(dir, &kind, 1));
    put(dir, ".diary", "x");
    refused(lam_own_target(dir, &kind, 1), "mine: holds .diary, which is no part of a model");
    put(test_temp_path(""), "file", "x");
    refused(lam_own_target(test_temp_path("file"), &kind, 1), "file: cannot make the folder");
}
END_TEST

START_TEST(a_folder_that_cannot_take_a_name_is_refused_at_once)
{
    char here[PATH_MAX];
    const char *const dir = fresh("moving");
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(chdir(dir), 0);
    refused(lam_own_target(".", &kind, 0), ".: the working folder cannot be replaced");
    refused(lam_own_target(dir, &kind, 0), "moving: the working folder cannot be replaced");
    ck_assert_int_eq(lam_own_target("new/.", &kind, 0), LAM_ERR_ARG);
    ck_assert_int_eq(lam_own_target("new/..", &kind, 0), LAM_ERR_ARG);
    ck_assert_int_eq(symlink("nothing", "dangling"), 0);
    refused(lam_own_target("dangling", &kind, 0), "dangling: a link to nothing");
    ck_assert_int_eq(chdir(here), 0);
    refused(lam_own_target("/", &kind, 1), "/: the root of all folders");
    refused(lam_own_target("/proc", &kind, 1), "/proc: a mount point cannot be replaced");
}
END_TEST

/* ---- writing ---- */

static lam_status fill(void *user, const char *dir)
{
    const lam_status *const status = user;
    put(dir, "head.json", "ours, new");
    return *status == LAM_OK ? LAM_OK : lam_fail(*status, "the reason");
}

START_TEST(a_folder_is_written_whole_or_not_at_all)
{
    const char *const target = test_temp_path("w");
    const int before = test_temp_count();
    lam_status status = LAM_ERR_NUMERIC;
    for (int old = 0; old < 2; old++) { /* where there was nothing; where there was one */
        if (old)
            put(fresh("w"), "head.json", "ours, old");
        ck_assert_int_eq(lam_own_write(target, &kind, 1, fill, &status), LAM_ERR_NUMERIC);
        ck_assert_str_eq(lam_error(), "the reason");
        ck_assert_int_eq(test_temp_count(), before + old);
        ck_assert(holds(target, "head.json", "ours, old") == old);
    }
    status = LAM_OK;
    must(lam_own_write(target, &kind, 1, fill, &status));
    ck_assert(holds(target, "head.json", "ours, new"));
    must(lam_own_write(test_temp_path("far/./off//"), &kind, 0, fill, &status));
    ck_assert(holds(test_temp_path("far/off"), "head.json", "ours, new"));
    fresh("far/empty");
    must(lam_own_write(test_temp_path("far/empty/."), &kind, 0, fill, &status));
    ck_assert(holds(test_temp_path("far/empty"), "head.json", "ours, new"));
    ck_assert_int_eq(test_temp_count(), before + 2);
}
END_TEST

static lam_status fill_badly(void *user, const char *dir)
{
    (void)user;
    return lam_fail(LAM_ERR_IO, "%s/part: no space left", dir);
}

START_TEST(failures_name_the_place_the_user_gave)
{
    refused(lam_own_write(test_temp_path("named/"), &kind, 0, fill_badly, NULL),
            "/named//part: no space left");
    /* Where not even the folder can be made: /proc takes none, a file has none in it. */
    refused(lam_own_write("/proc/nowhere", &kind, 0, fill_badly, NULL), "/proc/nowhere: cannot ");
    put(test_temp_path(""), "plain", "x");
    refused(lam_own_write(test_temp_path("plain/x"), &kind, 0, fill_badly, NULL),
            "/plain: cannot make the folder: Not a directory");
    ck_assert_int_eq(symlink("itself", test_temp_path("itself")), 0); /* nobody can look into it */
    refused(lam_own_write(test_temp_path("itself/x"), &kind, 0, fill_badly, NULL), "/itself");
    ck_assert_int_eq(unlink(test_temp_path("itself")), 0);
}
END_TEST

START_TEST(a_link_stays_and_its_folder_is_written)
{
    const char *const folder = fresh("there"), *const link = test_temp_path("link");
    const int before = test_temp_count();
    lam_status status = LAM_OK;
    struct stat info;
    put(folder, "head.json", "ours, old");
    ck_assert_int_eq(symlink("there", link), 0);
    must(lam_own_write(test_temp_path("link/"), &kind, 1, fill, &status));
    ck_assert(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    ck_assert(holds(folder, "head.json", "ours, new"));
    ck_assert_int_eq(test_temp_count(), before + 1);
    ck_assert_int_eq(unlink(link), 0);
}
END_TEST

/* While we are at work, somebody else finishes, or leaves something there. */
static lam_status fill_late(void *user, const char *dir)
{
    lam_status ok = LAM_OK;
    const char *const name = user;
    put(test_temp_path("race"), name, "ours, but another's");
    return fill(&ok, dir);
}

START_TEST(what_came_meanwhile_is_kept)
{
    const char *const dir = fresh("race");
    const int before = test_temp_count();
    refused(
        lam_own_write(dir, &kind, 0, fill_late, (char *)"head.json"),
        "race: there is a model already; --replace replaces it (it was not so when this began)");
    ck_assert(holds(dir, "head.json", "ours, but another's"));
    refused(lam_own_write(dir, &kind, 1, fill_late, (char *)"diary"), "race: holds diary");
    ck_assert(holds(dir, "diary", "ours, but another's"));
    ck_assert_int_eq(test_temp_count(), before);
}
END_TEST

/* A process that is no more, for sure: nobody has its number while we have not waited for it. */
static pid_t dead_process(void)
{
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return pid;
}

static const char *leftover(const char *target, pid_t pid, int number)
{
    static char name[64];
    snprintf(name, sizeof name, "%s.%ld-%d.tmp", target, (long)pid, number);
    return fresh(name);
}

static lam_status fill_and_die(void *user, const char *dir)
{
    (void)user;
    put(dir, "part-1", "half of it");
    raise(SIGKILL);
    return LAM_OK;
}

START_TEST(what_a_killed_writer_left_goes_with_the_next_one)
{
    const char *const target = test_temp_path("killed");
    const int before = test_temp_count();
    lam_status status = LAM_OK;
    const pid_t writer = fork();
    if (writer == 0) {
        (void)lam_own_write(target, &kind, 0, fill_and_die, NULL);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
    ck_assert_int_eq(test_temp_count(), before + 1);
    put(leftover("killed", writer, 1), "head.json", "ours, replaced"); /* and not yet removed */
    must(lam_own_write(target, &kind, 0, fill, &status));
    ck_assert(holds(target, "head.json", "ours, new"));
    ck_assert_int_eq(access(in(target, ".lamemo-unfinished"), F_OK), -1);
    ck_assert_int_eq(test_temp_count(), before + 1);
}
END_TEST

START_TEST(what_may_be_anothers_is_not_taken_for_a_leftover)
{
    static const char mark[] = ".lamemo-unfinished";
    const pid_t dead = dead_process();
    lam_status status = LAM_OK;
    put(leftover("left", getpid(), 7), mark, "");  /* its process is alive */
    put(leftover("left", dead, 0), "part-1", "x"); /* no mark */
    const char *dir = leftover("left", dead, 1);   /* a mark, and something of others */
    put(dir, mark, "");
    put(dir, "diary", "x");
    leftover("left", dead, 2); /* empty */
    put(leftover("left", dead, 3), mark, "not our text");
    dir = leftover("left", dead, 4); /* somebody whom we cannot see writes it */
    put(dir, "head.json", "ours");
    put(dir, mark, "");
    const int lock = open(in(dir, mark), O_WRONLY);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);
    put(leftover("leftish", dead, 0), mark, ""); /* of another target */
    put(fresh("left.tmp"), mark, "");
    put(fresh("left.-5-0.tmp"), mark, "");
    ck_assert_int_eq(symlink("leftish", test_temp_path("left.1-0.tmp")), 0);
    const int before = test_temp_count();
    must(lam_own_write(test_temp_path("left"), &kind, 0, fill, &status));
    ck_assert_int_eq(test_temp_count(), before + 1);
    close(lock);
    ck_assert_int_eq(unlink(test_temp_path("left.1-0.tmp")), 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_test(tests, a_file_is_ours_by_its_beginning);
    tcase_add_test(tests, a_folder_is_ours_by_a_mark_and_by_every_name);
    tcase_add_test(tests, what_a_crash_left_may_lack_its_mark);
    tcase_add_test(tests, there_is_room_beside_empty_files_only);
    tcase_add_test(tests, other_peoples_folders_are_not_replaced);
    tcase_add_test(tests, a_folder_that_cannot_take_a_name_is_refused_at_once);
    tcase_add_test(tests, a_folder_is_written_whole_or_not_at_all);
    tcase_add_test(tests, failures_name_the_place_the_user_gave);
    tcase_add_test(tests, a_link_stays_and_its_folder_is_written);
    tcase_add_test(tests, what_came_meanwhile_is_kept);
    tcase_add_test(tests, what_a_killed_writer_left_goes_with_the_next_one);
    tcase_add_test(tests, what_may_be_anothers_is_not_taken_for_a_leftover);
    return test_run("core/own", tests);
}
