/* cmd_report.c -- `lamemo report`: training curves as a page, files and letters. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "core/log.h"
#include "data/json_name.h"
#include "draw/textplot.h"
#include "io/json.h"
#include "report/run_page.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef struct report_options {
    const char *out, *title;
    int over, log, plot, interval;
    double smooth;
    lam_int_list at;
    bool watch, json;
} report_options;

enum { LOG_NONE, LOG_X, LOG_Y, LOG_XY };
static const char *const overs[] = {"step", "time", NULL};
static const char *const logs[] = {"none", "x", "y", "xy", NULL};
static const char *const plots[] = {"train", "valid", "aux",  "grad-norm",
                                    "lr",    "speed", "none", NULL};

#define OPT(field) offsetof(report_options, field)
static const lam_option options[] = {
    {"out", 'o', "FILE|DIR", LAM_OPT_PATH, OPT(out), .shown = "only the terminal",
     .aliases = "html",
     .help = "Write the page NAME.html or, for any other name, a folder with report.html and every "
             "figure as SVG, CSV and JSON in figures/."},
    {"title", 0, "TEXT", LAM_OPT_STRING, OPT(title), .shown = "the names of the runs",
     .help = "Title of the page."},
    {"over", 'x', "AXIS", LAM_OPT_CHOICE, OPT(over), "step", .choices = overs,
     .help = "Draw curves over steps or over time."},
    {"at", 0, "N,...", LAM_OPT_INTS, OPT(at), .max = 2147483647, .shown = "no such table",
     .help = "Also print a table of the validation loss after these numbers of steps (with --over "
             "time, of seconds), interpolated between evaluations."},
    {"log", 0, "AXES", LAM_OPT_CHOICE, OPT(log), "none", .choices = logs,
     .help = "Use logarithmic axes for the losses; the page can switch them."},
    {"smooth", 0, "W", LAM_OPT_DOUBLE, OPT(smooth), "0", .max = 0.999,
     .help = "Smooth curves by a moving average in which the past has this weight; 0.9 averages "
             "about ten records. The page has a slider."},
    {"plot", 0, "NAME", LAM_OPT_CHOICE, OPT(plot), "train", .choices = plots,
     .help = "Curve to plot on the terminal."},
    {"watch", 'w', NULL, LAM_OPT_FLAG, OPT(watch),
     .help = "Redraw the terminal and rewrite the page, which reloads itself, until every run has "
             "ended or Ctrl-C is pressed."},
    {"interval", 0, "S", LAM_OPT_INT, OPT(interval), "5", .min = 1, .max = 86400,
     .help = "Seconds between updates with --watch."},
    {"json", 0, NULL, LAM_OPT_FLAG, OPT(json),
     .help = "Print one JSON object instead of tables and plot."},
    {0},
};

static lam_run_figures_options figures_of(const report_options *o)
{
    return (lam_run_figures_options){
        .over = o->over == 0 ? LAM_OVER_STEPS : LAM_OVER_TIME,
        .x = o->log == LOG_X || o->log == LOG_XY ? LAM_SCALE_LOG : LAM_SCALE_LINEAR,
        .y = o->log == LOG_Y || o->log == LOG_XY ? LAM_SCALE_LOG : LAM_SCALE_LINEAR,
        .smooth = o->smooth};
}

/* ---- the terminal ---- */

typedef struct printing {
    const char *wanted;
    lam_text *text;
} printing;

/* LC_ALL, LC_CTYPE, LANG: the first that is set decides. */
static bool speaks_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static lam_status print_figure(void *user, const lam_figure *figure)
{
    printing *const p = user;
    if (strcmp(figure->id, p->wanted) != 0)
        return LAM_OK;
    lam_text_add(p->text, "\n");
    lam_figure_text(p->text, figure,
                    &(lam_textplot){.width = lam_term_width(stdout) - 1,
                                    .height = 20,
                                    .utf8 = speaks_utf8(),
                                    .colour = *lam_term_style(stdout, LAM_STYLE_BOLD) != '\0'});
    return LAM_OK;
}

