/* decompressor.c -- see decompressor.h.
 *
 * Bytes are gathered until the part that is expected next is complete: the beginning of the header, the whole header,
 * a block's header, its stored bytes, and so on. */
#include "compress/decompressor.h"

#include "core/budget.h"
#include "core/grow.h"

#include <stdlib.h>
#include <string.h>

typedef enum part { HEAD, HEADER, KIND, BLOCK, STORED, INDEX, DONE, FAILED } part;

struct lam_decompressor {
    lam_engine *engine;
    lam_decompressor_options o;
    lam_byte_sink *sink;
    void *user;
    lam_unpacker *unpacker; /* from the header on */
    lam_lmz_header header;
    part part;
    uint8_t *bytes; /* of the part, [room] */
    size_t used, wanted, room;
    lam_lmz_block block;
    lam_lmz_entry *entries; /* as met, [n] */
    size_t n, entry_room;
    size_t damaged;
    uint64_t written;
};

static void expect(lam_decompressor *d, part next, size_t wanted)
{
    d->part = next;
    d->wanted = wanted;
}

lam_status lam_decompressor_create(lam_decompressor **out, lam_engine *engine,
                                   const lam_decompressor_options *options, lam_byte_sink *sink,
                                   void *user)
{
    lam_decompressor *const d = *out = calloc(1, sizeof *d);
    if (!d)
        return lam_fail(LAM_ERR_MEMORY, "decompressor: no memory");
    d->engine = engine;
    d->o = *options;
    d->sink = sink;
    d->user = user;
    expect(d, HEAD, LAM_LMZ_HEAD);
    return LAM_OK;
}

void lam_decompressor_free(lam_decompressor *d)
{
    if (!d)
        return;
    lam_unpacker_free(d->unpacker);
    free(d->bytes);
    free(d->entries);
    free(d);
}

/* ---- parts that are complete ---- */

static lam_status end_header(lam_decompressor *d)
{
    LAM_TRY(lam_lmz_get_header(&d->header, d->bytes, d->used));
    LAM_TRY(lam_unpacker_create(&d->unpacker, d->engine, &d->header, d->o.dev));
    d->used = 0;
    expect(d, KIND, 1);
    return LAM_OK;
}

/* A block begins, or the index. */
static lam_status end_kind(lam_decompressor *d)
{
    if (d->bytes[0] == LAM_LMZ_END)
        expect(d, INDEX, 1 + d->n * LAM_LMZ_ENTRY + LAM_LMZ_FOOTER);
    else
        expect(d, BLOCK, LAM_LMZ_BLOCK);
    return LAM_OK;
}

static lam_status end_block(lam_decompressor *d)
{
    LAM_TRY(lam_lmz_get_block(&d->block, d->bytes, &d->header, d->n));
    LAM_TRY(lam_grow(&d->entries, &d->entry_room, d->n + 1, sizeof *d->entries, "blocks"));
    d->entries[d->n++] = (lam_lmz_entry){d->block.raw, d->block.stored};
    d->used = 0;
    expect(d, STORED, d->block.stored);
    return LAM_OK;
}

static lam_status end_stored(lam_decompressor *d)
{
    const uint8_t *raw;
    const lam_status status =
        lam_unpacker_block(d->unpacker, &raw, &d->block, d->bytes, d->n - 1, &d->o.watch);
    d->used = 0;
    expect(d, KIND, 1);
    if (status == LAM_ERR_FORMAT && d->o.on_damage) {
        d->damaged++;
        d->o.on_damage(d->o.damage_user, lam_error());
        return LAM_OK;
    }
    LAM_TRY(status);
    d->written += d->block.raw;
    return d->sink(d->user, raw, d->block.raw);
}

static lam_status end_index(lam_decompressor *d)
{
    lam_lmz_entry *const entries = malloc((d->n + 1) * sizeof *entries);
    if (!entries)
        return lam_fail(LAM_ERR_MEMORY, "decompressor: no memory for the index");
    lam_status status = lam_lmz_get_index(entries, d->n, d->bytes, d->used, &d->header);
    for (size_t i = 0; i < d->n && status == LAM_OK; i++)
        if (entries[i].raw != d->entries[i].raw || entries[i].stored != d->entries[i].stored)
            status = lam_fail(LAM_ERR_FORMAT, "index: damaged: it does not fit block %zu", i + 1);
    free(entries);
    d->used = 0;
    expect(d, DONE, 1);
    return status;
}

static lam_status end_part(lam_decompressor *d)
{
    size_t size;
    switch (d->part) {
    case HEAD:
        LAM_TRY(lam_lmz_header_size(&size, d->bytes));
        expect(d, HEADER, size);
        return LAM_OK;
    case HEADER:
        return end_header(d);
    case KIND:
        return end_kind(d);
    case BLOCK:
        return end_block(d);
    case STORED:
        return end_stored(d);
    case INDEX:
        return end_index(d);
    case DONE:
        return lam_fail(LAM_ERR_FORMAT, "something follows the end of the archive");
    case FAILED:
        break;
    }
    return lam_fail(LAM_ERR_ARG, "the archive was given up: nothing can be added");
}

/* ---- gathering ---- */

/* Room for k more bytes; for what has arrived, not for what a damaged header promises. */
static lam_status make_room(lam_decompressor *d, size_t k)
{
    if (d->room - d->used >= k)
        return LAM_OK;
    size_t room = d->room > 0 ? d->room : 4096;
    while (room - d->used < k)
        room *= 2;
    LAM_TRY(lam_budget_ask("a block to decompress", room));
    uint8_t *const more = realloc(d->bytes, room);
    if (!more)
        return lam_fail(LAM_ERR_MEMORY, "decompressor: no memory for %zu bytes", room);
    d->bytes = more;
    d->room = room;
    return LAM_OK;
}

static lam_status gather(lam_decompressor *d, const uint8_t *from, size_t n)
{
    LAM_TRY(make_room(d, 1)); /* a part of no bytes, too, has an address */
    for (;;) {
        const size_t missing = d->wanted - d->used, k = n < missing ? n : missing;
        LAM_TRY(make_room(d, k));
        if (k > 0)
            memcpy(d->bytes + d->used, from, k);
        d->used += k;
        from += k;
        n -= k;
        if (d->used < d->wanted)
            return LAM_OK;
        LAM_TRY(end_part(d));
    }
}

lam_status lam_decompressor_push(lam_decompressor *d, const void *bytes, size_t n)
{
    if (d->part == FAILED)
        return end_part(d);
    const lam_status status = gather(d, bytes, n);
    if (status != LAM_OK)
        d->part = FAILED;
    return status;
}

lam_status lam_decompressor_finish(lam_decompressor *d)
{
    const part at = d->part;
    if (at == FAILED)
        return end_part(d);
    d->part = FAILED;
    if (at == HEAD || at == HEADER) {
        lam_lmz_header h;
        return lam_lmz_get_header(&h, d->bytes, d->used);
    }
    if (at == INDEX)
        return lam_fail(LAM_ERR_FORMAT, "index: the archive ends in it");
    if (at == KIND)
        return lam_fail(LAM_ERR_FORMAT, "the archive is cut off behind block %zu", d->n);
    if (at != DONE)
        return lam_fail(LAM_ERR_FORMAT, "block %zu: the archive ends in it",
                        at == STORED ? d->n : d->n + 1);
    return d->damaged == 0
               ? LAM_OK
               : lam_fail(LAM_ERR_FORMAT, "%zu of %zu blocks are damaged", d->damaged, d->n);
}

uint64_t lam_decompressor_written(const lam_decompressor *d)
{
    return d->written;
}
