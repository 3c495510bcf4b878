/* cpu/continuous.c -- a memory in continuous time: gate, attention by a density, sampling where it was.
 *
 * ref/continuous.c says what is computed.  Bumps go sixteen at a time; a stream's head is one task of backward,
 * so that the sums over its queries have one order.  Distribution functions stay scalar: sampling
 * needs some thousand of them a stream. */
#include "ops/cpu/cpu.h"
#include "ops/cpu/vecmath.h"

static lam_f16v sigmoid16(lam_f16v x)
{
    return lam_div(lam_splat(1.0f), lam_add(lam_splat(1.0f), lam_exp16(lam_neg(x))));
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static float softplus(float x)
{
    return x > 0.0f ? x + log1pf(expf(-x)) : log1pf(expf(x));
}

typedef enum direction { FORWARD, BACKWARD } direction;

static void gate_row(const lam_gate *a, size_t row, direction way)
{
    const size_t ld = (size_t)a->ld, width = (size_t)a->width, at = row * ld;
    const float *in = (const float *)a->in + at, *pre = (const float *)a->pre + at;
    float *out = (float *)(way == FORWARD ? a->out : a->dpre) + at;
    for (size_t c = 0; c < width; c += LAM_VEC) {
        const size_t n = width - c < LAM_VEC ? width - c : LAM_VEC;
        const lam_f16v g = sigmoid16(lam_load_n(pre + c, n)), x = lam_load_n(in + c, n);
        if (way == FORWARD) {
            lam_store_n(out + c, lam_mul(x, g), n);
        } else {
            const lam_f16v d = lam_load_n((const float *)a->dout + at + c, n);
            const lam_f16v slope = lam_mul(g, lam_sub(lam_splat(1.0f), g));
            lam_store_n(out + c, lam_mul(lam_mul(d, x), slope), n);
        }
    }
    if (ld > width)
        memset(out + width, 0, (ld - width) * sizeof *out);
}

static void gate(lam_dev *dev, const lam_gate *a, direction way)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t rows = (size_t)a->rows;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, rows *(size_t)a->ld)) schedule(static)
    for (size_t row = 0; row < rows; row++)
        gate_row(a, row, way);
}

void lam_cpu_gate_fwd(lam_dev *dev, const lam_gate *a)
{
    gate(dev, a, FORWARD);
}

void lam_cpu_gate_bwd(lam_dev *dev, const lam_gate *a)
{
    gate(dev, a, BACKWARD);
}

/* Sixteen bumps at mean mu and variance var: d, 1 / S and r. */
typedef struct bumps {
    lam_f16v d, inverse, r;
} bumps;

LAM_INLINE bumps bumps_at(const float *centre, const float *width, float mu, float var, size_t n)
{
    const lam_f16v w = lam_load_n(width, n), d = lam_sub(lam_splat(mu), lam_load_n(centre, n));
    const lam_f16v S = lam_fma(w, w, lam_splat(var)); /* lanes beyond n: var, harmless */
    float root[LAM_VEC];
    lam_store(root, S);
    for (int i = 0; i < LAM_VEC; i++)
        root[i] = sqrtf(6.28318531f * root[i]);
    const lam_f16v inverse = lam_div(lam_splat(1.0f), S);
    const lam_f16v square = lam_mul(lam_mul(lam_splat(-0.5f), d), d);
    const lam_f16v r = lam_div(lam_exp16(lam_mul(square, inverse)), lam_load(root));
    return (bumps){d, inverse, r};
}

/* One query of one head. */
typedef struct query {
    const float *q, *pull_mu, *pull_var;
    float *mu, *var;
    size_t r;
} query;

