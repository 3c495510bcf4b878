/* compressive_test.c -- what the Compressive Transformer must be, beside the traces. */
#include "mem/fields.h"
#include "model/stack.h"

#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, V = 13, MOST = 64 };

static toy open_toy(const lam_config *cfg, int train)
{
    const lam_stack_options opt = {.B = B, .N = cfg->tgt_len, .M = cfg->mem_len, .train = train};
    return toy_open("ref", cfg, &opt, 1);
}

/* Sets every compression to W[o][p][s] = share where o = p, for all taps s; no bias. */
static void set_kernels(toy *t, double share)
{
    lam_params *p = &t->model->params;
    for (int i = 0; i < p->n; i++) {
        if (!strstr(p->list[i].name, "compress"))
            continue;
        double host[8 * 8 * 4] = {0};
        const int taps = (int)lam_fields_value(&t->model->cfg, "rate");
        ck_assert_uint_le(lam_param_count(&p->list[i]), sizeof host / sizeof *host);
        for (int k = 0; p->list[i].rank == 3 && k < 8 * taps; k++)
            host[(k / taps * 8 + k / taps) * taps + k % taps] = share;
        ck_assert(lam_params_set(p, p->master, i, host) == LAM_OK);
    }
}

/* Runs both over the same random segments, whose lengths vary, and compares the losses. */
static void same_losses(toy *a, toy *b, int segments)
{
    int32_t in[B * MOST], out[B * MOST];
    double x[B * MOST], y[B * MOST];
    for (int s = 0; s < segments; s++) {
        const int n = s % 3 == 2 && a->N > 1 ? a->N - 1 : a->N;
        toy_tokens(in, (size_t)(B * n), V, (uint64_t)(10 + s));
        toy_tokens(out, (size_t)(B * n), V, (uint64_t)(50 + s));
        toy_segment(a, in, out, n, x, 1);
        toy_segment(b, in, out, n, y, 1);
        for (int i = 0; i < B * n; i++)
            ck_assert_msg(fabs(x[i] - y[i]) <= 1e-12, "segment %d, row %d: %.17g and %.17g", s, i,
                          x[i], y[i]);
    }
}

START_TEST(rate_one_with_an_identity_kernel_is_a_longer_xl)
{
    for (int pre = 0; pre < 2; pre++) {
        lam_config cfg = toy_config("compressive", 0, 4, 5), longer = toy_config("xl", 0, 4, 11);
        toy_set(&cfg, "rate", "1");
        toy_set(&cfg, "cmem_len", "6");
        cfg.pre_lnorm = longer.pre_lnorm = pre;
        toy a = open_toy(&cfg, 0), b = open_toy(&longer, 0);
        set_kernels(&a, 1.0);
        same_losses(&a, &b, 8);
        toy_close(&a);
        toy_close(&b);
    }
}
END_TEST

START_TEST(an_even_kernel_is_the_mean)
{
    static const char *const remainders[] = {"", " pad", " carry"};
    for (int r = 0; r < 3; r++) {
        char conv[32] = "compressive thirds", mean[32] = "compressive thirds mean";
        strcat(conv, remainders[r]);
        strcat(mean, remainders[r]);
        const lam_config a_cfg = toy_config(conv, 0, 4, 4), b_cfg = toy_config(mean, 0, 4, 4);
        toy a = open_toy(&a_cfg, 0), b = open_toy(&b_cfg, 0);
        set_kernels(&a, 1.0 / 3.0);
        same_losses(&a, &b, 8);
        toy_close(&a);
        toy_close(&b);
    }
}
END_TEST

static const lam_slot *find_slot(toy *t, const char *name, int layer)
{
    const lam_mem *mem = lam_stack_mem(t->stack);
    for (int i = 0; i < mem->n_slots; i++)
        if (strcmp(mem->slots[i].name, name) == 0 && mem->slots[i].layer == layer)
            return &mem->slots[i];
    return NULL;
}

