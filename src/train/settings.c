/* settings.c -- see settings.h: one table of fields drives reading, writing (io/json_field.h), checking and
 * comparing. */
#include "train/settings.h"

#include "io/json_field.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

typedef enum setting_use { USE_FREE, USE_FIXED } setting_use; /* may it change on resuming? */

typedef struct setting {
    lam_json_field field;
    setting_use use;
    double min, max; /* of all but words */
} setting;

const char *const lam_optim_names[] = {"adam", "sgd", "adagrad", "muon", NULL};
const char *const lam_muon_row_names[] = {"free", "even", NULL};
const char *const lam_recipe_names[] = {"paper", "fast", NULL};

/* clang-format off */
#define SET(name, kind, use, min, max) {{#name, LAM_JSON_##kind, offsetof(lam_settings, name), NULL}, USE_##use, min, max}
#define WORD(name, use, words) {{#name, LAM_JSON_WORD, offsetof(lam_settings, name), words}, USE_##use, 0, 0}
/* clang-format on */
static const setting table[] = {
    SET(batch_size, INT, FIXED, 1, 1 << 20),
    SET(batch_chunk, INT, FIXED, 1, 1 << 20),
    SET(roll, BOOL, FIXED, 0, 1),
    SET(varlen, BOOL, FIXED, 0, 1),
    SET(seed, LONG, FIXED, (double)INT64_MIN, (double)INT64_MAX),
    WORD(recipe, FIXED, lam_recipe_names),
    WORD(optim, FIXED, lam_optim_names),
    SET(lr, REAL, FREE, 0, 1e6),
    SET(mom, REAL, FREE, 0, 1),
    SET(beta1, REAL, FREE, 0, 1),
    SET(beta2, REAL, FREE, 0, 1),
    SET(adam_eps, REAL, FREE, 0, 1),
    SET(muon_mom, REAL, FREE, 0, 1),
    WORD(muon_rows, FREE, lam_muon_row_names),
    SET(matrix_lr, REAL, FREE, 0, 1e6),
    SET(embed_lr, REAL, FREE, 0, 1e6),
    SET(vector_lr, REAL, FREE, 0, 1e6),
    SET(clip, REAL, FREE, 0, 1e30),
    SET(clip_together, BOOL, FREE, 0, 1),
    SET(weight_decay, REAL, FREE, 0, 1e6),
    SET(half_loss, BOOL, FREE, 0, 1),
    SET(loss_scale, REAL, FREE, 1e-6, 1e6),
    WORD(scheduler, FREE, lam_schedule_names),
    SET(warmup_step, LONG, FREE, 0, LAM_MANY),
    SET(max_step_scheduler, LONG, FREE, 0, LAM_MANY),
    SET(cooldown, REAL, FREE, 0, 1),
    SET(scheduler_time, REAL, FREE, 0, LAM_MANY),
    SET(eta_min, REAL, FREE, 0, 1e6),
    SET(decay_rate, REAL, FREE, 0, 1),
    SET(patience, INT, FREE, 0, 1 << 30),
    SET(short_mem, INT, FIXED, 0, LAM_MAX_LEN),
    SET(short_mem_part, REAL, FREE, 0, 1),
    SET(mem_reset, LONG, FREE, 0, LAM_MANY),
    SET(max_step, LONG, FREE, 1, LAM_MANY),
    SET(max_time, REAL, FREE, 0, LAM_MANY),
    SET(log_interval, LONG, FREE, 1, LAM_MANY),
    SET(eval_interval, LONG, FREE, 0, LAM_MANY),
    SET(save_interval, LONG, FREE, 0, LAM_MANY),
    SET(max_eval_steps, LONG, FREE, 0, LAM_MANY),
    SET(eval_batch_size, INT, FREE, 1, 1 << 20),
    SET(eval_tgt_len, INT, FREE, 0, LAM_MAX_LEN),
};
enum { SETTINGS = sizeof table / sizeof *table };

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
static int64_t whole_of(const lam_settings *s, const lam_json_field *f)
{
    const void *at = (const char *)s + f->offset;
    return f->kind == LAM_JSON_LONG ? *(const int64_t *)at : *(const int *)at;
}

static double value_of(const lam_settings *s, const lam_json_field *f)
{
    const void *at = (const char *)s + f->offset;
    return f->kind == LAM_JSON_REAL ? *(const double *)at : (double)whole_of(s, f);
}

static lam_status below_one(const char *name, double x)
{
    return x < 1.0 ? LAM_OK : lam_fail(LAM_ERR_ARG, "%s is %g, must be below 1", name, x);
}

lam_status lam_settings_check(const lam_settings *s)
{
    for (const setting *t = table; t < table + SETTINGS; t++) {
        const double v = value_of(s, &t->field);
        if (t->field.kind != LAM_JSON_WORD && !(v >= t->min && v <= t->max))
            return lam_fail(LAM_ERR_ARG, "%s is %g, must be %g to %g", t->field.name, v, t->min,
                            t->max);
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
    for (const setting *t = table; t < table + SETTINGS; t++)
        bad |= lam_json_put(object, &t->field, s);
    if (bad)
        json_decref(object);
    return bad ? NULL : object;
}

lam_status lam_settings_parse(lam_settings *s, const json_t *object, const char *label)
{
    if (!json_is_object(object))
        return lam_fail(LAM_ERR_FORMAT, "%s: settings are not a JSON object", label);
    for (const setting *t = table; t < table + SETTINGS; t++)
        LAM_TRY(lam_json_take(s, &t->field, object, label));
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
        const int64_t a = whole_of(now, f), b = whole_of(then, f);
        if (a == b)
            continue;
        if (f->kind == LAM_JSON_BOOL)
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
