/* clusters.h -- every way in which a vocabulary can be divided, embedded and predicted, for tests of nn/embed.c and
 * nn/head.c; and its parameters, drawn and read without padding. */
#ifndef TEST_CLUSTERS_H
#define TEST_CLUSTERS_H

#include "nn/params.h"
#include "nn/config.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdlib.h>

/* With each: output weights and projections of their own, and those of the embedding. */
static const lam_config cluster_cases[] = {
    {.d_embed = 6, .div_val = 1},                                    /* plain */
    {.d_embed = 4, .div_val = 1},                                    /* projected */
    {.d_embed = 6, .div_val = 1, .n_cutoffs = 2, .cutoffs = {4, 7}}, /* one table */
    {.d_embed = 4, .div_val = 1, .n_cutoffs = 2, .cutoffs = {4, 7}},
    {.d_embed = 6, .div_val = 2, .n_cutoffs = 2, .cutoffs = {4, 7}}, /* widths 6, 3, 1 */
    {.d_embed = 4, .div_val = 2, .n_cutoffs = 1, .cutoffs = {9}},
};
enum {
    CLUSTER_CASES = 2 * (int)(sizeof cluster_cases / sizeof *cluster_cases),
    CLUSTER_V = 11,
    CLUSTER_D = 6
};

static inline lam_config cluster_config(int i)
{
    lam_config cfg = cluster_cases[i / 2];
    cfg.n_token = CLUSTER_V;
    cfg.d_model = CLUSTER_D;
    cfg.d_head = cfg.d_inner = 4;
    cfg.n_head = 1;
    cfg.tie_weight = cfg.tie_projs[1] = i % 2;
    cfg.init_std = cfg.proj_init_std = 0.4;
    return cfg;
}

/* Places and draws what was declared; biases, which begin as zeros, too. */
static inline void cluster_draw(lam_params *p, lam_dev *dev)
{
    lam_rng rng = test_rng(23);
    must(lam_params_place(p, dev));
    must(lam_params_place_grad(p));
    for (int i = 0; i < p->n; i++) {
        const size_t n = lam_param_count(&p->list[i]);
        double *host = malloc(n * sizeof *host);
        test_fill(&rng, host, n);
        must(lam_params_set(p, p->master, i, host));
        free(host);
    }
}

/* A parameter as files have it (free). */
static inline double *cluster_param(const lam_params *p, int i)
{
    double *host = malloc(lam_param_count(&p->list[i]) * sizeof *host);
    must(lam_params_get(p, p->master, i, host));
    return host;
}

#endif
