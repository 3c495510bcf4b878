/* infinite_int.h -- declarations shared by the parts of the infinity-former: infinite.c keeps the long-term memory,
 * infinite_fit.c fits its signal, infinite_read.c attends to it. */
#ifndef LAM_MEM_INFINITE_INT_H
#define LAM_MEM_INFINITE_INT_H

#include "mem/causal.h"
#include "mem/fields.h"

#include <stdbool.h>

enum {
    LAM_LTM_TAPS = 3,  /* of the gate's kernel */
    LAM_LTM_BINS = 128 /* of the histogram of attention */
};

/* Where the old signal is sampled for the next one. */
typedef enum sticky_kind {
    OFF,    /* evenly */
    LEFT,   /* where attention was, at the left edges of a histogram's bins */
    UNIFORM /* where attention was, anywhere in the bins */
} sticky_kind;

/* The long-term memory. */
typedef struct lam_infinite {
    int ltm_basis; /* bumps; 0: mem_len, as far as the widths divide it */
    double ltm_ridge;
    int ltm_block;     /* evicted rows that enter it as one block; 0: tgt_len */
    int ltm_samples;   /* of the old signal, for the next one */
    double ltm_tau;    /* the old signal's share of the next one */
    double ltm_sigma0; /* prior deviation of attention, */
    double ltm_kl;     /* and the weight of the divergence from it */
    double ltm_var_min;
    bool ltm_padding;    /* zeros beyond both ends of the signal */
    bool ltm_share_proj; /* keys, values and output are projected by the layer's own weights */
    sticky_kind ltm_sticky;
    int ltm_reset;             /* forget it after so many tokens; 0: never */
    lam_json_reals ltm_widths; /* each centre has a bump of each of these */
} lam_infinite;

extern const lam_mem_ops lam_mem_infinite;

static inline lam_infinite fields_of(const lam_config *cfg)
{
    lam_infinite own;
    lam_fields_get(&own, sizeof own, cfg, &lam_mem_infinite);
    return own;
}

/* Parameters of a layer; the last three unless shared. */
typedef struct ltm_params {
    int conv, conv_bias, mu, sigma, key, value, out;
} ltm_params;

/* Buffers of a layer; in evaluation those of the gate and z are the same for all layers. */
typedef struct ltm_rows {
    void *pre;        /* ACT [B][block][D]: the gate before its sigmoid */
    void *coef;       /* ACT [B][N][D]: the coefficients of this segment */
    void *kv;         /* ACT [B][N][2HK]: their keys and values */
    void *pull;       /* ACT [B][2][HK] */
    void *mean, *var; /* WIDE [B][length][H]: mu and var of every query so far */
    void *z;          /* ACT [B][n][HK]: what queries read */
} ltm_rows;

/* Buffers the layers use in turn, and constants. */
typedef struct ltm_work {
    void *
        shifted; /* ACT [LAM_LTM_TAPS][B][block][D]: the block as each tap of the gate's kernel sees it */
    void *gated; /* ACT [B][block][D] */
    void *r;     /* ACT [B][H][n][ld]: means of the bumps */
    void *dr, *dz, *dkv, *dpull, *dcoef;
    void *centre, *width; /* WIDE [N] */
    void *first;          /* ACT [block][ld]: G of the first block */
    void *fresh;          /* ACT [block][ld]: G of later ones */
    void *
        old; /* ACT [N][ld]: the old coefficients' share; sticky: [samples][ld], G of the samples */
    void *draws;   /* sticky: WIDE [samples] */
    void *edges;   /* WIDE [B][LAM_LTM_BINS + 1] */
    void *psi;     /* ACT [B][samples][ld] */
    void *samples; /* ACT [B][samples][D] */
} ltm_work;

static inline ltm_work *work_of(const lam_segment *s)
{
    return s->own;
}

static inline ltm_rows *rows_of(const lam_segment *s, int layer)
{
    return s->layer[layer].own;
}

static inline const ltm_params *params_of(const lam_segment *s, int layer)
{
    return s->ids[layer].own;
}

enum { NEWEST, PENDING, SIGNAL, MEAN_WAS, VAR_WAS }; /* slots of a layer */

static inline int is_sticky(const lam_config *cfg)
{
    return fields_of(cfg).ltm_sticky != OFF;
}

static inline int slots_per_layer(const lam_config *cfg)
{
    return is_sticky(cfg) ? 5 : 3;
}

static inline const lam_slot *slot_of(const lam_segment *s, int layer, int which)
{
    return &s->mem->slots[layer * slots_per_layer(s->cfg) + which];
}

/* Stored width of rows of N numbers. */
static inline size_t basis_ld(const lam_segment *s)
{
    return (size_t)lam_padded(s->dev, fields_of(s->cfg).ltm_basis);
}

/* Rows of a block: the config's, and at least a segment's, since at most one block enters per segment and rows must not
 * accumulate. */
static inline int block_rows(const lam_config *cfg, int N)
{
    const int block = fields_of(cfg).ltm_block;
    return block > N ? block : N;
}

static inline int block_of(const lam_segment *s)
{
    return block_rows(s->cfg, s->N);
}

/* Does a block enter the memory before this segment? */
static inline int takes_block(const lam_segment *s)
{
    return slot_of(s, 0, PENDING)->n >= block_of(s);
}

/* Is the long-term memory non-empty? */
static inline int is_alive(const lam_segment *s)
{
    return takes_block(s) || slot_of(s, 0, SIGNAL)->n > 0;
}

/* ---- infinite.c ---- */

/* Buffers of a layer, of a view those of its stream. */
ltm_rows lam_ltm_rows(const lam_segment *s, int layer);

/* ---- infinite_read.c: nothing happens where there is nothing to read ---- */

/* Computes what the current rows read, into Z; before the first row, fixes the signal that all rows of the segment
 * read. */
void lam_ltm_read(const lam_segment *s, int layer);
/* Adds it, mapped, to the attention's output s->out. */
void lam_ltm_output(const lam_segment *s, int layer);
/* Backward pass from the gradient of s->out to everything that is not constant; dq is added to the attention's. */
void lam_ltm_read_bwd(const lam_segment *s, int layer);

/* ---- infinite_fit.c ---- */

/* Computes the coefficients of this segment, COEF of `layer`: the old ones, or a new fit. */
void lam_ltm_fit(const lam_segment *s, int layer);
/* From their gradient DCOEF to the gate's; only where takes_block. */
void lam_ltm_fit_bwd(const lam_segment *s, int layer);
/* Fills the constants. */
lam_status lam_ltm_fill(const lam_segment *s);

#endif
