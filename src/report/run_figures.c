/* run_figures.c -- see run_figures.h. */
#include "report/run_figures.h"

#include "draw/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The known ones; {unit} is bpc, ppl or nats. */
typedef struct subject {
    const char *id, *curve, *title, *caption, *label;
    const char *band; /* curve with the standard error of this one */
    enum { AS_IS, LOSS } kind;
    lam_scale scale; /* of what is no loss */
} subject;

static const subject subjects[] = {
    {"train", "loss", "Training loss", "Mean over the steps since the last record.", NULL, NULL,
     LOSS, 0},
    {"valid", "valid_loss", "Validation loss", "The band is one standard error.", NULL,
     "valid_stderr", LOSS, 0},
    {"bits", "valid_bits_per_byte", "Bits per byte",
     "Validation loss per byte of text: whatever the tokens are, such losses can be compared.",
     "bits per byte", NULL, AS_IS, LAM_SCALE_LINEAR},
    {"aux", "aux_loss", "The memory's own loss", "What the memory is trained by beside the text.",
     "loss", NULL, AS_IS, LAM_SCALE_LINEAR},
    {"grad-norm", "grad_norm", "Gradient norm", "Before clipping.", "norm", NULL, AS_IS,
     LAM_SCALE_LOG},
    {"lr", "lr", "Learning rate", NULL, "learning rate", NULL, AS_IS, LAM_SCALE_LINEAR},
    {"speed", "tokens_per_second", "Speed", "Training steps alone, without evaluation.",
     "tokens per second", NULL, AS_IS, LAM_SCALE_LINEAR},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects, TRAIN = 0, VALID = 1, BITS = 2 };

/* Logged, but shown elsewhere or the same in another unit. */
static const char *const left_out[] = {
    "epoch",        "elapsed",     "gflops",     "diverged",          "ended",
    "bpc",          "ppl",         "valid_bpc",  "valid_ppl",         "valid_tokens",
    "test_loss",    "test_bpc",    "test_ppl",   "test_stderr",       "test_tokens",
    "valid_stderr", "valid_bytes", "test_bytes", "test_bits_per_byte"};

typedef struct builder {
    const lam_runs *runs;
    const lam_run_figures_options *o;
    lam_unit unit;
    double time_unit; /* seconds */
    lam_series *series;
    double **owned; /* every array made for the current figure */
    int n_series, n_owned;
    lam_text ids; /* of figures whose names are not ours, each with a blank behind it */
} builder;

static double *array(builder *b, int n)
{
    double *const v = malloc(((size_t)n + 1) * sizeof *v);
    b->owned[b->n_owned] = v;
    b->n_owned += v != NULL;
    return v;
}

static void forget(builder *b)
{
    while (b->n_owned > 0)
        free(b->owned[--b->n_owned]);
    b->n_series = 0;
}

/* A moving average without the bias of its start. */
static void smooth(double *v, int n, double weight)
{
    double sum = 0, total = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(v[i])) {
            sum = weight * sum + (1 - weight) * v[i];
            total = weight * total + (1 - weight);
            v[i] = sum / total;
        }
}

static lam_status add_band(builder *b, lam_series *s, const lam_curve *c, const lam_curve *error)
{
    double *const low = array(b, c->n), *const high = array(b, c->n);
    if (!low || !high)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %d points", c->name, c->n);
    for (int i = 0; i < c->n; i++) {
        low[i] = lam_unit_of(b->unit, c->value[i] - error->value[i]);
        high[i] = lam_unit_of(b->unit, c->value[i] + error->value[i]);
    }
    s->low = low;
    s->high = high;
    return LAM_OK;
}

static lam_status add_series(builder *b, const subject *what, const lam_runview *run,
                             const char *name)
{
    const lam_curve *c = lam_history_find(&run->history, what->curve);
    if (!c || c->n == 0)
        return LAM_OK;
    double *const x = array(b, c->n), *const y = array(b, c->n);
    if (!x || !y)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %d points", c->name, c->n);
    for (int i = 0; i < c->n; i++) {
        x[i] = b->o->over == LAM_OVER_TIME ? c->elapsed[i] / b->time_unit : c->step[i];
        y[i] = what->kind == LOSS ? lam_unit_of(b->unit, c->value[i]) : c->value[i];
    }
    if (what != &subjects[VALID] && what != &subjects[BITS])
        smooth(y, c->n, b->o->smooth);
    lam_series *const s = &b->series[b->n_series++];
    const int number = (int)(run - b->runs->list);
    *s = (lam_series){.name = name,
                      .n = c->n,
                      .x = x,
                      .y = y,
                      .colour = 1 + number % 8,
                      .dashed = number / 8 % 2 == 1}; /* the ninth is no twin of the first */
    const lam_curve *error = what->band ? lam_history_find(&run->history, what->band) : NULL;
    return error && error->n == c->n ? add_band(b, s, c, error) : LAM_OK;
}

