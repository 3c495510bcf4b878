/* shape_options.c -- see shape_options.h. */
#include "cli/shape_options.h"

#include "cli/spelling.h"
#include "core/log.h"
#include "mem/fields.h"
#include "model/configure.h"

#include <stdio.h>
#include <string.h>

const char *const lam_init_names[] = {"normal", "uniform", NULL};

/* ---- cutoffs ---- */

enum { LEAST_ADAPTIVE = 1000 }; /* smaller vocabularies have no rare types */

/* wt103's and lm1b's cutoffs as published; others in the proportion of the former. */
static void cut_by_size(lam_config *cfg)
{
    static const int wt103[] = {20000, 40000, 200000}, lm1b[] = {60000, 100000, 640000};
    const int V = cfg->n_token;
    memset(cfg->cutoffs, 0, sizeof cfg->cutoffs);
    cfg->n_cutoffs = 3;
    if (V > 200000)
        memcpy(cfg->cutoffs, V > 700000 ? lm1b : wt103, sizeof wt103);
    else {
        cfg->cutoffs[0] = V * 3 / 40;
        cfg->cutoffs[1] = V * 3 / 20;
        cfg->cutoffs[2] = V / 4 * 3;
    }
}

/* A preset's cutoffs are for the corpus it is named after. */
static void fit_cutoffs(lam_config *cfg)
{
    if (cfg->n_cutoffs == 0 || cfg->cutoffs[cfg->n_cutoffs - 1] < cfg->n_token)
        return;
    cfg->n_cutoffs = 0;
    memset(cfg->cutoffs, 0, sizeof cfg->cutoffs);
    if (cfg->n_token >= LEAST_ADAPTIVE)
        cut_by_size(cfg);
}

static lam_status apply_cutoffs(lam_config *cfg, const lam_shape_options *o)
{
    if (o->cutoffs.n > LAM_MAX_CUTOFFS)
        return lam_fail(LAM_ERR_ARG, "--cutoffs: %d numbers, at most %d", o->cutoffs.n,
                        LAM_MAX_CUTOFFS);
    if (o->cutoffs.n > 0) {
        cfg->n_cutoffs = o->cutoffs.n;
        memset(cfg->cutoffs, 0, sizeof cfg->cutoffs);
        memcpy(cfg->cutoffs, o->cutoffs.v, (size_t)o->cutoffs.n * sizeof *o->cutoffs.v);
    } else if (o->adaptive && cfg->n_cutoffs == 0) {
        if (cfg->n_token < LEAST_ADAPTIVE)
            return lam_fail(LAM_ERR_ARG, "--adaptive: a vocabulary of %d tokens has no rare ones",
                            cfg->n_token);
        cut_by_size(cfg);
    }
    return LAM_OK;
}

/* ---- the whole configuration ---- */

/* Lengths of memories that follow the two others and were not written. */
static void follow(lam_config *cfg, const lam_args *args, lam_which w, bool mem_len, bool tgt_len)
{
    for (int i = 0; lam_mem_all[i]; i++)
        for (const lam_mem_field *f = lam_mem_all[i]->fields; f && f->json.name; f++) {
            const bool changed = (f->follows == LAM_FOLLOWS_MEM_LEN && mem_len) ||
                                 (f->follows == LAM_FOLLOWS_TGT_LEN && tgt_len);
            const bool kept =
                f->weighs && w == LAM_WRITTEN; /* there are weights, which hang on it */
            if (changed && !kept && !lam_option_given(args, f->option))
                lam_fields_set(cfg, f->json.name, "0");
        }
}

static lam_status apply(lam_config *cfg, const lam_args *args, lam_which w)
{
    const lam_shape_options *o = args->options;
    const int width = cfg->d_model, rows = cfg->mem_len, length = cfg->tgt_len;
    lam_options_copy(cfg, args, LAM_SHAPE(cfg), sizeof *cfg, w);
    if (cfg->d_model != width && !lam_option_given(args, "d-embed"))
        cfg->d_embed = 0; /* it follows */
    follow(cfg, args, w, cfg->mem_len != rows, cfg->tgt_len != length);
    cfg->same_length |= o->same_length;
    cfg->pre_lnorm |= o->pre_lnorm;
    cfg->tie_weight &= !o->not_tied;
    if (w == LAM_WRITTEN_OR_DEFAULT)
        fit_cutoffs(cfg);
    LAM_TRY(apply_cutoffs(cfg, o));
    /* attn_type says which memory it belongs to, unless the user says both. */
    if (lam_option_given(args, "attn-type") && !lam_option_given(args, "memory"))
        cfg->memory[0] = '\0';
    LAM_TRY(lam_config_finish(cfg));
    return lam_shape_usable(args, cfg->memory);
}

/* To a name that is none, the one that it may have meant. */
static lam_status add_near(lam_status status, const lam_shape_options *o)
{
    const char *presets[LAM_OPTIONS_MAX] = {0};
    for (int i = 0; lam_preset_name(i); i++)
        presets[i] = lam_preset_name(i);
    const char *const near = !lam_preset_find(o->preset) ? lam_closest(o->preset, presets)
                                                         : lam_closest(o->memory, lam_mem_names);
    return near && strcmp(near, o->memory) != 0
               ? lam_fail(status, "%s; did you mean %s?", lam_error(), near)
               : status;
}

