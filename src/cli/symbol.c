/* symbol.c -- see symbol.h. */
#include "cli/symbol.h"

#include "core/printable.h"
#include "data/json_name.h"

#include <stdio.h>

void lam_symbol_print(const lam_vocab *vocab, int32_t id)
{
    size_t size = 0;
    const char *symbol = lam_vocab_symbol(vocab, id, &size);
    char next[LAM_PRINTABLE_MAX];
    for (size_t at = 0; at < size;) {
        at += lam_printable_next(next, symbol + at, size - at);
        fputs(next, stdout);
    }
}

json_t *lam_symbol_json(const lam_vocab *vocab, int32_t id)
{
    size_t size = 0;
    const char *symbol = lam_vocab_symbol(vocab, id, &size);
    return lam_json_bytes(symbol, size);
}
