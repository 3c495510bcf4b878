/* comparison.c -- see comparison.h: models and seeds, and compare.json. */
#include "report/comparison.h"

#include "core/file.h"
#include "io/json.h"
#include "model/macs.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1, MAX_JSON = 64 << 20 };

enum { ENDS = 4 };
static const char *const end_names[ENDS] = {"waiting", "done", "diverged", "failed"};

const char *lam_run_end_name(lam_run_end end)
{
    return end_names[end];
}

lam_status lam_comparison_create(lam_comparison **out)
{
    lam_comparison *c = calloc(1, sizeof *c);
    *out = NULL;
    if (c)
        c->options = json_object();
    if (!c || !c->options) {
        free(c);
        return lam_fail(LAM_ERR_MEMORY, "comparison: no memory");
    }
    *out = c;
    return LAM_OK;
}

void lam_comparison_free(lam_comparison *c)
{
    if (c)
        json_decref(c->options);
    free(c);
}

/* Labels become parts of folder names. */
static lam_status check_label(const char *label)
{
    const size_t n = strlen(label);
    int good = n > 0 && n < LAM_LABEL_MAX && isalnum((unsigned char)label[0]);
    for (size_t i = 0; i < n; i++)
        good &= isalnum((unsigned char)label[i]) || strchr("-_.+", label[i]);
    return good ? LAM_OK
                : lam_fail(LAM_ERR_ARG,
                           "'%s' cannot be a label: letters, digits and - _ . +, at most %d", label,
                           LAM_LABEL_MAX - 1);
}

lam_status lam_comparison_add_model(lam_comparison *c, const char *label, const char *definition)
{
    LAM_TRY(check_label(label));
    for (int i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].label, label) == 0)
            return strcmp(c->models[i].definition, definition) == 0
                       ? LAM_OK
                       : lam_fail(LAM_ERR_ARG, "%s is %s here, not %s", label,
                                  c->models[i].definition, definition);
    if (c->n_models == LAM_COMPARE_MAX || strlen(definition) >= LAM_DEFINITION_MAX)
        return lam_fail(LAM_ERR_ARG, "%s: more than %d models, or more than %d characters", label,
                        LAM_COMPARE_MAX, LAM_DEFINITION_MAX - 1);
    lam_compared_model *m = &c->models[c->n_models++];
    *m = (lam_compared_model){0};
    strcpy(m->label, label);
    strcpy(m->definition, definition);
    for (int s = 0; s < LAM_COMPARE_MAX; s++)
        m->runs[s].outcome = lam_outcome_none();
    return LAM_OK;
}

lam_status lam_comparison_add_seed(lam_comparison *c, int seed)
{
    for (int i = 0; i < c->n_seeds; i++)
        if (c->seeds[i] == seed)
            return LAM_OK;
    if (c->n_seeds == LAM_COMPARE_MAX)
        return lam_fail(LAM_ERR_ARG, "more than %d seeds", LAM_COMPARE_MAX);
    c->seeds[c->n_seeds++] = seed;
    return LAM_OK;
}

void lam_comparison_folder(char name[LAM_LABEL_MAX + 16], const lam_comparison *c, int model,
                           int seed)
{
    snprintf(name, LAM_LABEL_MAX + 16, "%s-s%d", c->models[model].label, c->seeds[seed]);
}

int lam_comparison_settled(const lam_comparison *c)
{
    int n = 0;
    for (int m = 0; m < c->n_models; m++)
        for (int s = 0; s < c->n_seeds; s++)
            n += c->models[m].runs[s].end == LAM_RUN_DONE ||
                 c->models[m].runs[s].end == LAM_RUN_DIVERGED;
    return n;
}

/* ---- writing ---- */

static json_t *print_run(const lam_comparison *c, int model, int seed)
{
    char folder[LAM_LABEL_MAX + 16];
    const lam_compared_run *r = &c->models[model].runs[seed];
    const lam_outcome *o = &r->outcome;
    lam_comparison_folder(folder, c, model, seed);
    return json_pack("{s:i, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "seed",
                     c->seeds[seed], "folder", folder, "end", end_names[r->end], "step",
                     (json_int_t)o->step, "valid_loss", lam_json_number(o->valid), "test_loss",
                     lam_json_number(o->test), "valid_stderr", lam_json_number(o->valid_error),
                     "test_stderr", lam_json_number(o->test_error), "test_bits_per_byte",
                     lam_json_number(o->test_bits), "tokens_per_second",
                     lam_json_number(o->tokens_per_second), "seconds", o->seconds);
}