lam_status lam_shape_fresh(lam_config *cfg, const lam_args *args, int n_token)
{
    const lam_shape_options *o = args->options;
    const lam_status status = lam_config_preset(cfg, o->preset, o->memory);
    if (status != LAM_OK)
        return add_near(status, o);
    if (n_token > 0)
        cfg->n_token = n_token;
    return apply(cfg, args, LAM_WRITTEN_OR_DEFAULT);
}

bool lam_shape_cut(const lam_config *cfg, const lam_args *args)
{
    const lam_shape_options *o = args->options;
    lam_config preset;
    return o->cutoffs.n == 0 && lam_config_preset(&preset, o->preset, o->memory) == LAM_OK &&
           preset.n_cutoffs > 0 && memcmp(preset.cutoffs, cfg->cutoffs, sizeof cfg->cutoffs) != 0;
}

lam_status lam_shape_change(lam_config *cfg, const lam_args *args)
{
    return apply(cfg, args, LAM_WRITTEN);
}

/* ---- what does not fit ---- */

static const char *print_field(char *text, size_t size, const lam_option *row, const void *field)
{
    if (row->type == LAM_OPT_CHOICE)
        return row->choices[*(const int *)field];
    if (row->type == LAM_OPT_DOUBLE)
        snprintf(text, size, "%g", *(const double *)field);
    else
        snprintf(text, size, "%d", *(const int *)field);
    return text;
}

lam_status lam_shape_same(const lam_config *was, const lam_config *wanted, const lam_args *args,
                          const char *why)
{
    const lam_option *table = args->table.rows;
    char text[32];
    for (int i = 0; table[i].help; i++) {
        const size_t at = table[i].offset - LAM_SHAPE(cfg);
        if (!args->given[i] || table[i].offset < LAM_SHAPE(cfg) || at >= sizeof *was ||
            table[i].type == LAM_OPT_FLAG) /* lam_config_same() has words for those */
            continue;
        const char *then = (const char *)was + at, *now = (const char *)wanted + at;
        if (memcmp(then, now, lam_option_size(&table[i])) != 0)
            return lam_fail(LAM_ERR_ARG, "--%s %s: %s %s", table[i].name, args->text[i], why,
                            print_field(text, sizeof text, &table[i], then));
    }
    return LAM_OK;
}

bool lam_option_serves(const lam_option *option, const char *memory)
{
    const lam_mem_ops *mem;
    return lam_mem_find(&mem, memory) == LAM_OK && lam_mem_has(mem, option->traits) &&
           (!option->only || strcmp(option->only, memory) == 0);
}

lam_status lam_shape_usable(const lam_args *args, const char *memory)
{
    char text[LAM_MEMORY_TEXT];
    const lam_option *table = args->table.rows;
    for (int i = 0; table[i].help; i++) {
        const bool off = args->text[i] && strcmp(args->text[i], "0") == 0;
        if (!args->given[i] || off || lam_option_serves(&table[i], memory))
            continue;
        const char *only = table[i].only ? table[i].only : lam_mem_having(text, table[i].traits);
        if (!table[i].harmless)
            return lam_fail(LAM_ERR_ARG, "--%s does not apply to memory %s, only to: %s",
                            table[i].name, memory, only);
        lam_log(LAM_LOG_WARN, "--%s has no effect with memory %s, only with: %s", table[i].name,
                memory, only);
    }
    return LAM_OK;
}

/* ---- the memories' options ---- */

static lam_option option_of(const lam_mem_ops *mem, const lam_mem_field *f, size_t at)
{
    lam_option o = {.name = f->option,
                    .offset = at + f->json.offset,
                    .value = f->value,
                    .help = f->help,
                    .min = f->min,
                    .max = f->max,
                    .aliases = f->aliases,
                    .only = mem->name};
    o.shown = f->follows == LAM_FOLLOWS_MEM_LEN   ? "mem-len"
              : f->follows == LAM_FOLLOWS_TGT_LEN ? "tgt-len"
                                                  : f->fresh;
    o.type = f->json.kind == LAM_JSON_INT    ? LAM_OPT_INT
             : f->json.kind == LAM_JSON_REAL ? LAM_OPT_DOUBLE
             : f->json.kind == LAM_JSON_FLAG ? LAM_OPT_FLAG
                                             : LAM_OPT_CHOICE;
    o.arg = o.type == LAM_OPT_INT      ? "N"
            : o.type == LAM_OPT_DOUBLE ? "X"
            : o.type == LAM_OPT_FLAG   ? NULL
                                       : "WORD";
    o.choices = f->json.words;
    return o;
}

static int list_fields(lam_option *rows, int room, const lam_mem_ops *mem, size_t cfg)
{
    int n = 0;
    if (mem->fields)
        rows[n++] = (lam_option){.type = LAM_OPT_GROUP, .arg = "memory", .help = mem->options};
    for (const lam_mem_field *f = mem->fields; f && f->json.name; f++)
        if (f->option && n < room)
            rows[n++] = option_of(mem, f, cfg + lam_fields_offset(mem));
    return n;
}

/* Those of the memory that is the default come first. */
int lam_shape_memories(lam_option *rows, int room, size_t offset)
{
    int n = 0;
    for (int first = 1; first >= 0; first--)
        for (int i = 0; lam_mem_all[i] && n < room; i++)
            if ((strcmp(lam_mem_all[i]->name, LAM_MEMORY_DEFAULT) == 0) == first)
                n += list_fields(rows + n, room - n, lam_mem_all[i], offset);
    return n;
}
