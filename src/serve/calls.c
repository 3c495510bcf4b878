/* calls.c -- see calls.h. */
#include "serve/calls.h"

#include <stddef.h>
#include <time.h>

void lam_calls_open(lam_calls *q)
{
    pthread_condattr_t attr;
    *q = (lam_calls){0};
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &attr);
    pthread_condattr_destroy(&attr);
}

void lam_calls_close(lam_calls *q)
{
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
}

void lam_calls_put(lam_calls *q, lam_call *call, void (*run)(void *arg), void *arg)
{
    *call = (lam_call){.run = run, .arg = arg};
    pthread_mutex_lock(&q->lock);
    *(q->first ? &q->last->next : &q->first) = call;
    q->last = call;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void lam_calls_wake(lam_calls *q)
{
    pthread_mutex_lock(&q->lock);
    q->woken = true;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void lam_calls_end(lam_calls *q)
{
    pthread_mutex_lock(&q->lock);
    q->closing = true;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void lam_calls_wait(lam_calls *q, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (seconds > 0.0) {
        const long long ns = until.tv_nsec + (long long)(seconds * 1e9);
        until.tv_sec += (time_t)(ns / 1000000000);
        until.tv_nsec = (long)(ns % 1000000000);
    }
    int late = seconds == 0.0;
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->woken && !q->closing && !late)
        late = seconds < 0.0 ? pthread_cond_wait(&q->changed, &q->lock)
                             : pthread_cond_timedwait(&q->changed, &q->lock, &until);
    q->woken = false;
    pthread_mutex_unlock(&q->lock);
}

bool lam_calls_run(lam_calls *q)
{
    pthread_mutex_lock(&q->lock);
    lam_call *call = q->first;
    q->first = q->last = NULL;
    pthread_mutex_unlock(&q->lock);
    const bool any = call != NULL;
    while (call) {
        lam_call *const next = call->next; /* running it may free it */
        call->run(call->arg);
        call = next;
    }
    return any;
}

bool lam_calls_ending(lam_calls *q)
{
    pthread_mutex_lock(&q->lock);
    const bool ending = q->closing;
    pthread_mutex_unlock(&q->lock);
    return ending;
}
