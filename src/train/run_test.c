/* run_test.c -- stopped, killed or starved, a run ends where the undisturbed one ends. */
#include "train/run.h"

#include "core/clock.h"
#include "core/file.h"
#include "core/log.h"
#include "support/fault.h"
#include "support/suite.h"
#include "support/toyrun.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds by which the clock goes on whenever it is asked, so that no busy machine decides how many steps fit into a time
 * limit; 0: the machine's clock. */
static double tick;
double __real_lam_clock(void);
double __wrap_lam_clock(void);
double __wrap_lam_clock(void)
{
    static double now;
    return tick > 0.0 ? now += tick : __real_lam_clock();
}

static void be_quiet(void)
{
    lam_log_set_level(LAM_LOG_ERROR);
    tick = 0.0;
}

static lam_settings run_settings(void)
{
    lam_settings s = toyrun_settings();
    s.max_step = 12;
    s.log_interval = 2;
    s.eval_interval = 4;
    s.save_interval = 3;
    s.eval_batch_size = 2;
    s.batch_chunk = 2;
    s.roll = 1;
    s.average = 0.4;                     /* from before the second of three evaluations on */
    s.scheduler = LAM_SCHEDULE_DEV_PERF; /* evaluations matter for what follows */
    return s;
}

/* Stops when the countdown reaches 0; below 0: never. */
static int count_down(void *user)
{
    int *left = user;
    return *left >= 0 && --*left < 0;
}

/* One call of the program: a new trainer, resumed if there is a checkpoint, run on. */
static lam_status call(const char *dir, const lam_settings *s, int stop_after,
                       lam_run_result *result)
{
    char last[PATH_MAX];
    const lam_config cfg = toyrun_config("lamemo");
    toyrun r = toyrun_open("cpu", &cfg, s);
    unsigned char *ids;
    const lam_tokens valid = toyrun_text(&ids, 100, cfg.n_token, 5);
    lam_runlog *log = NULL;
    lam_run_result ignored;
    must(lam_dir_make(dir));
    must(lam_path_join(last, sizeof last, dir, "last"));
    must(lam_dir_recover(last)); /* a checkpoint without its name is one, too */
    lam_status status = LAM_OK;
    const int resumed = lam_path_exists(last);
    if (resumed)
        status = lam_trainer_resume(r.trainer, last);
    if (status == LAM_OK)
        status = lam_runlog_open(&log, dir);
    if (status == LAM_OK)
        status = lam_runlog_begin(log, resumed ? &r.trainer->state.marks : NULL);
    if (status == LAM_OK)
        status = lam_run(result ? result : &ignored, r.trainer, log,
                         &(lam_run_options){.dir = dir, .valid = &valid, .vocab = "{}"},
                         &(lam_run_watch){.user = &stop_after, .stop = count_down});
    lam_runlog_close(log);
    toyrun_close(&r);
    free(ids);
    return status;
}

static char *contents(const char *dir, const char *name, size_t *size)
{
    char path[PATH_MAX], *text;
    must(lam_path_join(path, sizeof path, dir, name));
    must(lam_file_load(&text, size, path, 1 << 24));
    return text;
}

static void check_same_file(const char *a, const char *b, const char *name)
{
    size_t m, n;
    char *x = contents(a, name, &m), *y = contents(b, name, &n);
    ck_assert_msg(m == n && memcmp(x, y, m) == 0, "%s differs", name);
    free(x);
    free(y);
}

/* Every record but for what depends on the clock. */
static void check_same_metrics(const char *a, const char *b)
{
    size_t m, n;
    char *x = contents(a, "metrics.jsonl", &m), *y = contents(b, "metrics.jsonl", &n);
    char *save_x, *save_y, *p = strtok_r(x, "\n", &save_x), *q = strtok_r(y, "\n", &save_y);
    for (; p && q; p = strtok_r(NULL, "\n", &save_x), q = strtok_r(NULL, "\n", &save_y)) {
        char *cut =
            strstr(p, ",\"tokens_per") ? strstr(p, ",\"tokens_per") : strstr(p, ",\"elapsed");
        ck_assert_ptr_nonnull(cut);
        ck_assert_msg(strncmp(p, q, (size_t)(cut - p)) == 0, "'%s' and '%s'", p, q);
    }
    ck_assert_msg(!p && !q, "a record more: %s", p ? p : q);
    free(x);
    free(y);
}

