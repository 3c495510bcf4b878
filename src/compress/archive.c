/* archive.c -- see archive.h. */
#include "compress/archive.h"

#include "core/budget.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* n bytes at `at`, all of them. */
static lam_status read_at(const lam_archive *a, void *out, size_t n, uint64_t at)
{
    uint8_t *to = out;
    while (n > 0) {
        const ssize_t k = pread(a->fd, to, n, (off_t)at);
        if (k < 0 && errno != EINTR)
            return lam_fail(LAM_ERR_IO, "cannot read: %s", strerror(errno));
        if (k == 0)
            return lam_fail(LAM_ERR_FORMAT, "the archive is cut off");
        if (k > 0) {
            to += k;
            at += (uint64_t)k;
            n -= (size_t)k;
        }
    }
    return LAM_OK;
}

static lam_status read_header(lam_archive *a, uint64_t *end)
{
    uint8_t bytes[LAM_LMZ_HEADER];
    const size_t n = a->size < sizeof bytes ? (size_t)a->size : sizeof bytes;
    size_t size;
    LAM_TRY(read_at(a, bytes, n, 0));
    LAM_TRY(lam_lmz_get_header(&a->header, bytes, n));
    LAM_TRY(lam_lmz_header_size(&size, bytes));
    *end = size;
    return LAM_OK;
}

/* ---- the index ---- */

/* Puts down one more block. */
static lam_status append(lam_archive *a, size_t *room, uint64_t at, lam_lmz_entry e)
{
    if (a->n == *room) {
        const size_t more = 2 * *room + 16;
        LAM_TRY(lam_budget_ask("the index of an archive", more * sizeof *a->blocks));
        lam_archive_block *const blocks = realloc(a->blocks, more * sizeof *blocks);
        if (!blocks)
            return lam_fail(LAM_ERR_MEMORY, "archive: no memory for %zu blocks", more);
        a->blocks = blocks;
        *room = more;
    }
    a->blocks[a->n++] =
        (lam_archive_block){.at = at, .first = a->raw, .raw = e.raw, .stored = e.stored};
    a->raw += e.raw;
    return LAM_OK;
}

/* The blocks that the index names must fill the file from the header to the index. */
static lam_status use_index(lam_archive *a, uint64_t from, uint64_t index,
                            const lam_lmz_entry *entries, size_t n)
{
    size_t room = 0;
    uint64_t at = from;
    for (size_t i = 0; i < n; i++) {
        LAM_TRY(append(a, &room, at, entries[i]));
        at += LAM_LMZ_BLOCK + entries[i].stored;
    }
    return at == index
               ? LAM_OK
               : lam_fail(LAM_ERR_FORMAT, "index: damaged: its blocks do not fill the file");
}

static lam_status read_index(lam_archive *a, uint64_t from)
{
    uint8_t footer[LAM_LMZ_FOOTER];
    uint32_t n;
    uint64_t raw;
    if (a->size < from + 1 + LAM_LMZ_FOOTER)
        return lam_fail(LAM_ERR_FORMAT, "index: the archive is cut off");
    LAM_TRY(read_at(a, footer, sizeof footer, a->size - sizeof footer));
    LAM_TRY(lam_lmz_get_footer(&n, &raw, footer));
    const uint64_t size = 1 + (uint64_t)n * LAM_LMZ_ENTRY + LAM_LMZ_FOOTER;
    if (size > a->size - from)
        return lam_fail(LAM_ERR_FORMAT, "index: damaged: %u blocks are more than the file can hold",
                        (unsigned)n);
    LAM_TRY(lam_budget_ask("the index of an archive", 3 * (size_t)size));
    uint8_t *const bytes = malloc((size_t)size);
    lam_lmz_entry *const entries = malloc(((size_t)n + 1) * sizeof *entries);
    lam_status status =
        bytes && entries ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "archive: no memory for its index");
    if (status == LAM_OK)
        status = read_at(a, bytes, (size_t)size, a->size - size);
    if (status == LAM_OK)
        status = lam_lmz_get_index(entries, n, bytes, (size_t)size, &a->header);
    if (status == LAM_OK)
        status = use_index(a, from, a->size - size, entries, n);
    free(bytes);
    free(entries);
    return status;
}

