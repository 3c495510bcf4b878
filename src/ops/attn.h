/* attn.h -- relative-position attention, the heart: one operation for every direction in time.
 *
 * A query i stands at position `shift + i` on the axis of its keys j = 0, 1, ...; for the visible
 * keys of each stream and head
 *
 *   S[i][j] = scale * ( (q_i + u) . k_j + (q_i + v) . r[row(i,j)] + rbias[row(i,j)] )    (Eq. 6, 12)
 *   lse_i = log sum_j exp S[i][j],   P = exp(S - lse),   o_i = sum_j drop(P[i][j]) value_j  (Eq. 2, 9)
 *
 * The output and the log-sum-exp together are the paused state of an online softmax: memory
 * interpolation (memory.h) resumes it one segment later.
 *
 *   mode CAUSAL  visible iff j <= shift + i and shift + i - j < reach    (reach = same_length, Eq. 2)
 *   mode AHEAD   visible iff j >  shift + i                              (Eq. 9)
 *   mode FULL    every key is visible                                    (attn_type 33)
 * and, where streams remember different numbers of rows, j >= past - valid[b] for the keys of stream b.
 * A query that sees no key has o = 0 and lse = -infinity, and no gradient.
 *
 * row(i,j) = r_zero + r_sign * (j - shift - i): the positional keys are stored by distance, and the
 * model chose the table (distances 0.. backwards for the past with r_sign = -1, 1.. for the future
 * with r_sign = +1, clamped distances are simply repeated rows).  Rows outside [0, r_rows) are never
 * addressed by a visible pair. */
#ifndef LAM_OPS_ATTN_H
#define LAM_OPS_ATTN_H

#include "ops/types.h"

typedef enum lam_attn_mode { LAM_CAUSAL, LAM_AHEAD, LAM_FULL } lam_attn_mode;

/* q, k, value, o and their gradients: row of stream b, time t at b * step + t * ld; head h occupies
 * columns h * K .. h * K + K - 1 of a row. */
typedef struct lam_attn {
    int B, H, K;
    int queries, keys; /* rows per stream, both >= 1 */
    lam_attn_mode mode;
    int shift;         /* may be negative */
    int reach;         /* CAUSAL only; 0: unlimited */
    const void *valid; /* INT [B], each at least 0; NULL: all keys are valid */
    int past;          /* of the first `past` keys only the newest valid[b] are; <= keys */
    double scale;      /* 1 / sqrt(true head width) */
    lam_drop drop;     /* on P; element index ((b * H + h) * queries + i) * round_up(keys, 8) + j */

    lam_view q, k, value; /* ACT; k and value: kv_class */
    lam_class kv_class;   /* ACT, HALF, or on exact devices BYTE; backward: ACT */
    /* BYTE only, WIDE: the scale of a head of a row that begins at element x of k is k_scale[x / K]; of value and r
     * likewise. */
    void *k_scale, *value_scale;
    const void *r_scale;
    size_t ldq, ldk;   /* row strides of q and of both k and value */
    const void *u, *v; /* WIDE [H][K]; NULL: zero */
    const void *r;     /* r_class [r_rows][ldr], head h at columns h*K; NULL: no positional term */
    lam_class r_class; /* like kv_class */
    const void *rbias; /* WIDE [r_rows][H], or NULL */
    int r_rows, r_zero, r_sign;
    size_t ldr;

    lam_view o; /* ACT, row stride ldo */
    size_t ldo;
    lam_view lse; /* WIDE, row (b, i) at b * step + i * H */

    /* Backward: o and lse as forward left them; dlse NULL means zero.
     * With delta_i = do_i . o_i - dlse_i:  dS = P * (dP - delta), dP_ij = drop'(do_i . value_j).
     * dq overwritten.  dk and dvalue overwritten, or added to when kv_add (all `keys` rows are
     * written either way).  dr overwritten, all r_rows rows.  du, dv, drbias accumulated. */
    lam_view d_o;            /* ACT, row stride ldo */
    lam_view dlse;           /* WIDE, like lse; p may be NULL */
    lam_view dq, dk, dvalue; /* ACT; row strides ldq, ldk, ldk */
    int kv_add;
    void *dr;      /* ACT [r_rows][ldr] */
    void *du, *dv; /* WIDE [H][K]; NULL when u, v are */
    void *drbias;  /* WIDE [r_rows][H] */
} lam_attn;

/* The first valid key of stream b.  Back-ends whose memory is the host's call this. */
static inline int lam_attn_oldest(const lam_attn *a, size_t b)
{
    const int oldest = a->valid ? a->past - ((const int32_t *)a->valid)[b] : 0;
    return oldest > 0 ? oldest : 0;
}

#endif
