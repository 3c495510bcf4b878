/* ref/continuous.c -- the specification of a memory in continuous time: the gate that smooths what enters it,
 * attention by a Gaussian density, and sampling where attention was. */
#include "ops/ref/ref.h"

#include <assert.h>
#include <math.h>

static const double tau = 6.283185307179586476925;

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* log(1 + exp(x)) without overflow. */
static double softplus(double x)
{
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

void lam_ref_gate_fwd(lam_dev *dev, const lam_gate *a)
{
    (void)dev;
    for (size_t i = 0; i < (size_t)a->rows * (size_t)a->ld; i++) {
        const double g = sigmoid(((const double *)a->pre)[i]), x = ((const double *)a->in)[i];
        ((double *)a->out)[i] = i % (size_t)a->ld < (size_t)a->width ? x * g : 0.0;
    }
}

/* fwd was out = in g with g = sigmoid(pre). */
void lam_ref_gate_bwd(lam_dev *dev, const lam_gate *a)
{
    (void)dev;
    for (size_t i = 0; i < (size_t)a->rows * (size_t)a->ld; i++) {
        const double g = sigmoid(((const double *)a->pre)[i]), x = ((const double *)a->in)[i];
        const double d = ((const double *)a->dout)[i] * x * g * (1.0 - g);
        ((double *)a->dpre)[i] = i % (size_t)a->ld < (size_t)a->width ? d : 0.0;
    }
}

/* N(x; 0, S). */
static double normal_density(double x, double S)
{
    return exp(-x * x / (2.0 * S)) / sqrt(tau * S);
}

/* One query of one head. */
typedef struct query {
    size_t b, h, i;
    const double *q, *pull_mu, *pull_var;
    double *mu, *var;
    size_t r; /* where its row of r begins */
} query;

static query query_at(const lam_density *a, size_t b, size_t h, size_t i)
{
    const size_t at = h * (size_t)a->K, H = (size_t)a->H, HK = H * (size_t)a->K;
    return (query){.b = b,
                   .h = h,
                   .i = i,
                   .q = lam_ref_row(a->q, a->ldq, b, i) + at,
                   .pull_mu = lam_ref_row(a->pull, HK, b, 0) + at,
                   .pull_var = lam_ref_row(a->pull, HK, b, 1) + at,
                   .mu = lam_ref_row(a->mu, H, b, i) + h,
                   .var = lam_ref_row(a->var, H, b, i) + h,
                   .r = ((b * H + h) * (size_t)a->queries + i) * a->ldr};
}

static void forward_query(const lam_density *a, const query *x)
{
    const double *centre = a->centre, *width = a->width;
    double *r = (double *)a->r + x->r, to_mu = 0.0, to_var = 0.0;
    for (int c = 0; c < a->K; c++) {
        to_mu += x->q[c] * x->pull_mu[c];
        to_var += x->q[c] * x->pull_var[c];
    }
    *x->mu = sigmoid(a->scale * to_mu);
    *x->var = fmax(softplus(a->scale * to_var), a->var_min);
    for (int j = 0; j < a->basis; j++)
        r[j] = normal_density(*x->mu - centre[j], *x->var + width[j] * width[j]);
}

/* fwd was var = log(1 + e^s), whose slope sigmoid(s) is 1 - e^-var. */
static void backward_query(const lam_density *a, const query *x)
{
    const size_t H = (size_t)a->H, HK = H * (size_t)a->K, at = x->h * (size_t)a->K;
    const double *centre = a->centre, *width = a->width, *dr = (const double *)a->dr + x->r;
    const double mu = *x->mu, var = *x->var, ratio = var / a->prior;
    double dmu = 0.0, dvar = a->grad_scale * a->weight * 0.5 * (1.0 / a->prior - 1.0 / var);
    for (int j = 0; j < a->basis; j++) {
        const double d = mu - centre[j], S = var + width[j] * width[j];
        const double r = normal_density(d, S);
        dmu -= dr[j] * r * d / S;
        dvar += dr[j] * r * (d * d / S - 1.0) / (2.0 * S);
    }
    lam_ref_row(a->kl, H, x->b, x->i)[x->h] = a->weight * 0.5 * (ratio - log(ratio) - 1.0);

    const double to_mu = a->scale * dmu * mu * (1.0 - mu);
    const double to_var = var <= a->var_min ? 0.0 : a->scale * dvar * -expm1(-var);
    double *dq = lam_ref_row(a->dq, a->ldq, x->b, x->i) + at;
    double *dpull_mu = lam_ref_row(a->dpull, HK, x->b, 0) + at;
    double *dpull_var = lam_ref_row(a->dpull, HK, x->b, 1) + at;
    for (int c = 0; c < a->K; c++) {
        dq[c] += to_mu * x->pull_mu[c] + to_var * x->pull_var[c];
        dpull_mu[c] += to_mu * x->q[c];
        dpull_var[c] += to_var * x->q[c];
    }
}

static void each_query(const lam_density *a, void (*visit)(const lam_density *, const query *))
{
    for (size_t b = 0; b < (size_t)a->B; b++)
        for (size_t h = 0; h < (size_t)a->H; h++)
            for (size_t i = 0; i < (size_t)a->queries; i++) {
                const query x = query_at(a, b, h, i);
                visit(a, &x);
            }
}

void lam_ref_density_fwd(lam_dev *dev, const lam_density *a)
{
    (void)dev;
    each_query(a, forward_query);
}

void lam_ref_density_bwd(lam_dev *dev, const lam_density *a)
{
    (void)dev;
    const size_t HK = (size_t)a->H * (size_t)a->K;
    for (size_t b = 0; b < (size_t)a->B; b++)
        for (size_t c = 0; c < 2 * HK; c++)
            lam_ref_row(a->dpull, HK, b, 0)[c] = 0.0;
    each_query(a, backward_query);
}

/* Phi, the standard normal distribution. */
static double below(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

static double edge_mass(const lam_sticky_samples *a, size_t b, int d)
{
    const double at = d == 0 ? -1e-6 : d == a->bins ? 1.0 + 1e-6 : (double)d / a->bins;
    const double *mu = lam_ref_row(a->mu, 1, b, 0), *var = lam_ref_row(a->var, 1, b, 0);
    double sum = 0.0;
    for (size_t k = 0; k < (size_t)a->rows * (size_t)a->H; k++)
        sum += below((at - mu[k]) / sqrt(var[k]));
    return sum;
}

void lam_ref_sticky(lam_dev *dev, const lam_sticky_samples *a)
{
    (void)dev;
    assert(a->bins >= 1);
    const double *centre = a->centre, *width = a->width;
    for (size_t b = 0; b < (size_t)a->B; b++) {
        double *edge = (double *)a->edge + b * ((size_t)a->bins + 1);
        for (int d = 0; d <= a->bins; d++)
            edge[d] = edge_mass(a, b, d);
        for (size_t m = 0, d = 0; m < (size_t)a->samples; m++) {
            const double share = ((const double *)a->draws)[m];
            const double mass = edge[0] + share * (edge[a->bins] - edge[0]);
            while (d + 1 < (size_t)a->bins && edge[d + 1] <= mass)
                d++;
            const double room =
                edge[d + 1] - edge[d]; /* 0: all of the mass is below, by rounding */
            const double into = a->within && room > 0.0 ? (mass - edge[d]) / room : 0.0;
            const double place = ((double)d + into) / a->bins;
            double *psi = (double *)a->psi + (b * (size_t)a->samples + m) * a->ld;
            for (int j = 0; j < a->basis; j++)
                psi[j] = normal_density(place - centre[j], width[j] * width[j]);
        }
    }
}
