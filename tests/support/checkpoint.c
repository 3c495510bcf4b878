/* checkpoint.c -- see checkpoint.h. */
#include "support/checkpoint.h"

#include "support/torchlike.h"

#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 256, NAME = 128 };

typedef struct file {
    const lam_safetensors *trace;
    const checkpoint *how;
    json_t *config;
    pk p;
    zip_part parts[MAX_PARTS]; /* parts[0] is the pickle */
    char names[MAX_PARTS][NAME];
    void *owned[MAX_PARTS];
    int n;
} file;

static const lam_st_tensor *param(const file *f, const char *name)
{
    char full[NAME];
    snprintf(full, sizeof full, "param.%s", name);
    return lam_st_find(f->trace, full);
}

static int number(const file *f, const char *key, int otherwise)
{
    const json_t *value = json_object_get(f->config, key);
    return value ? (int)json_integer_value(value) : otherwise;
}

/* ---- tensors ---- */

/* A storage of its own; returns its key. */
static const char *add_storage(file *f, const void *data, size_t size)
{
    const int i = f->n++;
    ck_assert_int_lt(i, MAX_PARTS);
    snprintf(f->names[i], NAME, "archive/data/%d", i);
    f->owned[i] = malloc(size + 1);
    ck_assert_ptr_nonnull(f->owned[i]);
    memcpy(f->owned[i], data, size);
    f->parts[i] = (zip_part){f->names[i], f->owned[i], size, 0};
    return strrchr(f->names[i], '/') + 1;
}

static void put_tensor(file *f, const lam_st_tensor *t, const char *key)
{
    pk_tensor_at at = {"FloatStorage", key, (int64_t)t->bytes / 4, 0, t->shape.rank, {0}, {0}};
    int64_t step = 1;
    for (int d = t->shape.rank - 1; d >= 0; d--) {
        at.size[d] = t->shape.dim[d];
        at.stride[d] = step;
        step *= t->shape.dim[d];
    }
    pk_tensor(&f->p, &at);
}

/* The key of the storage of a parameter, which is made the first time. */
static const char *storage_of(file *f, const lam_st_tensor *t)
{
    for (int i = 1; i < f->n; i++)
        if (f->parts[i].size == t->bytes && memcmp(f->parts[i].data, t->data, t->bytes) == 0)
            return strrchr(f->names[i], '/') + 1;
    return add_storage(f, t->data, t->bytes);
}

/* What the entries of the state are put into: names behind a prefix, as key and value. */
typedef struct sink {
    file *f;
    const char *prefix; /* only names that begin so, and without it; NULL: all */
    const char *put;    /* written before each name */
} sink;

/* The rest of a name behind the prefix, if it has no part of its own any more; NULL: not here. */
static const char *local_name(const sink *s, const char *name)
{
    const size_t n = s->prefix ? strlen(s->prefix) : 0;
    if (!s->prefix)
        return name;
    return strncmp(name, s->prefix, n) == 0 && !strchr(name + n, '.') ? name + n : NULL;
}

static void put_entry(const sink *s, const char *name, const lam_st_tensor *t, const char *key)
{
    char full[NAME];
    const char *rest = local_name(s, name);
    if (!rest || (s->f->how->flaw.drop && strcmp(name, s->f->how->flaw.drop) == 0))
        return;
    snprintf(full, sizeof full, "%s%s", s->put, rest);
    pk_text(&s->f->p, full);
    put_tensor(s->f, t, key);
}

static void put_small(const sink *s, const char *name, const float *v, int64_t n)
{
    const lam_st_tensor t = {name, LAM_F32, {1, {n}}, v, (size_t)n * sizeof *v};
    if (local_name(s, name))
        put_entry(s, name, &t, add_storage(s->f, v, t.bytes));
}

static void put_copy(const sink *s, const char *name, const char *original)
{
    const lam_st_tensor *t = param(s->f, original);
    const char *untie = s->f->how->flaw.untie;
    if (!t || param(s->f, name) || !local_name(s, name))
        return;
    if (!untie || strcmp(untie, name) != 0) {
        put_entry(s, name, t, storage_of(s->f, t));
        return;
    }
    float *other = malloc(t->bytes);
    ck_assert_ptr_nonnull(other);
    memcpy(other, t->data, t->bytes);
    other[t->bytes / 4 - 1] += 1.0f;
    put_entry(s, name, t, add_storage(s->f, other, t->bytes));
    free(other);
}

