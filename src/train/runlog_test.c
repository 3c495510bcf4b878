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
    static const unsigned char version[] = {0x09, 0,    0,   0,   0,   0,   0,   0xf8,
                                            0x3f, 0x1a, 13,  'b', 'r', 'a', 'i', 'n',
                                            '.',  'E',  'v', 'e', 'n', 't', ':', '2'};
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
    const lam_scalar row[] = {{"loss", loss, "train/loss"}, {"epoch", 1, NULL}};
    LAM_TRY(lam_runlog_line(r, "step %lld", (long long)step));
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

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, be_quiet, NULL);
    tcase_add_test(tests, crc32c_is_the_published_one);
    tcase_add_test(tests, an_event_is_a_protocol_buffer_in_a_frame);
    tcase_add_test(tests, a_resumed_log_goes_on_where_the_checkpoint_was);
    tcase_add_test(tests, two_processes_do_not_train_in_one_folder);
    return test_run("train/runlog", tests);
}
