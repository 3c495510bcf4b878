/* prepare_summary.h -- what `lamemo prepare` says of the corpus that it has made. */
#ifndef LAM_CLI_PREPARE_SUMMARY_H
#define LAM_CLI_PREPARE_SUMMARY_H

#include "data/corpus.h"

/* Prints splits, sources and vocabulary of the corpus in `dir`; `vocab_from`: where the vocabulary came from, or NULL. */
void lam_prepare_summary(const lam_corpus_info *info, const char *dir, const char *vocab_from,
                         double seconds);

/* Warns of what makes it hard to train on: many <unk>, short splits, bytes that are no text. */
lam_status lam_prepare_warn(const lam_corpus_info *info, const char *dir);

#endif
