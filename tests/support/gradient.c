/* gradient.c -- finite differences and the ref device for tests of ops/ref. */
#include "support/gradient.h"

#include <check.h>
#include <math.h>

lam_dev *test_ref;

void test_ref_open(void)
{
    const lam_work largest = {4, 4, 64, 256, 256, 512, 1024, 256, 0};
    ck_assert_int_eq(lam_ops_ref.open(&test_ref, &(lam_dev_options){0}), LAM_OK);
    ck_assert_int_eq(lam_ops_ref.reserve(test_ref, &largest), LAM_OK);
}

void test_ref_close(void)
{
    lam_ops_ref.close(test_ref);
}

void test_fill(lam_rng *rng, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = lam_rng_normal(rng);
}

double test_dot(const double *a, const double *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double loss_at(double *x, double value, double (*loss)(const void *), const void *user)
{
    const double before = *x;
    *x = value;
    const double result = loss(user);
    *x = before;
    return result;
}

void test_gradient(const char *name, double *x, const double *grad, size_t n,
                   double (*loss)(const void *user), const void *user)
{
    const double h = 1e-3;
    double largest = 0.0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(grad[i]));
    for (size_t i = 0; i < n; i++) {
        const double near =
            loss_at(&x[i], x[i] + h, loss, user) - loss_at(&x[i], x[i] - h, loss, user);
        const double far =
            loss_at(&x[i], x[i] + 2 * h, loss, user) - loss_at(&x[i], x[i] - 2 * h, loss, user);
        const double slope = (8.0 * near - far) / (12.0 * h);
        const double allowed = 1e-7 * fabs(grad[i]) + 1e-11 * fmax(largest, 1.0);
        ck_assert_msg(fabs(slope - grad[i]) <= allowed,
                      "%s[%zu]: gradient %.12g, differences %.12g, off by %.3g of %.3g", name, i,
                      grad[i], slope, fabs(slope - grad[i]), allowed);
    }
}
