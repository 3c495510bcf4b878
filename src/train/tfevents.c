/* tfevents.c -- see tfevents.h.
 *
 *   Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
 *             SourceMetadata source_metadata = 10; }      SourceMetadata { string writer = 1; }
 *   Summary { repeated Value value = 1; }      Value { string tag = 1; float simple_value = 2; }
 * A field is its number and wire type in one byte (0: varint, 1: 8 bytes, 2: length and bytes,
 * 5: 4 bytes), then its content. */
#include "train/tfevents.h"

#include "core/little.h"

#include <assert.h>
#include <string.h>

enum { HEAD = 12, TAIL = 4 }; /* bytes of a frame around its data */

static const char VERSION[] = "brain.Event:2", WRITER[] = "lamemo";

uint32_t lam_crc32c(const void *data, size_t size)
{
    const unsigned char *p = data;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) /* a few dozen bytes a step: no table needed */
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0u);
    }
    return ~crc;
}

uint32_t lam_crc32c_masked(const void *data, size_t size)
{
    const uint32_t crc = lam_crc32c(data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static unsigned char *put_varint(unsigned char *at, uint64_t value)
{
    for (; value > 127; value >>= 7)
        *at++ = (unsigned char)(value | 128);
    *at++ = (unsigned char)value;
    return at;
}

static unsigned char *put_bytes(unsigned char *at, int field, const void *data, size_t size)
{
    *at++ = (unsigned char)(field << 3 | 2);
    at = put_varint(at, size);
    memcpy(at, data, size);
    return at + size;
}

static unsigned char *put_wall(unsigned char *at, double wall)
{
    uint64_t bits;
    memcpy(&bits, &wall, sizeof bits);
    *at++ = 1 << 3 | 1;
    return lam_put_little(at, bits, 8);
}

/* Closes the frame around the data at out + HEAD. */
static size_t frame(unsigned char *out, const unsigned char *end)
{
    const size_t size = (size_t)(end - (out + HEAD));
    lam_put_little(out, size, 8);
    lam_put_little(out + 8, lam_crc32c_masked(out, 8), 4);
    lam_put_little(out + HEAD + size, lam_crc32c_masked(out + HEAD, size), 4);
    return HEAD + size + TAIL;
}

size_t lam_tfevent_version(unsigned char out[LAM_TFEVENT_MAX], double wall)
{
    unsigned char source[32], *at = put_wall(out + HEAD, wall);
    const unsigned char *const end = put_bytes(source, 1, WRITER, strlen(WRITER));
    at = put_bytes(at, 3, VERSION, strlen(VERSION));
    return frame(out, put_bytes(at, 10, source, (size_t)(end - source)));
}

enum { WALL = 9, FIELD = 2 }; /* bytes of the time, and before a text */

int lam_tfevent_begins(const void *data, size_t size)
{
    const char *const version = (const char *)data + HEAD + WALL + FIELD;
    return size >= HEAD + WALL + FIELD + sizeof VERSION - 1 &&
           memcmp(version, VERSION, sizeof VERSION - 1) == 0;
}

int lam_tfevent_ours(const void *data, size_t size)
{
    static const char *const tags[] = {"speed/gflops", "valid/bpc", "valid/ppl"};
    const size_t plain = HEAD + WALL + FIELD + sizeof VERSION - 1 + TAIL; /* without a writer */
    if (!lam_tfevent_begins(data, size))
        return 0;
    const unsigned char *const first = data; /* a frame begins with its length, ours is short */
    if (size <= plain || (size >= (size_t)HEAD + first[0] &&
                          memmem(first + HEAD, first[0], WRITER, sizeof WRITER - 1)))
        return 1; /* nothing is lost with an empty one */
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (memmem(data, size, tags[i], strlen(tags[i])))
            return 1;
    return 0;
}

size_t lam_tfevent_scalar(unsigned char out[LAM_TFEVENT_MAX], double wall, int64_t step,
                          const char *tag, double value)
{
    unsigned char item[LAM_TFEVENT_TAG + 16], summary[LAM_TFEVENT_TAG + 32];
    const float narrow = (float)value;
    uint32_t bits;
    assert(strlen(tag) <= LAM_TFEVENT_TAG);
    memcpy(&bits, &narrow, sizeof bits);

    unsigned char *at = put_bytes(item, 1, tag, strlen(tag));
    *at++ = 2 << 3 | 5;
    at = lam_put_little(at, bits, 4);
    const unsigned char *const end = put_bytes(summary, 1, item, (size_t)(at - item));

    at = put_wall(out + HEAD, wall);
    *at++ = 2 << 3 | 0;
    at = put_varint(at, (uint64_t)step);
    return frame(out, put_bytes(at, 5, summary, (size_t)(end - summary)));
}
