/* analysis_page.c -- an analysis becomes a page; and what its sections share. */
#include "report/analysis_int.h"

#include "core/file.h"
#include "train/run.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

static const char PAGE[] = "report.html";

int lam_analysis_layer(const lam_analysis *a, const lam_analysed *m)
{
    return (a->opt.layer > 0 ? a->opt.layer : m->cfg.n_layer) - 1;
}

void lam_analysis_layer_name(const lam_analysis *a, char *out, size_t size)
{
    if (a->opt.layer > 0)
        snprintf(out, size, "layer %d", a->opt.layer);
    else
        snprintf(out, size, "the final layer");
}

double lam_analysed_alpha(const lam_analysed *m, int layer, int slot)
{
    return lam_parted_mean(&m->probe.alphas, (size_t)(layer * m->probe.M + slot), LAM_ALL_PARTS);
}

double lam_analysed_peak(const lam_analysed *m, int layer, int interval)
{
    return lam_parted_mean(&m->probe.peaks, (size_t)(layer * m->probe.bins + interval),
                           LAM_ALL_PARTS);
}

lam_head_range lam_analysed_heads(const lam_analysed *m, const double *x, int layer)
{
    const int H = m->probe.H;
    const double *row = x + (size_t)layer * (size_t)H;
    lam_head_range v = {0.0, row[0], row[0]};
    for (int h = 0; h < H; h++) {
        v.mean += row[h] / H;
        v.low = fmin(v.low, row[h]);
        v.high = fmax(v.high, row[h]);
    }
    return v;
}

typedef struct losses {
    lam_metric metric;
    const lam_parted *high, *low; /* low may be NULL */
} losses;

static double gap_of(const void *data, int without)
{
    const losses *x = data;
    const double high = lam_metric_of(x->metric, lam_parted_mean(x->high, 0, without));
    return x->low ? high - lam_metric_of(x->metric, lam_parted_mean(x->low, 0, without)) : high;
}

lam_estimate lam_analysis_value(const lam_analysis *a, const lam_parted *nll)
{
    return lam_analysis_gap(a, nll, NULL);
}

lam_estimate lam_analysis_gap(const lam_analysis *a, const lam_parted *high, const lam_parted *low)
{
    return lam_estimate_of(gap_of, &(losses){a->corpus->info.metric, high, low}, high);
}

char *lam_error_shown(char *out, size_t size, double error)
{
    if (error > 0.0)
        snprintf(out, size, "%.3f", error);
    else
        snprintf(out, size, "an unknown amount");
    return out;
}

const char *lam_analysis_unit(const lam_analysis *a)
{
    return a->corpus->info.metric == LAM_PPL ? "perplexity" : "bits per character";
}

int lam_analysis_decimals(const lam_analysis *a)
{
    return a->corpus->info.metric == LAM_PPL ? 2 : 4;
}

static lam_status sections(const lam_analysis *a, lam_page *page)
{
    lam_status (*const all[])(const lam_analysis *, lam_page *) = {
        lam_analysis_results, lam_analysis_claims,  lam_analysis_attention, lam_analysis_alpha,
        lam_analysis_sweep,   lam_analysis_loss,    lam_analysis_passage,   lam_analysis_stories,
        lam_analysis_cost,    lam_analysis_encoding};
    lam_page_heading(page, "short", "In short");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        LAM_TRY(all[i](a, page));
    return LAM_OK;
}

lam_status lam_analysis_may_write(const char *dir)
{
    char path[PATH_MAX];
    LAM_TRY(lam_dir_may_make(dir));
    LAM_TRY(lam_path_join(path, sizeof path, dir, PAGE));
    return lam_page_may_save(path, dir);
}

lam_status lam_analysis_write(const lam_analysis *a, const char *dir)
{
    char path[PATH_MAX], subtitle[256], when[32];
    const time_t now = time(NULL);
    struct tm local;
    strftime(when, sizeof when, "%Y-%m-%d %H:%M", localtime_r(&now, &local));
    snprintf(subtitle, sizeof subtitle, "%d model%s on the %s split of %s, %s, lamemo %s", a->n,
             a->n == 1 ? "" : "s", lam_split_name(a->split), a->corpus->info.name, when,
             LAM_VERSION);
    lam_page *page = NULL;
    LAM_TRY(lam_dir_make(dir));
    LAM_TRY(lam_path_join(path, sizeof path, dir, PAGE));
    LAM_TRY(lam_page_create(
        &page,
        &(lam_page_options){.title = "What the memory does", .subtitle = subtitle, .files = dir}));
    lam_status status = lam_page_begin(page, path);
    if (status == LAM_OK)
        status = sections(a, page);
    if (status == LAM_OK)
        status = lam_page_save(page, path);
    lam_page_free(page);
    return status;
}
