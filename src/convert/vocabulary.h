/* vocabulary.h -- the vocabulary of a model that another program trained.
 *
 * The authors pickle an object with idx2sym, the list of entries by id, and counter. Their entries are
 * always words of a text file, so bytes appear as "101" and the space of text8 as "_". Which of the three
 * kinds a list is follows from its entries. */
#ifndef LAM_CONVERT_VOCABULARY_H
#define LAM_CONVERT_VOCABULARY_H

#include "data/vocab.h"
#include "io/torchfile.h"

/* From a PyTorch file: its object "vocab" (a checkpoint, a cached corpus) or the object itself.  *out is
 * NULL where there is none, which is no failure. */
lam_status lam_vocabulary_from_torch(lam_vocab **out, const lam_torch *file);

/* From a file of its own: our vocab.json, Hugging Face's tokenizer.json, ranks of tiktoken, a PyTorch file, or a text
 * file of one symbol a line (what follows a blank on a line is left).  `pattern` is for ranks, which come without one
 * (tiktoken.h); NULL: the known one.  With other files it is LAM_ERR_ARG. */
lam_status lam_vocabulary_load(lam_vocab **out, const char *path, const char *pattern);

#endif
