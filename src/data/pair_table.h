/* pair_table.h -- pairs of neighbouring tokens while merges are learned: how often each occurs, and in which pieces. */
#ifndef LAM_DATA_PAIR_TABLE_H
#define LAM_DATA_PAIR_TABLE_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct lam_pair_entry {
    uint64_t key;     /* left + 1, right; 0: free */
    int64_t count;    /* 0: gone, or never there */
    uint32_t *pieces; /* that had the pair when they were noted; some may have lost it.  Owned. */
    uint32_t n, room;
    int32_t stamp; /* the last merge that made more of it */
} lam_pair_entry;

typedef struct lam_pair_table {
    lam_pair_entry *entries; /* a power of two of them */
    uint64_t mask;
    uint64_t used;
} lam_pair_table;

lam_status lam_pair_table_open(lam_pair_table *t);
void lam_pair_table_close(lam_pair_table *t);

static inline int32_t lam_pair_left(uint64_t key)
{
    return (int32_t)((key >> 32) - 1);
}

static inline int32_t lam_pair_right(uint64_t key)
{
    return (int32_t)(uint32_t)key;
}

/* The entry of a pair, made if it is not there: valid until the next call. */
lam_status lam_pair_table_get(lam_pair_table *t, lam_pair_entry **out, int32_t left, int32_t right);
/* Notes that a piece has the pair. */
lam_status lam_pair_note(lam_pair_entry *e, uint32_t piece);

#endif
