/* encoding.h -- why one encoding for both directions is unstable: Appendix B in numbers, for any width d.
 *
 * For a random x with E x = 0, Var x_k = ss and Cov(x_k, x_l) = sc, and the encoding R(t) of d/2 sines and cosines with
 * frequencies w_k = 10000^(-2k/d), k = 1 .. d/2 as printed, the paper finds
 *
 *   Var(x . R(t)) = d/2 ss + 2 sc g(t),     g(t) = sum over k != l of sin(w_k t) cos(w_l t)
 *
 * g is odd, with slope of the order d^2 at 0: no sc keeps the variance small for both signs of t.  The printed sum
 * leaves out the pairs sine-sine, cosine-cosine and those of one frequency; with all of them
 *
 *   Var(x . R(t)) = d/2 (ss - sc) + sc (S + C)^2,    S = sum sin(w_k t), C = sum cos(w_k t)
 *
 * whose odd part, 2 sc S C, is what the argument is about. */
#ifndef LAM_MEASURE_ENCODING_H
#define LAM_MEASURE_ENCODING_H

/* d is even and at least 2. */
double lam_encoding_g(int d, double t);

/* The slope of g at 0: exactly, as the paper approximates it (gamma_d), and for large d. */
double lam_encoding_slope(int d);
double lam_encoding_gamma(int d);
double lam_encoding_gamma_large(int d);

/* Var(x . R(t)) as a multiple of d/2 ss, for sc = rho ss: as printed, and with all pairs. */
double lam_encoding_variance(int d, double t, double rho);
double lam_encoding_variance_all(int d, double t, double rho);

#endif
