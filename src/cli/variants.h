/* variants.h -- a model to compare, as words for `lamemo train`.
 *
 * A definition is MEMORY[:OPTION=VALUE]...: a memory and what of train's options is special about it.  The paper's
 * ablations have names. */
#ifndef LAM_CLI_VARIANTS_H
#define LAM_CLI_VARIANTS_H

#include "cli/train_options.h"
#include "report/comparison.h"

/* Words of a command line; owned, ends with NULL where it is used as argv. */
enum { LAM_WORDS_MAX = 256 };
typedef struct lam_words {
    int n;
    char *v[LAM_WORDS_MAX + 1];
} lam_words;

lam_status lam_words_add(lam_words *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lam_words_free(lam_words *w);

/* Adds the models an operand names: NAME, LABEL=DEFINITION, or `all`. */
lam_status lam_variant_add(lam_comparison *c, const char *operand);
/* The memories of the paper's Table 1. */
lam_status lam_variant_add_memories(lam_comparison *c);

/* LAM_ERR_ARG names an option of the comparison that no model of it can use. */
lam_status lam_variants_use(const lam_comparison *c);

/* "lamemo train" with the comparison's options, as far as model `m` can use them, and what makes it; without --out and
 * --seed. */
lam_status lam_variant_words(lam_words *w, const lam_comparison *c, const lam_compared_model *m);

/* The configuration and the settings that these words lead to on a corpus.  Wrong words end the program, as on a
 * command line; `source` is the file they come from, or NULL. */
lam_status lam_variant_resolve(lam_compared_model *m, lam_settings *settings,
                               const lam_comparison *c, const lam_corpus_info *corpus,
                               const char *source);

#endif
