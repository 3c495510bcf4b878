/* config_json.c -- config.json: tables drive reading and writing (model/config_rows.h, mem/fields.h).
 *
 * Keys we do not know are skipped, so that files of other tools (Hugging Face folders, traces with a
 * learning rate) load; keys we know must have the right type. */
#include "model/configure.h"

#include "model/config_rows.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 20 };

static lam_status read_lists(lam_config *cfg, const json_t *root, const char *label)
{
    const json_t *cutoffs = json_object_get(root, "cutoffs");
    const json_t *ties = json_object_get(root, "tie_projs");
    if (cutoffs && (!json_is_array(cutoffs) || json_array_size(cutoffs) > LAM_MAX_CUTOFFS))
        return lam_fail(LAM_ERR_FORMAT, "%s: cutoffs must be a list of at most %d integers", label,
                        LAM_MAX_CUTOFFS);
    cfg->n_cutoffs = (int)json_array_size(cutoffs);
    for (int i = 0; i < cfg->n_cutoffs; i++) {
        const json_t *item = json_array_get(cutoffs, (size_t)i);
        if (!json_is_integer(item) || json_integer_value(item) < 1 ||
            json_integer_value(item) > 1 << 24)
            return lam_fail(LAM_ERR_FORMAT, "%s: cutoffs[%d] must be a positive integer", label, i);
        cfg->cutoffs[i] = (int)json_integer_value(item);
    }
    if (!ties)
        return LAM_OK;
    if (!json_is_array(ties) || json_array_size(ties) > LAM_MAX_CUTOFFS + 1)
        return lam_fail(LAM_ERR_FORMAT, "%s: tie_projs must be a list of true and false", label);
    for (size_t i = 0; i < json_array_size(ties); i++) {
        if (!json_is_boolean(json_array_get(ties, i)))
            return lam_fail(LAM_ERR_FORMAT, "%s: tie_projs[%zu] must be true or false", label, i);
        cfg->tie_projs[i] = json_is_true(json_array_get(ties, i));
    }
    return LAM_OK;
}

static lam_status read_object(lam_config *cfg, const json_t *root, const char *label)
{
    if (!json_is_object(root))
        return lam_fail(LAM_ERR_FORMAT, "%s: not a JSON object", label);
    lam_config_defaults(cfg);
    LAM_TRY(lam_rows_read(cfg, lam_shape_rows, root, label));
    LAM_TRY(lam_rows_read(cfg, lam_rare_rows, root, label));
    for (int i = 0; lam_mem_all[i]; i++)
        LAM_TRY(lam_fields_read(cfg, lam_mem_all[i], root, label));
    LAM_TRY(lam_rows_read(cfg, lam_init_rows, root, label));
    /* Hugging Face's spelling of n_token. */
    static const lam_json_field vocab_size = {"vocab_size", LAM_JSON_INT,
                                              offsetof(lam_config, n_token), NULL};
    if (cfg->n_token == 0)
        LAM_TRY(lam_json_take(cfg, &vocab_size, root, label));

    const json_t *value = json_object_get(root, "memory");
    if (value && (!json_is_string(value) || json_string_length(value) >= sizeof cfg->memory))
        return lam_fail(LAM_ERR_FORMAT, "%s: memory must name a mechanism", label);
    if (value)
        strcpy(cfg->memory, json_string_value(value));
    return read_lists(cfg, root, label);
}

/* Releases `root`. */
static lam_status from_json(lam_config *cfg, json_t *root, const char *label)
{
    const lam_status status = read_object(cfg, root, label);
    json_decref(root);
    LAM_TRY(status);
    if (lam_config_finish(cfg) == LAM_OK)
        return LAM_OK;
    /* A file that says what cannot be built is a bad file, not a bad option. */
    return lam_fail(LAM_ERR_FORMAT, "%s: %s", label, lam_error());
}

lam_status lam_config_parse(lam_config *cfg, const char *json, const char *label)
{
    json_t *root = NULL;
    LAM_TRY(lam_json_parse(&root, label, json, strlen(json)));
    return from_json(cfg, root, label);
}

lam_status lam_config_load(lam_config *cfg, const char *path)
{
    json_t *root = NULL;
    LAM_TRY(lam_json_load(&root, path, MAX_FILE));
    return from_json(cfg, root, path);
}

/* Of the memories that every file has something of, then of the model's own. */
static int write_fields(json_t *root, const lam_config *cfg, lam_fields_part part)
{
    const lam_mem_ops *own = NULL;
    int bad = lam_mem_find(&own, cfg->memory) != LAM_OK;
    for (int i = 0; lam_mem_all[i]; i++)
        if (lam_mem_all[i]->in_every_file)
            bad |= lam_fields_write(root, cfg, lam_mem_all[i], part);
    return bad || own->in_every_file ? bad : lam_fields_write(root, cfg, own, part);
}

lam_status lam_config_print(char **json, const lam_config *cfg)
{
    json_t *root = json_pack("{s:s, s:s}", "model_type", "lamemo", "memory", cfg->memory);
    int bad = !root;
    for (const lam_mem_field *f = lam_shape_rows; f->json.name; f++)
        bad |= lam_json_put(root, &f->json, cfg);
    for (const lam_mem_field *f = lam_rare_rows; f->json.name; f++)
        if (lam_field_whole(cfg, &f->json))
            bad |= lam_json_put(root, &f->json, cfg);
    bad |= write_fields(root, cfg, LAM_FIELDS_SINGLE);
    for (const lam_mem_field *f = lam_init_rows; f->json.name; f++)
        bad |= lam_json_put(root, &f->json, cfg);
    json_t *cutoffs = json_array(), *ties = json_array();
    for (int i = 0; i < cfg->n_cutoffs; i++)
        bad |= json_array_append_new(cutoffs, json_integer(cfg->cutoffs[i]));
    for (int i = 0; i <= cfg->n_cutoffs; i++)
        bad |= json_array_append_new(ties, json_boolean(cfg->tie_projs[i]));
    bad |= json_object_set_new(root, "cutoffs", cutoffs);
    bad |= json_object_set_new(root, "tie_projs", ties);
    bad |= write_fields(root, cfg, LAM_FIELDS_LISTS);
    *json = NULL;
    const lam_status status = bad ? lam_fail(LAM_ERR_MEMORY, "config.json: no memory")
                                  : lam_json_text_short(json, root, JSON_INDENT(2));
    json_decref(root);
    return status;
}

/* Two configurations are equal if they read the same on paper. */
lam_status lam_config_same(const lam_config *it, const lam_config *wanted, const char *label)
{
    char *a = NULL, *b = NULL;
    lam_status status = lam_config_print(&a, it);
    if (status == LAM_OK)
        status = lam_config_print(&b, wanted);
    if (status == LAM_OK && strcmp(a, b) != 0) {
        size_t line = 0; /* the start of the first line that differs */
        for (size_t i = 0; a[i] == b[i]; i++)
            line = a[i] == '\n' ? i + 1 : line;
        line += strspn(a + line, " ");
        status = lam_fail(LAM_ERR_FORMAT, "%s: another configuration: it has %.*s, not %.*s", label,
                          (int)strcspn(a + line, ",\n"), a + line, (int)strcspn(b + line, ",\n"),
                          b + line);
    }
    free(a);
    free(b);
    return status;
}
