/* state.c -- see state.h.  Doubles are printed with 17 digits and come back bit for bit; numbers of
 * 64 bits without sign are kept as the signed integer of the same bits. */
#include "train/state.h"

#include "core/file.h"
#include "io/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STATE = 1 << 26, MAX_SHIFTS = 1 << 20 };

void lam_train_state_init(lam_train_state *s, const lam_settings *settings)
{
    *s = (lam_train_state){.grown = settings->short_mem == 0,
                           .plateau = {.factor = 1.0, .best = INFINITY},
                           .best_loss = INFINITY,
                           .settings = *settings};
}

void lam_train_state_free(lam_train_state *s)
{
    free(s->shifts);
    s->shifts = NULL;
    s->n_shifts = 0;
}

/* ---- writing ---- */

static json_t *print_position(const lam_train_state *s)
{
    json_t *shifts = json_array();
    for (int i = 0; i < s->n_shifts; i++)
        shifts = lam_json_add(shifts, json_integer(s->shifts[i]));
    const lam_rng *rng = &s->position.rng;
    return json_pack("{s:I, s:I, s:[I, I, I], s:o}", "epoch", (json_int_t)s->position.epoch, "row",
                     (json_int_t)s->position.row, "rng", (json_int_t)rng->key,
                     (json_int_t)rng->stream, (json_int_t)rng->next, "shifts", shifts);
}

static json_t *print_counts(const lam_params *params)
{
    json_t *counts = json_object();
    for (int i = 0; i < params->n; i++)
        counts = lam_json_set(counts, params->list[i].name, json_integer(params->list[i].steps));
    return counts;
}

static json_t *print_state(const lam_train_state *s, const lam_params *params)
{
    json_t *root = json_pack(
        "{s:i, s:I, s:s, s:o, s:{s:o, s:I}, s:{s:f, s:o, s:i}, s:I, s:f, s:{s:f, s:I, s:f}}",
        "format", LAM_STATE_FORMAT, "step", (json_int_t)s->step, "device", s->device, "position",
        print_position(s), "best", "loss", lam_json_number(s->best_loss), "step",
        (json_int_t)s->best_step, "plateau", "factor", s->plateau.factor, "best",
        lam_json_number(s->plateau.best), "bad", s->plateau.bad, "eval_step",
        (json_int_t)s->eval_step, "elapsed", s->elapsed, "logged", "nll", s->log_nll, "tokens",
        (json_int_t)s->log_tokens, "aux", s->log_aux);
    json_t *files = json_pack("{s:I, s:I, s:I, s:s}", "metrics", (json_int_t)s->marks.metrics,
                              "log", (json_int_t)s->marks.log, "events",
                              (json_int_t)s->marks.events, "events_name", s->marks.events_name);
    json_t *corpus = json_pack("{s:s, s:I, s:I}", "path", s->corpus.path, "tokens",
                               (json_int_t)s->corpus.tokens, "crc32", (json_int_t)s->corpus.crc);
    root = lam_json_set(root, "files", files);
    root = lam_json_set(root, "corpus", corpus);
    root = lam_json_set(root, "grown", json_boolean(s->grown));
    if (s->averaged > 0)
        root = lam_json_set(root, "averaged", json_integer(s->averaged));
    root = lam_json_set(root, "evals_since_best", json_integer(s->evals_since_best));
    root = lam_json_set(root, "settings", lam_settings_print(&s->settings));
    return lam_json_set(root, "param_steps", print_counts(params));
}

