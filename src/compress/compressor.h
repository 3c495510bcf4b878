/* compressor.h -- bytes in, an LMZ1 archive out, block by block.
 *
 * Takes memory for one block, raw and coded, whatever the size of the input. */
#ifndef LAM_COMPRESS_COMPRESSOR_H
#define LAM_COMPRESS_COMPRESSOR_H

#include "compress/identity.h"

/* Gets the bytes of a result in order; borrowed.  A status of its other than LAM_OK ends the work. */
typedef lam_status lam_byte_sink(void *user, const void *bytes, size_t n);

typedef struct lam_compressor_options {
    int streams;  /* 0: LAM_STREAMS_USUAL */
    size_t block; /* 0: LAM_BLOCK_USUAL */
    lam_adapt adapt;
    lam_dev *dev;    /* kept; NULL: the engine's */
    lam_watch watch; /* told how much of the block is done */
} lam_compressor_options;

enum { LAM_STREAMS_USUAL = 16, LAM_BLOCK_USUAL = 8 << 20 };

typedef struct lam_compressor lam_compressor;

/* `engine` is kept, and so are `sink` and `user`.  The header is written at once. */
lam_status lam_compressor_create(lam_compressor **out, lam_engine *engine,
                                 const lam_compressor_options *options, lam_byte_sink *sink,
                                 void *user);
void lam_compressor_free(
    lam_compressor *c); /* NULL is fine; without finish the archive is incomplete */

lam_status lam_compressor_push(lam_compressor *c, const void *bytes, size_t n);
/* The last block and the index.  Nothing can be pushed afterwards. */
lam_status lam_compressor_finish(lam_compressor *c);

/* What happened so far. */
typedef struct lam_compressor_stats {
    uint64_t raw, written;   /* bytes */
    uint64_t blocks, stored; /* blocks; those of them that were not made smaller */
    uint64_t model;          /* bytes of the model's files */
} lam_compressor_stats;
lam_compressor_stats lam_compressor_stats_of(const lam_compressor *c);

#endif
