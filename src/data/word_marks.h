/* word_marks.h -- how words and punctuation of a text stand beside each other.
 *
 * Ordinary text becomes words and single characters of punctuation.  White space is not kept, so a character that does
 * not stand as people mostly write it (a comma leans on the word before it, an opening bracket on the one behind it)
 * carries marks: "@-@" joins both sides (well-known), "@/" the left one, "\"@" the right one.  Words never hold '@'. */
#ifndef LAM_DATA_WORD_MARKS_H
#define LAM_DATA_WORD_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAM_MARKED_MAX = 6 }; /* bytes of a character with both marks */

/* Is it a character of words: a letter, a mark or a digit, of any script? */
bool lam_word_char(int32_t codepoint);

/* The symbol of a character that has no white space on its left, on its right; returns its size. */
size_t lam_word_mark(char out[LAM_MARKED_MAX], int32_t codepoint, bool left, bool right);

typedef struct lam_word {
    const char *text; /* what is written */
    size_t size;
    bool left, right; /* no blank on this side */
} lam_word;

/* The meaning of a symbol. */
lam_word lam_word_read(const char *symbol, size_t size);

#endif
