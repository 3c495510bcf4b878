/* tokens.c -- see tokens.h.
 *
 * Opening costs one page: the header carries its own checksum and the count, so that a file that was
 * cut or is something else is found at once.  The checksum over the numbers is read on request. */
#include "data/tokens.h"

#include "core/little.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { VERSION = 1, SPLIT_SIZE = 16, CHUNK = 1 << 16, VERIFIED = 1 << 24 };
static const char magic[8] = {'L', 'A', 'M', 'E', 'M', 'O', 'T', 'K'};

/* Where the fields are. */
enum {
    AT_VERSION = 8,
    AT_WIDTH = 12,
    AT_COUNT = 16,
    AT_VOCAB = 24,
    AT_CRC = 28,
    AT_SPLIT = 32,
    AT_HEADER_CRC = 60
};

static int width_for(int vocab_size)
{
    return vocab_size <= 1 << 8 ? 1 : vocab_size <= 1 << 16 ? 2 : 4;
}

static uint32_t header_crc(const unsigned char *header)
{
    return (uint32_t)crc32_z(0, header, AT_HEADER_CRC);
}

/* ---- reading ---- */

static lam_status read_header(lam_tokens *t, const char *path)
{
    const unsigned char *h = t->map.data;
    if (t->map.size < LAM_TOKENS_HEADER || memcmp(h, magic, sizeof magic) != 0)
        return lam_fail(LAM_ERR_FORMAT, "%s: not a corpus file of lamemo", path);
    if (lam_little(h + AT_VERSION, 4) != VERSION)
        return lam_fail(LAM_ERR_FORMAT, "%s: corpus file version %u, this program knows %d", path,
                        (unsigned)lam_little(h + AT_VERSION, 4), VERSION);
    if (lam_little(h + AT_HEADER_CRC, 4) != header_crc(h))
        return lam_fail(LAM_ERR_FORMAT, "%s: the header is damaged", path);

    const uint64_t count = lam_little(h + AT_COUNT, 8), vocab = lam_little(h + AT_VOCAB, 4);
    if (vocab == 0 || vocab > INT32_MAX || count > (uint64_t)1 << 48)
        return lam_fail(LAM_ERR_FORMAT, "%s: the header is damaged", path);
    t->width = (int)lam_little(h + AT_WIDTH, 4);
    t->vocab_size = (int)vocab;
    t->count = (int64_t)count;
    t->crc = (uint32_t)lam_little(h + AT_CRC, 4);
    memcpy(t->split, h + AT_SPLIT, SPLIT_SIZE - 1);
    if (t->width != width_for(t->vocab_size))
        return lam_fail(LAM_ERR_FORMAT, "%s: %d bytes a token do not fit a vocabulary of %d", path,
                        t->width, t->vocab_size);
    const uint64_t size = LAM_TOKENS_HEADER + count * (uint64_t)t->width;
    if (t->map.size != size)
        return lam_fail(LAM_ERR_FORMAT, "%s: %s: %zu bytes, not %llu", path,
                        t->map.size < size ? "truncated" : "longer than it says", t->map.size,
                        (unsigned long long)size);
    t->ids = h + LAM_TOKENS_HEADER;
    return LAM_OK;
}

lam_status lam_tokens_open(lam_tokens *out, const char *path)
{
    *out = (lam_tokens){.separator = -1};
    LAM_TRY(lam_map_open(&out->map, path));
    const lam_status status = read_header(out, path);
    if (status != LAM_OK)
        lam_tokens_close(out);
    return status;
}

void lam_tokens_close(lam_tokens *t)
{
    lam_map_close(&t->map);
    *t = (lam_tokens){0};
}

