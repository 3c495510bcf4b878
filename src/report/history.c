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

/* A log of others may be anything; with these limits a report takes 10 s and 512 MB at most. */
enum {
    MOST_POINTS = 6000000, /* of all curves together there is room for */
    MOST_RECORDS = 1 << 22,
    MOST_BAD = 100000,
    MOST_LINE = 1 << 20, /* bytes */
    MOST_BYTES = 1 << 29
};

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

/* Room for twice as many points of a curve. */
static lam_status enlarge(lam_history *h, lam_curve *c, const char *label)
{
    const int room = c->room ? 2 * c->room : 64;
    int all = room - c->room;
    for (int i = 0; i < h->n; i++)
        all += h->curves[i].room;
    if (all > MOST_POINTS)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: more numbers than a report reads, %d: keep every tenth line, say",
                        label, MOST_POINTS);
    if (!grow(&c->step, room) || !grow(&c->elapsed, room) || !grow(&c->value, room))
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %d points of %s", label, room, c->name);
    c->room = room;
    return LAM_OK;
}

/* A number of a record. */
typedef struct point {
    double step, elapsed, value;
} point;

static lam_status add_point(lam_history *h, lam_curve *c, point p, const char *label)
{
    while (c->n > 0 && c->step[c->n - 1] >= p.step)
        c->n--;
    if (c->n == c->room)
        LAM_TRY(enlarge(h, c, label));
    c->step[c->n] = p.step;
    c->elapsed[c->n] = p.elapsed;
    c->value[c->n++] = p.value;
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

static lam_status take(lam_history *h, const json_t *record, const char *label)
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
        const double number = json_is_null(value) ? NAN : json_number_value(value);
        if (c)
            LAM_TRY(add_point(h, c, (point){step, elapsed, number}, label));
    }
    if (h->records++ == MOST_RECORDS)
        return lam_fail(LAM_ERR_FORMAT, "%s: more records than a report reads, %d", label,
                        MOST_RECORDS);
    return LAM_OK;
}

/* ---- lines ---- */

/* What lam_error() says of a line that is not taken. */
static lam_status leave_out(lam_history *h, const char *path)
{
    if (h->bad++ == 0)
        snprintf(h->why, sizeof h->why, "%s", lam_error());
    return h->bad <= MOST_BAD
               ? LAM_OK
               : lam_fail(LAM_ERR_FORMAT, "%s: more than %d lines are no records", path, MOST_BAD);
}

static lam_status leave_long(lam_history *h, const char *path)
{
    lam_fail(LAM_ERR_FORMAT, "%s, line %d: longer than %d bytes", path, h->lines, MOST_LINE);
    return leave_out(h, path);
}

static lam_status take_line(lam_history *h, const char *path, const char *text, size_t size)
{
    char label[PATH_MAX + 32];
    json_t *record = NULL;
    if (size > MOST_LINE)
        return leave_long(h, path);
    snprintf(label, sizeof label, "%s, line %d", path, h->lines);
    lam_status status = lam_json_parse(&record, label, text, size);
    if (status == LAM_ERR_MEMORY)
        return status;
    const json_t *const step = json_object_get(record, "step");
    if (status == LAM_OK && !json_is_number(step))
        status = lam_fail(LAM_ERR_FORMAT, "%s: not a JSON object with a step", label);
    if (status == LAM_OK && !(fabs(json_number_value(step)) <= MOST_STEPS))
        status = lam_fail(LAM_ERR_FORMAT, "%s: a step beyond 2^53", label);
    status = status == LAM_OK ? take(h, record, label) : leave_out(h, path);
    json_decref(record);
    return status;
}

/* All whole lines; *used are their bytes.  What comes after them is still being written or read. */
static lam_status take_lines(lam_history *h, const char *path, const char *text, size_t size,
                             size_t *used)
{
    const char *at = text, *stop;
    while ((stop = memchr(at, '\n', (size_t)(text + size - at)))) {
        h->lines++;
        if (stop > at)
            LAM_TRY(take_line(h, path, at, (size_t)(stop - at)));
        at = stop + 1;
    }
    *used = (size_t)(at - text);
    return LAM_OK;
}

lam_status lam_history_parse(lam_history *h, const char *path, const char *text, size_t size)
{
    size_t used;
    return size > 0 ? take_lines(h, path, text, size, &used) : LAM_OK;
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

/* Reads piece by piece: a line may begin in one and end in the next. */
static lam_status read_lines(lam_history *h, const char *path, lam_instream *in, char *buffer)
{
    enum { ROOM = 2 * MOST_LINE };
    size_t held = 0, got = 1, used, all = 0;
    bool skipping = false; /* in a line that is too long */
    while (got > 0) {
        LAM_TRY(lam_instream_read(in, buffer + held, ROOM - held, &got));
        held += got;
        if ((all += got) > MOST_BYTES)
            return lam_fail(LAM_ERR_FORMAT, "%s: more than %d bytes", path, MOST_BYTES);
        if (skipping) {
            const char *const stop = memchr(buffer, '\n', held);
            used = stop ? (size_t)(stop + 1 - buffer) : held;
            skipping = !stop;
        } else {
            LAM_TRY(take_lines(h, path, buffer, held, &used));
        }
        held -= used;
        memmove(buffer, buffer + used, held);
        if (held > MOST_LINE) {
            h->lines++;
            LAM_TRY(leave_long(h, path));
            skipping = true;
            held = 0;
        }
    }
    return LAM_OK;
}

lam_status lam_history_read(lam_history *out, const char *path)
{
    lam_instream *in;
    *out = (lam_history){0};
    LAM_TRY(lam_instream_open(&in, path, NULL));
    char *const buffer = malloc(2 * MOST_LINE);
    const lam_status status = buffer ? read_lines(out, path, in, buffer)
                                     : lam_fail(LAM_ERR_MEMORY, "%s: no memory", path);
    if (status != LAM_OK)
        lam_history_free(out);
    lam_instream_close(in);
    free(buffer);
    return status;
}
