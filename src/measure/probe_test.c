/* probe_test.c -- do the probes say what full matrices of attention weights say?
 *
 * The brute force is a second evaluation on ref that writes every score out from the projections of a segment
 * (Eq. 2, 6, 9, 11, 12), normalises rows by themselves, and averages matrices.  It shares the forward pass with
 * the probes and nothing after it. */
#include "measure/probe.h"

#include "infer/session.h"
#include "mem/fields.h"
#include "support/suite.h"
#include "support/toyrun.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5, M = 7, BATCH = 2, INTERVAL = 2, SEGMENTS = 12, MAX_T = 32 };

static toyrun open_run(const char *device, const char *memory)
{
    lam_config cfg = toyrun_config(memory);
    const lam_settings s = toyrun_settings();
    toyrun r = toyrun_open(device, &cfg, &s);
    toyrun_steps(&r, 40, NULL); /* so that attention is not uniform */
    return r;
}

static int mem_len(const toyrun *r)
{
    return strcmp(r->model->cfg.memory, "none") == 0 ? 0 : M;
}

static lam_probe_options probe_options(const toyrun *r)
{
    return (lam_probe_options){.batch = BATCH,
                               .tgt_len = N,
                               .mem_len = mem_len(r),
                               .segments = SEGMENTS,
                               .tokens = SEGMENTS * N,
                               .interval = INTERVAL};
}

/* Sums of the brute force, one layer and head at a time. */
typedef struct brute {
    lam_probe sum;
    double count[3][MAX_T]; /* by layer and interval */
    double rows, slots;
} brute;

static const double *row_of(const lam_segment *s, int layer, int third, int b, int t, int h)
{
    const int HK = s->dims.HK;
    return (const double *)s->layer[layer].qkv +
           ((size_t)(b * s->T + t) * 3 + (size_t)third) * (size_t)HK + h * s->dims.K;
}

/* ((q + u) . k + (q + v) . r) / sqrt(K) */
static double score(const lam_segment *s, const lam_attn *pos, const double *q, const double *k,
                    int h, const double *r)
{
    const double *u = (const double *)pos->u + h * s->dims.K;
    const double *v = (const double *)pos->v + h * s->dims.K;
    double sum = 0.0;
    for (int c = 0; c < s->dims.K; c++)
        sum += (q[c] + u[c]) * k[c] + (q[c] + v[c]) * r[h * s->dims.K + c];
    return sum / sqrt(s->dims.K);
}

/* Row i of the current segment: weights p of the keys 0 .. ctx + i. */
static void weights(double *p, const lam_segment *s, int layer, int b, int h, int i)
{
    const int at = s->ctx + i;
    double sum = 0.0;
    lam_attn pos = {0};
    lam_pos_past(s->pos, layer, &pos);
    for (int j = 0; j <= at; j++) {
        const double *r = (const double *)pos.r + (size_t)(at - j) * pos.ldr;
        p[j] =
            exp(score(s, &pos, row_of(s, layer, 0, b, at, h), row_of(s, layer, 1, b, j, h), h, r));
        sum += p[j];
    }
    for (int j = 0; j <= at; j++)
        p[j] /= sum;
}

static void add_weights(brute *x, const lam_segment *s, const double *p, int layer, int h, int i)
{
    const int at = s->ctx + i, LH = layer * x->sum.H + h;
    for (int c = 0; (c + 1) * INTERVAL <= at + 1; c++) {
        double most = 0.0;
        for (int d = c * INTERVAL; d < (c + 1) * INTERVAL; d++)
            most = fmax(most, p[at - d]);
        x->sum.peak[LH * x->sum.bins + c] += most;
        x->count[layer][c] += h == 0;
    }
    for (int j = 0; j <= at; j++) {
        x->sum.entropy[LH] -= p[j] * log(p[j]);
        x->sum.share[0][LH] += j < s->ctx - s->mem->m ? p[j] : 0.0;
        x->sum.share[1][LH] += j < s->ctx ? p[j] : 0.0;
    }
}

