/* symbols.h -- a set of byte strings, numbered in the order of their first appearance. */
#ifndef LAM_DATA_SYMBOLS_H
#define LAM_DATA_SYMBOLS_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { LAM_SYMBOLS_MAX = 1 << 25, LAM_SYMBOL_MAX = 1 << 16 }; /* how many; bytes of one */

typedef struct lam_symbols lam_symbols;

lam_status lam_symbols_create(lam_symbols **out);
void lam_symbols_free(lam_symbols *set); /* NULL is fine */

/* Finds the string or adds it; *id is its number. */
lam_status lam_symbols_add(lam_symbols *set, const void *text, size_t size, int32_t *id);
/* Returns its number, or -1. */
int32_t lam_symbols_find(const lam_symbols *set, const void *text, size_t size);

int32_t lam_symbols_count(const lam_symbols *set);
/* The string of a number: *size bytes, then a NUL.  Borrowed until the next add(). */
const char *lam_symbols_text(const lam_symbols *set, int32_t id, size_t *size);

#endif
