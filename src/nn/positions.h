/* positions.h -- positions: sinusoid tables, and the keys r made from them where they are relative.
 *
 * R(s) = [sin(s w_0) .. sin(s w_{D/2-1}), cos(s w_0) .. ], w_t = 10000^(-2t/D): two halves, frequencies
 * from t = 0 (the paper prints k = 1 and interleaved; the code is followed).  Rows are stored by
 * distance, so that attention finds row(i, j) by arithmetic (ops/attn.h):
 *   past   row d = distance d back, d = 0 .. M+N-1                            (Eq. 6)
 *   ahead  row d-1 = distance d forward, d = 1 .. M: R(+d), or R(-d) for attn_type 31   (Eq. 12);
 *          attn_type 33 has both directions: row M-1+d, d = -(M-1) .. M, holding R(|d|)
 * clamp_len repeats rows beyond it, except the negative ones of type 31 (as in the authors' code).
 * attn_type 1 has no sinusoids: its table is a parameter, [tgt+mem] rows per layer, distance 0 last.
 * attn_type 2 has no keys: row i of `past` is R(tgt_len - 1 - i), added to the i-th embedding of a segment.  The
 * authors count down from the segment's own length; from the model's, a token's place does not depend on
 * how many will follow. */
#ifndef LAM_NN_POSITIONS_H
#define LAM_NN_POSITIONS_H

#include "core/arena.h"
#include "nn/config.h"
#include "nn/dims.h"
#include "nn/params.h"

/* Parameters: u, v for all layers, v- and u- of the look-ahead, W_r of each layer. -1: has none. */
typedef struct lam_pos_params {
    int u, v, v_ahead, u_ahead; /* r_w_bias, r_r_bias, r_r_bias_future, r_w_bias_future */
    int r_emb, r_bias;          /* attn_type 1 */
    int r_net[LAM_MAX_LAYERS];
    int own_u[LAM_MAX_LAYERS],
        own_v[LAM_MAX_LAYERS]; /* u and v of a layer, where they are untied */
} lam_pos_params;

typedef struct lam_positions {
    lam_dev *dev;
    const lam_config *cfg;     /* kept */
    const lam_params *params;  /* kept */
    const lam_pos_params *ids; /* kept */
    lam_dims dims;
    int M, N;        /* capacities */
    lam_class cache; /* of r_past: ACT, HALF or BYTE */
    int past_rows, ahead_rows;
    void *past, *ahead; /* ACT [rows][D]: the tables */
    void *past_used,
        *ahead_used;          /* what this step uses: dropped copies, or the tables themselves */
    void **r_past, **r_ahead; /* cache and ACT [rows][HK] of each layer */
    void **r_scale;           /* BYTE: WIDE [rows][H] of each layer's r_past */
    void *dr;                 /* ACT scratch of backward, NULL when not training */
} lam_positions;

/* Declares u, v, ... ; W_r belongs to a layer and is declared with it. */
void lam_pos_declare(lam_pos_params *ids, lam_params *p, const lam_config *cfg, const lam_dev *dev);

/* Carves the buffers (arena protocol: may run on a measuring arena). */
void lam_pos_layout(lam_positions *pos, lam_arena *arena, int train);
/* Fills the tables; once, after layout on real memory. */
lam_status lam_pos_fill(lam_positions *pos);

/* r = drop(R) W_r^T for every layer; drop.site is set here. */
void lam_pos_project(lam_positions *pos, lam_drop drop);

/* attn_type 2: out = rows + positions for B streams of n packed rows, which are those from `first` on. */
int lam_pos_is_absolute(const lam_positions *pos);
void lam_pos_add(const lam_positions *pos, void *out, const void *rows, int B, int first, int n);

/* Sets the positional fields of a causal or a look-ahead attention of `layer`. */
void lam_pos_past(const lam_positions *pos, int layer, lam_attn *a);
void lam_pos_ahead(const lam_positions *pos, int layer, lam_attn *a);
/* Same for backward: where gradients go.  After attn_bwd call the matching _done, which carries dr on
 * to W_r (or to the learned table). */
void lam_pos_past_grad(const lam_positions *pos, int layer, lam_attn *a);
void lam_pos_past_done(const lam_positions *pos, int layer);
void lam_pos_ahead_grad(const lam_positions *pos, int layer, lam_attn *a);
void lam_pos_ahead_done(const lam_positions *pos, int layer);

#endif
