/* stack_test.c -- what must hold for every memory without any golden data; what holds for one of them is tested beside
 * it (mem/xl_test.c, mem/lamemo_test.c, ...). */
#include "model/stack_int.h"

#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, SEGMENTS = 5, MOST = 64 };

/* Every mechanism and encoding, with the memory below, at and above the segment length. */
typedef struct kind {
    const char *memory; /* and words, as in toy_config */
    int attn_type, N, M, pre_lnorm, same_length, clamp_len;
} kind;

static const kind kinds[] = {
    {.memory = "none", .N = 5},
    {.memory = "none", .attn_type = 1, .N = 5},
    {.memory = "none", .attn_type = 2, .N = 5},
    {.memory = "none", .attn_type = 2, .N = 4, .pre_lnorm = 1, .clamp_len = 2},
    {.memory = "xl", .N = 5, .M = 5},
    {.memory = "xl", .N = 5, .M = 3, .same_length = 1},
    {.memory = "xl", .N = 4, .M = 9, .pre_lnorm = 1, .clamp_len = 6},
    {.memory = "xl", .attn_type = 1, .N = 5, .M = 7},
    {.memory = "xl", .N = 1, .M = 4},
    {.memory = "compressive", .N = 4, .M = 4},
    {.memory = "compressive", .N = 5, .M = 3, .pre_lnorm = 1},
    {.memory = "compressive thirds", .N = 4, .M = 5, .same_length = 1, .clamp_len = 4},
    {.memory = "compressive pad thirds", .N = 4, .M = 5},
    {.memory = "compressive carry thirds", .N = 4, .M = 5, .pre_lnorm = 1},
    {.memory = "compressive carry", .N = 1, .M = 4},
    {.memory = "compressive pad thirds", .N = 5, .M = 1},
    {.memory = "compressive", .N = 4},
    {.memory = "compressive mean", .N = 5, .M = 5},
    {.memory = "compressive max", .N = 3, .M = 2},
    {.memory = "infinite", .N = 4, .M = 4},
    {.memory = "infinite slow", .N = 4, .M = 3, .pre_lnorm = 1},
    {.memory = "infinite share", .N = 4, .M = 5, .same_length = 1, .clamp_len = 4},
    {.memory = "infinite sticky", .N = 4, .M = 4},
    {.memory = "infinite within slow", .N = 3, .M = 2, .pre_lnorm = 1},
    {.memory = "infinite", .N = 1, .M = 2},
    {.memory = "lamemo", .attn_type = 3, .N = 5, .M = 5},
    {.memory = "lamemo", .attn_type = 3, .N = 5, .M = 3},
    {.memory = "lamemo", .attn_type = 3, .N = 4, .M = 11, .same_length = 1, .clamp_len = 5},
    {.memory = "lamemo", .attn_type = 3, .N = 5, .M = 5, .pre_lnorm = 1},
    {.memory = "lamemo", .attn_type = 31, .N = 5, .M = 6},
    {.memory = "lamemo", .attn_type = 32, .N = 3, .M = 7, .clamp_len = 4},
    {.memory = "lamemo", .attn_type = 33, .N = 5, .M = 5},
    {.memory = "lamemo", .attn_type = 33, .N = 4, .M = 9, .pre_lnorm = 1},
    {.memory = "lamemo", .attn_type = 3, .N = 1, .M = 4},
    {.memory = "lamemo zero", .attn_type = 3, .N = 5, .M = 5},
    {.memory = "lamemo one", .attn_type = 3, .N = 5, .M = 8},
    {.memory = "lamemo from1", .attn_type = 3, .N = 5, .M = 5},
    {.memory = "lamemo from1", .attn_type = 3, .N = 5, .M = 3, .pre_lnorm = 1},
    {.memory = "lamemo from1", .attn_type = 31, .N = 3, .M = 10, .same_length = 1, .clamp_len = 4},
    {.memory = "lamemo from1", .attn_type = 3, .N = 1, .M = 4},
    {.memory = "lamemo from1 zero", .attn_type = 33, .N = 4, .M = 6},
    {.memory = "lamemo from1 one", .attn_type = 3, .N = 4, .M = 6},
    {.memory = "lamemo from3", .attn_type = 3, .N = 5, .M = 8},
    {.memory = "lamemo every2", .attn_type = 3, .N = 5, .M = 5},
    {.memory = "lamemo every2", .attn_type = 3, .N = 4, .M = 11, .pre_lnorm = 1, .clamp_len = 5},
    {.memory = "lamemo every3 from1", .attn_type = 32, .N = 3, .M = 7},
    {.memory = "lamemo every3 one", .attn_type = 31, .N = 4, .M = 6},
    {.memory = "lamemo every2 from3", .attn_type = 3, .N = 5, .M = 8},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static lam_config config_of(const kind *k)
{
    lam_config cfg = toy_config(k->memory, k->attn_type, k->N, k->M);
    cfg.pre_lnorm = k->pre_lnorm;
    cfg.same_length = k->same_length;
    cfg.clamp_len = k->clamp_len;
    cfg.n_layer = 3;
    return cfg;
}

static toy open_kind(const char *device, const kind *k, int streams, int train)
{
    const lam_config cfg = config_of(k);
    return toy_open(device, &cfg,
                    &(lam_stack_options){.B = streams, .N = k->N, .M = k->M, .train = train}, 1);
}

/* nll [segments][B][N] of a stream cut into equal segments, from empty memory. */
static void run_stream(toy *t, const int32_t *in, const int32_t *out, int segments, double *nll)
{
    int32_t x[MOST * B], y[MOST * B];
    const int total = segments * t->N;
    lam_stack_reset(t->stack);
    for (int s = 0; s < segments; s++) {
        toy_cut(x, in, t->B, total, s * t->N, t->N);
        toy_cut(y, out, t->B, total, s * t->N, t->N);
        toy_segment(t, x, y, t->N, nll + s * t->B * t->N, 1);
    }
}

START_TEST(a_token_changes_nothing_before_it)
{
    const kind *k = &kinds[_i];
    const char *const devices[] = {"ref", "cpu"};
    for (int d = 0; d < 2; d++) {
        toy t = open_kind(devices[d], k, B, 0);
        const int total = SEGMENTS * k->N;
        int32_t in[B * MOST], out[B * MOST], changed[B * MOST];
        double before[B * MOST], after[B * MOST];
        toy_tokens(in, (size_t)(B * total), 13, 1);
        toy_tokens(out, (size_t)(B * total), 13, 2);
        run_stream(&t, in, out, SEGMENTS, before);
        for (int at = 0; at < total; at++) {
            memcpy(changed, in, sizeof in);
            changed[at] = (changed[at] + 1) % 13; /* stream 0 */
            run_stream(&t, changed, out, SEGMENTS, after);
            int later = 0;
            for (int s = 0; s < SEGMENTS; s++)
                for (int i = 0; i < k->N; i++) {
                    const int j = s * B * k->N + i;
                    if (s * k->N + i < at)
                        ck_assert_msg(before[j] == after[j], "%s: token %d changed position %d",
                                      devices[d], at, s * k->N + i);
                    else
                        later += before[j] != after[j];
                    /* the other stream must not notice at all */
                    ck_assert_msg(before[j + k->N] == after[j + k->N], "token %d crossed streams",
                                  at);
                }
            ck_assert_int_gt(later, 0);
        }
        toy_close(&t);
    }
}
END_TEST

/* Feeds a stream in random chunks within its segments; the last segment stays unfinished. */
static void run_chunked(toy *t, const int32_t *in, const int32_t *out, int total, lam_rng *rng,
                        double *nll)
{
    int32_t x[MOST * B], y[MOST * B];
    double part[MOST * B];
    lam_stack_reset(t->stack);
    for (int at = 0; at < total;) {
        const int end = at + t->N;
        lam_stack_begin(t->stack, t->N, (lam_stack_dropout){0});
        while (at < end && at < total) {
            const int most = (end < total ? end : total) - at;
            const int n = 1 + (int)lam_rng_below(rng, (uint64_t)most);
            toy_cut(x, in, t->B, total, at, n);
            toy_cut(y, out, t->B, total, at, n);
            lam_stack_forward(t->stack, x, n);
            lam_stack_loss(t->stack, y, 0.0);
            ck_assert(lam_stack_nll(t->stack, part) == LAM_OK);
            for (int b = 0; b < t->B; b++)
                memcpy(nll + b * total + at, part + b * n, (size_t)n * sizeof *nll);
            at += n;
        }
        lam_stack_commit(t->stack);
    }
}

START_TEST(decoding_in_chunks_equals_the_parallel_forward)
{
    const kind *k = &kinds[_i];
    toy t = open_kind("ref", k, B, 0);
    const int total = SEGMENTS * k->N - (k->N > 2 ? 2 : 0); /* an unfinished last segment */
    int32_t in[B * MOST], out[B * MOST], x[B * MOST], y[B * MOST];
    double want[B * MOST], part[B * MOST], got[B * MOST];
    lam_rng rng = {.key = 77};
    printf("seed 77\n");
    toy_tokens(in, (size_t)(B * total), 13, 5);
    toy_tokens(out, (size_t)(B * total), 13, 6);
    lam_stack_reset(t.stack);
    for (int at = 0; at < total; at += k->N) {
        const int n = total - at < k->N ? total - at : k->N;
        toy_cut(x, in, B, total, at, n);
        toy_cut(y, out, B, total, at, n);
        toy_segment(&t, x, y, n, part, 1);
        for (int b = 0; b < B; b++)
            memcpy(want + b * total + at, part + b * n, (size_t)n * sizeof *want);
    }
    for (int round = 0; round < 5; round++) {
        run_chunked(&t, in, out, total, &rng, got);
        for (int i = 0; i < B * total; i++)
            ck_assert_double_eq_tol(got[i], want[i], 1e-12);
    }
    toy_close(&t);
}
END_TEST

START_TEST(a_segment_without_commit_repeats_itself)
{
    const kind *k = &kinds[_i];
    toy t = open_kind("ref", k, B, 0);
    int32_t in[2 * B * MOST], out[2 * B * MOST];
    double nll[B * MOST], again[B * MOST];
    const size_t n = (size_t)(B * k->N);
    toy_tokens(in, 2 * n, 13, 7);
    toy_tokens(out, 2 * n, 13, 8);
    toy_segment(&t, in, out, k->N, nll, 1);
    toy_segment(&t, in + n, out + n, k->N, nll, 0);
    toy_segment(&t, in + n, out + n, k->N, again, 0);
    ck_assert_mem_eq(nll, again, n * sizeof *nll);
    toy_close(&t);
}
END_TEST

START_TEST(a_stream_does_not_depend_on_its_place_in_the_batch)
{
    const kind *k = &kinds[_i];
    toy many = open_kind("ref", k, 3, 0), one = open_kind("ref", k, 1, 0);
    int32_t in[3 * MOST], out[3 * MOST];
    double all[3 * MOST], alone[MOST];
    const int n = k->N;
    for (int s = 0; s < SEGMENTS; s++) {
        toy_tokens(in, (size_t)(3 * n), 13, (uint64_t)(20 + s));
        toy_tokens(out, (size_t)(3 * n), 13, (uint64_t)(40 + s));
        toy_segment(&many, in, out, n, all, 1);
        toy_segment(&one, in + 2 * n, out + 2 * n, n, alone, 1);
        for (int i = 0; i < n; i++)
            ck_assert_double_eq_tol(alone[i], all[2 * n + i], 1e-13);
    }
    toy_close(&many);
    toy_close(&one);
}
END_TEST

START_TEST(padded_widths_change_nothing)
{
    const kind *k = &kinds[_i];
    const lam_config cfg = config_of(k);
    const lam_stack_options opt = {.B = B, .N = k->N, .M = k->M, .train = 1};
    toy a = toy_open("ref", &cfg, &opt, 1), b = toy_open("ref", &cfg, &opt, 16);
    ck_assert_int_gt(b.model->dims.D, a.model->dims.D);
    toy_same_losses(&a, &b, 3, 1e-13);
    ck_assert_uint_eq(lam_model_count(a.model), lam_model_count(b.model));
    toy_close(&a);
    toy_close(&b);
}
END_TEST

/* Training goes on where it was after an evaluation of the same model in between. */
START_TEST(two_stacks_of_a_model_do_not_share_their_past)
{
    const kind *k = &kinds[_i];
    toy alone = open_kind("ref", k, B, 1), t = open_kind("ref", k, B, 1);
    lam_stack *other = NULL;
    int32_t in[B * MOST], out[B * MOST];
    double want[B * MOST], got[B * MOST];
    ck_assert(lam_stack_create(&other, t.model,
                               &(lam_stack_options){.B = 1, .N = k->N, .M = k->M}) == LAM_OK);
    for (int s = 0; s < SEGMENTS; s++) {
        toy_tokens(in, (size_t)(B * k->N), 13, (uint64_t)(80 + s));
        toy_tokens(out, (size_t)(B * k->N), 13, (uint64_t)(90 + s));
        toy_segment(&alone, in, out, k->N, want, 1);
        toy_segment(&t, in, out, k->N, got, 1);
        ck_assert_mem_eq(want, got, (size_t)(B * k->N) * sizeof *want);
        lam_stack_begin(other, k->N, (lam_stack_dropout){0});
        lam_stack_forward(other, out, k->N);
        lam_stack_commit(other);
    }
    lam_stack_free(other);
    toy_close(&alone);
    toy_close(&t);
}
END_TEST

/* Layers of an evaluation stack take turns in one set of buffers; training keeps all. */
START_TEST(a_training_stack_evaluates_like_an_evaluation_stack)
{
    toy a = open_kind("ref", &kinds[_i], B, 0), b = open_kind("ref", &kinds[_i], B, 1);
    toy_same_losses(&a, &b, 4, 0.0);
    toy_close(&a);
    toy_close(&b);
}
END_TEST

START_TEST(cpu_agrees_with_ref)
{
    toy a = open_kind("ref", &kinds[_i], B, 0), b = open_kind("cpu", &kinds[_i], B, 0);
    toy_same_losses(&a, &b, 4, 1e-4);
    toy_close(&a);
    toy_close(&b);
}
END_TEST

/* The scores of the last row, normalised, must be the losses of every possible target. */
START_TEST(scores_are_the_losses_of_every_target)
{
    for (int variant = 0; variant < 3; variant++) {
        lam_config cfg = toy_config("lamemo", 3, 4, 4);
        cfg.n_cutoffs = variant > 0 ? 2 : 0;
        cfg.cutoffs[0] = 5;
        cfg.cutoffs[1] = 9;
        cfg.div_val = variant > 1 ? 2 : 1;
        toy t = toy_open("ref", &cfg, &(lam_stack_options){.B = B, .N = 4, .M = 4}, 16);
        int32_t in[B * 4], out[B * 4];
        double nll[B * 4], scores[B * 13];
        toy_tokens(in, B * 4, 13, 1);
        toy_segment(&t, in, in, 4, nll, 1);
        for (int n = 1; n <= 4; n += 3) { /* one row per stream, and several */
            lam_stack_begin(t.stack, 4, (lam_stack_dropout){0});
            lam_stack_forward(t.stack, in, n);
            ck_assert(lam_stack_logits(t.stack, scores) == LAM_OK);
            for (int b = 0; b < B; b++) {
                double sum = 0.0;
                for (int v = 0; v < 13; v++)
                    sum += exp(scores[b * 13 + v]);
                for (int v = 0; v < 13; v++) {
                    for (int i = 0; i < B * n; i++)
                        out[i] = v;
                    lam_stack_loss(t.stack, out, 0.0);
                    ck_assert(lam_stack_nll(t.stack, nll) == LAM_OK);
                    ck_assert_double_eq_tol(nll[b * n + n - 1], log(sum) - scores[b * 13 + v],
                                            1e-12);
                }
            }
        }
        toy_close(&t);
    }
}
END_TEST

static double tallied;

static void count_losses(lam_dev *dev, const lam_tally *a)
{
    (void)dev;
    ck_assert_int_gt(a->n, 0);
    tallied += a->n;
}

/* A device tallies so many numbers at a time as an int can count. */
START_TEST(an_auxiliary_loss_may_have_more_than_2_31_parts)
{
    const kind k = {.memory = "compressive", .N = 5, .M = 5};
    toy t = open_kind("ref", &k, 1, 0);
    lam_stack st = *t.stack;
    lam_dev dev = *st.dev;
    lam_ops ops = *dev.ops;
    ops.tally = count_losses;
    dev.ops = &ops;
    st.dev = &dev;
    st.seg.aux = &dev;
    st.seg.B = st.seg.n = 1;
    st.opt.B = 50000;
    st.opt.N = 30000;
    lam_stack_tally(&st, &dev);
    const lam_config *const cfg = &st.model->cfg;
    ck_assert_double_eq(tallied, 1 + 1.5e9 * cfg->n_layer * cfg->n_head);
    toy_close(&t);
}
END_TEST

/* The next commit adds to it. */
START_TEST(a_text_longer_than_any_is_refused)
{
    const kind k = {.memory = "lamemo", .attn_type = 3, .N = 5, .M = 5};
    toy t = open_kind("ref", &k, 1, 0);
    lam_mem *const mem = lam_stack_mem(t.stack);
    mem->seen = LAM_MOST_SEEN;
    must(lam_mem_resolve(mem, "file"));
    mem->seen = INT64_MAX;
    ck_assert_int_eq(lam_mem_resolve(mem, "file"), LAM_ERR_FORMAT);
    ck_assert_str_eq(lam_error(), "file: 9223372036854775807 tokens were read, must be 0 to 2^60");
    toy_close(&t);
}
END_TEST

START_TEST(impossible_stacks_are_refused)
{
    const kind k = {.memory = "lamemo", .attn_type = 3, .N = 5, .M = 5},
               learned = {.memory = "xl", .attn_type = 1, .N = 5, .M = 5};
    toy a = open_kind("ref", &k, 1, 0), b = open_kind("ref", &learned, 1, 0);
    lam_stack *st = NULL;
    const lam_stack_options bad[] = {{.B = 0, .N = 5, .M = 5},
                                     {.B = 1, .N = 0, .M = 5},
                                     {.B = 1, .N = 5, .M = -1},
                                     {.B = 1, .N = 5, .M = 0},
                                     {.B = 1 << 20, .N = 1 << 10, .M = 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_ne(lam_stack_create(&st, a.model, &bad[i]), LAM_OK);
        ck_assert_ptr_null(st);
    }
    const lam_stack_options longer = {.B = 1, .N = 5, .M = 6};
    ck_assert_int_eq(lam_stack_create(&st, b.model, &longer), LAM_ERR_UNSUPPORTED);
    toy_close(&a);
    toy_close(&b);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, a_token_changes_nothing_before_it, 0, KINDS);
    tcase_add_loop_test(tests, two_stacks_of_a_model_do_not_share_their_past, 0, KINDS);
    tcase_add_loop_test(tests, decoding_in_chunks_equals_the_parallel_forward, 0, KINDS);
    tcase_add_loop_test(tests, a_segment_without_commit_repeats_itself, 0, KINDS);
    tcase_add_loop_test(tests, a_stream_does_not_depend_on_its_place_in_the_batch, 0, KINDS);
    tcase_add_loop_test(tests, padded_widths_change_nothing, 0, KINDS);
    tcase_add_loop_test(tests, a_training_stack_evaluates_like_an_evaluation_stack, 0, KINDS);
    tcase_add_loop_test(tests, cpu_agrees_with_ref, 0, KINDS);
    tcase_add_test(tests, scores_are_the_losses_of_every_target);
    tcase_add_test(tests, an_auxiliary_loss_may_have_more_than_2_31_parts);
    tcase_add_test(tests, a_text_longer_than_any_is_refused);
    tcase_add_test(tests, impossible_stacks_are_refused);
    return test_run("model/stack", tests);
}
