/* train_config.c -- see train_config.h. */
#include "cli/train_config.h"

#include "cli/spelling.h"
#include "cli/term.h"
#include "io/json.h"
#include "mem/fields.h"
#include "model/configure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 20 };

/* ---- keys ---- */

/* The row of the option called `key`, with dashes for underscores, by its name or another one of its names; -1: none. */
static int row_of(const lam_option *table, const char *key)
{
    for (int i = 0; table[i].help; i++)
        if (lam_option_called(&table[i], key))
            return i;
    const lam_mem_ops *mem;
    const lam_mem_field *const f = lam_fields_find(key, &mem);
    return f && f->option ? lam_option_row(table, f->option) : -1;
}

/* Two keys of config.json say by yes and no what is a word or the contrary as an option. */
static int special_row(const lam_option *table, const char *key, const json_t *value,
                       const char **text)
{
    *text = NULL;
    if (strcmp(key, "init_uniform") == 0 && json_is_boolean(value)) {
        *text = json_is_true(value) ? "uniform" : "normal";
        return row_of(table, "init");
    }
    if (strcmp(key, "tie_weight") == 0 && json_is_boolean(value)) {
        *text = json_is_true(value) ? NULL : "";
        return row_of(table, "not_tied");
    }
    return -1;
}

/* Is it a key of config.json that is no option? */
static bool only_checked(const char *key)
{
    static const char words[] = "model_type n_token vocab_size layer_norm_epsilon tie_projs";
    const lam_mem_ops *mem;
    const lam_mem_field *const f = lam_fields_find(key, &mem);
    return lam_word_listed(words, key) || (f && !f->option);
}

static lam_status unknown(const lam_option *table, const char *file, const char *key)
{
    const char *names[LAM_OPTIONS_MAX + 1];
    char near[64] = "", dashed[64];
    int n = 0;
    for (int i = 0; table[i].help; i++)
        if (table[i].name)
            names[n++] = table[i].name;
    names[n] = NULL;
    snprintf(dashed, sizeof dashed, "%s", key);
    for (char *c = dashed; *c; c++)
        *c = *c == '_' ? '-' : *c;
    const char *other = lam_brought(dashed, names);
    other = other ? other : lam_closest(dashed, names);
    if (!other)
        return lam_fail(LAM_ERR_ARG, "%s: unknown key '%s'", file, key);
    snprintf(near, sizeof near, "%.*s", (int)strcspn(other, " "), other);
    for (char *c = near; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return lam_fail(LAM_ERR_ARG, "%s: unknown key '%s'; did you mean '%s'?", file, key, near);
}

/* ---- values ---- */

/* A list of integers as "1,2,3"; NULL: it is none, or there is no memory. */
static char *list_text(const json_t *list)
{
    char *text = NULL, *more;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const item = json_array_get(list, i);
        if (!json_is_integer(item) || asprintf(&more, "%s%s%lld", text ? text : "", text ? "," : "",
                                               (long long)json_integer_value(item)) < 0)
            more = NULL;
        free(text);
        text = more;
        if (!text)
            return NULL;
    }
    return text;
}

/* The value as it would be written on a command line (free). */
static char *text_of(const json_t *value)
{
    char *text = NULL;
    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (json_is_array(value))
        return list_text(value);
    if (json_is_integer(value) && asprintf(&text, "%lld", (long long)json_integer_value(value)) < 0)
        return NULL;
    for (int digits = 1; json_is_real(value) && digits <= 17; digits++) { /* as few as do */
        free(text);
        if (asprintf(&text, "%.*g", digits, json_real_value(value)) < 0)
            return NULL;
        if (strtod(text, NULL) == json_real_value(value))
            break;
    }
    return text;
}

/* Does the command line say something that leaves no room for the key of the file? */
static bool overruled(const lam_args *line, int row)
{
    static const char *const lengths[] = {"max-step", "epochs", "scheduler-time"};
    const lam_option *const o = &line->table.rows[row];
    const lam_train_options *const given = line->options;
    bool is_length = false, length_given = false;
    for (int i = 0; i < 3; i++) {
        is_length |= strcmp(o->name, lengths[i]) == 0;
        length_given |= lam_option_given(line, lengths[i]);
    }
    if (line->given[row] || (is_length && length_given))
        return true;
    return lam_option_given(line, "memory") &&
           (strcmp(o->name, "attn-type") == 0 || !lam_option_serves(o, given->shape.memory));
}

static lam_status set(lam_train_config *c, const char *file, int row, const char *text)
{
    const lam_option *const o = &c->args.table.rows[row];
    if (o->type == LAM_OPT_FLAG)
        text = NULL;
    else if (o->only && o->value && strcmp(o->value, text) == 0)
        return LAM_OK; /* config.json has fields of memories that the model has not */
    if (lam_option_set(o, &c->options, text) != LAM_OK)
        return lam_fail(LAM_ERR_ARG, "%s: %s", file, lam_error());
    c->args.given[row] = true;
    c->args.text[row] = text;
    return LAM_OK;
}

