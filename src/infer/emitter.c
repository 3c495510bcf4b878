/* emitter.c -- see emitter.h. */
#include "infer/emitter.h"

#include "core/grow.h"
#include "data/utf8.h"

#include <stdlib.h>
#include <string.h>

/* A growing run of bytes. */
typedef struct bytes {
    char *p;
    size_t n, room;
} bytes;

struct lam_emitter {
    lam_detok detok;
    const char *const *stops;
    int n_stops;
    bytes raw;   /* bytes that are no whole character yet */
    bytes clean; /* valid UTF-8 that is not out yet */
    bytes shown; /* what the last call returned */
    bool stopped;
};

static lam_status append(bytes *b, const char *text, size_t n)
{
    if (n == 0)
        return LAM_OK; /* neither address need be valid */
    LAM_TRY(lam_grow(&b->p, &b->room, b->n + n, 1, "bytes of text"));
    memcpy(b->p + b->n, text, n);
    b->n += n;
    return LAM_OK;
}

static void drop_front(bytes *b, size_t n)
{
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
}

lam_status lam_emitter_create(lam_emitter **out, const lam_vocab *vocab, const char *const *stops,
                              int n_stops)
{
    *out = NULL;
    for (int i = 0; i < n_stops; i++)
        if (stops[i][0] == '\0')
            return lam_fail(LAM_ERR_ARG, "stop string %d is empty", i + 1);
    lam_emitter *e = calloc(1, sizeof *e);
    if (!e)
        return lam_fail(LAM_ERR_MEMORY, "text: no memory");
    lam_detok_start(&e->detok, vocab);
    e->stops = stops;
    e->n_stops = n_stops;
    *out = e;
    return LAM_OK;
}

void lam_emitter_free(lam_emitter *e)
{
    if (!e)
        return;
    free(e->raw.p);
    free(e->clean.p);
    free(e->shown.p);
    free(e);
}

void lam_emitter_prompt(lam_emitter *e, int32_t token)
{
    const char *space;
    size_t size;
    lam_detok_next(&e->detok, token, &space, &size);
}

/* Moves whole characters from raw to clean; at the end of the text also what can become none. */
static lam_status clean_up(lam_emitter *e, bool end)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t at = 0;
    while (at < e->raw.n) {
        int32_t codepoint;
        const int n =
            lam_utf8_decode((const unsigned char *)e->raw.p + at, e->raw.n - at, &codepoint);
        if (n == 0 && !end)
            break;
        if (n > 0)
            LAM_TRY(append(&e->clean, e->raw.p + at, (size_t)n));
        else
            LAM_TRY(append(&e->clean, replacement, 3));
        at += n > 0 ? (size_t)n : 1;
    }
    if (at > 0)
        drop_front(&e->raw, at);
    return LAM_OK;
}

/* Where the first stop string begins in the clean text, or its end. */
static size_t find_stop(const lam_emitter *e, bool *found)
{
    *found = false;
    for (size_t at = 0; at < e->clean.n; at++)
        for (int i = 0; i < e->n_stops; i++) {
            const size_t n = strlen(e->stops[i]);
            if (n <= e->clean.n - at && memcmp(e->clean.p + at, e->stops[i], n) == 0) {
                *found = true;
                return at;
            }
        }
    return e->clean.n;
}

/* How many bytes at the end may be the beginning of a stop string. */
static size_t held_back(const lam_emitter *e)
{
    size_t most = 0;
    for (int i = 0; i < e->n_stops; i++) {
        const size_t length = strlen(e->stops[i]);
        for (size_t n = 1; n < length && n <= e->clean.n; n++)
            if (memcmp(e->clean.p + e->clean.n - n, e->stops[i], n) == 0 && n > most)
                most = n;
    }
    return most;
}

static lam_status show(lam_emitter *e, size_t n, const char **text, size_t *size)
{
    e->shown.n = 0;
    LAM_TRY(append(&e->shown, e->clean.p, n));
    if (n > 0)
        drop_front(&e->clean, n);
    *text = n > 0 ? e->shown.p : "";
    *size = n;
    return LAM_OK;
}

lam_status lam_emitter_push(lam_emitter *e, int32_t token, const char **text, size_t *size,
                            bool *stopped)
{
    const char *space;
    size_t n = 0;
    *stopped = e->stopped;
    *text = "";
    *size = 0;
    if (e->stopped)
        return LAM_OK;
    const char *symbol = lam_detok_next(&e->detok, token, &space, &n);
    LAM_TRY(append(&e->raw, space, strlen(space)));
    LAM_TRY(append(&e->raw, symbol, n));
    LAM_TRY(clean_up(e, false));
    const size_t end = find_stop(e, &e->stopped);
    *stopped = e->stopped;
    return show(e, e->stopped ? end : e->clean.n - held_back(e), text, size);
}

lam_status lam_emitter_finish(lam_emitter *e, const char **text, size_t *size)
{
    *text = "";
    *size = 0;
    if (e->stopped)
        return LAM_OK;
    LAM_TRY(clean_up(e, true));
    return show(e, e->clean.n, text, size);
}