lam_status lam_train_state_save(const lam_train_state *s, const lam_params *params,
                                const char *path)
{
    json_t *root = print_state(s, params);
    if (!root)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory, or a name that is not UTF-8", path);
    return lam_json_save(path, root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
}

/* ---- reading ---- */

static double number_or_infinity(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : INFINITY;
}

static lam_status read_position(lam_train_state *s, json_t *object, const char *path)
{
    json_int_t epoch, row, key, stream, next;
    json_t *shifts;
    json_error_t error;
    if (json_unpack_ex(object, &error, 0, "{s:I, s:I, s:[I, I, I], s:o}", "epoch", &epoch, "row",
                       &row, "rng", &key, &stream, &next, "shifts", &shifts) != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: position: %s", path, error.text);
    s->position =
        (lam_batcher_position){epoch, row, {(uint64_t)key, (uint64_t)stream, (uint64_t)next}};
    const size_t n = json_array_size(shifts);
    if (n > MAX_SHIFTS)
        return lam_fail(LAM_ERR_FORMAT, "%s: %zu shifts, at most %d", path, n, MAX_SHIFTS);
    s->shifts = calloc(n + 1, sizeof *s->shifts);
    if (!s->shifts)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", path);
    s->n_shifts = (int)n;
    for (size_t i = 0; i < n; i++)
        s->shifts[i] = json_integer_value(json_array_get(shifts, i));
    return LAM_OK;
}

static lam_status copy_text(char *out, size_t size, const char *text, const char *path)
{
    if ((size_t)snprintf(out, size, "%s", text) >= size)
        return lam_fail(LAM_ERR_FORMAT, "%s: a text is longer than %zu bytes", path, size - 1);
    return LAM_OK;
}

/* A number that no run can have comes from no run of ours. */
static lam_status check_fields(const lam_train_state *s, const char *path)
{
    const struct {
        const char *name;
        double value, most;
    } fields[] = {{"step", (double)s->step, LAM_MANY},
                  {"best.step", (double)s->best_step, (double)s->step},
                  {"plateau.factor", s->plateau.factor, 1.0},
                  {"plateau.bad", s->plateau.bad, LAM_MANY},
                  {"eval_step", (double)s->eval_step, (double)s->step},
                  {"evals_since_best", (double)s->evals_since_best, LAM_MANY},
                  {"averaged", (double)s->averaged, (double)s->step},
                  {"elapsed", s->elapsed, LAM_MANY},
                  {"logged.nll", s->log_nll, DBL_MAX}, /* a run that went wild may still go on */
                  {"logged.tokens", (double)s->log_tokens, LAM_MANY},
                  {"files.metrics", (double)s->marks.metrics, LAM_MANY},
                  {"files.log", (double)s->marks.log, LAM_MANY},
                  {"files.events", (double)s->marks.events, LAM_MANY}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!(fields[i].value >= 0.0 && fields[i].value <= fields[i].most))
            return lam_fail(LAM_ERR_FORMAT, "%s: %s is %.10g, must be 0 to %.10g", path,
                            fields[i].name, fields[i].value, fields[i].most);
    return LAM_OK;
}

static lam_status read_fields(lam_train_state *s, json_t *root, const char *path)
{
    json_int_t step, best_step, eval_step, tokens, metrics, log, events, corpus, crc;
    json_t *best, *plateau;
    const char *device, *name, *data;
    json_error_t error;
    if (json_unpack_ex(root, &error, 0,
                       "{s:I, s:s, s:{s:o, s:I}, s:{s:F, s:o, s:i}, s:I, s:F, s:{s:F, s:I, s?F},"
                       " s:{s:I, s:I, s:I, s:s}, s:{s:s, s:I, s:I}}",
                       "step", &step, "device", &device, "best", "loss", &best, "step", &best_step,
                       "plateau", "factor", &s->plateau.factor, "best", &plateau, "bad",
                       &s->plateau.bad, "eval_step", &eval_step, "elapsed", &s->elapsed, "logged",
                       "nll", &s->log_nll, "tokens", &tokens, "aux", &s->log_aux, "files",
                       "metrics", &metrics, "log", &log, "events", &events, "events_name", &name,
                       "corpus", "path", &data, "tokens", &corpus, "crc32", &crc) != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: %s", path, error.text);
    s->step = step;
    s->grown = !json_is_false(json_object_get(root, "grown")); /* older runs always were */
    s->evals_since_best = json_integer_value(json_object_get(root, "evals_since_best"));
    s->averaged = json_integer_value(json_object_get(root, "averaged"));
    s->best_loss = number_or_infinity(best);
    s->best_step = best_step;
    s->plateau.best = number_or_infinity(plateau);
    s->eval_step = eval_step;
    s->log_tokens = tokens;
    s->marks.metrics = metrics;
    s->marks.log = log;
    s->marks.events = events;
    s->corpus.tokens = corpus;
    s->corpus.crc = (uint32_t)crc;
    LAM_TRY(check_fields(s, path));
    if (*name && !lam_runlog_events_name(name))
        return lam_fail(LAM_ERR_FORMAT, "%s: files.events_name '%s' is no event file's", path,
                        name);
    LAM_TRY(copy_text(s->device, sizeof s->device, device, path));
    LAM_TRY(copy_text(s->marks.events_name, sizeof s->marks.events_name, name, path));
    return copy_text(s->corpus.path, sizeof s->corpus.path, data, path);
}

static lam_status read_counts(lam_params *params, const json_t *counts, const char *path)
{
    for (int i = 0; i < params->n; i++) {
        const json_t *value = json_object_get(counts, params->list[i].name);
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            (double)json_integer_value(value) > LAM_MANY)
            return lam_fail(LAM_ERR_FORMAT, "%s: param_steps of %s must be 0 to %g", path,
                            params->list[i].name, LAM_MANY);
        params->list[i].steps = (long)json_integer_value(value);
    }
    return LAM_OK;
}

static lam_status read_root(lam_train_state *s, lam_params *params, json_t *root, const char *path)
{
    const json_t *format = json_object_get(root, "format");
    if (json_integer_value(format) != LAM_STATE_FORMAT)
        return lam_fail(LAM_ERR_FORMAT, "%s: not a training state of format %d", path,
                        LAM_STATE_FORMAT);
    LAM_TRY(read_fields(s, root, path));
    LAM_TRY(lam_settings_parse(&s->settings, json_object_get(root, "settings"), path));
    LAM_TRY(read_position(s, json_object_get(root, "position"), path));
    if (s->n_shifts != s->settings.batch_size) /* before memory is allocated for so many */
        return lam_fail(LAM_ERR_FORMAT, "%s: position.shifts has %d numbers, batch_size is %d",
                        path, s->n_shifts, s->settings.batch_size);
    return params ? read_counts(params, json_object_get(root, "param_steps"), path) : LAM_OK;
}

lam_status lam_train_state_load(lam_train_state *s, lam_params *params, const char *path)
{
    json_t *root;
    lam_settings settings;
    lam_settings_defaults(&settings);
    lam_train_state_init(s, &settings);
    LAM_TRY(lam_json_load(&root, path, MAX_STATE));
    const lam_status status = read_root(s, params, root, path);
    json_decref(root);
    if (status != LAM_OK)
        lam_train_state_free(s);
    return status;
}
