/* analysis_sweep.c -- memories longer than trained with, at a fixed segment (Figure 5): the loss, what each model gains
 * by a longer memory, and how far the models are apart. */
#include "report/analysis_claims.h"

#include <stdio.h>
#include <string.h>

static void put(lam_points *c, int k, const lam_sweep_point *at, lam_estimate e)
{
    lam_points_put(c, k, at->mem_len, e.value, e.error);
}

static int64_t tokens_read(const lam_analysis *a)
{
    for (int i = 0; i < a->n; i++)
        if (a->models[i].n_points > 0)
            return a->models[i].points[0].result.tokens;
    return 0;
}

/* Of one model: what the longest memory saves over the shortest. */
static lam_finding saved(const lam_analysis *a)
{
    lam_finding out = {""};
    for (int i = 0; i < a->n && !out.text[0]; i++) {
        const lam_sweep_point *p = a->models[i].points;
        const int last = a->models[i].n_points - 1;
        if (last < 1)
            continue;
        const lam_estimate e = lam_analysis_gap(a, &p[0].nll, &p[last].nll);
        snprintf(out.text, sizeof out.text, "%s %s %s %s from %d to %d tokens of memory",
                 a->models[i].name, lam_claim_sign(&e, "gains", "loses"), lam_claim_amount(e).text,
                 lam_metric_name(a->corpus->info.metric), p[0].mem_len, p[last].mem_len);
    }
    return out;
}

/* The finding of an observation, or that. */
static lam_finding finding_of(const lam_analysis *a, lam_claim kind)
{
    const lam_finding found = lam_analysis_finding(a, NULL, kind);
    return found.text[0] ? found : saved(a);
}

static lam_status losses(const lam_analysis *a, lam_page *page, lam_curves *curves)
{
    char caption[640], title[96], count[32], amount[32];
    double error = 0.0;
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        lam_points c;
        if (m->n_points == 0)
            continue;
        LAM_TRY(lam_curves_add(curves, &c, m->name, m->n_points, LAM_NO_BAND));
        for (int k = 0; k < m->n_points; k++) {
            const lam_estimate e = lam_analysis_value(a, &m->points[k].nll);
            c.x[k] = m->points[k].mem_len;
            c.y[k] = e.value;
            error = fmax(error, e.error);
        }
        curves->list[curves->n - 1].colour = i + 1;
    }
    if (curves->n == 0)
        return LAM_OK;
    snprintf(title, sizeof title, "Loss over memory length, segments of %d tokens",
             a->opt.sweep.tgt_len);
    snprintf(caption, sizeof caption,
             "Lower is better.  Every point predicts the same %s tokens with a full memory.  On "
             "another text of this length all curves together would lie higher or lower by about "
             "%s (one standard error, %s); as they share their text, differences along and between "
             "them are much surer, and are drawn below with their errors.  (The paper's Figure 5.)",
             lam_count_shown(count, sizeof count, tokens_read(a)),
             lam_error_shown(amount, sizeof amount, error), LAM_ERROR_NAME);
    return lam_page_figure(
        page, &(lam_figure){.id = "extrapolation",
                            .title = title,
                            .finding = finding_of(a, LAM_CLAIM_GROWTH).text,
                            .caption = caption,
                            .x = {.label = "memory length (tokens)", .at_points = true},
                            .y = {.label = lam_analysis_unit(a)},
                            .n_series = curves->n,
                            .series = curves->list});
}

static lam_status gains(const lam_analysis *a, lam_page *page, lam_curves *curves)
{
    char label[64];
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        lam_points c;
        if (m->n_points < 2)
            continue;
        LAM_TRY(lam_curves_add(curves, &c, m->name, m->n_points, LAM_BAND));
        for (int k = 0; k < m->n_points; k++)
            put(&c, k, &m->points[k], lam_analysis_gap(a, &m->points[0].nll, &m->points[k].nll));
        curves->list[curves->n - 1].colour = i + 1;
    }
    if (curves->n == 0)
        return LAM_OK;
    snprintf(label, sizeof label, "%s saved", lam_analysis_unit(a));
    return lam_page_figure(
        page, &(lam_figure){
                  .id = "extrapolation-gain",
                  .title = "What a longer memory saves",
                  .finding = finding_of(a, LAM_CLAIM_GAIN).text,
                  .caption = "The loss with the shortest memory minus that with each longer one, "
                             "token by token on the same text; the band is one standard error of "
                             "this difference.  A curve that goes level has nothing more to gain.",
                  .x = {.label = "memory length (tokens)", .at_points = true},
                  .y = {.label = label},
                  .n_series = curves->n,
                  .series = curves->list});
}

/* Where no model is better. */
static lam_status add_equal(lam_curves *curves, const lam_analysed *first)
{
    lam_points c;
    LAM_TRY(lam_curves_add(curves, &c, "equal", first->n_points, LAM_NO_BAND));
    for (int k = 0; k < first->n_points; k++)
        c.x[k] = first->points[k].mem_len;
    curves->list[curves->n - 1].dashed = true;
    curves->list[curves->n - 1].colour = LAM_ANALYSED;
    return LAM_OK;
}

