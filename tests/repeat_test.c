/* repeat_test.c -- is work that says it repeats itself really the same?  Training and decoding on a device that
 * replays graphs (support/replayed.h) give the bits of one that does not. */
#include "infer/session.h"

#include "support/suite.h"
#include "support/replayed.h"
#include "support/toy.h"
#include "support/toyrun.h"

#include <string.h>

static const char *const memories[] = {
    "none",           "xl", "compressive", "compressive carry thirds", "lamemo", "lamemo every2",
    "infinite within"};
enum { MEMORIES = sizeof memories / sizeof *memories };

/* In groups, over several epochs and emptied memories, with dropout. */
START_TEST(training_by_replay_is_training)
{
    enum { STEPS = 60 };
    const char *memory = memories[_i / 4];
    const lam_config cfg = toyrun_config(memory);
    lam_settings s = toyrun_settings();
    s.batch_chunk = 1 + _i % 2;
    s.varlen = _i / 2 % 2;
    s.mem_reset.every = s.varlen ? 0 : 13;
    double plain[STEPS], replayed[STEPS];
    toyrun a = toyrun_open("cpu", &cfg, &s), b = toyrun_open("replayed", &cfg, &s);
    const long before = replayed_times();
    toyrun_steps(&a, STEPS, plain);
    toyrun_steps(&b, STEPS, replayed);
    for (int i = 0; i < STEPS; i++)
        ck_assert_msg(plain[i] == replayed[i], "%s, step %d: %.17g, not %.17g", memory, i,
                      replayed[i], plain[i]);
    ck_assert(toyrun_equal(&a, &b));
    const long times = replayed_times() - before;
    if (strncmp(memory, "infinite", 8) == 0) /* draws at random */
        ck_assert_int_eq(times, 0);
    else if (!s.varlen) /* otherwise shapes may hardly ever come back */
        ck_assert_int_gt(times, 10);
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

/* Every chunk has graphs of its own: a list that all share would drop each before it comes back. */
START_TEST(any_number_of_groups_replays_its_graphs)
{
    enum { STEPS = 20, GROUPS = 12 };
    const lam_config cfg = toyrun_config("lamemo");
    lam_settings s = toyrun_settings();
    s.batch_size = s.batch_chunk = GROUPS;
    toyrun a = toyrun_open("cpu", &cfg, &s), b = toyrun_open("replayed", &cfg, &s);
    const long before = replayed_times();
    toyrun_steps(&a, STEPS, NULL);
    toyrun_steps(&b, STEPS, NULL);
    ck_assert(toyrun_equal(&a, &b));
    ck_assert_int_gt(replayed_times() - before, GROUPS * STEPS / 3);
    toyrun_close(&a);
    toyrun_close(&b);
}
END_TEST

/* Other weights in all that is derived from them. */
static void disturb(toy *t, double by)
{
    lam_params *p = &t->model->params;
    const int i = lam_params_find(p, "layers.0.dec_attn.r_net.weight");
    double x[64];
    ck_assert(i >= 0 && lam_param_count(&p->list[i]) <= 64);
    must(lam_params_get(p, p->master, i, x));
    x[0] += by;
    must(lam_params_set(p, p->master, i, x));
    lam_stack_reset(t->stack);
}

static void run_pass(toy *t, const lam_pass *pass, double *nll)
{
    const lam_params *p = &t->model->params;
    if (p->grad)
        memset(p->grad, 0, p->total * sizeof(float)); /* cpu's memory is the host's */
    lam_stack_pass(t->stack, pass);
    must(lam_stack_nll(t->stack, nll));
}

/* Whatever changes between two segments must make them two kinds of work, or be uploaded. */
START_TEST(a_pass_is_known_by_all_it_depends_on)
{
    enum { B = 2, N = 4, PASSES = 150 };
    const char *memory = memories[_i / 2];
    const int train = _i % 2, M = strcmp(memory, "none") == 0 ? 0 : 5;
    lam_config cfg = toy_config(memory, -1, N, M);
    cfg.dropout = 0.2;
    const lam_stack_options options = {.B = B, .N = N, .M = M, .train = train};
    toy a = toy_open("cpu", &cfg, &options, 1), b = toy_open("replayed", &cfg, &options, 1);
    lam_rng rng = {.key = (uint64_t)_i};
    for (uint32_t i = 0; i < PASSES; i++) {
        int32_t in[B * N], out[B * N];
        double x[B * N], y[B * N];
        toy_tokens(in, B * N, 13, 2 * i);
        toy_tokens(out, B * N, 13, 2 * i + 1);
        const int n = lam_rng_below(&rng, 3) > 0 ? N : N - 1;
        const lam_pass pass = {.inputs = in,
                               .targets = out,
                               .n = n,
                               .scored = lam_rng_below(&rng, 4) > 0 ? n : n - 1,
                               .grad_scale = !train                       ? 0.0
                                             : lam_rng_below(&rng, 4) > 0 ? 1.0
                                                                          : 0.5,
                               .dropout = {.on = train && lam_rng_below(&rng, 4) > 0, 1, i}};
        run_pass(&a, &pass, x);
        run_pass(&b, &pass, y);
        ck_assert_msg(memcmp(x, y, (size_t)(B * pass.scored) * sizeof *x) == 0, "%s, pass %u",
                      memory, i);
        if (train)
            ck_assert_msg(memcmp(a.model->params.grad, b.model->params.grad,
                                 a.model->params.total * sizeof(float)) == 0,
                          "%s, gradient of pass %u", memory, i);
        if (lam_rng_below(&rng, 20) == 0)
            disturb(&a, 0.5), disturb(&b, 0.5);
    }
    toy_close(&a);
    toy_close(&b);
}
END_TEST

enum { STREAMS = 2, TOTAL = 60, V = 13 };

static void decode(const char *device, const lam_config *cfg, double *scores)
{
    const lam_stack_options options = {.B = STREAMS, .N = cfg->tgt_len, .M = cfg->mem_len};
    toy t = toy_open(device, cfg, &options, 1);
    lam_session *s;
    int32_t tokens[TOTAL * STREAMS];
    toy_tokens(tokens, TOTAL * STREAMS, V, 5);
    must(lam_session_create(&s, t.model, &(lam_session_options){.streams = STREAMS}));
    for (int i = 0; i < TOTAL; i++) {
        must(lam_session_feed(s, tokens + i * STREAMS, 1));
        must(lam_session_logits(s, scores + i * STREAMS * V));
    }
    lam_session_free(s);
    toy_close(&t);
}

START_TEST(decoding_by_replay_is_decoding)
{
    static double plain[TOTAL * STREAMS * V], replayed[TOTAL * STREAMS * V];
    const int M = strcmp(memories[_i], "none") == 0 ? 0 : 6;
    const int type = strncmp(memories[_i], "lamemo", 6) == 0 ? 3 : 0;
    const lam_config cfg = toy_config(memories[_i], type, 6, M);
    const long before = replayed_times();
    decode("cpu", &cfg, plain);
    decode("replayed", &cfg, replayed);
    ck_assert_msg(memcmp(plain, replayed, sizeof plain) == 0, "%s", memories[_i]);
    const int repeats = strncmp(memories[_i], "infinite", 8) != 0;
    ck_assert_msg(!repeats == (replayed_times() == before), "%s was replayed %ld times",
                  memories[_i], replayed_times() - before);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, training_by_replay_is_training, 0, 4 * MEMORIES);
    tcase_add_test(tests, any_number_of_groups_replays_its_graphs);
    tcase_add_loop_test(tests, a_pass_is_known_by_all_it_depends_on, 0, 2 * MEMORIES);
    tcase_add_loop_test(tests, decoding_by_replay_is_decoding, 0, MEMORIES);
    return test_run("repeat", tests);
}
