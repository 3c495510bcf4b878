/* contexts.c -- see contexts.h. */
#include "compress/contexts.h"

#include "core/budget.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROW = 16,
    FEWEST = 1 << 8, /* rows */
    MOST = 1 << 18,  /* 16 MB */
    LIMIT = 250      /* of a count: later bits then weigh no less */
};

struct lam_contexts {
    size_t rows;            /* a power of 2 */
    lam_chance (*row)[ROW]; /* [rows]; the first number of a row says whose it is */
};

/* Two contexts of four bits for each symbol of eight. */
lam_status lam_contexts_create(lam_contexts **out, size_t n)
{
    *out = NULL;
    lam_contexts *const c = calloc(1, sizeof *c);
    if (!c)
        return lam_fail(LAM_ERR_MEMORY, "contexts: no memory");
    c->rows = FEWEST;
    while (c->rows < MOST && c->rows < 2 * n)
        c->rows *= 2;
    lam_status status = lam_budget_ask("contexts of --adapt mix", c->rows * sizeof *c->row);
    if (status == LAM_OK) {
        c->row = aligned_alloc(sizeof *c->row, c->rows * sizeof *c->row);
        if (!c->row)
            status = lam_fail(LAM_ERR_MEMORY, "contexts: no memory for %zu rows", c->rows);
    }
    if (status != LAM_OK) {
        lam_contexts_free(c);
        return status;
    }
    lam_contexts_reset(c);
    *out = c;
    return LAM_OK;
}

void lam_contexts_free(lam_contexts *c)
{
    if (!c)
        return;
    free(c->row);
    free(c);
}

static const lam_chance EVEN = UINT32_C(1) << 31; /* 1/2, never learned */

static void clear(lam_chance *row, uint32_t owner)
{
    row[0] = owner;
    for (int i = 1; i < ROW; i++)
        row[i] = EVEN;
}

void lam_contexts_reset(lam_contexts *c)
{
    for (size_t i = 0; i < c->rows; i++)
        clear(c->row[i], 0);
}

/* The first bit of a row is learned whenever the row is used. */
lam_chance *lam_contexts_find(lam_contexts *c, uint32_t hash)
{
    const size_t i = (hash * UINT32_C(0x2c1b3c6d)) >> 8 & (c->rows - 1);
    const uint32_t owner = hash | 1; /* not 0, which nobody is */
    lam_chance *const a = c->row[i], *const b = c->row[i ^ 1];
    if (a[0] == owner)
        return a;
    if (b[0] == owner)
        return b;
    lam_chance *const victim = lam_chance_count(b[1]) < lam_chance_count(a[1]) ? b : a;
    clear(victim, owner);
    return victim;
}

void lam_chance_learn(lam_chance *c, int bit)
{
    const uint32_t count = lam_chance_count(*c);
    const int64_t one = lam_chance_one(*c), goal = bit ? (1 << 22) - 1 : 0;
    const int64_t moved = one + (goal - one) * 2 / (2 * (int64_t)count + 3);
    *c = (uint32_t)moved << 10 | (count < LIMIT ? count + 1 : LIMIT);
}
