/* asked_test.c -- what a stack asks of its device: where dropout falls, what is not computed twice, and whether the
 * declared cost is what is multiplied.
 *
 * Losses do not tell a mask that is missing, or used in two places, from another seed; the calls do. */
#include "model/macs.h"
#include "nn/sites.h"

#include "support/suite.h"
#include "support/toy.h"

#include <string.h>

enum { B = 2, N = 4, M = 5, L = 2, MOST = 64 };

typedef enum op { GEMM, NORM_FWD, NORM_BWD, DROPOUT, ATTN_FWD, ATTN_BWD, OPS } op;

typedef struct use {
    op op;
    double p;
    uint32_t site;
} use;

/* What was asked since forget(). */
static struct {
    const lam_ops *real;
    int calls[OPS];
    double macs;     /* of all GEMMs */
    use drops[MOST]; /* those with p above 0 */
    int n;
} asked;

static void note(op o, const lam_drop *drop)
{
    asked.calls[o]++;
    if (drop->p > 0.0) {
        ck_assert_int_lt(asked.n, MOST);
        asked.drops[asked.n++] = (use){o, drop->p, drop->site};
    }
}

#define LISTEN(NAME, name, type)                                                                   \
    static void listen_##name(lam_dev *dev, const type *a)                                         \
    {                                                                                              \
        note(NAME, &a->drop);                                                                      \
        asked.real->name(dev, a);                                                                  \
    }
static void listen_gemm(lam_dev *dev, const lam_gemm *a)
{
    note(GEMM, &a->drop);
    asked.macs += (double)a->m * a->n * a->k * a->batch;
    asked.real->gemm(dev, a);
}
LISTEN(NORM_FWD, norm_fwd, lam_norm)
LISTEN(NORM_BWD, norm_bwd, lam_norm)
LISTEN(DROPOUT, dropout, lam_dropout)
LISTEN(ATTN_FWD, attn_fwd, lam_attn)
LISTEN(ATTN_BWD, attn_bwd, lam_attn)

static void forget(void)
{
    memset(asked.calls, 0, sizeof asked.calls);
    asked.macs = 0.0;
    asked.n = 0;
}

static toy open_heard(const lam_config *cfg, int train)
{
    static lam_ops ops;
    toy t = toy_open("ref", cfg, &(lam_stack_options){.B = B, .N = N, .M = M, .train = train}, 1);
    asked.real = t.dev->ops;
    ops = *asked.real;
    ops.gemm = listen_gemm;
    ops.norm_fwd = listen_norm_fwd;
    ops.norm_bwd = listen_norm_bwd;
    ops.dropout = listen_dropout;
    ops.attn_fwd = listen_attn_fwd;
    ops.attn_bwd = listen_attn_bwd;
    t.dev->ops = &ops;
    forget();
    return t;
}

static double forward(toy *t, lam_stack_dropout dropout)
{
    int32_t in[B * N], out[B * N];
    double nll[B * N], sum = 0.0;
    toy_tokens(in, B * N, 13, 1);
    toy_tokens(out, B * N, 13, 2);
    lam_stack_begin(t->stack, N, dropout);
    lam_stack_forward(t->stack, in, N);
    lam_stack_loss(t->stack, out, 1.0);
    ck_assert(lam_stack_nll(t->stack, nll) == LAM_OK);
    for (int i = 0; i < B * N; i++)
        sum += nll[i];
    return sum;
}

static int count(use wanted)
{
    int n = 0;
    for (int i = 0; i < asked.n; i++)
        n += asked.drops[i].op == wanted.op && asked.drops[i].p == wanted.p &&
             asked.drops[i].site == wanted.site;
    return n;
}

static void once(op o, double p, lam_site site, int layer)
{
    ck_assert_msg(count((use){o, p, lam_site_of(site, layer)}) == 1,
                  "operation %d, site %d of layer %d: %d times with p = %g", (int)o, (int)site,
                  layer, count((use){o, p, lam_site_of(site, layer)}), p);
}

