/* gradient.h -- are these numbers the gradient?  Finite differences against ops/ref.
 *
 * The stencil has five points, f' = (8 (f(+h) - f(-h)) - (f(+2h) - f(-2h))) / 12h, so that the error
 * of the differences is far below the 1e-7 asked for: h = 1e-3 leaves about 1e-13 f. */
#ifndef TEST_GRADIENT_H
#define TEST_GRADIENT_H

#include "core/rng.h"
#include "ops/ops.h"

#include <stddef.h>

extern const lam_ops lam_ops_ref;

/* The ref device of the running test: pass both to tcase_add_checked_fixture(). */
extern lam_dev *test_ref;
void test_ref_open(void);
void test_ref_close(void);

/* Fills with normal numbers. */
void test_fill(lam_rng *rng, double *x, size_t n);

/* sum of a[i] * b[i]: a loss whose gradient with respect to b is a. */
double test_dot(const double *a, const double *b, size_t n);

/* Asserts that grad is the gradient of loss(user) with respect to x, which loss reads: every element
 * within 1e-7 of itself, those far below the largest within 1e-11 of the largest. */
void test_gradient(const char *name, double *x, const double *grad, size_t n,
                   double (*loss)(const void *user), const void *user);

#endif
