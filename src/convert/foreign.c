/* foreign.c -- see foreign.h: reads a checkpoint's configuration and infers the rest from tensor shapes. */
#include "convert/foreign.h"

#include "io/json.h"
#include "model/configure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lam_status no_memory(const char *label)
{
    return lam_fail(LAM_ERR_MEMORY, "%s: no memory for its configuration", label);
}

/* ---- what it says ---- */

static int is_number(const lam_py *node)
{
    return lam_py_is(node, LAM_PY_BOOL) || lam_py_is(node, LAM_PY_INT) ||
           (lam_py_is(node, LAM_PY_FLOAT) && isfinite(node->as.real));
}

/* Numbers, booleans and short lists of them: all that a configuration could hold. */
static int is_plain(const lam_py *node)
{
    if (!lam_py_is(node, LAM_PY_LIST) && !lam_py_is(node, LAM_PY_TUPLE))
        return is_number(node);
    for (size_t i = 0; i < node->as.list.n; i++)
        if (i >= 64 || !is_number(node->as.list.v[i]))
            return 0;
    return 1;
}

/* NULL: no memory. */
static json_t *plain_value(const lam_py *node)
{
    if (lam_py_is(node, LAM_PY_BOOL))
        return json_boolean(node->as.integer);
    if (lam_py_is(node, LAM_PY_INT))
        return json_integer(node->as.integer);
    if (lam_py_is(node, LAM_PY_FLOAT))
        return json_real(node->as.real);
    json_t *list = json_array();
    for (size_t i = 0; i < node->as.list.n; i++)
        list = lam_json_add(list, plain_value(node->as.list.v[i]));
    return list;
}

/* Sets what is not set yet. */
static lam_status add_value(json_t *known, const char *key, json_t *value, const char *label)
{
    if (json_object_get(known, key)) {
        json_decref(value);
        return LAM_OK;
    }
    return json_object_set_new(known, key, value) == 0 ? LAM_OK : no_memory(label);
}

static lam_status add_node(json_t *known, const char *key, const lam_py *node, const char *label)
{
    return is_plain(node) ? add_value(known, key, plain_value(node), label) : LAM_OK;
}

static lam_status add_pairs(json_t *known, const lam_py_list *pairs, const char *label)
{
    enum { MAX_PAIRS = 1 << 13 }; /* some hundreds are set in the largest scripts */
    if (pairs && pairs->n > 2 * (size_t)MAX_PAIRS)
        return lam_fail(LAM_ERR_FORMAT, "%s: a configuration of %zu entries, at most %d are read",
                        label, pairs->n / 2, MAX_PAIRS);
    for (size_t i = pairs ? pairs->n : 0; i >= 2; i -= 2) { /* the last of one name counts */
        char key[64];
        const lam_py *name = pairs->v[i - 2];
        if (!lam_py_is(name, LAM_PY_TEXT) || name->as.text.n >= sizeof key)
            continue;
        memcpy(key, name->as.text.s, name->as.text.n);
        key[name->as.text.n] = '\0';
        /* the scripts' word for it */
        const char *ours = strcmp(key, "tied") == 0 ? "tie_weight" : key;
        LAM_TRY(add_node(known, ours, pairs->v[i - 1], label));
    }
    return LAM_OK;
}

static const lam_py *child(const lam_py *module, const char *name)
{
    return lam_py_get(lam_py_attr(module, "_modules"), name);
}

/* A module of Transformer-XL keeps most of its arguments as attributes, some of them in its parts. */
static lam_status add_module(json_t *known, const lam_py *module, const char *label)
{
    const lam_py *crit = child(module, "crit"), *layer = child(child(module, "layers"), "0");
    const lam_py *attention = child(layer, "dec_attn");
    const lam_py *state = module->as.object->state;
    LAM_TRY(add_pairs(known, lam_py_is(state, LAM_PY_DICT) ? &state->as.list : NULL, label));
    if (!json_object_get(known, "cutoffs")) {
        LAM_TRY(add_node(known, "cutoffs", lam_py_attr(crit, "cutoffs"), label));
        json_t *cutoffs = json_object_get(known, "cutoffs");
        if (json_array_size(cutoffs) > 0) /* its last one is the size of the vocabulary */
            json_array_remove(cutoffs, json_array_size(cutoffs) - 1);
    }
    LAM_TRY(add_node(known, "div_val", lam_py_attr(crit, "div_val"), label));
    LAM_TRY(add_node(known, "pre_lnorm", lam_py_attr(attention, "pre_lnorm"), label));
    LAM_TRY(add_node(known, "dropout", lam_py_attr(child(module, "drop"), "p"), label));
    return add_node(known, "dropatt", lam_py_attr(child(attention, "dropatt"), "p"), label);
}