static void check_same_run(const char *a, const char *b)
{
    check_same_file(a, b, "last/model.safetensors");
    check_same_file(a, b, "last/optimizer.safetensors");
    check_same_file(a, b, "last/memory.safetensors");
    check_same_file(a, b, "best/model.safetensors");
    check_same_metrics(a, b);
}

START_TEST(a_run_stopped_anywhere_and_resumed_is_the_undisturbed_run)
{
    const lam_settings s = run_settings();
    const char *whole = test_temp_path("whole"), *parts = test_temp_path("parts");
    int interrupted = 0;
    must(call(whole, &s, -1, NULL));
    for (int after = 0;; after++) {
        must(lam_dir_remove(parts));
        const lam_status status = call(parts, &s, after, NULL);
        if (status == LAM_OK)
            break; /* the countdown outlasted the run */
        ck_assert_msg(status == LAM_ERR_INTERRUPTED, "%s", lam_error());
        interrupted++;
        must(call(parts, &s, -1, NULL));
        check_same_run(whole, parts);
    }
    ck_assert_int_gt(interrupted, 12 + 3 * 5); /* before every step and inside evaluations */
}
END_TEST

/* OpenMP's threads do not survive fork(): this process must not have used any yet. */
static pid_t call_in_child(const char *dir, const lam_settings *s)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(call(dir, s, -1, NULL) == LAM_OK ? 0 : 1);
    return child;
}

static int wait_for(pid_t child)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(a_run_killed_at_random_times_ends_as_the_undisturbed_run)
{
    const lam_settings s = run_settings();
    const char *whole = test_temp_path("undisturbed"), *parts = test_temp_path("killed");
    test_fault_no_exchange(_i); /* two renames instead, with a moment between them */
    must(lam_dir_remove(whole));
    const double started = lam_clock();
    ck_assert_int_eq(wait_for(call_in_child(whole, &s)), 0);
    double length = lam_clock() - started;
    lam_rng rng = {.key = (uint64_t)(1e9 * started)};
    printf("seed %llu, a run takes %.3f s\n", (unsigned long long)rng.key, length);
    int kills = 0;
    for (int round = 0; round < 6 || kills == 0; round++) {
        const int before = kills;
        must(lam_dir_remove(parts));
        /* Patience grows: on a machine that has become busier no child would ever get anywhere. */
        double patience = length;
        for (int done = 0; !done; patience *= 1.05) {
            const pid_t child = call_in_child(parts, &s);
            usleep((useconds_t)(1e6 * patience * lam_rng_uniform(&rng)));
            kill(child, SIGKILL);
            const int status = wait_for(child);
            ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
            done = !WIFSIGNALED(status);
            kills += !done;
        }
        check_same_run(whole, parts);
        if (kills == before) /* a machine that was busier then */
            length *= 0.5;
    }
    printf("%d kills\n", kills);
}
END_TEST

START_TEST(a_full_disk_ends_the_run_with_a_whole_checkpoint)
{
    const lam_settings s = run_settings();
    const char *whole = test_temp_path("roomy"), *full = test_temp_path("full");
    must(call(whole, &s, -1, NULL));
    /* Every seventh call is enough here; checkpoint_accident_test.c tries them all. */
    int faults = 0;
    for (int n = 1; test_fault_at(n, ENOSPC); n += 7) {
        must(lam_dir_remove(full));
        const lam_status status = call(full, &s, -1, NULL);
        const int failed = test_fault_happened();
        ck_assert_int_eq(status, failed ? LAM_ERR_IO : LAM_OK);
        faults += failed;
        if (failed) {
            ck_assert_ptr_nonnull(strstr(lam_error(), "no space left"));
            ck_assert_ptr_nonnull(strstr(lam_error(), "checkpoint"));
            must(call(full, &s, -1, NULL)); /* the hook fires once */
        }
        check_same_run(whole, full);
    }
    ck_assert_int_gt(faults, 10);
}
END_TEST

