/* charset.h -- encodings of text: their names, and guessing the encoding of a text. */
#ifndef LAM_DATA_CHARSET_H
#define LAM_DATA_CHARSET_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

#define LAM_ENCODING_AUTO   "auto"   /* recognised; anything but UTF is windows-1252 */
#define LAM_ENCODING_MARKED "marked" /* UTF-16 or UTF-32 where a byte order mark says so */

enum { LAM_ENCODING_HEAD = 1 << 14 }; /* bytes needed to guess the encoding */

/* LAM_ERR_ARG: neither of these, nor a name that iconv knows.  NULL is fine. */
lam_status lam_encoding_check(const char *name);
/* Guesses the encoding from the first bytes: "utf-8", "utf-16", "utf-16le", "utf-16be", "utf-32", "windows-1252" or
 * "latin1". */
const char *lam_encoding_guess(const void *bytes, size_t n);
/* The encoding of the byte order mark: "utf-16", "utf-32"; NULL: there is none, or that of UTF-8. */
const char *lam_encoding_marked(const void *bytes, size_t n);
/* Is there a byte that belongs to no character?  Of LAM_ENCODING_HEAD bytes and more, the last character may be cut. */
bool lam_encoding_bad_utf8(const void *bytes, size_t n);

#endif
