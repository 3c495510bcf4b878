/* runlog_test.c -- records are what their readers expect, and a resumed log has no step twice. */
#include "train/runlog.h"

#include "core/file.h"
#include "core/log.h"
#include "support/suite.h"
#include "train/tfevents.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void be_quiet(void)
{
    lam_log_set_level(LAM_LOG_ERROR);
}

START_TEST(crc32c_is_the_published_one)
{
    /* RFC 3720, B.4 */
    unsigned char zeros[32] = {0}, ones[32];
    memset(ones, 255, sizeof ones);
    ck_assert_uint_eq(lam_crc32c("123456789", 9), 0xe3069283u);
    ck_assert_uint_eq(lam_crc32c(zeros, 32), 0x8a9136aau);
    ck_assert_uint_eq(lam_crc32c(ones, 32), 0x62a8ab43u);
    ck_assert_uint_eq(lam_crc32c("", 0), 0);
}
END_TEST

static uint64_t low_first(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

/* Checks one frame and returns its data. */
static const unsigned char *open_frame(const unsigned char *p, size_t room, size_t *size)
{
    ck_assert_uint_ge(room, 16);
    *size = (size_t)low_first(p, 8);
    ck_assert_uint_eq(low_first(p + 8, 4), lam_crc32c_masked(p, 8));
    ck_assert_uint_le(*size + 16, room);
    ck_assert_uint_eq(low_first(p + 12 + *size, 4), lam_crc32c_masked(p + 12, *size));
    return p + 12;
}

START_TEST(an_event_is_a_protocol_buffer_in_a_frame)
{
    unsigned char out[LAM_TFEVENT_MAX];
    size_t size;
    const unsigned char *p = open_frame(out, lam_tfevent_version(out, 1.5), &size);
    static const unsigned char version[] = {
        0x09, 0,   0,   0,   0,   0,   0,   0xf8, 0x3f, 0x1a, 13, 'b', 'r', 'a', 'i', 'n', '.',
        'E',  'v', 'e', 'n', 't', ':', '2', 0x52, 8,    0x0a, 6,  'l', 'a', 'm', 'e', 'm', 'o'};
    ck_assert_uint_eq(size, sizeof version);
    ck_assert_int_eq(memcmp(p, version, size), 0);

    p = open_frame(out, lam_tfevent_scalar(out, 1.5, 300, "a/b", 2.0), &size);
    static const unsigned char scalar[] = {
        0x09, 0,  0,    0,  0,    0, 0,   0xf8, 0x3f, 0x10, 0xac, 0x02, /* 300 */
        0x2a, 12, 0x0a, 10, 0x0a, 3, 'a', '/',  'b',  0x15, 0,    0,    0, 0x40};
    ck_assert_uint_eq(size, sizeof scalar);
    ck_assert_int_eq(memcmp(p, scalar, size), 0);
}
END_TEST

static lam_status record(lam_runlog *r, int64_t step, double loss)
{
    const lam_scalar row[] = {{"epoch", 1, NULL}, {"loss", loss, "train/loss"}};
    LAM_TRY(lam_runlog_line(r, "step %7lld  epoch", (long long)step));
    return lam_runlog_record(r, step, row, 2);
}

/* Steps of metrics.jsonl, of train.log and of the events, in order; -1 ends. */
static void read_steps(const char *dir, int64_t steps[3][16], const lam_log_marks *marks)
{
    char path[4096], *text;
    size_t size, n[3] = {0};
    must(lam_path_join(path, sizeof path, dir, "metrics.jsonl"));
    must(lam_file_load(&text, &size, path, 1 << 20));
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        json_t *row = json_loads(line, 0, NULL);
        ck_assert_msg(row != NULL, "not JSON: %s", line);
        steps[0][n[0]++] = json_integer_value(json_object_get(row, "step"));
        json_decref(row);
    }
    free(text);
    must(lam_path_join(path, sizeof path, dir, "train.log"));
    must(lam_file_load(&text, &size, path, 1 << 20));
    for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        ck_assert_int_eq(sscanf(line, "step %ld", &steps[1][n[1]++]), 1);
    free(text);
    must(lam_path_join(path, sizeof path, dir, marks->events_name));
    must(lam_file_load(&text, &size, path, 1 << 20));
    for (size_t at = 0, length; at < size; at += length + 16) {
        const unsigned char *p = open_frame((const unsigned char *)text + at, size - at, &length);
        ck_assert_int_eq(p[9], at == 0 ? 0x1a : 0x10);
        if (at > 0)
            steps[2][n[2]++] = p[10]; /* below 128: one byte */
    }
    free(text);
    for (int i = 0; i < 3; i++)
        steps[i][n[i]] = -1;
}

