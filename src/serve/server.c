/* server.c -- see server.h: starting, draining, stopping. */
#include "serve/server_int.h"

#include "core/clock.h"
#include "core/log.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void run_calls(lam_calls *q, const char *name)
{
    pthread_setname_np(pthread_self(), name);
    do
        lam_calls_wait(q, -1.0);
    while (lam_calls_run(q) || !lam_calls_ending(q));
}

static void *clerk(void *arg)
{
    run_calls(&((lam_server *)arg)->clerk, "lamemo-clerk");
    return NULL;
}

static void *herald(void *arg)
{
    run_calls(&((lam_server *)arg)->herald, "lamemo-herald");
    return NULL;
}

static void nap(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

static lam_status start(lam_server *s)
{
    s->workers = calloc((size_t)s->o.n_models, sizeof *s->workers);
    if (!s->workers)
        return lam_fail(LAM_ERR_MEMORY, "server: no memory");
    if (s->o.key_file)
        LAM_TRY(lam_auth_load(&s->auth, s->o.key_file));
    if (pthread_create(&s->clerk_thread, NULL, clerk, s) != 0)
        return lam_fail(LAM_ERR_MEMORY, "server: no thread for the clerk");
    s->clerk_started = 1;
    if (pthread_create(&s->herald_thread, NULL, herald, s) != 0)
        return lam_fail(LAM_ERR_MEMORY, "server: no thread for the herald");
    s->herald_started = 1;
    LAM_TRY(lam_http_start(s)); /* an address that is taken is told before a model is loaded */
    for (int i = 0; i < s->o.n_models; i++)
        LAM_TRY(lam_worker_start(&s->workers[i], s, &s->o.models[i]));
    return LAM_OK;
}

lam_status lam_server_start(lam_server **out, const lam_serve_options *options)
{
    *out = NULL;
    lam_server *s = calloc(1, sizeof *s);
    if (!s)
        return lam_fail(LAM_ERR_MEMORY, "server: no memory");
    s->o = *options;
    s->auth.hosts = options->hosts;
    s->auth.n_hosts = options->n_hosts;
    s->started = time(NULL);
    lam_calls_open(&s->clerk);
    lam_calls_open(&s->herald);
    lam_shelf_open(&s->shelf, options->sessions, options->session_bytes, options->idle_seconds);
    /* Threads inherit it: signals are for the main thread, which waits for them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    lam_status status = lam_watchdog_start(s);
    if (status == LAM_OK)
        status = start(s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != LAM_OK) {
        lam_server_stop(s, 0.0);
        return status;
    }
    *out = s;
    return LAM_OK;
}

int lam_server_port(const lam_server *s)
{
    return s->port;
}

lam_status lam_server_wait(lam_server *s, double seconds, int *ready)
{
    const double until = lam_clock() + seconds;
    do {
        *ready = lam_server_is_ready(s);
        for (int i = 0; i < s->o.n_models; i++)
            if (atomic_load(&s->workers[i].state) == LAM_BROKEN)
                return lam_fail(LAM_ERR_IO, "%s", s->workers[i].problem);
        if (*ready || lam_clock() >= until)
            return LAM_OK;
        nap(0.02);
    } while (1);
}

int lam_server_is_ready(const lam_server *s)
{
    int ready = s->workers != NULL;
    for (int i = 0; ready && i < s->o.n_models; i++)
        ready &= atomic_load(&s->workers[i].state) == LAM_READY;
    return ready;
}

lam_worker *lam_server_worker(lam_server *s, const char *name)
{
    for (int i = 0; i < s->o.n_models; i++)
        if (*name == '\0' || strcmp(s->o.models[i].name, name) == 0)
            return &s->workers[i];
    return NULL;
}

int lam_worker_is(const lam_worker *w, const char *name)
{
    return *name == '\0' || strcmp(w->model->name, name) == 0;
}

void lam_server_stop(lam_server *s, double seconds)
{
    const double until = lam_clock() + seconds;
    atomic_store(&s->draining, 1);
    lam_watchdog_wake_all(s);
    while (atomic_load(&s->open_requests) > 0 && lam_clock() < until)
        nap(0.02);
    while (atomic_load(&s->open_requests) > 0) { /* each is resumed and ends */
        lam_watchdog_abandon_all(s);
        nap(0.02);
    }
    lam_watchdog_stop(s);
    lam_http_stop(s);
    lam_watchdog_close(s);
    lam_calls_end(&s->clerk);
    if (s->clerk_started)
        pthread_join(s->clerk_thread, NULL);
    for (int i = 0; s->workers && i < s->o.n_models; i++)
        lam_worker_stop(&s->workers[i]);
    lam_calls_end(&s->herald);
    if (s->herald_started)
        pthread_join(s->herald_thread, NULL);
    lam_calls_close(&s->clerk);
    lam_calls_close(&s->herald);
    lam_shelf_close(&s->shelf);
    lam_auth_free(&s->auth);
    free(s->workers);
    free(s);
}
