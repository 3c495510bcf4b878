/* compressor.c -- see compressor.h. */
#include "compress/compressor.h"

#include "compress/alphabet.h"
#include "core/budget.h"
#include "core/grow.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct lam_compressor {
    lam_codec *codec;
    lam_lmz_header header;
    lam_byte_sink *sink;
    void *user;
    lam_watch watch;
    uint8_t *raw, *coded; /* [room] */
    size_t used, room;    /* room grows to header.block */
    lam_lmz_entry *entries;
    size_t n_entries, entry_room;
    lam_compressor_stats stats;
    int finished;
};

static lam_status send(lam_compressor *c, const void *bytes, size_t n)
{
    c->stats.written += n;
    return c->sink(c->user, bytes, n);
}

static lam_status check_options(const lam_compressor_options *o)
{
    if (o->streams < 0 || o->streams > LAM_STREAMS_MOST)
        return lam_fail(LAM_ERR_ARG, "streams is %d, must be 1 to %d", o->streams,
                        LAM_STREAMS_MOST);
    if (o->block != 0 && (o->block < LAM_LMZ_RAW_LEAST || o->block > LAM_LMZ_RAW_MOST))
        return lam_fail(LAM_ERR_ARG, "block is %zu bytes, must be %d to %d", o->block,
                        LAM_LMZ_RAW_LEAST, LAM_LMZ_RAW_MOST);
    if (o->adapt >= LAM_ADAPTS)
        return lam_fail(LAM_ERR_ARG, "adapt is %d, must be 0 to %d", (int)o->adapt, LAM_ADAPTS - 1);
    return LAM_OK;
}

static lam_status build(lam_compressor *c, lam_engine *engine, const lam_compressor_options *o)
{
    lam_identity identity;
    const lam_config *cfg = &engine->model->cfg;
    LAM_TRY(check_options(o));
    LAM_TRY(lam_alphabet_check(engine));
    LAM_TRY(lam_identity_of(&identity, engine));
    c->stats.model = identity.bytes;
    c->header = (lam_lmz_header){.adapt = o->adapt,
                                 .streams = o->streams > 0 ? o->streams : LAM_STREAMS_USUAL,
                                 .segment = cfg->tgt_len,
                                 .memory = cfg->mem_len,
                                 .block = (uint32_t)(o->block ? o->block : LAM_BLOCK_USUAL)};
    memcpy(c->header.model, identity.sha256, sizeof c->header.model);
    strcpy(c->header.name, identity.name);
    LAM_TRY(lam_codec_create(&c->codec, engine,
                             &(lam_codec_options){.streams = c->header.streams,
                                                  .segment = c->header.segment,
                                                  .memory = c->header.memory,
                                                  .adapt = o->adapt,
                                                  .dev = o->dev}));
    LAM_TRY(lam_codec_fingerprint(c->codec, &c->header.fingerprint));
    uint8_t bytes[LAM_LMZ_HEADER];
    return send(c, bytes, lam_lmz_put_header(bytes, &c->header));
}

lam_status lam_compressor_create(lam_compressor **out, lam_engine *engine,
                                 const lam_compressor_options *options, lam_byte_sink *sink,
                                 void *user)
{
    *out = NULL;
    lam_compressor *const c = calloc(1, sizeof *c);
    if (!c)
        return lam_fail(LAM_ERR_MEMORY, "compressor: no memory");
    c->sink = sink;
    c->user = user;
    c->watch = options->watch;
    const lam_status status = build(c, engine, options);
    if (status != LAM_OK) {
        lam_compressor_free(c);
        return status;
    }
    *out = c;
    return LAM_OK;
}

void lam_compressor_free(lam_compressor *c)
{
    if (!c)
        return;
    lam_codec_free(c->codec);
    free(c->raw);
    free(c->coded);
    free(c->entries);
    free(c);
}

/* ---- blocks ---- */

static lam_status note_block(lam_compressor *c, const lam_lmz_block *b)
{
    LAM_TRY(lam_grow(&c->entries, &c->entry_room, c->n_entries + 1, sizeof *c->entries, "blocks"));
    c->entries[c->n_entries++] = (lam_lmz_entry){b->raw, b->stored};
    c->stats.blocks++;
    c->stats.stored += b->kind == LAM_LMZ_STORED;
    return LAM_OK;
}

/* Writes the bytes that wait as a block: coded, or as they are where that is not smaller. */
static lam_status write_block(lam_compressor *c)
{
    uint8_t head[LAM_LMZ_BLOCK];
    size_t size;
    if (c->n_entries == UINT32_MAX)
        return lam_fail(LAM_ERR_UNSUPPORTED, "more than %u blocks: use larger ones", UINT32_MAX);
    LAM_TRY(lam_codec_encode(c->codec, c->coded, c->used - 1, &size, c->raw, c->used, &c->watch));
    const lam_lmz_block b = {.kind = size > 0 ? LAM_LMZ_CODED : LAM_LMZ_STORED,
                             .raw = (uint32_t)c->used,
                             .stored = (uint32_t)(size > 0 ? size : c->used),
                             .sum = XXH64(c->raw, c->used, 0)};
    LAM_TRY(send(c, head, lam_lmz_put_block(head, &b, c->n_entries)));
    LAM_TRY(send(c, size > 0 ? c->coded : c->raw, b.stored));
    c->used = 0;
    return note_block(c, &b);
}

/* Room for `wanted` bytes of a block: a small input takes little memory. */
static lam_status make_room(lam_compressor *c, size_t wanted)
{
    size_t room = c->room > 0 ? c->room : LAM_LMZ_RAW_LEAST;
    while (room < wanted)
        room *= 2;
    room = room < c->header.block ? room : c->header.block;
    if (room <= c->room)
        return LAM_OK;
    LAM_TRY(lam_budget_ask("a block to compress (--block)", 2 * room));
    uint8_t *const raw = realloc(c->raw, room);
    if (raw)
        c->raw = raw;
    uint8_t *const coded = realloc(c->coded, room);
    if (coded)
        c->coded = coded;
    if (!raw || !coded)
        return lam_fail(LAM_ERR_MEMORY, "compressor: no memory for a block of %zu bytes", room);
    c->room = room;
    return LAM_OK;
}

lam_status lam_compressor_push(lam_compressor *c, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    if (c->finished)
        return lam_fail(LAM_ERR_ARG, "the archive is finished: nothing can be added");
    while (n > 0) {
        const size_t left = c->header.block - c->used, k = n < left ? n : left;
        LAM_TRY(make_room(c, c->used + k));
        memcpy(c->raw + c->used, from, k);
        c->used += k;
        c->stats.raw += k;
        from += k;
        n -= k;
        if (c->used == c->header.block)
            LAM_TRY(write_block(c));
    }
    return LAM_OK;
}

lam_status lam_compressor_finish(lam_compressor *c)
{
    if (c->finished)
        return lam_fail(LAM_ERR_ARG, "the archive is finished already");
    if (c->used > 0)
        LAM_TRY(write_block(c));
    uint8_t *const index = malloc(1 + c->n_entries * LAM_LMZ_ENTRY + LAM_LMZ_FOOTER);
    if (!index)
        return lam_fail(LAM_ERR_MEMORY, "compressor: no memory for the index");
    const lam_status status = send(c, index, lam_lmz_put_index(index, c->entries, c->n_entries));
    free(index);
    c->finished = status == LAM_OK;
    return status;
}

lam_compressor_stats lam_compressor_stats_of(const lam_compressor *c)
{
    return c->stats;
}