/* From one block header to the next, as long as they are intact and their blocks are there. */
static lam_status walk(lam_archive *a, uint64_t from)
{
    size_t room = 0;
    free(a->blocks);
    a->blocks = NULL;
    a->n = 0;
    a->raw = 0;
    for (uint64_t at = from; a->size - at >= LAM_LMZ_BLOCK;) {
        uint8_t head[LAM_LMZ_BLOCK];
        lam_lmz_block b;
        LAM_TRY(read_at(a, head, sizeof head, at));
        if (lam_lmz_get_block(&b, head, &a->header, a->n) != LAM_OK ||
            b.stored > a->size - at - LAM_LMZ_BLOCK)
            return LAM_OK;
        LAM_TRY(append(a, &room, at, (lam_lmz_entry){b.raw, b.stored}));
        at += LAM_LMZ_BLOCK + b.stored;
    }
    return LAM_OK;
}

lam_status lam_archive_open(lam_archive *a, int fd)
{
    struct stat info;
    uint64_t from;
    *a = (lam_archive){.fd = fd};
    if (fstat(fd, &info) != 0)
        return lam_fail(LAM_ERR_IO, "cannot read: %s", strerror(errno));
    a->size = (uint64_t)info.st_size;
    LAM_TRY(read_header(a, &from));
    lam_status status = read_index(a, from);
    a->complete = status == LAM_OK;
    if (status == LAM_ERR_FORMAT) {
        snprintf(a->trouble, sizeof a->trouble, "%s", lam_error());
        status = walk(a, from);
    }
    if (status != LAM_OK)
        lam_archive_close(a);
    return status;
}

void lam_archive_close(lam_archive *a)
{
    free(a->blocks);
    a->blocks = NULL;
    a->n = 0;
}

/* ---- blocks ---- */

lam_status lam_archive_read(const lam_archive *a, size_t i, lam_lmz_block *b, uint8_t **stored)
{
    const lam_archive_block *const known = &a->blocks[i];
    uint8_t head[LAM_LMZ_BLOCK];
    if (stored)
        *stored = NULL;
    LAM_TRY(read_at(a, head, sizeof head, known->at));
    LAM_TRY(lam_lmz_get_block(b, head, &a->header, i));
    if (b->raw != known->raw || b->stored != known->stored)
        return lam_fail(LAM_ERR_FORMAT, "block %zu: damaged: its header does not fit the index",
                        i + 1);
    if (!stored)
        return LAM_OK;
    LAM_TRY(lam_budget_ask("a block to decompress", b->stored));
    uint8_t *const bytes = malloc((size_t)b->stored + 1);
    if (!bytes)
        return lam_fail(LAM_ERR_MEMORY, "archive: no memory for a block of %u bytes",
                        (unsigned)b->stored);
    const lam_status status = read_at(a, bytes, b->stored, known->at + LAM_LMZ_BLOCK);
    if (status != LAM_OK)
        free(bytes);
    else
        *stored = bytes;
    return status;
}

/* The part of block i that is asked for goes to the sink. */
static lam_status extract_block(const lam_archive *a, size_t i, lam_unpacker *u,
                                const lam_archive_range *r, lam_byte_sink *sink, void *user)
{
    const lam_archive_block *const known = &a->blocks[i];
    const uint64_t end = r->from + r->n, last = known->first + known->raw;
    const uint64_t from = r->from > known->first ? r->from - known->first : 0;
    const uint64_t to = (end < last ? end : last) - known->first;
    lam_lmz_block b;
    uint8_t *stored;
    const uint8_t *raw;
    lam_status status = lam_archive_read(a, i, &b, &stored);
    if (status == LAM_OK)
        status = lam_unpacker_block(u, &raw, &b, stored, i, r->watch);
    if (status == LAM_OK)
        status = sink(user, raw + from, (size_t)(to - from));
    free(stored);
    return status;
}

lam_status lam_archive_extract(const lam_archive *a, lam_unpacker *u,
                               const lam_archive_range *range, lam_byte_sink *sink, void *user)
{
    size_t damaged = 0;
    if (range->from > a->raw || range->n > a->raw - range->from)
        return lam_fail(LAM_ERR_ARG, "--range %llu+%llu: the archive holds %llu bytes%s",
                        (unsigned long long)range->from, (unsigned long long)range->n,
                        (unsigned long long)a->raw, a->complete ? "" : " that can be found");
    for (size_t i = 0; i < a->n; i++) {
        const lam_archive_block *const known = &a->blocks[i];
        if (known->first >= range->from + range->n || known->first + known->raw <= range->from)
            continue;
        const lam_status status = extract_block(a, i, u, range, sink, user);
        if (status != LAM_ERR_FORMAT || !range->on_damage) {
            LAM_TRY(status);
            continue;
        }
        damaged++;
        range->on_damage(range->damage_user, lam_error());
    }
    return damaged == 0 ? LAM_OK
                        : lam_fail(LAM_ERR_FORMAT, "%zu of %zu blocks are damaged", damaged, a->n);
}
