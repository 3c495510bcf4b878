/* mutate_bytes.c -- damage that knows nothing of the format: bits, lengths, ranges. */
#include "fuzz/cli/fuzz.h"

#include <string.h>

/* Where it hurts: often near the beginning, where headers are, or the end, where directories are. */
static size_t place(rng *r, size_t n)
{
    switch (rng_below(r, 4)) {
    case 0:
        return rng_below(r, n < 64 ? n : 64);
    case 1:
        return n - 1 - rng_below(r, n < 128 ? n : 128);
    default:
        return rng_below(r, n);
    }
}

static void flip(rng *r, blob *b, story *s)
{
    const size_t at = place(r, b->n), n = 1 + (rng_one_in(r, 4) ? rng_below(r, 16) : 0);
    for (size_t i = 0; i < n && at + i < b->n; i++)
        b->p[at + i] ^= (unsigned char)(1u << rng_below(r, 8));
    tell(s, "bits of %zu bytes at %zu", n, at);
}

/* A number of 1 to 8 bytes, lowest first, at the edge of some type or near what it was. */
static void set_number(rng *r, blob *b, story *s)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     2,
                                     0x7f,
                                     0x80,
                                     0xff,
                                     0x100,
                                     0x7fff,
                                     0x8000,
                                     0xffff,
                                     0x10000,
                                     0x7fffffff,
                                     0x80000000,
                                     0xfffffff0,
                                     0xffffffff,
                                     0x100000000,
                                     0x40000000,
                                     0x3fffffffffffffff,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0xfffffffffffffff8,
                                     0xffffffffffffffff,
                                     0x7fc00000,
                                     0x7f800000,
                                     0xff800000,
                                     0x7ff0000000000000,
                                     0x7ff8000000000000,
                                     0x7f7fffff};
    const size_t width = (size_t)1 << rng_below(r, 4), at = place(r, b->n);
    if (at + width > b->n)
        return;
    uint64_t value = 0;
    memcpy(&value, b->p + at, width);
    if (rng_one_in(r, 3))
        value += rng_one_in(r, 2) ? 1 + rng_below(r, 16) : (uint64_t)0 - 1 - rng_below(r, 16);
    else
        value = edges[rng_below(r, sizeof edges / sizeof *edges)];
    memcpy(b->p + at, &value, width);
    tell(s, "%zu bytes at %zu are %llx", width, at, (unsigned long long)value);
}

static void truncate_bytes(rng *r, blob *b, story *s)
{
    b->n = rng_one_in(r, 8)   ? 0
           : rng_one_in(r, 2) ? b->n - 1 - rng_below(r, b->n < 16 ? b->n : 16)
                              : place(r, b->n);
    tell(s, "cut to %zu bytes", b->n);
}

static void extend(rng *r, blob *b, story *s)
{
    static const unsigned char zeros[4096];
    const size_t n = 1 + rng_below(r, sizeof zeros);
    if (rng_one_in(r, 2)) {
        blob_replace(b, b->n, 0, zeros, n);
        tell(s, "%zu zeros at the end", n);
    } else { /* again and again, up to the most that a file may be here */
        for (int i = 0; i < 12; i++) {
            blob copy = {0};
            blob_replace(&copy, 0, 0, b->p, b->n);
            blob_replace(b, b->n, 0, copy.p, copy.n);
            blob_free(&copy);
        }
        tell(s, "repeated to %zu bytes", b->n);
    }
}

/* A range of this file or of another one, put in or over something. */
static void splice(rng *r, blob *b, const blob *other, story *s)
{
    const blob *const from = other->n > 0 && rng_one_in(r, 2) ? other : b;
    const size_t start = rng_below(r, from->n), most = from->n - start;
    const size_t n = 1 + rng_below(r, rng_one_in(r, 2) && most > 64 ? 64 : most);
    const size_t size = n < most ? n : most, at = place(r, b->n);
    blob range = {0};
    blob_replace(&range, 0, 0, from->p + start, size);
    const size_t cut = rng_one_in(r, 2) ? 0 : size < b->n - at ? size : b->n - at;
    blob_replace(b, at, cut, range.p, range.n);
    blob_free(&range);
    tell(s, "%zu bytes from %zu%s %s %zu", size, start, from == b ? "" : " of another file",
         cut > 0 ? "over" : "before", at);
}

static void remove_range(rng *r, blob *b, story *s)
{
    const size_t at = place(r, b->n), most = b->n - at;
    const size_t n = 1 + rng_below(r, rng_one_in(r, 2) && most > 16 ? 16 : most);
    blob_replace(b, at, n < most ? n : most, NULL, 0);
    tell(s, "without %zu bytes at %zu", n, at);
}

void mutate_bytes(rng *r, blob *b, const blob *other, story *s)
{
    if (b->n == 0) {
        blob_replace(b, 0, 0, other->p, other->n);
        tell(s, "as another file");
        return;
    }
    switch (rng_below(r, 8)) {
    case 0:
    case 1:
        flip(r, b, s);
        break;
    case 2:
    case 3:
        set_number(r, b, s);
        break;
    case 4:
        truncate_bytes(r, b, s);
        break;
    case 5:
        extend(r, b, s);
        break;
    case 6:
        splice(r, b, other, s);
        break;
    default:
        remove_range(r, b, s);
    }
}
