/* history.c -- see history.h. */
#include "report/history.h"

#include "core/file.h"
#include "data/instream.h"
#include "io/json.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_STEPS 0x1p53 /* a double counts no further; and it fits in an int64_t */

enum { MOST_POINTS = 1 << 28, MOST_BYTES = 1 << 29, MOST_BAD = 100000 };

void lam_history_free(lam_history *h)
{
    for (int i = 0; i < h->n; i++) {
        free(h->curves[i].step);
        free(h->curves[i].elapsed);
        free(h->curves[i].value);
    }
    *h = (lam_history){0};
}

const lam_curve *lam_history_find(const lam_history *h, const char *name)
{
    for (int i = 0; i < h->n; i++)
        if (strcmp(h->curves[i].name, name) == 0)
            return &h->curves[i];
    return NULL;
}

double lam_curve_last(const lam_curve *c)
{
    return c && c->n > 0 ? c->value[c->n - 1] : NAN;
}

int lam_curve_least(const lam_curve *c)
{
    int least = -1;
    for (int i = 0; c && i < c->n; i++)
        if (isfinite(c->value[i]) && (least < 0 || c->value[i] < c->value[least]))
            least = i;
    return least;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double lam_curve_median(const lam_curve *c)
{
    double *v = c && c->n > 0 ? malloc((size_t)c->n * sizeof *v) : NULL;
    int n = 0;
    for (int i = 0; v && i < c->n; i++)
        if (isfinite(c->value[i]))
            v[n++] = c->value[i];
    if (n > 0)
        qsort(v, (size_t)n, sizeof *v, rising);
    const double m = n > 0 ? 0.5 * (v[(n - 1) / 2] + v[n / 2]) : NAN;
    free(v);
    return m;
}

/* ---- points ---- */

static bool grow(double **list, int room)
{
    double *const grown = realloc(*list, (size_t)room * sizeof *grown);
    if (grown)
        *list = grown;
    return grown != NULL;
}

static lam_status add_point(lam_curve *c, double step, double elapsed, double value)
{
    while (c->n > 0 && c->step[c->n - 1] >= step)
        c->n--;
    if (c->n == c->room) {
        const int room = c->room ? 2 * c->room : 64;
        if (room > MOST_POINTS || !grow(&c->step, room) || !grow(&c->elapsed, room) ||
            !grow(&c->value, room))
            return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %d points", c->name, room);
        c->room = room;
    }
    c->step[c->n] = step;
    c->elapsed[c->n] = elapsed;
    c->value[c->n++] = value;
    return LAM_OK;
}

/* The curve called `name`, a new one if need be; NULL when there are too many. */
static lam_curve *curve_of(lam_history *h, const char *name)
{
    for (int i = 0; i < h->n; i++)
        if (strcmp(h->curves[i].name, name) == 0)
            return &h->curves[i];
    if (h->n == LAM_CURVES_MAX || strlen(name) >= LAM_CURVE_NAME)
        return NULL;
    strcpy(h->curves[h->n].name, name);
    return &h->curves[h->n++];
}

static lam_status take(lam_history *h, const json_t *record)
{
    const double step = json_number_value(json_object_get(record, "step"));
    const json_t *const time = json_object_get(record, "elapsed");
    const double elapsed = json_is_number(time) ? json_number_value(time) : NAN;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)record, name, value) {
        lam_curve *const c =
            strcmp(name, "step") != 0 && (json_is_number(value) || json_is_null(value))
                ? curve_of(h, name)
                : NULL;
        if (c)
            LAM_TRY(
                add_point(c, step, elapsed, json_is_null(value) ? NAN : json_number_value(value)));
    }
    h->records++;
    return LAM_OK;
}

/* ---- lines ---- */

static lam_status take_line(lam_history *h, const char *label, const char *text, size_t size)
{
    json_t *record = NULL;
    lam_status status = lam_json_parse(&record, label, text, size);
    if (status == LAM_ERR_MEMORY)
        return status;
    const json_t *const step = json_object_get(record, "step");
    if (status == LAM_OK && !json_is_number(step))
        status = lam_fail(LAM_ERR_FORMAT, "%s: not a JSON object with a step", label);
    if (status == LAM_OK && !(fabs(json_number_value(step)) <= MOST_STEPS))
        status = lam_fail(LAM_ERR_FORMAT, "%s: a step beyond 2^53", label);
    if (status == LAM_OK) {
        status = take(h, record);
    } else {
        if (h->bad++ == 0)
            snprintf(h->why, sizeof h->why, "%s", lam_error());
        status = LAM_OK;
    }
    json_decref(record);
    return status;
}

lam_status lam_history_parse(lam_history *h, const char *path, const char *text, size_t size)
{
    const char *at = text, *const end = text + size;
    for (int line = 1; at < end; line++) {
        const char *const stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            break; /* still being written */
        if (stop > at) {
            char label[PATH_MAX + 32];
            snprintf(label, sizeof label, "%s, line %d", path, line);
            LAM_TRY(take_line(h, label, at, (size_t)(stop - at)));
        }
        if (h->bad > MOST_BAD)
            return lam_fail(LAM_ERR_FORMAT, "%s: more than %d lines are no records", path,
                            MOST_BAD);
        at = stop + 1;
    }
    return LAM_OK;
}

lam_status lam_history_of_run(lam_history *out, const char *dir)
{
    char path[PATH_MAX];
    int fd;
    *out = (lam_history){0};
    LAM_TRY(lam_path_join(path, sizeof path, dir, "metrics.jsonl"));
    LAM_TRY(lam_file_open(&fd, path, O_RDONLY)); /* nobody has named a pipe here */
    close(fd);
    return lam_history_read(out, path);
}

lam_status lam_history_read(lam_history *out, const char *path)
{
    char *text;
    size_t size;
    *out = (lam_history){0};
    LAM_TRY(lam_instream_load(&text, &size, path, MOST_BYTES));
    const lam_status status = lam_history_parse(out, path, text, size);
    if (status != LAM_OK)
        lam_history_free(out);
    free(text);
    return status;
}
