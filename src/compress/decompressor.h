/* decompressor.h -- an LMZ1 archive in, in pieces of any size, and its bytes out, block by block.
 *
 * Nothing leaves before its checksum was found right.  Takes memory for one block, raw and coded, and only for as much
 * of it as has arrived. */
#ifndef LAM_COMPRESS_DECOMPRESSOR_H
#define LAM_COMPRESS_DECOMPRESSOR_H

#include "compress/compressor.h"
#include "compress/unpacker.h"

typedef struct lam_decompressor_options {
    lam_dev *dev;    /* kept; NULL: the engine's */
    lam_watch watch; /* told how much of the block is done */
    /* Called with the message for each block that is damaged; the blocks after it come out.  NULL: the first such
     * block ends the work.  Either way the last status is LAM_ERR_FORMAT. */
    void (*on_damage)(void *user, const char *message);
    void *damage_user;
} lam_decompressor_options;

typedef struct lam_decompressor lam_decompressor;

/* `engine`, `sink` and `user` are kept. */
lam_status lam_decompressor_create(lam_decompressor **out, lam_engine *engine,
                                   const lam_decompressor_options *options, lam_byte_sink *sink,
                                   void *user);
void lam_decompressor_free(lam_decompressor *d); /* NULL is fine */

/* LAM_ERR_FORMAT names the block; nothing more can be pushed then. */
lam_status lam_decompressor_push(lam_decompressor *d, const void *bytes, size_t n);
/* The archive ends here.  LAM_ERR_FORMAT where it is cut off, or where a block was damaged. */
lam_status lam_decompressor_finish(lam_decompressor *d);

uint64_t lam_decompressor_written(const lam_decompressor *d); /* bytes that came out */

#endif