static query query_at(const lam_density *a, size_t b, size_t h, size_t i)
{
    const size_t at = h * (size_t)a->K, H = (size_t)a->H, HK = H * (size_t)a->K;
    return (query){.q = lam_cpu_row(a->q, a->ldq, b, i) + at,
                   .pull_mu = lam_cpu_row(a->pull, HK, b, 0) + at,
                   .pull_var = lam_cpu_row(a->pull, HK, b, 1) + at,
                   .mu = lam_cpu_row(a->mu, H, b, i) + h,
                   .var = lam_cpu_row(a->var, H, b, i) + h,
                   .r = ((b * H + h) * (size_t)a->queries + i) * a->ldr};
}

static float dot(const float *x, const float *y, size_t n)
{
    lam_f16v sum = lam_splat(0.0f);
    for (size_t c = 0; c < n; c += LAM_VEC) {
        const size_t k = n - c < LAM_VEC ? n - c : LAM_VEC;
        sum = lam_fma(lam_load_n(x + c, k), lam_load_n(y + c, k), sum);
    }
    return lam_sum16(sum);
}

static void forward_query(const lam_density *a, const query *x)
{
    const size_t K = (size_t)a->K, basis = (size_t)a->basis;
    const float scale = (float)a->scale;
    *x->mu = sigmoid(scale * dot(x->q, x->pull_mu, K));
    *x->var = fmaxf(softplus(scale * dot(x->q, x->pull_var, K)), (float)a->var_min);
    for (size_t j = 0; j < basis; j += LAM_VEC) {
        const size_t n = basis - j < LAM_VEC ? basis - j : LAM_VEC;
        const bumps p =
            bumps_at((const float *)a->centre + j, (const float *)a->width + j, *x->mu, *x->var, n);
        lam_store_n((float *)a->r + x->r + j, p.r, n);
    }
}

void lam_cpu_density_fwd(lam_dev *dev, const lam_density *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t H = (size_t)a->H, n = (size_t)a->queries, all = (size_t)a->B * H * n;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, 16 * all * (size_t)a->basis))               \
    schedule(static)
    for (size_t k = 0; k < all; k++) {
        const query x = query_at(a, k / n / H, k / n % H, k % n);
        forward_query(a, &x);
    }
}

/* What dr and the divergence ask of mu and var. */
typedef struct slopes {
    float mu, var;
} slopes;

static slopes slopes_of(const lam_density *a, const query *x)
{
    const size_t basis = (size_t)a->basis;
    const float var = *x->var;
    lam_f16v dmu = lam_splat(0.0f), dvar = dmu;
    for (size_t j = 0; j < basis; j += LAM_VEC) {
        const size_t n = basis - j < LAM_VEC ? basis - j : LAM_VEC;
        const bumps p =
            bumps_at((const float *)a->centre + j, (const float *)a->width + j, *x->mu, var, n);
        const lam_f16v g =
            lam_mul(lam_mul(lam_load_n((const float *)a->dr + x->r + j, n), p.r), p.inverse);
        const lam_f16v far = lam_sub(lam_mul(lam_mul(p.d, p.d), p.inverse), lam_splat(1.0f));
        dmu = lam_sub(dmu, lam_mul(g, p.d));
        dvar = lam_add(dvar, lam_mul(lam_mul(lam_splat(0.5f), g), far));
    }
    const double prior = a->prior, kl = a->grad_scale * a->weight * 0.5;
    return (slopes){lam_sum16(dmu), lam_sum16(dvar) + (float)(kl * (1.0 / prior - 1.0 / var))};
}

/* y += s x */
static void add_scaled(float *y, const float *x, float s, size_t n)
{
#pragma omp simd
    for (size_t c = 0; c < n; c++)
        y[c] += s * x[c];
}

