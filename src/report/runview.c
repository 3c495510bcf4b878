/* runview.c -- see runview.h. */
#include "report/runview.h"

#include "core/file.h"
#include "core/grow.h"
#include "core/log.h"
#include "core/printable.h"
#include "io/json.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_JSON = 64 << 20 };

/* ---- configuration ---- */

/* Adds the members of `from` as texts; a list or object in compact JSON. */
static lam_status flatten(json_t *flat, const json_t *from)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)from, name, value) {
        char *text = NULL;
        json_t *string = json_is_string(value) ? json_incref(value) : NULL;
        if (!string) {
            LAM_TRY(lam_json_text(&text, NULL, value,
                                  JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(10)));
            string = json_string(text);
            free(text);
        }
        if (json_object_set_new(flat, name, string) != 0)
            return lam_fail(LAM_ERR_MEMORY, "no memory for a configuration");
    }
    return LAM_OK;
}

/* The object in DIR/SUB/NAME; NULL where there is none that can be read: reports work without. */
static json_t *object_in(const char *dir, const char *sub, const char *name)
{
    char folder[PATH_MAX], path[PATH_MAX];
    json_t *json = NULL;
    if (lam_path_join(folder, sizeof folder, dir, sub) != LAM_OK ||
        lam_path_join(path, sizeof path, folder, name) != LAM_OK || !lam_path_exists(path))
        return NULL;
    if (lam_json_load(&json, path, MOST_JSON) != LAM_OK)
        lam_log(LAM_LOG_WARN, "%s", lam_error());
    return json;
}

static lam_status read_config(lam_runview *run)
{
    json_t *model = object_in(run->path, "last", "config.json");
    json_t *const state = object_in(run->path, "last", "training_state.json");
    if (!model)
        model = object_in(run->path, "best", "config.json");
    lam_status status = flatten(run->config, model);
    if (status == LAM_OK)
        status = flatten(run->config, json_object_get(state, "settings"));
    static const char *const more[][2] = {{"device", NULL}, {"corpus", "path"}};
    for (int i = 0; i < 2; i++) {
        json_t *value = json_object_get(state, more[i][0]);
        if (more[i][1])
            value = json_object_get(value, more[i][1]);
        if (json_is_string(value))
            json_object_set(run->config, more[i][0], value);
    }
    json_decref(model);
    json_decref(state);
    return status;
}

/* ---- paths ---- */

/* Which runs are meant. */
typedef struct run_paths {
    int n;
    size_t room;
    char **list;
} run_paths;

static void free_paths(run_paths *paths)
{
    for (int i = 0; i < paths->n; i++)
        free(paths->list[i]);
    free(paths->list);
    *paths = (run_paths){0};
}

static lam_status add_path(run_paths *p, const char *path)
{
    LAM_TRY(lam_grow(&p->list, &p->room, (size_t)p->n + 1, sizeof *p->list, "runs"));
    p->list[p->n] = strdup(path);
    return p->list[p->n++] ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "%s: no memory", path);
}

static int is_run(const char *dir)
{
    char path[PATH_MAX];
    return lam_path_join(path, sizeof path, dir, "metrics.jsonl") == LAM_OK &&
           lam_path_exists(path);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static lam_status add_runs_in(run_paths *p, const char *dir)
{
    const int first = p->n;
    char path[PATH_MAX];
    lam_status status = LAM_OK;
    DIR *const folder = opendir(dir);
    for (struct dirent *e; folder && status == LAM_OK && (e = readdir(folder));)
        if (e->d_name[0] != '.' && lam_path_join(path, sizeof path, dir, e->d_name) == LAM_OK &&
            (is_run(path) || strstr(e->d_name, ".metrics.jsonl")))
            status = add_path(p, path);
    if (folder)
        closedir(folder);
    if (p->n > first)
        qsort(p->list + first, (size_t)(p->n - first), sizeof *p->list, by_name);
    return status == LAM_OK && p->n == first ? add_path(p, dir) : status;
}

/* Every given path, but in place of a folder that is no run the runs directly in it, folders or NAME.metrics.jsonl,
 * compressed or not, by name.  What is neither stays as it is: whoever opens it says what is wrong. */
static lam_status find_paths(run_paths *out, int n, char *const *given)
{
    lam_status status = LAM_OK;
    *out = (run_paths){0};
    for (int i = 0; i < n && status == LAM_OK; i++)
        status = is_run(given[i]) ? add_path(out, given[i]) : add_runs_in(out, given[i]);
    if (status != LAM_OK)
        free_paths(out);
    return status;
}

/* ---- runs ---- */

static lam_status open_run(lam_runview *run, const char *path)
{
    char metrics[PATH_MAX];
    int there;
    run->path = strdup(path);
    run->config = json_object();
    if (!run->path || !run->config)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for a run", path);
    LAM_TRY(lam_path_look(&there, path));
    if (!there)
        return lam_fail(LAM_ERR_IO, "%s: there is no such run", path);
    if (!lam_path_is_folder(path)) {
        LAM_TRY(lam_history_read(&run->history, path));
        if (run->history.records == 0 && run->history.bad > 0)
            return lam_fail(LAM_ERR_FORMAT,
                            "%s: not a run folder or metrics.jsonl: no line is a record", path);
        return LAM_OK;
    }
    LAM_TRY(lam_path_join(metrics, sizeof metrics, path, "metrics.jsonl"));
    LAM_TRY(lam_path_look(&there, metrics));
    if (!there)
        return lam_fail(LAM_ERR_IO, "%s: no run folder: metrics.jsonl is missing", path);
    LAM_TRY(lam_history_of_run(&run->history, path));
    return read_config(run);
}

static void close_run(lam_runview *run)
{
    free(run->path);
    free(run->name);
    lam_history_free(&run->history);
    json_decref(run->config);
    *run = (lam_runview){0};
}

/* The last part of the path, without what every metrics file is called. */
static void last_part(const char **start, size_t *length, const char *path)
{
    static const char *const endings[] = {".gz", ".xz", ".zst", ".jsonl", ".metrics"};
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t n = strlen(endings[i]);
        if (end - begin > n && strncmp(path + end - n, endings[i], n) == 0)
            end -= n;
    }
    *start = path + begin;
    *length = end - begin;
}

