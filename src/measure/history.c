/* history.c -- see history.h. */
#include "measure/history.h"

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

static void free_sample(lam_sample *s)
{
    free(s->prompt);
    free(s->text);
}

static void free_change(lam_change *c)
{
    free(c->name);
    free(c->before);
    free(c->after);
}

void lam_history_free(lam_history *h)
{
    for (int i = 0; i < h->n_samples; i++)
        free_sample(&h->samples[i]);
    for (int i = 0; i < h->n_changes; i++)
        free_change(&h->changes[i]);
    free(h->samples);
    free(h->changes);
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

/* ---- notes: what is no number ---- */

/* A step that comes again replaces what was noted from there on. */
static lam_status add_sample(lam_history *h, double step, const json_t *record, const char *text)
{
    const char *const prompt = json_string_value(json_object_get(record, "prompt"));
    while (h->n_samples > 0 && h->samples[h->n_samples - 1].step >= step)
        free_sample(&h->samples[--h->n_samples]);
    if (!h->samples && !(h->samples = calloc(LAM_NOTES_MAX, sizeof *h->samples)))
        return lam_fail(LAM_ERR_MEMORY, "no memory for samples");
    if (h->n_samples == LAM_NOTES_MAX) {
        free_sample(&h->samples[0]);
        memmove(h->samples, h->samples + 1, (size_t)--h->n_samples * sizeof *h->samples);
    }
    lam_sample *const s = &h->samples[h->n_samples++];
    *s = (lam_sample){step, strdup(prompt ? prompt : ""), strdup(text)};
    return s->prompt && s->text ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "no memory for a sample");
}

/* A value as people read it: 0.001, linear, true. */
static char *value_text(const json_t *value)
{
    return json_is_string(value) ? strdup(json_string_value(value))
                                 : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
}

static lam_status add_change(lam_history *h, double step, const char *name, const json_t *pair)
{
    if (!h->changes && !(h->changes = calloc(LAM_NOTES_MAX, sizeof *h->changes)))
        return lam_fail(LAM_ERR_MEMORY, "no memory for changes");
    if (h->n_changes == LAM_NOTES_MAX) {
        free_change(&h->changes[0]);
        memmove(h->changes, h->changes + 1, (size_t)--h->n_changes * sizeof *h->changes);
    }
    lam_change *const c = &h->changes[h->n_changes++];
    *c = (lam_change){step, strdup(name), value_text(json_array_get(pair, 0)),
                      value_text(json_array_get(pair, 1))};
    return c->name && c->before && c->after ? LAM_OK
                                            : lam_fail(LAM_ERR_MEMORY, "no memory for a change");
}

static lam_status take_notes(lam_history *h, const json_t *record, double step)
{
    const char *const text = json_string_value(json_object_get(record, "sample"));
    json_t *const changed = json_object_get(record, "changed"), *pair;
    const char *name;
    if (text)
        LAM_TRY(add_sample(h, step, record, text));
    while (json_is_object(changed) && h->n_changes > 0 && h->changes[h->n_changes - 1].step >= step)
        free_change(&h->changes[--h->n_changes]);
    json_object_foreach(changed, name, pair)
        if (json_array_size(pair) == 2)
            LAM_TRY(add_change(h, step, name, pair));
    return LAM_OK;
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
    LAM_TRY(take_notes(h, record, step));
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

/* ---- the outcome ---- */

lam_outcome lam_outcome_none(void)
{
    return (lam_outcome){.valid = NAN,
                         .test = NAN,
                         .valid_error = NAN,
                         .test_error = NAN,
                         .test_bits = NAN,
                         .tokens_per_second = NAN};
}

static void judge(lam_outcome *out, const lam_history *h)
{
    const lam_curve *valid = lam_history_find(h, "valid_loss");
    const lam_curve *elapsed = lam_history_find(h, "elapsed");
    const int best = lam_curve_least(valid);
    for (int i = 0; i < h->n; i++) /* the test's record has the step of the best model */
        if (h->curves[i].n > 0)
            out->step = (int64_t)fmax((double)out->step, h->curves[i].step[h->curves[i].n - 1]);
    out->valid = best < 0 ? NAN : valid->value[best];
    out->test = lam_curve_last(lam_history_find(h, "test_loss"));
    const lam_curve *error = lam_history_find(h, "valid_stderr");
    if (best >= 0 && error && error->n == valid->n)
        out->valid_error = error->value[best];
    out->test_error = lam_curve_last(lam_history_find(h, "test_stderr"));
    out->test_bits = lam_curve_last(lam_history_find(h, "test_bits_per_byte"));
    out->tokens_per_second = lam_curve_median(lam_history_find(h, "tokens_per_second"));
    out->seconds = elapsed ? lam_curve_last(elapsed) : 0;
    out->diverged = lam_history_find(h, "diverged") != NULL;
}

lam_status lam_outcome_read(lam_outcome *out, const char *dir)
{
    char path[PATH_MAX];
    lam_history h;
    *out = lam_outcome_none();
    LAM_TRY(lam_path_join(path, sizeof path, dir, "metrics.jsonl"));
    if (!lam_path_exists(path))
        return LAM_OK;
    LAM_TRY(lam_history_of_run(&h, dir));
    const lam_status status = h.bad > 0 ? lam_fail(LAM_ERR_FORMAT, "%s", h.why) : LAM_OK;
    if (status == LAM_OK)
        judge(out, &h);
    lam_history_free(&h);
    return status;
}
