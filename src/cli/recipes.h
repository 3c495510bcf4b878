/* recipes.h -- how to train, as named sets of option values: train --recipe NAME.
 *
 * A recipe is what the options it names take when the user did not write them.  It says nothing about
 * what the model is: sizes, memory and lengths are the preset's.  `paper` is empty, because the
 * options' own defaults are the paper's.  The help text and the values come from this one list;
 * docs/recipe.md says what each value brought. */
#ifndef LAM_CLI_RECIPES_H
#define LAM_CLI_RECIPES_H

#include "cli/train_options.h"

#define LAM_RECIPE_FAST(X)                                                                         \
    X("optim", "muon")                                                                             \
    X("muon-rows", "even")                                                                         \
    X("lr", "0.0014")                                                                              \
    X("warmup-step", "300")                                                                        \
    X("scheduler", "linear")                                                                       \
    X("weight-decay", "0.1")                                                                       \
    X("clip", "1")                                                                                 \
    X("dropout", "0")                                                                              \
    X("short-mem", "32")                                                                           \
    X("short-mem-part", "0.8")

/* For help: " --optim muon --lr 0.0014 ..." */
#define LAM_RECIPE_WORDS(name, value) " --" name " " value

/* Stores the values of recipe number `recipe` (lam_recipe_names) in *options, which args->options points
 * to, and marks them as written; what was written already stays. */
void lam_recipe_apply(lam_args *args, lam_train_options *options, int recipe);

#endif
