/* head_test.c -- the softmax, plain and adaptive, against sums over the vocabulary, and its gradients. */
#include "nn/head.h"

#include "support/clusters.h"

#include <string.h>

enum { ROWS = 37 }; /* more than two chunks of 16 */

typedef struct fixture {
    lam_config cfg;
    lam_params params;
    lam_embed_params embed;
    lam_head_params ids;
    lam_head h;
    void *memory;
    int32_t host[2 * ROWS], targets[ROWS];
    double z[ROWS * 8], dz[ROWS * 8], nll[ROWS];
    int ld; /* of z */
} fixture;

static void open_case(fixture *f, int i, int pad)
{
    *f = (fixture){.cfg = cluster_config(i)};
    test_ref->pad = pad;
    test_ref->logits = 1; /* chunks as small as they may be */
    lam_embed_declare(&f->embed, &f->params, &f->cfg, test_ref);
    lam_head_declare(&f->ids, &f->embed, &f->params, &f->cfg, test_ref);
    cluster_draw(&f->params, test_ref);
    f->h = (lam_head){.dev = test_ref,
                      .cfg = &f->cfg,
                      .params = &f->params,
                      .ids = &f->ids,
                      .dims = lam_dims_of(&f->cfg, test_ref),
                      .rows = ROWS,
                      .host = f->host};
    lam_arena measure = {0};
    lam_head_layout(&f->h, &measure, 1);
    must(test_ref->ops->alloc(test_ref, &f->memory, measure.used + LAM_ALIGN));
    lam_head_layout(&f->h, &(lam_arena){.base = f->memory, .size = measure.used}, 1);
    ck_assert_int_eq(f->h.chunk, 16);
    f->ld = f->h.dims.D;
    lam_rng rng = test_rng(7);
    for (int r = 0; r < ROWS; r++) {
        test_fill(&rng, f->z + r * f->ld, CLUSTER_D); /* padding stays zero */
        f->targets[r] = r * 5 % CLUSTER_V;
    }
}

static void close_case(fixture *f)
{
    test_ref->ops->release(test_ref, f->memory);
    lam_params_free(&f->params);
}

/* The logits of part i for one row, without padding; returns their number. */
static int naive_logits(const fixture *f, int i, const double *z, double *out)
{
    const lam_cluster c = lam_config_cluster(&f->cfg, i);
    const int table = f->cfg.div_val == 1 ? 0 : i, row = f->cfg.div_val == 1 ? c.first : 0;
    const int n = i == 0 ? f->cfg.n_cutoffs : 0;
    double *weight = cluster_param(&f->params, f->ids.weight[table]),
           *bias = cluster_param(&f->params, f->ids.bias[table]), x[CLUSTER_D];
    memcpy(x, z, sizeof x);
    if (f->ids.proj[i] >= 0) {
        double *proj = cluster_param(&f->params, f->ids.proj[i]); /* [D][width] */
        for (int w = 0; w < c.width; w++) {
            x[w] = 0.0;
            for (int d = 0; d < CLUSTER_D; d++)
                x[w] += z[d] * proj[d * c.width + w];
        }
        free(proj);
    }
    for (int k = 0; k < c.count; k++)
        out[k] = bias[row + k] + test_dot(x, weight + (row + k) * c.width, (size_t)c.width);
    free(weight);
    free(bias);
    if (n == 0)
        return c.count;
    weight = cluster_param(&f->params, f->ids.cluster_weight);
    bias = cluster_param(&f->params, f->ids.cluster_bias);
    for (int k = 0; k < n; k++)
        out[c.count + k] = bias[k] + test_dot(x, weight + k * c.width, (size_t)c.width);
    free(weight);
    free(bias);
    return c.count + n;
}

static double minus_log_softmax(const double *logits, int n, int at)
{
    double sum = 0.0;
    for (int k = 0; k < n; k++)
        sum += exp(logits[k] - logits[at]);
    return log(sum);
}

static double naive_nll(const fixture *f, const double *z, int id)
{
    double logits[2 * CLUSTER_V];
    int i = 0;
    while (i < f->cfg.n_cutoffs && id >= f->cfg.cutoffs[i])
        i++;
    int n = naive_logits(f, 0, z, logits);
    const double head =
        minus_log_softmax(logits, n, i == 0 ? id : n - i); /* cluster 1 comes last */
    if (i == 0)
        return head;
    n = naive_logits(f, i, z, logits);
    return head + minus_log_softmax(logits, n, id - f->cfg.cutoffs[i - 1]);
}

