/* lmz.c -- see lmz.h. */
#include "compress/lmz.h"

#include "core/little.h"

#include <limits.h>
#include <string.h>
#include <xxhash.h>

static const char MAGIC[4] = "LMZ1", END_MAGIC[4] = "LMZE";
enum { VERSION = 1, XXH64_SUMS = 1, LEN_MOST = 1 << 24 };

static uint32_t check_of(const uint8_t *bytes, size_t n, uint64_t seed)
{
    return (uint32_t)XXH64(bytes, n, seed);
}

/* ---- header ---- */

size_t lam_lmz_put_header(uint8_t out[LAM_LMZ_HEADER], const lam_lmz_header *h)
{
    const size_t name = strlen(h->name);
    uint8_t *p = out;
    memcpy(p, MAGIC, 4);
    p = lam_put_little(p + 4, VERSION, 1);
    p = lam_put_little(p, (uint64_t)h->adapt, 1);
    p = lam_put_little(p, XXH64_SUMS, 1);
    p = lam_put_little(p, name, 1);
    p = lam_put_little(p, (uint64_t)h->streams, 4);
    p = lam_put_little(p, (uint64_t)h->segment, 4);
    p = lam_put_little(p, (uint64_t)h->memory, 4);
    p = lam_put_little(p, h->block, 4);
    p = lam_put_little(p, h->fingerprint, 8);
    memcpy(p, h->model, 32);
    memcpy(p + 32, h->name, name);
    p += 32 + name;
    p = lam_put_little(p, check_of(out, (size_t)(p - out), 0), 4);
    return (size_t)(p - out);
}

lam_status lam_lmz_header_size(size_t *size, const uint8_t head[LAM_LMZ_HEAD])
{
    *size = 0;
    if (memcmp(head, MAGIC, 4) != 0)
        return lam_fail(LAM_ERR_FORMAT, "not an LMZ1 archive");
    if (head[4] != VERSION)
        return lam_fail(LAM_ERR_UNSUPPORTED, "LMZ1 version %d, this program reads version %d",
                        head[4], VERSION);
    if (head[7] > LAM_LMZ_NAME)
        return lam_fail(LAM_ERR_FORMAT, "header: damaged: a name of %d bytes", head[7]);
    *size = (size_t)LAM_LMZ_HEAD + head[7] + 4;
    return LAM_OK;
}

static lam_status check_header(const lam_lmz_header *h, int sums)
{
    if (h->adapt >= LAM_ADAPTS || sums != XXH64_SUMS)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "header: adaptation %d and checksum %d, this program knows 0 to %d and %d",
                        (int)h->adapt, sums, LAM_ADAPTS - 1, XXH64_SUMS);
    if (h->streams < 1 || h->streams > LAM_STREAMS_MOST || h->segment < 1 ||
        h->segment > LEN_MOST || h->memory < 0 || h->memory > LEN_MOST ||
        h->block < LAM_LMZ_RAW_LEAST || h->block > LAM_LMZ_RAW_MOST)
        return lam_fail(
            LAM_ERR_FORMAT,
            "header: %d streams, segment %d, memory %d or blocks of %u bytes are out of "
            "range",
            h->streams, h->segment, h->memory, (unsigned)h->block);
    for (const char *p = h->name; *p; p++)
        if (*p <= ' ' || *p == '/' || *p > '~')
            return lam_fail(LAM_ERR_FORMAT, "header: the name of the model is none");
    return LAM_OK;
}

lam_status lam_lmz_get_header(lam_lmz_header *h, const uint8_t *bytes, size_t size)
{
    size_t wanted;
    *h = (lam_lmz_header){0};
    if (size < LAM_LMZ_HEAD)
        return lam_fail(LAM_ERR_FORMAT, size >= 4 && memcmp(bytes, MAGIC, 4) == 0
                                            ? "the archive ends in its header"
                                            : "not an LMZ1 archive");
    LAM_TRY(lam_lmz_header_size(&wanted, bytes));
    if (size < wanted)
        return lam_fail(LAM_ERR_FORMAT, "the archive ends in its header");
    const size_t body = wanted - 4;
    if (check_of(bytes, body, 0) != lam_little(bytes + body, 4))
        return lam_fail(LAM_ERR_FORMAT, "header: damaged: its checksum does not fit");
    for (int at = 8; at < 24; at += 4)
        if (lam_little(bytes + at, 4) > INT_MAX)
            return lam_fail(LAM_ERR_FORMAT, "header: a number is out of range");
    h->adapt = (lam_adapt)bytes[5];
    h->streams = (int)lam_little(bytes + 8, 4);
    h->segment = (int)lam_little(bytes + 12, 4);
    h->memory = (int)lam_little(bytes + 16, 4);
    h->block = (uint32_t)lam_little(bytes + 20, 4);
    h->fingerprint = lam_little(bytes + 24, 8);
    memcpy(h->model, bytes + 32, 32);
    memcpy(h->name, bytes + LAM_LMZ_HEAD, bytes[7]);
    return check_header(h, bytes[6]);
}

