/* vocab_option.h -- options that name a vocabulary. */
#ifndef LAM_CLI_VOCAB_OPTION_H
#define LAM_CLI_VOCAB_OPTION_H

#include "data/vocab.h"

/* The vocabulary of a model, run or corpus folder, or of a file (convert/vocabulary.h); `pattern`, for ranks of tiktoken,
 * may be NULL. */
lam_status lam_vocab_option(lam_vocab **out, const char *from, const char *pattern);

#endif
