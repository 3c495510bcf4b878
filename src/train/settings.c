/* settings.c -- see settings.h: one table of fields drives reading, writing and comparing. */
#include "train/settings.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <assert.h>
#include <string.h>

typedef enum field_type { FIELD_INT, FIELD_BOOL, FIELD_LONG, FIELD_REAL, FIELD_WORD } field_type;
typedef enum field_use { FIELD_FREE, FIELD_FIXED } field_use; /* may it change on resuming? */

typedef struct field {
    const char *name;
    field_type type;
    field_use use;
    size_t offset;
    double min, max;
    const char *const *words;
} field;

const char *const lam_optim_names[] = {"adam", "sgd", "adagrad", "muon", NULL};
const char *const lam_muon_row_names[] = {"free", "even", NULL};
const char *const lam_recipe_names[] = {"paper", "fast", NULL};

/* clang-format off */
#define FIELD(name, type, use, min, max) {#name, type, use, offsetof(lam_settings, name), min, max, NULL}
#define WORD(name, use, words) {#name, FIELD_WORD, use, offsetof(lam_settings, name), 0, 0, words}
/* clang-format on */
static const field fields[] = {
    FIELD(batch_size, FIELD_INT, FIELD_FIXED, 1, 1 << 20),
    FIELD(batch_chunk, FIELD_INT, FIELD_FIXED, 1, 1 << 20),
    FIELD(roll, FIELD_BOOL, FIELD_FIXED, 0, 1),
    FIELD(varlen, FIELD_BOOL, FIELD_FIXED, 0, 1),
    FIELD(seed, FIELD_LONG, FIELD_FIXED, (double)INT64_MIN, (double)INT64_MAX),
    WORD(recipe, FIELD_FIXED, lam_recipe_names),
    WORD(optim, FIELD_FIXED, lam_optim_names),
    FIELD(lr, FIELD_REAL, FIELD_FREE, 0, 1e6),
    FIELD(mom, FIELD_REAL, FIELD_FREE, 0, 1),
    FIELD(beta1, FIELD_REAL, FIELD_FREE, 0, 1),
    FIELD(beta2, FIELD_REAL, FIELD_FREE, 0, 1),
    FIELD(adam_eps, FIELD_REAL, FIELD_FREE, 0, 1),
    FIELD(muon_mom, FIELD_REAL, FIELD_FREE, 0, 1),
    WORD(muon_rows, FIELD_FREE, lam_muon_row_names),
    FIELD(matrix_lr, FIELD_REAL, FIELD_FREE, 0, 1e6),
    FIELD(embed_lr, FIELD_REAL, FIELD_FREE, 0, 1e6),
    FIELD(vector_lr, FIELD_REAL, FIELD_FREE, 0, 1e6),
    FIELD(clip, FIELD_REAL, FIELD_FREE, 0, 1e30),
    FIELD(clip_together, FIELD_BOOL, FIELD_FREE, 0, 1),
    FIELD(weight_decay, FIELD_REAL, FIELD_FREE, 0, 1e6),
    FIELD(half_loss, FIELD_BOOL, FIELD_FREE, 0, 1),
    FIELD(loss_scale, FIELD_REAL, FIELD_FREE, 1e-6, 1e6),
    WORD(scheduler, FIELD_FREE, lam_schedule_names),
    FIELD(warmup_step, FIELD_LONG, FIELD_FREE, 0, LAM_MANY),
    FIELD(max_step_scheduler, FIELD_LONG, FIELD_FREE, 0, LAM_MANY),
    FIELD(cooldown, FIELD_REAL, FIELD_FREE, 0, 1),
    FIELD(scheduler_time, FIELD_REAL, FIELD_FREE, 0, LAM_MANY),
    FIELD(eta_min, FIELD_REAL, FIELD_FREE, 0, 1e6),
    FIELD(decay_rate, FIELD_REAL, FIELD_FREE, 0, 1),
    FIELD(patience, FIELD_INT, FIELD_FREE, 0, 1 << 30),
    FIELD(short_mem, FIELD_INT, FIELD_FIXED, 0, LAM_MAX_LEN),
    FIELD(short_mem_part, FIELD_REAL, FIELD_FREE, 0, 1),
    FIELD(mem_reset, FIELD_LONG, FIELD_FREE, 0, LAM_MANY),
    FIELD(max_step, FIELD_LONG, FIELD_FREE, 1, LAM_MANY),
    FIELD(max_time, FIELD_REAL, FIELD_FREE, 0, LAM_MANY),
    FIELD(log_interval, FIELD_LONG, FIELD_FREE, 1, LAM_MANY),
    FIELD(eval_interval, FIELD_LONG, FIELD_FREE, 0, LAM_MANY),
    FIELD(save_interval, FIELD_LONG, FIELD_FREE, 0, LAM_MANY),
    FIELD(max_eval_steps, FIELD_LONG, FIELD_FREE, 0, LAM_MANY),
    FIELD(eval_batch_size, FIELD_INT, FIELD_FREE, 1, 1 << 20),
    FIELD(eval_tgt_len, FIELD_INT, FIELD_FREE, 0, LAM_MAX_LEN),
};
enum { FIELDS = sizeof fields / sizeof *fields };

