/* worker.c -- see worker.h. */
#include "serve/worker.h"

#include "core/clock.h"
#include "core/file.h"
#include "core/log.h"
#include "model/folder.h"
#include "serve/completion.h"
#include "serve/memory_watch.h"
#include "serve/server_int.h"
#include "serve/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- loading ---- */

/* Which model is it?  Snapshots say so.  Tells models apart; it does not resist somebody who wants two to be taken for
 * one. */
static lam_status hash_model(lam_worker *w)
{
    static const char *const files[] = {"config.json", "vocab.json", "model.safetensors"};
    char folder[4096], path[4200];
    XXH64_hash_t parts[2 * 3];
    LAM_TRY(lam_folder_find(folder, sizeof folder, w->model->folder));
    for (int i = 0; i < 3; i++) {
        lam_map map;
        LAM_TRY(lam_path_join(path, sizeof path, folder, files[i]));
        LAM_TRY(lam_map_open(&map, path));
        const XXH128_hash_t hash = XXH3_128bits(map.data, map.size);
        parts[2 * i] = hash.low64;
        parts[2 * i + 1] = hash.high64;
        lam_map_close(&map);
    }
    const XXH128_hash_t all = XXH3_128bits(parts, sizeof parts);
    snprintf(w->hash, sizeof w->hash, "%016llx%016llx", (unsigned long long)all.high64,
             (unsigned long long)all.low64);
    return LAM_OK;
}

static lam_status load(lam_worker *w)
{
    const lam_serve_options *o = &w->server->o;
    LAM_TRY(o->open_device(&w->dev, o->user));
    LAM_TRY(lam_engine_open(&w->engine, w->model->folder, w->dev, &o->storage));
    LAM_TRY(hash_model(w));
    LAM_TRY(lam_scheduler_create(&w->scheduler, w->engine, &o->scheduler));
    w->loaded = time(NULL);
    return o->state ? lam_state_load(w) : LAM_OK;
}

/* ---- the thread ---- */

static void publish(lam_worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->load = lam_scheduler_look(w->scheduler);
    pthread_mutex_unlock(&w->lock);
}

static void serve(lam_worker *w)
{
    bool busy = false;
    double due = -1.0; /* seconds until somebody who watches is told */
    for (;;) {
        lam_calls_wait(&w->calls, busy ? 0.0 : due);
        const bool called = lam_calls_run(&w->calls);
        if (lam_scheduler_tick(w->scheduler, &busy) != LAM_OK)
            lam_log(LAM_LOG_ERROR, "%s: %s", w->model->name, lam_error());
        lam_completions_tell(w, !busy);
        due = lam_watches_look(w);
        publish(w);
        if (!called && !busy && lam_calls_ending(&w->calls))
            return;
    }
}

static void *run(void *arg)
{
    lam_worker *w = arg;
    pthread_setname_np(pthread_self(), "lamemo-compute"); /* the device's threads inherit it */
    if (load(w) != LAM_OK) {
        snprintf(w->problem, sizeof w->problem, "%s", lam_error());
        atomic_store(&w->state, LAM_BROKEN);
    } else {
        atomic_store(&w->state, LAM_READY);
        serve(w);
        if (w->server->o.state)
            lam_state_save(w);
    }
    lam_watches_end(w);
    return NULL;
}

lam_status lam_worker_start(lam_worker *w, lam_server *server, const lam_serve_model *model)
{
    w->server = server;
    w->model = model;
    lam_calls_open(&w->calls);
    pthread_mutex_init(&w->lock, NULL);
    if (pthread_create(&w->thread, NULL, run, w) != 0)
        return lam_fail(LAM_ERR_MEMORY, "%s: no thread to compute", model->name);
    w->started = 1;
    return LAM_OK;
}

void lam_worker_stop(lam_worker *w)
{
    if (!w->server)
        return;
    lam_calls_end(&w->calls);
    if (w->started)
        pthread_join(w->thread, NULL);
    lam_calls_run(&w->calls);
    lam_scheduler_free(w->scheduler);
    free(w->stored);
    lam_engine_close(w->engine);
    if (w->dev)
        w->dev->ops->close(w->dev);
    pthread_mutex_destroy(&w->lock);
    lam_calls_close(&w->calls);
}

/* ---- submitting jobs ---- */

int lam_worker_let_in(lam_worker *w, int jobs, size_t tokens)
{
    const lam_scheduler_options *o = &w->server->o.scheduler;
    const int most = o->lanes + o->queue;
    if (atomic_fetch_add(&w->jobs, jobs) + jobs <= most) {
        if (atomic_fetch_add(&w->tokens, (long long)tokens) + (long long)tokens <=
            (long long)LAM_PROMPT_TOKENS)
            return 1;
        atomic_fetch_sub(&w->tokens, (long long)tokens);
    }
    atomic_fetch_sub(&w->jobs, jobs);
    return 0;
}

void lam_worker_let_out(lam_worker *w, int jobs, size_t tokens)
{
    atomic_fetch_sub(&w->jobs, jobs);
    atomic_fetch_sub(&w->tokens, (long long)tokens);
}

lam_scheduler_load lam_worker_look(lam_worker *w)
{
    pthread_mutex_lock(&w->lock);
    const lam_scheduler_load load = w->load;
    pthread_mutex_unlock(&w->lock);
    return load;
}
