/* exact.h -- exact arithmetic: what operations compute on devices that were opened with lam_dev_options.exact.
 *
 * The same model and text give the same bits on every back-end, instruction set, number of threads and batch size, and
 * whether the text comes by segments or token by token.  By construction: every sum is one of integers, which has no
 * order; everything else is single IEEE-754 operations on floats in the order given here (core/exact.h).  No row's
 * result depends on another row of the batch.  ref/exact_*.c says the same in plain loops and is the specification.
 *
 * ACT and WIDE are float; weights and caches are BYTE.  Only LAM_EXACT_OPS (list.h) exist, without dropout.
 * Below, every operation rounds to float, unless "double" is said; round() is to the nearest integer.
 *
 * Quantised rows.  Numbers x become integers |q| <= Q with a scale s, so that x is about s * q:
 *   t = max |x|;   f = Q / t;   s = t / Q;   q = round(x * f)
 *   t below 2^-100: all q and s are 0.   t not finite: all q are 0 and s is NaN, which spoils what is made of them.
 * Q = LAM_EXACT_ROW  (15 bits)  a row of A in a product; a head of (q + u) and (q + v); the weights of a sum of values
 * Q = LAM_EXACT_HEAD (8 bits)   a head of a cached key, value or position
 * Q = LAM_EXACT_NORM (22 bits)  a row that LayerNorm takes the moments of
 * These are rows of the model, one token's each: never of several tokens.
 *
 * gemm      C = float(sum q_a b) * (s_a * scale_b);  then + C, + bias, ReLU as far as asked.
 *           B kept, whose scales lie along the sum: rows of A are multiplied by them before they are quantised.
 * attention S = (float((q+u) . k) * (s_u * s_k) + float((q+v) . r) * (s_v * s_r) + rbias) * scale, absent terms left out
 *           p = exp(S - max S);  n = sum round(p * 2^22);  w = p * s_value, quantised as one row (Q = LAM_EXACT_ROW)
 *           o = float(sum q_w value) * float((double)t_w / Q / (n * 2^-22));   lse = max S + log(n * 2^-22) in double
 *           over the visible keys; keys, values and positions in ACT are quantised as the cached ones are.
 * LayerNorm s = x + (add + bias);  over the quantised row, in double:  m = sum q / width,
 *           v = sum q^2 / width - m m;   mean = float(m s_row),  rstd = float(1 / sqrt(v s_row s_row + eps))
 *           y = ((s - mean) * rstd) * gain + shift
 * interp    alpha and 1 - alpha as in memory.h in double, each rounded to float;
 *           c_out = alpha c_old + (1 - alpha) c_new: two products, one sum
 * embed     out = float(q) * float(scale * scale_table), the latter a product of doubles
 * xent      n = sum round(exp(logit - max) * 2^38);  nll = (max + log(n * 2^-38)) - logit[target] in double */
#ifndef LAM_OPS_EXACT_H
#define LAM_OPS_EXACT_H

#include "core/exact.h"

enum {
    LAM_EXACT_ROW = 16383,
    LAM_EXACT_HEAD = 127,
    LAM_EXACT_NORM = 1 << 21,
    LAM_EXACT_P = 1 << 22,
    /* Sums of products of a 15-bit and an 8-bit number that int32_t surely holds. */
    LAM_EXACT_TERMS = 1024,
};

#define LAM_EXACT_XENT 274877906944.0 /* 2^38 */
#define LAM_EXACT_NAN  0x7fc00000

/* How a row is quantised. */
typedef struct lam_exact_grid {
    float up, scale; /* f and s above */
} lam_exact_grid;

/* `size`: the largest lam_exact_size() of the row. */
LAM_EXACT lam_exact_grid lam_exact_grid_of(int32_t size, float Q)
{
    lam_exact_grid g = {0.0f, 0.0f};
    const float t = lam_exact_float(size);
    if (size >= LAM_EXACT_INF) {
        g.scale = lam_exact_float(LAM_EXACT_NAN);
    } else if (size >= 0x0d800000) { /* 2^-100 */
        g.up = LAM_DIV(Q, t);
        g.scale = LAM_DIV(t, Q);
    }
    return g;
}

