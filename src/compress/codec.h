/* codec.h -- a block of bytes to coded bytes and back, by a model.
 *
 * A block is cut into streams of equal length (to a byte) that the model reads side by side, each from an empty
 * past and the start token.  Step by step, the next symbol of every stream in turn is coded with the frequencies the
 * model gives it, all by one range coder.  Encoding lets the model read many steps at once, decoding one by one; that
 * both see the same logits is what exact arithmetic is for (ops/exact.h). */
#ifndef LAM_COMPRESS_CODEC_H
#define LAM_COMPRESS_CODEC_H

#include "core/watch.h"
#include "infer/engine.h"

#include <stddef.h>
#include <stdint.h>

typedef enum lam_adapt { LAM_ADAPT_NONE, LAM_ADAPT_MIX, LAM_ADAPTS } lam_adapt;
extern const char *const lam_adapt_names[]; /* of each; ends with NULL */

enum {
    LAM_STREAMS_MOST = 1024,
    LAM_STREAM_LEAST = 4096 /* bytes: a block has no more streams than such pieces */
};

typedef struct lam_codec_options {
    int streams, segment, memory; /* of a block; tokens */
    lam_adapt adapt;
    lam_dev *dev; /* kept; NULL: the engine's */
} lam_codec_options;

typedef struct lam_codec lam_codec;

/* `engine` is kept.  LAM_ERR_UNSUPPORTED where its vocabulary cannot code all bytes. */
lam_status lam_codec_create(lam_codec **out, lam_engine *engine, const lam_codec_options *options);
void lam_codec_free(lam_codec *c); /* NULL is fine */

/* Codes raw [n], n > 0, into coded [room]; *size is 0 where that does not fit or is not going to. */
lam_status lam_codec_encode(lam_codec *c, uint8_t *coded, size_t room, size_t *size,
                            const uint8_t *raw, size_t n, const lam_watch *watch);
/* The other way: raw [n] from coded [size].  LAM_ERR_FORMAT: this was never encoded; but not all damage is noticed. */
lam_status lam_codec_decode(lam_codec *c, uint8_t *raw, size_t n, const uint8_t *coded, size_t size,
                            const lam_watch *watch);

/* A hash of what the model says to 64 fixed tokens, over the end of segments: whoever decodes with other numbers than
 * the encoder sees it here. */
lam_status lam_codec_fingerprint(lam_codec *c, uint64_t *hash);

/* Streams that a block of n bytes is cut into, and where each of them begins (the n-th: where the block ends). */
int lam_codec_streams(int streams, size_t n);
size_t lam_codec_cut(size_t n, int streams, int i);

#endif