/* The published sizes: 37 rows of every 150, of which two are lost, until 150 are there. */
START_TEST(the_memory_fills_as_specified)
{
    static const int published[] = {0, 37, 74, 111, 148, 150, 150};
    lam_config cfg = toy_config("compressive", 0, 150, 150);
    toy_set(&cfg, "rate", "4");
    toy_set(&cfg, "cmem_len", "150");
    cfg.n_layer = 1;
    const lam_stack_options opt = {.B = 1, .N = 150, .M = 150};
    toy t = toy_open("cpu", &cfg, &opt, 1);
    int32_t in[150];
    double nll[150];
    toy_tokens(in, 150, V, 1);
    for (size_t s = 0; s < sizeof published / sizeof *published; s++) {
        toy_segment(&t, in, in, 150, nll, 1);
        ck_assert_int_eq(find_slot(&t, "cm", 0)->n, published[s]);
        ck_assert_int_eq(find_slot(&t, "m", 0)->n, 150);
        ck_assert_int_eq(lam_mem_context(lam_stack_mem(t.stack)), 150 + published[s]);
    }
    lam_stack_reset(t.stack);
    ck_assert_int_eq(lam_mem_context(lam_stack_mem(t.stack)), 0);
    toy_close(&t);
}
END_TEST

/* Token by token, a rest that waits loses nothing: after n tokens (n - M) / 3 rows are compressed. */
START_TEST(carried_rows_make_groups_of_single_tokens)
{
    const lam_config cfg = toy_config("compressive carry thirds", 0, 1, 4);
    toy one = open_toy(&cfg, 0);
    lam_config wide_cfg = cfg;
    wide_cfg.tgt_len = 12;
    toy wide = open_toy(&wide_cfg, 0);
    int32_t in[B * 12], x[B];
    double nll[B * 12];
    toy_tokens(in, B * 12, V, 3);
    for (int i = 0; i < 12; i++) {
        toy_cut(x, in, B, 12, i, 1);
        toy_segment(&one, x, x, 1, nll, 1);
        const int gone = i + 1 > 4 ? i + 1 - 4 : 0, groups = gone / 3;
        ck_assert_int_eq(find_slot(&one, "cm", 1)->n, groups < 3 ? groups : 3);
        ck_assert_int_eq(find_slot(&one, "pend", 1)->n, gone % 3);
    }
    /* Layer 0 remembers embeddings, which do not depend on how the text was cut. */
    toy_segment(&wide, in, in, 12, nll, 1);
    static const char *const names[] = {"cm", "m", "pend"};
    for (int k = 0; k < 3; k++) {
        const lam_slot *a = find_slot(&one, names[k], 0), *b = find_slot(&wide, names[k], 0);
        ck_assert_int_eq(a->n, b->n);
        for (int s = 0; s < B; s++)
            for (int i = 0; i < a->n * a->width; i++)
                ck_assert_double_eq_tol(((double *)a->rows)[s * a->cap * a->width + i],
                                        ((double *)b->rows)[s * b->cap * b->width + i], 1e-13);
    }
    toy_close(&one);
    toy_close(&wide);
}
END_TEST

/* Four rows in groups of three: two rows of zeros stand before them. */
START_TEST(padding_fills_the_first_group_from_the_left)
{
    enum { N = 4 };
    const lam_config cfg = toy_config("compressive pad thirds mean", 0, N, N);
    toy t = open_toy(&cfg, 0);
    int32_t in[B * N];
    double nll[B * N], gone[B][N][8];
    toy_tokens(in, B * N, V, 3);
    toy_segment(&t, in, in, N, nll, 1);
    const lam_slot *newest = find_slot(&t, "m", 0), *coarse = find_slot(&t, "cm", 0);
    ck_assert_int_eq(newest->width, 8);
    memcpy(gone, newest->rows, sizeof gone);
    toy_segment(&t, in, in, N, nll, 1);
    ck_assert_int_eq(coarse->n, 2);
    for (int b = 0; b < B; b++)
        for (int c = 0; c < 8; c++) {
            const double *row = (const double *)coarse->rows + b * coarse->cap * 8 + c;
            ck_assert_double_eq_tol(row[0], gone[b][0][c] / 3, 1e-14);
            ck_assert_double_eq_tol(row[8], (gone[b][1][c] + gone[b][2][c] + gone[b][3][c]) / 3,
                                    1e-14);
        }
    toy_close(&t);
}
END_TEST