/* A float as an integer that grows with it; NaN (not negative) is above all. */
LAM_EXACT int32_t lam_exact_rank(float x)
{
    const int32_t i = lam_exact_bits(x);
    return i ^ (int32_t)((uint32_t)(i >> 31) >> 1);
}

LAM_EXACT float lam_exact_unrank(int32_t rank)
{
    return lam_exact_float(rank ^ (int32_t)((uint32_t)(rank >> 31) >> 1));
}

/* Of attention: the factor of a sum of values, from their weights' largest size and the sum n of p. */
LAM_EXACT float lam_exact_share(int32_t size, int64_t n)
{
    const double t = (double)lam_exact_float(size);
    const double share = LAM_DDIV(LAM_DDIV(t, (double)LAM_EXACT_ROW),
                                  LAM_DMUL((double)n, 1.0 / (double)LAM_EXACT_P));
    return n > 0 ? (float)share : lam_exact_float(LAM_EXACT_NAN);
}

/* Its log-sum-exp. */
LAM_EXACT float lam_exact_lse(float top, int64_t n)
{
    const double sum = LAM_DMUL((double)n, 1.0 / (double)LAM_EXACT_P);
    return n > 0 ? (float)LAM_DADD((double)top, lam_exact_log_inline(sum))
                 : lam_exact_float(LAM_EXACT_NAN);
}

/* Loss of a row of logits: their largest one, n, and the target's logit. */
LAM_EXACT float lam_exact_nll(float top, int64_t n, float logit)
{
    const double sum = LAM_DMUL((double)n, 1.0 / LAM_EXACT_XENT);
    return n > 0 ? (float)LAM_DADD(LAM_DADD((double)top, lam_exact_log_inline(sum)), -(double)logit)
                 : lam_exact_float(LAM_EXACT_NAN);
}

/* LayerNorm's moments. */
typedef struct lam_exact_moments {
    float mean, rstd;
} lam_exact_moments;

/* From the sums of q and q^2 over `width` columns. */
LAM_EXACT lam_exact_moments lam_exact_norm(int64_t sum, int64_t squares, int width, float scale,
                                           double eps)
{
    const double s = (double)scale, m = LAM_DDIV((double)sum, (double)width);
    const double v = LAM_DADD(LAM_DDIV((double)squares, (double)width), -LAM_DMUL(m, m));
    const double spread = LAM_DADD(LAM_DMUL(LAM_DMUL(v > 0.0 ? v : 0.0, s), s), eps);
    lam_exact_moments out;
    out.mean = (float)LAM_DMUL(m, s);
    out.rstd = (float)LAM_DDIV(1.0, LAM_DSQRT(spread));
    return out;
}

/* Interpolation's weights and log-sum-exp. */
typedef struct lam_exact_blend {
    float alpha, rest, lse;
} lam_exact_blend;

LAM_EXACT lam_exact_blend lam_exact_blend_of(float lse_old, float lse_new, double eps)
{
    const float top = lse_old > lse_new ? lse_old : lse_new;
    lam_exact_blend mix = {0.0f, 1.0f, top}; /* a slot that never attended to anything */
    if (lam_exact_bits(top) == (int32_t)0xff800000)
        return mix;
    const double s_old = lam_exact_exp_inline(LAM_DADD((double)lse_old, -(double)top));
    const double s_new = lam_exact_exp_inline(LAM_DADD((double)lse_new, -(double)top));
    const double both = LAM_DADD(s_old, s_new), sum = LAM_DADD(both, eps);
    mix.alpha = (float)LAM_DDIV(s_old, sum);
    mix.rest = (float)LAM_DDIV(LAM_DADD(s_new, eps), sum);
    mix.lse = (float)LAM_DADD((double)top, lam_exact_log_inline(both));
    return mix;
}

#endif
