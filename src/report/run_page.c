/* run_page.c -- see run_page.h. */
#include "report/run_page.h"

#include "core/file.h"
#include "draw/page.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char FIGURES[] = "figures";

static bool is_file(const char *out)
{
    const size_t length = strlen(out);
    return length > 5 && strcmp(out + length - 5, ".html") == 0;
}

lam_status lam_run_page_path(char *path, size_t size, const char *out)
{
    if (!is_file(out))
        return lam_path_join(path, size, out, "report.html");
    if ((size_t)snprintf(path, size, "%s", out) >= size)
        return lam_fail(LAM_ERR_ARG, "%s: path longer than %zu bytes", out, size);
    return LAM_OK;
}

lam_status lam_run_page_may_save(const char *out)
{
    char path[PATH_MAX], files[PATH_MAX];
    LAM_TRY(lam_run_page_path(path, sizeof path, out));
    if (is_file(out)) {
        LAM_TRY(lam_file_may_make(path));
        return lam_page_may_save(path, NULL);
    }
    LAM_TRY(lam_dir_may_make(out));
    LAM_TRY(lam_path_join(files, sizeof files, out, FIGURES));
    return lam_page_may_save(path, files);
}

static lam_status add_figure(void *user, const lam_figure *figure)
{
    return lam_page_figure(user, figure);
}

static lam_status add_changes(lam_page *page, const lam_runs *runs)
{
    lam_table table;
    LAM_TRY(lam_runs_changes(&table, runs));
    const lam_status status = table.rows > 0 ? lam_page_table(page, &table) : LAM_OK;
    lam_runs_table_free(&table);
    return status;
}

static lam_status add_tables(lam_page *page, const lam_runs *runs, const lam_run_page *how)
{
    lam_table table;
    LAM_TRY(lam_runs_summary(&table, runs));
    lam_page_heading(page, "result", "Result");
    lam_status status = lam_page_table(page, &table);
    lam_runs_table_free(&table);
    for (int i = 0; i < runs->n && status == LAM_OK; i++) {
        char warning[512];
        lam_page_text(
            page, lam_run_warning(warning, sizeof warning, &runs->list[i], lam_runs_unit(runs)));
    }
    if (status == LAM_OK)
        status = add_changes(page, runs);
    if (status == LAM_OK && how->n_at > 0) {
        LAM_TRY(lam_runs_at(&table, runs, how->figures.over, how->at, how->n_at));
        status = lam_page_table(page, &table);
        lam_runs_table_free(&table);
    }
    if (status != LAM_OK || runs->n < 2)
        return status;
    LAM_TRY(lam_runs_differences(&table, runs));
    if (table.rows > 0)
        status = lam_page_table(page, &table);
    else
        lam_page_text(
            page,
            lam_runs_configured(runs)
                ? "As far as their folders tell, the runs were configured alike."
                : "How the runs were configured is not known: their folders have no config.json.");
    lam_runs_table_free(&table);
    return status;
}

/* What one run wrote on the way: a few samples, evenly chosen, the first and the last among them. */
static lam_status add_samples(lam_page *page, const lam_runview *run, int number)
{
    enum { SHOWN = 6 };
    const lam_history *h = &run->history;
    const int n = h->n_samples < SHOWN ? h->n_samples : SHOWN;
    char id[32], title[256], steps[SHOWN][48], count[32];
    const char *names[SHOWN], *texts[SHOWN];
    for (int k = 0; k < n; k++) {
        const lam_sample *s = &h->samples[n < 2 ? 0 : k * (h->n_samples - 1) / (n - 1)];
        snprintf(steps[k], sizeof *steps, "step %s",
                 lam_count_shown(count, sizeof count, (int64_t)s->step));
        names[k] = steps[k];
        texts[k] = s->text;
    }
    snprintf(id, sizeof id, "samples-%d", number);
    snprintf(title, sizeof title, "What %s wrote", run->name);
    return lam_page_texts(page, &(lam_texts){.id = id,
                                             .title = title,
                                             .prompt = h->samples[h->n_samples - 1].prompt,
                                             .n = n,
                                             .names = names,
                                             .texts = texts});
}

static lam_status add_all_samples(lam_page *page, const lam_runs *runs)
{
    bool any = false;
    for (int i = 0; i < runs->n; i++) {
        if (runs->list[i].history.n_samples == 0)
            continue;
        if (!any)
            lam_page_heading(page, "samples", "Samples");
        any = true;
        LAM_TRY(add_samples(page, &runs->list[i], i + 1));
    }
    return LAM_OK;
}

static lam_status fill(lam_page *page, const lam_runs *runs, const lam_run_page *how)
{
    LAM_TRY(add_tables(page, runs, how));
    lam_page_heading(page, "curves", "Curves");
    LAM_TRY(lam_run_figures(runs, &how->figures, add_figure, page));
    return add_all_samples(page, runs);
}

/* "lamemo and xl", "lamemo, xl and 3 more". */
static void names_of(char *out, size_t size, const lam_runs *runs)
{
    const int shown = runs->n > 4 ? 3 : runs->n;
    size_t used = 0;
    for (int i = 0; i < shown && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s",
                                 i == 0             ? ""
                                 : i == runs->n - 1 ? " and "
                                                    : ", ",
                                 runs->list[i].name);
    if (shown < runs->n && used < size)
        snprintf(out + used, size - used, " and %d more", runs->n - shown);
}

lam_status lam_run_page_save(const lam_runs *runs, const lam_run_page *how)
{
    char path[PATH_MAX], files[PATH_MAX], title[512], subtitle[128], when[64];
    const time_t now = time(NULL);
    struct tm parts;
    lam_page *page;
    names_of(title, sizeof title, runs);
    strftime(when, sizeof when, "%Y-%m-%d %H:%M", localtime_r(&now, &parts));
    snprintf(subtitle, sizeof subtitle, "%d training run%s, as of %s.", runs->n,
             runs->n == 1 ? "" : "s", when);
    LAM_TRY(lam_run_page_path(path, sizeof path, how->out));
    if (!is_file(how->out)) {
        LAM_TRY(lam_path_join(files, sizeof files, how->out, FIGURES));
        LAM_TRY(lam_dir_make(how->out));
    }
    LAM_TRY(lam_page_create(&page, &(lam_page_options){.title = how->title ? how->title : title,
                                                       .subtitle = subtitle,
                                                       .command = how->command,
                                                       .files = is_file(how->out) ? NULL : files,
                                                       .refresh = how->refresh}));
    lam_status status = is_file(how->out) ? LAM_OK : lam_page_begin(page, path);
    if (status == LAM_OK)
        status = fill(page, runs, how);
    if (status == LAM_OK)
        status = lam_page_save(page, path);
    lam_page_free(page);
    return status;
}
