/* analysis_paper.c -- what the paper says without any model of one's own: parameters and multiply-accumulates of the
 * memories at its size (Table 1), and why one encoding for both directions makes scores vary wildly (Appendix B). */
#include "measure/encoding.h"
#include "model/configure.h"
#include "model/macs.h"
#include "report/analysis_int.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Table 1 ---- */

enum { MEMORIES = 16, COST_COLS = 5 };

static lam_status count_parameters(double *millions, const char *memory)
{
    lam_config cfg;
    lam_model model = {0};
    lam_dev bare = {.act = LAM_F32, .wide = LAM_F32, .pad = 1};
    LAM_TRY(lam_config_preset(&cfg, "wt103-base", memory));
    LAM_TRY(lam_config_finish(&cfg));
    const lam_status status = lam_model_declare(&model, &cfg, &bare);
    *millions = (double)lam_model_count(&model) / 1e6;
    lam_model_undeclare(&model);
    return status;
}

static lam_status cost(lam_page *page)
{
    static const lam_column columns[COST_COLS] = {
        {.name = "model"},
        {.name = "parameters", .decimals = 2, .note = "millions"},
        {.name = "paper (parameters)", .note = "#Params, millions"},
        {.name = "MACs per token", .decimals = 2, .note = "millions"},
        {.name = "paper (MACs)", .note = "#FLOPS, millions"}};
    lam_cell cells[MEMORIES][COST_COLS] = {0};
    lam_config cfg;
    int rows = 0;
    LAM_TRY(lam_config_preset(&cfg, "wt103-base", LAM_MEMORY_DEFAULT));
    for (int i = 0; lam_mem_all[i] && rows < MEMORIES; i++) {
        const lam_mem_ops *mem = lam_mem_all[i];
        if (mem->paper.role == LAM_NOT_IN_PAPER)
            continue;
        cells[rows][0].text = mem->title;
        LAM_TRY(count_parameters(&cells[rows][1].number, mem->name));
        cells[rows][2].number = mem->paper.parameters;
        cells[rows][3].number = lam_macs_token(&cfg, mem->name).total / 1e6;
        cells[rows++][4].number = mem->paper.macs;
    }
    lam_page_heading(page, "cost", "Parameters and cost");
    return lam_page_table(
        page,
        &(lam_table){
            .id = "cost",
            .title = "The five memories at the paper's size",
            .caption = "wt103-base, segments and memories of 150 tokens, full softmax.  MACs are "
                       "multiply-accumulates per predicted token, which the paper calls FLOPS; its "
                       "formulas are not given, and the infinity-former's 235 cannot be reached "
                       "with 512 samples.  The models of this report are in the first table.",
            .rows = rows,
            .cols = COST_COLS,
            .columns = columns,
            .cells = cells[0]});
}

/* ---- Appendix B ---- */

enum { FAR = 100, POINTS = 2 * FAR * 2 + 1 }; /* every half token from -FAR to FAR */

/* sc / ss in the figure of variances: any value does. */
static const double correlation = 0.05;

static lam_status curve(lam_curves *curves, const char *name, double (*f)(int, double), int d)
{
    lam_points c;
    LAM_TRY(lam_curves_add(curves, &c, name, POINTS, LAM_NO_BAND));
    for (int i = 0; i < POINTS; i++) {
        c.x[i] = -FAR + 0.5 * i;
        c.y[i] = f(d, c.x[i]);
    }
    return LAM_OK;
}

static double printed(int d, double t)
{
    return lam_encoding_variance(d, t, correlation);
}

static double all_pairs(int d, double t)
{
    return lam_encoding_variance_all(d, t, correlation);
}

static lam_status g_figure(const lam_analysis *a, lam_page *page, lam_curves *curves)
{
    char name[32];
    snprintf(name, sizeof name, "d = %d", a->opt.encoding_width);
    LAM_TRY(curve(curves, name, lam_encoding_g, a->opt.encoding_width));
    return lam_page_figure(
        page, &(lam_figure){
                  .id = "encoding-g",
                  .title = "g(x)",
                  .finding = lam_analysis_finding(a, NULL, LAM_CLAIM_ENCODING).text,
                  .caption = "The odd part of the variance of x . R(t) under one encoding for both "
                             "directions: past and future differ by a jump whose slope grows as d "
                             "squared.  (The paper's figure in Appendix B has d = 64.)",
                  .x = {.label = "distance"},
                  .y = {.label = "g"},
                  .n_series = curves->n,
                  .series = curves->list});
}

static lam_status variance_figure(const lam_analysis *a, lam_page *page, lam_curves *curves)
{
    LAM_TRY(curve(curves, "as printed", printed, a->opt.encoding_width));
    LAM_TRY(curve(curves, "with all pairs", all_pairs, a->opt.encoding_width));
    curves->list[0].colour = 7; /* no model's */
    curves->list[1].colour = 5;
    return lam_page_figure(
        page,
        &(lam_figure){
            .id = "encoding-variance",
            .title = "Variance of a positional score",
            .caption = "Var(x . R(t)) as a multiple of d/2 times the variance of an element, for a "
                       "covariance of 0.05 times it.  The printed formula leaves out pairs of two "
                       "sines, two cosines, or one frequency, and can become negative; with all "
                       "pairs the two sides of 0 still differ, which is what the argument needs.",
            .x = {.label = "distance"},
            .y = {.label = "variance (multiples of d/2)"},
            .n_series = curves->n,
            .series = curves->list});
}

static int by_size(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static lam_status slopes(const lam_analysis *a, lam_page *page)
{
    enum { COLS = 4, MOST = 6 + LAM_ANALYSED };
    static const lam_column columns[COLS] = {
        {.name = "d"},
        {.name = "slope of g at 0", .decimals = 1},
        {.name = "gamma_d", .decimals = 1, .note = "paper's"},
        {.name = "d^2 / (2 ln 10^8)", .decimals = 1, .note = "large d"}};
    int widths[MOST] = {16, 64, 256, 1024, a->opt.encoding_width}, n = 5;
    char names[MOST][16];
    lam_cell cells[MOST][COLS] = {0};
    for (int i = 0; i < a->n; i++)
        widths[n++] = a->models[i].cfg.d_model - a->models[i].cfg.d_model % 2;
    qsort(widths, (size_t)n, sizeof *widths, by_size);
    int rows = 0;
    for (int i = 0; i < n; i++) {
        if (widths[i] < 2 || (i > 0 && widths[i] == widths[i - 1]))
            continue;
        snprintf(names[rows], sizeof *names, "%d", widths[i]);
        cells[rows][0].text = names[rows];
        cells[rows][1].number = lam_encoding_slope(widths[i]);
        cells[rows][2].number = lam_encoding_gamma(widths[i]);
        cells[rows++][3].number = lam_encoding_gamma_large(widths[i]);
    }
    return lam_page_table(page, &(lam_table){.id = "encoding-slope",
                                             .title = "How steep g is",
                                             .rows = rows,
                                             .cols = COLS,
                                             .columns = columns,
                                             .cells = cells[0]});
}

static lam_status encoding(const lam_analysis *a, lam_page *page)
{
    lam_figure_maker *const figures[] = {g_figure, variance_figure};
    lam_page_heading(page, "encoding", "One encoding for past and future");
    LAM_TRY(lam_analysis_figures(a, page, figures, 2));
    return slopes(a, page);
}

lam_status lam_analysis_paper(const lam_analysis *a, lam_page *page)
{
    LAM_TRY(cost(page));
    return encoding(a, page);
}
