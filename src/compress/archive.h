/* archive.h -- an archive as a file that can be read anywhere: what is in it, one block, a range of bytes.
 *
 * Blocks are found by the index.  Where that is damaged or cut off they are found by walking from one block header to
 * the next, as far as these are intact. */
#ifndef LAM_COMPRESS_ARCHIVE_H
#define LAM_COMPRESS_ARCHIVE_H

#include "compress/compressor.h"
#include "compress/unpacker.h"

typedef struct lam_archive_block {
    uint64_t at;          /* of its header in the file */
    uint64_t first;       /* raw bytes before it */
    uint32_t raw, stored; /* bytes */
} lam_archive_block;

typedef struct lam_archive {
    int fd;        /* borrowed */
    uint64_t size; /* of the file */
    lam_lmz_header header;
    lam_archive_block *blocks; /* [n] */
    size_t n;
    uint64_t raw;      /* bytes of all blocks */
    int complete;      /* the index is there and right */
    char trouble[256]; /* what is wrong with it, if it is not */
} lam_archive;

/* Reads header and index of a regular file.  LAM_ERR_FORMAT where the header is damaged; what is wrong with the index
 * is only told. */
lam_status lam_archive_open(lam_archive *a, int fd);
void lam_archive_close(lam_archive *a); /* the file stays open */

/* The header of block i, and its stored bytes in *stored (the caller's, free), which may be NULL.  LAM_ERR_FORMAT names
 * the block. */
lam_status lam_archive_read(const lam_archive *a, size_t i, lam_lmz_block *b, uint8_t **stored);

/* Sends raw bytes from .. from + n - 1, which must be there, to `sink`: only blocks that have some of them are decoded.
 * on_damage as in decompressor.h; what damaged blocks held is left out. */
typedef struct lam_archive_range {
    uint64_t from, n;
    const lam_watch *watch;
    void (*on_damage)(void *user, const char *message);
    void *damage_user;
} lam_archive_range;
lam_status lam_archive_extract(const lam_archive *a, lam_unpacker *u,
                               const lam_archive_range *range, lam_byte_sink *sink, void *user);

#endif
