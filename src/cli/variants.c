/* variants.c -- see variants.h. */
#include "cli/variants.h"

#include "cli/commands.h"
#include "cli/spelling.h"
#include "model/model.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

lam_status lam_words_add(lam_words *w, const char *format, ...)
{
    va_list args;
    if (w->n == LAM_WORDS_MAX)
        return lam_fail(LAM_ERR_ARG, "more than %d words for a training", LAM_WORDS_MAX);
    va_start(args, format);
    const int length = vasprintf(&w->v[w->n], format, args);
    va_end(args);
    if (length < 0) {
        w->v[w->n] = NULL;
        return lam_fail(LAM_ERR_MEMORY, "no memory for a command line");
    }
    w->n++;
    return LAM_OK;
}

void lam_words_free(lam_words *w)
{
    for (int i = 0; i < w->n; i++)
        free(w->v[i]);
    *w = (lam_words){0};
}

/* ---- operands ---- */

/* What a name stands for: a memory, or one without something, "lamemo:alpha=zero". */
typedef struct named {
    const char *name;
    char definition[LAM_DEFINITION_MAX];
} named;

enum { NAMED_MAX = 32 };

/* The memories, then the ablations of all of them; returns how many. */
static int list_named(named out[NAMED_MAX], int ablations)
{
    int n = 0;
    for (int i = 0; lam_mem_all[i] && n < NAMED_MAX; i++, n++) {
        out[n].name = lam_mem_all[i]->name;
        snprintf(out[n].definition, LAM_DEFINITION_MAX, "%s", out[n].name);
    }
    for (int i = 0; ablations && lam_mem_all[i]; i++) {
        const lam_ablation *a = lam_mem_all[i]->ablations;
        for (; a && a->name && n < NAMED_MAX; a++, n++) {
            out[n].name = a->name;
            snprintf(out[n].definition, LAM_DEFINITION_MAX, "%s:%s", lam_mem_all[i]->name,
                     a->options);
        }
    }
    return n;
}

static lam_status add_all(lam_comparison *c, int ablations)
{
    named all[NAMED_MAX];
    const int n = list_named(all, ablations);
    for (int i = 0; i < n; i++)
        LAM_TRY(lam_comparison_add_model(c, all[i].name, all[i].definition));
    return LAM_OK;
}

lam_status lam_variant_add_memories(lam_comparison *c)
{
    return add_all(c, 0);
}

