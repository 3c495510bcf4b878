/* trainer_test.c -- a step means what it says: groups add up, losses weigh what they should, devices agree. */
#include "train/trainer.h"

#include "support/suite.h"
#include "support/toy.h"
#include "support/toyrun.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(groups_of_columns_add_up_to_the_whole_batch)
{
    static const char *const memories[] = {"none", "xl", "lamemo", "compressive carry thirds",
                                           "infinite within"};
    enum { STEPS = 6 };
    lam_config cfg = toyrun_config(memories[_i]);
    cfg.dropout = 0.0; /* masks are drawn per group */
    lam_settings s = toyrun_settings();
    double whole[STEPS], parts[STEPS];
    toyrun a = toyrun_open("ref", &cfg, &s);
    toyrun_steps(&a, STEPS, whole);
    size_t n;
    double *x = toyrun_params(&a, &n);
    for (int chunk = 2; chunk <= 4; chunk += 2) {
        s.batch_chunk = chunk;
        toyrun b = toyrun_open("ref", &cfg, &s);
        toyrun_steps(&b, STEPS, parts);
        double *y = toyrun_params(&b, &n);
        for (int i = 0; i < STEPS; i++)
            ck_assert_msg(fabs(parts[i] - whole[i]) < 1e-12, "%d groups, step %d: %.17g, not %.17g",
                          chunk, i, parts[i], whole[i]);
        for (size_t i = 0; i < n; i++)
            ck_assert_msg(fabs(x[i] - y[i]) < 1e-10, "%d groups: number %zu", chunk, i);
        free(y);
        toyrun_close(&b);
    }
    free(x);
    toyrun_close(&a);
}
END_TEST

/* Of leaves and groups of equal number only the order of sums differs: the same masks, the same memories. */
START_TEST(leaves_are_groups_whose_gradients_are_summed_in_a_tree)
{
    enum { STEPS = 6 };
    const lam_config cfg = toyrun_config(_i % 2 ? "lamemo" : "compressive");
    lam_settings s = toyrun_settings();
    double groups[STEPS], leaves[STEPS];
    s.batch_chunk = 4;
    toyrun a = toyrun_open("ref", &cfg, &s);
    s.batch_chunk = 1;
    s.leaves = 4;
    toyrun b = toyrun_open("ref", &cfg, &s);
    toyrun_steps(&a, STEPS, groups);
    toyrun_steps(&b, STEPS, leaves);
    size_t n;
    double *x = toyrun_params(&a, &n), *y = toyrun_params(&b, &n);
    int other = 0;
    for (int i = 0; i < STEPS; i++)
        ck_assert_msg(fabs(leaves[i] - groups[i]) < 1e-12, "step %d: %.17g, not %.17g", i,
                      leaves[i], groups[i]);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(fabs(x[i] - y[i]) < 1e-10, "number %zu", i);
        other += x[i] != y[i];
    }
    ck_assert_int_gt(other, 0); /* or it would be no tree */
    free(x);
    free(y);
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

