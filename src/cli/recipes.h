/* recipes.h -- how to train, as named sets of option values: train --recipe NAME.
 *
 * A recipe is what the options it names take when the user did not write them.  It says nothing about
 * what the model is: sizes, memory and lengths are the preset's, and some values of `fast` follow from
 * them.  `paper` is empty, because the options' own defaults are the paper's.  The help text and the
 * values come from this one list; docs/recipe.md says what each value brought. */
#ifndef LAM_CLI_RECIPES_H
#define LAM_CLI_RECIPES_H

#include "cli/train_options.h"

#define LAM_RECIPE_FAST(X)                                                                         \
    X("optim", "muon")                                                                             \
    X("muon-rows", "even")                                                                         \
    X("scheduler", "linear")                                                                       \
    X("weight-decay", "0.1")                                                                       \
    X("clip", "1")                                                                                 \
    X("dropout", "0")                                                                              \
    X("short-mem-part", "0.8")

/* What of `fast` follows from the model and the run: value is an expression of lam_config cfg, lam_settings s and
 * tuned, which is true where the run begins with a model's weights: such a one has learned to use its memory; steps are
 * those of the run, at least 2,000, and that many where the clock ends it. */
#define LAM_RECIPE_FAST_FITTED(X)                                                                  \
    X("lr", lr,                                                                                    \
      "0.7/d-model (0.3/d-model with --init-from; with --max-step N above 2,000 times the cube "   \
      "root of 2,000/N)",                                                                          \
      (tuned ? 0.3 : 0.7) / cfg->d_model * cbrt(2000.0 / steps))                                   \
    X("short-mem", short_mem, "mem-len/16 (0 with --init-from)", tuned ? 0 : cfg->mem_len / 16)    \
    X("warmup-step", warmup_step, "100 (a tenth of a run below 1,000 steps)",                      \
      s->max_step < 1000 ? s->max_step / 10 : 100)

/* For help: " --optim muon --weight-decay 0.1 ..." */
#define LAM_RECIPE_WORDS(name, value)                      " --" name " " value
#define LAM_RECIPE_FITTED_WORDS(name, field, words, value) " --" name " " words

/* Stores the values of recipe number `recipe` (lam_recipe_names) in *options, which args->options points
 * to, and marks them as written; what was written already stays. */
void lam_recipe_apply(lam_args *args, lam_train_options *options, int recipe);

/* Gives the fields of *s that the recipe fits to the model, and that are not written in args, their values.
 * After everything else about model and run is settled. */
void lam_recipe_fit(lam_settings *s, const lam_config *cfg, const lam_args *args);

#endif
