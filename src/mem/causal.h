/* causal.h -- the part that all memories share: projecting rows, and the causal attention of current rows. */
#ifndef LAM_MEM_CAUSAL_H
#define LAM_MEM_CAUSAL_H

#include "mem/mem.h"
#include "nn/sites.h"

/* Projects keys and values of all rows new in this call, and queries of the current ones, or of all of
 * them (leads); Eq. 1, 5.  Then current rows attend to everything before them; Eq. 2, 6. */
void lam_causal_fwd(const lam_segment *s, int layer, int leads);

/* Measures where that attention went: completes p->attn and p->cut, and runs the operation.  The segment's forward is
 * done and not committed.  The cuts end the rows in front beyond the newest M, and all remembered rows. */
void lam_causal_attn_stats(const lam_segment *s, int layer, lam_attn_stats *p);
/* Decoding: one more current row per stream, in buffers of its own, so that only `at` changes from token to
 * token.  Its projections are in qkv; its key and value join the layer's. */
typedef struct lam_next_row {
    const void *at; /* INT [B]: rows before it */
    const void
        *valid;    /* INT [B]: newest remembered rows that it may read (G8); NULL: the segment's */
    void *qkv;     /* ACT [B][3HK] */
    void *c, *lse; /* ACT [B][HK], WIDE [B][H]: overwritten */
} lam_next_row;
void lam_causal_next(const lam_segment *s, int layer, const lam_next_row *row);

/* The gradient of the attention of current rows: fills dqkv (all keys' dk and dv, the current rows' dq). */
void lam_causal_bwd(const lam_segment *s, int layer);
/* The gradient of the projections, once dqkv is complete; dq is valid from row q_from on. */
void lam_project_bwd(const lam_segment *s, int layer, int q_from);

/* Both together: the hooks of a memory whose rows are only constant keys and values. */
void lam_causal_attend_fwd(const lam_segment *s, int layer);
void lam_causal_attend_bwd(const lam_segment *s, int layer);

/* q, k and v of `row` of a layer, wherever the segment keeps them; queries are lam_q_ld apart. */
typedef enum lam_third { LAM_Q, LAM_K, LAM_V } lam_third;
lam_view lam_qkv_view(const lam_segment *s, int layer, lam_third third, int row);
/* The scales of these rows of keys or values; NULL where their cache has none. */
void *lam_kv_scale(const lam_segment *s, int layer, lam_third third, int row);
size_t lam_q_ld(const lam_segment *s);
/* The same of their gradients, a [B][T][3HK] buffer. */
lam_view lam_dqkv_view(const lam_segment *s, lam_third third, int row);
/* `row` of a [B][T][width] buffer of a class. */
lam_view lam_row_view(const lam_segment *s, lam_class type, void *p, int width, int row);

/* Keys and values of `rows` packed rows of D, side by side, and the layer's weights for them. */
lam_linear lam_kv_map(const lam_segment *s, int rows);
lam_weights lam_kv_weight(const lam_segment *s, int layer);

/* `row` of a packed [B][rows][D] buffer of activations. */
lam_view lam_packed_view(const lam_segment *s, void *p, int rows, int row);

/* The attention fields that do not depend on direction. */
lam_attn lam_attn_base(const lam_segment *s, lam_site site, int layer);

#endif