static lam_status take(lam_train_config *c, const lam_args *line, const char *key,
                       const json_t *value)
{
    const lam_option *const table = c->args.table.rows;
    const char *const file = c->options.config;
    const char *text;
    int row = special_row(table, key, value, &text);
    if (row >= 0)
        return text && !overruled(line, row) ? set(c, file, row, text) : LAM_OK;
    row = row_of(table, key);
    if (row < 0 || lam_word_listed("config print-config", table[row].name))
        return row < 0 && only_checked(key) ? LAM_OK : unknown(table, file, key);
    const bool flag = table[row].type == LAM_OPT_FLAG;
    if (flag != json_is_boolean(value))
        return lam_fail(LAM_ERR_ARG, "%s: %s must %sbe true or false", file, key,
                        flag ? "" : "not ");
    if (json_is_false(value) || (json_is_array(value) && json_array_size(value) == 0) ||
        overruled(line, row))
        return LAM_OK;
    free(c->text[row]); /* a key and another name of it */
    c->text[row] = flag ? NULL : text_of(value);
    if (!flag && !c->text[row])
        return lam_fail(LAM_ERR_ARG, "%s: %s must be a number, a string or a list of integers",
                        file, key);
    return set(c, file, row, c->text[row]);
}

lam_status lam_train_config_read(lam_train_config *c, const lam_args *args)
{
    const char *key;
    json_t *value;
    *c = (lam_train_config){.args = *args, .options = *(const lam_train_options *)args->options};
    c->args.options = &c->options;
    if (!c->options.config)
        return LAM_OK;
    LAM_TRY(lam_json_load(&c->file, c->options.config, MAX_FILE));
    if (!json_is_object(c->file))
        return lam_fail(LAM_ERR_FORMAT, "%s: not a JSON object", c->options.config);
    json_object_foreach(c->file, key, value)
        LAM_TRY(take(c, args, key, value));
    return LAM_OK;
}

void lam_train_config_free(lam_train_config *c)
{
    for (int i = 0; i < LAM_OPTIONS_MAX; i++)
        free(c->text[i]);
    json_decref(c->file);
}

/* ---- the configuration that comes of it ---- */

static lam_status config_object(json_t **out, const lam_config *cfg)
{
    char *text = NULL;
    LAM_TRY(lam_config_print(&text, cfg));
    const lam_status status = lam_json_parse(out, "config", text, strlen(text));
    free(text);
    return status;
}

lam_status lam_train_config_check(const lam_train_config *c, const lam_config *cfg)
{
    const char *key;
    json_t *value, *model = NULL;
    if (!c->file)
        return LAM_OK;
    LAM_TRY(config_object(&model, cfg));
    lam_status status = LAM_OK;
    json_object_foreach(c->file, key, value) {
        const char *const name = strcmp(key, "vocab_size") == 0 ? "n_token" : key;
        const json_t *const is = json_object_get(model, name);
        if (status == LAM_OK && only_checked(key) && is && !json_equal(is, value))
            status = lam_fail(LAM_ERR_ARG, "%s: %s is not what the model has; %s",
                              c->options.config, key,
                              strcmp(name, "n_token") == 0 ? "it follows from the corpus"
                                                           : "it cannot be chosen");
    }
    json_decref(model);
    return status;
}

/* Each value by itself, so that a number that needs all its digits does not lengthen the others. */
static lam_status print_lines(const json_t *root)
{
    const char *key, *before = "{\n";
    json_t *value;
    json_object_foreach((json_t *)root, key, value) {
        char *text = NULL;
        LAM_TRY(lam_json_text_short(&text, value, JSON_ENCODE_ANY | JSON_COMPACT));
        lam_print("%s  \"%s\": %s", before, key, text);
        free(text);
        before = ",\n";
    }
    puts("\n}");
    return LAM_OK;
}

lam_status lam_train_config_print(const lam_args *args, const lam_config *cfg,
                                  const lam_settings *settings)
{
    const lam_option *const table = args->table.rows;
    const char *key, *text;
    json_t *value, *model = NULL, *root = json_object(), *run = lam_settings_print(settings);
    lam_status status = config_object(&model, cfg);
    json_object_foreach(model, key, value) {
        const int row = row_of(table, key);
        if (special_row(table, key, value, &text) >= 0 ||
            (row >= 0 && lam_option_serves(&table[row], cfg->memory)))
            json_object_set(root, key, value);
    }
    json_object_update(root, run);
    json_decref(model);
    json_decref(run);
    if (status == LAM_OK)
        status = print_lines(root);
    json_decref(root);
    return status;
}
