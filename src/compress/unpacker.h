/* unpacker.h -- the blocks of an archive back to bytes, one at a time: what reading a stream (decompressor.h) and
 * reading a file by its index (archive.h) share. */
#ifndef LAM_COMPRESS_UNPACKER_H
#define LAM_COMPRESS_UNPACKER_H

#include "compress/identity.h"

typedef struct lam_unpacker lam_unpacker;

/* For an archive with this header; `engine` is kept, and `dev` (NULL: the engine's).  Refuses an engine that is not the
 * model the archive was made with, or that computes other numbers than the encoder's: LAM_ERR_FORMAT. */
lam_status lam_unpacker_create(lam_unpacker **out, lam_engine *engine, const lam_lmz_header *h,
                               lam_dev *dev);
void lam_unpacker_free(lam_unpacker *u); /* NULL is fine */

/* The raw bytes of block `number` (from 0), *raw [b->raw], borrowed until the next call, from its stored ones.
 * LAM_ERR_FORMAT names the block. */
lam_status lam_unpacker_block(lam_unpacker *u, const uint8_t **raw, const lam_lmz_block *b,
                              const uint8_t *stored, uint64_t number, const lam_watch *watch);

#endif
