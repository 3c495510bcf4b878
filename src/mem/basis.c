/* basis.c -- see basis.h. */
#include "mem/basis.h"

#include <math.h>
#include <stdlib.h>

lam_bump lam_basis_bump(const lam_infinite *its, int j)
{
    const int widths = its->ltm_widths.n, centres = its->ltm_basis / widths;
    return (lam_bump){centres > 1 ? (double)(j / widths) / (centres - 1) : 0.5,
                      its->ltm_widths.v[j % widths]};
}

double lam_bump_at(lam_bump bump, double t)
{
    const double x = (t - bump.centre) / bump.width, root_tau = 2.5066282746310002;
    return exp(-0.5 * x * x) / (bump.width * root_tau);
}

double lam_basis_sample(const lam_infinite *its, int m)
{
    return (double)(m + 1) / its->ltm_samples;
}

/* A = F F^T + ridge I, lower half, then its Cholesky factor in place. */
static void factor(double *A, const double *F, size_t N, size_t P, double ridge)
{
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = i == j ? ridge : 0.0;
            for (size_t p = 0; p < P; p++)
                sum += F[i * P + p] * F[j * P + p];
            A[i * N + j] = sum;
        }
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = A[i * N + j];
            for (size_t k = 0; k < j; k++)
                sum -= A[i * N + k] * A[j * N + k];
            A[i * N + j] = i == j ? sqrt(sum) : sum / A[j * N + j];
        }
}

/* x = (L L^T)^-1 x in place. */
static void solve(const double *L, double *x, size_t N)
{
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= L[i * N + k] * x[k];
        x[i] /= L[i * N + i];
    }
    for (size_t i = N; i-- > 0;) {
        for (size_t k = i + 1; k < N; k++)
            x[i] -= L[k * N + i] * x[k];
        x[i] /= L[i * N + i];
    }
}

/* Rows of G for the first `kept` of `places` places. */
static lam_status fit(double *G, const lam_infinite *its, const double *at, size_t places,
                      size_t kept)
{
    const size_t N = (size_t)its->ltm_basis;
    double *F = malloc(N * places * sizeof *F), *A = malloc(N * N * sizeof *A);
    lam_status status = F && A ? LAM_OK
                               : lam_fail(LAM_ERR_MEMORY,
                                          "long-term memory: no memory for %zu "
                                          "basis functions at %zu places",
                                          N, places);
    if (status == LAM_OK) {
        for (size_t j = 0; j < N; j++)
            for (size_t p = 0; p < places; p++)
                F[j * places + p] = lam_bump_at(lam_basis_bump(its, (int)j), at[p]);
        factor(A, F, N, places, its->ltm_ridge);
        for (size_t p = 0; p < kept; p++) {
            for (size_t j = 0; j < N; j++)
                G[p * N + j] = F[j * places + p];
            solve(A, G + p * N, N);
        }
    }
    free(F);
    free(A);
    return status;
}

/* The data's places first, then those beyond [0, 1], whose data are zeros. */
lam_status lam_basis_first(double *G, const lam_infinite *its, int block)
{
    const int L = block, beyond = its->ltm_padding ? L / 2 : 0;
    double *at = malloc(2 * (size_t)L * sizeof *at);
    if (!at)
        return lam_fail(LAM_ERR_MEMORY, "long-term memory: no memory for a block of %d", L);
    size_t n = 0;
    for (int k = 0; k < L; k++)
        at[n++] = (k + 0.5) / L;
    for (int k = -beyond; k < L + beyond; k++)
        if (k < 0 || k >= L)
            at[n++] = (k + 0.5) / L;
    const lam_status status = fit(G, its, at, n, (size_t)L);
    free(at);
    return status;
}

/* The grid beyond [0, 1] has 2 (M + L) points over [-1/2 + s, 3/2 - s] with s = 1 / (2 L + M): so the code. */
lam_status lam_basis_update(double *G, const lam_infinite *its, int block)
{
    const int M = its->ltm_samples, L = block, grid = 2 * (M + L);
    const double tau = its->ltm_tau, s = 1.0 / (2.0 * L + M), step = (2.0 - 2.0 * s) / (grid - 1);
    double *at = malloc(3 * (size_t)(M + L) * sizeof *at);
    if (!at)
        return lam_fail(LAM_ERR_MEMORY, "long-term memory: no memory for %d samples", M);
    size_t n = 0;
    for (int m = 0; m < M; m++)
        at[n++] = tau * lam_basis_sample(its, m);
    for (int i = 1; i <= L; i++)
        at[n++] = tau + (1.0 - tau) * i / L;
    for (int i = 0; its->ltm_padding && i < grid; i++) {
        const double t = -0.5 + s + step * i;
        if (t < 0.0 || t > 1.0)
            at[n++] = t;
    }
    const lam_status status = fit(G, its, at, n, (size_t)(M + L));
    free(at);
    return status;
}