static void look_for_checkpoint(void *user, const lam_run_progress *p)
{
    int *evaluations = user;
    if (p->evaluated < 0.0)
        return;
    ++*evaluations;
    ck_assert(lam_path_exists(test_temp_path("early/last/training_state.json")));
}

/* Where it may end for want of memory, or be killed for its length. */
START_TEST(the_first_evaluation_finds_a_checkpoint)
{
    lam_settings s = run_settings();
    const lam_config cfg = toyrun_config("lamemo");
    const char *dir = test_temp_path("early");
    unsigned char *ids;
    const lam_tokens valid = toyrun_text(&ids, 100, cfg.n_token, 5);
    lam_runlog *log;
    lam_run_result result;
    int evaluations = 0;
    s.max_step = 5;
    s.save_interval = 0;
    toyrun r = toyrun_open("cpu", &cfg, &s);
    must(lam_dir_make(dir));
    must(lam_runlog_open(&log, dir));
    must(lam_runlog_begin(log, NULL));
    must(lam_run(&result, r.trainer, log, &(lam_run_options){.dir = dir, .valid = &valid},
                 &(lam_run_watch){.user = &evaluations, .progress = look_for_checkpoint}));
    ck_assert_int_gt(evaluations, 1);
    lam_runlog_close(log);
    toyrun_close(&r);
    free(ids);
}
END_TEST

/* Where names cannot be exchanged (NFS) a crash may leave the best model under another name. */
START_TEST(a_best_model_that_lost_its_name_gets_it_back)
{
    lam_settings s = run_settings();
    char best[PATH_MAX], old[PATH_MAX];
    const char *dir = test_temp_path("nameless");
    must(call(dir, &s, -1, NULL));
    must(lam_path_join(best, sizeof best, dir, "best"));
    must(lam_path_join(old, sizeof old, dir, "best.old"));
    ck_assert_int_eq(rename(best, old), 0);
    s.max_step = 16;
    s.lr = 0.0; /* nothing better comes */
    must(call(dir, &s, -1, NULL));
    ck_assert(lam_path_exists(best) && !lam_path_exists(old));
}
END_TEST

/* The first number of the first feed-forward bias becomes infinite. */
static void spoil(toyrun *r)
{
    lam_params *p = &r->model->params;
    const int i = lam_params_find(p, "layers.0.pos_ff.CoreNet.0.bias");
    double x[64];
    ck_assert(i >= 0 && lam_param_count(&p->list[i]) <= 64);
    must(lam_params_get(p, p->master, i, x));
    x[0] = INFINITY;
    must(lam_params_set(p, p->master, i, x));
}

START_TEST(a_bad_number_leaves_the_last_good_checkpoint_and_names_it)
{
    lam_settings s = run_settings();
    const lam_config cfg = toyrun_config("lamemo");
    const char *dir = test_temp_path("bad");
    lam_runlog *log;
    lam_run_result result;
    char wanted[PATH_MAX + 64];
    s.max_step = 6;
    toyrun r = toyrun_open("cpu", &cfg, &s);
    must(lam_dir_make(dir));
    must(lam_runlog_open(&log, dir));
    must(lam_runlog_begin(log, NULL));
    const lam_run_options options = {.dir = dir};
    must(lam_run(&result, r.trainer, log, &options, NULL));
    spoil(&r);
    r.trainer->state.settings.max_step = 20;
    ck_assert_int_eq(lam_run(&result, r.trainer, log, &options, NULL), LAM_ERR_NUMERIC);
    snprintf(wanted, sizeof wanted, "; the last good checkpoint is %s/last, step 6", dir);
    ck_assert_msg(strncmp(lam_error(), "step 7: the loss is ", 20) == 0 &&
                      strstr(lam_error(), wanted),
                  "%s", lam_error());
    lam_runlog_close(log);
    toyrun_close(&r);
    char *records;
    size_t size;
    must(lam_file_load(&records, &size, test_temp_path("bad/metrics.jsonl"), 1 << 20));
    ck_assert_msg(strstr(records, "{\"step\":6,\"ended\":1,") != NULL, "%s", records);
    ck_assert_msg(strstr(records, "{\"step\":6,\"diverged\":1,") != NULL, "%s", records);
    free(records);
    s.max_step = 8; /* it is good: the run goes on */
    must(call(dir, &s, -1, &result));
    ck_assert_int_eq(result.step, 8);
}
END_TEST