/* One run: training and validation belong together.  Several: each for itself, or nothing could be told apart. */
static lam_status gather(builder *b, const subject *what)
{
    if (b->runs->n == 1 && what == &subjects[TRAIN]) {
        LAM_TRY(add_series(b, what, b->runs->list, "train"));
        LAM_TRY(add_series(b, &subjects[VALID], b->runs->list, "valid"));
        if (b->n_series == 2)
            b->series[1].colour = 2;
        return LAM_OK;
    }
    for (int i = 0; i < b->runs->n; i++)
        LAM_TRY(add_series(b, what, &b->runs->list[i], b->runs->list[i].name));
    return LAM_OK;
}

/* A loss falls from far above to where the runs are compared.  An axis that leaves out the first 3 % of each run of
 * many points, where that makes the rest half as high again; else, or where the reader chose a log axis, the whole. */
static lam_axis loss_axis(const builder *b, lam_axis axis)
{
    enum { MANY = 50 };
    double low = INFINITY, high = -INFINITY, top = -INFINITY;
    for (int k = 0; k < b->n_series; k++) {
        const lam_series *s = &b->series[k];
        const double late = s->n > MANY ? s->x[0] + 0.03 * (s->x[s->n - 1] - s->x[0]) : -INFINITY;
        for (int i = 0; i < s->n; i++) {
            if (!isfinite(s->y[i]))
                continue;
            low = fmin(low, s->y[i]);
            high = fmax(high, s->y[i]);
            top = s->x[i] >= late ? fmax(top, s->y[i]) : top;
        }
    }
    const double margin = 0.04 * (top - low);
    if (b->o->x == LAM_SCALE_LOG || b->o->y == LAM_SCALE_LOG || !(high - low > 1.5 * (top - low)))
        return axis;
    axis.min = low - margin;
    axis.max = top + margin;
    axis.cut = true;
    return axis;
}

/* "xl is lowest: 1.3771 bits per character, at step 14,000", of several curves. */
static void lowest(char *out, size_t size, const builder *b, const lam_axis *x, const lam_axis *y)
{
    const lam_series *best = NULL;
    int at = 0;
    char where[32];
    for (int k = 0; k < b->n_series; k++)
        for (int i = 0; i < b->series[k].n; i++)
            if (isfinite(b->series[k].y[i]) && (!best || b->series[k].y[i] < best->y[at])) {
                best = &b->series[k];
                at = i;
            }
    if (!best || b->n_series < 2)
        return;
    if (fabs(best->x[at]) < 0x1p63) /* a log may say any step */
        lam_count_shown(where, sizeof where, (int64_t)best->x[at]);
    else
        snprintf(where, sizeof where, "%g", best->x[at]);
    const int used = snprintf(out, size, "%s is lowest: %.*f %s, ", best->name,
                              b->unit == LAM_UNIT_PPL ? 2 : 4, best->y[at], y->label);
    if (used > 0 && (size_t)used < size && b->o->over == LAM_OVER_STEPS)
        snprintf(out + used, size - (size_t)used, "at %s %s", x->label, where);
    else if (used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, "after %.3g %s", best->x[at], x->label);
}

static lam_axis x_axis(const builder *b)
{
    const char *const time = b->time_unit == 1    ? "seconds"
                             : b->time_unit == 60 ? "minutes"
                                                  : "hours";
    return (lam_axis){.label = b->o->over == LAM_OVER_TIME ? time : "step", .scale = b->o->x};
}

static lam_axis y_axis(const builder *b, const subject *what)
{
    static const char *const labels[] = {"bits per character", "perplexity", "nats per token"};
    if (what->kind == LOSS)
        return loss_axis(b, (lam_axis){.label = labels[b->unit], .scale = b->o->y});
    return (lam_axis){.label = what->label, .scale = what->scale};
}

