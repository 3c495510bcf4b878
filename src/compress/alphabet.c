/* alphabet.c -- see alphabet.h. */
#include "compress/alphabet.h"

#include "compress/cdf.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 256 };

struct lam_alphabet {
    const lam_engine *engine;
    lam_bpe_coder *coder; /* NULL: bytes */
    int32_t start;
    int n_token, size;
    uint32_t *freq; /* [n_token] */
    uint32_t byte_freq[BYTES];
    int32_t token[BYTES]; /* of a byte; -1: the vocabulary lacks it */
    int32_t byte[BYTES];  /* of a token */
    int n_lacking;
    uint64_t coded, lacked; /* symbols so far; those that the vocabulary lacks */
    uint32_t times[BYTES];  /* how often each of these came */
    uint8_t shown;
};

lam_status lam_alphabet_check(const lam_engine *e)
{
    const lam_text_kind kind = lam_vocab_kind(e->vocab);
    if (kind != LAM_BYTES && kind != LAM_BPE)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "model %s: a vocabulary of %s does not give every file back byte for byte; "
                        "models of bytes and of byte pairs (bpe) do",
                        e->name, lam_text_kind_name(kind));
    if (kind == LAM_BPE && lam_bpe_rules_of(lam_vocab_bpe(e->vocab))->nfc)
        return lam_fail(
            LAM_ERR_UNSUPPORTED,
            "model %s: its tokenizer puts texts into normal form C, so that files would "
            "not come back byte for byte",
            e->name);
    if (lam_vocab_lower(e->vocab))
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "model %s: its vocabulary has lower-case letters only, so that files would "
                        "not come back byte for byte",
                        e->name);
    if (lam_vocab_size(e->vocab) > LAM_CDF_MOST)
        return lam_fail(LAM_ERR_UNSUPPORTED, "model %s: %d tokens, at most %d can be coded",
                        e->name, lam_vocab_size(e->vocab), LAM_CDF_MOST);
    return LAM_OK;
}

static void map_bytes(lam_alphabet *a)
{
    for (int i = 0; i < BYTES; i++) {
        const char text[1] = {(char)i};
        a->token[i] = lam_vocab_find(a->engine->vocab, text, 1);
        if (a->token[i] >= 0)
            a->byte[a->token[i]] = i;
        else
            a->n_lacking++;
    }
}

lam_status lam_alphabet_create(lam_alphabet **out, const lam_engine *engine)
{
    *out = NULL;
    LAM_TRY(lam_alphabet_check(engine));
    lam_alphabet *const a = calloc(1, sizeof *a);
    if (!a)
        return lam_fail(LAM_ERR_MEMORY, "alphabet: no memory");
    a->engine = engine;
    a->start = lam_engine_start_token(engine);
    a->n_token = lam_vocab_size(engine->vocab);
    a->freq = calloc((size_t)a->n_token, sizeof *a->freq);
    lam_status status = a->freq ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "alphabet: no memory");
    if (lam_vocab_kind(engine->vocab) == LAM_BYTES) {
        a->size = BYTES;
        map_bytes(a);
    } else {
        a->size = a->n_token;
        if (status == LAM_OK)
            status = lam_bpe_coder_create(&a->coder, lam_vocab_bpe(engine->vocab));
    }
    if (status != LAM_OK) {
        lam_alphabet_free(a);
        return status;
    }
    *out = a;
    return LAM_OK;
}

void lam_alphabet_free(lam_alphabet *a)
{
    if (!a)
        return;
    lam_bpe_coder_free(a->coder);
    free(a->freq);
    free(a);
}

void lam_alphabet_reset(lam_alphabet *a)
{
    a->coded = a->lacked = 0;
    memset(a->times, 0, sizeof a->times);
}

int lam_alphabet_size(const lam_alphabet *a)
{
    return a->size;
}

/* ---- text ---- */

lam_status lam_alphabet_encode(lam_alphabet *a, lam_ids *out, const uint8_t *text, size_t size)
{
    if (a->coder) {
        const lam_bpe_text t = {(const char *)text, size, LAM_SPECIAL_TEXT};
        size_t end;
        return size == 0 ? LAM_OK : lam_bpe_encode(a->coder, out, &t, 0, size, &end);
    }
    LAM_TRY(lam_ids_reserve(out, size));
    for (size_t i = 0; i < size; i++)
        out->v[out->n++] = text[i];
    return LAM_OK;
}

const uint8_t *lam_alphabet_text(lam_alphabet *a, int symbol, size_t *size)
{
    if (!a->coder) {
        a->shown = (uint8_t)symbol;
        *size = 1;
        return &a->shown;
    }
    const char *const text = lam_vocab_symbol(a->engine->vocab, symbol, size);
    if (lam_bpe_is_special(lam_vocab_bpe(a->engine->vocab), symbol))
        *size = 0;
    return (const uint8_t *)text;
}

int32_t lam_alphabet_token(const lam_alphabet *a, int symbol)
{
    if (a->coder)
        return symbol;
    return a->token[symbol] >= 0 ? a->token[symbol] : a->start;
}

/* ---- frequencies ---- */

/* Of LAM_TOTAL, what bytes outside the vocabulary get together: as often as they came, and half a time more. */
static uint32_t lacking_share(const lam_alphabet *a)
{
    const uint64_t share = LAM_TOTAL * (2 * a->lacked + 1) / (2 * a->coded + 256);
    const uint64_t least = (uint64_t)a->n_lacking, most = LAM_TOTAL / 2;
    return (uint32_t)(share < least ? least : share > most ? most : share);
}

/* Divides it among them; what rounding leaves goes to the first. */
static void divide_lacking(lam_alphabet *a, uint32_t share)
{
    const uint64_t parts = 2 * a->lacked + (uint64_t)a->n_lacking;
    const uint64_t spare = share - (uint32_t)a->n_lacking;
    uint32_t rest = share;
    int first = -1;
    for (int i = 0; i < BYTES; i++)
        if (a->token[i] < 0) {
            a->byte_freq[i] = 1 + (uint32_t)(spare * (2 * (uint64_t)a->times[i] + 1) / parts);
            rest -= a->byte_freq[i];
            first = first < 0 ? i : first;
        }
    a->byte_freq[first] += rest;
}

void lam_alphabet_cum(lam_alphabet *a, uint32_t *cum, const double *logits)
{
    if (a->coder) {
        lam_cdf_make(a->freq, logits, a->n_token, LAM_TOTAL);
        lam_cdf_add_up(cum, a->freq, a->n_token);
        return;
    }
    const uint32_t share = a->n_lacking > 0 ? lacking_share(a) : 0;
    lam_cdf_make(a->freq, logits, a->n_token, LAM_TOTAL - share);
    for (int i = 0; i < a->n_token; i++)
        a->byte_freq[a->byte[i]] = a->freq[i];
    if (share > 0)
        divide_lacking(a, share);
    lam_cdf_add_up(cum, a->byte_freq, BYTES);
}

void lam_alphabet_note(lam_alphabet *a, int symbol)
{
    a->coded++;
    if (!a->coder && a->token[symbol] < 0) {
        a->lacked++;
        a->times[symbol]++;
    }
}
