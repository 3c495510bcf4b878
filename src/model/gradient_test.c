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

/* What is not there is 0 or the default. */
typedef struct model_case {
    const char *memory; /* and words, as in toy_config */
    int attn_type, B, N, M;
    int pre_lnorm, same_length, clamp_len, untie_r;
    int n_cutoffs, div_val, d_embed, untied;
    double dropout, dropatt;
    const char *interp_eps;
    int score; /* rows of each stream whose loss counts; 0: all */
} model_case;

/* clang-format off */
static const model_case cases[] = {
    {.memory = "none", .B = 2, .N = 5},
    {.memory = "none", .attn_type = 1, .B = 1, .N = 4,
     .pre_lnorm = 1, .untied = 1, .dropout = 0.2, .dropatt = 0.1},
    {.memory = "none", .attn_type = 2, .B = 2, .N = 4, .dropout = 0.2, .dropatt = 0.1},
    {.memory = "xl", .B = 2, .N = 4, .M = 4, .dropout = 0.2, .dropatt = 0.2},
    {.memory = "xl", .B = 2, .N = 4, .M = 4, .untie_r = 1},
    {.memory = "xl", .B = 1, .N = 3, .M = 8,
     .pre_lnorm = 1, .same_length = 1, .clamp_len = 4, .n_cutoffs = 2, .d_embed = 6},
    {.memory = "xl", .attn_type = 1, .B = 2, .N = 5, .M = 3,
     .n_cutoffs = 2, .div_val = 2, .dropout = 0.1},
    {.memory = "compressive", .B = 2, .N = 4, .M = 4, .dropout = 0.2, .dropatt = 0.2},
    {.memory = "compressive", .B = 2, .N = 5, .M = 3,
     .pre_lnorm = 1, .same_length = 1, .n_cutoffs = 2},
    {.memory = "compressive pad thirds", .B = 2, .N = 4, .M = 5,
     .pre_lnorm = 1, .clamp_len = 4, .dropout = 0.1},
    {.memory = "compressive carry thirds", .B = 2, .N = 4, .M = 5},
    {.memory = "compressive pad thirds", .B = 1, .N = 4, .M = 1},
    {.memory = "compressive max", .B = 1, .N = 4, .M = 4},
    {.memory = "infinite", .B = 2, .N = 4, .M = 4, .dropout = 0.2, .dropatt = 0.2},
    {.memory = "infinite share", .B = 2, .N = 4, .M = 3,
     .pre_lnorm = 1, .same_length = 1, .n_cutoffs = 2},
    {.memory = "infinite sticky slow", .B = 2, .N = 3, .M = 3, .clamp_len = 4, .dropout = 0.1},
    {.memory = "lamemo", .attn_type = 3, .B = 2, .N = 4, .M = 4},
    {.memory = "lamemo", .attn_type = 3, .B = 2, .N = 4, .M = 4,
     .dropout = 0.2, .dropatt = 0.2, .interp_eps = "1e-2"},
    {.memory = "lamemo", .attn_type = 3, .B = 1, .N = 5, .M = 2,
     .n_cutoffs = 2, .dropout = 0.1, .interp_eps = "0"},
    {.memory = "lamemo", .attn_type = 3, .B = 1, .N = 3, .M = 11,
     .pre_lnorm = 1, .clamp_len = 5, .n_cutoffs = 2, .div_val = 2, .untied = 1,
     .dropout = 0.1, .dropatt = 0.1},
    {.memory = "lamemo", .attn_type = 31, .B = 2, .N = 4, .M = 6,
     .same_length = 1, .clamp_len = 3, .d_embed = 5},
    {.memory = "lamemo", .attn_type = 32, .B = 2, .N = 3, .M = 6,
     .dropout = 0.1, .interp_eps = "1e-2"},
    {.memory = "lamemo", .attn_type = 33, .B = 2, .N = 4, .M = 6,
     .pre_lnorm = 1, .dropout = 0.1, .dropatt = 0.1},
    {.memory = "lamemo zero", .attn_type = 3, .B = 2, .N = 4, .M = 6, .dropout = 0.1},
    {.memory = "lamemo one", .attn_type = 3, .B = 2, .N = 4, .M = 6, .dropout = 0.1},
    {.memory = "lamemo", .attn_type = 3, .B = 1, .N = 1, .M = 3},
    {.memory = "lamemo from1", .attn_type = 3, .B = 2, .N = 4, .M = 4,
     .dropout = 0.2, .dropatt = 0.2},
    {.memory = "lamemo from1", .attn_type = 32, .B = 1, .N = 5, .M = 3, .interp_eps = "1e-2"},
    {.memory = "lamemo from1", .attn_type = 3, .B = 1, .N = 3, .M = 8,
     .pre_lnorm = 1, .clamp_len = 5, .n_cutoffs = 2, .dropout = 0.1},
    {.memory = "lamemo from1 zero", .attn_type = 31, .B = 2, .N = 4, .M = 6},
    {.memory = "lamemo from1 one", .attn_type = 3, .B = 2, .N = 4, .M = 6, .pre_lnorm = 1},
    {.memory = "lamemo from2", .attn_type = 3, .B = 2, .N = 4, .M = 4, .dropout = 0.1},
    {.memory = "lamemo from3", .attn_type = 33, .B = 2, .N = 4, .M = 4, .dropout = 0.1},
    {.memory = "lamemo every2", .attn_type = 3, .B = 2, .N = 4, .M = 4,
     .dropout = 0.2, .dropatt = 0.2},
    {.memory = "lamemo every2", .attn_type = 3, .B = 1, .N = 3, .M = 8,
     .pre_lnorm = 1, .clamp_len = 5, .interp_eps = "1e-2", .dropout = 0.1},
    {.memory = "lamemo every3 from1", .attn_type = 32, .B = 1, .N = 3, .M = 11},
    {.memory = "lamemo every2 zero", .attn_type = 31, .B = 2, .N = 4, .M = 6},
    {.memory = "xl", .B = 2, .N = 4, .M = 4,
     .n_cutoffs = 2, .dropout = 0.2, .dropatt = 0.2, .score = 2},
    {.memory = "compressive", .B = 2, .N = 4, .M = 4,
     .pre_lnorm = 1, .dropout = 0.2, .dropatt = 0.2, .score = 2},
    {.memory = "lamemo", .attn_type = 3, .B = 2, .N = 4, .M = 4,
     .dropout = 0.2, .dropatt = 0.2, .interp_eps = "1e-2", .score = 1},
};
/* clang-format on */
enum { CASES = sizeof cases / sizeof *cases };

