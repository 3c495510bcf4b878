/* run_tables.c -- runs in tables: how they ended, where they were meanwhile, and in what they differ. */
#include "report/runview.h"

#include "train/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN, MEMORY, STEPS, SECONDS, RATE, TRAIN, VALID, AT, TEST, BITS, STATE, COLUMNS };

void lam_runs_table_free(lam_table *table)
{
    free((void *)table->columns);
    free((void *)table->cells);
    *table = (lam_table){0};
}

static lam_status allocate(lam_table *t, lam_column **columns, lam_cell **cells, int rows, int cols)
{
    *columns = calloc((size_t)cols, sizeof **columns);
    *cells = calloc((size_t)rows * (size_t)cols + 1, sizeof **cells);
    t->rows = rows;
    t->cols = cols;
    t->columns = *columns;
    t->cells = *cells;
    if (*columns && *cells)
        return LAM_OK;
    lam_runs_table_free(t);
    return lam_fail(LAM_ERR_MEMORY, "no memory for a table of %d x %d", rows, cols);
}

static double last_step(const lam_history *h)
{
    double step = NAN;
    for (int i = 0; i < h->n; i++)
        if (h->curves[i].n > 0)
            step = fmax(step, h->curves[i].step[h->curves[i].n - 1]);
    return step;
}

static bool empty(const lam_table *t, int col)
{
    for (int r = 0; r < t->rows; r++) {
        const lam_cell *c = &t->cells[r * t->cols + col];
        if (c->text ? *c->text != '\0' : isfinite(c->number))
            return false;
    }
    return true;
}

/* Without the columns in which nothing stands. */
static void drop_empty(lam_table *t, lam_column *columns, lam_cell *cells)
{
    bool drop[COLUMNS];
    int kept = 0, at = 0;
    for (int c = 0; c < t->cols; c++) {
        drop[c] = empty(t, c);
        if (!drop[c])
            columns[kept++] = columns[c];
    }
    for (int i = 0; i < t->rows * t->cols; i++)
        if (!drop[i % t->cols])
            cells[at++] = cells[i];
    t->cols = kept;
}

/* Of the test, or of the best validation; *loss is the same in nats a token. */
static double bits_of(const lam_history *h, double *loss)
{
    const lam_curve *valid = lam_history_find(h, "valid_loss");
    const lam_curve *bits = lam_history_find(h, "valid_bits_per_byte");
    const int best = lam_curve_least(valid);
    *loss = lam_curve_last(lam_history_find(h, "test_loss"));
    if (isfinite(*loss))
        return lam_curve_last(lam_history_find(h, "test_bits_per_byte"));
    *loss = best < 0 ? NAN : valid->value[best];
    for (int i = 0; bits && best >= 0 && i < bits->n; i++)
        if (bits->step[i] == valid->step[best])
            return bits->value[i];
    return NAN;
}

/* Are bits per byte more than the loss in bits, as they are for bytes? */
bool lam_runs_bits(const lam_runs *runs)
{
    for (int i = 0; i < runs->n; i++) {
        double loss;
        const double bits = bits_of(&runs->list[i].history, &loss);
        if (isfinite(bits) && fabs(bits - loss / M_LN2) > 1e-8)
            return true;
    }
    return false;
}

static void summarise(lam_cell row[COLUMNS], const lam_runview *run, lam_unit unit)
{
    const lam_history *h = &run->history;
    const lam_curve *valid = lam_history_find(h, "valid_loss");
    const int best = lam_curve_least(valid);
    const char *memory = json_string_value(json_object_get(run->config, "memory"));
    row[RUN] = (lam_cell){.text = run->name};
    row[MEMORY] = (lam_cell){.text = memory ? memory : ""};
    row[STEPS].number = last_step(h);
    row[SECONDS].number = lam_curve_last(lam_history_find(h, "elapsed"));
    row[RATE].number = lam_curve_median(lam_history_find(h, "tokens_per_second"));
    row[TRAIN].number = lam_unit_of(unit, lam_curve_last(lam_history_find(h, "loss")));
    row[VALID].number = best < 0 ? NAN : lam_unit_of(unit, valid->value[best]);
    row[AT].number = best < 0 ? NAN : valid->step[best];
    row[TEST].number = lam_unit_of(unit, lam_curve_last(lam_history_find(h, "test_loss")));
    row[STATE].text = lam_history_find(h, "diverged") ? "diverged"
                      : lam_run_ended(run)            ? "done"
                                                      : "";
}