/* Below what is there, unless it is empty; frees it. */
static void add_table(lam_text *text, lam_table *table)
{
    if (table->rows > 0) {
        lam_text_add(text, "\n");
        lam_table_for_stdout(text, table);
    }
    lam_runs_table_free(table);
}

static lam_status print_text(const report_options *o, const lam_runs *runs)
{
    lam_text text = {0};
    lam_table table;
    const lam_run_figures_options figures = figures_of(o);
    LAM_TRY(lam_runs_summary(&table, runs));
    lam_table_for_stdout(&text, &table);
    lam_runs_table_free(&table);
    for (int i = 0; i < runs->n; i++) {
        char warning[512];
        if (runs->list[i].history.records == 0)
            lam_text_format(&text, "%s: nothing is recorded yet\n", runs->list[i].name);
        lam_run_warning(warning, sizeof warning, &runs->list[i], lam_runs_unit(runs));
        lam_text_format(&text, *warning ? "warning: %s\n" : "%s", warning);
    }
    LAM_TRY(lam_runs_at(&table, runs, figures.over, o->at.v, o->at.n));
    add_table(&text, &table);
    LAM_TRY(lam_runs_changes(&table, runs));
    if (table.rows > 0)
        lam_text_add(&text, "\nsettings that changed on resuming");
    add_table(&text, &table);
    LAM_TRY(lam_runs_differences(&table, runs));
    if (runs->n > 1)
        add_table(&text, &table);
    else
        lam_runs_table_free(&table);
    lam_status status = lam_run_figures(runs, &figures, print_figure,
                                        &(printing){.wanted = plots[o->plot], .text = &text});
    if (status == LAM_OK)
        status = lam_text_status(&text, "report");
    if (status == LAM_OK) {
        if (o->watch && lam_term_is_tty(stdout))
            fputs("\033[H\033[J", stdout); /* from the top, and nothing below */
        fwrite(text.data, 1, text.size, stdout);
        fflush(stdout);
    }
    lam_text_free(&text);
    return status;
}

/* ---- JSON ---- */

static json_t *run_json(const lam_runview *run)
{
    json_t *curves = json_object();
    for (int i = 0; i < run->history.n; i++) {
        const lam_curve *c = &run->history.curves[i];
        const int least = lam_curve_least(c);
        json_object_set_new(curves, c->name,
                            json_pack("{s:i, s:o, s:o, s:o, s:o}", "records", c->n, "last",
                                      lam_json_number(lam_curve_last(c)), "last_step",
                                      lam_json_number(c->n > 0 ? c->step[c->n - 1] : NAN), "least",
                                      lam_json_number(least < 0 ? NAN : c->value[least]),
                                      "least_step",
                                      lam_json_number(least < 0 ? NAN : c->step[least])));
    }
    json_t *changes = json_array();
    for (int i = 0; i < run->history.n_changes; i++) {
        const lam_change *c = &run->history.changes[i];
        json_array_append_new(changes, json_pack("{s:f, s:s, s:s, s:s}", "step", c->step, "setting",
                                                 c->name, "before", c->before, "after", c->after));
    }
    return json_pack("{s:o, s:o, s:i, s:i, s:b, s:O, s:o, s:o}", "name", lam_json_name(run->name),
                     "path", lam_json_name(run->path), "records", run->history.records, "bad_lines",
                     run->history.bad, "ended", lam_run_ended(run), "config", run->config,
                     "changes", changes, "metrics", curves);
}

/* Rows of the table as objects: {"seconds": 300, "fast": 1.4, "paper": null}. */
static lam_status at_json(json_t **out, const report_options *o, const lam_runs *runs)
{
    lam_table table;
    LAM_TRY(lam_runs_at(&table, runs, figures_of(o).over, o->at.v, o->at.n));
    *out = json_array();
    for (int r = 0; r < table.rows; r++) {
        json_t *row = json_object();
        for (int c = 0; c < table.cols; c++)
            json_object_set_new(row, table.columns[c].name,
                                lam_json_number(table.cells[r * table.cols + c].number));
        json_array_append_new(*out, row);
    }
    lam_runs_table_free(&table);
    return LAM_OK;
}