/* ---- blocks ---- */

/* The number is part of the checksum: a block in another place is noticed. */
size_t lam_lmz_put_block(uint8_t out[LAM_LMZ_BLOCK], const lam_lmz_block *b, uint64_t number)
{
    uint8_t *p = lam_put_little(out, (uint64_t)b->kind, 1);
    p = lam_put_little(p, b->raw, 4);
    p = lam_put_little(p, b->stored, 4);
    p = lam_put_little(p, b->sum, 8);
    p = lam_put_little(p, check_of(out, (size_t)(p - out), number + 1), 4);
    return (size_t)(p - out);
}

static lam_status check_sizes(uint32_t raw, uint32_t stored, const lam_lmz_header *h,
                              uint64_t number)
{
    if (raw >= 1 && raw <= h->block && stored <= raw)
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT, "block %llu: %u bytes as %u are out of range",
                    (unsigned long long)number + 1, (unsigned)raw, (unsigned)stored);
}

lam_status lam_lmz_get_block(lam_lmz_block *b, const uint8_t bytes[LAM_LMZ_BLOCK],
                             const lam_lmz_header *h, uint64_t number)
{
    const int body = LAM_LMZ_BLOCK - 4;
    *b = (lam_lmz_block){.kind = (lam_lmz_kind)bytes[0],
                         .raw = (uint32_t)lam_little(bytes + 1, 4),
                         .stored = (uint32_t)lam_little(bytes + 5, 4),
                         .sum = lam_little(bytes + 9, 8)};
    if (check_of(bytes, (size_t)body, number + 1) != lam_little(bytes + body, 4))
        return lam_fail(LAM_ERR_FORMAT,
                        "block %llu: damaged: the checksum of its header does not fit",
                        (unsigned long long)number + 1);
    LAM_TRY(check_sizes(b->raw, b->stored, h, number));
    if (b->kind == LAM_LMZ_CODED || (b->kind == LAM_LMZ_STORED && b->stored == b->raw))
        return LAM_OK;
    return lam_fail(LAM_ERR_FORMAT, "block %llu: kind %d is unknown",
                    (unsigned long long)number + 1, (int)b->kind);
}

/* ---- index ---- */

size_t lam_lmz_put_index(uint8_t *out, const lam_lmz_entry *entries, size_t n)
{
    uint64_t raw = 0;
    uint8_t *p = lam_put_little(out, LAM_LMZ_END, 1);
    for (size_t i = 0; i < n; i++) {
        p = lam_put_little(p, entries[i].raw, 4);
        p = lam_put_little(p, entries[i].stored, 4);
        raw += entries[i].raw;
    }
    p = lam_put_little(p, raw, 8);
    p = lam_put_little(p, n, 4);
    p = lam_put_little(p, check_of(out, (size_t)(p - out), 0), 4);
    memcpy(p, END_MAGIC, 4);
    return (size_t)(p + 4 - out);
}

lam_status lam_lmz_get_footer(uint32_t *blocks, uint64_t *raw, const uint8_t footer[LAM_LMZ_FOOTER])
{
    *raw = lam_little(footer, 8);
    *blocks = (uint32_t)lam_little(footer + 8, 4);
    return memcmp(footer + 16, END_MAGIC, 4) == 0
               ? LAM_OK
               : lam_fail(LAM_ERR_FORMAT, "index: damaged, or the archive is cut off");
}

lam_status lam_lmz_get_index(lam_lmz_entry *entries, size_t n, const uint8_t *bytes, size_t size,
                             const lam_lmz_header *h)
{
    uint32_t blocks;
    uint64_t raw, sum = 0;
    if (size != 1 + n * LAM_LMZ_ENTRY + LAM_LMZ_FOOTER)
        return lam_fail(LAM_ERR_FORMAT, "index: damaged: %zu bytes for %zu blocks", size, n);
    LAM_TRY(lam_lmz_get_footer(&blocks, &raw, bytes + size - LAM_LMZ_FOOTER));
    if (bytes[0] != LAM_LMZ_END || blocks != n ||
        check_of(bytes, size - 8, 0) != lam_little(bytes + size - 8, 4))
        return lam_fail(LAM_ERR_FORMAT, "index: damaged: its checksum does not fit");
    for (size_t i = 0; i < n; i++) {
        entries[i].raw = (uint32_t)lam_little(bytes + 1 + i * LAM_LMZ_ENTRY, 4);
        entries[i].stored = (uint32_t)lam_little(bytes + 5 + i * LAM_LMZ_ENTRY, 4);
        LAM_TRY(check_sizes(entries[i].raw, entries[i].stored, h, i));
        sum += entries[i].raw;
    }
    return sum == raw ? LAM_OK
                      : lam_fail(LAM_ERR_FORMAT, "index: damaged: blocks of %llu bytes, not %llu",
                                 (unsigned long long)sum, (unsigned long long)raw);
}
