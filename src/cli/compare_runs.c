/* compare_runs.c -- see compare_runs.h. */
#include "cli/compare_runs.h"

#include "cli/children.h"
#include "cli/ranks.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "cli/variants.h"
#include "core/cpus.h"
#include "core/file.h"
#include "core/log.h"
#include "train/run.h"

#include <limits.h>
#include <math.h>
#include <signal.h>

typedef struct job {
    pid_t pid;
    int model, seed;
} job;

typedef struct pool {
    lam_comparison *c;
    const char *dir;
    const lam_args *args;
    lam_comm *comm;
    int jobs, n; /* at most, and now */
    job job[LAM_JOBS_MAX];
    int begun[LAM_COMPARE_MAX][LAM_COMPARE_MAX]; /* by this process, [model][seed] */
    int failed;
    int told; /* the children know that we are to stop */
    lam_progress line;
} pool;

static lam_status folder_of(char path[PATH_MAX], const pool *p, int model, int seed)
{
    char name[LAM_LABEL_MAX + 16];
    lam_comparison_folder(name, p->c, model, seed);
    return lam_path_join(path, PATH_MAX, p->dir, name);
}

/* The next run to begin: every model with the first seed, then with the second, ... */
static int next_run(const pool *p, int *model, int *seed)
{
    for (*seed = 0; *seed < p->c->n_seeds; ++*seed)
        for (*model = 0; *model < p->c->n_models; ++*model) {
            const lam_run_end end = p->c->models[*model].runs[*seed].end;
            const int owner = (*seed * p->c->n_models + *model) % lam_comm_size(p->comm);
            if (end != LAM_RUN_DONE && end != LAM_RUN_DIVERGED && !p->begun[*model][*seed] &&
                owner == lam_comm_rank(p->comm))
                return 1;
        }
    return 0;
}

/* Several trainings share the cores, unless the user has chosen. */
static lam_status add_threads(lam_words *w, const pool *p)
{
    const int shared = lam_ranks_threads(p->comm, 0), cores = shared > 0 ? shared : lam_cpus();
    if ((p->jobs == 1 && shared == 0) || json_object_get(p->c->options, "threads"))
        return LAM_OK;
    return lam_words_add(w, "--threads=%d", cores > p->jobs ? cores / p->jobs : 1);
}

static lam_status command_line(lam_words *w, const pool *p, int model, int seed, const char *folder)
{
    LAM_TRY(lam_variant_words(w, p->c, &p->c->models[model]));
    LAM_TRY(lam_words_add(w, "--data=%s", p->c->corpus.path));
    LAM_TRY(lam_words_add(w, "--out=%s", folder));
    LAM_TRY(lam_words_add(w, "--seed=%d", p->c->seeds[seed]));
    LAM_TRY(lam_words_add(w, "--inner-job"));
    if (lam_path_exists(folder)) /* begun before */
        LAM_TRY(lam_words_add(w, "--resume"));
    if (p->args->quiet || p->jobs > 1 ||
        lam_comm_size(p->comm) > 1) /* lines of several would mix */
        LAM_TRY(lam_words_add(w, "--quiet"));
    if (p->args->max_memory > 0) /* they share it */
        LAM_TRY(
            lam_words_add(w, "--max-memory=%lld", (long long)(p->args->max_memory / p->jobs + 1)));
    return add_threads(w, p);
}

static lam_status begin(pool *p, int model, int seed)
{
    const lam_comparison *c = p->c;
    char folder[PATH_MAX];
    lam_words w = {0};
    job *j = &p->job[p->n];
    LAM_TRY(folder_of(folder, p, model, seed));
    lam_log(LAM_LOG_INFO, "%s, seed %d: begins (%d of %d are done): %s", c->models[model].label,
            c->seeds[seed], lam_comparison_settled(c), c->n_models * c->n_seeds, folder);
    lam_status status = command_line(&w, p, model, seed, folder);
    if (status == LAM_OK)
        status = lam_child_start(&j->pid, w.v);
    lam_words_free(&w);
    LAM_TRY(status);
    j->model = model;
    j->seed = seed;
    p->begun[model][seed] = 1;
    p->n++;
    return LAM_OK;
}

static void tell_end(const lam_comparison *c, int model, int seed, int code)
{
    const lam_compared_run *r = &c->models[model].runs[seed];
    const char *const label = c->models[model].label, *const metric = lam_metric_name(c->metric);
    char took[32];
    if (r->end == LAM_RUN_DONE)
        lam_log(LAM_LOG_INFO, "%s, seed %d: dev %s %.4f, test %s %.4f, took %s", label,
                c->seeds[seed], metric, lam_metric_of(c->metric, r->outcome.valid), metric,
                lam_metric_of(c->metric, r->outcome.test),
                lam_format_time(took, sizeof took, r->outcome.seconds));
    if (r->end == LAM_RUN_DIVERGED)
        lam_log(LAM_LOG_WARN, "%s, seed %d: diverged after step %lld", label, c->seeds[seed],
                (long long)r->outcome.step);
    if (r->end == LAM_RUN_FAILED)
        lam_log(LAM_LOG_WARN, "%s, seed %d: failed with exit status %d", label, c->seeds[seed],
                code);
}

