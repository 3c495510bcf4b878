/* prepare_int.h -- the stages of prepare.c. */
#ifndef LAM_DATA_PREPARE_INT_H
#define LAM_DATA_PREPARE_INT_H

#include "data/prepare.h"
#include "data/spool.h"

#include <limits.h>

/* ---- prepare_inputs.c: which files to read; prepare_splits.c: which of them are splits ---- */

typedef enum lam_input_kind {
    LAM_INPUT_NAMED,  /* by the user: a text, whatever it is called */
    LAM_INPUT_TEXT,   /* found in a folder or archive */
    LAM_INPUT_OTHER,  /* found there, but its name is not that of a text */
    LAM_INPUT_FOLDER, /* found there, and not entered */
} lam_input_kind;

typedef struct lam_input {
    lam_input_kind kind;
    char *path;      /* owned, as are these: */
    char *label;     /* its name: the path in the folder or archive, or the name of a file */
    char *entry;     /* in a zip archive; NULL: none */
    lam_split split; /* where there are splits */
    int order;
} lam_input;

typedef struct lam_inputs {
    bool is_split; /* the inputs are in the order of their splits; train has one at least */
    int n;
    size_t room;
    lam_input *list; /* owned */
} lam_inputs;

/* Lists the inputs in the order in which they are read.  The caller frees the list, also after a failure. */
lam_status lam_inputs_find(lam_inputs *out, const lam_prepare_options *o);
void lam_inputs_free(lam_inputs *inputs);
/* The part of a path after its last slash, unless it is empty. */
const char *lam_input_base(const char *path);
/* Filters the found files: drops those that are not read, finds the splits, refuses names that only look like one. */
lam_status lam_inputs_judge(lam_inputs *inputs, const lam_prepare_options *o);

/* ---- prepare_lack.c: the first symbol of a text that a given vocabulary lacks ---- */

typedef struct lam_lack {
    const lam_vocab *vocab; /* NULL: none is given, so none is lacking */
    const lam_symbols *symbols;
    int32_t seen;        /* symbols below this were looked up */
    int32_t newline;     /* the symbol that ends a line; -1: not met */
    const char *source;  /* the text being read, and where in it we are: */
    int64_t line, place; /* byte, character or word of the line; both from 1 */
    int32_t found;       /* the symbol; -1: none so far.  Then the place stays. */
    int64_t at;          /* how many symbols of all texts are before it */
} lam_lack;

void lam_lack_start(lam_lack *l, const lam_vocab *vocab,
                    const lam_symbols *symbols);     /* both kept */
void lam_lack_source(lam_lack *l, const char *name); /* another text begins; name is kept */
/* The next symbols, the first of them number `at` of all. */
void lam_lack_note(lam_lack *l, const int32_t *ids, size_t n, int64_t at);
/* Refuses one among the first `end` symbols and names its position; later symbols are not used. */
lam_status lam_lack_check(const lam_lack *l, int64_t end, const char *vocab_name);

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

/* Sets range[] from the wanted ends: words are cut only after <eos>, documents only at their ends; `strip` leaves out white space
 * at both ends of every split. */
lam_status lam_passes_cut(lam_passes *p, const int64_t ends[LAM_SPLITS], bool strip);
/* counts[i] = how often symbol i occurs, in train or in all splits. */
lam_status lam_passes_count(lam_passes *p, int64_t *counts, bool all);
/* Writes the three files into `dir`; fills tokens[], unknown[], bytes[] and, by info->separator, documents[]. */
lam_status lam_passes_write(lam_passes *p, const char *dir, const int32_t *remap,
                            const lam_vocab *vocab, lam_corpus_info *info);

/* ---- prepare_bpe.c: BPE ---- */

typedef struct lam_bpe_job lam_bpe_job;

/* `o`, kept, has the kind LAM_BPE; a temporary file is made in `dir`. */
lam_status lam_bpe_job_create(lam_bpe_job **out, const lam_prepare_options *o, const char *dir);
void lam_bpe_job_free(lam_bpe_job *job); /* NULL is fine */
/* The next bytes of the text; a document (or an input) ends here; bytes so far. */
lam_status lam_bpe_job_put(lam_bpe_job *job, const void *bytes, size_t n);
lam_status lam_bpe_job_end(lam_bpe_job *job);
int64_t lam_bpe_job_size(const lam_bpe_job *job);
/* Learns merges unless a vocabulary is given, and writes the three files into `dir`, the splits ending at these bytes
 * or at the next end of a document, to which `ends` is moved; fills tokens[], bytes[], separator and documents[] of
 * info.  *vocab is the vocabulary, owned by the caller; NULL: the given one, as it is. */
lam_status lam_bpe_job_run(lam_bpe_job *job, int64_t ends[LAM_SPLITS], const char *dir,
                           lam_corpus_info *info, lam_vocab **vocab);

/* ---- prepare_describe.c ---- */

/* Refuses a name for the corpus that only a published one may have, or that is not one line. */
lam_status lam_prepare_check_name(const lam_prepare_options *o);
/* Fills in name, kind, metric, vocab_size and which published corpus it is; LAM_ERR_FORMAT where it is not the one asked
 * for, unless that is forced. */
lam_status lam_prepare_describe(lam_corpus_info *info, const lam_prepare_options *o,
                                const lam_vocab *vocab);
/* Writes vocab.json and corpus.json into `dir`. */
lam_status lam_prepare_save(const char *dir, const lam_corpus_info *info, const lam_vocab *vocab);

/* ---- prepare_compare.c ---- */

/* Warns of text that occurs in two splits of the corpus in `dir`. */
lam_status lam_prepare_compare(const lam_prepare_options *o, const lam_corpus_info *info,
                               const lam_vocab *vocab, const char *dir);

/* Calls options->progress. */
lam_status lam_prepare_tell(const lam_prepare_options *o, const char *stage, uint64_t done,
                            uint64_t total);

#endif
