/* comparison_table.c -- a comparison as tables.
 *
 * Columns are the paper's (Tables 1 and 3), with the speed of training beside what it calls FLOPS and we,
 * more exactly, multiply-accumulates. */
#include "model/macs.h"
#include "report/comparison.h"
#include "train/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 64, TEXTS = 3 /* of a row */ };

static double value_of(const lam_comparison *c, const lam_outcome *o, lam_compared_value what)
{
    if (what == LAM_OF_SPEED)
        return o->tokens_per_second;
    if (what == LAM_OF_TEST_BITS)
        return o->test_bits;
    return lam_metric_of(c->metric, what == LAM_OF_DEV ? o->valid : o->test);
}

/* The standard error of the evaluation behind a loss, in the metric; NaN where none was logged. */
static double error_of(const lam_comparison *c, const lam_outcome *o, lam_compared_value what)
{
    const double error = what == LAM_OF_DEV ? o->valid_error : o->test_error;
    if (what == LAM_OF_TEST_BITS)
        return error / o->test * o->test_bits; /* both are that many times the loss in nats */
    if (c->metric == LAM_PPL)
        return error * value_of(c, o, what); /* d exp(x) = exp(x) dx */
    return error / M_LN2;
}

lam_spread lam_comparison_spread(const lam_comparison *c, int model, lam_compared_value what)
{
    double sum = 0.0, squares = 0.0, error = NAN;
    int n = 0;
    for (int pass = 0; pass < 2; pass++) /* the mean first, then what lies around it */
        for (int s = 0; s < c->n_seeds; s++) {
            const lam_compared_run *r = &c->models[model].runs[s];
            const double v = value_of(c, &r->outcome, what);
            if (r->end != LAM_RUN_DONE || isnan(v))
                continue;
            if (pass == 0) {
                sum += v;
                error = n++ == 0 ? error_of(c, &r->outcome, what) : NAN;
            } else
                squares += (v - sum / n) * (v - sum / n);
        }
    return (lam_spread){.n = n,
                        .mean = n > 0 ? sum / n : NAN,
                        .deviation = n > 1 ? sqrt(squares / (n - 1)) : NAN,
                        .error = error};
}

/* What to say of a model none of whose runs is done. */
static const char *word_for(const lam_comparison *c, int model)
{
    int ends[4] = {0};
    for (int s = 0; s < c->n_seeds; s++)
        ends[c->models[model].runs[s].end]++;
    return ends[LAM_RUN_WAITING] ? "waiting" : ends[LAM_RUN_DIVERGED] ? "diverged" : "failed";
}

static void result_text(char cell[CELL], const lam_comparison *c, int model,
                        lam_compared_value what)
{
    const lam_spread v = lam_comparison_spread(c, model, what);
    int n = 0;
    if (v.n == 0) {
        const int done = lam_comparison_spread(c, model, LAM_OF_SPEED).n > 0;
        strcpy(cell, done ? "-" : word_for(c, model));
        return;
    }
    const int decimals = c->metric == LAM_PPL && what != LAM_OF_TEST_BITS ? 2 : 4;
    n = snprintf(cell, CELL, "%.*f", decimals, v.mean);
    const double spread = v.n > 1 ? v.deviation : v.error;
    if (isfinite(spread))
        n += snprintf(cell + n, CELL - (size_t)n, " +- %.*f", decimals, spread);
    if (v.n < c->n_seeds)
        snprintf(cell + n, CELL - (size_t)n, " (%d of %d)", v.n, c->n_seeds);
}

/* Cells [rows][cols] for a table of c, filled by `fill`. */
static lam_status print_table(lam_text *out, const lam_comparison *c, lam_table *t,
                              void (*fill)(lam_cell *row, char *texts, const lam_comparison *c,
                                           int number),
                              void (*print)(lam_text *out, const lam_table *t))
{
    const size_t rows = (size_t)t->rows, cols = (size_t)t->cols;
    lam_cell *cells = calloc(rows * cols + 1, sizeof *cells);
    char *texts = calloc(rows + 1, TEXTS * CELL);
    lam_status status = cells && texts ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "comparison: no memory");
    for (size_t r = 0; r < rows && status == LAM_OK; r++)
        fill(cells + r * cols, texts + r * TEXTS * CELL, c, (int)r);
    t->cells = cells;
    if (status == LAM_OK) {
        print(out, t);
        status = lam_text_status(out, "comparison");
    }
    free(cells);
    free(texts);
    return status;
}

static lam_cell text_cell(const char *text)
{
    return (lam_cell){.text = text};
}

static lam_cell number_cell(double number)
{
    return (lam_cell){.number = number};
}

static double macs_of(const lam_compared_model *m)
{
    return lam_macs_token(&m->cfg, m->cfg.memory).total;
}

