/* analysis_sweep.c -- memories longer than trained with: loss over memory length at a fixed segment (Figure 5). */
#include "report/analysis_int.h"

#include <stdio.h>
#include <stdlib.h>

static lam_status figure(const lam_analysis *a, lam_page *page, lam_curves *curves)
{
    char caption[400];
    int64_t tokens = 0;
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        lam_curve c;
        if (m->n_points == 0)
            continue;
        LAM_TRY(lam_curves_add(curves, &c, m->name, m->n_points, LAM_BAND));
        for (int k = 0; k < m->n_points; k++) {
            const double error = lam_analysis_error(a, &m->points[k].result);
            c.x[k] = m->points[k].mem_len;
            c.y[k] = lam_analysis_value(a, &m->points[k].result);
            c.low[k] = c.y[k] - error;
            c.high[k] = c.y[k] + error;
        }
        tokens = m->points[0].result.tokens;
        curves->list[curves->n - 1].colour = i + 1;
    }
    if (curves->n == 0)
        return LAM_OK;
    snprintf(caption, sizeof caption,
             "Segments of %d tokens with memories of different lengths, the same %lld tokens for "
             "each; the band is one "
             "standard error over segments.  Points of one model share their tokens, so "
             "differences between them are "
             "surer than the band.  (The paper's Figure 5.)",
             a->opt.sweep_len, (long long)tokens);
    return lam_page_figure(page, &(lam_figure){.id = "extrapolation",
                                               .title = "Longer memories than trained with",
                                               .caption = caption,
                                               .x = {.label = "memory length (tokens)"},
                                               .y = {.label = lam_analysis_unit(a)},
                                               .n_series = curves->n,
                                               .series = curves->list});
}

/* The point of a model at a memory length, or NULL. */
static const lam_sweep_point *point_at(const lam_analysed *m, int mem_len)
{
    for (int k = 0; k < m->n_points; k++)
        if (m->points[k].mem_len == mem_len)
            return &m->points[k];
    return NULL;
}

static lam_status table(const lam_analysis *a, lam_page *page)
{
    const int cols = a->n + 1;
    lam_column columns[LAM_ANALYSED + 1] = {{.name = "memory length"}};
    lam_cell *cells = calloc((size_t)a->opt.n_sweep * (size_t)cols, sizeof *cells);
    char lengths[LAM_SWEEP][16];
    if (!cells)
        return lam_fail(LAM_ERR_MEMORY, "analysis: no memory for a table");
    for (int i = 0; i < a->n; i++)
        columns[i + 1] = (lam_column){.name = a->models[i].name,
                                      .decimals = 4,
                                      .note = lam_metric_name(a->corpus->info.metric)};
    for (int k = 0; k < a->opt.n_sweep; k++) {
        lam_cell *row = cells + k * cols;
        snprintf(lengths[k], sizeof lengths[k], "%d", a->opt.sweep[k]);
        row[0].text = lengths[k];
        for (int i = 0; i < a->n; i++) {
            const lam_sweep_point *p = point_at(&a->models[i], a->opt.sweep[k]);
            row[i + 1].number = p ? lam_analysis_value(a, &p->result) : NAN;
        }
    }
    const lam_status status = lam_page_table(page, &(lam_table){.id = "extrapolation-table",
                                                                .title = "The same in numbers",
                                                                .rows = a->opt.n_sweep,
                                                                .cols = cols,
                                                                .columns = columns,
                                                                .cells = cells});
    free(cells);
    return status;
}

lam_status lam_analysis_sweep(const lam_analysis *a, lam_page *page)
{
    lam_curves curves = {0};
    char text[400];
    lam_page_heading(page, "sweep", "Extrapolation");
    if (a->opt.n_sweep == 0) {
        lam_page_text(page, "Not measured (--no-extrapolate).");
        return LAM_OK;
    }
    lam_status status = figure(a, page, &curves);
    if (status == LAM_OK && curves.n > 0)
        status = table(a, page);
    lam_curves_free(&curves);
    for (int i = 0; i < a->n; i++)
        if (a->models[i].sweep_note[0]) {
            snprintf(text, sizeof text, "%s: %s.", a->models[i].name, a->models[i].sweep_note);
            lam_page_text(page, text);
        }
    return status;
}
