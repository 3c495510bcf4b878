/* gradient_test.c -- the gradient of whole models, by central differences on the reference.
 *
 * Memory is a constant between segments, so the state is built with the unchanged parameters and only the
 * last segment is repeated with a changed one.  Dropout stays on: its masks are functions of the
 * step, not of the call. */
#include "model/stack.h"

#include "support/suite.h"
#include "support/toy.h"

#include "core/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, PROBES = 4 };

typedef struct model_case {
    const char *memory;
    int attn_type, B, N, M;
    int pre_lnorm, same_length, clamp_len;
    int n_cutoffs, div_val, d_embed, tie_weight;
    double dropout, dropatt, eps;
    lam_alpha alpha;
    int score; /* rows of each stream whose loss counts; 0: all */
} model_case;

static const model_case cases[] = {
    {"none", 0, 2, 5, 0, 0, 0, 0, 0, 1, 0, 1, 0.0, 0.0, 1e-6, 0, 0},
    {"none", 1, 1, 4, 0, 1, 0, 0, 0, 1, 0, 0, 0.2, 0.1, 1e-6, 0, 0},
    {"none", 2, 2, 4, 0, 0, 0, 0, 0, 1, 0, 1, 0.2, 0.1, 1e-6, 0, 0},
    {"xl", 0, 2, 4, 4, 0, 0, 0, 0, 1, 0, 1, 0.2, 0.2, 1e-6, 0, 0},
    {"xl", 0, 1, 3, 8, 1, 1, 4, 2, 1, 6, 1, 0.0, 0.0, 1e-6, 0, 0},
    {"xl", 1, 2, 5, 3, 0, 0, 0, 2, 2, 0, 1, 0.1, 0.0, 1e-6, 0, 0},
    {"compressive", 0, 2, 4, 4, 0, 0, 0, 0, 1, 0, 1, 0.2, 0.2, 1e-6, 0, 0},
    {"compressive", 0, 2, 5, 3, 1, 1, 0, 2, 1, 0, 1, 0.0, 0.0, 1e-6, 0, 0},
    {"compressive pad thirds", 0, 2, 4, 5, 1, 0, 4, 0, 1, 0, 1, 0.1, 0.0, 1e-6, 0, 0},
    {"compressive carry thirds", 0, 2, 4, 5, 0, 0, 0, 0, 1, 0, 1, 0.0, 0.0, 1e-6, 0, 0},
    {"compressive pad thirds", 0, 1, 4, 1, 0, 0, 0, 0, 1, 0, 1, 0.0, 0.0, 1e-6, 0, 0},
    {"compressive max", 0, 1, 4, 4, 0, 0, 0, 0, 1, 0, 1, 0.0, 0.0, 1e-6, 0, 0},
    {"infinite", 0, 2, 4, 4, 0, 0, 0, 0, 1, 0, 1, 0.2, 0.2, 1e-6, 0, 0},
    {"infinite share", 0, 2, 4, 3, 1, 1, 0, 2, 1, 0, 1, 0.0, 0.0, 1e-6, 0, 0},
    {"infinite sticky slow", 0, 2, 3, 3, 0, 0, 4, 0, 1, 0, 1, 0.1, 0.0, 1e-6, 0, 0},
    {"lamemo", 3, 2, 4, 4, 0, 0, 0, 0, 1, 0, 1, 0.0, 0.0, 1e-6, 0, 0},
    {"lamemo", 3, 2, 4, 4, 0, 0, 0, 0, 1, 0, 1, 0.2, 0.2, 1e-2, 0, 0},
    {"lamemo", 3, 1, 5, 2, 0, 0, 0, 2, 1, 0, 1, 0.1, 0.0, 0.0, 0, 0},
    {"lamemo", 3, 1, 3, 11, 1, 0, 5, 2, 2, 0, 0, 0.1, 0.1, 1e-6, 0, 0},
    {"lamemo", 31, 2, 4, 6, 0, 1, 3, 0, 1, 5, 1, 0.0, 0.0, 1e-6, 0, 0},
    {"lamemo", 32, 2, 3, 6, 0, 0, 0, 0, 1, 0, 1, 0.1, 0.0, 1e-2, 0, 0},
    {"lamemo", 33, 2, 4, 6, 1, 0, 0, 0, 1, 0, 1, 0.1, 0.1, 1e-6, 0, 0},
    {"lamemo", 3, 2, 4, 6, 0, 0, 0, 0, 1, 0, 1, 0.1, 0.0, 1e-6, LAM_ALPHA_ZERO, 0},
    {"lamemo", 3, 2, 4, 6, 0, 0, 0, 0, 1, 0, 1, 0.1, 0.0, 1e-6, LAM_ALPHA_ONE, 0},
    {"lamemo", 3, 1, 1, 3, 0, 0, 0, 0, 1, 0, 1, 0.0, 0.0, 1e-6, 0, 0},
    {"xl", 0, 2, 4, 4, 0, 0, 0, 2, 1, 0, 1, 0.2, 0.2, 1e-6, 0, 2},
    {"compressive", 0, 2, 4, 4, 1, 0, 0, 0, 1, 0, 1, 0.2, 0.2, 1e-6, 0, 2},
    {"lamemo", 3, 2, 4, 4, 0, 0, 0, 0, 1, 0, 1, 0.2, 0.2, 1e-2, 0, 1},
};
enum { CASES = sizeof cases / sizeof *cases };