static void put_buffers(const sink *s)
{
    const int D = number(s->f, "d_model", 0), L = number(s->f, "n_layer", 0);
    float frequencies[256], zero = 0.0f;
    ck_assert_int_le(D / 2, 256);
    for (int t = 0; t < D / 2; t++)
        frequencies[t] = (float)(1.0 / pow(10000.0, 2.0 * t / D));
    put_small(s, "pos_emb.inv_freq", frequencies, D / 2);
    for (int l = 0; l < L && param(s->f, "layers.0.dec_attn.q_net.weight"); l++) {
        char name[NAME];
        snprintf(name, sizeof name, "layers.%d.dec_attn.train_logits_constant", l);
        put_small(s, name, &zero, 1);
    }
    if (s->f->how->flaw.extra)
        put_small(s, s->f->how->flaw.extra, (const float[]){1.0f, 2.0f}, 2);
}

/* Every entry of the state_dict that the prefix lets through. */
static void put_state(const sink *s)
{
    const int div_val = number(s->f, "div_val", 1);
    for (int i = 0; i < lam_st_count(s->f->trace); i++) {
        const lam_st_tensor *t = lam_st_at(s->f->trace, i);
        if (strncmp(t->name, "param.", 6) == 0)
            put_entry(s, t->name + 6, t, storage_of(s->f, t));
    }
    for (int i = 0; i < 4; i++) {
        char copy[NAME], original[NAME];
        snprintf(copy, sizeof copy, "crit.out_layers.%d.weight", i);
        snprintf(original, sizeof original, "word_emb.emb_layers.%d.weight", i);
        put_copy(s, copy, original);
        snprintf(copy, sizeof copy, "crit.out_projs.%d", i);
        snprintf(original, sizeof original, "word_emb.emb_projs.%d", div_val == 1 ? 0 : i);
        if (i <= (int)json_array_size(json_object_get(s->f->config, "cutoffs")))
            put_copy(s, copy, original);
    }
    put_buffers(s);
}

/* ---- settings ---- */

static void put_json(pk *p, const json_t *value)
{
    if (json_is_boolean(value))
        pk_bool(p, json_is_true(value));
    else if (json_is_integer(value))
        pk_int(p, json_integer_value(value));
    else if (json_is_real(value))
        pk_float(p, json_real_value(value));
    else if (json_is_array(value)) {
        pk_raw(p, "](", 2);
        for (size_t i = 0; i < json_array_size(value); i++)
            put_json(p, json_array_get(value, i));
        pk_op(p, 'e');
    } else {
        pk_text(p, json_string_value(value) ? json_string_value(value) : "");
    }
}

/* Pairs of the configuration, between a mark and "u". */
static void put_settings(file *f)
{
    const char *key;
    json_t *value;
    json_object_foreach(f->config, key, value) {
        pk_text(&f->p, key);
        put_json(&f->p, value);
    }
    if (f->how->flaw.setting) {
        pk_text(&f->p, f->how->flaw.setting);
        pk_int(&f->p, 3);
    }
}

static void put_evil(pk *p)
{
    pk_global(p, "os", "system");
    pk_text(p, "touch witness");
    pk_raw(p, "\x85R", 2);
}

static void put_vocab(file *f)
{
    pk *p = &f->p;
    if (f->how->flaw.evil) {
        put_evil(p);
        return;
    }
    pk_global(p, "utils.vocabulary", "Vocab");
    pk_raw(p, ")\x81}(", 4);
    pk_text(p, "counter");
    pk_global(p, "collections", "Counter");
    pk_raw(p, "}(", 2);
    for (int i = 0; i < f->how->n_symbols; i++) {
        pk_text(p, f->how->symbols[i]);
        pk_int(p, 1000 - i);
    }
    pk_raw(p, "u\x85R", 3);
    pk_text(p, "lower_case");
    pk_bool(p, f->how->lower_case);
    pk_text(p, "idx2sym");
    pk_raw(p, "](", 2);
    for (int i = 0; i < f->how->n_symbols; i++)
        pk_text(p, f->how->symbols[i]);
    pk_raw(p, "eub", 3);
}

/* ---- the three forms ---- */

static void put_lamemo(file *f)
{
    pk *p = &f->p;
    pk_raw(p, "}(", 2);
    pk_text(p, "args");
    pk_global(p, "argparse", "Namespace");
    pk_raw(p, ")\x81}(", 4);
    pk_text(p, "work_dir");
    pk_text(p, "LM-TFM");
    pk_text(p, "tied");
    pk_bool(p, 1);
    pk_text(p, "max_size");
    f->how->flaw.evil ? put_evil(p) : pk_op(p, 'N');
    pk_raw(p, "ub", 2);
    pk_text(p, "model_config");
    pk_raw(p, "}(", 2);
    put_settings(f);
    pk_op(p, 'u');
    pk_text(p, "model_state");
    pk_ordered_dict(p);
    put_state(&(sink){f, NULL, ""});
    pk_op(p, 'u');
    if (f->how->symbols || f->how->flaw.evil) {
        pk_text(p, "vocab");
        put_vocab(f);
    }
    pk_text(p, "best_val_loss");
    pk_float(p, 1.25);
    pk_op(p, 'u');
}

