/* info_tables.c -- see info_tables.h. */
#include "cli/info_tables.h"

#include "cli/info_model.h"
#include "cli/output.h"
#include "cli/term.h"
#include "core/budget.h"
#include "measure/bench.h"
#include "model/configure.h"
#include "model/macs.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* ---- the cost of a token ---- */

static void print_text(const lam_config *cfg, bool published)
{
    printf("%-26s %12s%s\n", "MACs per token", "millions", published ? "        paper" : "");
    for (int i = 0; lam_mem_all[i]; i++) {
        const lam_mem_ops *mem = lam_mem_all[i];
        printf("%-26s %12.2f", mem->title, lam_macs_token(cfg, mem->name).total / 1e6);
        if (published && mem->paper.macs > 0)
            printf(" %12d", mem->paper.macs);
        putchar('\n');
    }
}

static lam_status print_json(const lam_config *cfg, bool published)
{
    json_t *list = json_array();
    for (int i = 0; lam_mem_all[i]; i++) {
        const lam_mem_ops *mem = lam_mem_all[i];
        json_t *row = json_pack("{s:s, s:s, s:f}", "memory", mem->name, "name", mem->title,
                                "macs_per_token", lam_macs_token(cfg, mem->name).total);
        if (published && mem->paper.macs > 0)
            json_object_set_new(row, "paper", json_real(1e6 * mem->paper.macs));
        json_array_append_new(list, row);
    }
    return lam_print_json(list, JSON_INDENT(2));
}

lam_status lam_info_table(const lam_config *cfg, const char *preset, bool json)
{
    const bool published = strcmp(preset, "wt103-base") == 0;
    if (cfg->mem_len == 0)
        return lam_fail(LAM_ERR_ARG, "--table compares memories: mem_len must not be 0");
    if (json)
        return print_json(cfg, published);
    print_text(cfg, published);
    return LAM_OK;
}

/* ---- the presets ---- */

typedef struct row {
    const lam_preset *preset;
    lam_config cfg;
    size_t parameters;
    lam_footprint bytes;
    double seconds; /* of a training step; 0: not known */
    bool measured;  /* else estimated */
} row;

enum { ROWS = 16 };

/* Sizes, parameters and bytes of each preset; returns how many there are. */
static lam_status list_presets(row rows[ROWS], int *n, lam_dev *dev)
{
    for (*n = 0; *n < ROWS && lam_preset_name(*n); (*n)++) {
        row *const r = &rows[*n];
        lam_model model;
        lam_settings settings;
        *r = (row){.preset = lam_preset_find(lam_preset_name(*n))};
        LAM_TRY(lam_config_preset(&r->cfg, r->preset->name, LAM_MEMORY_DEFAULT));
        lam_settings_defaults(&settings);
        lam_settings_preset(&settings, r->preset->name);
        settings.optim = LAM_OPTIM_MUON; /* of the default recipe */
        lam_status status = lam_model_declare(&model, &r->cfg, dev);
        if (status == LAM_OK)
            status = lam_footprint_measure(&r->bytes, &model, &settings);
        if (status == LAM_OK)
            r->parameters = lam_model_count(&model);
        lam_model_undeclare(&model);
        LAM_TRY(status);
    }
    return LAM_OK;
}

/* Measures a step where a bench takes a few seconds, judged by the rate of the first preset, the smallest. */
static void time_presets(row *rows, int n, lam_dev *dev)
{
    const double patience = 1.5; /* seconds a step: a bench makes several */
    double rate = 0.0;           /* multiply-accumulates a second */
    for (int i = 0; i < n; i++) {
        const int batch = rows[i].preset->batch_size;
        const double macs = lam_macs_step(&rows[i].cfg, batch);
        const double guess = rate > 0.0 ? macs / rate : 0.0;
        lam_bench_result result;
        const lam_bench_options wanted = {
            .kind = LAM_BENCH_TRAIN, .batch = batch, .seconds = 1.0, .optim = LAM_OPTIM_MUON};
        rows[i].seconds = guess;
        if (guess > patience || lam_bench_run(&result, &rows[i].cfg, dev, &wanted) != LAM_OK)
            continue; /* too long, or no memory for it */
        rows[i].seconds = result.seconds;
        rows[i].measured = true;
        rate = macs / result.seconds;
    }
}

