/* config_json.c -- config.json: one table of keys drives reading and writing (io/json_field.h).
 *
 * Keys we do not know are skipped, so that files of other tools (Hugging Face folders, traces with a
 * learning rate) load; keys we know must have the right type. */
#include "nn/config.h"

#include "io/json_field.h"

#include <stdlib.h>
#include <string.h>

const char *const lam_alpha_names[] = {"learned", "zero", "one", NULL};
const char *const lam_window_names[] = {"previous", "current", NULL};
const char *const lam_pooling_names[] = {"conv", "mean", "max", NULL};
const char *const lam_remainder_names[] = {"drop", "pad", "carry", NULL};
const char *const lam_sticky_names[] = {"off", "left", "uniform", NULL};
const char *const lam_init_out_names[] = {"same", "depth", "zero", NULL};

enum { MAX_FILE = 1 << 20 };

typedef struct key {
    lam_json_field field;
    const char *memory; /* written for this mechanism alone; NULL: for all */
} key;

/* clang-format off */
#define KEY(name, kind, memory) {{#name, LAM_JSON_##kind, offsetof(lam_config, name), NULL}, memory}
#define WORD(name, words, memory) {{#name, LAM_JSON_WORD, offsetof(lam_config, name), words}, memory}
static const key keys[] = {
    KEY(attn_type, INT, NULL),
    KEY(n_token, INT, NULL),
    KEY(n_layer, INT, NULL),
    KEY(n_head, INT, NULL),
    KEY(d_model, INT, NULL),
    KEY(d_head, INT, NULL),
    KEY(d_inner, INT, NULL),
    KEY(d_embed, INT, NULL),
    KEY(tgt_len, INT, NULL),
    KEY(mem_len, INT, NULL),
    KEY(ext_len, INT, NULL),
    KEY(clamp_len, INT, NULL),
    KEY(same_length, BOOL, NULL),
    KEY(pre_lnorm, BOOL, NULL),
    KEY(tie_weight, BOOL, NULL),
    KEY(div_val, INT, NULL),
    KEY(dropout, REAL, NULL),
    KEY(dropatt, REAL, NULL),
    KEY(layer_norm_epsilon, REAL, NULL),
    KEY(interp_eps, REAL, NULL),
    WORD(alpha, lam_alpha_names, NULL),
    WORD(window, lam_window_names, NULL),
    KEY(cmem_len, INT, "compressive"),
    KEY(rate, INT, "compressive"),
    WORD(pooling, lam_pooling_names, "compressive"),
    WORD(remainder, lam_remainder_names, "compressive"),
    KEY(aux_weight, REAL, "compressive"),
    KEY(ltm_basis, INT, "infinite"),
    KEY(ltm_ridge, REAL, "infinite"),
    KEY(ltm_block, INT, "infinite"),
    KEY(ltm_samples, INT, "infinite"),
    KEY(ltm_tau, REAL, "infinite"),
    KEY(ltm_sigma0, REAL, "infinite"),
    KEY(ltm_kl, REAL, "infinite"),
    KEY(ltm_var_min, REAL, "infinite"),
    KEY(ltm_padding, BOOL, "infinite"),
    KEY(ltm_share_proj, BOOL, "infinite"),
    WORD(ltm_sticky, lam_sticky_names, "infinite"),
    KEY(ltm_reset, INT, "infinite"),
    KEY(init_uniform, BOOL, NULL),
    KEY(init_std, REAL, NULL),
    KEY(init_range, REAL, NULL),
    KEY(proj_init_std, REAL, NULL),
    WORD(init_out, lam_init_out_names, NULL),
};
/* clang-format on */
enum { KEYS = sizeof keys / sizeof *keys };

static lam_status read_widths(lam_config *cfg, const json_t *list, const char *label)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n < 1 || n > LAM_MAX_LTM_WIDTHS)
        return lam_fail(LAM_ERR_FORMAT, "%s: ltm_widths must be a list of 1 to %d numbers", label,
                        LAM_MAX_LTM_WIDTHS);
    cfg->n_ltm_widths = (int)n;
    memset(cfg->ltm_widths, 0, sizeof cfg->ltm_widths);
    for (size_t i = 0; i < n; i++) {
        if (!json_is_number(json_array_get(list, i)))
            return lam_fail(LAM_ERR_FORMAT, "%s: ltm_widths[%zu] must be a number", label, i);
        cfg->ltm_widths[i] = json_number_value(json_array_get(list, i));
    }
    return LAM_OK;
}

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
    for (int i = 0; i < KEYS; i++)
        LAM_TRY(lam_json_take(cfg, &keys[i].field, root, label));
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
    if ((value = json_object_get(root, "ltm_widths")))
        LAM_TRY(read_widths(cfg, value, label));
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

lam_status lam_config_print(char **json, const lam_config *cfg)
{
    json_t *root = json_pack("{s:s, s:s}", "model_type", "lamemo", "memory", cfg->memory);
    int bad = !root;
    for (int i = 0; i < KEYS; i++) {
        if (!keys[i].memory || strcmp(keys[i].memory, cfg->memory) == 0)
            bad |= lam_json_put(root, &keys[i].field, cfg);
    }
    json_t *cutoffs = json_array(), *ties = json_array();
    for (int i = 0; i < cfg->n_cutoffs; i++)
        bad |= json_array_append_new(cutoffs, json_integer(cfg->cutoffs[i]));
    for (int i = 0; i <= cfg->n_cutoffs; i++)
        bad |= json_array_append_new(ties, json_boolean(cfg->tie_projs[i]));
    bad |= json_object_set_new(root, "cutoffs", cutoffs);
    bad |= json_object_set_new(root, "tie_projs", ties);
    if (strcmp(cfg->memory, "infinite") == 0) {
        json_t *widths = json_array();
        for (int i = 0; i < cfg->n_ltm_widths; i++)
            bad |= json_array_append_new(widths, json_real(cfg->ltm_widths[i]));
        bad |= json_object_set_new(root, "ltm_widths", widths);
    }
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