START_TEST(the_clock_ends_a_run_with_everything_saved)
{
    lam_settings s = run_settings();
    lam_run_result result;
    const char *dir = test_temp_path("timed");
    s.max_step = 100000000;
    s.max_time = 0.05;
    s.eval_interval = 1 << 30;
    tick = 0.001;
    must(call(dir, &s, -1, &result));
    ck_assert(result.timed_out && result.step > 0 && result.step < s.max_step);
    ck_assert(isfinite(result.best_loss) && result.best_step == result.step);
    ck_assert(lam_path_exists(test_temp_path("timed/last/training_state.json")));
    ck_assert(lam_path_exists(test_temp_path("timed/best/config.json")));
}
END_TEST

/* The learning rate of the last logged step of a run. */
static double last_rate(const char *metrics)
{
    char *text, *at = NULL;
    size_t size;
    must(lam_file_load(&text, &size, metrics, 1 << 20));
    for (char *next = text; (next = strstr(next, "\"lr\":")) != NULL; next += 5)
        at = next;
    ck_assert_ptr_nonnull(at);
    const double rate = strtod(at + 5, NULL);
    free(text);
    return rate;
}

START_TEST(a_schedule_may_follow_the_clock)
{
    lam_settings s = run_settings();
    lam_run_result result;
    s.scheduler = LAM_SCHEDULE_LINEAR;
    must(call(test_temp_path("by-steps"), &s, -1, &result));
    ck_assert_double_eq_tol(last_rate(test_temp_path("by-steps/metrics.jsonl")), s.lr / 12, 1e-8);
    s.scheduler_time = 1e6; /* hardly begun */
    must(call(test_temp_path("slow"), &s, -1, &result));
    ck_assert_double_eq_tol(last_rate(test_temp_path("slow/metrics.jsonl")), s.lr, 1e-5);
    tick = 0.001;
    s.scheduler_time = 0.2; /* ends long before the steps do, and the run with it */
    s.max_step = 100000000;
    s.log_interval = 1;
    s.eval_interval = 0;
    must(call(test_temp_path("quick"), &s, -1, &result));
    ck_assert(!result.timed_out && result.step < s.max_step); /* this was all of it */
    ck_assert_double_lt(last_rate(test_temp_path("quick/metrics.jsonl")), 0.1 * s.lr);
    const int64_t end = result.step;
    must(call(test_temp_path("quick"), &s, -1, &result)); /* resumed, it has nothing left to do */
    ck_assert_int_eq(result.step, end);
}
END_TEST

int main(void)
{
    test_temp_in_memory();
    setenv("OMP_NUM_THREADS", "1", 1);
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, be_quiet, NULL);
    tcase_add_test(tests, a_run_stopped_anywhere_and_resumed_is_the_undisturbed_run);
    tcase_add_loop_test(tests, a_run_killed_at_random_times_ends_as_the_undisturbed_run, 0, 2);
    tcase_add_test(tests, a_full_disk_ends_the_run_with_a_whole_checkpoint);
    tcase_add_test(tests, the_first_evaluation_finds_a_checkpoint);
    tcase_add_test(tests, a_best_model_that_lost_its_name_gets_it_back);
    tcase_add_test(tests, a_bad_number_leaves_the_last_good_checkpoint_and_names_it);
    tcase_add_test(tests, a_schedule_may_follow_the_clock);
    tcase_add_test(tests, the_clock_ends_a_run_with_everything_saved);
    return test_run("train/run", tests);
}
