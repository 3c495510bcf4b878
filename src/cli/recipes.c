/* recipes.c -- see recipes.h. */
#include "cli/recipes.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct pair {
    const char *name, *value;
} pair;

#define PAIR(name, value) {name, value},
static const pair paper[] = {{0}}, fast[] = {LAM_RECIPE_FAST_SET(PAIR){0}};
static const pair *const recipes[] = {paper, fast}; /* in the order of lam_recipe_names */

static int row_of(const lam_option *table, const char *name)
{
    const int i = lam_option_row(table, name);
    assert(i >= 0 && "a recipe names an option that does not exist");
    return i;
}

void lam_recipe_explain(lam_option *rows)
{
#define FITTED(name, place, words, value) {name, words},
    static const pair all[] = {LAM_RECIPE_FAST_SET(PAIR) LAM_RECIPE_FAST_FITTED(FITTED){0}};
#undef FITTED
    for (const pair *p = all; p->name; p++)
        rows[row_of(rows, p->name)].fast = p->value;
}

lam_recipe lam_recipe_chosen(const lam_args *args)
{
    const lam_train_options *o = args->options;
    if (lam_option_given(args, "recipe"))
        return (lam_recipe)o->settings.recipe;
    const bool other = lam_option_given(args, "optim") && o->settings.optim != LAM_OPTIM_MUON;
    return other ? LAM_RECIPE_PAPER : LAM_RECIPE_FAST;
}

void lam_recipe_apply(lam_args *args, lam_train_options *options, lam_recipe recipe)
{
    const lam_option *table = args->table.rows;
    options->settings.recipe = (int)recipe;
    for (const pair *p = recipes[recipe]; p->name; p++) {
        const int i = row_of(table, p->name);
        if (args->given[i])
            continue;
        if (lam_option_set(&table[i], options, p->value) != LAM_OK)
            assert(0 && "a recipe has a value that is not legal");
        args->given[i] = true;
    }
}

/* After a model of 147,000 weights on texts of 83,000 and 333,000 bytes, where dropout pays from about 7 and 22 epochs
 * on (docs/recipe.md). */
static double memorised(const lam_settings *s, const lam_config *cfg, double tokens)
{
    const double epochs = (double)s->max_step * s->batch_size * cfg->tgt_len / tokens;
    const double maps =
        4.0 * cfg->n_head * cfg->d_head + 2.0 * cfg->d_inner; /* to or from d_model */
    return epochs * sqrt(cfg->n_layer * maps * cfg->d_model / tokens);
}

void lam_recipe_fit(lam_config *cfg, lam_settings *s, const lam_args *args, int64_t tokens)
{
    const lam_train_options *o = args->options;
    const bool tuned = o->init_from != NULL, timed = s->scheduler_time > 0.0;
    const double steps = timed ? 2000.0 : fmax(2000.0, (double)s->max_step);
    const double known = timed || tokens <= 0 ? 0.0 : memorised(s, cfg, (double)tokens);
    if (recipes[s->recipe] != fast)
        return;
#define FIT(name, place, words, value)                                                             \
    if (!lam_option_given(args, name))                                                             \
        place = value;
    LAM_RECIPE_FAST_FITTED(FIT)
#undef FIT
}
