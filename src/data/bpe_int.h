/* bpe_int.h -- the structs of a BPE, shared by bpe.c (creation) and bpe_encode.c (encoding). */
#ifndef LAM_DATA_BPE_INT_H
#define LAM_DATA_BPE_INT_H

#include "data/bpe.h"

/* A pair that is merged, in a table with open addressing. */
typedef struct lam_pair {
    uint64_t key; /* 0: free */
    uint32_t rank;
    int32_t into;
} lam_pair;

struct lam_bpe {
    const lam_symbols *symbols;
    lam_bpe_rules rules; /* with copies of the arrays */
    lam_pattern *pattern;
    lam_pair *pairs;
    uint64_t mask;
    bool *special;    /* [number of symbols] */
    bool begins[256]; /* a special token begins with this byte */
    int32_t byte_id[256];
};

static inline uint64_t lam_pair_key(int32_t left, int32_t right)
{
    return ((uint64_t)(uint32_t)left + 1) << 32 | (uint32_t)right;
}

static inline uint64_t lam_pair_hash(uint64_t key)
{
    key *= 0x9e3779b97f4a7c15u;
    return key ^ key >> 32;
}

/* The pair's entry, or the free one where it belongs. */
static inline lam_pair *lam_pair_at(const lam_bpe *b, int32_t left, int32_t right)
{
    const uint64_t key = lam_pair_key(left, right);
    uint64_t i = lam_pair_hash(key) & b->mask;
    while (b->pairs[i].key != key && b->pairs[i].key != 0)
        i = (i + 1) & b->mask;
    return &b->pairs[i];
}

#endif
