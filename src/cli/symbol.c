/* symbol.c -- see symbol.h. */
#include "cli/symbol.h"

#include "data/json_name.h"

#include <stdio.h>

void lam_symbol_print(const lam_vocab *vocab, int32_t id)
{
    size_t size = 0;
    const char *symbol = lam_vocab_symbol(vocab, id, &size);
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)symbol[i];
        if (c < 0x20 || c == 0x7f || (c >= 0x80 && size == 1))
            printf("\\x%02x", c);
        else
            putchar(c);
    }
}

json_t *lam_symbol_json(const lam_vocab *vocab, int32_t id)
{
    size_t size = 0;
    const char *symbol = lam_vocab_symbol(vocab, id, &size);
    return lam_json_bytes(symbol, size);
}
