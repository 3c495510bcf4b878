/* symbol.h -- a symbol of a vocabulary for people and programs to read. */
#ifndef LAM_CLI_SYMBOL_H
#define LAM_CLI_SYMBOL_H

#include "data/vocab.h"

#include <jansson.h>

/* Prints it with everything unprintable escaped, so that a line stays a line. */
void lam_symbol_print(const lam_vocab *vocab, int32_t id);

/* A JSON string; bytes that are no character become U+FFFD.  NULL: no memory. */
json_t *lam_symbol_json(const lam_vocab *vocab, int32_t id);

#endif
