/* instream.h -- bytes of a text, however it is packed: plain, gzip, zip, xz, zstd, a pipe.
 *
 * The packing is recognised by its first bytes, not by the name.  Everything streams: memory does
 * not grow with the input.  Truncated or corrupt input is an error that names the file and the byte
 * offset in it; nothing is guessed or skipped.  That is why libarchive does not do this: 3.6.2 reads a gzip file with a
 * wrong CRC, or with garbage behind it, without an error. */
#ifndef LAM_DATA_INSTREAM_H
#define LAM_DATA_INSTREAM_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct lam_instream lam_instream;

/* Opens `path` ("-" is standard input).  In a zip archive, `entry` names the file to read: its whole
 * name, or the part after the last '/'; NULL is the first file.  For other packings `entry` must be
 * NULL. */
lam_status lam_instream_open(lam_instream **out, const char *path, const char *entry);
void lam_instream_close(lam_instream *in); /* NULL is fine */

/* Reads up to `size` unpacked bytes; *got is 0 only at the end. */
lam_status lam_instream_read(lam_instream *in, void *buffer, size_t size, size_t *got);

/* Of a zip archive: the file that is being read, and the next one, whose reading begins (NULL: there is none).  NULL for
 * all else. */
const char *lam_instream_entry(const lam_instream *in);
lam_status lam_instream_next(lam_instream *in, const char **name);

/* All of `path`, unpacked, with a NUL after it; *out is owned by the caller (free).  LAM_ERR_FORMAT: more than `limit`
 * bytes, or more than LAM_INSTREAM_PACKED bytes and LAM_INSTREAM_TIMES for each packed one. */
enum { LAM_INSTREAM_PACKED = 48 << 20, LAM_INSTREAM_TIMES = 8 };
lam_status lam_instream_load(char **out, size_t *size, const char *path, size_t limit);

const char *lam_instream_format(const lam_instream *in); /* "plain", "gzip", "zip", "xz", "zstd" */
/* How far we are in the packed file, for progress; the size is 0 when it is unknown (a pipe). */
uint64_t lam_instream_offset(const lam_instream *in);
uint64_t lam_instream_size(const lam_instream *in);

#endif
