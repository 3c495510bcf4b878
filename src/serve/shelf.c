/* shelf.c -- see shelf.h. */
#include "serve/shelf.h"

#include "core/clock.h"

#include <stdlib.h>
#include <string.h>

void lam_shelf_open(lam_shelf *shelf, int most, size_t limit, double idle)
{
    *shelf = (lam_shelf){.most = most, .limit = limit, .idle = idle};
    pthread_mutex_init(&shelf->lock, NULL);
}

static void free_held(lam_held *held)
{
    lam_timeline_free(held->text);
    free(held);
}

void lam_shelf_close(lam_shelf *shelf)
{
    while (shelf->first) {
        lam_held *next = shelf->first->next;
        free_held(shelf->first);
        shelf->first = next;
    }
    pthread_mutex_destroy(&shelf->lock);
}

/* With the lock. */
static lam_held *find(lam_shelf *shelf, lam_held_kind kind, const char *id)
{
    lam_held *held = shelf->first;
    while (held && (held->kind != kind || strcmp(held->id, id) != 0))
        held = held->next;
    return held;
}

lam_worker *lam_shelf_whose(lam_shelf *shelf, lam_held_kind kind, const char *id)
{
    pthread_mutex_lock(&shelf->lock);
    const lam_held *held = find(shelf, kind, id);
    lam_worker *w = held ? held->worker : NULL;
    pthread_mutex_unlock(&shelf->lock);
    return w;
}

lam_held *lam_shelf_find(lam_shelf *shelf, lam_worker *w, lam_held_kind kind, const char *id)
{
    pthread_mutex_lock(&shelf->lock);
    lam_held *held = find(shelf, kind, id);
    pthread_mutex_unlock(&shelf->lock);
    if (!held || held->worker != w)
        return NULL;
    held->used = lam_clock();
    return held;
}

/* With the lock: takes one off the list. */
static void unlink_held(lam_shelf *shelf, lam_held *held)
{
    lam_held **at = &shelf->first;
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
    shelf->n--;
    shelf->bytes -= held->bytes;
}

/* The worker's least recently used one that nobody has used for long; NULL: there is none. */
static lam_held *idlest(const lam_shelf *shelf, const lam_worker *w)
{
    lam_held *found = NULL;
    const double now = lam_clock();
    for (lam_held *held = shelf->first; held && shelf->idle > 0.0; held = held->next)
        if (held->worker == w && !held->busy && now - held->used > shelf->idle &&
            (!found || held->used < found->used))
            found = held;
    return found;
}

/* With the lock. */
static lam_status make_room(lam_shelf *shelf, const lam_worker *w, size_t bytes)
{
    while (shelf->n >= shelf->most || shelf->bytes + bytes > shelf->limit) {
        lam_held *held = idlest(shelf, w);
        if (!held)
            return lam_fail(LAM_ERR_UNSUPPORTED,
                            "there are %d sessions and snapshots of %zu bytes, at most %d of %zu "
                            "are allowed: delete some",
                            shelf->n, shelf->bytes, shelf->most, shelf->limit);
        unlink_held(shelf, held);
        free_held(held);
    }
    return LAM_OK;
}

lam_status lam_shelf_put(lam_shelf *shelf, lam_held **out, lam_worker *w, lam_held_kind kind,
                         lam_timeline *text, const char *id)
{
    lam_held *held = calloc(1, sizeof *held);
    *out = NULL;
    if (!held) {
        lam_timeline_free(text);
        return lam_fail(LAM_ERR_MEMORY, "no memory for a session");
    }
    *held = (lam_held){.kind = kind,
                       .worker = w,
                       .text = text,
                       .created = time(NULL),
                       .used = lam_clock(),
                       .bytes = lam_timeline_bytes(text)};
    lam_status status = LAM_OK;
    if (id)
        memcpy(held->id, id, LAM_ID_ROOM);
    else
        status = lam_id_draw(held->id);
    pthread_mutex_lock(&shelf->lock);
    if (status == LAM_OK && find(shelf, kind, held->id))
        status = lam_fail(LAM_ERR_ARG, "the id %s is taken", held->id);
    if (status == LAM_OK)
        status = make_room(shelf, w, held->bytes);
    if (status == LAM_OK) {
        held->next = shelf->first;
        shelf->first = held;
        shelf->n++;
        shelf->bytes += held->bytes;
        *out = held;
    }
    pthread_mutex_unlock(&shelf->lock);
    if (status != LAM_OK)
        free_held(held);
    return status;
}

void lam_shelf_remove(lam_shelf *shelf, lam_held *held)
{
    pthread_mutex_lock(&shelf->lock);
    unlink_held(shelf, held);
    pthread_mutex_unlock(&shelf->lock);
    free_held(held);
}

void lam_shelf_moved(lam_shelf *shelf, lam_held *held)
{
    pthread_mutex_lock(&shelf->lock);
    shelf->bytes -= held->bytes;
    held->bytes = lam_timeline_bytes(held->text);
    shelf->bytes += held->bytes;
    pthread_mutex_unlock(&shelf->lock);
    held->version++;
    held->used = lam_clock();
}

void lam_shelf_each(lam_shelf *shelf, const lam_worker *w, void (*look)(void *user, lam_held *held),
                    void *user)
{
    pthread_mutex_lock(&shelf->lock);
    for (lam_held *held = shelf->first; held; held = held->next)
        if (held->worker == w)
            look(user, held);
    pthread_mutex_unlock(&shelf->lock);
}