/* The definition with a name in front written out. */
static lam_status expand(char out[LAM_DEFINITION_MAX], const char *definition)
{
    named all[NAMED_MAX];
    const char *words[NAMED_MAX + 1] = {0};
    char names[512] = "", memory[LAM_LABEL_MAX];
    const size_t head = strcspn(definition, ":");
    const int n = list_named(all, 1);
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        words[i] = all[i].name;
        if (strlen(all[i].name) != head || strncmp(all[i].name, definition, head) != 0) {
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used > 0 ? ", " : "", all[i].name);
            continue;
        }
        if (snprintf(out, LAM_DEFINITION_MAX, "%s%s", all[i].definition, definition + head) <
            LAM_DEFINITION_MAX)
            return LAM_OK;
        return lam_fail(LAM_ERR_ARG, "%.40s...: more than %d characters", definition,
                        LAM_DEFINITION_MAX - 1);
    }
    snprintf(memory, sizeof memory, "%.*s", (int)head, definition);
    const char *const near = lam_closest(memory, words);
    return lam_fail(LAM_ERR_ARG, "there is no memory '%s': must be one of: %s%s%s%s%s", memory,
                    names,
                    memchr(definition, ',', head) ? "; blanks, not commas, separate several" : "",
                    near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

lam_status lam_variant_add(lam_comparison *c, const char *operand)
{
    char label[LAM_LABEL_MAX], definition[LAM_DEFINITION_MAX];
    const size_t n = strcspn(operand, "=:");
    if (strcmp(operand, "all") == 0)
        return add_all(c, 1);
    if (operand[n] == ':')
        return lam_fail(LAM_ERR_ARG, "'%s' needs a label: LABEL=%s", operand, operand);
    LAM_TRY(expand(definition, operand[n] == '=' ? operand + n + 1 : operand));
    snprintf(label, sizeof label, "%.*s", (int)n, operand);
    if (n >= sizeof label)
        return lam_fail(LAM_ERR_ARG, "'%s...' is too long for a label: at most %d characters",
                        label, LAM_LABEL_MAX - 1);
    return lam_comparison_add_model(c, label, definition);
}

/* ---- words ---- */

/* "lamemo:alpha=zero" -> --memory=lamemo --alpha=zero */
static lam_status add_definition(lam_words *w, const char *definition)
{
    const char *prefix = "memory=";
    for (const char *at = definition;; prefix = "") {
        const size_t n = strcspn(at, ":");
        LAM_TRY(lam_words_add(w, "--%s%.*s", prefix, (int)n, at));
        if (at[n] == '\0')
            return LAM_OK;
        at += n + 1;
    }
}

/* The options hold for all models that can use them. */
static bool is_for(const lam_compared_model *m, const char *name)
{
    char memory[LAM_DEFINITION_MAX];
    lam_option_table table;
    const lam_option *row = table.rows;
    lam_options_list(&table, &lam_command_train);
    while (row->help && (!row->name || strcmp(row->name, name) != 0))
        row++;
    snprintf(memory, sizeof memory, "%.*s", (int)strcspn(m->definition, ":"), m->definition);
    return lam_option_serves(row, memory);
}

lam_status lam_variant_words(lam_words *w, const lam_comparison *c, const lam_compared_model *m)
{
    const char *name;
    json_t *value;
    LAM_TRY(lam_words_add(w, "lamemo"));
    LAM_TRY(lam_words_add(w, "train"));
    json_object_foreach(c->options, name, value) {
        if (!is_for(m, name))
            continue;
        if (json_is_string(value))
            LAM_TRY(lam_words_add(w, "--%s=%s", name, json_string_value(value)));
        else
            LAM_TRY(lam_words_add(w, "--%s", name));
    }
    return add_definition(w, m->definition);
}

/* Parses words[1..] as train's; what is wrong is said in compare's name.  argv is reordered, so w is used up. */
static void parse(lam_args *args, lam_train_options *o, lam_words *w, const char *source)
{
    static lam_command as_compare; /* args keeps it */
    as_compare = lam_command_train;
    as_compare.name = "compare";
    as_compare.source = source;
    *o = (lam_train_options){0};
    char *argv[LAM_WORDS_MAX + 1];
    memcpy(argv, w->v, sizeof argv);
    lam_args_parse(args, o, &as_compare, w->n - 1, argv + 1);
}

/* A word that is no option of a training: parsing would answer it, or end there. */
static lam_status check_words(const lam_compared_model *m)
{
    static const char *const others[] = {"memory", "help", "usage", "quiet", "verbose"};
    for (const char *at = strchr(m->definition, ':'); at; at = strchr(at + 1, ':')) {
        const char *const name = at + 1;
        const size_t n = strcspn(name, ":=");
        if (n == 0)
            return lam_fail(LAM_ERR_ARG, "%s=%s: no option's name after a ':'", m->label,
                            m->definition);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (strncmp(others[i], name, n) == 0) /* it may be abbreviated */
                return lam_fail(LAM_ERR_ARG, "%s=%s: '%.*s' is no option of a model", m->label,
                                m->definition, (int)n, name);
    }
    return LAM_OK;
}

/* Data, seeds, length and the beginning are equal for all. */
static lam_status check_definition(const lam_compared_model *m, const char *source)
{
    static const char *const shared[] = {
        "data",   "out",       "preset",  "seed",    "max-step",   "max-time", "scheduler-time",
        "resume", "overwrite", "tgt-len", "no-test", "batch-size", "json",     "epochs"};
    static lam_train_options o;
    lam_args args;
    lam_words w = {0};
    LAM_TRY(check_words(m));
    lam_status status = lam_words_add(&w, "lamemo");
    if (status == LAM_OK)
        status = lam_words_add(&w, "train");
    if (status == LAM_OK)
        status = add_definition(&w, m->definition);
    if (status == LAM_OK)
        parse(&args, &o, &w, source);
    for (size_t i = 0; i < sizeof shared / sizeof *shared && status == LAM_OK; i++)
        if (lam_option_given(&args, shared[i]))
            status = lam_fail(LAM_ERR_ARG, "%s=%s: --%s is the same for all models", m->label,
                              m->definition, shared[i]);
    if (status == LAM_OK && lam_option_given(&args, "init-from"))
        status = lam_fail(LAM_ERR_ARG, "%s=%s: all models begin with random weights", m->label,
                          m->definition);
    lam_words_free(&w);
    return status;
}

lam_status lam_variants_use(const lam_comparison *c)
{
    const char *name;
    json_t *value;
    json_object_foreach(c->options, name, value) {
        int m = 0;
        while (m < c->n_models && !is_for(&c->models[m], name))
            m++;
        if (m == c->n_models)
            return lam_fail(LAM_ERR_ARG, "--%s does not apply to any of the models", name);
    }
    return LAM_OK;
}

static lam_status count_parameters(lam_compared_model *m)
{
    lam_dev *dev = NULL;
    lam_model model = {0};
    LAM_TRY(lam_device_open(&dev, &(lam_device_options){.device = "ref"}));
    const lam_status status = lam_model_declare(&model, &m->cfg, dev);
    if (status == LAM_OK)
        m->parameters = lam_model_count(&model);
    lam_model_undeclare(&model);
    dev->ops->close(dev);
    return status;
}

lam_status lam_variant_resolve(lam_compared_model *m, lam_settings *settings,
                               const lam_comparison *c, const lam_corpus_info *corpus,
                               const char *source)
{
    static lam_train_options o;
    lam_args args;
    lam_words w = {0};
    LAM_TRY(check_definition(m, source));
    lam_status status = lam_variant_words(&w, c, m);
    if (status == LAM_OK) {
        parse(&args, &o, &w, source);
        status = lam_train_fresh(&m->cfg, settings, &args, corpus->vocab_size,
                                 corpus->tokens[LAM_TRAIN]);
    }
    lam_words_free(&w);
    return status == LAM_OK ? count_parameters(m) : status;
}
