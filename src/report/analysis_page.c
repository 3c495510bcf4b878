/* analysis_page.c -- an analysis becomes a page. */
#include "report/analysis_page.h"

#include "core/file.h"
#include "report/analysis_int.h"
#include "train/run.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

static const char PAGE[] = "report.html";

static lam_status sections(const lam_analysis *a, lam_page *page)
{
    lam_status (*const all[])(const lam_analysis *, lam_page *) = {
        lam_analysis_results, lam_analysis_claims, lam_analysis_attention, lam_analysis_alpha,
        lam_analysis_sweep,   lam_analysis_loss,   lam_analysis_passage,   lam_analysis_stories};
    lam_page_heading(page, "short", "In short");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        LAM_TRY(all[i](a, page));
    return a->opt.paper ? lam_analysis_paper(a, page) : LAM_OK;
}

lam_status lam_analysis_figures(const lam_analysis *a, lam_page *page,
                                lam_figure_maker *const *makers, int n)
{
    lam_status status = LAM_OK;
    for (int i = 0; i < n && status == LAM_OK; i++) {
        lam_curves curves = {0};
        status = makers[i](a, page, &curves);
        lam_curves_free(&curves);
    }
    return status;
}

lam_status lam_analysis_may_write(const char *dir)
{
    char path[PATH_MAX];
    LAM_TRY(lam_dir_may_make(dir));
    LAM_TRY(lam_path_join(path, sizeof path, dir, PAGE));
    return lam_page_may_save(path, dir);
}

lam_status lam_analysis_write(const lam_analysis *a, const char *dir, const char *command)
{
    char path[PATH_MAX], subtitle[256], when[32], split[32] = "";
    const time_t now = time(NULL);
    struct tm local;
    strftime(when, sizeof when, "%Y-%m-%d %H:%M", localtime_r(&now, &local));
    if (!a->corpus->text)
        snprintf(split, sizeof split, "the %s split of ", lam_split_name(a->split));
    snprintf(subtitle, sizeof subtitle, "%d model%s on %s%s, %s, lamemo %s", a->n,
             a->n == 1 ? "" : "s", split, a->corpus->info.name, when, LAM_VERSION);
    lam_page *page = NULL;
    LAM_TRY(lam_dir_make(dir));
    LAM_TRY(lam_path_join(path, sizeof path, dir, PAGE));
    LAM_TRY(lam_page_create(&page, &(lam_page_options){.title = "What the memory does",
                                                       .subtitle = subtitle,
                                                       .command = command,
                                                       .files = dir}));
    lam_status status = lam_page_begin(page, path);
    if (status == LAM_OK)
        status = sections(a, page);
    if (status == LAM_OK)
        status = lam_page_save(page, path);
    lam_page_free(page);
    return status;
}