/* Eq. 9 and 11: the denominator of slot i over the newest keys on its right, and what was known of it. */
static double alpha_of(const lam_segment *s, int layer, int b, int h, int i)
{
    const int from = (int)lam_fields_value(s->cfg, "refresh_from");
    if (layer < from)
        return 1.0;
    const lam_slot *lse = &s->mem->slots[from + 2 + 2 * (layer - from)];
    ck_assert_str_eq(lse->name, "lse");
    const double old =
        ((const double *)
             lse->rows)[((size_t)b * (size_t)lse->cap + (size_t)i) * (size_t)s->cfg->n_head +
                        (size_t)h];
    lam_attn pos = {0};
    double sum = 0.0;
    lam_pos_ahead(s->pos, layer, &pos);
    for (int j = i + 1; j <= s->ctx; j++) {
        const double *r = (const double *)pos.r + (size_t)(j - i - 1) * pos.ldr;
        if (j > s->ctx - N)
            sum += exp(
                score(s, &pos, row_of(s, layer, 0, b, i, h), row_of(s, layer, 1, b, j, h), h, r));
    }
    const double known = exp(old), top = fmax(known, sum);
    return known / (known + sum + lam_fields_value(s->cfg, "interp_eps") * top);
}

static lam_status on_segment(void *user, const lam_eval_segment *seg)
{
    brute *x = user;
    const lam_segment *s = lam_stack_segment(seg->stack);
    double p[MAX_T];
    if (seg->n < N)
        return LAM_OK;
    for (int b = 0; b < BATCH; b++)
        for (int l = 0; l < x->sum.L; l++)
            for (int h = 0; h < x->sum.H; h++) {
                for (int i = 0; i < N; i++) {
                    weights(p, s, l, b, h, i);
                    add_weights(x, s, p, l, h, i);
                }
                for (int i = 0; x->sum.alpha && i < x->sum.M; i++)
                    x->sum.alpha[(l * x->sum.H + h) * x->sum.M + i] += alpha_of(s, l, b, h, i);
            }
    for (int n = 0; n < BATCH * N; n++)
        x->sum.loss[n % N] += seg->nll[n];
    x->rows += BATCH * N;
    x->slots += BATCH;
    return LAM_OK;
}

static void near(const double *got, const double *want, int n, double by, const char *what)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabs(got[i] - want[i] / by) <= 1e-12, "%s %d: %.17g, brute force %.17g", what,
                      i, got[i], want[i] / by);
}

static double *zeros(int n)
{
    double *x = calloc((size_t)n + 1, sizeof *x);
    ck_assert_ptr_nonnull(x);
    return x;
}

static void open_brute(brute *x, const lam_probe *like)
{
    *x = (brute){.sum = *like};
    const int LH = like->L * like->H;
    x->sum.alpha = like->alpha ? zeros(LH * like->M) : NULL;
    x->sum.peak = zeros(LH * like->bins);
    x->sum.entropy = zeros(LH);
    x->sum.share[0] = zeros(LH);
    x->sum.share[1] = zeros(LH);
    x->sum.loss = zeros(N);
    x->sum.peaks = x->sum.alphas = x->sum.shares = x->sum.losses = x->sum.nll = (lam_parted){0};
}

static void compare(const lam_probe *p, const brute *x)
{
    const int LH = p->L * p->H;
    near(p->entropy, x->sum.entropy, LH, x->rows, "entropy");
    near(p->share[0], x->sum.share[0], LH, x->rows, "share of compressed rows");
    near(p->share[1], x->sum.share[1], LH, x->rows, "share of memory");
    near(p->loss, x->sum.loss, N, x->rows / N, "loss");
    if (p->alpha)
        near(p->alpha, x->sum.alpha, LH * p->M, x->slots, "alpha");
    for (int n = 0; n < LH * p->bins; n++)
        near(p->peak + n, x->sum.peak + n, 1, x->count[n / p->bins / p->H][n % p->bins], "peak");
}

