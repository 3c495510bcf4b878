/* range_coder.c -- see range_coder.h.
 *
 * `low` is the lower end of the interval, modulo 2^64; what left it at the top is in `bytes`.  An addition that
 * overflows adds one to those bytes (a carry), which are all still here. */
#include "compress/range_coder.h"

static const uint64_t LEAST = UINT64_C(1) << 56;

void lam_range_start(lam_range_encoder *e, uint8_t *bytes, size_t room)
{
    *e = (lam_range_encoder){.bytes = bytes, .room = room, .range = UINT64_MAX};
}

static void carry(lam_range_encoder *e)
{
    size_t i = e->n;
    while (i > 0 && ++e->bytes[i - 1] == 0)
        i--;
}

static void add(lam_range_encoder *e, uint64_t more)
{
    e->low += more;
    if (e->low < more)
        carry(e);
}

static void shift(lam_range_encoder *e)
{
    if (e->n == e->room)
        e->full = 1;
    else
        e->bytes[e->n++] = (uint8_t)(e->low >> 56);
    e->low <<= 8;
}

void lam_range_put(lam_range_encoder *e, uint32_t first, uint32_t count)
{
    const uint64_t unit = e->range >> LAM_TOTAL_BITS;
    add(e, unit * first);
    e->range = unit * count;
    while (e->range < LEAST) {
        shift(e);
        e->range <<= 8;
    }
}

/* Of all numbers in the interval the one with the most zeros at its end. */
void lam_range_finish(lam_range_encoder *e)
{
    /* The range has at least 56 bits: a multiple of 2^56 may be missing, one of 2^48 is there. */
    const uint64_t wide = LEAST - 1, narrow = (LEAST >> 8) - 1;
    const uint64_t up = (UINT64_C(0) - e->low) & wide; /* from low to the next multiple of 2^56 */
    add(e, up < e->range ? up : (UINT64_C(0) - e->low) & narrow);
    shift(e);
    shift(e);
    while (e->n > 0 && e->bytes[e->n - 1] == 0)
        e->n--;
}

/* ---- decoding ---- */

static uint8_t next(lam_range_decoder *d)
{
    const uint8_t byte = d->at < d->size ? d->bytes[d->at] : 0;
    d->at++;
    return byte;
}

void lam_range_open(lam_range_decoder *d, const uint8_t *bytes, size_t size)
{
    *d = (lam_range_decoder){.bytes = bytes, .size = size, .range = UINT64_MAX};
    for (int i = 0; i < 8; i++)
        d->code = d->code << 8 | next(d);
}

lam_status lam_range_peek(lam_range_decoder *d, uint32_t *value)
{
    d->unit = d->range >> LAM_TOTAL_BITS;
    const uint64_t v = d->code / d->unit;
    *value = (uint32_t)v;
    return v < LAM_TOTAL ? LAM_OK : lam_fail(LAM_ERR_FORMAT, "the coded bytes are damaged");
}

void lam_range_take(lam_range_decoder *d, uint32_t first, uint32_t count)
{
    d->code -= d->unit * first;
    d->range = d->unit * count;
    while (d->range < LEAST) {
        d->code = d->code << 8 | next(d);
        d->range <<= 8;
    }
}

/* The decoder is eight bytes ahead of what the encoder had shifted out, and that wrote at most two more. */
int lam_range_at_end(const lam_range_decoder *d)
{
    return d->size + 6 <= d->at;
}