lam_status lam_runs_summary(lam_table *out, const lam_runs *runs)
{
    static const char *const names[COLUMNS] = {"run",      "memory",    "steps", "seconds",
                                               "tokens/s", "train",     "valid", "at step",
                                               "test",     "bits/byte", "state"};
    const lam_unit unit = lam_runs_unit(runs);
    const bool bits = lam_runs_bits(runs);
    lam_column *columns;
    lam_cell *cells;
    *out =
        (lam_table){.id = "summary",
                    .title = "Progress and results",
                    .caption = bits ? "Training: the newest record. Validation: the best so far. "
                                      "Test: of that model. Bits per byte of text: of the test, or "
                                      "of the best validation. Tokens per second: the median."
                                    : "Training: the newest record. Validation: the best so far. "
                                      "Test: of that model. Tokens per second: the median."};
    LAM_TRY(allocate(out, &columns, &cells, runs->n, COLUMNS));
    for (int c = 0; c < COLUMNS; c++) {
        const bool loss = c == TRAIN || c == VALID || c == TEST;
        columns[c] = (lam_column){.name = names[c],
                                  .decimals = c == BITS              ? 4
                                              : !loss                ? 0
                                              : unit == LAM_UNIT_PPL ? 2
                                                                     : 4,
                                  .note = loss ? lam_unit_name(unit) : NULL};
    }
    for (int i = 0; i < runs->n; i++) {
        double loss;
        lam_cell *const row = cells + (size_t)i * COLUMNS;
        summarise(row, &runs->list[i], unit);
        row[BITS].number = bits ? bits_of(&runs->list[i].history, &loss) : NAN;
    }
    drop_empty(out, columns, cells);
    return LAM_OK;
}

/* ---- on the way ---- */

/* A curve that may be NULL, at x of its axis; NaN outside of it. */
static double value_at(const lam_curve *c, lam_run_axis over, double x)
{
    double before = NAN, left = NAN;
    for (int i = 0; c && i < c->n; i++) {
        const double here = over == LAM_OVER_TIME ? c->elapsed[i] : c->step[i];
        if (!isfinite(here) || !isfinite(c->value[i]))
            continue;
        if (here == x)
            return c->value[i];
        if (here > x) /* NaN if nothing was before */
            return left + (c->value[i] - left) * (x - before) / (here - before);
        before = here;
        left = c->value[i];
    }
    return NAN;
}

lam_status lam_runs_at(lam_table *out, const lam_runs *runs, lam_run_axis over, const int *at,
                       int n)
{
    const lam_unit unit = lam_runs_unit(runs);
    lam_column *columns;
    lam_cell *cells;
    *out = (lam_table){.id = "at",
                       .title = "Validation loss on the way",
                       .caption = "Between two evaluations: on the line that joins them."};
    LAM_TRY(allocate(out, &columns, &cells, n, runs->n + 1));
    columns[0].name = over == LAM_OVER_TIME ? "seconds" : "step";
    for (int c = 0; c < runs->n; c++) {
        const lam_curve *valid = lam_history_find(&runs->list[c].history, "valid_loss");
        columns[c + 1] = (lam_column){.name = runs->list[c].name,
                                      .decimals = unit == LAM_UNIT_PPL ? 2 : 4,
                                      .note = lam_unit_name(unit)};
        for (int r = 0; r < n; r++) {
            lam_cell *const row = cells + (size_t)r * (size_t)out->cols;
            row[0].number = at[r];
            row[c + 1].number = lam_unit_of(unit, value_at(valid, over, at[r]));
        }
    }
    return LAM_OK;
}

