/* parallel.c -- see parallel.h. Failure messages are kept per thread (status.h); this file carries them
 * over to the caller's thread. */
#include "core/parallel.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct task {
    lam_worker *work;
    void *user;
    int i;
    bool started;
    pthread_t thread;
    lam_status status;
    char message[1024];
} task;

static void *run(void *user)
{
    task *t = user;
    t->status = t->work(t->user, t->i);
    if (t->status != LAM_OK)
        snprintf(t->message, sizeof t->message, "%s", lam_error());
    return NULL;
}

lam_status lam_parallel(int n, lam_worker *work, void *user)
{
    assert(n <= LAM_THREADS_MAX);
    if (n == 1)
        return work(user, 0);
    task *tasks = calloc((size_t)n + 1, sizeof *tasks);
    if (tasks == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d threads", n);
    for (int i = 0; i < n; i++) {
        tasks[i] = (task){.work = work, .user = user, .i = i};
        tasks[i].started = i < n - 1 && pthread_create(&tasks[i].thread, NULL, run, &tasks[i]) == 0;
    }
    for (int i = 0; i < n; i++)
        if (!tasks[i].started)
            run(&tasks[i]);
    lam_status status = LAM_OK;
    for (int i = 0; i < n; i++) {
        if (tasks[i].started)
            pthread_join(tasks[i].thread, NULL);
        if (tasks[i].status != LAM_OK && status == LAM_OK)
            status = lam_fail(tasks[i].status, "%s", tasks[i].message);
    }
    free(tasks);
    return status;
}