/* Bits per byte are no news where they are the loss in bits: of bytes. */
static bool has_bits(const lam_comparison *c)
{
    for (int m = 0; m < c->n_models; m++)
        for (int s = 0; s < c->n_seeds; s++) {
            const lam_outcome *o = &c->models[m].runs[s].outcome;
            if (isfinite(o->test_bits) && fabs(o->test_bits - o->test / M_LN2) > 1e-8)
                return true;
        }
    return false;
}

static void model_row(lam_cell *row, char *texts, const lam_comparison *c, int number)
{
    const lam_compared_model *m = &c->models[number];
    result_text(texts, c, number, LAM_OF_DEV);
    result_text(texts + CELL, c, number, LAM_OF_TEST);
    result_text(texts + 2 * CELL, c, number, LAM_OF_TEST_BITS);
    const lam_cell cells[] = {text_cell(m->label),
                              number_cell((double)m->parameters),
                              number_cell(m->cfg.mem_len),
                              number_cell(lam_macs_external_rows(&m->cfg)),
                              number_cell(macs_of(m) / 1e6),
                              number_cell(lam_comparison_spread(c, number, LAM_OF_SPEED).mean),
                              text_cell(texts),
                              text_cell(texts + CELL),
                              text_cell(texts + 2 * CELL)};
    memcpy(row, cells, sizeof cells - (has_bits(c) ? 0 : sizeof *cells));
}

lam_status lam_comparison_models(lam_text *out, const lam_comparison *c,
                                 void (*print)(lam_text *out, const lam_table *t))
{
    const int bpc = c->metric == LAM_BPC;
    const char *const note = c->n_seeds > 1 ? "+- sd of seeds" : "+- std. error";
    const lam_column columns[] = {{.name = "model"},
                                  {.name = "parameters"},
                                  {.name = "memory"},
                                  {.name = "external"},
                                  {.name = "MACs/token, M", .decimals = 2},
                                  {.name = "tokens/s"},
                                  {.name = bpc ? "dev bpc" : "dev ppl", .note = note},
                                  {.name = bpc ? "test bpc" : "test ppl", .note = note},
                                  {.name = "test bits/byte", .note = note}};
    lam_table t = {.id = "compare",
                   .title = "Comparison",
                   .rows = c->n_models,
                   .cols = sizeof columns / sizeof *columns - (has_bits(c) ? 0 : 1),
                   .columns = columns};
    return print_table(out, c, &t, model_row, print);
}

static void training_row(lam_cell *row, char *texts, const lam_comparison *c, int number)
{
    const int s = number % c->n_seeds;
    const lam_compared_model *m = &c->models[number / c->n_seeds];
    const lam_outcome *o = &m->runs[s].outcome;
    (void)texts;
    const lam_cell cells[] = {text_cell(m->label),
                              text_cell(m->cfg.memory),
                              number_cell(c->seeds[s]),
                              text_cell(lam_run_end_name(m->runs[s].end)),
                              number_cell((double)o->step),
                              number_cell((double)m->parameters),
                              number_cell(m->cfg.mem_len),
                              number_cell(lam_macs_external_rows(&m->cfg)),
                              number_cell(macs_of(m)),
                              number_cell(o->tokens_per_second),
                              number_cell(o->seconds),
                              number_cell(value_of(c, o, LAM_OF_DEV)),
                              number_cell(value_of(c, o, LAM_OF_TEST)),
                              number_cell(o->test_bits),
                              number_cell(error_of(c, o, LAM_OF_DEV)),
                              number_cell(error_of(c, o, LAM_OF_TEST))};
    memcpy(row, cells, sizeof cells);
}

lam_status lam_comparison_trainings(lam_text *out, const lam_comparison *c,
                                    void (*print)(lam_text *out, const lam_table *t))
{
    const int bpc = c->metric == LAM_BPC;
    const lam_column columns[] = {{.name = "model"},
                                  {.name = "memory"},
                                  {.name = "seed"},
                                  {.name = "end"},
                                  {.name = "steps"},
                                  {.name = "parameters"},
                                  {.name = "mem_len"},
                                  {.name = "ext_mem_len"},
                                  {.name = "macs_per_token"},
                                  {.name = "tokens_per_second"},
                                  {.name = "seconds", .decimals = 1},
                                  {.name = bpc ? "dev_bpc" : "dev_ppl", .decimals = 4},
                                  {.name = bpc ? "test_bpc" : "test_ppl", .decimals = 4},
                                  {.name = "test_bits_per_byte", .decimals = 4},
                                  {.name = "dev_stderr", .decimals = 4},
                                  {.name = "test_stderr", .decimals = 4}};
    lam_table t = {.id = "trainings",
                   .title = "Trainings",
                   .rows = c->n_models * c->n_seeds,
                   .cols = sizeof columns / sizeof *columns,
                   .columns = columns};
    return print_table(out, c, &t, training_row, print);
}
