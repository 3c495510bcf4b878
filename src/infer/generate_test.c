/* generate_test.c -- samples are draws of their own, and a continuation is what a session gives. */
#include "infer/generate.h"

#include "infer/session.h"
#include "support/suite.h"
#include "support/toy_folder.h"

#include <math.h>
#include <string.h>

enum { V = 256, PROMPT = 17, TOKENS = 30, SAMPLES = 3 };

static lam_dev *dev;
static lam_engine *engine;
static int32_t prompt[PROMPT];

static void open_engine(void)
{
    const lam_ops *ops;
    const char *dir = test_temp_path("model");
    must(toy_folder_save(dir, "lamemo", 1));
    must(lam_ops_find(&ops, "cpu"));
    must(ops->open(&dev, &(lam_dev_options){.threads = 1}));
    must(lam_engine_open(&engine, dir, dev, &(lam_storage){0}));
    lam_rng rng = test_rng(5);
    for (int i = 0; i < PROMPT; i++)
        prompt[i] = (int32_t)lam_rng_below(&rng, V);
}

static void close_engine(void)
{
    lam_engine_close(engine);
    dev->ops->close(dev);
}

typedef struct heard {
    int32_t tokens[SAMPLES][TOKENS];
    int n[SAMPLES];
} heard;

static int hear(void *user, const lam_generated *g)
{
    heard *h = user;
    if (g->token >= 0)
        h->tokens[g->sample][h->n[g->sample]++] = g->token;
    return 0;
}

static void generate(heard *h, lam_generate_options o, const int32_t *from, size_t n)
{
    memset(h, 0, sizeof *h);
    o.tokens = o.tokens > 0 ? o.tokens : TOKENS;
    o.sink = hear;
    o.user = h;
    must(lam_generate(engine, from, n, &o));
}

START_TEST(samples_are_draws_of_their_own)
{
    heard three, one;
    const lam_sampler_options how = lam_sampler_defaults();
    generate(&three, (lam_generate_options){.samples = SAMPLES, .sampler = how}, prompt, PROMPT);
    generate(&one, (lam_generate_options){.samples = 1, .sampler = how}, prompt, PROMPT);
    ck_assert_mem_eq(three.tokens[0], one.tokens[0], sizeof one.tokens[0]);
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < i; k++)
            ck_assert_mem_ne(three.tokens[i], three.tokens[k], sizeof three.tokens[i]);
}
END_TEST

/* All types but one are in the prompt, and repetition is out of the question. */
START_TEST(tokens_of_the_prompt_are_repetitions_too)
{
    heard h;
    int32_t all[V - 1];
    lam_sampler_options how = lam_sampler_defaults();
    how.temperature = 0.0;
    how.repeat_penalty = 1e9;
    how.repeat_last = V;
    for (int i = 0; i < V - 1; i++)
        all[i] = i < 99 ? i : i + 1;
    generate(&h, (lam_generate_options){.samples = 1, .tokens = 1, .sampler = how}, all, V - 1);
    ck_assert_int_eq(h.tokens[0][0], 99);
}
END_TEST

/* The prompt in segments of 5, then segments of 12: longer, shorter and as long as asked for. */
START_TEST(segments_of_the_continuation_are_as_asked)
{
    static const int segments[][2] = {{5, 12}, {12, 5}, {7, 0}};
    const int read = segments[_i][0], refresh = segments[_i][1];
    heard h;
    lam_sampler_options how = lam_sampler_defaults();
    how.temperature = 0.0;
    generate(&h,
             (lam_generate_options){
                 .samples = 1, .prompt_segment = read, .refresh = refresh, .sampler = how},
             prompt, PROMPT);
    lam_session *s;
    static double scores[V];
    must(lam_session_create(&s, engine->model, &(lam_session_options){.longest = 12}));
    must(lam_session_segment(s, read));
    must(lam_session_feed(s, prompt, PROMPT - 1));
    must(lam_session_segment(s, refresh > 0 ? refresh : read));
    int32_t next = prompt[PROMPT - 1];
    for (int i = 0; i < TOKENS; i++) {
        must(lam_session_feed(s, &next, 1));
        must(lam_session_logits(s, scores));
        next = 0;
        for (int k = 1; k < V; k++)
            next = scores[k] > scores[next] ? k : next;
        ck_assert_msg(h.tokens[0][i] == next, "token %d", i);
    }
    lam_session_free(s);
}
END_TEST

static int hear_logprob(void *user, const lam_generated *g)
{
    double **next = user;
    if (g->token >= 0)
        *(*next)++ = g->logprob;
    return 0;
}

/* It holds prompt and story, each of which is longer than the model's own memory. */
START_TEST(a_long_memory_forgets_nothing_of_the_story)
{
    double logprobs[TOKENS], *next = logprobs;
    lam_sampler_options how = lam_sampler_defaults();
    how.temperature = 0.0;
    must(lam_generate(engine, prompt, PROMPT,
                      &(lam_generate_options){.samples = 1,
                                              .tokens = TOKENS,
                                              .mem_len = 1000,
                                              .sampler = how,
                                              .sink = hear_logprob,
                                              .user = &next}));
    ck_assert_ptr_eq(next, logprobs + TOKENS);
    lam_session *s;
    static double scores[V];
    must(lam_session_create(&s, engine->model, &(lam_session_options){.mem_len = 1000}));
    must(lam_session_feed(s, prompt, PROMPT - 1));
    int32_t token = prompt[PROMPT - 1];
    for (int i = 0; i < TOKENS; i++) {
        double sum = 0.0;
        must(lam_session_feed(s, &token, 1));
        must(lam_session_logits(s, scores));
        token = 0;
        for (int k = 0; k < V; k++) {
            token = scores[k] > scores[token] ? k : token;
            sum += exp(scores[k]);
        }
        ck_assert_double_eq_tol(logprobs[i], scores[token] - log(sum), 1e-9);
    }
    lam_session_free(s);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, open_engine, close_engine);
    tcase_add_test(tests, samples_are_draws_of_their_own);
    tcase_add_test(tests, tokens_of_the_prompt_are_repetitions_too);
    tcase_add_loop_test(tests, segments_of_the_continuation_are_as_asked, 0, 3);
    tcase_add_test(tests, a_long_memory_forgets_nothing_of_the_story);
    return test_run("infer/generate", tests);
}
