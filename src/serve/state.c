/* state.c -- see state.h.  A session's file is ID.safetensors, a snapshot that names its model (docs/formats.md). */
#include "serve/state.h"

#include "core/file.h"
#include "core/grow.h"
#include "core/log.h"
#include "serve/server_int.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char ENDING[] = ".safetensors";

/* Is it the file of a session?  Its id goes to `id`. */
static int is_ours(const char *name, char id[LAM_ID_ROOM])
{
    const size_t n = LAM_ID_ROOM - 1;
    if (strlen(name) != n + strlen(ENDING) || !lam_id_check(name, n) ||
        strcmp(name + n, ENDING) != 0)
        return 0;
    memcpy(id, name, n);
    id[n] = '\0';
    return 1;
}

static lam_status load_one(lam_worker *w, const char *path, const char *id)
{
    lam_snapshot *snapshot;
    lam_timeline *text = NULL;
    lam_held *held;
    LAM_TRY(lam_snapshot_load(&snapshot, path));
    lam_status status = LAM_OK;
    if (strcmp(lam_snapshot_model(snapshot), w->hash) == 0) {
        status =
            lam_grow(&w->stored, &w->stored_room, w->n_stored + 1, sizeof *w->stored, "a session");
        if (status == LAM_OK)
            status = lam_scheduler_import(w->scheduler, &text, snapshot);
        if (status == LAM_OK)
            status = lam_shelf_put(&w->server->shelf, &held, w, LAM_SESSION, text, id);
        if (status == LAM_OK)
            memcpy(w->stored[w->n_stored++], id, LAM_ID_ROOM);
    }
    lam_snapshot_free(snapshot);
    return status;
}

lam_status lam_state_load(lam_worker *w)
{
    char path[4200], id[LAM_ID_ROOM];
    LAM_TRY(lam_dir_make(w->server->o.state));
    DIR *dir = opendir(w->server->o.state);
    if (!dir)
        return lam_fail(LAM_ERR_IO, "%s: cannot be read", w->server->o.state);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (!is_ours(entry->d_name, id) ||
            lam_path_join(path, sizeof path, w->server->o.state, entry->d_name) != LAM_OK)
            continue;
        if (load_one(w, path, id) != LAM_OK)
            lam_log(LAM_LOG_WARN, "a session is left out: %s", lam_error());
    }
    closedir(dir);
    return LAM_OK;
}

typedef struct saving {
    lam_worker *w;
    int saved;
} saving;

static void save_one(void *user, lam_held *held)
{
    saving *s = user;
    char name[LAM_ID_ROOM + sizeof ENDING], path[4200];
    lam_snapshot *snapshot = NULL;
    if (held->kind != LAM_SESSION || held->text->forgets)
        return;
    snprintf(name, sizeof name, "%s%s", held->id, ENDING);
    lam_status status = lam_path_join(path, sizeof path, s->w->server->o.state, name);
    if (status == LAM_OK)
        status = lam_scheduler_export(s->w->scheduler, &snapshot, held->text);
    if (status == LAM_OK)
        status = lam_snapshot_set_model(snapshot, s->w->hash);
    if (status == LAM_OK)
        status = lam_snapshot_save(snapshot, path);
    if (status != LAM_OK)
        lam_log(LAM_LOG_ERROR, "session %s is not saved: %s", held->id, lam_error());
    s->saved += status == LAM_OK;
    lam_snapshot_free(snapshot);
}

/* A session that was deleted since must not come back; one that was left out may. */
static void remove_deleted(const lam_worker *w)
{
    char name[LAM_ID_ROOM + sizeof ENDING], path[4200];
    for (size_t i = 0; i < w->n_stored; i++) {
        snprintf(name, sizeof name, "%s%s", w->stored[i], ENDING);
        if (!lam_shelf_whose(&w->server->shelf, LAM_SESSION, w->stored[i]) &&
            lam_path_join(path, sizeof path, w->server->o.state, name) == LAM_OK)
            unlink(path);
    }
}

void lam_state_save(lam_worker *w)
{
    saving s = {.w = w};
    lam_shelf_each(&w->server->shelf, w, save_one, &s);
    remove_deleted(w);
    if (s.saved > 0)
        lam_log(LAM_LOG_INFO, "%s: %d session%s saved in %s", w->model->name, s.saved,
                s.saved == 1 ? "" : "s", w->server->o.state);
}