static lam_config config_of(const model_case *c)
{
    lam_config cfg = toy_config(c->memory, c->attn_type, c->N, c->M);
    cfg.n_layer = 3; /* the middle one has gradient through memory rows on both sides */
    cfg.d_head = 3;  /* H * K is not D */
    cfg.pre_lnorm = c->pre_lnorm;
    cfg.same_length = c->same_length;
    cfg.untie_r = c->untie_r;
    cfg.clamp_len = c->clamp_len;
    cfg.n_cutoffs = c->n_cutoffs;
    cfg.cutoffs[0] = 4;
    cfg.cutoffs[1] = 9;
    cfg.div_val = c->div_val > 0 ? c->div_val : 1;
    cfg.d_embed = c->d_embed;
    cfg.tie_weight = !c->untied;
    cfg.dropout = c->dropout;
    cfg.dropatt = c->dropatt;
    if (c->interp_eps)
        toy_set(&cfg, "interp_eps", c->interp_eps);
    return cfg;
}

typedef struct batch {
    int32_t in[MOST], out[MOST];
    int score;
} batch;

static const lam_stack_dropout dropout = {.on = 1, .seed = 11, .step = 3};

typedef struct losses {
    double nll, aux;
} losses;

/* The losses of one segment, summed over its tokens. */
static losses losses_of(toy *t, const batch *data, int n)
{
    double nll[MOST];
    losses sum = {0};
    lam_stack_begin(t->stack, n, dropout);
    lam_stack_set_scored(t->stack, data->score);
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
    /* A long-term memory is there from the third segment on and changes from the fourth on; a memory that is refreshed
     * in every second or third segment is so in the third or fourth. */
    const int segments = strcmp(t.model->cfg.memory, "infinite") == 0 ? 6
                         : strstr(c->memory, "every")                 ? 4
                                                                      : 3;
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
        lam_stack_begin(t->stack, n, (lam_stack_dropout){0});
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
