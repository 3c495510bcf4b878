/* text_look.h -- a look at the first bytes of a text: was it written on Windows?
 *
 * UTF-16 and CR LF are not wrong, but seldom meant: a model of bytes would spend half of its work on zeros, or
 * write a CR before every newline. */
#ifndef LAM_DATA_TEXT_LOOK_H
#define LAM_DATA_TEXT_LOOK_H

#include "data/tokenizer.h"

/* `bytes` are the first n of the text `name`.  Logs a warning that says what to do about it; LAM_ERR_FORMAT where
 * UTF-16 should be characters or words.  UTF-16 is recognised by its byte order mark, CR LF by the first line. */
lam_status lam_text_look(const char *name, lam_text_kind kind, const void *bytes, size_t n);

#endif