START_TEST(probes_equal_full_matrices)
{
    static const char *const memories[] = {"none",        "xl",       "lamemo",
                                           "compressive", "infinite", "lamemo from1"};
    toyrun r = open_run("ref", memories[_i]);
    const lam_probe_options o = probe_options(&r);
    lam_probe p;
    brute x;
    lam_evaluator *e;
    lam_eval_result result;
    must(lam_probe_run(&p, r.model, r.text, &o, NULL, NULL));
    ck_assert_int_eq(p.segments, SEGMENTS);
    ck_assert_int_eq(p.tokens, SEGMENTS * N);
    ck_assert_int_eq(p.alpha != NULL, strncmp(memories[_i], "lamemo", 6) == 0);
    ck_assert_int_eq(p.kept, strcmp(memories[_i], "lamemo from1") == 0);
    open_brute(&x, &p);
    must(lam_evaluator_create(
        &e, r.model,
        &(lam_eval_options){.batch = BATCH,
                            .tgt_len = N,
                            .mem_len = o.mem_len,
                            .max_steps = SEGMENTS / BATCH,
                            .skip = lam_probe_warm(&r.model->cfg, N, o.mem_len),
                            .full = 1,
                            .visit = on_segment,
                            .visitor = &x}));
    must(lam_evaluator_run(e, &result, r.text, NULL, NULL));
    compare(&p, &x);
    ck_assert(result.nll == p.result.nll);
    lam_evaluator_free(e);
    lam_probe_free(&x.sum);
    lam_probe_free(&p);
    toyrun_close(&r);
}
END_TEST

/* Stretches of the text: all of them together are what is measured over heads. */
START_TEST(stretches_add_up_to_the_whole)
{
    toyrun r = open_run("ref", "lamemo");
    const lam_probe_options o = probe_options(&r);
    lam_probe p;
    must(lam_probe_run(&p, r.model, r.text, &o, NULL, NULL));
    for (int l = 0; l < p.L; l++) {
        double share = 0.0;
        for (int h = 0; h < p.H; h++)
            share += p.share[1][l * p.H + h] / p.H;
        ck_assert_double_eq_tol(lam_parted_mean(&p.shares, (size_t)l, LAM_ALL_PARTS), share, 1e-12);
        for (int k = 0; k < p.bins; k++) {
            double peak = 0.0;
            for (int h = 0; h < p.H; h++)
                peak += p.peak[(l * p.H + h) * p.bins + k] / p.H;
            ck_assert_double_eq_tol(
                lam_parted_mean(&p.peaks, (size_t)(l * p.bins + k), LAM_ALL_PARTS), peak, 1e-12);
        }
        for (int s = 0; s < p.M; s++) {
            double alpha = 0.0;
            for (int h = 0; h < p.H; h++)
                alpha += p.alpha[(l * p.H + h) * p.M + s] / p.H;
            ck_assert_double_eq_tol(
                lam_parted_mean(&p.alphas, (size_t)(l * p.M + s), LAM_ALL_PARTS), alpha, 1e-12);
        }
    }
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(lam_parted_mean(&p.losses, (size_t)i, LAM_ALL_PARTS), p.loss[i],
                                1e-12);
    const lam_estimate e = lam_parted_estimate(&p.nll, 0);
    ck_assert_double_eq_tol(e.value, lam_eval_mean(&p.result), 1e-12);
    ck_assert_int_eq(e.parts, SEGMENTS); /* fewer than there may be: one each */
    /* then it is the error over segments */
    ck_assert_double_eq_tol(e.error, lam_eval_error(&p.result), 1e-12);
    lam_probe_free(&p);
    toyrun_close(&r);
}
END_TEST

/* Two back-ends, one model: the cpu's probes are those of ref up to float rounding. */
START_TEST(the_cpu_probes_are_those_of_ref)
{
    static const char *const memories[] = {"none", "xl", "lamemo", "compressive", "infinite"};
    lam_probe p[2];
    for (int d = 0; d < 2; d++) {
        lam_config cfg = toyrun_config(memories[_i]);
        const lam_settings s = toyrun_settings();
        toyrun r = toyrun_open(d ? "cpu" : "ref", &cfg, &s);
        const lam_probe_options o = probe_options(&r);
        must(lam_probe_run(&p[d], r.model, r.text, &o, NULL, NULL));
        toyrun_close(&r);
    }
    const int LH = p[0].L * p[0].H;
    for (int n = 0; n < LH * p[0].bins; n++)
        ck_assert_double_eq_tol(p[0].peak[n], p[1].peak[n], 1e-5);
    for (int n = 0; n < LH; n++) {
        ck_assert_double_eq_tol(p[0].entropy[n], p[1].entropy[n], 1e-5);
        ck_assert_double_eq_tol(p[0].share[1][n], p[1].share[1][n], 1e-5);
    }
    for (int n = 0; p[0].alpha && n < LH * p[0].M; n++)
        ck_assert_double_eq_tol(p[0].alpha[n], p[1].alpha[n], 1e-5);
    lam_probe_free(&p[0]);
    lam_probe_free(&p[1]);
}
END_TEST