static void open_module(pk *p, const char *class)
{
    pk_global(p, "mem_transformer", class);
    pk_raw(p, ")\x81}(", 4);
}

/* "_parameters" or "_buffers" of the module of this prefix. */
static void put_parameters(file *f, const char *prefix)
{
    pk_text(&f->p, "_parameters");
    pk_ordered_dict(&f->p);
    put_state(&(sink){f, prefix, ""});
    pk_op(&f->p, 'u');
}

/* A module whose children are those in `children`, by their full prefix; all other names are its own. */
static void put_module(file *f, const char *prefix);

static int is_child(const file *f, const char *prefix)
{
    for (int i = 0; i < lam_st_count(f->trace); i++) {
        const char *name = lam_st_at(f->trace, i)->name;
        if (strncmp(name, "param.", 6) == 0 && strncmp(name + 6, prefix, strlen(prefix)) == 0)
            return 1;
    }
    return strcmp(prefix, "pos_emb.") == 0;
}

static void put_children(file *f, const char *prefix)
{
    static const char *const names[] = {
        "word_emb",  "layers",   "crit",   "pos_emb", "emb_layers", "emb_projs", "out_layers",
        "out_projs", "dec_attn", "pos_ff", "CoreNet", "layer_norm", "q_net",     "kv_net",
        "qkv_net",   "r_net",    "o_net",  "0",       "1",          "2",         "3"};
    pk_text(&f->p, "_modules");
    pk_ordered_dict(&f->p);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char inner[NAME];
        snprintf(inner, sizeof inner, "%s%s.", prefix, names[i]);
        if (!is_child(f, inner))
            continue;
        pk_text(&f->p, names[i]);
        put_module(f, inner);
    }
    pk_op(&f->p, 'u');
}

static void put_module(file *f, const char *prefix)
{
    open_module(&f->p, "Part");
    if (strcmp(prefix, "crit.") == 0) {
        json_t *cutoffs = json_deep_copy(json_object_get(f->config, "cutoffs"));
        cutoffs = cutoffs ? cutoffs : json_array();
        json_array_append_new(cutoffs, json_integer(number(f, "n_token", 0)));
        pk_text(&f->p, "cutoffs");
        put_json(&f->p, cutoffs);
        pk_text(&f->p, "div_val");
        pk_int(&f->p, number(f, "div_val", 1));
        json_decref(cutoffs);
    }
    if (strcmp(prefix, "layers.0.dec_attn.") == 0) {
        pk_text(&f->p, "pre_lnorm");
        pk_bool(&f->p, json_is_true(json_object_get(f->config, "pre_lnorm")));
    }
    put_parameters(f, prefix);
    put_children(f, prefix);
    pk_raw(&f->p, "ub", 2);
}

static void put_whole(file *f)
{
    static const char *const attributes[] = {"tgt_len",   "mem_len", "attn_type",
                                             "clamp_len", "n_head",  "d_head"};
    open_module(&f->p, "MemTransformerLM");
    pk_text(&f->p, "training");
    pk_bool(&f->p, 0);
    for (int i = 0; i < 6; i++) {
        pk_text(&f->p, attributes[i]);
        pk_int(&f->p, number(f, attributes[i], -1));
    }
    pk_text(&f->p, "same_length");
    pk_bool(&f->p, json_is_true(json_object_get(f->config, "same_length")));
    put_parameters(f, "");
    put_children(f, "");
    pk_raw(&f->p, "ub", 2);
}

void checkpoint_write(const char *path, const lam_safetensors *trace, const checkpoint *how)
{
    file *f = calloc(1, sizeof *f);
    ck_assert_ptr_nonnull(f);
    f->trace = trace;
    f->how = how;
    f->config = json_loads(lam_st_meta(trace, "config"), 0, NULL);
    f->n = 1;
    ck_assert_ptr_nonnull(f->config);
    pk_raw(&f->p, "\x80\x02", 2);
    if (how->form == CHECKPOINT_LAMEMO) {
        put_lamemo(f);
    } else if (how->form == CHECKPOINT_MODULE) {
        put_whole(f);
    } else {
        pk_ordered_dict(&f->p);
        put_state(&(sink){f, NULL, "module."});
        pk_op(&f->p, 'u');
    }
    pk_op(&f->p, '.');
    f->parts[0] = (zip_part){"archive/data.pkl", f->p.p, f->p.n, 0};
    zip_write(path, f->parts, f->n);
    for (int i = 1; i < f->n; i++)
        free(f->owned[i]);
    pk_free(&f->p);
    json_decref(f->config);
    free(f);
}