/* The gradients of the fourth of equal segments. */
static double *gradients(const lam_config *cfg, toy *t)
{
    *t = open_toy(cfg, 1);
    lam_params *p = &t->model->params;
    double *flat = malloc(p->total * sizeof *flat);
    int32_t in[B * MOST], out[B * MOST];
    for (int s = 0; s < 4; s++) {
        toy_tokens(in, (size_t)(B * cfg->tgt_len), V, (uint64_t)(20 + s));
        toy_tokens(out, (size_t)(B * cfg->tgt_len), V, (uint64_t)(60 + s));
        t->dev->ops->zero(t->dev, p->grad, p->total * sizeof(double));
        for (int i = 0; i < p->n; i++)
            p->list[i].used = 0;
        lam_stack_begin(t->stack, cfg->tgt_len, (lam_stack_dropout){0});
        lam_stack_forward(t->stack, in, cfg->tgt_len);
        lam_stack_loss(t->stack, out, 1.0);
        lam_stack_backward(t->stack);
        lam_stack_commit(t->stack);
    }
    memcpy(flat, p->grad, p->total * sizeof *flat);
    return flat;
}

START_TEST(the_two_losses_do_not_meet)
{
    static const char *const kinds[] = {"compressive", "compressive pad thirds",
                                        "compressive carry thirds"};
    for (int k = 0; k < 6; k++) {
        lam_config cfg = toy_config(kinds[k / 2], 0, 4, 5);
        cfg.pre_lnorm = k % 2;
        toy t[3];
        double *grad[3], aux;
        const double weights[] = {1.0, 8.0, 0.0};
        for (int w = 0; w < 3; w++) {
            toy_set_number(&cfg, "aux_weight", weights[w]);
            grad[w] = gradients(&cfg, &t[w]);
        }
        const lam_params *p = &t[0].model->params;
        for (int i = 0; i < p->n; i++) {
            const lam_param *q = &p->list[i];
            const int ours = strstr(q->name, "compress") != NULL;
            ck_assert_int_eq(t[2].model->params.list[i].used, !ours);
            for (size_t e = q->offset; e < q->offset + q->stored; e++) {
                /* a power of two scales exactly */
                ck_assert_double_eq(grad[1][e], ours ? 8.0 * grad[0][e] : grad[0][e]);
                ck_assert_double_eq(grad[2][e], ours ? 0.0 : grad[0][e]);
            }
        }
        ck_assert(lam_stack_aux(t[0].stack, &aux) == LAM_OK && aux > 0.0);
        ck_assert(lam_stack_aux(t[2].stack, &aux) == LAM_OK && aux == 0.0);
        for (int w = 0; w < 3; w++) {
            free(grad[w]);
            toy_close(&t[w]);
        }
    }
}
END_TEST

/* Keeping a row as it is loses nothing; without evicted rows there is nothing to lose. */
START_TEST(a_perfect_compression_has_no_loss)
{
    lam_config cfg = toy_config("compressive", 0, 4, 5);
    toy_set(&cfg, "rate", "1");
    toy t = open_toy(&cfg, 1);
    int32_t in[B * 4];
    double aux;
    set_kernels(&t, 1.0);
    for (int s = 0; s < 3; s++) {
        toy_tokens(in, B * 4, V, (uint64_t)s);
        lam_stack_begin(t.stack, 4, (lam_stack_dropout){0});
        lam_stack_forward(t.stack, in, 4);
        lam_stack_loss(t.stack, in, 1.0);
        lam_stack_backward(t.stack);
        ck_assert(lam_stack_aux(t.stack, &aux) == LAM_OK);
        if (s == 0)
            ck_assert_double_eq(aux, 0.0);
        ck_assert_double_le(aux, 1e-24);
        lam_stack_commit(t.stack);
    }
    toy_close(&t);
}
END_TEST

START_TEST(a_rate_beyond_the_memory_is_refused)
{
    lam_config cfg = toy_config("compressive", 0, 4, 4);
    toy_set(&cfg, "rate", "7");
    toy t = open_toy(&cfg, 0);
    lam_stack *st = NULL;
    const lam_stack_options opt = {.B = 1, .N = 4, .M = 2};
    ck_assert(lam_stack_create(&st, t.model, &opt) == LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "rate"));
    toy_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, rate_one_with_an_identity_kernel_is_a_longer_xl);
    tcase_add_test(tests, an_even_kernel_is_the_mean);
    tcase_add_test(tests, the_memory_fills_as_specified);
    tcase_add_test(tests, carried_rows_make_groups_of_single_tokens);
    tcase_add_test(tests, padding_fills_the_first_group_from_the_left);
    tcase_add_test(tests, the_two_losses_do_not_meet);
    tcase_add_test(tests, a_perfect_compression_has_no_loss);
    tcase_add_test(tests, a_rate_beyond_the_memory_is_refused);
    return test_run("mem/compressive", tests);
}