START_TEST(a_resumed_log_goes_on_where_the_checkpoint_was)
{
    const char *dir = test_temp_path("log");
    lam_runlog *r;
    lam_log_marks marks, later;
    must(lam_dir_make(dir));
    must(lam_runlog_open(&r, dir));
    must(lam_runlog_begin(r, NULL));
    must(record(r, 1, 1.0));
    must(record(r, 2, 1.0));
    must(lam_runlog_sync(r, &marks));
    must(record(r, 3, 1.0));
    must(record(r, 4, 1.0));
    lam_runlog_close(r);

    must(lam_runlog_open(&r, dir));
    must(lam_runlog_begin(r, &marks));
    must(record(r, 3, 1.0));
    must(lam_runlog_sync(r, &later));
    lam_runlog_close(r);
    ck_assert_str_eq(later.events_name, marks.events_name);
    int64_t steps[3][16];
    read_steps(dir, steps, &marks);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(steps[i][0] == 1 && steps[i][1] == 2 && steps[i][2] == 3 && steps[i][3] == -1,
                      "file %d", i);

    must(lam_runlog_open(&r, dir));
    must(lam_runlog_begin(r, NULL)); /* a new run: nothing is left of the old one */
    must(record(r, 9, NAN));
    must(lam_runlog_sync(r, &later));
    lam_runlog_close(r);
    read_steps(dir, steps, &later);
    ck_assert(steps[0][0] == 9 && steps[0][1] == -1 && steps[1][0] == 9 && steps[1][1] == -1);
    ck_assert_int_eq(steps[2][0], -1); /* a NaN is no event, and null in the metrics */
    int events = 0;
    DIR *folder = opendir(dir);
    for (struct dirent *e; (e = readdir(folder));)
        events += strncmp(e->d_name, "events.out.tfevents.", 20) == 0;
    closedir(folder);
    ck_assert_int_eq(events, 1);
}
END_TEST

START_TEST(two_processes_do_not_train_in_one_folder)
{
    const char *dir = test_temp_path("shared");
    lam_runlog *r, *second;
    must(lam_dir_make(dir));
    must(lam_runlog_open(&r, dir));
    must(lam_runlog_begin(r, NULL));
    must(record(r, 1, 1.0));
    ck_assert_int_eq(lam_runlog_open(&second, dir), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), "another process is training here"));
    ck_assert_ptr_null(second);
    lam_log_marks marks;
    must(lam_runlog_sync(r, &marks));
    ck_assert_int_gt(marks.log, 0); /* the second one cut nothing */
    lam_runlog_close(r);
    must(lam_runlog_open(&r, dir));
    must(lam_runlog_begin(r, &marks));
    lam_runlog_close(r);
}
END_TEST

/* ---- recognising lamemo's own files ---- */

static const char *in(const char *dir, const char *name)
{
    static char path[4096];
    must(lam_path_join(path, sizeof path, dir, name));
    return path;
}

static const char *fresh(const char *name)
{
    const char *const dir = test_temp_path(name);
    must(lam_dir_remove(dir));
    must(lam_dir_make(dir));
    return dir;
}

static lam_status look(const char *dir, int *begun)
{
    LAM_TRY(lam_runlog_look(begun, dir));
    return lam_runlog_look_at_events(dir);
}

static lam_status begin(const char *dir, const lam_log_marks *marks)
{
    lam_runlog *r;
    LAM_TRY(lam_runlog_open(&r, dir));
    const lam_status status = lam_runlog_begin(r, marks);
    lam_runlog_close(r);
    return status;
}

static const struct foreign {
    const char *name, *text;
} foreign[] = {
    {"train.log", "step 1: train loss 3.2\n"},
    {"train.log", "Epoch 1\n"},
    {"metrics.jsonl", "{\"step\": 1, \"loss\": 3.2}\n"},
    {"metrics.jsonl", "{\"step\":1,\"loss\":3.2}\n"},
    {"metrics.jsonl", "a table"},
    {"events.out.tfevents.1700000000.host.123.0", "photographs"},
    {"events.out.tfevents.mine", "photographs"},
};

START_TEST(files_of_others_are_named_and_kept)
{
    const struct foreign *const f = &foreign[_i];
    const char *const dir = fresh("foreign");
    int begun;
    must(lam_file_save(in(dir, f->name), f->text, strlen(f->text)));
    ck_assert_int_eq(look(dir, &begun), LAM_ERR_IO);
    ck_assert_ptr_nonnull(strstr(lam_error(), f->name));
    ck_assert_ptr_nonnull(strstr(lam_error(), "lamemo did not write this file"));
    ck_assert_int_eq(begin(dir, NULL), LAM_ERR_IO);
    const lam_log_marks marks = {0};
    ck_assert_int_eq(begin(dir, &marks), strncmp(f->name, "events", 6) ? LAM_ERR_IO : LAM_OK);
    char *text;
    size_t size;
    must(lam_file_load(&text, &size, in(dir, f->name), 1000));
    ck_assert_str_eq(text, f->text);
    free(text);
}
END_TEST

