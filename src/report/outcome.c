/* outcome.c -- see outcome.h. */
#include "report/outcome.h"

#include "core/file.h"
#include "io/json.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 30 };

typedef struct rates {
    double *v;
    size_t n, room;
} rates;

static lam_status add_rate(rates *r, double v)
{
    if (r->n == r->room) {
        const size_t room = r->room ? 2 * r->room : 256;
        double *grown = realloc(r->v, room * sizeof *grown);
        if (!grown)
            return lam_fail(LAM_ERR_MEMORY, "outcome: no memory for %zu rates", room);
        r->v = grown;
        r->room = room;
    }
    r->v[r->n++] = v;
    return LAM_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(rates *r)
{
    if (r->n == 0)
        return NAN;
    qsort(r->v, r->n, sizeof *r->v, ascending);
    return 0.5 * (r->v[(r->n - 1) / 2] + r->v[r->n / 2]);
}

static double number(const json_t *record, const char *name)
{
    const json_t *value = json_object_get(record, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static lam_status take_record(lam_outcome *out, rates *r, const json_t *record)
{
    const double step = number(record, "step"), valid = number(record, "valid_loss");
    const double test = number(record, "test_loss"), rate = number(record, "tokens_per_second");
    const double elapsed = number(record, "elapsed");
    if (step > (double)out->step)
        out->step = (int64_t)step; /* the test's record has the step of the best model */
    if (!(valid >= out->valid))    /* also when there was none */
        out->valid = isnan(valid) ? out->valid : valid;
    if (!isnan(test))
        out->test = test;
    if (!isnan(elapsed))
        out->seconds = elapsed;
    out->diverged |= json_object_get(record, "diverged") != NULL;
    return isnan(rate) ? LAM_OK : add_rate(r, rate);
}

static lam_status read_lines(lam_outcome *out, rates *r, const char *path, const char *text)
{
    int line = 0;
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        char label[PATH_MAX + 32];
        json_t *record = NULL;
        snprintf(label, sizeof label, "%s, line %d", path, ++line);
        LAM_TRY(lam_json_parse(&record, label, text, (size_t)(end - text)));
        const lam_status status = json_is_object(record)
                                      ? take_record(out, r, record)
                                      : lam_fail(LAM_ERR_FORMAT, "%s: not a JSON object", label);
        json_decref(record);
        LAM_TRY(status);
    }
    return LAM_OK;
}

lam_outcome lam_outcome_none(void)
{
    return (lam_outcome){.valid = NAN, .test = NAN, .tokens_per_second = NAN};
}

lam_status lam_outcome_read(lam_outcome *out, const char *dir)
{
    char path[PATH_MAX], *text = NULL;
    size_t size;
    rates r = {0};
    *out = lam_outcome_none();
    LAM_TRY(lam_path_join(path, sizeof path, dir, "metrics.jsonl"));
    if (!lam_path_exists(path))
        return LAM_OK;
    LAM_TRY(lam_file_load(&text, &size, path, MAX_FILE));
    const lam_status status = read_lines(out, &r, path, text);
    if (status == LAM_OK)
        out->tokens_per_second = median(&r);
    free(r.v);
    free(text);
    return status;
}