/* What both directions of a segment with a memory drop, in this one's operations. */
static void check_sites(const lam_config *cfg, op norm, op attn)
{
    const double p = cfg->dropout, q = cfg->dropatt;
    const int ahead = strcmp(cfg->memory, "lamemo") == 0 && q > 0.0;
    once(DROPOUT, p, LAM_SITE_EMBED, 0);
    once(DROPOUT, p, LAM_SITE_OUTPUT, 0);
    for (int l = 0; l < L; l++) {
        once(norm, p, LAM_SITE_ATTN_OUT, l);
        once(norm, p, LAM_SITE_FFN_OUT, l);
        if (q > 0.0)
            once(attn, q, LAM_SITE_ATTN, l);
        if (ahead && l < L - 1) /* the last layer's memory rows feed nothing */
            once(attn, q, LAM_SITE_ATTN_AHEAD, l);
    }
    const int both = 2 + L * (2 + (q > 0.0)) + (ahead ? L - 1 : 0);
    ck_assert_int_le(both, asked.n);
}

static const char *const memories[] = {"none", "xl", "compressive", "infinite", "lamemo"};

START_TEST(dropout_is_where_the_specification_has_it)
{
    lam_config cfg = toy_config(memories[_i], -1, N, M);
    const int lamemo = strcmp(memories[_i], "lamemo") == 0;
    cfg.dropout = 0.25;
    cfg.dropatt = 0.125;
    toy t = open_heard(&cfg, 1);
    const lam_stack_dropout dropout = {.on = 1, .seed = 7, .step = 1};
    forward(&t, dropout);
    lam_stack_commit(t.stack);
    forget();
    forward(&t, dropout);
    check_sites(&cfg, NORM_FWD, ATTN_FWD);
    once(DROPOUT, cfg.dropout, LAM_SITE_PAST, 0);
    if (lamemo)
        once(DROPOUT, cfg.dropout, LAM_SITE_AHEAD, 0);
    for (int l = 0; l < L; l++)
        once(GEMM, cfg.dropout, LAM_SITE_INNER, l);
    /* ... and nowhere else: 2 + positions, and per layer W_o, ReLU, W_2, probabilities. */
    ck_assert_int_eq(asked.n, 2 + 1 + lamemo + 4 * L + (lamemo ? L - 1 : 0));
    forget();
    lam_stack_backward(t.stack); /* masks are drawn again; ReLU's is seen in its result */
    check_sites(&cfg, NORM_BWD, ATTN_BWD);
    ck_assert_int_eq(asked.n, 2 + 3 * L + (lamemo ? L - 1 : 0));
    toy_close(&t);
}
END_TEST

START_TEST(each_rate_is_its_own)
{
    lam_config cfg = toy_config(memories[_i], -1, N, M);
    cfg.dropatt = 0.5; /* and dropout is 0 */
    toy t = open_heard(&cfg, 1);
    forward(&t, (lam_stack_dropout){.on = 1, .seed = 7, .step = 1});
    ck_assert_int_eq(asked.n, L);
    for (int l = 0; l < L; l++)
        once(ATTN_FWD, 0.5, LAM_SITE_ATTN, l);
    forget();
    forward(&t, (lam_stack_dropout){.on = 0, .seed = 7, .step = 1});
    ck_assert_int_eq(asked.n, 0);
    toy_close(&t);
}
END_TEST

START_TEST(every_step_and_seed_has_its_masks)
{
    lam_config cfg = toy_config(memories[_i], -1, N, M);
    cfg.dropout = 0.3;
    toy t = open_heard(&cfg, 1);
    const double one = forward(&t, (lam_stack_dropout){.on = 1, .seed = 7, .step = 1});
    ck_assert(forward(&t, (lam_stack_dropout){.on = 1, .seed = 7, .step = 1}) == one);
    ck_assert(forward(&t, (lam_stack_dropout){.on = 1, .seed = 7, .step = 2}) != one);
    ck_assert(forward(&t, (lam_stack_dropout){.on = 1, .seed = 8, .step = 1}) != one);
    toy_close(&t);
}
END_TEST

