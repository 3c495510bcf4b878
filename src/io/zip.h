/* zip.h -- the entries of a zip archive, as bytes in memory.
 *
 * For untrusted archives (PyTorch checkpoints are zip files): sizes and offsets are checked before use, and
 * an entry's checksum before its bytes are handed out. Stored entries are views into the mapping. Zip64 is
 * supported: torch.save writes it from 4 GB on. Refused: encryption, methods other than stored and deflate,
 * duplicate names, overlapping entries, several disks.
 *
 * Memory is bounded by the file: all entries together may inflate to LAM_ZIP_FLOOR bytes plus LAM_ZIP_RATIO
 * times the archive. Deflate can reach 1032 to 1; weights cannot. */
#ifndef LAM_IO_ZIP_H
#define LAM_IO_ZIP_H

#include "core/status.h"

#include <stddef.h>

enum { LAM_ZIP_FLOOR = 1 << 25, LAM_ZIP_RATIO = 8 };

typedef struct lam_zip lam_zip;

/* An archive in memory (kept); `label` is used in messages. */
lam_status lam_zip_parse(lam_zip **out, const char *label, const void *data, size_t size);
void lam_zip_close(lam_zip *zip); /* NULL is fine */

/* Entries are numbered in the order of their names. */
int lam_zip_count(const lam_zip *zip);
const char *lam_zip_name(const lam_zip *zip, int i);
int lam_zip_find(const lam_zip *zip, const char *name); /* -1: none */
size_t lam_zip_size(const lam_zip *zip, int i);         /* unpacked, as the directory says */

/* The bytes of entry i, unpacked and checked; valid until close. */
lam_status lam_zip_load(lam_zip *zip, int i, const void **data, size_t *size);

#endif