START_TEST(one_leaf_is_the_whole_batch_bit_for_bit)
{
    const lam_config cfg = toyrun_config("lamemo");
    lam_settings s = toyrun_settings();
    toyrun a = toyrun_open("cpu", &cfg, &s);
    s.leaves = 1;
    toyrun b = toyrun_open("cpu", &cfg, &s);
    toyrun_steps(&a, 6, NULL);
    toyrun_steps(&b, 6, NULL);
    ck_assert(toyrun_equal(&a, &b));
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

START_TEST(loss_scale_scales_the_gradient_alone)
{
    const lam_config cfg = toyrun_config("lamemo");
    lam_settings s = toyrun_settings();
    lam_step_report one, half;
    toyrun a = toyrun_open("ref", &cfg, &s);
    s.loss_scale = 0.5;
    toyrun b = toyrun_open("ref", &cfg, &s);
    must(lam_trainer_step(a.trainer, &one));
    must(lam_trainer_step(b.trainer, &half));
    ck_assert(one.nll == half.nll && one.tokens == half.tokens);
    ck_assert_msg(fabs(half.grad_norm / one.grad_norm - 0.5) < 1e-12, "%g and %g", one.grad_norm,
                  half.grad_norm);
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

/* Two clipped steps with a reconstruction loss of that weight; it begins with the first evicted rows, in the second. */
static toyrun clipped_run(double weight, int together)
{
    lam_config cfg = toyrun_config("compressive");
    lam_settings s = toyrun_settings();
    toy_set_number(&cfg, "aux_weight", weight);
    s.optim = LAM_OPTIM_SGD; /* Adam would not notice the scale */
    s.clip = 0.05;
    s.clip_together = together;
    toyrun r = toyrun_open("ref", &cfg, &s);
    toyrun_steps(&r, 2, NULL);
    return r;
}

START_TEST(a_loss_of_the_memory_does_not_shrink_other_steps)
{
    toyrun mild = clipped_run(1.0, 0), strong = clipped_run(1e6, 0), one = clipped_run(1e6, 1);
    const lam_params *p = &mild.model->params;
    size_t n;
    double *x = toyrun_params(&mild, &n), *y = toyrun_params(&strong, &n),
           *z = toyrun_params(&one, &n);
    int shrunk = 0;
    for (int i = 0, at = 0; i < p->n; at += (int)lam_param_count(&p->list[i++]))
        for (size_t k = 0; k < lam_param_count(&p->list[i]); k++) {
            const size_t e = (size_t)at + k;
            if (strstr(p->list[i].name, "compress"))
                continue;
            ck_assert_msg(x[e] == y[e], "%s: number %zu", p->list[i].name, k);
            shrunk += x[e] != z[e];
        }
    ck_assert_int_gt(shrunk, 100);
    free(x);
    free(y);
    free(z);
    toyrun_close(&mild);
    toyrun_close(&strong);
    toyrun_close(&one);
}
END_TEST

/* The norm of the gradient of scale * (loss of the last `rows` rows of each column) over the first batch of a run. */
static double norm_by_hand(const toyrun *r, int B, int N, int rows, double scale)
{
    lam_params *p = &r->model->params;
    lam_stack *stack;
    int32_t targets[64];
    double *grad = malloc(p->total * sizeof *grad), sum = 0.0;
    must(lam_stack_create(&stack, r->model,
                          &(lam_stack_options){.B = B, .N = N, .M = 4, .train = 1}));
    for (int c = 0; c < B; c++)
        for (int i = 0; i < rows; i++)
            targets[c * rows + i] = r->trainer->targets[c * N + N - rows + i];
    r->dev->ops->zero(r->dev, p->grad, p->total * sizeof *grad);
    lam_stack_begin(stack, N, (lam_stack_dropout){0});
    lam_stack_set_scored(stack, rows);
    lam_stack_forward(stack, r->trainer->inputs, N);
    lam_stack_loss(stack, targets, scale);
    lam_stack_backward(stack);
    must(r->dev->ops->download(r->dev, grad, p->grad, p->total * sizeof *grad));
    for (size_t i = 0; i < p->total; i++)
        sum += grad[i] * grad[i];
    lam_stack_free(stack);
    free(grad);
    return sqrt(sum);
}

/* Step 1 of the same run with and without half_loss: the same rows, half of them counted. */
START_TEST(half_loss_counts_the_second_half_of_every_segment_twice)
{
    enum { B = 4, N = 5 };
    lam_config cfg = toyrun_config(_i ? "xl" : "lamemo");
    lam_settings s = toyrun_settings();
    lam_step_report report;
    cfg.tgt_len = N; /* odd: the middle row counts */
    cfg.ext_len = _i ? 3 : 0;
    cfg.dropout = 0.0;
    s.lr = 0.0; /* the first batch stays to be looked at with the same parameters */
    toyrun all = toyrun_open("ref", &cfg, &s);
    s.half_loss = 1;
    toyrun half = toyrun_open("ref", &cfg, &s);
    double sum = 0.0, nll[B * N];
    must(lam_trainer_step(all.trainer, &report));
    must(lam_stack_nll(all.trainer->stack, nll));
    for (int c = 0; c < B; c++)
        for (int i = N / 2; i < N; i++)
            sum += nll[c * N + i];
    must(lam_trainer_step(half.trainer, &report));
    ck_assert_int_eq(report.tokens, B * (N - N / 2));
    ck_assert_int_eq(half.trainer->tokens, B * N);
    ck_assert_double_eq_tol(report.nll, sum, 1e-12);
    ck_assert_double_eq_tol(report.grad_norm, norm_by_hand(&all, B, N, N - N / 2, 2.0 / (B * N)),
                            1e-12);
    toyrun_close(&all);
    toyrun_close(&half);
}
END_TEST

/* Rows that are read again have no targets: the mean is that of the others. */
START_TEST(the_gradient_is_that_of_the_mean_over_targets)
{
    enum { B = 4, N = 4, E = 3 };
    lam_config cfg = toyrun_config("none");
    cfg.dropout = 0.0;
    cfg.ext_len = E;
    lam_settings s = toyrun_settings();
    s.lr = 0.0;
    toyrun r = toyrun_open("ref", &cfg, &s);
    lam_step_report report;
    toyrun_steps(&r, 1, NULL);
    must(lam_trainer_step(r.trainer, &report));
    const lam_params *p = &r.model->params;
    lam_stack *stack;
    double norm = 0.0;
    must(lam_stack_create(&stack, r.model,
                          &(lam_stack_options){.B = B, .N = E + N, .E = E, .train = 1}));
    memset(p->grad, 0, p->total * sizeof(double)); /* ref's memory is the host's */
    lam_stack_pass(stack, &(lam_pass){.inputs = r.trainer->inputs,
                                      .targets = r.trainer->targets,
                                      .n = E + N,
                                      .scored = N,
                                      .grad_scale = 1.0 / (B * N)});
    for (size_t i = 0; i < p->total; i++)
        norm += ((const double *)p->grad)[i] * ((const double *)p->grad)[i];
    ck_assert_double_eq_tol(report.grad_norm, sqrt(norm), 1e-12);
    lam_stack_free(stack);
    toyrun_close(&r);
}
END_TEST

/* The loss of columns `first` to `first + B - 1` of the last batch, under the masks of `dropout`. */
static double dropped_loss(const toyrun *r, int first, lam_stack_dropout dropout)
{
    enum { B = 2, N = 4 };
    lam_stack *stack;
    double nll[B * N], sum = 0.0;
    must(lam_stack_create(&stack, r->model, &(lam_stack_options){.B = B, .N = N, .train = 1}));
    lam_stack_begin(stack, N, dropout);
    lam_stack_forward(stack, r->trainer->inputs + first * N, N);
    lam_stack_loss(stack, r->trainer->targets + first * N, 0.0);
    must(lam_stack_nll(stack, nll));
    for (int i = 0; i < B * N; i++)
        sum += nll[i];
    lam_stack_free(stack);
    return sum;
}

START_TEST(each_step_and_group_has_masks_of_its_own)
{
    lam_config cfg = toyrun_config("none");
    lam_settings s = toyrun_settings();
    cfg.dropout = 0.3;
    s.lr = 0.0;
    s.batch_chunk = 2;
    s.seed = 1234567 + _i;
    toyrun r = toyrun_open("ref", &cfg, &s);
    for (uint32_t step = 0; step < 3; step++) {
        double loss, want = 0.0;
        toyrun_steps(&r, 1, &loss);
        for (uint32_t g = 0; g < 2; g++)
            want += dropped_loss(
                &r, (int)(2 * g),
                (lam_stack_dropout){.on = 1, .seed = (uint64_t)s.seed, .step = 2 * step + g});
        ck_assert_msg(fabs(loss - want / 16) < 1e-12, "step %u: %.17g, wants %.17g", step, loss,
                      want / 16);
    }
    toyrun_close(&r);
}
END_TEST

START_TEST(ref_and_cpu_learn_alike_with_dropout)
{
    static const char *const memories[] = {"none",
                                           "xl",
                                           "lamemo",
                                           "compressive carry thirds",
                                           "infinite within",
                                           "xl",
                                           "lamemo",
                                           "lamemo from1",
                                           "lamemo every2"};
    enum { STEPS = 50 };
    lam_config cfg = toyrun_config(memories[_i]);
    cfg.d_model = 24;
    cfg.d_head = 12;
    cfg.d_inner = 40;
    cfg.tgt_len = 8;
    cfg.mem_len = _i == 0 ? 0 : 8;
    cfg.dropatt = 0.1;
    cfg.ext_len = _i == 5 ? 3 : 0;
    lam_settings s = toyrun_settings();
    s.half_loss = _i > 4;
    double x[STEPS], y[STEPS];
    toyrun a = toyrun_open("ref", &cfg, &s), b = toyrun_open("cpu", &cfg, &s);
    toyrun_steps(&a, STEPS, x);
    toyrun_steps(&b, STEPS, y);
    double worst = 0;
    for (int i = 0; i < STEPS; i++) {
        worst = fmax(worst, fabs(y[i] / x[i] - 1.0));
        ck_assert_msg(fabs(y[i] / x[i] - 1.0) < 1e-3, "step %d: ref %.9g, cpu %.9g", i + 1, x[i],
                      y[i]);
    }
    printf("%s: worst relative difference of 50 losses %.2g; from %.4f to %.4f\n", cfg.memory,
           worst, x[0], x[STEPS - 1]);
    ck_assert(x[STEPS - 1] < 0.95 * x[0]); /* it learned: the comparison means something */
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

START_TEST(steps_keep_no_memory)
{
    const lam_config cfg = toyrun_config("lamemo");
    lam_settings s = toyrun_settings();
    s.batch_chunk = 2;
    s.varlen = 1;
    toyrun r = toyrun_open("cpu", &cfg, &s);
    toyrun_steps(&r, 50, NULL); /* libraries keep what they made for a shape they met */
    const size_t before = mallinfo2().uordblks;
    toyrun_steps(&r, 10000, NULL);
    const size_t after = mallinfo2().uordblks;
    ck_assert_msg(after <= before + 65536, "%zu bytes more after 10000 steps", after - before);
    toyrun_close(&r);
}
END_TEST

START_TEST(settings_that_cannot_run_are_named)
{
    const lam_config cfg = toyrun_config("xl");
    toyrun r;
    lam_trainer *t;
    lam_settings s = toyrun_settings();
    r = toyrun_open("ref", &cfg, &s);
    s.batch_chunk = 3;
    ck_assert_int_eq(lam_trainer_create(&t, r.model, r.text, &s, NULL), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "batch_size 4 cannot be divided into batch_chunk 3 equal parts");
    s = toyrun_settings();
    s.lr = -1.0;
    ck_assert_int_eq(lam_trainer_create(&t, r.model, r.text, &s, NULL), LAM_ERR_ARG);
    s = toyrun_settings();
    s.batch_size = 200; /* columns of one token */
    ck_assert_int_eq(lam_trainer_create(&t, r.model, r.text, &s, NULL), LAM_ERR_ARG);
    r.text->vocab_size = 14;
    s = toyrun_settings();
    ck_assert_int_eq(lam_trainer_create(&t, r.model, r.text, &s, NULL), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "the corpus has a vocabulary of 14, the model one of 13");
    ck_assert_ptr_null(t);
    toyrun_close(&r);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, groups_of_columns_add_up_to_the_whole_batch, 0, 5);
    tcase_add_loop_test(tests, leaves_are_groups_whose_gradients_are_summed_in_a_tree, 0, 2);
    tcase_add_test(tests, one_leaf_is_the_whole_batch_bit_for_bit);
    tcase_add_test(tests, loss_scale_scales_the_gradient_alone);
    tcase_add_test(tests, a_loss_of_the_memory_does_not_shrink_other_steps);
    tcase_add_loop_test(tests, half_loss_counts_the_second_half_of_every_segment_twice, 0, 2);
    tcase_add_loop_test(tests, ref_and_cpu_learn_alike_with_dropout, 0, 9);
    tcase_add_test(tests, the_gradient_is_that_of_the_mean_over_targets);
    tcase_add_loop_test(tests, each_step_and_group_has_masks_of_its_own, 0, 2);
    tcase_add_test(tests, steps_keep_no_memory);
    tcase_add_test(tests, settings_that_cannot_run_are_named);
    return test_run("train/trainer", tests);
}
