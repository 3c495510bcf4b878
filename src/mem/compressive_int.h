/* compressive_int.h -- declarations shared by the two halves of the Compressive Transformer: compressive.c is the
 * memory, compressive_loss.c the auxiliary loss that trains its compression. */
#ifndef LAM_MEM_COMPRESSIVE_INT_H
#define LAM_MEM_COMPRESSIVE_INT_H

#include "mem/causal.h"
#include "mem/fields.h"

/* How a group of `rate` rows becomes one. */
typedef enum pooling_kind {
    CONV, /* a convolution, trained by attention reconstruction */
    MEAN_POOL,
    MAX_POOL
} pooling_kind;

/* What happens to evicted rows that fill no whole group. */
typedef enum remainder_kind {
    DROP, /* the newest of them are lost */
    PAD,  /* zero rows in front fill the first group */
    CARRY /* they wait for the next segment and are not attended to */
} remainder_kind;

typedef struct lam_compressive {
    int cmem_len; /* rows of compressed memory; 0: mem_len */
    int rate;     /* rows that become one */
    pooling_kind pooling;
    remainder_kind remainder;
    double aux_weight; /* of the attention-reconstruction loss */
} lam_compressive;

extern const lam_mem_ops lam_mem_compressive;

static inline lam_compressive fields_of(const lam_config *cfg)
{
    lam_compressive own;
    lam_fields_get(&own, sizeof own, cfg, &lam_mem_compressive);
    return own;
}

/* Parameters of a layer. */
typedef struct compressor {
    int weight, bias;
} compressor;

/* Buffers shared by the layers. */
typedef struct workspace {
    void *evicted;                        /* ACT [B][groups * rate][D] */
    void *compressed;                     /* ACT [B][groups][D] */
    void *evicted_norm, *compressed_norm; /* pre-norm: what attention reads instead */
    void *mean, *rstd;                    /* WIDE [B * rows] of either */
    void *evicted_kv;                     /* ACT [B][groups * rate][2HK] */
    void *compressed_kv;                  /* ACT [B][groups][2HK] */
    void *target;                         /* ACT [B][N][HK]: O, then the gradient of O' */
    void *rebuilt;                        /* ACT [B][N][HK]: O' */
    void *lse;                            /* WIDE [B][N][H] */
    void *dkv;                            /* ACT [B][groups][2HK] */
    void *dcompressed;                    /* ACT [B][groups][D] */
    void *unwanted; /* WIDE [2][D]: gradients of the norm's parameters, which are constants here */
} workspace;

static inline workspace *work_of(const lam_segment *s)
{
    return s->own;
}

static inline const compressor *params_of(const lam_segment *s, int layer)
{
    return s->ids[layer].own;
}

enum { COARSE, NEWEST, PENDING }; /* slots of a layer */

/* Do evicted rows that fill no group wait for the next segment? */
static inline int has_pending(const lam_config *cfg)
{
    return fields_of(cfg).remainder == CARRY && fields_of(cfg).rate > 1;
}

static inline int slots_per_layer(const lam_config *cfg)
{
    return has_pending(cfg) ? 3 : 2;
}

static inline const lam_slot *slot_of(const lam_segment *s, int layer, int which)
{
    return &s->mem->slots[layer * slots_per_layer(s->cfg) + which];
}

static inline int is_learned(const lam_config *cfg)
{
    return fields_of(cfg).pooling == CONV;
}

static inline int reconstructs(const lam_config *cfg)
{
    return is_learned(cfg) && fields_of(cfg).aux_weight > 0.0;
}

/* The rows that a segment of `done` tokens evicts from the memory of every layer. */
typedef struct lam_eviction {
    int first, fresh; /* rows of the segment */
    int front;        /* rows before them: pending ones, or zeros */
    int groups;       /* whole groups; they take front + fresh rows but for a rest below `rate` */
} lam_eviction;

static inline lam_linear convolution(const lam_segment *s, const lam_eviction *e)
{
    const int in = fields_of(s->cfg).rate * s->dims.D;
    return (lam_linear){s->dev, 1, s->B * e->groups, in, s->dims.D, (size_t)in};
}

/* A group of rows side by side is one row of the convolution. */
static inline lam_rows group_rows(const lam_segment *s)
{
    return (lam_rows){work_of(s)->evicted, 0, (size_t)fields_of(s->cfg).rate * (size_t)s->dims.D};
}

/* Computes E and Z of a layer, EVICTED and COMPRESSED. */
void lam_compress(const lam_segment *s, int layer, const lam_eviction *e);
/* The auxiliary loss of one layer, forward and backward; computes E and Z too. dqkv is unused at this point. */
void lam_compress_loss(const lam_segment *s, int layer, const lam_eviction *e);
/* The multiply-accumulates that the loss adds to a training step, per token. */
double lam_compress_loss_macs(const lam_config *cfg);

#endif
