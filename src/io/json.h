/* json.h -- jansson with this project's error handling.
 *
 * It works around two faults of jansson 2.14: json_dumps() can silently lose text when memory runs out, and
 * a failed load does not reliably tell whether memory or the text was the cause. A third cannot be fixed
 * from outside: if a token's buffer cannot grow while reading, jansson drops a byte of it and continues. */
#ifndef LAM_IO_JSON_H
#define LAM_IO_JSON_H

#include "core/status.h"

#include <jansson.h>
#include <stddef.h>

/* Any JSON value from text that need not end with NUL; *out is owned by the caller (json_decref).
 * Duplicate keys, bad UTF-8, NUL in strings and text after the value are refused, and so are more lists and objects
 * than text of its size can mean: memory is at most 60 times the text.  `label` opens the message. */
lam_status lam_json_parse(json_t **out, const char *label, const char *text, size_t size);

/* The same from a file of at most `limit` bytes. */
lam_status lam_json_load(json_t **out, const char *path, size_t limit);

/* A number; null for NaN and infinity, which JSON lacks. */
json_t *lam_json_number(double x);

/* `list` with one more item, `object` with one more value, which are theirs now.  NULL, and all is released: one of them
 * was NULL, or there is no memory.  So whatever is built of many such steps is checked once, at the end. */
json_t *lam_json_add(json_t *list, json_t *item);
json_t *lam_json_set(json_t *object, const char *key, json_t *value);

/* The value as NUL-terminated text (free), with jansson's flags; *size may be NULL. */
lam_status lam_json_text(char **out, size_t *size, const json_t *json, size_t flags);
/* The same with the shortest numbers, 0.1 and not 0.10000000000000001, if all of them are read back exactly. */
lam_status lam_json_text_short(char **out, const json_t *json, size_t flags);

/* Writes that text to a file, whole or not at all.  Releases `root`; NULL is LAM_ERR_MEMORY: it could not be made. */
lam_status lam_json_save(const char *path, json_t *root, size_t flags);

#endif
