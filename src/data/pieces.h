/* pieces.h -- cutting a text into the pieces within which BPE merges: by a pattern, with PCRE2.
 *
 * A pattern (Perl's syntax, as tokenizer.json and tiktoken write it) matches one piece after the other; what it does
 * not match between two of them is a piece too, so that the pieces together are the text.  Bytes that are not UTF-8
 * are kept: a run of them is a piece, and the text on either side is cut as if it ended or began there.
 *
 * Where a piece ends follows from where it begins and from the text behind it, and from nothing else: not from what
 * came before, and not from blocks.  A pattern that looks back, that asks for the beginning of the text or that
 * matches nothing at all is refused.  A piece is what the pattern matches within the next LAM_PIECE_MAX bytes: a longer
 * run of letters or blanks is cut there.  That bounds what a hostile pattern can make of one attempt; one whose
 * attempts together are slow, at least LAM_PIECES_PATIENCE seconds of computing at less than LAM_PIECES_SPEED bytes a
 * second, is refused by name.
 *
 * \s is Unicode's White_Space, as in Rust and Oniguruma (PCRE2 by itself adds U+180E). */
#ifndef LAM_DATA_PIECES_H
#define LAM_DATA_PIECES_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { LAM_PIECE_MAX = 1 << 16, LAM_PATTERN_MAX = 1 << 12 }; /* bytes of a piece, of a pattern */

enum { LAM_PIECES_PATIENCE = 2, LAM_PIECES_SPEED = 100000 };

/* A compiled pattern, which any number of threads may use. */
typedef struct lam_pattern lam_pattern;

/* The names of the patterns that have one: "gpt2", ...; ends with NULL. */
extern const char *const lam_pattern_names[];
/* The text of a named pattern; NULL: there is no such name. */
const char *lam_pattern_named(const char *name);

/* Compiles `source`; LAM_ERR_FORMAT names the fault and its position. */
lam_status lam_pattern_create(lam_pattern **out, const char *source);
void lam_pattern_free(lam_pattern *pattern); /* NULL is fine */
const char *lam_pattern_source(const lam_pattern *pattern);

/* One thread's position in a text. */
typedef struct lam_pieces lam_pieces;

lam_status lam_pieces_create(lam_pieces **out, const lam_pattern *pattern); /* kept */
void lam_pieces_free(lam_pieces *pieces);                                   /* NULL is fine */

/* The text, kept, which is cut from `from` on. */
void lam_pieces_start(lam_pieces *pieces, const char *text, size_t size, size_t from);
/* *to = the end of the piece that begins at `from`, where the one before it ended; from < size. */
lam_status lam_pieces_next(lam_pieces *pieces, size_t from, size_t *to);

#endif