static json_t *print_model(const lam_comparison *c, int model)
{
    const lam_compared_model *m = &c->models[model];
    const lam_spread dev = lam_comparison_spread(c, model, LAM_OF_DEV);
    const lam_spread test = lam_comparison_spread(c, model, LAM_OF_TEST);
    json_t *runs = json_array();
    for (int s = 0; s < c->n_seeds; s++)
        runs = lam_json_add(runs, print_run(c, model, s));
    return json_pack("{s:s, s:s, s:s, s:I, s:i, s:i, s:f, s:o, s:i, s:o, s:o, s:o, s:o, s:o}",
                     "label", m->label, "definition", m->definition, "memory", m->cfg.memory,
                     "parameters", (json_int_t)m->parameters, "mem_len", m->cfg.mem_len,
                     "ext_mem_len", lam_macs_external_rows(&m->cfg), "macs_per_token",
                     lam_macs_token(&m->cfg, m->cfg.memory).total, "tokens_per_second",
                     lam_json_number(lam_comparison_spread(c, model, LAM_OF_SPEED).mean),
                     "runs_done", dev.n, "dev", lam_json_number(dev.mean), "dev_sd",
                     lam_json_number(dev.deviation), "test", lam_json_number(test.mean), "test_sd",
                     lam_json_number(test.deviation), "runs", runs);
}

static json_t *print_comparison(const lam_comparison *c)
{
    json_t *seeds = json_array(), *models = json_array();
    for (int s = 0; s < c->n_seeds; s++)
        seeds = lam_json_add(seeds, json_integer(c->seeds[s]));
    for (int m = 0; m < c->n_models; m++)
        models = lam_json_add(models, print_model(c, m));
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:O, s:o, s:o}", "format", FORMAT, "data",
                     c->corpus.path, "corpus", c->corpus_name, "metric", lam_metric_name(c->metric),
                     "tokens", (json_int_t)c->corpus.tokens, "crc", (json_int_t)c->corpus.crc,
                     "options", c->options, "seeds", seeds, "models", models);
}

lam_status lam_comparison_json(char **text, const lam_comparison *c)
{
    *text = NULL;
    json_t *root = print_comparison(c);
    if (!root)
        return lam_fail(LAM_ERR_MEMORY, "comparison: no memory for its JSON");
    const lam_status status = lam_json_text(text, NULL, root, JSON_INDENT(2));
    json_decref(root);
    return status;
}

static lam_status save_text(const char *dir, const char *name, lam_text *text, lam_status status)
{
    char path[PATH_MAX];
    if (status == LAM_OK)
        status = lam_path_join(path, sizeof path, dir, name);
    if (status == LAM_OK)
        status = lam_file_save(path, text->data, text->size);
    lam_text_free(text);
    return status;
}

lam_status lam_comparison_save(const lam_comparison *c, const char *dir)
{
    char path[PATH_MAX], *json;
    lam_text t = {0};
    LAM_TRY(lam_path_join(path, sizeof path, dir, "compare.json"));
    LAM_TRY(lam_comparison_json(&json, c));
    const lam_status status = lam_file_save(path, json, strlen(json));
    free(json);
    LAM_TRY(status);
    LAM_TRY(save_text(dir, "compare.txt", &t, lam_comparison_models(&t, c, lam_table_text)));
    LAM_TRY(save_text(dir, "compare.md", &t, lam_comparison_models(&t, c, lam_table_markdown)));
    return save_text(dir, "compare.csv", &t, lam_comparison_trainings(&t, c, lam_table_csv));
}

/* ---- reading ---- */

