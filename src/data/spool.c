/* spool.c -- see spool.h. */
#include "data/spool.h"

#include "core/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 18, BYTES_MAX = 5 }; /* a number takes at most 5 bytes */

struct lam_spool {
    int fd;
    bool reading;
    int64_t count, left; /* put; not yet got since the rewind */
    size_t at, end;      /* writing: used is [0, end); reading: unread is [at, end) */
    char dir[PATH_MAX];
    unsigned char buffer[BUFFER];
};

static lam_status failed(const lam_spool *spool, const char *verb)
{
    return lam_fail(LAM_ERR_IO, "%s: cannot %s a temporary file: %s", spool->dir, verb,
                    errno == ENOSPC || errno == EDQUOT ? "no space left on the device"
                                                       : strerror(errno));
}

lam_status lam_spool_create(lam_spool **out, const char *dir)
{
    char name[PATH_MAX];
    *out = NULL;
    LAM_TRY(lam_path_join(name, sizeof name, dir, "spool-XXXXXX"));
    lam_spool *spool = calloc(1, sizeof *spool);
    if (spool == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a temporary file's buffer");
    strncpy(spool->dir, dir, sizeof spool->dir - 1);
    spool->fd = mkostemp(name, O_CLOEXEC);
    if (spool->fd < 0) {
        const lam_status status = failed(spool, "create");
        free(spool);
        return status;
    }
    unlink(name);
    *out = spool;
    return LAM_OK;
}

void lam_spool_free(lam_spool *spool)
{
    if (spool == NULL)
        return;
    close(spool->fd);
    free(spool);
}

static lam_status flush(lam_spool *spool)
{
    for (size_t at = 0; at < spool->end;) {
        const ssize_t n = write(spool->fd, spool->buffer + at, spool->end - at);
        if (n < 0 && errno != EINTR)
            return failed(spool, "write");
        at += n > 0 ? (size_t)n : 0;
    }
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
    if (lseek(spool->fd, 0, SEEK_SET) != 0)
        return failed(spool, "read");
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
    ssize_t n;
    do
        n = read(spool->fd, spool->buffer + spool->end, BUFFER - spool->end);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return failed(spool, "read");
    spool->end += (size_t)n;
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
            return lam_fail(LAM_ERR_IO, "%s: a temporary file was cut", spool->dir);
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