static lam_status show(builder *b, const subject *what,
                       lam_status (*each)(void *user, const lam_figure *figure), void *user)
{
    lam_status status = gather(b, what);
    if (status == LAM_OK && b->n_series > 0) {
        const lam_axis x = x_axis(b), y = y_axis(b, what);
        const bool both = b->runs->n == 1 && what == &subjects[TRAIN] && b->n_series == 2;
        char finding[320] = "", caption[160];
        if (what == &subjects[VALID])
            lowest(finding, sizeof finding, b, &x, &y);
        snprintf(caption, sizeof caption, "%s%s", what->caption ? what->caption : "",
                 y.cut ? "  The first steps lie above the frame; a log axis shows them." : "");
        status = each(user, &(lam_figure){.id = what->id,
                                          .title = both ? "Loss" : what->title,
                                          .finding = finding,
                                          .caption = *caption ? caption : NULL,
                                          .x = x,
                                          .y = y,
                                          .n_series = b->n_series,
                                          .series = b->series});
    }
    forget(b);
    return status;
}

static bool known(const char *name)
{
    for (int i = 0; i < SUBJECTS; i++)
        if (strcmp(subjects[i].curve, name) == 0)
            return true;
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (strcmp(left_out[i], name) == 0)
            return true;
    return false;
}

/* Letters that ids lack become '-'; of names that are then the same the second is "other-NAME-2". */
static lam_status other_id(builder *b, char *id, size_t size, const char *name)
{
    int used = snprintf(id, size, " other-%s", name); /* the blank: to find it whole */
    for (char *at = id + 1; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-_", *at))
            *at = '-';
    for (int twin = 2;; twin++) {
        char sought[LAM_CURVE_NAME + 40];
        snprintf(sought, sizeof sought, "%s ", id);
        if (!b->ids.data || !strstr(b->ids.data, sought))
            break;
        snprintf(id + used, size - (size_t)used, "-%d", twin);
    }
    lam_text_format(&b->ids, "%s ", id);
    memmove(id, id + 1, strlen(id));
    return lam_text_status(&b->ids, "names of figures");
}

/* A curve nobody told us about, under its own name. */
static lam_status show_other(builder *b, const lam_history *h, int k,
                             lam_status (*each)(void *user, const lam_figure *figure), void *user)
{
    char id[LAM_CURVE_NAME + 32];
    const char *const name = h->curves[k].name;
    LAM_TRY(other_id(b, id, sizeof id, name));
    return show(b, &(subject){.id = id, .curve = name, .title = name, .label = name}, each, user);
}

static lam_status show_others(builder *b, lam_status (*each)(void *user, const lam_figure *figure),
                              void *user)
{
    for (int i = 0; i < b->runs->n; i++) {
        const lam_history *h = &b->runs->list[i].history;
        for (int k = 0; k < h->n; k++) {
            bool before = known(h->curves[k].name);
            for (int j = 0; j < i; j++)
                before |= lam_history_find(&b->runs->list[j].history, h->curves[k].name) != NULL;
            if (!before)
                LAM_TRY(show_other(b, h, k, each, user));
        }
    }
    return LAM_OK;
}

/* Seconds, minutes or hours: whichever keeps the numbers short. */
static double time_unit(const lam_runs *runs)
{
    double longest = 0;
    for (int i = 0; i < runs->n; i++)
        longest =
            fmax(longest, lam_curve_last(lam_history_find(&runs->list[i].history, "elapsed")));
    return longest < 300 ? 1 : longest < 3 * 3600 ? 60 : 3600;
}

lam_status lam_run_figures(const lam_runs *runs, const lam_run_figures_options *options,
                           lam_status (*each)(void *user, const lam_figure *figure), void *user)
{
    const size_t n = (size_t)runs->n + 2;
    builder b = {.runs = runs,
                 .o = options,
                 .unit = lam_runs_unit(runs),
                 .time_unit = time_unit(runs),
                 .series = calloc(n, sizeof(lam_series)),
                 .owned = calloc(4 * n, sizeof(double *))};
    lam_status status =
        b.series && b.owned ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "no memory for figures");
    for (int i = 0; i < SUBJECTS && status == LAM_OK; i++)
        if ((runs->n > 1 || i != VALID || !lam_history_find(&runs->list[0].history, "loss")) &&
            (i != BITS || lam_runs_bits(runs)))
            status = show(&b, &subjects[i], each, user);
    if (status == LAM_OK)
        status = show_others(&b, each, user);
    lam_text_free(&b.ids);
    free(b.series);
    free(b.owned);
    return status;
}
