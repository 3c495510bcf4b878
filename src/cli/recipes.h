/* recipes.h -- how to train, as named sets of option values: train --recipe NAME.
 *
 * A recipe is what the options it names take when the user did not set them.  It says nothing about
 * what the model is: sizes, memory and lengths are the preset's, and some values of `fast` follow from
 * them.  `paper` is empty, because the options' own defaults are the paper's.  The help texts and the
 * values come from this one list; docs/recipe.md says what each value brought. */
#ifndef LAM_CLI_RECIPES_H
#define LAM_CLI_RECIPES_H

#include "cli/train_options.h"

#define LAM_RECIPE_FAST_SET(X)                                                                     \
    X("optim", "muon")                                                                             \
    X("muon-rows", "even")                                                                         \
    X("scheduler", "linear")                                                                       \
    X("weight-decay", "0.1")                                                                       \
    X("clip", "1")                                                                                 \
    X("short-mem-part", "0.8")

/* What of `fast` follows from the model, the run and the text: where it goes, and its value, an expression of
 * lam_config cfg, lam_settings s, and
 *     tuned   true where the run begins with a model's weights, which have learned to use their memory
 *     steps   those of the run, at least 2,000, and that many where the clock ends it
 *     known   how far the run could memorise its text: how often it reads it, times the root of the weights that
 *             the layers have for each of its tokens; 0 where the clock ends the run, or the text is not known */
#define LAM_RECIPE_FAST_FITTED(X)                                                                  \
    X("lr", s->lr,                                                                                 \
      "0.7/d-model (0.3/d-model with --init-from), times the cube root of 2,000/N for N steps "    \
      "above 2,000",                                                                               \
      (tuned ? 0.3 : 0.7) / cfg->d_model * cbrt(2000.0 / steps))                                   \
    X("short-mem", s->short_mem, "mem-len/16 (0 with --init-from)", tuned ? 0 : cfg->mem_len / 16) \
    X("warmup-step", s->warmup_step, "100 (a tenth of a run below 1,000 steps)",                   \
      s->max_step < 1000 ? s->max_step / 10 : 100)                                                 \
    X("dropout", cfg->dropout,                                                                     \
      "0 (0.05 or 0.1 for a text read so often that the model would overfit: docs/recipe.md)",     \
      known < 12.0 ? 0.0 : (known < 35.0 ? 0.05 : 0.1))

/* Says in the help of the options what the recipe fast makes their defaults. */
void lam_recipe_explain(lam_option *rows);

/* The recipe of a new run: the one that was given, else fast, unless an optimiser was chosen that is not its own. */
lam_recipe lam_recipe_chosen(const lam_args *args);

/* Stores the recipe and its values in *options, which args->options points
 * to, and marks them as written; what was written already stays. */
void lam_recipe_apply(lam_args *args, lam_train_options *options, lam_recipe recipe);

/* Gives what the recipe fits to the model and to a text of so many tokens (0: not known), and what is not written in
 * args, its values.  After everything else about model and run is settled. */
void lam_recipe_fit(lam_config *cfg, lam_settings *s, const lam_args *args, int64_t tokens);

#endif
