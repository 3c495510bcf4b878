/* tiktoken.h -- tiktoken's rank files: one line per token, its bytes in base64 and its id.
 *
 * The file has neither the pattern nor the special tokens. Both are known for OpenAI's files, which are
 * recognised by their number of tokens. */
#ifndef LAM_CONVERT_TIKTOKEN_H
#define LAM_CONVERT_TIKTOKEN_H

#include "data/vocab.h"

/* Does a text begin like such a file? */
bool lam_tiktoken_is(const char *text, size_t size);

/* `pattern`: a name or a regular expression; NULL: the known one, or LAM_ERR_ARG.  A file that is not known gets one
 * special token, <|endoftext|>, behind all others. */
lam_status lam_tiktoken_load(lam_vocab **out, const char *path, const char *pattern);

#endif
