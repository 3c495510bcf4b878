/* spool.c -- see spool.h. */
#include "data/spool.h"

#include "data/scratch.h"

#include <assert.h>
#include <stdlib.h>

enum { BUFFER = 1 << 18, BYTES_MAX = 5 }; /* a number takes at most 5 bytes */

struct lam_spool {
    lam_scratch *file;
    const unsigned char *at; /* the next number to be read; NULL while numbers are put */
    int64_t count, left;     /* put; not yet got since the rewind */
    size_t used;             /* of the buffer */
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
    LAM_TRY(lam_scratch_put(spool->file, spool->buffer, spool->used));
    spool->used = 0;
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
    assert(spool->at == NULL);
    spool->count += (int64_t)n;
    while (n > 0) {
        if (spool->used + BYTES_MAX > BUFFER)
            LAM_TRY(flush(spool));
        const size_t fit = (BUFFER - spool->used) / BYTES_MAX, some = fit < n ? fit : n;
        unsigned char *p = spool->buffer + spool->used;
        for (size_t i = 0; i < some; i++)
            p = put_one(p, ids[i]);
        spool->used = (size_t)(p - spool->buffer);
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
    const char *all;
    LAM_TRY(flush(spool)); /* nothing, once it has been read */
    LAM_TRY(lam_scratch_map(spool->file, &all));
    spool->at = (const unsigned char *)all;
    spool->left = spool->count;
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

size_t lam_spool_get(lam_spool *spool, int32_t *ids, size_t max)
{
    const size_t n = (int64_t)max < spool->left ? max : (size_t)spool->left;
    for (size_t i = 0; i < n; i++)
        spool->at = get_one(spool->at, &ids[i]);
    spool->left -= (int64_t)n;
    return n;
}