START_TEST(losses_are_those_of_the_whole_vocabulary)
{
    for (int pad = 1; pad <= 4; pad += 3) {
        fixture f;
        open_case(&f, _i, pad);
        lam_head_loss(&f.h, f.nll, f.z, f.targets, ROWS, 0.0, NULL);
        for (int r = 0; r < ROWS; r++)
            ck_assert_double_eq_tol(f.nll[r], naive_nll(&f, f.z + r * f.ld, f.targets[r]), 1e-12);
        close_case(&f);
    }
}
END_TEST

START_TEST(probabilities_of_all_types_sum_to_one)
{
    fixture f;
    double sum = 0.0;
    open_case(&f, _i, 1);
    for (int v = 0; v < CLUSTER_V; v++) {
        memcpy(f.z + v * f.ld, f.z, (size_t)f.ld * sizeof *f.z);
        f.targets[v] = v;
    }
    lam_head_loss(&f.h, f.nll, f.z, f.targets, CLUSTER_V, 0.0, NULL);
    for (int v = 0; v < CLUSTER_V; v++)
        sum += exp(-f.nll[v]);
    ck_assert_double_eq_tol(sum, 1.0, 1e-12);
    close_case(&f);
}
END_TEST

START_TEST(logits_for_inference_are_the_same)
{
    fixture f;
    double want[2 * CLUSTER_V];
    open_case(&f, _i, 4);
    for (int i = 0; i <= f.cfg.n_cutoffs; i++) {
        const int n = lam_head_logits(&f.h, i, f.z, 3);
        const int ld = lam_padded(test_ref, n);
        for (int r = 0; r < 3; r++) {
            ck_assert_int_eq(naive_logits(&f, i, f.z + r * f.ld, want), n);
            for (int k = 0; k < n; k++)
                ck_assert_double_eq_tol(((const double *)f.h.logits)[r * ld + k], want[k], 1e-12);
        }
    }
    close_case(&f);
}
END_TEST

static double loss(const void *user)
{
    fixture *f = (fixture *)user;
    double sum = 0.0;
    lam_head_loss(&f->h, f->nll, f->z, f->targets, ROWS, 0.0, NULL);
    for (int r = 0; r < ROWS; r++)
        sum += 0.5 * f->nll[r];
    return sum;
}

START_TEST(gradients_are_the_differences)
{
    fixture f;
    open_case(&f, _i, 1);
    lam_head_loss(&f.h, f.nll, f.z, f.targets, ROWS, 0.5, f.dz);
    test_gradient("z", f.z, f.dz, ROWS * CLUSTER_D, loss, &f);
    for (int i = 0; i < f.params.n; i++)
        test_gradient(f.params.list[i].name, lam_vector(&f.params, i),
                      (double *)f.params.grad + f.params.list[i].offset, f.params.list[i].stored,
                      loss, &f);
    close_case(&f);
}
END_TEST

START_TEST(what_is_tied_is_declared_once)
{
    fixture f;
    open_case(&f, 8, 1); /* nothing tied */
    ck_assert_str_eq(f.params.list[f.ids.weight[1]].name, "crit.out_layers.1.weight");
    ck_assert_str_eq(f.params.list[f.ids.proj[1]].name, "crit.out_projs.1");
    ck_assert_str_eq(f.params.list[f.ids.cluster_weight].name, "crit.cluster_weight");
    close_case(&f);
    open_case(&f, 9, 1); /* weights, and the projection of cluster 1 */
    ck_assert_int_eq(f.ids.weight[1], f.embed.table[1]);
    ck_assert_int_eq(f.ids.proj[1], f.embed.proj[1]);
    ck_assert_int_ne(f.ids.proj[2], f.embed.proj[2]);
    close_case(&f);
    open_case(&f, 0, 1);
    ck_assert_int_eq(f.ids.cluster_weight, -1);
    close_case(&f);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_loop_test(tests, losses_are_those_of_the_whole_vocabulary, 0, CLUSTER_CASES);
    tcase_add_loop_test(tests, probabilities_of_all_types_sum_to_one, 0, CLUSTER_CASES);
    tcase_add_loop_test(tests, logits_for_inference_are_the_same, 0, CLUSTER_CASES);
    tcase_add_loop_test(tests, gradients_are_the_differences, 0, CLUSTER_CASES);
    tcase_add_test(tests, what_is_tied_is_declared_once);
    return test_run("nn/head", tests);
}
