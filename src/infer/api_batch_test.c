/* api_batch_test.c -- the public batch: many texts in one call, each as a session of its own would give it. */
#include "lamemo.h"

#include "support/suite.h"
#include "support/toy_folder.h"

#include <math.h>
#include <string.h>

enum { TEXTS = 5, PROMPT = 40, NEW = 25 };

static lamemo_engine *engine;

#define succeed(call) ck_assert_msg((call) == LAMEMO_OK, "%s", lamemo_error())

static void open_engine(void)
{
    must(toy_folder_save(test_temp_path("model"), "lamemo", 2));
    succeed(lamemo_engine_open(test_temp_path("model"), &(lamemo_engine_options){.device = "ref"},
                               &engine));
}

static void close_engine(void)
{
    lamemo_engine_close(engine);
}

typedef struct heard {
    int n_read, n_drawn, ended;
    int32_t drawn[NEW];
    double logprobs[PROMPT + NEW];
    lamemo_finish finish;
    lamemo_status status;
} heard;

static void hear(void *user, const lamemo_event *e)
{
    heard *h = user;
    if (e->kind == LAMEMO_EVENT_READ)
        h->logprobs[h->n_read++] = e->logprob;
    else if (e->kind == LAMEMO_EVENT_DRAWN)
        h->drawn[h->n_drawn++] = e->token;
    else {
        h->ended++;
        h->finish = e->finish;
        h->status = e->status;
    }
}

static void prompt_of(int32_t *tokens, int number)
{
    for (int i = 0; i < PROMPT; i++)
        tokens[i] = 97 + (i * (number + 3)) % 26;
}

static void run(lamemo_batch *b)
{
    int busy = 1;
    while (busy)
        succeed(lamemo_batch_step(b, &busy));
}

/* The same prompt and draws in a session. */
static void alone(const int32_t *prompt, int n, int32_t *drawn)
{
    lamemo_session *s;
    succeed(lamemo_session_create(engine, NULL, &s));
    succeed(lamemo_session_feed(s, prompt, (size_t)n));
    for (int i = 0; i < NEW; i++) {
        succeed(lamemo_session_sample(s, &drawn[i], NULL));
        succeed(lamemo_session_feed(s, &drawn[i], 1));
    }
    lamemo_session_free(s);
}

START_TEST(a_batch_gives_what_sessions_give)
{
    lamemo_batch *b;
    lamemo_text *texts[TEXTS], *fork;
    static heard h[TEXTS];
    int32_t prompts[TEXTS][PROMPT], want[NEW];
    uint64_t number;
    succeed(lamemo_batch_create(engine, &(lamemo_batch_options){.slots = 2}, &b));
    memset(h, 0, sizeof h);
    for (int i = 0; i < TEXTS; i++) {
        prompt_of(prompts[i], i);
        succeed(lamemo_text_create(b, &texts[i]));
        const lamemo_job job = {.text = texts[i],
                                .tokens = prompts[i],
                                .n = PROMPT - (size_t)i,
                                .draw = NEW,
                                .score = i == 1,
                                .sink = hear,
                                .user = &h[i]};
        succeed(lamemo_batch_submit(b, &job, &number));
        ck_assert_uint_eq(number, (uint64_t)i + 1);
        ck_assert_int_eq(lamemo_batch_submit(b, &job, &number), LAMEMO_ERR_ARG);
        ck_assert_int_eq(lamemo_text_fork(texts[i], &fork), LAMEMO_ERR_ARG);
    }
    run(b);
    for (int i = 0; i < TEXTS; i++) {
        alone(prompts[i], PROMPT - i, want);
        ck_assert_int_eq(h[i].ended, 1);
        ck_assert_int_eq(h[i].n_drawn, NEW);
        ck_assert_mem_eq(h[i].drawn, want, sizeof want);
        ck_assert_int_eq(h[i].n_read, i == 1 ? PROMPT - 1 : 0);
        ck_assert_int_eq(lamemo_text_length(texts[i]), PROMPT - i + NEW);
    }
    ck_assert(isnan(h[1].logprobs[0]) && h[1].logprobs[1] < 0.0);
    succeed(lamemo_text_fork(texts[0], &fork));
    ck_assert_int_eq(lamemo_text_length(fork), PROMPT + NEW);
    lamemo_text_free(fork);
    for (int i = 0; i < TEXTS; i++)
        lamemo_text_free(texts[i]);
    lamemo_batch_free(b);
}
END_TEST

START_TEST(jobs_end_when_they_are_cancelled_or_the_batch_goes)
{
    lamemo_batch *b;
    lamemo_text *texts[3];
    static heard h[3];
    uint64_t numbers[3];
    int busy;
    const int32_t bad = 256;
    succeed(lamemo_batch_create(engine, &(lamemo_batch_options){.slots = 1, .queue = 2}, &b));
    memset(h, 0, sizeof h);
    for (int i = 0; i < 3; i++) {
        succeed(lamemo_text_create(b, &texts[i]));
        const lamemo_job job = {.text = texts[i], .draw = NEW, .sink = hear, .user = &h[i]};
        if (i < 2)
            succeed(lamemo_batch_submit(b, &job, &numbers[i]));
        else
            ck_assert_int_eq(lamemo_batch_submit(b, &job, &numbers[i]), LAMEMO_ERR_UNSUPPORTED);
    }
    const lamemo_job wrong = {.text = texts[2], .tokens = &bad, .n = 1, .sink = hear, .user = h};
    ck_assert_int_eq(lamemo_batch_submit(b, &wrong, &numbers[2]), LAMEMO_ERR_ARG);
    succeed(lamemo_batch_step(b, &busy));
    ck_assert(busy);
    lamemo_batch_cancel(b, numbers[0]);
    lamemo_batch_cancel(b, 77);
    succeed(lamemo_batch_step(b, &busy));
    ck_assert_int_eq(h[0].finish, LAMEMO_FINISH_BREAK);
    ck_assert_int_eq(lamemo_text_length(texts[0]), 0);
    ck_assert_int_eq(h[1].ended, 0);
    lamemo_batch_free(b);
    ck_assert_int_eq(h[1].ended, 1);
    ck_assert_int_eq(h[1].finish, LAMEMO_FINISH_BREAK);
    for (int i = 0; i < 3; i++)
        lamemo_text_free(texts[i]);
    lamemo_batch_free(NULL);
    lamemo_text_free(NULL);
}
END_TEST

START_TEST(wrong_sizes_are_refused_by_name)
{
    lamemo_batch *b;
    ck_assert_int_eq(lamemo_batch_create(engine, &(lamemo_batch_options){.slots = -1}, &b),
                     LAMEMO_ERR_ARG);
    ck_assert_ptr_null(b);
    ck_assert_ptr_nonnull(strstr(lamemo_error(), "slots"));
    ck_assert_int_eq(lamemo_batch_create(engine, &(lamemo_batch_options){.queue = -1}, &b),
                     LAMEMO_ERR_ARG);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_unchecked_fixture(tests, open_engine, close_engine);
    tcase_add_test(tests, a_batch_gives_what_sessions_give);
    tcase_add_test(tests, jobs_end_when_they_are_cancelled_or_the_batch_goes);
    tcase_add_test(tests, wrong_sizes_are_refused_by_name);
    return test_run("infer/api_batch", tests);
}
