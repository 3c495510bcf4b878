/* analysis_loss.c -- how well each model predicts the text, and where in a segment. */
#include "model/macs.h"
#include "report/analysis_int.h"
#include "report/analysis_page.h"

#include <stdio.h>
#include <string.h>

enum { MOST_POINTS = 16 }; /* of a curve over positions: neighbours are averaged */

/* Lends the table to `use`. */
static lam_status results(const lam_analysis *a,
                          lam_status (*use)(void *user, const lam_table *table), void *user)
{
    enum { COLS = 11 };
    const char *beyond = NULL; /* what some models' memories have in front of the newest rows */
    for (int i = 0; i < a->n; i++)
        beyond = a->models[i].probe.front > 0 ? a->models[i].mem->beyond_name : beyond;
    const lam_column columns[COLS] = {
        {.name = "model"},
        {.name = "memory"},
        {.name = lam_metric_name(a->corpus->info.metric), .decimals = lam_analysis_decimals(a)},
        {.name = "standard error", .decimals = lam_analysis_decimals(a), .error = true},
        {.name = "parameters"},
        {.name = "MACs per token", .decimals = 2, .note = "millions"},
        {.name = "layers"},
        {.name = "width"},
        {.name = "segment", .note = "tokens"},
        {.name = "memory length", .note = "rows"},
        {.name = beyond, .note = "rows"}};
    lam_cell cells[LAM_ANALYSED * COLS];
    const int cols = beyond ? COLS : COLS - 1;
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        const lam_estimate loss = lam_analysis_value(a, &m->probe.nll);
        lam_config cfg = m->cfg;
        cfg.tgt_len = m->probe.N;
        cfg.mem_len = m->probe.M - m->probe.front;
        const lam_cell row[COLS] = {{.text = m->name},
                                    {.text = m->cfg.memory},
                                    {.number = loss.value},
                                    {.number = loss.error},
                                    {.number = (double)m->parameters},
                                    {.number = lam_macs_token(&cfg, cfg.memory).total / 1e6},
                                    {.number = m->cfg.n_layer},
                                    {.number = m->cfg.d_model},
                                    {.number = m->probe.N},
                                    {.number = m->probe.M - m->probe.front},
                                    {.number = m->probe.front}};
        memcpy(cells + i * cols, row, (size_t)cols * sizeof *row);
    }
    char caption[300], count[32];
    snprintf(caption, sizeof caption,
             "Measured on %s segments of each model, read with full memory; lamemo eval measures a "
             "whole split.  Standard error: %s.",
             lam_count_shown(count, sizeof count, a->models[0].probe.segments), LAM_ERROR_NAME);
    return use(user, &(lam_table){.id = "results",
                                  .title = "Models",
                                  .caption = caption,
                                  .rows = a->n,
                                  .cols = cols,
                                  .columns = columns,
                                  .cells = cells});
}

static lam_status put_on_page(void *user, const lam_table *table)
{
    return lam_page_table(user, table);
}

lam_status lam_analysis_results(const lam_analysis *a, lam_page *page)
{
    return results(a, put_on_page, page);
}

typedef struct printing {
    lam_text *out;
    void (*print)(lam_text *out, const lam_table *t);
} printing;

static lam_status print_table(void *user, const lam_table *table)
{
    const printing *p = user;
    p->print(p->out, table);
    return lam_text_status(p->out, "results");
}

lam_status lam_analysis_table(lam_text *out, const lam_analysis *a,
                              void (*print)(lam_text *out, const lam_table *t))
{
    return results(a, print_table, &(printing){out, print});
}

/* Neighbouring places of a segment. */
typedef struct places {
    const lam_analysed *m;
    int from, end;
} places;

static double bits_at(const void *data, int without)
{
    const places *at = data;
    double sum = 0.0;
    for (int i = at->from; i < at->end; i++)
        sum += lam_parted_mean(&at->m->probe.losses, (size_t)i, without);
    return sum / log(2.0) / (at->end - at->from);
}

/* How much more the first group of places costs than all others. */
static double start_cost(const void *data, int without)
{
    const places *first = data;
    const places others = {first->m, first->end, first->m->probe.N};
    return bits_at(first, without) - bits_at(&others, without);
}

/* "lamemo: the first 4 tokens of a segment cost 0.01 +- 0.02 bits more than the others". */
static lam_finding at_the_start(const lam_analysed *m, int width)
{
    lam_finding out = {""};
    const places first = {m, 0, width};
    if (width >= m->probe.N)
        return out;
    lam_estimate e = lam_estimate_of(start_cost, &first, &m->probe.nll);
    const char *word = e.value < 0.0 ? "less" : "more";
    e.value = fabs(e.value);
    snprintf(out.text, sizeof out.text,
             "%s: the first %d tokens of a segment cost %s bits %s than the others", m->name, width,
             lam_estimate_shown(&e).text, word);
    return out;
}

static lam_status by_position(const lam_analysis *a, lam_page *page, lam_curves *curves)
{
    char caption[480], amount[32];
    double error = 0.0;
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        const int N = m->probe.N, width = (N + MOST_POINTS - 1) / MOST_POINTS;
        lam_points c;
        LAM_TRY(lam_curves_add(curves, &c, m->name, (N + width - 1) / width, LAM_NO_BAND));
        for (int from = 0, k = 0; from < N; from += width, k++) {
            const places here = {m, from, from + width < N ? from + width : N};
            const lam_estimate e = lam_estimate_of(bits_at, &here, &m->probe.nll);
            c.x[k] = 0.5 * (from + 1 + here.end);
            c.y[k] = e.value;
            error = isfinite(e.error) ? fmax(error, e.error) : error;
        }
        curves->list[i].colour = i + 1;
    }
    const lam_analysed *m = &a->models[0];
    const int width = (m->probe.N + MOST_POINTS - 1) / MOST_POINTS;
    snprintf(caption, sizeof caption,
             "Mean loss of the tokens at each place of their segment, neighbouring places averaged "
             "where there are many.  A point has a standard error of up to %s (bits), most of "
             "which the models share, for they read the same text.  A model that leans on its "
             "memory has nothing to make up for at the beginning.",
             lam_error_shown(amount, sizeof amount, error));
    return lam_page_figure(page, &(lam_figure){.id = "loss-position",
                                               .title = "Loss by position in the segment",
                                               .finding = at_the_start(m, width).text,
                                               .caption = caption,
                                               .x = {.label = "position in the segment (tokens)"},
                                               .y = {.label = a->corpus->info.metric == LAM_PPL
                                                                  ? "bits per token"
                                                                  : "bits per character"},
                                               .n_series = curves->n,
                                               .series = curves->list});
}

lam_status lam_analysis_loss(const lam_analysis *a, lam_page *page)
{
    lam_figure_maker *const figures[] = {by_position};
    lam_page_heading(page, "loss", "Loss");
    return lam_analysis_figures(a, page, figures, 1);
}
