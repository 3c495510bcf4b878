/* mix.c -- see mix.h.  How contexts are stored is in contexts.h. */
#include "compress/mix.h"

#include "compress/contexts.h"
#include "compress/fixed.h"
#include "core/budget.h"

#include <stdlib.h>
#include <string.h>

enum {
    ORDERS = 6,
    INPUTS = 1 + ORDERS + 1, /* the model, the contexts, a constant */
    NIBBLE = 4,              /* bits for which one place of a context is looked up */
    PLACES = 16,             /* sets of weights by place: bits before, nodes of a nibble */
    MOST_BITS = 24,
    WEIGHT_ONE = 1 << 22,
    RATE = 80,         /* of learning, in units of 2^-16 */
    LEAST_P = 16,      /* no bit is surer than that many parts of 2^24 */
    CERTAIN = 12 << 16 /* log-odds of contexts end here */
};

struct lam_mix {
    int symbols, bits, streams;
    lam_contexts *contexts[ORDERS];
    uint32_t (*past)[ORDERS]; /* [streams]: the last symbols, newest first */
    int32_t stretch[4096];    /* log-odds of (i + 1/2) / 4096 */
    int32_t by_order[ORDERS + 1][INPUTS];
    int32_t by_place[(MOST_BITS / NIBBLE) * PLACES][INPUTS];
};

/* What is known about one bit. */
typedef struct opinion {
    int32_t x[INPUTS]; /* log-odds, in units of 2^-16 */
    lam_chance *seen[ORDERS];
    int32_t *weights[2]; /* those of the order and of the place are added */
    uint32_t one;        /* probability of a 1, of LAM_TOTAL */
} opinion;

static void start_weights(lam_mix *m)
{
    memset(m->by_order, 0, sizeof m->by_order);
    memset(m->by_place, 0, sizeof m->by_place);
    for (int i = 0; i <= ORDERS; i++)
        m->by_order[i][0] = WEIGHT_ONE;
}

static int bits_of(int symbols)
{
    int bits = 1;
    while (bits < MOST_BITS && 1 << bits < symbols)
        bits++;
    return bits;
}

lam_status lam_mix_create(lam_mix **out, int symbols, int streams, size_t n)
{
    *out = NULL;
    lam_mix *const m = calloc(1, sizeof *m);
    if (!m)
        return lam_fail(LAM_ERR_MEMORY, "mix: no memory");
    m->symbols = symbols;
    m->bits = bits_of(symbols);
    m->streams = streams;
    lam_status status = LAM_OK;
    for (int i = 0; i < ORDERS && status == LAM_OK; i++)
        status = lam_contexts_create(&m->contexts[i], n);
    m->past = calloc((size_t)streams, sizeof *m->past);
    if (status == LAM_OK && !m->past)
        status = lam_fail(LAM_ERR_MEMORY, "mix: no memory for %d streams", streams);
    if (status != LAM_OK) {
        lam_mix_free(m);
        return status;
    }
    for (int i = 0; i < 4096; i++) {
        const uint32_t one = 2 * (uint32_t)i + 1;
        m->stretch[i] = lam_fixed_log2(one) - lam_fixed_log2(8192 - one);
    }
    start_weights(m);
    *out = m;
    return LAM_OK;
}

void lam_mix_free(lam_mix *m)
{
    if (!m)
        return;
    for (int i = 0; i < ORDERS; i++)
        lam_contexts_free(m->contexts[i]);
    free(m->past);
    free(m);
}

void lam_mix_reset(lam_mix *m)
{
    for (int i = 0; i < ORDERS; i++)
        lam_contexts_reset(m->contexts[i]);
    memset(m->past, 0, (size_t)m->streams * sizeof *m->past);
    start_weights(m);
}

/* ---- one bit ---- */

/* 1 / (1 + 2^-x), of LAM_TOTAL */
static uint32_t squash(int64_t x)
{
    const uint64_t size = (uint64_t)(x < 0 ? -x : x);
    const uint32_t less = size < (UINT64_C(31) << 16) ? lam_fixed_exp2((uint32_t)size << 4) : 0;
    const uint32_t small =
        (uint32_t)(((uint64_t)less << LAM_TOTAL_BITS) / ((UINT64_C(1) << 31) + less));
    const uint32_t kept = small < LEAST_P ? LEAST_P : small;
    return x < 0 ? kept : LAM_TOTAL - kept;
}

