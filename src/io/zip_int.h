/* zip_int.h -- internals of an open archive, shared by zip.c (data) and zip_directory.c (offsets). */
#ifndef LAM_IO_ZIP_INT_H
#define LAM_IO_ZIP_INT_H

#include "io/zip.h"

#include <stdint.h>

enum { LAM_ZIP_STORED = 0, LAM_ZIP_DEFLATED = 8 }; /* methods */

typedef struct lam_zip_entry {
    char *name;
    uint64_t place; /* of its local header, not checked yet */
    size_t size, packed;
    int method;
    uint32_t crc;
    const void *data; /* once loaded */
    void *unpacked;   /* owned; NULL for stored ones */
} lam_zip_entry;

struct lam_zip {
    char *label;
    const unsigned char *data;
    size_t size;
    lam_zip_entry *entries; /* sorted by name */
    int count;
    size_t inflated; /* bytes of all that was unpacked so far */
};

/* Fills entries and count; after a failure lam_zip_close() frees them. */
lam_status lam_zip_read_directory(lam_zip *zip);

#endif
