/* symbol.c -- see symbol.h. */
#include "cli/symbol.h"

#include "data/json_name.h"
#include "data/utf8.h"

#include <stdio.h>

void lam_symbol_print(const lam_vocab *vocab, int32_t id)
{
    size_t size = 0;
    const char *symbol = lam_vocab_symbol(vocab, id, &size);
    for (size_t i = 0; i < size;) {
        const unsigned char *c = (const unsigned char *)symbol + i;
        int32_t code = 0;
        const int n = lam_utf8_decode(c, size - i, &code);
        if (n <= 0 || code < 0x20 || code == 0x7f)
            printf("\\x%02x", *c);
        else
            fwrite(c, 1, (size_t)n, stdout);
        i += n > 0 ? (size_t)n : 1;
    }
}

json_t *lam_symbol_json(const lam_vocab *vocab, int32_t id)
{
    size_t size = 0;
    const char *symbol = lam_vocab_symbol(vocab, id, &size);
    return lam_json_bytes(symbol, size);
}
