/* published.h -- the corpora of the papers: how they are prepared, and how to know them.
 *
 * Rules and counts are those of the preparation scripts used for published results (Transformer-XL,
 * and LaMemo's table of statistics). */
#ifndef LAM_DATA_PUBLISHED_H
#define LAM_DATA_PUBLISHED_H

#include "data/corpus.h"

typedef struct lam_published {
    const char *name; /* its name for --corpus */
    const char *title;
    lam_text_kind kind;
    lam_metric metric;
    bool lower;         /* words in lower case */
    bool drop_newlines; /* newline bytes are left out */
    bool strip;         /* white space at both ends of each split is left out */
    bool count_all;     /* the vocabulary is counted on all splits, not on train alone */
    const char *split;  /* of one file; NULL: the splits are files of a folder */
    int64_t bytes;      /* of that one file */
    const char *md5;
    int64_t tokens[LAM_SPLITS];
    int vocab_size;
} lam_published;

/* Returns the corpus called `name`, or NULL. */
const lam_published *lam_published_find(const char *name);
/* Is this a name under which only a published corpus may go ("wikitext-103", "ptb", ...)? */
bool lam_published_name(const char *name);

/* LAM_ERR_FORMAT names the difference if the one source file is not the published one. */
lam_status lam_published_check_source(const lam_published *p, const lam_source *source);
/* The same for the counts of the finished corpus. */
lam_status lam_published_check_counts(const lam_published *p, const lam_corpus_info *info);

#endif
