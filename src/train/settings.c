/* settings.c -- see settings.h: the table of settings.def drives defaults, reading, writing (io/json_field.h),
 * checking and comparing. */
#include "train/settings.h"

#include "io/json_field.h"
#include "model/configure.h"
#include "nn/config.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum setting_use { USE_FREE, USE_FIXED } setting_use; /* may it change on resuming? */

typedef struct setting {
    lam_json_field field;
    setting_use use;
    const char *text; /* the default; NULL: none */
    double min, max;  /* of all but words */
} setting;

const char *const lam_muon_row_names[] = {"free", "even", NULL};
const char *const lam_recipe_names[] = {"paper", "fast", NULL};

#define LAM_SETTING(name, kind, use, text, min, max, ...)                                          \
    {{#name, LAM_JSON_##kind, offsetof(lam_settings, name), NULL}, USE_##use, text, min, max},
#define SETTING LAM_SETTING
#define WORD(name, use, text, words, ...)                                                          \
    {{#name, LAM_JSON_WORD, offsetof(lam_settings, name), words}, USE_##use, text, 0, 0},
#define FLAG(name, use, ...)                                                                       \
    {{#name, LAM_JSON_FLAG, offsetof(lam_settings, name), NULL}, USE_##use, NULL, 0, 1},
/* Two rows, one key: put_reset and take_reset. */
#define RESET(name, text, ...)                                                                     \
    {{#name, LAM_JSON_LONG, offsetof(lam_settings, name.every), NULL},                             \
     USE_FREE,                                                                                     \
     text,                                                                                         \
     0,                                                                                            \
     LAM_MANY},                                                                                    \
        {{#name " document", LAM_JSON_FLAG, offsetof(lam_settings, name.document), NULL},          \
         USE_FIXED,                                                                                \
         NULL,                                                                                     \
         0,                                                                                        \
         1},
#define GROUP(topic, heading)
#define OPTION(...)
static const setting table[] = {LAM_SEED_SETTING(LAM_SETTING)
#include "train/settings.def"
};
enum { SETTINGS = sizeof table / sizeof *table };

void lam_settings_defaults(lam_settings *s)
{
    *s = (lam_settings){0};
    for (const setting *t = table; t < table + SETTINGS; t++)
        if (t->text && !lam_field_set(s, &t->field, t->text))
            assert(0 && "the default is not a legal value");
}

void lam_settings_preset(lam_settings *s, const char *preset)
{
    const lam_preset *p = lam_preset_find(preset);
    if (p) {
        s->batch_size = p->batch_size;
        s->max_step = p->max_step;
    }
}

int lam_settings_groups(const lam_settings *s)
{
    return s->leaves > 0 ? s->leaves : s->batch_chunk;
}

static lam_status check_leaves(const lam_settings *s)
{
    const int n = s->leaves;
    if (n == 0)
        return LAM_OK;
    if ((n & (n - 1)) != 0)
        return lam_fail(LAM_ERR_ARG, "leaves is %d, must be a power of two", n);
    if (s->batch_chunk > 1)
        return lam_fail(LAM_ERR_ARG,
                        "leaves %d and batch_chunk %d contradict each other: both say into how "
                        "many parts the batch is divided",
                        n, s->batch_chunk);
    if (s->batch_size % n != 0)
        return lam_fail(LAM_ERR_ARG, "batch_size %d cannot be divided into %d leaves",
                        s->batch_size, n);
    return LAM_OK;
}

lam_status lam_settings_check(const lam_settings *s)
{
    for (const setting *t = table; t < table + SETTINGS; t++) {
        const double v = lam_field_number(s, &t->field);
        if (t->field.kind != LAM_JSON_WORD && !(v >= t->min && v <= t->max))
            return lam_fail(LAM_ERR_ARG, "%s is %g, must be %g to %g", t->field.name, v, t->min,
                            t->max);
    }
    if (s->batch_size % s->batch_chunk != 0)
        return lam_fail(LAM_ERR_ARG,
                        "batch_size %d cannot be divided into batch_chunk %d equal parts",
                        s->batch_size, s->batch_chunk);
    LAM_TRY(check_leaves(s));
    if (s->eta_min > s->lr)
        return lam_fail(LAM_ERR_ARG, "eta_min %g is above lr %g", s->eta_min, s->lr);
    const lam_optimizer_options o = lam_settings_optimizer(s);
    return o.rule->check(&o);
}

lam_optimizer_options lam_settings_optimizer(const lam_settings *s)
{
    return (lam_optimizer_options){.rule = lam_rules[s->optim],
                                   .mom = s->mom,
                                   .beta1 = s->beta1,
                                   .beta2 = s->beta2,
                                   .adam_eps = s->adam_eps,
                                   .muon_mom = s->muon_mom,
                                   .muon_rows = (lam_muon_rows)s->muon_rows,
                                   .matrix_lr = s->matrix_lr,
                                   .embed_lr = s->embed_lr,
                                   .vector_lr = s->vector_lr,
                                   .clip = s->clip,
                                   .clip_together = s->clip_together,
                                   .weight_decay = s->weight_decay,
                                   .averages = s->average > 0.0};
}

lam_optimizer_options lam_optimizer_defaults(void)
{
    lam_settings s;
    lam_settings_defaults(&s);
    return lam_settings_optimizer(&s);
}

int lam_settings_timed(const lam_settings *s)
{
    return s->scheduler_time > 0.0 && s->max_step >= (int64_t)LAM_MANY;
}

int lam_settings_complete(const lam_settings *s, int64_t step, double elapsed)
{
    return step >= s->max_step || (s->scheduler_time > 0.0 && elapsed >= s->scheduler_time);
}

lam_schedule lam_settings_schedule(const lam_settings *s)
{
    return (lam_schedule){
        .kind = (lam_schedule_kind)s->scheduler,
        .lr = s->lr,
        .lr_min = s->eta_min,
        .cooldown = s->cooldown,
        .warmup = (long)s->warmup_step,
        .steps = (long)(s->max_step_scheduler > 0 ? s->max_step_scheduler : s->max_step)};
}

lam_status lam_reset_parse(lam_reset *out, const char *text)
{
    static const char word[] = "document";
    lam_reset reset = {0};
    for (const char *p = text; p;) {
        const size_t len = strcspn(p, ",");
        if (len == strlen(word) && strncmp(p, word, len) == 0)
            reset.document = true;
        else if (len == 0 || len > 15 || strspn(p, "0123456789") != len)
            return lam_fail(LAM_ERR_ARG, "'%.*s' is neither a number, 0 or more, nor '%s'",
                            (int)(len < 40 ? len : 40), p, word);
        else
            reset.every = strtoll(p, NULL, 10);
        p = p[len] == ',' ? p + len + 1 : NULL;
    }
    *out = reset;
    return LAM_OK;
}

/* A number, as long as there are no documents. */
static int put_reset(json_t *object, const char *key, const char *flag, const lam_reset *r)
{
    char text[40] = "document";
    json_object_del(object, flag);
    if (!r->document)
        return 0;
    if (r->every > 0)
        snprintf(text, sizeof text, "document,%lld", (long long)r->every);
    return json_object_set_new(object, key, json_string(text));
}

static lam_status take_reset(lam_reset *r, const json_t *value, const char *label)
{
    if (!value)
        return LAM_OK;
    r->document = false;
    if (!json_is_string(value) || lam_reset_parse(r, json_string_value(value)) == LAM_OK)
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT, "%s: mem_reset: %s", label, lam_error());
}

json_t *lam_settings_print(const lam_settings *s)
{
    json_t *object = json_object();
    int bad = !object;
    for (const setting *t = table; t < table + SETTINGS; t++)
        bad |= lam_json_put(object, &t->field, s);
    bad |= put_reset(object, "mem_reset", "mem_reset document", &s->mem_reset);
    if (bad)
        json_decref(object);
    return bad ? NULL : object;
}

lam_status lam_settings_parse(lam_settings *s, const json_t *object, const char *label)
{
    if (!json_is_object(object))
        return lam_fail(LAM_ERR_FORMAT, "%s: settings are not a JSON object", label);
    const json_t *const reset = json_object_get(object, "mem_reset");
    for (const setting *t = table; t < table + SETTINGS; t++)
        if (strcmp(t->field.name, "mem_reset") != 0 || !json_is_string(reset))
            LAM_TRY(lam_json_take(s, &t->field, object, label));
    LAM_TRY(take_reset(&s->mem_reset, reset, label));
    if (lam_settings_check(s) == LAM_OK)
        return LAM_OK;
    /* A file that says what cannot be is a bad file, not a bad option. */
    return lam_fail(LAM_ERR_FORMAT, "%s: settings: %s", label, lam_error());
}

lam_status lam_settings_same_state(const lam_settings *now, const lam_settings *then)
{
    for (const setting *t = table; t < table + SETTINGS; t++) {
        const lam_json_field *f = &t->field;
        if (t->use != USE_FIXED)
            continue;
        assert(f->kind != LAM_JSON_REAL); /* as doubles two large seeds would be one */
        const int64_t a = lam_field_whole(now, f), b = lam_field_whole(then, f);
        if (a == b)
            continue;
        if (f->kind == LAM_JSON_FLAG)
            return lam_fail(LAM_ERR_ARG, "%s is %s: the run was begun %s it", f->name,
                            a ? "on" : "off", b ? "with" : "without");
        if (f->kind == LAM_JSON_WORD)
            return lam_fail(LAM_ERR_ARG, "%s %s: the run was begun with %s", f->name, f->words[a],
                            f->words[b]);
        return lam_fail(LAM_ERR_ARG, "%s %lld: the run was begun with %lld", f->name, (long long)a,
                        (long long)b);
    }
    return LAM_OK;
}
