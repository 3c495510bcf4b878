/* text.h -- a text that grows: what figures, tables and pages are written into.
 *
 * Appending does not report: the first failure (no memory, or more than LAM_TEXT_MOST bytes) sticks, later
 * pieces are dropped, and lam_text_status() tells at the end.  So a writer reads like the text it
 * writes.  The escaping functions take any bytes: what is not UTF-8 comes out visibly as \xHH, and
 * nothing that goes through them can end a tag, an attribute or a script. */
#ifndef LAM_DRAW_TEXT_H
#define LAM_DRAW_TEXT_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { LAM_TEXT_MOST = 256 << 20 };

typedef struct lam_text {
    char *data; /* NUL-terminated; NULL while empty */
    size_t size, room;
    bool failed;
} lam_text; /* begins as zeros */

void lam_text_free(lam_text *t); /* and begins anew */
/* LAM_OK, or what went wrong in any call so far. */
lam_status lam_text_status(const lam_text *t, const char *label);

void lam_text_bytes(lam_text *t, const void *data, size_t size);
void lam_text_add(lam_text *t, const char *plain);
void lam_text_format(lam_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text of an element, or of an attribute between double quotes. */
void lam_text_html(lam_text *t, const char *s);
void lam_text_html_bytes(lam_text *t, const char *s, size_t size);
/* A JSON string with its quotes that is harmless inside <script> too. */
void lam_text_json(lam_text *t, const char *s);
void lam_text_json_bytes(lam_text *t, const char *s, size_t size);
/* A name as it can be shown: what cannot be seen as \xHH; too long for `size`: cut, with an ellipsis. */
char *lam_text_plain(char *out, size_t size, const char *s);
/* A CSV field (RFC 4180), quoted where it must be.  What a spreadsheet would take for a formula gets a ' in front,
 * unless it is a number; what cannot be seen is written as \xHH. */
void lam_text_csv(lam_text *t, const char *s);
/* A number with `digits` significant digits, 0: as many as it needs to be read back the same; `none` where it
 * is not finite. */
void lam_text_number(lam_text *t, double v, int digits, const char *none);

/* May `id` be a file name and an anchor: 1 to 100 of a-z, 0-9, '-', '_'? */
bool lam_id_valid(const char *id);

/* Writes DIR/ID.EXTENSION atomically (DIR is made) and frees the text, whatever happens. */
lam_status lam_text_save(const char *dir, const char *id, const char *extension, lam_text *text);

#endif
