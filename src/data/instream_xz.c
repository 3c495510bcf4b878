/* instream_xz.c -- xz, through liblzma.  Several streams one after the other are one text. */
#include "data/instream_int.h"

#include <lzma.h>
#include <stdlib.h>

/* xz -9 needs 65 MiB; more than this only hostile files ask for. */
static const uint64_t MEMORY_LIMIT = (uint64_t)512 << 20;

static lam_status xz_open(lam_instream *in, const char *entry)
{
    (void)entry;
    lzma_stream *z = malloc(sizeof *z);
    if (z == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory to unpack", in->path);
    *z = (lzma_stream)LZMA_STREAM_INIT;
    in->state = z;
    if (lzma_stream_decoder(z, MEMORY_LIMIT, LZMA_CONCATENATED) != LZMA_OK)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory to unpack", in->path);
    return LAM_OK;
}

static lam_status failed(const lam_instream *in, lzma_ret code)
{
    switch (code) {
    case LZMA_MEM_ERROR:
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory to unpack", in->path);
    case LZMA_MEMLIMIT_ERROR:
        return lam_fail(LAM_ERR_UNSUPPORTED, "%s: needs more than 512 MiB to unpack", in->path);
    case LZMA_OPTIONS_ERROR:
        return lam_instream_corrupt(in, "an option that liblzma does not know");
    case LZMA_FORMAT_ERROR:
        return lam_instream_corrupt(in, "not an xz stream");
    case LZMA_BUF_ERROR:
        return lam_instream_truncated(in);
    default:
        return lam_instream_corrupt(in, "the data contradicts itself");
    }
}

static lam_status xz_read(lam_instream *in, unsigned char *buffer, size_t size, size_t *got)
{
    lzma_stream *z = in->state;
    z->next_out = buffer;
    z->avail_out = size;
    while (z->avail_out == size) {
        LAM_TRY(lam_instream_fill(in));
        z->next_in = in->window + in->at;
        z->avail_in = in->end - in->at;
        const lzma_ret code = lzma_code(z, in->at == in->end ? LZMA_FINISH : LZMA_RUN);
        in->at = in->end - z->avail_in;
        if (code == LZMA_STREAM_END)
            break;
        if (code != LZMA_OK)
            return failed(in, code);
    }
    *got = size - z->avail_out;
    return LAM_OK;
}

static void xz_close(lam_instream *in)
{
    if (in->state != NULL)
        lzma_end(in->state);
    free(in->state);
}

const lam_unpacker lam_unpack_xz = {"xz", "\xfd\x37zXZ\0", 6, xz_open, xz_read, xz_close};
