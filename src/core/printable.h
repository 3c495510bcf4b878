/* printable.h -- makes text from outside (names of tensors, files and runs; generated text) safe to print.
 *
 * A control character can move the cursor, set the window title or inject input; a newline can forge a log
 * line. They are therefore escaped: \x1b for C0 and DEL, \u009b for C1, \xff for a byte that is not part of
 * a UTF-8 character. A backslash stays as it is, so escaping twice gives the same text. */
#ifndef LAM_CORE_PRINTABLE_H
#define LAM_CORE_PRINTABLE_H

#include <stddef.h>

enum { LAM_PRINTABLE_MAX = 7 }; /* bytes of a character, with the NUL */

/* The first character of text[0, n), n > 0, into out; returns how many bytes of the text it is. */
size_t lam_printable_next(char out[LAM_PRINTABLE_MAX], const char *text, size_t n);

/* The whole text, cut after the last character that fits; returns out. */
char *lam_printable(char *out, size_t size, const char *text);

#endif