lam_status lam_foreign_known(json_t **known, const lam_torch *file, const lam_py *module)
{
    const lam_py *root = lam_torch_root(file);
    const lam_py *config = lam_py_get(root, "model_config"), *args = lam_py_get(root, "args");
    const lam_py *space = lam_py_is(args, LAM_PY_OBJECT) ? args->as.object->state : args;
    const char *label = lam_torch_label(file);
    *known = json_object();
    lam_status status = *known ? LAM_OK : no_memory(label);
    if (status == LAM_OK)
        status = add_pairs(*known, lam_py_pairs(config), label);
    if (status == LAM_OK && lam_py_is(space, LAM_PY_DICT))
        status = add_pairs(*known, &space->as.list, label);
    if (status == LAM_OK && module)
        status = add_module(*known, module, label);
    if (status != LAM_OK) {
        json_decref(*known);
        *known = NULL;
    }
    return status;
}

/* ---- what shapes show ---- */

static int64_t dim(const lam_strided *t, int i)
{
    return t && i < t->shape.rank ? t->shape.dim[i] : 0;
}

static lam_status add_size(json_t *known, const char *key, int64_t value, const char *label)
{
    return value > 0 ? add_value(known, key, json_integer(value), label) : LAM_OK;
}

/* q and k, v apart: LaMemo's module, or without W_r the one for absolute positions.  Types 3 and 33 have
 * the same parameters. */
static int attn_type_of(const lam_tensors *all)
{
    if (lam_tensors_find(all, "r_emb"))
        return LAM_ATTN_LEARNED;
    if (!lam_tensors_find(all, "layers.0.dec_attn.q_net.weight"))
        return LAM_ATTN_XL;
    if (!lam_tensors_find(all, "layers.0.dec_attn.r_net.weight"))
        return LAM_ATTN_ABSOLUTE;
    return lam_tensors_find(all, "r_w_bias_future")   ? LAM_ATTN_LAMEMO_BOTH
           : lam_tensors_find(all, "r_r_bias_future") ? LAM_ATTN_LAMEMO
                                                      : LAM_ATTN_LAMEMO_XL;
}

/* Has every layer biases u and v of its own, and the model none for all of them? */
static int is_untied(const lam_tensors *all)
{
    return !lam_tensors_find(all, "r_w_bias") &&
           lam_tensors_find(all, "layers.0.dec_attn.r_w_bias") != NULL;
}

static lam_status add_sizes(json_t *known, const lam_tensors *all)
{
    const int untied = is_untied(all);
    const lam_strided *bias =
        lam_tensors_find(all, untied ? "layers.0.dec_attn.r_w_bias" : "r_w_bias");
    const int first = bias ? bias->shape.rank - 2 : 0; /* [H][e], or [L][H][e] */
    int64_t layers = 0, types = 0;
    for (int i = 0; lam_tensors_at(all, "word_emb.emb_layers.%d.weight", i); i++)
        types += dim(lam_tensors_at(all, "word_emb.emb_layers.%d.weight", i), 0);
    while (lam_tensors_at(all, "layers.%d.dec_attn.o_net.weight", (int)layers))
        layers++;
    const char *label = all->label;
    /* Hugging Face's config.json says untie_r of models without biases in their layers, too. */
    if (json_object_set_new(known, "untie_r", json_boolean(untied)) != 0)
        return no_memory(label);
    LAM_TRY(add_size(known, "n_token", types, label));
    LAM_TRY(add_size(known, "n_layer", layers, label));
    LAM_TRY(add_size(known, "n_head", first >= 0 ? dim(bias, first) : 0, label));
    LAM_TRY(add_size(known, "d_head", first >= 0 ? dim(bias, first + 1) : 0, label));
    LAM_TRY(add_size(known, "d_model",
                     dim(lam_tensors_find(all, "layers.0.dec_attn.o_net.weight"), 0), label));
    LAM_TRY(add_size(known, "d_inner",
                     dim(lam_tensors_find(all, "layers.0.pos_ff.CoreNet.0.weight"), 0), label));
    LAM_TRY(add_size(known, "d_embed",
                     dim(lam_tensors_find(all, "word_emb.emb_layers.0.weight"), 1), label));
    return add_value(known, "attn_type", json_integer(attn_type_of(all)), label);
}

/* With div_val above 1 every cluster has a table of its own, whose sizes tell the cutoffs. */
static lam_status add_clusters(json_t *known, const lam_tensors *all)
{
    const lam_strided *second = lam_tensors_find(all, "word_emb.emb_layers.1.weight");
    const int64_t clusters = dim(lam_tensors_find(all, "crit.cluster_weight"), 0);
    if (clusters > 0 && !second && json_array_size(json_object_get(known, "cutoffs")) == 0)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: has %lld clusters, but nothing says where they begin; give cutoffs in "
                        "a --config file",
                        all->label, (long long)clusters);
    if (!second)
        return LAM_OK;
    json_t *cutoffs = json_array();
    int64_t end = 0;
    int bad = !cutoffs;
    for (int i = 0; lam_tensors_at(all, "word_emb.emb_layers.%d.weight", i + 1); i++) {
        end += dim(lam_tensors_at(all, "word_emb.emb_layers.%d.weight", i), 0);
        bad |= json_array_append_new(cutoffs, json_integer(end));
    }
    if (bad) {
        json_decref(cutoffs);
        return no_memory(all->label);
    }
    LAM_TRY(add_value(known, "cutoffs", cutoffs, all->label));
    const int64_t wide = dim(lam_tensors_find(all, "word_emb.emb_layers.0.weight"), 1);
    return add_size(known, "div_val", dim(second, 1) > 0 ? wide / dim(second, 1) : 0, all->label);
}

