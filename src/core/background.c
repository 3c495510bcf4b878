/* background.c -- see background.h.  Failure messages are kept per thread (status.h); this file carries them over. */
#include "core/background.h"

#include "core/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 64 }; /* pieces that wait; with more the caller does */

typedef struct piece {
    size_t from, count;
} piece;

struct lam_background {
    lam_background_work *work;
    void *user;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    piece queue[ROOM];
    unsigned given, done;
    bool quit;
    lam_status status;
    char message[1024];
    double busy;
};

/* One piece, without the lock. */
static void do_piece(lam_background *b, piece p)
{
    const double began = lam_clock();
    b->status = b->work(b->user, p.from, p.count);
    if (b->status != LAM_OK)
        snprintf(b->message, sizeof b->message, "%s", lam_error());
    b->busy += lam_clock() - began;
}

static void *run(void *user)
{
    lam_background *b = user;
    pthread_mutex_lock(&b->lock);
    while (!b->quit || b->done != b->given) {
        if (b->done == b->given) {
            pthread_cond_wait(&b->changed, &b->lock);
            continue;
        }
        const piece next = b->queue[b->done % ROOM];
        const bool failed = b->status != LAM_OK;
        pthread_mutex_unlock(&b->lock);
        if (!failed)
            do_piece(b, next);
        pthread_mutex_lock(&b->lock);
        b->done++;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

lam_status lam_background_start(lam_background **out, lam_background_work *work, void *user)
{
    *out = NULL;
    lam_background *b = calloc(1, sizeof *b);
    if (!b)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a thread");
    b->work = work;
    b->user = user;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&b->thread, NULL, run, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        pthread_cond_destroy(&b->changed);
        pthread_mutex_destroy(&b->lock);
        free(b);
        return lam_fail(LAM_ERR_MEMORY, "no thread is left");
    }
    *out = b;
    return LAM_OK;
}

void lam_background_stop(lam_background *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->quit = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

void lam_background_give(lam_background *b, size_t from, size_t count)
{
    pthread_mutex_lock(&b->lock);
    while (b->given - b->done == ROOM)
        pthread_cond_wait(&b->changed, &b->lock);
    b->queue[b->given++ % ROOM] = (piece){from, count};
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

lam_status lam_background_wait(lam_background *b)
{
    pthread_mutex_lock(&b->lock);
    while (b->done != b->given)
        pthread_cond_wait(&b->changed, &b->lock);
    const lam_status status = b->status;
    b->status = LAM_OK;
    pthread_mutex_unlock(&b->lock);
    return status == LAM_OK ? LAM_OK : lam_fail(status, "%s", b->message);
}

double lam_background_busy(const lam_background *b)
{
    return b ? b->busy : 0.0;
}
