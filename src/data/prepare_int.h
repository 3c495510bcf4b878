/* prepare_int.h -- the stages of prepare.c. */
#ifndef LAM_DATA_PREPARE_INT_H
#define LAM_DATA_PREPARE_INT_H

#include "data/prepare.h"
#include "data/spool.h"

#include <limits.h>

/* ---- prepare_inputs.c: which files to read ---- */

typedef struct lam_input {
    char path[PATH_MAX];
    char entry[64]; /* in a zip archive; "" : none asked for */
} lam_input;

typedef struct lam_inputs {
    bool is_split; /* exactly three: train, valid, test */
    int n;
    lam_input *list; /* owned */
} lam_inputs;

lam_status lam_inputs_find(lam_inputs *out, const lam_prepare_options *o);
void lam_inputs_free(lam_inputs *inputs);

/* ---- prepare_passes.c: over the temporary file ---- */

typedef struct lam_range {
    int64_t from, to;
} lam_range;

typedef struct lam_passes {
    const lam_prepare_options *options;
    lam_text_kind kind;
    lam_symbols *symbols;
    lam_spool *spool;
    lam_range range[LAM_SPLITS]; /* of the splits, in symbols */
} lam_passes;

/* Sets range[] from the wanted ends: words are cut only after <eos>; `strip` leaves out white space
 * at both ends of every split. */
lam_status lam_passes_cut(lam_passes *p, const int64_t ends[LAM_SPLITS], bool strip);
/* counts[i] = how often symbol i occurs, in train or in all splits. */
lam_status lam_passes_count(lam_passes *p, int64_t *counts, bool all);
/* Writes the three files into `dir`; fills tokens[] and unknown[] of info. */
lam_status lam_passes_write(lam_passes *p, const char *dir, const int32_t *remap,
                            const lam_vocab *vocab, lam_corpus_info *info);

/* Calls options->progress. */
lam_status lam_prepare_tell(const lam_prepare_options *o, const char *stage, uint64_t done,
                            uint64_t total);

#endif
