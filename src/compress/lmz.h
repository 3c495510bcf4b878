/* lmz.h -- the bytes of an LMZ1 archive: header, block headers, index (docs/formats.md).
 *
 * Reading checks everything that does not need the model: magic, version, limits, checksums.  Whatever the bytes are,
 * the result is a struct within the limits below or LAM_ERR_FORMAT. */
#ifndef LAM_COMPRESS_LMZ_H
#define LAM_COMPRESS_LMZ_H

#include "compress/codec.h"

enum {
    LAM_LMZ_NAME = 64, /* bytes of a model's name, at most */
    LAM_LMZ_HEAD = 64, /* bytes of a header before the name; 4 follow it */
    LAM_LMZ_HEADER = LAM_LMZ_HEAD + LAM_LMZ_NAME + 4, /* at most */
    LAM_LMZ_BLOCK = 21,                               /* of a block's header */
    LAM_LMZ_ENTRY = 8,                                /* of the index, for each block */
    LAM_LMZ_FOOTER = 20,
    LAM_LMZ_RAW_LEAST = 1 << 12, /* bytes of a block, but for the last */
    LAM_LMZ_RAW_MOST = 1 << 30
};

typedef struct lam_lmz_header {
    lam_adapt adapt;
    int streams, segment, memory;
    uint32_t block;       /* raw bytes of a block, but for the last */
    uint64_t fingerprint; /* lam_codec_fingerprint() */
    uint8_t model[32];    /* SHA-256 of its files (identity.h) */
    char name[LAM_LMZ_NAME + 1];
} lam_lmz_header;

typedef enum lam_lmz_kind { LAM_LMZ_END, LAM_LMZ_CODED, LAM_LMZ_STORED } lam_lmz_kind;

typedef struct lam_lmz_block {
    lam_lmz_kind kind;
    uint32_t raw, stored; /* bytes before and after */
    uint64_t sum;         /* XXH64 of the raw bytes */
} lam_lmz_block;

typedef struct lam_lmz_entry {
    uint32_t raw, stored;
} lam_lmz_entry;

/* Each writes into `out` and returns how many bytes. */
size_t lam_lmz_put_header(uint8_t out[LAM_LMZ_HEADER], const lam_lmz_header *h);
size_t lam_lmz_put_block(uint8_t out[LAM_LMZ_BLOCK], const lam_lmz_block *b, uint64_t number);
/* The mark that no block follows, an entry for each block, and the footer: 1 + n * LAM_LMZ_ENTRY + LAM_LMZ_FOOTER
 * bytes. */
size_t lam_lmz_put_index(uint8_t *out, const lam_lmz_entry *entries, size_t n);

/* Bytes that the header has, from its first LAM_LMZ_HEAD ones. */
lam_status lam_lmz_header_size(size_t *size, const uint8_t head[LAM_LMZ_HEAD]);
lam_status lam_lmz_get_header(lam_lmz_header *h, const uint8_t *bytes, size_t size);
/* `number` counts from 0; messages count from 1.  The size of a block is compared with the header's. */
lam_status lam_lmz_get_block(lam_lmz_block *b, const uint8_t bytes[LAM_LMZ_BLOCK],
                             const lam_lmz_header *h, uint64_t number);
/* How many blocks there are, and bytes before compression, by the last LAM_LMZ_FOOTER bytes. */
lam_status lam_lmz_get_footer(uint32_t *blocks, uint64_t *raw,
                              const uint8_t footer[LAM_LMZ_FOOTER]);
/* entries [n] of an index as it was written, `size` bytes. */
lam_status lam_lmz_get_index(lam_lmz_entry *entries, size_t n, const uint8_t *bytes, size_t size,
                             const lam_lmz_header *h);

#endif