static lam_config config_of(const model_case *c)
{
    lam_config cfg = toy_config(c->memory, c->attn_type, c->N, c->M);
    cfg.n_layer = 3; /* the middle one has gradient through memory rows on both sides */
    cfg.d_head = 3;  /* H * K is not D */
    cfg.pre_lnorm = c->pre_lnorm;
    cfg.same_length = c->same_length;
    cfg.clamp_len = c->clamp_len;
    cfg.n_cutoffs = c->n_cutoffs;
    cfg.cutoffs[0] = 4;
    cfg.cutoffs[1] = 9;
    cfg.div_val = c->div_val;
    cfg.d_embed = c->d_embed;
    cfg.tie_weight = c->tie_weight;
    cfg.dropout = c->dropout;
    cfg.dropatt = c->dropatt;
    cfg.interp_eps = c->eps;
    cfg.alpha = c->alpha;
    return cfg;
}

typedef struct batch {
    int32_t in[MOST], out[MOST];
    int score;
} batch;

static const lam_noise noise = {.on = 1, .seed = 11, .step = 3};

typedef struct losses {
    double nll, aux;
} losses;

/* The losses of one segment, summed over its tokens. */
static losses losses_of(toy *t, const batch *data, int n)
{
    double nll[MOST];
    losses sum = {0};
    lam_stack_begin(t->stack, n, noise);
    lam_stack_score(t->stack, data->score);
    lam_stack_forward(t->stack, data->in, n);
    lam_stack_loss(t->stack, data->out, 1.0);
    ck_assert(lam_stack_nll(t->stack, nll) == LAM_OK);
    for (int i = 0; i < t->B * (data->score > 0 ? data->score : n); i++)
        sum.nll += nll[i];
    lam_stack_backward(t->stack);
    ck_assert(lam_stack_aux(t->stack, &sum.aux) == LAM_OK);
    return sum;
}

/* What parameter `name` learns from.  Reconstruction is the convolution's affair alone: everything else is a
 * constant to it, so that the difference of both losses would not be the gradient. */
static double loss_of(toy *t, const batch *data, int n, const char *name)
{
    const losses sum = losses_of(t, data, n);
    if (strcmp(t->model->cfg.memory, "compressive") != 0)
        return sum.nll + sum.aux;
    return strstr(name, "compress") ? sum.aux : sum.nll;
}

static void set_one(lam_params *p, int i, double *host, size_t k, double value)
{
    host[k] = value;
    ck_assert(lam_params_set(p, p->master, i, host) == LAM_OK);
}

/* Compares a few elements of parameter i with central differences. */
static void check_param(toy *t, int i, const void *grads, const batch *data, int n, lam_rng *rng)
{
    lam_params *p = &t->model->params;
    const size_t count = lam_param_count(&p->list[i]);
    double *host = malloc(count * sizeof *host), *grad = malloc(count * sizeof *grad);
    double top = 0.0;
    ck_assert(lam_params_get(p, p->master, i, host) == LAM_OK);
    ck_assert(lam_params_get(p, grads, i, grad) == LAM_OK);
    for (size_t k = 0; k < count; k++)
        top = fmax(top, fabs(grad[k]));
    for (int probe = 0; probe < PROBES; probe++) {
        const size_t k = (size_t)lam_rng_below(rng, count);
        const double x = host[k], h = 1e-5;
        set_one(p, i, host, k, x + h);
        const double above = loss_of(t, data, n, p->list[i].name);
        set_one(p, i, host, k, x - h);
        const double below = loss_of(t, data, n, p->list[i].name);
        set_one(p, i, host, k, x);
        const double want = (above - below) / (2.0 * h);
        ck_assert_msg(fabs(grad[k] - want) <= 1e-6 * fmax(top, 1.0), "%s[%zu]: %.10g, wants %.10g",
                      p->list[i].name, k, grad[k], want);
    }
    free(host);
    free(grad);
}

