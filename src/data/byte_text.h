/* byte_text.h -- bytes as readable text: GPT-2's alphabet, which tokenizer.json and vocab.json use for tokens.
 *
 * Each of the 256 bytes is one character: the visible ones of Latin-1 are themselves, the others are U+0100 and
 * following, so that a blank is U+0120 and " the" becomes "\u0120the". */
#ifndef LAM_DATA_BYTE_TEXT_H
#define LAM_DATA_BYTE_TEXT_H

#include <stddef.h>

/* Writes the characters of n bytes and a NUL; `out` has room for 2 n + 1.  Returns their size in bytes. */
size_t lam_byte_text(char *out, const char *bytes, size_t n);

/* The bytes of `size` bytes of such text; `out` has room for `size`.  Returns how many there are, or -1 where a
 * character is not in the alphabet. */
long lam_byte_text_read(char *out, const char *text, size_t size);

#endif