/* How far each other model is above the first one that was swept. */
static lam_status gaps(const lam_analysis *a, lam_page *page, lam_curves *curves)
{
    char caption[400], label[64];
    const lam_analysed *first = NULL;
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        lam_points c;
        int n = 0;
        if (m->n_points == 0)
            continue;
        if (!first) {
            first = m;
            continue;
        }
        LAM_TRY(lam_curves_add(curves, &c, m->name, m->n_points, LAM_BAND));
        for (int k = 0; k < m->n_points; k++) {
            const lam_sweep_point *p = lam_analysed_point(first, m->points[k].mem_len);
            if (p)
                put(&c, n++, p, lam_analysis_gap(a, &m->points[k].nll, &p->nll));
        }
        curves->list[curves->n - 1].n = n;
        curves->list[curves->n - 1].colour = i + 1;
    }
    if (curves->n == 0)
        return LAM_OK;
    LAM_TRY(add_equal(curves, first));
    snprintf(caption, sizeof caption,
             "How much higher the loss of the others is than that of %s at the same memory length, "
             "on the same tokens; above 0 means that %s is better.  The band is one standard error "
             "of this difference.",
             first->name, first->name);
    snprintf(label, sizeof label, "%s above %.24s", lam_analysis_unit(a), first->name);
    return lam_page_figure(
        page, &(lam_figure){.id = "extrapolation-gap",
                            .title = "How far the models are apart",
                            .finding = lam_analysis_finding(a, NULL, LAM_CLAIM_LENGTHS).text,
                            .caption = caption,
                            .x = {.label = "memory length (tokens)", .at_points = true},
                            .y = {.label = label},
                            .n_series = curves->n,
                            .series = curves->list});
}

/* One length of one model: its loss and the error of that. */
static void fill(const lam_analysis *a, lam_cell *cells, const lam_analysed *m, int mem_len)
{
    const lam_sweep_point *p = lam_analysed_point(m, mem_len);
    const lam_estimate none = {.value = NAN, .error = NAN};
    const lam_estimate e = p ? lam_analysis_value(a, &p->nll) : none;
    cells[0].number = e.value;
    cells[1].number = e.error;
}

/* Models without a point have no columns. */
static lam_status table(const lam_analysis *a, lam_page *page)
{
    const lam_sweep_options *o = &a->opt.sweep;
    lam_column columns[2 * LAM_ANALYSED + 1] = {{.name = "memory length", .note = "tokens"}};
    lam_cell cells[LAM_SWEEP][2 * LAM_ANALYSED + 1] = {0};
    char lengths[LAM_SWEEP][16], errors[LAM_ANALYSED][96];
    int cols = 1;
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        if (m->n_points == 0)
            continue;
        snprintf(errors[i], sizeof *errors, "%s, error", m->name);
        columns[cols] = (lam_column){.name = m->name,
                                     .decimals = lam_analysis_decimals(a),
                                     .note = lam_metric_name(a->corpus->info.metric)};
        columns[cols + 1] =
            (lam_column){.name = errors[i], .decimals = lam_analysis_decimals(a), .error = true};
        for (int k = 0; k < o->n; k++)
            fill(a, &cells[k][cols], m, o->lengths[k]);
        cols += 2;
    }
    lam_cell rows[LAM_SWEEP * (2 * LAM_ANALYSED + 1)];
    for (int k = 0; k < o->n; k++) {
        snprintf(lengths[k], sizeof lengths[k], "%d", o->lengths[k]);
        cells[k][0].text = lengths[k];
        memcpy(rows + k * cols, cells[k], (size_t)cols * sizeof *rows);
    }
    return lam_page_table(page, &(lam_table){.id = "extrapolation-table",
                                             .title = "The same in numbers",
                                             .rows = o->n,
                                             .cols = cols,
                                             .columns = columns,
                                             .cells = rows});
}

/* Has any of the models a memory? */
static bool remembers(const lam_analysis *a)
{
    for (int i = 0; i < a->n; i++)
        if (a->models[i].cfg.mem_len > 0)
            return true;
    return false;
}

lam_status lam_analysis_sweep(const lam_analysis *a, lam_page *page)
{
    lam_figure_maker *const figures[] = {losses, gains, gaps};
    char text[400];
    if (a->opt.sweep.n == 0 || !remembers(a))
        return LAM_OK;
    lam_page_heading(page, "sweep", "Extrapolation");
    lam_status status = lam_analysis_figures(a, page, figures, 3);
    if (status == LAM_OK && tokens_read(a) > 0)
        status = table(a, page);
    for (int i = 0; i < a->n; i++)
        if (a->models[i].sweep_note[0]) {
            snprintf(text, sizeof text, "%s: %s.", a->models[i].name, a->models[i].sweep_note);
            lam_page_text(page, text);
        }
    return status;
}
