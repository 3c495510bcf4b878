/* unpacker.c -- see unpacker.h. */
#include "compress/unpacker.h"

#include "core/budget.h"

#include <stdlib.h>
#include <xxhash.h>

struct lam_unpacker {
    lam_codec *codec;
    uint8_t *raw; /* [room] */
    size_t room;
};

static lam_status build(lam_unpacker *u, lam_engine *engine, const lam_lmz_header *h, lam_dev *dev)
{
    lam_identity mine;
    uint64_t fingerprint;
    LAM_TRY(lam_identity_of(&mine, engine));
    LAM_TRY(lam_identity_compare(&mine, h));
    LAM_TRY(lam_codec_create(&u->codec, engine,
                             &(lam_codec_options){.streams = h->streams,
                                                  .segment = h->segment,
                                                  .memory = h->memory,
                                                  .adapt = h->adapt,
                                                  .dev = dev}));
    LAM_TRY(lam_codec_fingerprint(u->codec, &fingerprint));
    if (fingerprint == h->fingerprint)
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT,
                    "the model computes other numbers here than where the archive was made "
                    "(%016llx, not %016llx): this program or its version differs",
                    (unsigned long long)fingerprint, (unsigned long long)h->fingerprint);
}

lam_status lam_unpacker_create(lam_unpacker **out, lam_engine *engine, const lam_lmz_header *h,
                               lam_dev *dev)
{
    *out = NULL;
    lam_unpacker *const u = calloc(1, sizeof *u);
    if (!u)
        return lam_fail(LAM_ERR_MEMORY, "unpacker: no memory");
    const lam_status status = build(u, engine, h, dev);
    if (status != LAM_OK) {
        lam_unpacker_free(u);
        return status;
    }
    *out = u;
    return LAM_OK;
}

void lam_unpacker_free(lam_unpacker *u)
{
    if (!u)
        return;
    lam_codec_free(u->codec);
    free(u->raw);
    free(u);
}

static lam_status make_room(lam_unpacker *u, size_t n)
{
    if (n <= u->room)
        return LAM_OK;
    LAM_TRY(lam_budget_ask("a block to decompress", n));
    free(u->raw);
    u->room = 0;
    u->raw = malloc(n);
    if (!u->raw)
        return lam_fail(LAM_ERR_MEMORY, "unpacker: no memory for a block of %zu bytes", n);
    u->room = n;
    return LAM_OK;
}

lam_status lam_unpacker_block(lam_unpacker *u, const uint8_t **raw, const lam_lmz_block *b,
                              const uint8_t *stored, uint64_t number, const lam_watch *watch)
{
    const unsigned long long shown = (unsigned long long)number + 1;
    *raw = NULL;
    if (b->kind == LAM_LMZ_STORED) {
        *raw = stored;
    } else {
        LAM_TRY(make_room(u, b->raw));
        const lam_status status =
            lam_codec_decode(u->codec, u->raw, b->raw, stored, b->stored, watch);
        if (status == LAM_ERR_FORMAT)
            return lam_fail(status, "block %llu: damaged: %s", shown, lam_error());
        LAM_TRY(status);
        *raw = u->raw;
    }
    const uint64_t sum = XXH64(*raw, b->raw, 0);
    if (sum == b->sum)
        return LAM_OK;
    *raw = NULL;
    return lam_fail(
        LAM_ERR_FORMAT,
        "block %llu: damaged: the checksum of its bytes is %016llx, written was %016llx", shown,
        (unsigned long long)sum, (unsigned long long)b->sum);
}