/* For tables, legends and pages: they go to terminals, with colours of their own. */
static lam_status shown_name(char **out, const char *name, size_t n)
{
    char *const text = strndup(name, n);
    *out = malloc(4 * n + 1);
    if (!text || !*out) {
        free(text);
        return lam_fail(LAM_ERR_MEMORY, "no memory for the name of a run");
    }
    lam_printable(*out, 4 * n + 1, text);
    free(text);
    return LAM_OK;
}

static lam_status name_runs(lam_runs *runs)
{
    for (int i = 0; i < runs->n; i++) {
        const char *start, *other;
        size_t length, n;
        bool taken = false;
        last_part(&start, &length, runs->list[i].path);
        for (int k = 0; k < runs->n; k++) {
            last_part(&other, &n, runs->list[k].path);
            taken |= k != i && n == length && strncmp(start, other, n) == 0;
        }
        if (taken) {
            start = runs->list[i].path;
            length = strlen(start);
        }
        LAM_TRY(shown_name(&runs->list[i].name, start, length));
    }
    return LAM_OK;
}

static lam_status open_all(lam_runs *out, int n, char *const *paths)
{
    out->list = calloc((size_t)n + 1, sizeof *out->list);
    if (!out->list)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d runs", n);
    for (int i = 0; i < n; i++) {
        lam_runview *const run = &out->list[out->n];
        const lam_status status = open_run(run, paths[i]);
        if (status == LAM_OK) {
            out->n++;
            if (run->history.bad > 0)
                lam_log(LAM_LOG_WARN, "%d line%s left out; %s", run->history.bad,
                        run->history.bad == 1 ? "" : "s", run->history.why);
            continue;
        }
        close_run(run);
        if (status == LAM_ERR_MEMORY || status == LAM_ERR_INTERRUPTED || n == 1)
            return status;
        lam_log(LAM_LOG_WARN, "%s", lam_error());
    }
    if (out->n == 0)
        return lam_fail(LAM_ERR_IO, "none of the %d runs can be read", n);
    return name_runs(out);
}

lam_status lam_runs_open(lam_runs *out, int n, char *const *given)
{
    run_paths paths;
    *out = (lam_runs){0};
    LAM_TRY(find_paths(&paths, n, given));
    const lam_status status = open_all(out, paths.n, paths.list);
    free_paths(&paths);
    if (status != LAM_OK)
        lam_runs_free(out);
    return status;
}

void lam_runs_free(lam_runs *runs)
{
    for (int i = 0; i < runs->n; i++)
        close_run(&runs->list[i]);
    free(runs->list);
    *runs = (lam_runs){0};
}

int lam_run_ended(const lam_runview *run)
{
    return lam_history_find(&run->history, "test_loss") ||
           lam_history_find(&run->history, "ended") || lam_history_find(&run->history, "diverged");
}

/* ---- units ---- */

static bool all_have(const lam_runs *runs, const char *train, const char *valid)
{
    for (int i = 0; i < runs->n; i++)
        if (!lam_history_find(&runs->list[i].history, train) &&
            !lam_history_find(&runs->list[i].history, valid) && runs->list[i].history.records > 0)
            return false;
    return true;
}

lam_unit lam_runs_unit(const lam_runs *runs)
{
    return all_have(runs, "bpc", "valid_bpc")   ? LAM_UNIT_BPC
           : all_have(runs, "ppl", "valid_ppl") ? LAM_UNIT_PPL
                                                : LAM_UNIT_NATS;
}

const char *lam_unit_name(lam_unit unit)
{
    static const char *const names[] = {"bpc", "ppl", "nats"};
    return names[unit];
}

double lam_unit_of(lam_unit unit, double nats)
{
    return unit == LAM_UNIT_BPC ? nats / log(2.0) : unit == LAM_UNIT_PPL ? exp(nats) : nats;
}