void lam_settings_defaults(lam_settings *s)
{
    const lam_optimizer_options o = lam_optimizer_defaults();
    *s = (lam_settings){
        .batch_chunk = 1,
        .seed = 1111,
        .optim = (int)o.kind,
        .lr = 2.5e-4,
        .clip = o.clip,
        .beta1 = o.beta1,
        .beta2 = o.beta2,
        .adam_eps = o.eps,
        .muon_mom = o.muon_momentum,
        .matrix_lr = o.matrix_lr,
        .embed_lr = o.table_lr,
        .vector_lr = o.vector_lr,
        .cooldown = 0.3,
        .short_mem_part = 0.5,
        .loss_scale = 1.0,
        .scheduler = LAM_SCHEDULE_COSINE,
        .decay_rate = 0.5,
        .log_interval = 100,
        .eval_interval = 1000,
        .eval_batch_size = 16,
    };
}

void lam_settings_preset(lam_settings *s, const char *preset)
{
    /* The published batches and lengths; the two small ones fit a laptop. */
    static const struct {
        const char *name;
        int batch_size;
        int64_t max_step;
    } presets[] = {
        {"tiny", 16, 4000},         {"small", 8, 20000},        {"enwik8-base", 40, 100000},
        {"text8-base", 40, 100000}, {"wt103-base", 64, 250000}, {"wt103-adaptive", 64, 250000},
    };
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcmp(preset, presets[i].name) == 0) {
            s->batch_size = presets[i].batch_size;
            s->max_step = presets[i].max_step;
        }
}

/* Of all but reals. */
static int64_t whole_of(const lam_settings *s, const field *f)
{
    const void *at = (const char *)s + f->offset;
    return f->type == FIELD_LONG ? *(const int64_t *)at : *(const int *)at;
}

static double value_of(const lam_settings *s, const field *f)
{
    const void *at = (const char *)s + f->offset;
    return f->type == FIELD_REAL ? *(const double *)at : (double)whole_of(s, f);
}

static lam_status below_one(const char *name, double x)
{
    return x < 1.0 ? LAM_OK : lam_fail(LAM_ERR_ARG, "%s is %g, must be below 1", name, x);
}

lam_status lam_settings_check(const lam_settings *s)
{
    for (const field *f = fields; f < fields + FIELDS; f++) {
        const double v = value_of(s, f);
        if (f->type != FIELD_WORD && !(v >= f->min && v <= f->max))
            return lam_fail(LAM_ERR_ARG, "%s is %g, must be %g to %g", f->name, v, f->min, f->max);
    }
    if (s->batch_size % s->batch_chunk != 0)
        return lam_fail(LAM_ERR_ARG,
                        "batch_size %d cannot be divided into batch_chunk %d equal parts",
                        s->batch_size, s->batch_chunk);
    if (s->eta_min > s->lr)
        return lam_fail(LAM_ERR_ARG, "eta_min %g is above lr %g", s->eta_min, s->lr);
    if (s->optim == LAM_SGD)
        return below_one("mom", s->mom);
    if (s->optim == LAM_OPTIM_MUON)
        LAM_TRY(below_one("muon_mom", s->muon_mom));
    LAM_TRY(below_one("beta1", s->beta1));
    return below_one("beta2", s->beta2);
}

