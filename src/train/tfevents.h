/* tfevents.h -- TensorBoard's event records, as bytes.
 *
 * A file is a row of frames: length (8 bytes, lowest first), its checksum, the data, its checksum;
 * the data is a protocol-buffer message Event.  Only what scalars need is written.  The first frame of
 * a file must be the version. */
#ifndef LAM_TRAIN_TFEVENTS_H
#define LAM_TRAIN_TFEVENTS_H

#include <stddef.h>
#include <stdint.h>

enum { LAM_TFEVENT_MAX = 256, LAM_TFEVENT_TAG = 128 }; /* bytes of a frame; longest tag */

/* Both write one frame into out and return its size.  `wall` is in seconds since 1970.  The version names us as its
 * writer, which tells our files from those of others. */
size_t lam_tfevent_version(unsigned char out[LAM_TFEVENT_MAX], double wall);
size_t lam_tfevent_scalar(unsigned char out[LAM_TFEVENT_MAX], double wall, int64_t step,
                          const char *tag, double value);

/* Is it the beginning of such a file?  Of one of ours?  `data` holds its first LAM_TFEVENT_HEAD bytes, or all of it.  Files
 * of older versions name no writer: one of our tags does. */
enum { LAM_TFEVENT_HEAD = 1 << 16 };
int lam_tfevent_begins(const void *data, size_t size);
int lam_tfevent_ours(const void *data, size_t size);

/* CRC-32C (Castagnoli), as it comes and as the frames carry it. */
uint32_t lam_crc32c(const void *data, size_t size);
uint32_t lam_crc32c_masked(const void *data, size_t size);

#endif
