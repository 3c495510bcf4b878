/* instream_int.h -- declarations shared by the decompressors: a window on the compressed bytes, and one interface.
 *
 * Private to instream*.c. */
#ifndef LAM_DATA_INSTREAM_INT_H
#define LAM_DATA_INSTREAM_INT_H

#include "data/instream.h"

enum { LAM_INSTREAM_WINDOW = 1 << 17 };

typedef struct lam_unpacker {
    const char *name;
    const char *magic; /* the first bytes of such a file */
    size_t magic_size;
    lam_status (*open)(lam_instream *in, const char *entry); /* sets in->state */
    lam_status (*read)(lam_instream *in, unsigned char *buffer, size_t size, size_t *got);
    void (*close)(lam_instream *in);
} lam_unpacker;

extern const lam_unpacker lam_unpack_gzip, lam_unpack_zip, lam_unpack_xz, lam_unpack_zstd;

struct lam_instream {
    const char *path;
    int fd;
    int waits;            /* a pipe or a terminal: more bytes may arrive at any time */
    uint64_t size;        /* of the packed file; 0: unknown */
    uint64_t window_from; /* offset in the file of window[0] */
    size_t at, end;       /* unread bytes: window[at, end) */
    int at_eof;           /* the file has nothing after the window */
    const lam_unpacker *unpacker;
    void *state; /* of the unpacker, owned by it */
    unsigned char window[LAM_INSTREAM_WINDOW];
};

/* Makes sure that the window is not empty; afterwards it is empty only at the end of the file. */
lam_status lam_instream_fill(lam_instream *in);
/* The next `size` packed bytes, which must be there. */
lam_status lam_instream_take(lam_instream *in, void *out, size_t size);

/* "PATH: ends inside its NAME data at byte N", and "PATH: NAME data is corrupt at byte N: why". */
lam_status lam_instream_truncated(const lam_instream *in);
lam_status lam_instream_corrupt(const lam_instream *in, const char *why);

#endif