START_TEST(memory_rows_are_refreshed_once_a_segment)
{
    const lam_config cfg = toy_config("lamemo", -1, N, M);
    toy t = open_heard(&cfg, 0);
    int32_t in[B * N];
    double nll[B * N];
    toy_tokens(in, B * N, 13, 1);
    toy_segment(&t, in, in, N, nll, 1);
    forget();
    lam_stack_begin(t.stack, N, (lam_stack_dropout){0});
    lam_stack_forward(t.stack, in, 2);
    ck_assert_int_eq(asked.calls[ATTN_FWD], L + (L - 1)); /* nothing reads the last layer's */
    forget();
    lam_stack_forward(t.stack, in + 2 * B, 2);
    ck_assert_int_eq(asked.calls[ATTN_FWD], L);
    toy_close(&t);
}
END_TEST

/* Every GEMM of a segment with full memory, forward and backward, against lam_macs_token and the memory's cost; the
 * mean over the segments from one refresh of the memory to the next. */
START_TEST(the_declared_cost_is_what_is_multiplied)
{
    static const char *const kinds[] = {
        "xl",           "lamemo",        "lamemo from1",       "lamemo from2",
        "lamemo from3", "lamemo every3", "lamemo every2 from1"};
    lam_config cfg = toy_config(kinds[_i], -1, N, M);
    const char *const every = strstr(kinds[_i], "every");
    const int K = every ? every[5] - '0' : 1;
    cfg.n_layer = 4;
    toy t = open_heard(&cfg, 1);
    cfg = t.model->cfg;
    for (int s = 0; s < 3 * K; s++) {
        forward(&t, (lam_stack_dropout){0});
        lam_stack_commit(t.stack);
    }
    const lam_macs m = lam_macs_token(&cfg, cfg.memory);
    lam_mem_cost cost = {0};
    t.model->mem->cost(&cost, &cfg);
    const double products = B * N * (m.project + m.ffn + m.memory - cost.unused + m.softmax);
    double forward_macs = 0.0, backward_macs = 0.0;
    for (int s = 0; s < K; s++) {
        lam_stack_begin(t.stack, N, (lam_stack_dropout){0});
        forget(); /* positions are projected by now */
        int32_t in[B * N] = {0};
        lam_stack_forward(t.stack, in, N);
        lam_stack_loss(t.stack, in, 1.0);
        forward_macs += asked.macs - 2.0 * B * N * m.softmax; /* loss has the gradient, too */
        forget();
        const lam_segment *segment = lam_stack_segment(t.stack);
        double positions = 0.0; /* dW of the positional keys, where they were used */
        for (int l = 0; l < cfg.n_layer; l++)
            positions +=
                (double)cfg.d_model * cfg.n_head * cfg.d_head *
                (lam_mem_climbs(segment, l) ? cfg.mem_len + N + cfg.mem_len : cfg.mem_len + N);
        lam_stack_backward(t.stack);
        backward_macs += asked.macs - positions;
        lam_stack_commit(t.stack);
    }
    ck_assert_double_eq_tol(forward_macs / K, products, 0.5);
    ck_assert_double_eq_tol(backward_macs / K,
                            2.0 * (products - B * N * m.softmax) - B * cost.constant, 0.5);
    toy_close(&t);
}
END_TEST

int main(void)
{
    const int n = sizeof memories / sizeof *memories;
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, dropout_is_where_the_specification_has_it, 0, n);
    tcase_add_loop_test(tests, each_rate_is_its_own, 0, n);
    tcase_add_loop_test(tests, every_step_and_seed_has_its_masks, 0, n);
    tcase_add_test(tests, memory_rows_are_refreshed_once_a_segment);
    tcase_add_loop_test(tests, the_declared_cost_is_what_is_multiplied, 0, 7);
    return test_run("model/asked", tests);
}