static lam_status print_json(const report_options *o, const lam_runs *runs)
{
    json_t *at, *list = json_array();
    LAM_TRY(at_json(&at, o, runs));
    for (int i = 0; i < runs->n; i++)
        json_array_append_new(list, run_json(&runs->list[i]));
    json_t *root = json_pack("{s:s, s:o, s:o}", "unit", lam_unit_name(lam_runs_unit(runs)), "at",
                             at, "runs", list);
    return lam_print_json(root, JSON_COMPACT | JSON_REAL_PRECISION(10));
}

/* ---- one look, or many ---- */

static lam_status look(const report_options *o, const char *command, const lam_runs *runs,
                       int refresh)
{
    LAM_TRY(o->json ? print_json(o, runs) : print_text(o, runs));
    if (!o->out)
        return LAM_OK;
    return lam_run_page_save(runs, &(lam_run_page){.title = o->title,
                                                   .out = o->out,
                                                   .command = command,
                                                   .refresh = refresh,
                                                   .figures = figures_of(o),
                                                   .n_at = o->at.n,
                                                   .at = o->at.v});
}

static void say_where(const report_options *o)
{
    char path[PATH_MAX];
    if (!o->out || lam_run_page_path(path, sizeof path, o->out) != LAM_OK)
        return;
    lam_log(LAM_LOG_INFO, "page: %s", path);
}

static void wait_seconds(int seconds)
{
    for (int i = 0; i < 10 * seconds && lam_stop_signal() == 0; i++)
        usleep(100000);
}

/* Until every run has ended, or Ctrl-C: the page is left without reloading either way. */
static lam_status watch(const lam_args *args, const report_options *o)
{
    for (;;) {
        lam_runs runs;
        lam_status status = lam_runs_open(&runs, args->n_operands, args->operands);
        if (status == LAM_ERR_IO && lam_stop_signal() == 0) { /* not begun yet */
            lam_log(LAM_LOG_INFO, "waiting: %s", lam_error());
            wait_seconds(o->interval);
            continue;
        }
        LAM_TRY(status);
        int ended = runs.n >= args->n_operands;
        for (int i = 0; i < runs.n; i++)
            ended &= lam_run_ended(&runs.list[i]);
        const bool last = ended || lam_stop_signal() != 0;
        status = look(o, args->line, &runs, last ? 0 : o->interval);
        lam_runs_free(&runs);
        if (status != LAM_OK || last)
            return status;
        wait_seconds(o->interval);
    }
}

static lam_status run(const lam_args *args)
{
    const report_options *o = args->options;
    if (!o->watch && lam_option_given(args, "interval"))
        return lam_fail(LAM_ERR_ARG, "--interval is for --watch only");
    if (o->out)
        LAM_TRY(lam_run_page_may_save(o->out));
    if (o->watch) {
        LAM_TRY(watch(args, o));
    } else {
        lam_runs runs;
        LAM_TRY(lam_runs_open(&runs, args->n_operands, args->operands));
        const lam_status status = look(o, args->line, &runs, 0);
        lam_runs_free(&runs);
        LAM_TRY(status);
    }
    say_where(o);
    return LAM_OK;
}

const lam_command lam_command_report = {
    .name = "report",
    .summary = "show the training curves of runs",
    .operands = "RUN...",
    .operands_min = 1,
    .operands_max = -1,
    .description = "Shows what runs have logged: a table of their progress and results, the "
                   "settings in which they differ, and their curves. The terminal gets a small "
                   "plot; --out writes one HTML page that works offline, where values can be read "
                   "with the pointer and the arrow keys and curves can be smoothed, zoomed and "
                   "drawn on log axes. A RUN is a run folder of lamemo train, or a metrics.jsonl, "
                   "compressed or not. Runs may still be training: an unfinished line is left out.",
    .options = options,
    .options_size = sizeof(report_options),
    .examples = "lamemo report runs/tiny\n"
                "# two runs in one page, with the files of every figure\n"
                "lamemo report runs/lamemo runs/xl --out report\n"
                "# bpc after 5, 10 and 25 minutes\n"
                "lamemo report runs/fast runs/paper --over time --at 300,600,1500\n"
                "# while it trains\n"
                "lamemo report runs/tiny --watch --out runs/tiny/report.html",
    .run = run,
};