/* All queries of one head of one stream. */
static void backward_head(const lam_density *a, size_t b, size_t h)
{
    const size_t K = (size_t)a->K, H = (size_t)a->H, HK = H * K, at = h * K;
    float *dpull_mu = lam_cpu_row(a->dpull, HK, b, 0) + at;
    float *dpull_var = lam_cpu_row(a->dpull, HK, b, 1) + at;
    memset(dpull_mu, 0, K * sizeof *dpull_mu);
    memset(dpull_var, 0, K * sizeof *dpull_var);
    for (size_t i = 0; i < (size_t)a->queries; i++) {
        const query x = query_at(a, b, h, i);
        const slopes d = slopes_of(a, &x);
        const float mu = *x.mu, var = *x.var, scale = (float)a->scale;
        const float to_mu = scale * d.mu * mu * (1.0f - mu);
        const float to_var = var <= (float)a->var_min ? 0.0f : scale * d.var * -expm1f(-var);
        float *dq = lam_cpu_row(a->dq, a->ldq, b, i) + at;
        add_scaled(dq, x.pull_mu, to_mu, K);
        add_scaled(dq, x.pull_var, to_var, K);
        add_scaled(dpull_mu, x.q, to_mu, K);
        add_scaled(dpull_var, x.q, to_var, K);
        const double ratio = (double)var / a->prior;
        lam_cpu_row(a->kl, H, b, i)[h] = (float)(a->weight * 0.5 * (ratio - log(ratio) - 1.0));
    }
}

void lam_cpu_density_bwd(lam_dev *dev, const lam_density *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t H = (size_t)a->H, heads = (size_t)a->B * H;
    const size_t work = 16 * heads * (size_t)a->queries * (size_t)a->basis;
#pragma omp parallel for num_threads(lam_cpu_team(cpu, work)) schedule(static)
    for (size_t k = 0; k < heads; k++)
        backward_head(a, k / H, k % H);
}

/* The mass below an edge, summed in double: the differences of neighbours count. */
static float edge_mass(const lam_sticky_samples *a, size_t b, size_t d)
{
    const size_t bins = (size_t)a->bins;
    const double at = d == 0 ? -1e-6 : d == bins ? 1.0 + 1e-6 : (double)d / (double)bins;
    const float *mu = lam_cpu_row(a->mu, 1, b, 0), *var = lam_cpu_row(a->var, 1, b, 0);
    double sum = 0.0;
    for (size_t k = 0; k < (size_t)a->rows * (size_t)a->H; k++)
        sum += 0.5f * erfcf(((float)at - mu[k]) / sqrtf(var[k]) * -0.707106781f);
    return (float)sum;
}

static void sample_stream(const lam_sticky_samples *a, size_t b)
{
    const size_t bins = (size_t)a->bins, basis = (size_t)a->basis;
    const float *edge = (const float *)a->edge + b * (bins + 1), *draws = a->draws;
    for (size_t m = 0, d = 0; m < (size_t)a->samples; m++) {
        const float mass = edge[0] + draws[m] * (edge[bins] - edge[0]);
        while (d + 1 < bins && edge[d + 1] <= mass)
            d++;
        const float room = edge[d + 1] - edge[d]; /* 0: all of the mass is below, by rounding */
        const float into = a->within && room > 0.0f ? (mass - edge[d]) / room : 0.0f;
        const float place = ((float)d + into) / (float)bins;
        float *psi = (float *)a->psi + (b * (size_t)a->samples + m) * a->ld;
        for (size_t j = 0; j < basis; j += LAM_VEC) {
            const size_t n = basis - j < LAM_VEC ? basis - j : LAM_VEC;
            const bumps p =
                bumps_at((const float *)a->centre + j, (const float *)a->width + j, place, 0.0f, n);
            lam_store_n(psi + j, p.r, n);
        }
    }
}

void lam_cpu_sticky(lam_dev *dev, const lam_sticky_samples *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t edges = (size_t)a->bins + 1, B = (size_t)a->B, all = B * edges;
    float *edge = a->edge;
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
    for (size_t k = 0; k < all; k++)
        edge[k] = edge_mass(a, k / edges, k % edges);
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
    for (size_t b = 0; b < B; b++)
        sample_stream(a, b);
}