void lam_tokens_copy(const lam_tokens *t, int32_t *out, int64_t from, size_t n)
{
    assert(from >= 0 && n <= (uint64_t)(t->count - from));
    const unsigned char *p = t->ids + (size_t)from * (size_t)t->width;
    if (t->width == 1)
        for (size_t i = 0; i < n; i++)
            out[i] = p[i];
    else if (t->width == 2)
        for (size_t i = 0; i < n; i++, p += 2)
            out[i] = p[0] | p[1] << 8;
    else
        for (size_t i = 0; i < n; i++, p += 4)
            out[i] =
                (int32_t)(p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

double lam_tokens_bytes(const lam_tokens *t)
{
    enum { BLOCK = 1 << 12 };
    int32_t ids[BLOCK];
    double sum = 0;
    for (int64_t from = 0; from < t->count; from += BLOCK) {
        const int64_t left = t->count - from;
        const size_t n = (size_t)(left < BLOCK ? left : BLOCK);
        lam_tokens_copy(t, ids, from, n);
        for (size_t i = 0; i < n; i++)
            sum += t->sizes[ids[i]];
    }
    return sum;
}

void lam_tokens_weigh(lam_tokens *t, const int32_t *sizes, int64_t bytes)
{
    t->sizes = sizes;
    const double sum = bytes > 0 ? lam_tokens_bytes(t) : 0;
    t->scale = sum > 0 ? (double)bytes / sum : 1;
}

lam_status lam_tokens_verify(const lam_tokens *t, const char *path)
{
    int32_t ids[4096];
    const size_t size = (size_t)t->count * (size_t)t->width;
    uint32_t crc = 0;
    for (size_t at = 0, n; at < size; at += n) {
        LAM_TRY(lam_read_check(path));
        n = size - at < VERIFIED ? size - at : VERIFIED;
        crc = (uint32_t)crc32_z(crc, t->ids + at, n);
    }
    if (crc != t->crc)
        return lam_fail(LAM_ERR_FORMAT, "%s: the checksum of the tokens is wrong", path);
    for (int64_t at = 0; at < t->count; at += 4096) {
        const size_t n = t->count - at < 4096 ? (size_t)(t->count - at) : 4096;
        LAM_TRY(lam_read_check(path));
        lam_tokens_copy(t, ids, at, n);
        for (size_t i = 0; i < n; i++)
            if (ids[i] < 0 || ids[i] >= t->vocab_size)
                return lam_fail(LAM_ERR_FORMAT, "%s: token %lld is %d in a vocabulary of %d", path,
                                (long long)at + (long long)i, ids[i], t->vocab_size);
    }
    return LAM_OK;
}

/* ---- writing ---- */

struct lam_tokens_writer {
    lam_outfile *file;
    int width, vocab_size;
    uint64_t count;
    uint32_t crc;
    char split[SPLIT_SIZE];
    unsigned char chunk[CHUNK * 4];
};

static void make_header(unsigned char *h, const lam_tokens_writer *w)
{
    memset(h, 0, LAM_TOKENS_HEADER);
    memcpy(h, magic, sizeof magic);
    lam_put_little(h + AT_VERSION, VERSION, 4);
    lam_put_little(h + AT_WIDTH, (uint64_t)w->width, 4);
    lam_put_little(h + AT_COUNT, w->count, 8);
    lam_put_little(h + AT_VOCAB, (uint64_t)w->vocab_size, 4);
    lam_put_little(h + AT_CRC, w->crc, 4);
    memcpy(h + AT_SPLIT, w->split, SPLIT_SIZE);
    lam_put_little(h + AT_HEADER_CRC, header_crc(h), 4);
}

lam_status lam_tokens_writer_open(lam_tokens_writer **out, const char *path, const char *split,
                                  int vocab_size)
{
    const unsigned char blank[LAM_TOKENS_HEADER] = {0};
    *out = NULL;
    lam_tokens_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for a write buffer", path);
    w->vocab_size = vocab_size;
    w->width = width_for(vocab_size);
    strncpy(w->split, split, SPLIT_SIZE - 1);
    lam_status status = lam_outfile_open(&w->file, path);
    if (status == LAM_OK)
        status = lam_outfile_write(w->file, blank, sizeof blank);
    if (status != LAM_OK)
        lam_tokens_writer_abort(w);
    else
        *out = w;
    return status;
}

static lam_status put_chunk(lam_tokens_writer *w, const int32_t *ids, size_t n)
{
    unsigned char *p = w->chunk;
    for (size_t i = 0; i < n; i++) {
        assert(ids[i] >= 0 && ids[i] < w->vocab_size);
        *p++ = (unsigned char)ids[i];
        if (w->width > 1)
            *p++ = (unsigned char)(ids[i] >> 8);
        if (w->width > 2) {
            *p++ = (unsigned char)(ids[i] >> 16);
            *p++ = (unsigned char)(ids[i] >> 24);
        }
    }
    const size_t size = (size_t)(p - w->chunk);
    w->crc = (uint32_t)crc32_z(w->crc, w->chunk, size);
    w->count += n;
    return lam_outfile_write(w->file, w->chunk, size);
}

lam_status lam_tokens_writer_put(lam_tokens_writer *w, const int32_t *ids, size_t n)
{
    for (size_t at = 0; at < n; at += CHUNK)
        LAM_TRY(put_chunk(w, ids + at, n - at < CHUNK ? n - at : CHUNK));
    return LAM_OK;
}

lam_status lam_tokens_writer_finish(lam_tokens_writer *w)
{
    unsigned char header[LAM_TOKENS_HEADER];
    make_header(header, w);
    lam_status status = lam_outfile_patch(w->file, 0, header, sizeof header);
    if (status == LAM_OK) {
        status = lam_outfile_finish(w->file);
        w->file = NULL;
    }
    lam_tokens_writer_abort(w);
    return status;
}

void lam_tokens_writer_abort(lam_tokens_writer *w)
{
    if (w == NULL)
        return;
    lam_outfile_abort(w->file);
    free(w);
}