/* Figure 5: a longer memory than the model was made with, against the text decoded token by token. */
START_TEST(extrapolation_equals_decoding)
{
    static const char *const memories[] = {"xl", "lamemo"};
    toyrun r = open_run("ref", memories[_i / 3]);
    const int m = N * (1 + _i % 3), skip = 3 * N, count = 12 * N;
    lam_evaluator *e;
    lam_eval_result got;
    must(lam_evaluator_create(
        &e, r.model,
        &(lam_eval_options){.batch = 1, .tgt_len = N, .mem_len = m, .max_steps = 12, .skip = 3}));
    must(lam_evaluator_run(e, &got, r.text, NULL, NULL));
    lam_evaluator_free(e);

    lam_session *session;
    double sum = 0.0, nll;
    int32_t ids[20 * N];
    lam_tokens_copy(r.text, ids, 0, 20 * N);
    must(lam_session_create(&session, r.model,
                            &(lam_session_options){.streams = 1, .longest = N, .mem_len = m}));
    for (int t = 0; t < skip + count; t++) {
        must(lam_session_feed_nll(session, ids + t, ids + t + 1, 1, &nll));
        sum += t >= skip ? nll : 0.0;
    }
    ck_assert_int_eq(got.tokens, count);
    ck_assert_double_eq_tol(got.nll, sum, 1e-11 * sum);
    lam_session_free(session);
    toyrun_close(&r);
}
END_TEST

START_TEST(attention_is_looked_at_as_long_as_asked)
{
    toyrun r = open_run("ref", "xl");
    lam_probe_options o = probe_options(&r);
    lam_probe p;
    o.tokens = 11; /* one row of columns has 10 */
    must(lam_probe_run(&p, r.model, r.text, &o, NULL, NULL));
    ck_assert_int_eq(p.tokens, 20);
    ck_assert_int_eq(p.segments, SEGMENTS);
    lam_probe_free(&p);
    o.tokens = 81; /* 16 segments and a token */
    must(lam_probe_run(&p, r.model, r.text, &o, NULL, NULL));
    ck_assert_int_eq(p.tokens, 90);
    ck_assert_int_eq(p.segments, 18);
    lam_probe_free(&p);
    toyrun_close(&r);
}
END_TEST

START_TEST(what_cannot_be_probed_is_refused)
{
    toyrun r = open_run("ref", "xl");
    lam_probe_options o = probe_options(&r), wrong = o;
    lam_probe p;
    wrong.interval = 0;
    ck_assert(lam_probe_run(&p, r.model, r.text, &wrong, NULL, NULL) == LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "interval 0"));
    wrong = o;
    wrong.mem_len = 1000; /* 150 tokens in a column */
    ck_assert(lam_probe_run(&p, r.model, r.text, &wrong, NULL, NULL) == LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "fill the memory"));
    wrong = o;
    wrong.tgt_len = 145; /* the memory takes one segment, 4 tokens are left */
    ck_assert(lam_probe_run(&p, r.model, r.text, &wrong, NULL, NULL) == LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "no whole segment"));
    toyrun_close(&r);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, probes_equal_full_matrices, 0, 6);
    tcase_add_test(tests, stretches_add_up_to_the_whole);
    tcase_add_loop_test(tests, the_cpu_probes_are_those_of_ref, 0, 5);
    tcase_add_loop_test(tests, extrapolation_equals_decoding, 0, 6);
    tcase_add_test(tests, attention_is_looked_at_as_long_as_asked);
    tcase_add_test(tests, what_cannot_be_probed_is_refused);
    return test_run("measure/probe", tests);
}
