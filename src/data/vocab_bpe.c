/* vocab_bpe.c -- vocabularies of byte pairs: symbols from outside, and texts encoded with them. */
#include "data/vocab_int.h"

#include "core/grow.h"
#include "data/nfc.h"

#include <stdlib.h>
#include <string.h>

static lam_status fill(lam_vocab *v, const lam_symbol *list, size_t n, const char *label)
{
    for (size_t i = 0; i < n; i++) {
        if (lam_vocab_find(v, list[i].text, list[i].size) >= 0)
            return lam_fail(LAM_ERR_FORMAT, "%s: token %zu is there twice", label, i);
        LAM_TRY(lam_vocab_append(v, list[i].text, list[i].size, list[i].count));
    }
    return LAM_OK;
}

lam_status lam_vocab_create_bpe(lam_vocab **out, const lam_symbol *list, size_t n,
                                const lam_bpe_rules *rules, const char *label)
{
    lam_vocab *v;
    *out = NULL;
    LAM_TRY(lam_vocab_start(&v, &(lam_vocab_rules){.kind = LAM_BPE}, n));
    lam_status status = fill(v, list, n, label);
    if (status == LAM_OK)
        status = lam_bpe_create(&v->bpe, v->symbols, rules, label);
    v->eos = rules->separator;
    if (status == LAM_OK)
        *out = v;
    else
        lam_vocab_free(v);
    return status;
}

lam_status lam_vocab_counted(lam_vocab **out, const lam_vocab *v, const int64_t *counts)
{
    const size_t n = (size_t)lam_vocab_size(v);
    *out = NULL;
    lam_symbol *list = malloc(n * sizeof *list);
    if (list == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %zu tokens", n);
    for (size_t i = 0; i < n; i++) {
        list[i].text = lam_vocab_symbol(v, (int32_t)i, &list[i].size);
        list[i].count = counts[i];
    }
    const lam_status status =
        lam_vocab_create_bpe(out, list, n, lam_bpe_rules_of(v->bpe), "vocabulary");
    free(list);
    return status;
}

const lam_bpe *lam_vocab_bpe(const lam_vocab *v)
{
    return v->bpe;
}

/* ---- encoding ---- */

/* A text that is put together from parts. */
typedef struct parts {
    char *text;
    size_t n, room;
} parts;

static lam_status add_part(void *user, const char *bytes, size_t n)
{
    parts *p = user;
    LAM_TRY(lam_grow(&p->text, &p->room, p->n + n, 1, "bytes of text"));
    memcpy(p->text + p->n, bytes, n);
    p->n += n;
    return LAM_OK;
}

static lam_status normalise(parts *out, const char *text, size_t size)
{
    lam_nfc *nfc;
    LAM_TRY(lam_nfc_create(&nfc, add_part, out));
    lam_status status = lam_nfc_feed(nfc, text, size);
    if (status == LAM_OK)
        status = lam_nfc_finish(nfc);
    lam_nfc_free(nfc);
    return status;
}

static lam_status encode(const lam_bpe *bpe, lam_ids *out, const lam_bpe_text *t)
{
    lam_bpe_coder *coder;
    size_t end;
    LAM_TRY(lam_bpe_coder_create(&coder, bpe));
    const lam_status status = lam_bpe_encode(coder, out, t, 0, t->size, &end);
    lam_bpe_coder_free(coder);
    return status;
}

lam_status lam_vocab_encode_special(const lam_vocab *v, int32_t **ids, size_t *n, const char *text,
                                    size_t size, lam_special special)
{
    lam_bpe_text t = {text, size, special};
    lam_ids made = {0};
    parts normal = {0};
    *ids = NULL;
    *n = 0;
    if (v->bpe == NULL && special == LAM_SPECIAL_TEXT)
        return lam_vocab_encode(v, ids, n, text, size);
    if (v->bpe == NULL)
        return lam_fail(LAM_ERR_ARG, "a vocabulary of %s has no special tokens",
                        lam_text_kind_name(v->kind));
    lam_status status = lam_ids_reserve(&made, 1); /* of an empty text, too */
    if (status == LAM_OK && lam_bpe_rules_of(v->bpe)->nfc) {
        status = normalise(&normal, text, size);
        t.text = normal.text;
        t.size = normal.n;
    }
    if (status == LAM_OK)
        status = encode(v->bpe, &made, &t);
    free(normal.text);
    if (status != LAM_OK) {
        free(made.v);
        return status;
    }
    *ids = made.v;
    *n = made.n;
    return LAM_OK;
}
