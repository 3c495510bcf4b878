/* toy_archive.h -- an exact engine of a small model of bytes, archives in memory, and texts to put into them. */
#ifndef TEST_TOY_ARCHIVE_H
#define TEST_TOY_ARCHIVE_H

#include "compress/compressor.h"

/* Bytes that grow; begin with zeros, free v. */
typedef struct toy_bytes {
    uint8_t *v;
    size_t n, room;
} toy_bytes;

lam_status toy_bytes_sink(void *user, const void *bytes, size_t n); /* a lam_byte_sink */

/* Saves the small model (toy_folder.h) as `dir` and opens it on `device` with `threads` threads. */
lam_engine *toy_engine(const char *dir, const char *device, int threads);
void toy_engine_close(lam_engine *e); /* the device, too */

/* Something between a text and noise: a part of it repeats. */
void toy_text(uint8_t *text, size_t n);

/* The archive of a text; a failure ends the test. */
toy_bytes toy_pack(lam_engine *e, const uint8_t *text, size_t n, const lam_compressor_options *o);

#endif