START_TEST(the_gradient_is_the_gradient)
{
    const model_case *c = &cases[_i];
    const lam_config cfg = config_of(c);
    toy t =
        toy_open("ref", &cfg, &(lam_stack_options){.B = c->B, .N = c->N, .M = c->M, .train = 1}, 1);
    lam_params *p = &t.model->params;
    lam_rng rng = {.key = (uint64_t)(100 + _i)};
    batch data = {.score = c->score};
    double *grads = malloc(p->total * sizeof *grads); /* of the unchanged parameters */
    ck_assert_ptr_nonnull(grads);
    printf("case %d, seed %d\n", _i, 100 + _i);
    /* A long-term memory is there from the third segment on and changes from the fourth on. */
    const int segments = strcmp(t.model->cfg.memory, "infinite") == 0 ? 6 : 3;
    for (int s = 0; s < segments; s++) {
        /* the last segment is shorter than the others where it can be */
        const int n = s == segments - 1 && c->N > 2 ? c->N - 1 : c->N;
        toy_tokens(data.in, (size_t)(c->B * n), 13, (uint64_t)(200 + s));
        toy_tokens(data.out, (size_t)(c->B * n), 13, (uint64_t)(300 + s));
        t.dev->ops->zero(t.dev, p->grad, p->total * sizeof(double));
        losses_of(&t, &data, n);
        memcpy(grads, p->grad, p->total * sizeof *grads); /* ref's memory is the host's */
        if (s > segments - 3 || c->M == 0)
            for (int i = 0; i < p->n; i++)
                check_param(&t, i, grads, &data, n, &rng);
        losses_of(&t, &data, n); /* what commit keeps comes from the unchanged parameters */
        lam_stack_commit(t.stack);
    }
    free(grads);
    toy_close(&t);
}
END_TEST

/* All gradients of one segment after a warm-up segment, flat. */
static double *flat_gradient(toy *t, const int32_t *in, const int32_t *out, int n)
{
    lam_params *p = &t->model->params;
    double *flat = malloc(p->total * sizeof *flat);
    ck_assert_ptr_nonnull(flat);
    lam_stack_reset(t->stack);
    for (int s = 0; s < 2; s++) {
        t->dev->ops->zero(t->dev, p->grad, p->total * sizeof(double));
        lam_stack_begin(t->stack, n, (lam_noise){0});
        lam_stack_forward(t->stack, in, n);
        lam_stack_loss(t->stack, out, 1.0);
        lam_stack_backward(t->stack);
        lam_stack_commit(t->stack);
    }
    ck_assert(t->dev->ops->download(t->dev, flat, p->grad, p->total * sizeof *flat) == LAM_OK);
    return flat;
}

START_TEST(two_half_batches_make_the_whole)
{
    lam_config cfg = config_of(&cases[_i]);
    const int N = cases[_i].N;
    cfg.dropout = cfg.dropatt = 0.0; /* masks are numbered through the batch */
    lam_stack_options opt = {.B = 4, .N = N, .M = cases[_i].M, .train = 1};
    toy whole = toy_open("ref", &cfg, &opt, 1);
    opt.B = 2;
    toy half = toy_open("ref", &cfg, &opt, 1);
    int32_t in[MOST], out[MOST];
    toy_tokens(in, (size_t)(4 * N), 13, 1);
    toy_tokens(out, (size_t)(4 * N), 13, 2);
    double *all = flat_gradient(&whole, in, out, N), *a = flat_gradient(&half, in, out, N);
    double *b = flat_gradient(&half, in + 2 * N, out + 2 * N, N), top = 0.0;
    const size_t n = whole.model->params.total;
    for (size_t i = 0; i < n; i++)
        top = fmax(top, fabs(all[i]));
    ck_assert_double_gt(top, 0.0);
    for (size_t i = 0; i < n; i++)
        ck_assert_double_eq_tol(all[i], a[i] + b[i], 1e-13 * top);
    free(all);
    free(a);
    free(b);
    toy_close(&whole);
    toy_close(&half);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, the_gradient_is_the_gradient, 0, CASES);
    tcase_add_loop_test(tests, two_half_batches_make_the_whole, 0, CASES);
    return test_run("model/gradient", tests);
}