START_TEST(links_and_pipes_are_not_followed)
{
    static const char *const names[] = {"train.log", "metrics.jsonl", "events.out.tfevents.1.x"};
    const char *const dir = fresh("links"), *const aim = test_temp_path("aim");
    lam_log_marks marks = {.events_name = "events.out.tfevents.1.x"};
    int begun;
    must(lam_file_save(aim, "", 0));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(symlink(aim, in(dir, names[i])), 0);
        ck_assert_int_eq(look(dir, &begun), LAM_ERR_IO);
        ck_assert_ptr_nonnull(strstr(lam_error(), "a link, which is not followed"));
        ck_assert_int_eq(begin(dir, &marks), LAM_ERR_IO);
        ck_assert_int_eq(unlink(in(dir, names[i])), 0);
        ck_assert_int_eq(mkfifo(in(dir, names[i]), 0600), 0);
        ck_assert_int_eq(look(dir, &begun), LAM_ERR_IO);
        ck_assert_ptr_nonnull(strstr(lam_error(), "not a regular file"));
        ck_assert_int_eq(begin(dir, &marks), LAM_ERR_IO);
        ck_assert_int_eq(unlink(in(dir, names[i])), 0);
    }
    struct stat info;
    ck_assert(stat(aim, &info) == 0 && info.st_size == 0);
    strcpy(marks.events_name, "../aim"); /* no name of ours: a new one takes its place */
    must(begin(dir, &marks));
    ck_assert(stat(aim, &info) == 0 && info.st_size == 0);
}
END_TEST

START_TEST(a_name_in_a_checkpoint_is_one_we_give)
{
    static const char *const good[] = {"events.out.tfevents.1.x",
                                       "events.out.tfevents.1700000000.host.example.org"};
    static const char *const bad[] = {"",
                                      "events.out.tfevents.",
                                      "events.out.tfevents.1",
                                      "events.out.tfevents.x.1",
                                      "../a/b.c",
                                      "metrics.jsonl",
                                      "events.out.tfevents.1.x/../y"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(lam_runlog_events_name(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!lam_runlog_events_name(bad[i]), "%s", bad[i]);
}
END_TEST

/* Event files of older versions, and of other programs, begin alike. */
START_TEST(an_event_file_is_ours_by_its_writer_or_a_tag_of_ours)
{
    unsigned char file[3 * LAM_TFEVENT_MAX];
    size_t size = lam_tfevent_version(file, 1.5);
    ck_assert(lam_tfevent_ours(file, size));
    ck_assert(!lam_tfevent_ours(file, 20) && !lam_tfevent_begins(file, 20));
    size += lam_tfevent_scalar(file + size, 1.5, 1, "a", 1.0);
    ck_assert(lam_tfevent_ours(file, size));
    /* as an older version wrote it: no writer; its frame is 10 bytes shorter */
    const size_t plain = 40;
    file[0] -= 10;
    ck_assert(lam_tfevent_begins(file, plain) && lam_tfevent_ours(file, plain));
    size = plain + lam_tfevent_scalar(file + plain, 1.5, 1, "train/loss", 1.0);
    ck_assert(lam_tfevent_begins(file, size) && !lam_tfevent_ours(file, size));
    size += lam_tfevent_scalar(file + size, 1.5, 1, "speed/gflops", 1.0);
    ck_assert(lam_tfevent_ours(file, size));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, be_quiet, NULL);
    tcase_add_test(tests, crc32c_is_the_published_one);
    tcase_add_test(tests, an_event_is_a_protocol_buffer_in_a_frame);
    tcase_add_test(tests, a_resumed_log_goes_on_where_the_checkpoint_was);
    tcase_add_test(tests, two_processes_do_not_train_in_one_folder);
    tcase_add_loop_test(tests, files_of_others_are_named_and_kept, 0,
                        sizeof foreign / sizeof *foreign);
    tcase_add_test(tests, links_and_pipes_are_not_followed);
    tcase_add_test(tests, a_name_in_a_checkpoint_is_one_we_give);
    tcase_add_test(tests, an_event_file_is_ours_by_its_writer_or_a_tag_of_ours);
    return test_run("train/runlog", tests);
}
