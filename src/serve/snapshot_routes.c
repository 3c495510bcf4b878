/* snapshot_routes.c -- routes that download, upload and delete snapshots as files.
 *
 * A file names the hash of its model, and other models refuse it: matching sizes do not make the numbers meaningful for
 * another model. */
#include "serve/session_json.h"

#include "serve/handlers.h"

#include <stdlib.h>
#include <string.h>

/* ---- download ---- */

typedef struct file {
    lam_snapshot *snapshot;
} file;

static void free_file(void *user)
{
    file *f = user;
    lam_snapshot_free(f->snapshot);
    free(f);
}

/* The clerk writes the file, which takes a while, and nobody else waits. */
static void write_file(void *arg)
{
    lam_request *x = arg;
    file *f = x->user;
    char *bytes;
    size_t size;
    const lam_status status = lam_snapshot_write(f->snapshot, &bytes, &size);
    if (status == LAM_OK) {
        x->reply.status = 200;
        x->reply.type = "application/octet-stream";
        x->reply.body = (lam_text){.data = bytes, .size = size, .room = size};
    } else {
        lam_reply_status(&x->reply, status, NULL);
    }
    lam_request_finish(x);
}

static void export(void *arg)
{
    lam_request *x = arg;
    lam_held *held = lam_request_held(x, LAM_SNAPSHOT, 0);
    file *f;
    if (!held)
        return;
    lam_status status = (f = calloc(1, sizeof *f))
                            ? lam_scheduler_export(x->worker->scheduler, &f->snapshot, held->text)
                            : lam_fail(LAM_ERR_MEMORY, "no memory for a snapshot");
    if (status == LAM_OK)
        status = lam_snapshot_set_model(f->snapshot, x->worker->hash);
    if (f)
        lam_request_keep(x, f, free_file, NULL);
    if (status == LAM_OK) {
        lam_request_clerk(x, write_file);
    } else {
        lam_reply_status(&x->reply, status, NULL);
        lam_request_finish(x);
    }
}

void lam_get_snapshot(lam_request *x)
{
    lam_to_owner(x, LAM_SNAPSHOT, export);
}

/* ---- upload ---- */

static void import(void *arg)
{
    lam_request *x = arg;
    const file *f = x->user;
    lam_timeline *text;
    lam_held *held;
    lam_status status = lam_scheduler_import(x->worker->scheduler, &text, f->snapshot);
    if (status != LAM_OK) {
        lam_reply_error(&x->reply, 400, NULL, "%s", lam_error());
        lam_request_finish(x);
        return;
    }
    status = lam_shelf_put(&x->server->shelf, &held, x->worker, LAM_SNAPSHOT, text,
                           x->id[0] != '\0' ? x->id : NULL);
    if (status == LAM_OK)
        lam_reply_held(x, 201, held);
    else
        lam_reply_no_room(x, status);
}

static lam_worker *by_hash(lam_server *s, const char *hash)
{
    for (int i = 0; i < s->o.n_models; i++)
        if (strcmp(s->workers[i].hash, hash) == 0)
            return &s->workers[i];
    return NULL;
}

void lam_put_snapshot(lam_request *x)
{
    file *f = calloc(1, sizeof *f);
    const lam_status status =
        f ? lam_snapshot_read(&f->snapshot, "snapshot", x->body ? x->body : "", x->size)
          : lam_fail(LAM_ERR_MEMORY, "no memory for a snapshot");
    if (f)
        lam_request_keep(x, f, free_file, NULL);
    if (status != LAM_OK) {
        lam_reply_status(&x->reply, status, NULL);
        lam_request_done(x);
        return;
    }
    lam_worker *w = by_hash(x->server, lam_snapshot_model(f->snapshot));
    if (!w) {
        lam_reply_error(&x->reply, 400, NULL,
                        "the snapshot is not of a model of this server: it names '%s'",
                        lam_snapshot_model(f->snapshot));
        lam_request_done(x);
        return;
    }
    x->worker = w;
    lam_request_hold(x);
    lam_calls_put(&w->calls, &x->call, import, x);
}

/* ---- delete ---- */

static void delete (void *arg)
{
    lam_request *x = arg;
    lam_held *held = lam_request_held(x, LAM_SNAPSHOT, 0);
    if (!held)
        return;
    lam_shelf_remove(&x->server->shelf, held);
    x->reply.status = 200;
    lam_text_format(&x->reply.body, "{\"id\":\"%s\",\"deleted\":true}", x->id);
    lam_request_finish(x);
}

void lam_delete_snapshot(lam_request *x)
{
    lam_to_owner(x, LAM_SNAPSHOT, delete);
}
