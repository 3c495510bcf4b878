/* printable.h -- text from outside (names of tensors, files, runs; what a model wrote) for a person to read.
 *
 * A control character can move the cursor, set a window's title or answer for the user; a newline can forge a line
 * of a log.  So these are written out: \x1b for C0 and DEL, \u009b for C1, \xff for a byte of no UTF-8 character.
 * A backslash stays as it is: what was made printable once does not change any more. */
#ifndef LAM_CORE_PRINTABLE_H
#define LAM_CORE_PRINTABLE_H

#include <stddef.h>

enum { LAM_PRINTABLE_MAX = 7 }; /* bytes of a character, with the NUL */

/* The first character of text[0, n), n > 0, into out; returns how many bytes of the text it is. */
size_t lam_printable_next(char out[LAM_PRINTABLE_MAX], const char *text, size_t n);

/* The whole text, cut after the last character that fits; returns out. */
char *lam_printable(char *out, size_t size, const char *text);

#endif