/* zero and one: how often the symbols on both sides come, by the model. */
static void form(lam_mix *m, opinion *o, uint32_t zero, uint32_t one, int place)
{
    int longest = 0;
    o->x[0] = lam_fixed_log2(one) - lam_fixed_log2(zero);
    for (int i = 0; i < ORDERS; i++) {
        const lam_chance c = *o->seen[i];
        const int32_t x = lam_chance_count(c) > 0 ? m->stretch[lam_chance_one(c) >> 10] : 0;
        o->x[1 + i] = x > CERTAIN ? CERTAIN : x < -CERTAIN ? -CERTAIN : x;
        if (lam_chance_count(c) > 0)
            longest = i + 1;
    }
    o->x[1 + ORDERS] = 1 << 14;
    o->weights[0] = m->by_order[longest];
    o->weights[1] = m->by_place[place];
    int64_t sum = 0;
    for (int i = 0; i < INPUTS; i++)
        sum += (int64_t)o->x[i] * (o->weights[0][i] + o->weights[1][i]);
    o->one = squash(sum / WEIGHT_ONE);
}

static void learn(opinion *o, int bit)
{
    const int64_t error = (bit ? LAM_TOTAL : 0) - (int64_t)o->one;
    for (int i = 0; i < INPUTS; i++) {
        /* units: error 2^-24, x 2^-16, rate 2^-16, weights 2^-22; a weight stays within 64 */
        const int64_t step = error * o->x[i] * RATE / (INT64_C(1) << 34);
        for (int k = 0; k < 2; k++) {
            const int64_t w = o->weights[k][i] + step;
            const int64_t most = 64 * (int64_t)WEIGHT_ONE;
            o->weights[k][i] = (int32_t)(w > most ? most : w < -most ? -most : w);
        }
    }
    for (int i = 0; i < ORDERS; i++)
        lam_chance_learn(o->seen[i], bit);
}

/* ---- one symbol ---- */

/* Looks up the contexts of the next bits: the symbols before, and the bits so far. */
static void look_up(lam_mix *m, lam_chance *rows[ORDERS], int stream, uint32_t node)
{
    uint32_t hash = node * UINT32_C(0x9e3779b1);
    for (int i = 0; i < ORDERS; i++) {
        hash = (hash ^ (m->past[stream][i] + 1)) * UINT32_C(0x85ebca6b);
        hash ^= hash >> 15;
        rows[i] = lam_contexts_find(m->contexts[i], hash);
    }
}

static void remember(lam_mix *m, int stream, int symbol)
{
    uint32_t *const past = m->past[stream];
    memmove(past + 1, past, (ORDERS - 1) * sizeof *past);
    past[0] = (uint32_t)symbol;
}

/* Codes a bit with an encoder, or finds it with a decoder. */
static lam_status pass_bit(const opinion *o, int *bit, lam_range_encoder *e, lam_range_decoder *d)
{
    const uint32_t zero = LAM_TOTAL - o->one;
    if (d) {
        uint32_t value;
        LAM_TRY(lam_range_peek(d, &value));
        *bit = value >= zero;
        lam_range_take(d, *bit ? zero : 0, *bit ? o->one : zero);
    } else {
        lam_range_put(e, *bit ? zero : 0, *bit ? o->one : zero);
    }
    return LAM_OK;
}

static lam_status pass_symbol(lam_mix *m, int stream, const uint32_t *cum, int *symbol,
                              lam_range_encoder *e, lam_range_decoder *d)
{
    lam_chance *rows[ORDERS];
    int first = 0; /* symbols first .. first + 2^(left) - 1 begin with the bits so far */
    uint32_t node = 1;
    for (int left = m->bits - 1, at = 0; left >= 0; left--, at++) {
        const int middle = first + (1 << left), end = first + (2 << left);
        if (at % NIBBLE == 0)
            look_up(m, rows, stream, node);
        if (middle >= m->symbols) { /* nothing there: the bit is 0 */
            node = 2 * node;
            continue;
        }
        const int k = at % NIBBLE;
        const uint32_t within = (node & ((1u << k) - 1)) | 1u << k;
        opinion o;
        for (int i = 0; i < ORDERS; i++)
            o.seen[i] = rows[i] + within;
        form(m, &o, cum[middle] - cum[first],
             cum[end < m->symbols ? end : m->symbols] - cum[middle],
             at / NIBBLE * PLACES + (int)within);
        int bit = d ? 0 : *symbol >= middle;
        LAM_TRY(pass_bit(&o, &bit, e, d));
        learn(&o, bit);
        first = bit ? middle : first;
        node = 2 * node + (uint32_t)bit;
    }
    *symbol = first;
    remember(m, stream, first);
    return LAM_OK;
}

void lam_mix_put(lam_mix *m, int stream, const uint32_t *cum, int symbol, lam_range_encoder *e)
{
    (void)pass_symbol(m, stream, cum, &symbol, e, NULL); /* only a decoder can fail */
}

lam_status lam_mix_take(lam_mix *m, int stream, const uint32_t *cum, int *symbol,
                        lam_range_decoder *d)
{
    return pass_symbol(m, stream, cum, symbol, NULL, d);
}