static int same_tensor(const lam_strided *a, const lam_strided *b)
{
    return a && b && lam_shape_equal(&a->shape, &b->shape) && lam_strided_equal(a, b);
}

static lam_status add_ties(json_t *known, const lam_tensors *all)
{
    const lam_strided *out = lam_tensors_find(all, "crit.out_layers.0.weight");
    const lam_strided *in = lam_tensors_find(all, "word_emb.emb_layers.0.weight");
    const int tables = lam_tensors_find(all, "word_emb.emb_layers.1.weight") != NULL;
    const int64_t clusters = dim(lam_tensors_find(all, "crit.cluster_weight"), 0);
    LAM_TRY(add_value(known, "tie_weight", json_boolean(!out || same_tensor(out, in)), all->label));
    if (!lam_tensors_find(all, "word_emb.emb_projs.0"))
        return LAM_OK; /* no projections, nothing to tie */
    json_t *ties = json_array();
    int bad = !ties;
    for (int i = 0; i <= clusters && i <= LAM_MAX_CUTOFFS; i++) {
        const lam_strided *proj = lam_tensors_at(all, "crit.out_projs.%d", i);
        const lam_strided *own = lam_tensors_at(all, "word_emb.emb_projs.%d", tables ? i : 0);
        bad |= json_array_append_new(ties, json_boolean(!proj || same_tensor(proj, own)));
    }
    if (bad) {
        json_decref(ties);
        return no_memory(all->label);
    }
    return add_value(known, "tie_projs", ties, all->label);
}

/* ---- the order of clusters ---- */

void lam_foreign_turn(lam_tensors *all, const json_t *known)
{
    static const char *const turned[] = {"crit.cluster_weight", "crit.cluster_bias"};
    const char *type = json_string_value(json_object_get(known, "model_type"));
    if (!type || strcmp(type, "transfo-xl") != 0)
        return;
    for (int i = 0; i < all->n; i++) {
        lam_strided *t = &all->list[i].t;
        const int64_t rows = dim(t, 0);
        if ((strcmp(all->list[i].name, turned[0]) != 0 &&
             strcmp(all->list[i].name, turned[1]) != 0) ||
            rows == 0)
            continue;
        t->data =
            (const char *)t->data + (rows - 1) * t->stride[0] * (int64_t)lam_dtype_size(t->dtype);
        t->stride[0] = -t->stride[0];
    }
}

/* ---- the configuration ---- */

/* Settings that change what the model computes and that we do not have. */
static lam_status refuse_others(const json_t *known, const lam_tensors *all)
{
    const long long samples = json_integer_value(json_object_get(known, "sample_softmax"));
    if (samples > 0)
        return lam_fail(LAM_ERR_UNSUPPORTED, "%s: sample_softmax is %lld; only 0 is supported",
                        all->label, samples);
    if (json_is_true(json_object_get(known, "enhance_recurrence")))
        return lam_fail(LAM_ERR_UNSUPPORTED, "%s: enhance_recurrence is not supported", all->label);
    if (json_integer_value(json_object_get(known, "attn_type")) >= LAM_ATTN_LAMEMO &&
        !lam_tensors_find(all, "layers.0.dec_attn.q_net.weight"))
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "%s: attn_type %lld without LaMemo's q_net: not a model we know (3 means "
                        "learned absolute positions in Transformer-XL)",
                        all->label,
                        (long long)json_integer_value(json_object_get(known, "attn_type")));
    return LAM_OK;
}

static lam_status need(const json_t *known, const char *key, const char *option, const char *label)
{
    if (json_object_get(known, key))
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "%s: does not say its %s; give %s", label, key, option);
}

lam_status lam_foreign_config(lam_config *cfg, json_t *known, const lam_tensors *all)
{
    char *text = NULL;
    if (!lam_tensors_find(all, "word_emb.emb_layers.0.weight") ||
        !lam_tensors_find(all, "layers.0.dec_attn.o_net.weight"))
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: not a model of this family: tensors word_emb.emb_layers.0.weight and "
                        "layers.0.dec_attn.o_net.weight are missing",
                        all->label);
    LAM_TRY(add_sizes(known, all));
    LAM_TRY(add_clusters(known, all));
    LAM_TRY(add_ties(known, all));
    LAM_TRY(refuse_others(known, all));
    LAM_TRY(need(known, "tgt_len", "--tgt-len", all->label));
    LAM_TRY(need(known, "mem_len", "--mem-len", all->label));
    LAM_TRY(lam_json_text(&text, NULL, known, JSON_COMPACT));
    const lam_status status = lam_config_parse(cfg, text, all->label);
    free(text);
    return status;
}
