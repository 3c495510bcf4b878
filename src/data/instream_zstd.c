/* instream_zstd.c -- Zstandard.  Several frames one after the other are one text; windows above
 * 128 MiB (zstd --long) are refused by the library's own limit. */
#include "data/instream_int.h"

#include <stdlib.h>
#include <zstd.h>

typedef struct zstd {
    ZSTD_DStream *z;
    size_t hint; /* 0: at the end of a frame */
} zstd;

static lam_status zstd_open(lam_instream *in, const char *entry)
{
    (void)entry;
    zstd *f = calloc(1, sizeof *f);
    in->state = f;
    if (f == NULL || (f->z = ZSTD_createDStream()) == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory to unpack", in->path);
    f->hint = 1;
    return LAM_OK;
}

static lam_status zstd_read(lam_instream *in, unsigned char *buffer, size_t size, size_t *got)
{
    zstd *f = in->state;
    ZSTD_outBuffer out = {buffer, size, 0};
    while (out.pos == 0) {
        LAM_TRY(lam_instream_fill(in));
        const int at_end = in->at == in->end;
        if (at_end && f->hint == 0)
            break;
        ZSTD_inBuffer from = {in->window, in->end, in->at};
        const size_t code = ZSTD_decompressStream(f->z, &out, &from);
        in->at = from.pos;
        if (ZSTD_isError(code))
            return lam_instream_corrupt(in, ZSTD_getErrorName(code));
        f->hint = code;
        if (at_end && out.pos == 0)
            return lam_instream_truncated(in);
    }
    *got = out.pos;
    return LAM_OK;
}

static void zstd_close(lam_instream *in)
{
    zstd *f = in->state;
    if (f != NULL)
        ZSTD_freeDStream(f->z);
    free(f);
}

const lam_unpacker lam_unpack_zstd = {"zstd",    "\x28\xb5\x2f\xfd", 4,
                                      zstd_open, zstd_read,          zstd_close};
