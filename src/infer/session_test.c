/* session_test.c -- a session gives the numbers of the forward pass, however it is fed. */
#include "infer/session_int.h"

#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STREAMS = 2, TOTAL = 40, V = 13 };

typedef struct kind {
    const char *memory;
    int attn_type, N, M;
} kind;

static const kind kinds[] = {
    {"none", 2, 6, 0},
    {"none", 0, 6, 0},
    {"xl", 0, 6, 6},
    {"xl", 0, 6, 3},
    {"xl", 0, 4, 13},
    {"lamemo", 3, 6, 6},
    {"lamemo", 3, 6, 3},
    {"lamemo", 3, 4, 13},
    {"lamemo", 31, 5, 7},
    {"lamemo", 32, 5, 7},
    {"lamemo", 33, 5, 7},
    {"lamemo", 3, 1, 5},
    {"compressive", 0, 4, 4},
    {"compressive carry thirds", 0, 5, 4},
    {"compressive carry", 0, 1, 5},
    {"compressive pad max", 0, 5, 3},
    {"infinite", 0, 4, 4},
    {"infinite sticky slow", 0, 5, 4},
    {"infinite within", 0, 1, 3},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The forward pass over whole segments of N: nll [STREAMS][TOTAL]. */
static void forward(toy *t, const int32_t *in, const int32_t *out, double *nll)
{
    int32_t x[STREAMS * TOTAL], y[STREAMS * TOTAL];
    double part[STREAMS * TOTAL];
    lam_stack_reset(t->stack);
    for (int at = 0; at < TOTAL; at += t->N) {
        const int n = TOTAL - at < t->N ? TOTAL - at : t->N;
        toy_cut(x, in, STREAMS, TOTAL, at, n);
        toy_cut(y, out, STREAMS, TOTAL, at, n);
        toy_segment(t, x, y, n, part, 1);
        for (int b = 0; b < STREAMS; b++)
            memcpy(nll + b * TOTAL + at, part + b * n, (size_t)n * sizeof *nll);
    }
}

static lam_session *session_of(toy *t, const kind *k)
{
    lam_session *s = NULL;
    ck_assert_msg(
        lam_session_create(
            &s, t->model,
            &(lam_session_options){.streams = STREAMS, .longest = k->N, .mem_len = k->M}) == LAM_OK,
        "%s", lam_error());
    return s;
}

/* Feeds columns at .. at + n and checks their losses, and the scores behind the last of them. */
static void feed_and_check(lam_session *s, const int32_t *in, const int32_t *out, int at, int n,
                           const double *want, double tolerance)
{
    int32_t x[STREAMS * TOTAL], y[STREAMS * TOTAL];
    double nll[STREAMS * TOTAL], scores[STREAMS * V];
    toy_cut(x, in, STREAMS, TOTAL, at, n);
    toy_cut(y, out, STREAMS, TOTAL, at, n);
    ck_assert_msg(lam_session_feed_nll(s, x, y, n, nll) == LAM_OK, "%s", lam_error());
    ck_assert(lam_session_logits(s, scores) == LAM_OK);
    for (int b = 0; b < STREAMS; b++) {
        double sum = 0.0;
        for (int i = 0; i < n; i++)
            ck_assert_double_eq_tol(nll[b * n + i], want[b * TOTAL + at + i], tolerance);
        for (int v = 0; v < V; v++)
            sum += exp(scores[b * V + v]);
        ck_assert_double_eq_tol(log(sum) - scores[b * V + y[b * n + n - 1]], nll[b * n + n - 1],
                                tolerance);
    }
}

/* How a model is held, and how near the two ways of computing it are on cpu, where one key in many falls on
 * the other side of a rounding to bf16. */
static const struct {
    lam_class weights, cache;
    double near;
} held[] = {{LAM_ACT, LAM_ACT, 2e-5},
            {LAM_BYTE, LAM_ACT, 2e-5},
            {LAM_ACT, LAM_HALF, 4e-3},
            {LAM_HALF, LAM_HALF, 4e-3},
            {LAM_BYTE, LAM_HALF, 4e-3}};
enum { HELD = sizeof held / sizeof *held };

START_TEST(random_pieces_snapshots_and_rewinds_equal_the_forward_pass)
{
    const kind *k = &kinds[_i % KINDS];
    const int h = _i / KINDS;
    const char *const devices[] = {"ref", "cpu"};
    for (int d = 0; d < 2; d++) {
        const lam_config cfg = toy_config(k->memory, k->attn_type, k->N, k->M);
        toy t =
            toy_open_as(devices[d], &cfg, &(lam_stack_options){.B = STREAMS, .N = k->N, .M = k->M},
                        held[h].weights, held[h].cache);
        int32_t in[STREAMS * TOTAL], out[STREAMS * TOTAL];
        double want[STREAMS * TOTAL];
        lam_rng rng = {.key = 9};
        printf("seed 9\n");
        toy_tokens(in, STREAMS * TOTAL, V, 1);
        toy_tokens(out, STREAMS * TOTAL, V, 2);
        forward(&t, in, out, want);
        lam_session *s = session_of(&t, k);
        lam_snapshot *back = NULL;
        int back_at = 0, rewinds = 0;
        for (int at = 0; at < TOTAL;) {
            const int n = 1 + (int)lam_rng_below(&rng, (uint64_t)(TOTAL - at));
            feed_and_check(s, in, out, at, n, want, d == 0 ? 1e-12 : held[h].near);
            at += n;
            if (back && rewinds < 12 && lam_rng_below(&rng, 2)) {
                ck_assert_msg(lam_session_restore(s, back) == LAM_OK, "%s", lam_error());
                at = back_at;
                rewinds++;
                ck_assert_int_eq(lam_session_length(s), at);
            } else if (lam_rng_below(&rng, 2)) {
                lam_snapshot_free(back);
                ck_assert(lam_session_snapshot(s, &back) == LAM_OK);
                back_at = at;
            }
        }
        lam_snapshot_free(back);
        lam_session_free(s);
        toy_close(&t);
    }
}
END_TEST

START_TEST(a_restored_session_repeats_every_bit)
{
    const kind *k = &kinds[_i];
    const lam_config cfg = toy_config(k->memory, k->attn_type, k->N, k->M);
    toy t = toy_open("cpu", &cfg, &(lam_stack_options){.B = STREAMS, .N = k->N, .M = k->M}, 1);
    lam_session *s = session_of(&t, k), *other = session_of(&t, k);
    int32_t tokens[STREAMS * TOTAL];
    double first[STREAMS * V], again[STREAMS * V];
    lam_snapshot *p = NULL, *loaded = NULL;
    char path[64];
    toy_tokens(tokens, STREAMS * TOTAL, V, 3);
    ck_assert(lam_session_feed(s, tokens, 9) == LAM_OK);
    ck_assert(lam_session_feed(s, tokens, 1) == LAM_OK);
    ck_assert(lam_session_snapshot(s, &p) == LAM_OK);
    ck_assert(lam_session_feed(s, tokens, 8) == LAM_OK && lam_session_logits(s, first) == LAM_OK);
    ck_assert(lam_session_restore(s, p) == LAM_OK);
    ck_assert(lam_session_feed(s, tokens, 8) == LAM_OK && lam_session_logits(s, again) == LAM_OK);
    ck_assert_mem_eq(first, again, sizeof first);

    snprintf(path, sizeof path, "%s/session_test.%ld", P_tmpdir, (long)getpid());
    ck_assert_msg(lam_snapshot_save(p, path) == LAM_OK, "%s", lam_error());
    ck_assert_msg(lam_snapshot_load(&loaded, path) == LAM_OK, "%s", lam_error());
    unlink(path);
    ck_assert_msg(lam_session_restore(other, loaded) == LAM_OK, "%s", lam_error());
    ck_assert(lam_session_feed(other, tokens, 8) == LAM_OK);
    ck_assert(lam_session_logits(other, again) == LAM_OK);
    ck_assert_mem_eq(first, again, sizeof first);
    lam_snapshot_free(p);
    lam_snapshot_free(loaded);
    lam_session_free(s);
    lam_session_free(other);
    toy_close(&t);
}
END_TEST

/* Prompt in segments of 6, generation in segments of 2: the same as a stack that is told so. */
START_TEST(the_segment_length_may_change)
{
    const kind k = {"lamemo", 3, 6, 8};
    const lam_config cfg = toy_config(k.memory, k.attn_type, k.N, k.M);
    toy t = toy_open("ref", &cfg, &(lam_stack_options){.B = 1, .N = 6, .M = 8}, 1);
    lam_session *s = NULL;
    ck_assert(lam_session_create(&s, t.model, &(lam_session_options){.longest = 6, .mem_len = 8}) ==
              LAM_OK);
    int32_t in[TOTAL], out[TOTAL];
    double want[8], got[8];
    toy_tokens(in, TOTAL, V, 4);
    toy_tokens(out, TOTAL, V, 5);
    toy_segment(&t, in, out, 6, want, 1);
    toy_segment(&t, in + 6, out, 3, want, 1);
    ck_assert(lam_session_feed(s, in, 9) == LAM_OK);
    ck_assert(lam_session_segment(s, 2) == LAM_OK);
    for (int at = 9; at < 17; at += 2) {
        toy_segment(&t, in + at, out + at, 2, want, 1);
        for (int i = 0; i < 2; i++) {
            ck_assert(lam_session_segment(s, 2) == LAM_OK); /* nothing new: the segment goes on */
            ck_assert(lam_session_feed_nll(s, in + at + i, out + at + i, 1, &got[i]) == LAM_OK);
            ck_assert_double_eq_tol(got[i], want[i], 1e-12);
        }
    }
    ck_assert(lam_session_segment(s, 0) == LAM_ERR_ARG);
    ck_assert(lam_session_segment(s, 7) == LAM_ERR_ARG);
    lam_session_free(s);
    toy_close(&t);
}
END_TEST

/* The toy's own lengths are shorter than what is fed. */
START_TEST(lengths_beyond_what_is_fed_take_no_memory_and_change_nothing)
{
    static const char *const memories[] = {"none", "xl", "lamemo", "compressive carry thirds",
                                           "infinite sticky"};
    enum { LONG = 3000 };
    lam_config cfg = toy_config(memories[_i], -1, 5, _i == 0 ? 0 : 4);
    if (_i >= 3) /* lengths of the memory's own */
        toy_set_number(&cfg, _i == 3 ? "cmem_len" : "ltm_block", LONG);
    toy t = toy_open("ref", &cfg, &(lam_stack_options){.B = 1, .N = 5, .M = cfg.mem_len}, 1);
    toy_fill(&t);
    lam_session_options o = {.longest = LONG, .mem_len = LONG};
    int32_t tokens[TOTAL + 1];
    double nll[2][TOTAL];
    toy_tokens(tokens, TOTAL + 1, V, 8);
    for (int i = 0; i < 2; i++) {
        lam_session *s = NULL;
        must(lam_session_create(&s, t.model, &o));
        ck_assert_int_eq(s->longest, i == 0 ? LONG : LAM_FIT_LEAST);
        ck_assert_int_eq(s->mem_len, _i == 0 ? 0 : i == 0 ? LONG : LAM_FIT_LEAST);
        for (int k = 0; k < lam_stack_mem(s->stack)->n_slots && i == 1; k++)
            ck_assert_int_lt(lam_stack_mem(s->stack)->slots[k].cap, 2 * LAM_FIT_LEAST);
        must(lam_session_segment(s, 7));
        must(lam_session_feed_nll(s, tokens, tokens + 1, TOTAL, nll[i]));
        lam_session_free(s);
        o.most = TOTAL;
    }
    ck_assert_mem_eq(nll[0], nll[1], sizeof nll[0]);
    toy_close(&t);
}
END_TEST

START_TEST(wrong_use_is_an_error)
{
    const kind k = {"xl", 0, 6, 8}, wider = {"xl", 0, 6, 9};
    const lam_config cfg = toy_config(k.memory, k.attn_type, k.N, k.M);
    toy t = toy_open("ref", &cfg, &(lam_stack_options){.B = 1, .N = 6, .M = 8}, 1);
    lam_session *s = session_of(&t, &k), *other = session_of(&t, &wider);
    lam_snapshot *p = NULL;
    double scores[STREAMS * V];
    const int32_t bad[STREAMS] = {0, V}, negative[STREAMS] = {-1, 0};
    ck_assert(lam_session_logits(s, scores) == LAM_ERR_ARG);
    ck_assert(lam_session_feed(s, bad, 1) == LAM_ERR_ARG);
    ck_assert(lam_session_feed(s, negative, 1) == LAM_ERR_ARG);
    ck_assert(lam_session_snapshot(s, &p) == LAM_OK);
    ck_assert(lam_session_restore(other, p) == LAM_ERR_ARG);
    lam_snapshot_free(p);
    ck_assert(lam_snapshot_load(&p, "tests/golden/xl.safetensors") == LAM_ERR_FORMAT);
    ck_assert_ptr_null(p);
    lam_session_free(s);
    lam_session_free(other);
    toy_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, random_pieces_snapshots_and_rewinds_equal_the_forward_pass, 0,
                        KINDS * HELD);
    tcase_add_loop_test(tests, a_restored_session_repeats_every_bit, 0, KINDS);
    tcase_add_test(tests, the_segment_length_may_change);
    tcase_add_loop_test(tests, lengths_beyond_what_is_fed_take_no_memory_and_change_nothing, 0, 5);
    tcase_add_test(tests, wrong_use_is_an_error);
    return test_run("infer/session", tests);
}
