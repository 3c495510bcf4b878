/* detok.c -- see detok.h. */
#include "data/detok.h"

#include "data/word_marks.h"

#include <stdlib.h>
#include <string.h>

void lam_detok_start(lam_detok *d, const lam_vocab *vocab)
{
    *d = (lam_detok){.vocab = vocab, .glue = true};
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* Words that lean on the one before, and words that the next one leans on. */
static bool leans_left(const char *word)
{
    static const char *const list[] = {",",  ".",   ";",   ":",   "!",   "?",   ")",
                                       "]",  "}",   "%",   "'",   "'s",  "n't", "'m",
                                       "'d", "'re", "'ve", "'ll", "...", NULL};
    return is_one_of(word, list);
}

static bool leans_right(const char *word)
{
    static const char *const list[] = {"(", "[", "{", "$", "£", "€", "#", NULL};
    return is_one_of(word, list);
}

static const char *next_word(lam_detok *d, const char *word, const char **space, size_t *size)
{
    const bool joiner = *size == 3 && word[0] == '@' && word[2] == '@'; /* @-@ @,@ @.@ */
    const bool quote = strcmp(word, "\"") == 0;
    const bool closing = quote && d->quoted;
    *space = d->glue || joiner || closing || leans_left(word) ? "" : " ";
    d->glue = joiner || (quote && !closing) || leans_right(word);
    d->quoted = quote ? !d->quoted : d->quoted;
    *size = joiner ? 1 : *size;
    return joiner ? word + 1 : word;
}

const char *lam_detok_next(lam_detok *d, int32_t id, const char **space, size_t *size)
{
    const char *symbol = lam_vocab_symbol(d->vocab, id, size);
    *space = "";
    if (lam_vocab_kind(d->vocab) != LAM_WORDS)
        return symbol;
    if (id == lam_vocab_eos(d->vocab)) {
        lam_detok_start(d, d->vocab);
        *size = 1;
        return "\n";
    }
    if (lam_vocab_blanks(d->vocab))
        return next_word(d, symbol, space, size);
    const lam_word w = lam_word_read(symbol, *size);
    *space = d->glue || w.left ? "" : " ";
    d->glue = w.right;
    *size = w.size;
    return w.text;
}

lam_status lam_detok_all(const lam_vocab *vocab, char **text, size_t *size, const int32_t *ids,
                         size_t n)
{
    *text = NULL;
    *size = 0;
    for (int pass = 0; pass < 2; pass++) { /* measure, then write */
        lam_detok d;
        size_t used = 0, len;
        const char *space;
        lam_detok_start(&d, vocab);
        for (size_t i = 0; i < n; i++) {
            const char *piece = lam_detok_next(&d, ids[i], &space, &len);
            if (*text != NULL) {
                memcpy(*text + used, space, strlen(space));
                memcpy(*text + used + strlen(space), piece, len);
            }
            used += strlen(space) + len;
        }
        if (*text == NULL && (*text = malloc(used + 1)) == NULL)
            return lam_fail(LAM_ERR_MEMORY, "no memory for %zu bytes of text", used);
        (*text)[used] = '\0';
        *size = used;
    }
    return LAM_OK;
}
