/* spool.c -- see spool.h. */
#include "data/spool.h"

#include "data/scratch.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 1 << 18, BYTES_MAX = 5 }; /* a number takes at most 5 bytes */

struct lam_spool {
    lam_scratch *file;
    bool reading;
    int64_t count, left; /* put; not yet got since the rewind */
    size_t at, end;      /* writing: used is [0, end); reading: unread is [at, end) */
    unsigned char buffer[BUFFER];
};

lam_status lam_spool_create(lam_spool **out, const char *dir)
{
    *out = NULL;
    lam_spool *spool = calloc(1, sizeof *spool);
    if (spool == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a temporary file's buffer");
    const lam_status status = lam_scratch_create(&spool->file, dir);
    if (status != LAM_OK) {
        free(spool);
        return status;
    }
    *out = spool;
    return LAM_OK;
}

void lam_spool_free(lam_spool *spool)
{
    if (spool == NULL)
        return;
    lam_scratch_free(spool->file);
    free(spool);
}

static lam_status flush(lam_spool *spool)
{
    LAM_TRY(lam_scratch_put(spool->file, spool->buffer, spool->end));
    spool->end = 0;
    return LAM_OK;
}

static unsigned char *put_one(unsigned char *p, int32_t id)
{
    uint32_t v = (uint32_t)id;
    assert(id >= 0);
    for (; v > 0x7f; v >>= 7)
        *p++ = (unsigned char)(v | 0x80);
    *p++ = (unsigned char)v;
    return p;
}

lam_status lam_spool_put(lam_spool *spool, const int32_t *ids, size_t n)
{
    assert(!spool->reading);
    spool->count += (int64_t)n;
    while (n > 0) {
        if (spool->end + BYTES_MAX > BUFFER)
            LAM_TRY(flush(spool));
        const size_t fit = (BUFFER - spool->end) / BYTES_MAX, some = fit < n ? fit : n;
        unsigned char *p = spool->buffer + spool->end;
        for (size_t i = 0; i < some; i++)
            p = put_one(p, ids[i]);
        spool->end = (size_t)(p - spool->buffer);
        ids += some;
        n -= some;
    }
    return LAM_OK;
}

int64_t lam_spool_count(const lam_spool *spool)
{
    return spool->count;
}

lam_status lam_spool_rewind(lam_spool *spool)
{
    if (!spool->reading)
        LAM_TRY(flush(spool));
    spool->reading = true;
    LAM_TRY(lam_scratch_rewind(spool->file));
    spool->left = spool->count;
    spool->at = spool->end = 0;
    return LAM_OK;
}

/* Moves what is unread to the front and reads on. */
static lam_status refill(lam_spool *spool)
{
    memmove(spool->buffer, spool->buffer + spool->at, spool->end - spool->at);
    spool->end -= spool->at;
    spool->at = 0;
    size_t n;
    LAM_TRY(lam_scratch_read(spool->file, spool->buffer + spool->end, BUFFER - spool->end, &n));
    spool->end += n;
    return LAM_OK;
}

static const unsigned char *get_one(const unsigned char *p, int32_t *id)
{
    uint32_t v = *p & 0x7f;
    for (int shift = 7; *p++ > 0x7f; shift += 7)
        v |= (uint32_t)(*p & 0x7f) << shift;
    *id = (int32_t)v;
    return p;
}

lam_status lam_spool_get(lam_spool *spool, int32_t *ids, size_t max, size_t *n)
{
    *n = 0;
    if ((int64_t)max > spool->left)
        max = (size_t)spool->left;
    while (*n < max) {
        if (spool->end - spool->at < BYTES_MAX)
            LAM_TRY(refill(spool));
        if (spool->end == spool->at)
            return lam_fail(LAM_ERR_IO, "%s: a temporary file was cut",
                            lam_scratch_dir(spool->file));
        /* A number takes at most BYTES_MAX bytes; near the end of the file, go one by one. */
        const size_t whole = (spool->end - spool->at) / BYTES_MAX, fit = whole > 0 ? whole : 1;
        const size_t stop = *n + (fit < max - *n ? fit : max - *n);
        const unsigned char *p = spool->buffer + spool->at;
        while (*n < stop)
            p = get_one(p, &ids[(*n)++]);
        spool->at = (size_t)(p - spool->buffer);
    }
    spool->left -= (int64_t)*n;
    return LAM_OK;
}
