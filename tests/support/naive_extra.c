/* naive_extra.c -- what compressed and continuous memories and Muon need, as naive float32 loops. */
#include "support/naive.h"

#include <math.h>

void lam_naive_pool(lam_dev *dev, const lam_pool *a)
{
    (void)dev;
    for (int r = 0; r < a->rows; r++)
        for (int c = 0; c < a->ld; c++) {
            const float *in = (const float *)a->in + (size_t)(r * a->group * a->ld + c);
            float x = in[0];
            for (int i = 1; i < a->group; i++) {
                const float next = in[i * a->ld];
                x = a->kind == LAM_MEAN ? x + next : fmaxf(x, next);
            }
            x = a->kind == LAM_MEAN ? x / (float)a->group : x;
            ((float *)a->out)[r * a->ld + c] = c < a->width ? x : 0.0f;
        }
}

void lam_naive_distance(lam_dev *dev, const lam_distance *a)
{
    (void)dev;
    for (int r = 0; r < a->rows; r++) {
        float sum = 0.0f;
        for (int c = 0; c < a->ld; c++) {
            const int i = r * a->ld + c;
            const float apart =
                c < a->width ? ((const float *)a->a)[i] - ((const float *)a->b)[i] : 0.0f;
            sum += apart * apart;
            ((float *)a->d)[i] = 2.0f * (float)a->weight * (float)a->scale * apart;
        }
        ((float *)a->sum)[r] = (float)a->weight * sum;
    }
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

void lam_naive_gate_fwd(lam_dev *dev, const lam_gate *a)
{
    (void)dev;
    for (int i = 0; i < a->rows * a->ld; i++) {
        const float g = sigmoid(((const float *)a->pre)[i]);
        ((float *)a->out)[i] = i % a->ld < a->width ? ((const float *)a->in)[i] * g : 0.0f;
    }
}

void lam_naive_gate_bwd(lam_dev *dev, const lam_gate *a)
{
    (void)dev;
    for (int i = 0; i < a->rows * a->ld; i++) {
        const float g = sigmoid(((const float *)a->pre)[i]), d = ((const float *)a->dout)[i];
        const float slope = ((const float *)a->in)[i] * g * (1.0f - g);
        ((float *)a->dpre)[i] = i % a->ld < a->width ? d * slope : 0.0f;
    }
}

static float bump(float d, float S)
{
    return expf(-d * d / (2.0f * S)) / sqrtf(6.28318531f * S);
}

/* Forward, or backward from mu and var as they are, of all queries of one head. */
static void density_head(const lam_density *a, int b, int h, int backward)
{
    const float *centre = a->centre, *width = a->width;
    float *pull = (float *)a->pull.p + (size_t)b * a->pull.step + h * a->K;
    float *dpull = backward ? (float *)a->dpull.p + (size_t)b * a->dpull.step + h * a->K : NULL;
    const int HK = a->H * a->K;
    for (int c = 0; backward && c < a->K; c++)
        dpull[c] = dpull[HK + c] = 0.0f;
    for (int i = 0; i < a->queries; i++) {
        const float *q = (float *)a->q.p + (size_t)b * a->q.step + (size_t)i * a->ldq + h * a->K;
        float *mu = (float *)a->mu.p + (size_t)b * a->mu.step + i * a->H + h;
        float *var = (float *)a->var.p + (size_t)b * a->var.step + i * a->H + h;
        const size_t row = (size_t)((b * a->H + h) * a->queries + i) * a->ldr;
        if (!backward) {
            float x = 0.0f, y = 0.0f;
            for (int c = 0; c < a->K; c++) {
                x += q[c] * pull[c];
                y += q[c] * pull[HK + c];
            }
            y *= (float)a->scale;
            *mu = sigmoid((float)a->scale * x);
            *var = fmaxf(y > 0.0f ? y + logf(1.0f + expf(-y)) : log1pf(expf(y)), (float)a->var_min);
            for (int j = 0; j < a->basis; j++)
                ((float *)a->r)[row + (size_t)j] =
                    bump(*mu - centre[j], *var + width[j] * width[j]);
            continue;
        }
        const float kl = (float)(a->grad_scale * a->weight), prior = (float)a->prior;
        float dmu = 0.0f, dvar = kl * 0.5f * (1.0f / prior - 1.0f / *var);
        for (int j = 0; j < a->basis; j++) {
            const float d = *mu - centre[j], S = *var + width[j] * width[j];
            const float g = ((const float *)a->dr)[row + (size_t)j] * bump(d, S);
            dmu -= g * d / S;
            dvar += g * (d * d / S - 1.0f) / (2.0f * S);
        }
        const float to_mu = (float)a->scale * dmu * *mu * (1.0f - *mu);
        const float to_var =
            *var <= (float)a->var_min ? 0.0f : (float)a->scale * dvar * -expm1f(-*var);
        float *dq = (float *)a->dq.p + (size_t)b * a->dq.step + (size_t)i * a->ldq + h * a->K;
        for (int c = 0; c < a->K; c++) {
            dq[c] += to_mu * pull[c] + to_var * pull[HK + c];
            dpull[c] += to_mu * q[c];
            dpull[HK + c] += to_var * q[c];
        }
        ((float *)a->kl.p)[(size_t)b * a->kl.step + (size_t)(i * a->H + h)] =
            (float)a->weight * 0.5f * (*var / prior - logf(*var / prior) - 1.0f);
    }
}

static void density(const lam_density *a, int backward)
{
    for (int b = 0; b < a->B; b++)
        for (int h = 0; h < a->H; h++)
            density_head(a, b, h, backward);
}

void lam_naive_density_fwd(lam_dev *dev, const lam_density *a)
{
    (void)dev;
    density(a, 0);
}

void lam_naive_density_bwd(lam_dev *dev, const lam_density *a)
{
    (void)dev;
    density(a, 1);
}

void lam_naive_sticky(lam_dev *dev, const lam_sticky_samples *a)
{
    (void)dev;
    for (int b = 0; b < a->B; b++) {
        float *edge = (float *)a->edge + b * (a->bins + 1);
        for (int d = 0; d <= a->bins; d++) {
            const float at = d == 0         ? -1e-6f
                             : d == a->bins ? 1.0f + 1e-6f
                                            : (float)d / (float)a->bins;
            edge[d] = 0.0f;
            for (int k = 0; k < a->rows * a->H; k++) {
                const float mu = ((float *)a->mu.p)[(size_t)b * a->mu.step + (size_t)k];
                const float var = ((float *)a->var.p)[(size_t)b * a->var.step + (size_t)k];
                edge[d] += 0.5f * erfcf(-0.707106781f * (at - mu) / sqrtf(var));
            }
        }
        for (int m = 0; m < a->samples; m++) {
            const float draw = ((const float *)a->draws)[m];
            const float mass = edge[0] + draw * (edge[a->bins] - edge[0]);
            int d = 0;
            while (d + 1 < a->bins && edge[d + 1] <= mass)
                d++;
            const float room = edge[d + 1] - edge[d];
            const float into = a->within && room > 0.0f ? (mass - edge[d]) / room : 0.0f;
            const float place = ((float)d + into) / (float)a->bins;
            float *psi = (float *)a->psi + (size_t)(b * a->samples + m) * a->ld;
            for (int j = 0; j < a->basis; j++) {
                const float width = ((const float *)a->width)[j];
                psi[j] = bump(place - ((const float *)a->centre)[j], width * width);
            }
        }
    }
}

void lam_naive_ortho_begin(lam_dev *dev, const lam_ortho_begin *a)
{
    (void)dev;
    const float norm = *(const float *)a->norm, beta = (float)a->beta;
    const float clip = a->clip == 0.0 ? INFINITY : (float)a->clip / (norm + 1e-6f);
    for (int k = 0; k < a->count; k++) {
        float *x = (float *)a->x + (size_t)k * a->size, *m = (float *)a->m + a->offset[k];
        double sum = 0.0; /* in double on every back-end */
        for (size_t i = 0; i < a->size; i++) {
            const float g =
                ((const float *)a->grad)[a->offset[k] + i] * (clip < 1.0f ? clip : 1.0f);
            if (isfinite(norm))
                m[i] = beta * m[i] + g;
            x[i] = isfinite(norm) ? g + beta * m[i] : 0.0f;
            sum += (double)x[i] * (double)x[i];
        }
        for (size_t i = 0; i < a->size && sum > 0.0; i++)
            x[i] /= (float)sqrt(sum);
    }
}

void lam_naive_ortho_mix(lam_dev *dev, const lam_ortho_mix *a)
{
    (void)dev;
    for (int i = 0; i < a->count * a->n * a->n; i++) {
        const int row = i / a->n % a->n, col = i % a->n;
        const float mixed =
            (float)a->b * ((const float *)a->A)[i] + (float)a->c * ((const float *)a->P)[i];
        ((float *)a->q)[i] = row == col ? (float)a->a + mixed : mixed;
    }
}

void lam_naive_ortho_even(lam_dev *dev, const lam_ortho_even *a)
{
    (void)dev;
    for (int row = 0; row < a->count * a->rows; row++) {
        float *x = (float *)a->x + a->offset[row / a->rows] + row % a->rows * a->cols;
        double sum = 0.0; /* in double on every back-end */
        for (int i = 0; i < a->cols; i++)
            sum += (double)x[i] * (double)x[i];
        const double stretch =
            a->length < LAM_EVEN_MOST * sqrt(sum) ? a->length / sqrt(sum) : LAM_EVEN_MOST;
        for (int i = 0; i < a->cols; i++)
            x[i] *= (float)stretch;
    }
}