static double number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static lam_status parse_run(lam_comparison *c, lam_compared_model *m, const json_t *run,
                            const char *path)
{
    const json_t *seed = json_object_get(run, "seed");
    const char *end = json_string_value(json_object_get(run, "end"));
    int s = 0, e = 0;
    while (s < c->n_seeds && !(json_is_integer(seed) && json_integer_value(seed) == c->seeds[s]))
        s++;
    while (e < ENDS && !(end && strcmp(end, end_names[e]) == 0))
        e++;
    if (s == c->n_seeds || e == ENDS)
        return lam_fail(LAM_ERR_FORMAT, "%s: a run of %s has no known seed or end", path, m->label);
    m->runs[s] = (lam_compared_run){
        .end = (lam_run_end)e,
        .outcome = {.step = json_integer_value(json_object_get(run, "step")),
                    .diverged = e == LAM_RUN_DIVERGED,
                    .valid = number_of(run, "valid_loss"),
                    .test = number_of(run, "test_loss"),
                    .valid_error = number_of(run, "valid_stderr"),
                    .test_error = number_of(run, "test_stderr"),
                    .test_bits = number_of(run, "test_bits_per_byte"),
                    .tokens_per_second = number_of(run, "tokens_per_second"),
                    .seconds = json_number_value(json_object_get(run, "seconds"))}};
    return LAM_OK;
}

static lam_status parse_model(lam_comparison *c, const json_t *model, const char *path)
{
    const char *label = json_string_value(json_object_get(model, "label"));
    const char *definition = json_string_value(json_object_get(model, "definition"));
    const int before = c->n_models;
    if (!label || !definition)
        return lam_fail(LAM_ERR_FORMAT, "%s: a model without label or definition", path);
    if (lam_comparison_add_model(c, label, definition) != LAM_OK || c->n_models == before)
        return lam_fail(LAM_ERR_FORMAT, "%s: model '%.48s' is bad or there twice", path, label);
    size_t i;
    json_t *run;
    json_array_foreach(json_object_get(model, "runs"), i, run)
        LAM_TRY(parse_run(c, &c->models[before], run, path));
    return LAM_OK;
}

static lam_status parse_head(lam_comparison *c, const json_t *root, const char *path)
{
    const char *data, *name, *metric;
    json_t *options, *seeds, *models;
    json_int_t tokens, crc;
    int format = 0;
    json_error_t error;
    if (json_unpack_ex((json_t *)root, &error, 0, "{s:i, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o}",
                       "format", &format, "data", &data, "corpus", &name, "metric", &metric,
                       "tokens", &tokens, "crc", &crc, "options", &options, "seeds", &seeds,
                       "models", &models) != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: %s", path, error.text);
    if (format != FORMAT || !json_is_object(options) || strlen(data) >= sizeof c->corpus.path)
        return lam_fail(LAM_ERR_FORMAT, "%s: format %d, this program knows %d", path, format,
                        FORMAT);
    snprintf(c->corpus_name, sizeof c->corpus_name, "%s", name);
    strcpy(c->corpus.path, data);
    c->metric = strcmp(metric, lam_metric_name(LAM_PPL)) == 0 ? LAM_PPL : LAM_BPC;
    c->corpus.tokens = tokens;
    c->corpus.crc = (uint32_t)crc;
    size_t i;
    json_t *item;
    json_array_foreach(seeds, i, item) {
        const json_int_t seed = json_integer_value(item);
        if (!json_is_integer(item) || seed < INT_MIN || seed > INT_MAX)
            return lam_fail(LAM_ERR_FORMAT, "%s: seed %zu is not a number of 32 bits", path, i);
        LAM_TRY(lam_comparison_add_seed(c, (int)seed));
    }
    json_array_foreach(models, i, item)
        LAM_TRY(parse_model(c, item, path));
    json_object_foreach(options, name, item)
        if (!json_is_string(item) && !json_is_true(item))
            return lam_fail(LAM_ERR_FORMAT, "%s: option %s is neither a text nor true", path, name);
    return json_object_update(c->options, options) == 0
               ? LAM_OK
               : lam_fail(LAM_ERR_MEMORY, "%s: no memory", path);
}

lam_status lam_comparison_load(lam_comparison *c, const char *dir)
{
    char path[PATH_MAX];
    json_t *root;
    LAM_TRY(lam_path_join(path, sizeof path, dir, "compare.json"));
    LAM_TRY(lam_json_load(&root, path, MAX_JSON));
    const lam_status status = parse_head(c, root, path);
    json_decref(root);
    return status;
}