static lam_status end(pool *p, pid_t pid, int code)
{
    int k = 0;
    while (k < p->n && p->job[k].pid != pid)
        k++;
    if (k == p->n)
        return LAM_OK; /* not ours */
    const job j = p->job[k];
    p->job[k] = p->job[--p->n];

    char folder[PATH_MAX];
    lam_compared_run *r = &p->c->models[j.model].runs[j.seed];
    LAM_TRY(folder_of(folder, p, j.model, j.seed));
    LAM_TRY(lam_outcome_read(&r->outcome, folder));
    r->end = code == 0                                              ? LAM_RUN_DONE
             : lam_stop_signal() && code == 128 + lam_stop_signal() ? LAM_RUN_WAITING
             : r->outcome.diverged                                  ? LAM_RUN_DIVERGED
                                                                    : LAM_RUN_FAILED;
    p->failed += r->end == LAM_RUN_FAILED;
    lam_progress_clear(&p->line);
    tell_end(p->c, j.model, j.seed, code);
    return lam_comm_rank(p->comm) == 0 ? lam_comparison_save(p->c, p->dir) : LAM_OK;
}

static void pass_signal_on(pool *p)
{
    for (int k = 0; k < p->n && !p->told; k++)
        kill(p->job[k].pid, lam_stop_signal());
    p->told = 1;
}

static lam_status fill(pool *p)
{
    int model, seed;
    while (p->n < p->jobs && !lam_stop_signal() && next_run(p, &model, &seed))
        LAM_TRY(begin(p, model, seed));
    return LAM_OK;
}

/* Ends when nothing runs and nothing may be begun; after an error nothing new is begun. */
static lam_status loop(pool *p)
{
    lam_status status = fill(p);
    while (p->n > 0) {
        pid_t pid;
        int code;
        if (lam_stop_signal())
            pass_signal_on(p);
        if (p->jobs > 1 && lam_progress_due(&p->line))
            lam_progress_show(&p->line, "%d of %d runs are done, %d at work",
                              lam_comparison_settled(p->c), p->c->n_models * p->c->n_seeds, p->n);
        LAM_TRY(lam_child_wait(&pid, &code));
        lam_status ended = pid > 0 ? end(p, pid, code) : LAM_OK;
        if (ended == LAM_OK && status == LAM_OK && pid > 0)
            ended = fill(p);
        if (status == LAM_OK)
            status = ended;
    }
    return status;
}

/* What the other processes have trained. */
static lam_status join(pool *p, int *stopped)
{
    struct {
        unsigned char stopped, end[LAM_COMPARE_MAX][LAM_COMPARE_MAX]; /* 1 + lam_run_end; 0: none */
    } all = {.stopped = lam_stop_signal() != 0};
    for (int m = 0; m < p->c->n_models; m++)
        for (int s = 0; s < p->c->n_seeds; s++)
            if (p->begun[m][s])
                all.end[m][s] = (unsigned char)(1 + p->c->models[m].runs[s].end);
    LAM_TRY(lam_comm_any(p->comm, (unsigned char *)&all, sizeof all));
    for (int m = 0; m < p->c->n_models; m++)
        for (int s = 0; s < p->c->n_seeds; s++) {
            char folder[PATH_MAX];
            lam_compared_run *r = &p->c->models[m].runs[s];
            if (p->begun[m][s] || all.end[m][s] == 0)
                continue;
            r->end = (lam_run_end)(all.end[m][s] - 1);
            p->failed += r->end == LAM_RUN_FAILED;
            LAM_TRY(folder_of(folder, p, m, s));
            LAM_TRY(lam_outcome_read(&r->outcome, folder));
        }
    *stopped = all.stopped;
    return lam_comm_rank(p->comm) == 0 ? lam_comparison_save(p->c, p->dir) : LAM_OK;
}

lam_status lam_compare_train(lam_comparison *c, int *failed, const char *dir, int jobs,
                             const lam_args *args, lam_comm *comm)
{
    int stopped;
    pool p = {.c = c, .dir = dir, .args = args, .comm = comm, .jobs = jobs};
    lam_progress_open(&p.line, args->quiet || jobs == 1);
    lam_status status = lam_comm_agree(comm, loop(&p));
    lam_progress_close(&p.line);
    stopped = lam_stop_signal() != 0;
    if (status == LAM_OK && lam_comm_size(comm) > 1)
        status = lam_comm_agree(comm, join(&p, &stopped));
    *failed = p.failed;
    if (status == LAM_OK && stopped && lam_comparison_settled(c) < c->n_models * c->n_seeds)
        return lam_fail(LAM_ERR_INTERRUPTED, "stopped");
    return status;
}
