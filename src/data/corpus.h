/* corpus.h -- a corpus folder: train.bin, valid.bin, test.bin, vocab.json, corpus.json.
 *
 * corpus.json describes the text and its sources.  A text that was only prepared like a published
 * corpus never carries that corpus's name: see `like` and `original`. */
#ifndef LAM_DATA_CORPUS_H
#define LAM_DATA_CORPUS_H

#include "data/tokens.h"
#include "data/vocab.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum lam_split { LAM_TRAIN, LAM_VALID, LAM_TEST, LAM_SPLITS } lam_split;

extern const char *const lam_split_names[]; /* "train", "valid", "test"; ends with NULL */
const char *lam_split_name(lam_split split);
/* DIR/train.bin, ... */
lam_status lam_split_path(char path[PATH_MAX], const char *dir, lam_split split);

/* The unit in which a loss is printed: bits per character (or byte), or perplexity. */
typedef enum lam_metric { LAM_BPC, LAM_PPL } lam_metric;

const char *lam_metric_name(lam_metric metric); /* "bpc", "ppl" */
lam_metric lam_metric_for(lam_text_kind kind);  /* what texts of such symbols are measured in */

enum { LAM_SOURCES_MAX = 1 << 16 };

typedef struct lam_source {
    char *name;    /* the file's name, in the folder or archive that was named */
    int64_t bytes; /* unpacked */
    char md5[33];
    int64_t text;    /* bytes of UTF-8 that were tokenised; not in corpus.json */
    lam_split split; /* the split that the file is; LAM_SPLITS: the text was divided */
} lam_source;

typedef struct lam_corpus_info {
    char name[128];
    lam_text_kind kind;
    lam_metric metric;
    char like[16]; /* the published corpus whose rules were used; "" if none */
    bool original; /* it was checked to be that corpus */
    int vocab_size;
    int64_t tokens[LAM_SPLITS];
    int64_t unknown[LAM_SPLITS]; /* tokens that became <unk> here */
    int64_t bytes[LAM_SPLITS];   /* of text; 0: not recorded */
    int64_t documents
        [LAM_SPLITS];  /* 0 everywhere: one running text; otherwise each document ends with */
    int32_t separator; /* this token */
    int n_sources;
    lam_source *sources; /* owned */
} lam_corpus_info;

void lam_corpus_info_free(lam_corpus_info *info); /* its sources; fine on a zeroed one */
/* corpus.json; *text is owned by the caller (free). */
lam_status lam_corpus_info_text(const lam_corpus_info *info, char **text);
lam_status lam_corpus_info_load(lam_corpus_info *out, const char *dir);
bool lam_corpus_info_divided(const lam_corpus_info *info); /* does it have documents? */

typedef struct lam_corpus {
    lam_corpus_info info;
    lam_vocab *vocab;
    int32_t *sizes; /* of its symbols, in bytes of text */
    lam_tokens split[LAM_SPLITS];
    int32_t
        *text; /* of lam_corpus_of_text(), owned; NULL: a folder, whose vocabulary is owned too */
} lam_corpus;

/* LAM_CORPUS_VERIFY reads every token (checksum, range, bytes of text); what trains or scores must. */
typedef enum lam_corpus_check { LAM_CORPUS_TRUST, LAM_CORPUS_VERIFY } lam_corpus_check;

/* Opens the folder; its parts must agree with each other. */
lam_status lam_corpus_open(lam_corpus **out, const char *dir, lam_corpus_check check);
/* A text as a corpus called `name`: all of it is the test split, the others are empty.  `vocab` is kept. */
lam_status lam_corpus_of_text(lam_corpus **out, const char *name, lam_vocab *vocab,
                              const char *bytes, size_t size);
void lam_corpus_close(lam_corpus *corpus); /* NULL is fine */

#endif