/* ---- differences ---- */

bool lam_runs_configured(const lam_runs *runs)
{
    for (int i = 0; i < runs->n; i++)
        if (json_object_size(runs->list[i].config) > 0)
            return true;
    return false;
}

static const char *setting(const lam_runview *run, const char *name)
{
    const char *text = json_string_value(json_object_get(run->config, name));
    return text ? text : "";
}

static bool differs(const lam_runs *runs, const char *name)
{
    for (int i = 1; i < runs->n; i++)
        if (strcmp(setting(&runs->list[i], name), setting(&runs->list[0], name)) != 0)
            return true;
    return false;
}

/* Calls for each setting that differs, once, in the order of the first run that has it; returns how many. */
static int each_difference(const lam_runs *runs, lam_cell *cells)
{
    int n = 0;
    for (int i = 0; i < runs->n; i++) {
        const char *name;
        json_t *value;
        json_object_foreach(runs->list[i].config, name, value) {
            bool before = false;
            for (int k = 0; k < i; k++)
                before |= json_object_get(runs->list[k].config, name) != NULL;
            if (before || !differs(runs, name))
                continue;
            lam_cell *const row = cells ? cells + (size_t)n * (size_t)(runs->n + 1) : NULL;
            for (int k = 0; row && k <= runs->n; k++)
                row[k].text = k == 0 ? name : setting(&runs->list[k - 1], name);
            n++;
        }
    }
    return n;
}

lam_status lam_runs_differences(lam_table *out, const lam_runs *runs)
{
    lam_column *columns;
    lam_cell *cells;
    *out = (lam_table){.id = "differences", .title = "Settings that differ"};
    LAM_TRY(allocate(out, &columns, &cells, each_difference(runs, NULL), runs->n + 1));
    for (int c = 0; c <= runs->n; c++)
        columns[c].name = c == 0 ? "setting" : runs->list[c - 1].name;
    each_difference(runs, cells);
    return LAM_OK;
}

/* ---- what changed on resuming ---- */

lam_status lam_runs_changes(lam_table *out, const lam_runs *runs)
{
    enum { WHO, WHEN, WHAT, BEFORE, AFTER, COLS };
    static const char *const names[COLS] = {"run", "step", "setting", "before", "after"};
    lam_column *columns;
    lam_cell *cells;
    int rows = 0;
    for (int i = 0; i < runs->n; i++)
        rows += runs->list[i].history.n_changes;
    *out = (lam_table){.id = "changes",
                       .title = "Settings that changed on resuming",
                       .caption = "From this step on the run went on with another setting."};
    LAM_TRY(allocate(out, &columns, &cells, rows, COLS));
    for (int c = 0; c < COLS; c++)
        columns[c].name = names[c];
    for (int i = 0; i < runs->n; i++)
        for (int k = 0; k < runs->list[i].history.n_changes; k++, cells += COLS) {
            const lam_change *change = &runs->list[i].history.changes[k];
            cells[WHO].text = runs->list[i].name;
            cells[WHEN].number = change->step;
            cells[WHAT].text = change->name;
            cells[BEFORE].text = change->before;
            cells[AFTER].text = change->after;
        }
    return LAM_OK;
}

char *lam_run_warning(char *out, size_t size, const lam_runview *run, lam_unit unit)
{
    const lam_curve *valid = lam_history_find(&run->history, "valid_loss");
    const int best = lam_curve_least(valid);
    const char *text = json_string_value(json_object_get(run->config, "n_token"));
    const double even = text ? log(strtod(text, NULL)) : NAN;
    *out = '\0';
    if (best >= 0 && lam_loss_untrained(valid->value[best], even))
        snprintf(out, size,
                 "%s: its best validation loss, %.4g %s, is above that of a uniform guess, %.4g: "
                 "this model has not learned; a lower --lr or a longer --warmup-step may help",
                 run->name, lam_unit_of(unit, valid->value[best]), lam_unit_name(unit),
                 lam_unit_of(unit, even));
    return out;
}