static const char HEAD[] = "%-15s %6s %6s %6s %6s %7s %6s %8s %12s";
static const char BODY[] = "%-15s %6d %6d %6d %6d %7d %6d %8d %12s";

static void print_head(FILE *out)
{
    fprintf(out, HEAD, "preset", "layers", "width", "heads", "inner", "segment", "batch", "steps",
            "parameters");
}

static void print_row(FILE *out, const row *r)
{
    char count[32];
    const lam_preset *const p = r->preset;
    fprintf(out, BODY, p->name, p->n_layer, p->d_model, p->n_head, p->d_inner, p->len,
            p->batch_size, p->max_step,
            lam_format_count(count, sizeof count, (int64_t)r->parameters));
}

static void print_presets(const row *rows, int n, const lam_dev *dev)
{
    char bytes[32], step[32];
    print_head(stdout);
    printf(" %10s %10s\n", "memory", "step");
    for (int i = 0; i < n; i++) {
        const row *const r = &rows[i];
        const bool slow = r->seconds >= 1.0;
        snprintf(step, sizeof step, r->seconds > 0.0 ? "%s%.3g %s" : "unknown",
                 r->measured ? "" : "~", slow ? r->seconds : 1e3 * r->seconds, slow ? "s" : "ms");
        print_row(stdout, r);
        printf(" %10s %10s\n", lam_format_size(bytes, sizeof bytes, (double)r->bytes.all_train),
               step);
    }
    printf("\nmemory %s, recipe fast, device %s. The memory length equals the segment length. "
           "memory: needed to train;\n"
           "step: time of a training step on this machine, ~ where it is estimated from a smaller "
           "preset.\n"
           "Parameters and memory follow the vocabulary of your corpus: lamemo info --preset NAME "
           "--data DIR.\n",
           LAM_MEMORY_DEFAULT, dev->ops->name);
}

static lam_status print_presets_json(const row *rows, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        const row *const r = &rows[i];
        const lam_preset *const p = r->preset;
        json_t *item =
            json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I}", "preset", p->name,
                      "n_layer", p->n_layer, "d_model", p->d_model, "n_head", p->n_head, "d_inner",
                      p->d_inner, "tgt_len", p->len, "mem_len", p->len, "batch_size", p->batch_size,
                      "max_step", p->max_step, "parameters", (json_int_t)r->parameters, "bytes",
                      (json_int_t)r->bytes.all_train);
        json_object_set_new(item, "step_seconds",
                            r->seconds > 0.0 ? json_real(r->seconds) : json_null());
        json_object_set_new(item, "step_measured", json_boolean(r->measured));
        json_array_append_new(list, item);
    }
    return lam_print_json(list, JSON_INDENT(2));
}

lam_status lam_info_presets(lam_dev *dev, bool json)
{
    row rows[ROWS];
    int n;
    LAM_TRY(list_presets(rows, &n, dev));
    time_presets(rows, n, dev);
    if (json)
        return print_presets_json(rows, n);
    print_presets(rows, n, dev);
    return LAM_OK;
}

void lam_info_presets_help(FILE *out)
{
    row rows[ROWS];
    const lam_ops *ops;
    lam_dev *dev = NULL;
    int n;
    if (lam_ops_find(&ops, "ref") != LAM_OK || ops->open(&dev, &(lam_dev_options){0}) != LAM_OK)
        return; /* help without a table is better than none */
    if (list_presets(rows, &n, dev) == LAM_OK) {
        fputs("  ", out);
        print_head(out);
        fputc('\n', out);
        for (int i = 0; i < n; i++) {
            fputs("  ", out);
            print_row(out, &rows[i]);
            fputc('\n', out);
        }
        fputs("  The memory length equals the segment length; the number of parameters depends on "
              "the vocabulary.\n"
              "  lamemo info --presets adds memory and time per step on this machine.\n",
              out);
    }
    dev->ops->close(dev);
}