lam_optimizer_options lam_settings_optimizer(const lam_settings *s)
{
    lam_optimizer_options o = lam_optimizer_defaults();
    o.muon = s->optim == LAM_OPTIM_MUON;
    o.kind = o.muon ? LAM_ADAM : (lam_update_kind)s->optim;
    o.beta1 = s->beta1;
    o.beta2 = s->beta2;
    o.eps = s->adam_eps;
    o.muon_momentum = s->muon_mom;
    o.muon_rows = (lam_muon_rows)s->muon_rows;
    o.matrix_lr = s->matrix_lr;
    o.table_lr = s->embed_lr;
    o.vector_lr = s->vector_lr;
    o.clip = s->clip;
    o.clip_together = s->clip_together;
    o.decay = s->weight_decay;
    if (o.kind == LAM_SGD)
        o.beta1 = s->mom;
    if (o.kind == LAM_ADAGRAD)
        o.eps = 1e-10; /* torch.optim.Adagrad's */
    return o;
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

json_t *lam_settings_print(const lam_settings *s)
{
    json_t *object = json_object();
    int bad = !object;
    for (const field *f = fields; f < fields + FIELDS; f++) {
        const void *at = (const char *)s + f->offset;
        json_t *value = f->type == FIELD_REAL   ? json_real(*(const double *)at)
                        : f->type == FIELD_LONG ? json_integer(*(const int64_t *)at)
                        : f->type == FIELD_WORD ? json_string(f->words[*(const int *)at])
                        : f->type == FIELD_BOOL ? json_boolean(*(const int *)at)
                                                : json_integer(*(const int *)at);
        bad |= json_object_set_new(object, f->name, value);
    }
    if (bad)
        json_decref(object);
    return bad ? NULL : object;
}

static lam_status parse_field(lam_settings *s, const field *f, const json_t *value,
                              const char *label)
{
    void *at = (char *)s + f->offset;
    if (f->type == FIELD_REAL && json_is_number(value)) {
        *(double *)at = json_number_value(value);
        return LAM_OK;
    }
    if (f->type == FIELD_BOOL && json_is_boolean(value)) {
        *(int *)at = json_is_true(value);
        return LAM_OK;
    }
    if (f->type == FIELD_LONG && json_is_integer(value)) {
        *(int64_t *)at = json_integer_value(value);
        return LAM_OK;
    }
    if (f->type == FIELD_INT && json_is_integer(value) && json_integer_value(value) >= 0 &&
        json_integer_value(value) <= 1 << 30) {
        *(int *)at = (int)json_integer_value(value);
        return LAM_OK;
    }
    for (int i = 0; f->type == FIELD_WORD && f->words[i]; i++)
        if (json_is_string(value) && strcmp(json_string_value(value), f->words[i]) == 0) {
            *(int *)at = i;
            return LAM_OK;
        }
    return lam_fail(LAM_ERR_FORMAT, "%s: %s has a value of another kind", label, f->name);
}

lam_status lam_settings_parse(lam_settings *s, const json_t *object, const char *label)
{
    if (!json_is_object(object))
        return lam_fail(LAM_ERR_FORMAT, "%s: settings are not a JSON object", label);
    for (const field *f = fields; f < fields + FIELDS; f++) {
        const json_t *value = json_object_get(object, f->name);
        if (value)
            LAM_TRY(parse_field(s, f, value, label));
    }
    if (lam_settings_check(s) == LAM_OK)
        return LAM_OK;
    /* A file that says what cannot be is a bad file, not a bad option. */
    return lam_fail(LAM_ERR_FORMAT, "%s: settings: %s", label, lam_error());
}

lam_status lam_settings_same_state(const lam_settings *now, const lam_settings *then)
{
    for (const field *f = fields; f < fields + FIELDS; f++) {
        if (f->use != FIELD_FIXED)
            continue;
        assert(f->type != FIELD_REAL); /* as doubles two large seeds would be one */
        const int64_t a = whole_of(now, f), b = whole_of(then, f);
        if (a == b)
            continue;
        if (f->type == FIELD_BOOL)
            return lam_fail(LAM_ERR_ARG, "%s is %s: the run was begun %s it", f->name,
                            a ? "on" : "off", b ? "with" : "without");
        if (f->type == FIELD_WORD)
            return lam_fail(LAM_ERR_ARG, "%s %s: the run was begun with %s", f->name, f->words[a],
                            f->words[b]);
        return lam_fail(LAM_ERR_ARG, "%s %lld: the run was begun with %lld", f->name, (long long)a,
                        (long long)b);
    }
    return LAM_OK;
}
