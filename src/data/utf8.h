/* utf8.h -- UTF-8, strictly (RFC 3629), and the few facts about characters that tokenising needs. */
#ifndef LAM_DATA_UTF8_H
#define LAM_DATA_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAM_UTF8_MAX = 4, LAM_CODEPOINTS = 0x110000 };

/* Decodes the character at s[0, n).  Returns its length in bytes (1 to 4), 0 when more bytes are
 * needed to tell, or -1 when no valid character begins so: overlong forms, surrogates and values
 * above U+10FFFF are not characters. */
int lam_utf8_decode(const unsigned char *s, size_t n, int32_t *codepoint);
/* Does it consist of whole characters only? */
bool lam_utf8_valid(const char *text, size_t size);
/* How many characters begin in it: about how wide it is. */
int lam_utf8_count(const char *text);
/* Writes a valid code point; returns its length. */
int lam_utf8_encode(char out[LAM_UTF8_MAX], int32_t codepoint);

/* Python's str.isspace(), which is what str.split() splits at:
 * U+0009-000D, 001C-0020, 0085, 00A0, 1680, 2000-200A, 2028, 2029, 202F, 205F, 3000. */
bool lam_utf8_is_space(int32_t codepoint);
/* One-to-one lower case (Unicode's simple mapping). */
int32_t lam_utf8_lower(int32_t codepoint);

#endif
