/* continuous.h -- what a memory in continuous time needs besides products: a gate, attention by a Gaussian
 * density, and sampling a signal where attention was. */
#ifndef LAM_OPS_CONTINUOUS_H
#define LAM_OPS_CONTINUOUS_H

#include "ops/types.h"

/* out = in * sigmoid(pre).  All [rows][ld], contiguous, of width true columns (the rest zero in, zero out).
 * Backward: in is a constant, so dpre = dout * in * g (1 - g) with g = sigmoid(pre); dpre may be dout. */
typedef struct lam_gate {
    int rows, width, ld;
    const void *in, *pre; /* ACT */
    void *out;            /* ACT */
    const void *dout;     /* ACT */
    void *dpre;           /* ACT */
} lam_gate;

/* Attention by a density: for each query i of each stream and head
 *
 *   mu = sigmoid(scale * q_i . pull_0)       var = max(log(1 + exp(scale * q_i . pull_1)), var_min)
 *   r_j = N(mu; centre_j, var + width_j^2)    the mean of bump j under N(mu, var)
 *
 * `pull` is what the scores of the bumps weigh: sum_j w_j k_j, since (q . k_j) w_j summed over j is q . pull.
 *
 * Backward, from dr, with d = mu - centre_j and S = var + width_j^2:
 *   dmu  = sum_j dr_j r_j (-d / S)           dvar = sum_j dr_j r_j (d^2 / S - 1) / (2 S) + scale_kl kl'
 *   kl   = weight / 2 (var / prior - log(var / prior) - 1)        the divergence from N(mu, prior)
 * and from there to q and pull; var at its minimum has no gradient.  mu and var are as forward left them. */
typedef struct lam_density {
    int B, H, K;
    int queries, basis;
    double scale, var_min;
    const void *centre, *width; /* WIDE [basis] */
    lam_view q;                 /* ACT: rows ldq apart, head h at columns h*K, as in attention */
    size_t ldq;
    lam_view pull;    /* ACT: per stream two rows of H*K */
    lam_view mu, var; /* WIDE: row (b, i) at b * step + i * H */
    void *r;          /* ACT [B][H][queries][ldr]; columns basis.. are left alone */
    size_t ldr;

    const void *dr;       /* ACT, like r */
    lam_view dq;          /* ACT, like q: added to */
    lam_view dpull;       /* ACT, like pull: overwritten */
    double prior, weight; /* of the divergence */
    double grad_scale;    /* scale_kl above */
    lam_view kl;          /* WIDE, like mu: overwritten */
} lam_density;

/* Samples of a signal where a stream's attention was.  Each of rows * H Gaussians N(mu, var) puts its mass into
 * `bins` equal bins of [0, 1] (the outer ones reach 1e-6 further); bin d has cumulative mass
 *   edge[d] = sum Phi((d / bins - mu) / sigma), d = 0 .. bins.
 * Draw u of the ascending draws[samples] in [0, 1) lands in the bin d where the share of the mass passes it:
 * at its left edge, or (within) as far into it as u is.  psi[m][j] = N(place_m; centre_j, width_j^2). */
typedef struct lam_sticky_samples {
    int B, rows, H;
    int bins, samples, basis, within;
    lam_view mu, var;           /* WIDE: row (b, i) at b * step + i * H */
    const void *draws;          /* WIDE [samples] */
    const void *centre, *width; /* WIDE [basis] */
    void *edge;                 /* WIDE [B][bins + 1] */
    void *psi;                  /* ACT [B][samples][ld]; columns basis.. are left alone */
    size_t ld;
} lam_sticky_samples;

#endif
