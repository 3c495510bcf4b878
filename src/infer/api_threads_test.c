/* api_threads_test.c -- eight threads share one engine, each with sessions of its own, and get what one
 * thread alone gets, to the last bit.
 *
 * Built with the preset tsan this is the proof that nothing in the forward path writes to what is
 * shared (docs/testing.md).  The text of a worker depends on its number alone. */
#include "lamemo.h"

#include "support/suite.h"
#include "support/toy_folder.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 8, V = 256, PROMPT = 31, NEW = 20 };

/* Everything a worker computes. */
typedef struct result {
    double logits[V], logprobs[PROMPT];
    int32_t drawn[NEW], generated[NEW];
    int n_generated;
} result;

typedef struct worker {
    lamemo_engine *engine;
    atomic_int *ready; /* workers that wait; all start together */
    int number;
    result r;
    lamemo_status status;
    char error[256];
} worker;

static int keep(void *user, const lamemo_piece *piece)
{
    result *r = user;
    if (piece->token >= 0 && r->n_generated < NEW)
        r->generated[r->n_generated++] = piece->token;
    return 0;
}

#define TRY(expr)                                                                                  \
    if ((w->status = (expr)) != LAMEMO_OK)                                                         \
    goto done

static void work(worker *w)
{
    const lamemo_session_options options = {.threads = 1};
    const lamemo_generate_options story = {.tokens = NEW, .threads = 1};
    lamemo_session *s = NULL;
    lamemo_snapshot *then = NULL;
    int32_t *tokens = NULL;
    char text[PROMPT + 1];
    size_t n = 0;
    for (int i = 0; i < PROMPT; i++)
        text[i] = (char)('a' + (w->number + 3 * i) % 26);

    TRY(lamemo_encode(w->engine, text, PROMPT, &tokens, &n));
    TRY(lamemo_session_create(w->engine, &options, &s));
    TRY(lamemo_session_feed(s, tokens, n));
    TRY(lamemo_session_logits(s, w->r.logits));
    TRY(lamemo_session_snapshot(s, &then));
    for (int i = 0; i < NEW; i++) {
        TRY(lamemo_session_sample(s, &w->r.drawn[i], NULL));
        TRY(lamemo_session_feed(s, &w->r.drawn[i], 1));
    }
    TRY(lamemo_session_restore(s, then));
    TRY(lamemo_session_logits(s, w->r.logits));
    TRY(lamemo_score(w->engine, tokens, n, &options, w->r.logprobs));
    TRY(lamemo_generate(w->engine, tokens, n, &story, keep, &w->r));
done:
    if (w->status != LAMEMO_OK)
        snprintf(w->error, sizeof w->error, "%s", lamemo_error());
    lamemo_free(tokens);
    lamemo_snapshot_free(then);
    lamemo_session_free(s);
}

static void *start(void *argument)
{
    worker *w = argument;
    atomic_fetch_add(w->ready, 1);
    while (atomic_load(w->ready) < WORKERS)
        sched_yield();
    work(w);
    return NULL;
}

static void share_an_engine(const char *memory)
{
    static worker alone[WORKERS], together[WORKERS];
    const char *dir = test_temp_path(memory);
    pthread_t threads[WORKERS];
    atomic_int ready = 0;
    lamemo_engine *engine;
    ck_assert_msg(toy_folder_save(dir, memory, 2) == LAM_OK, "%s", lam_error());
    ck_assert_msg(lamemo_engine_open(dir, &(lamemo_engine_options){.device = "cpu"}, &engine) ==
                      LAMEMO_OK,
                  "%s", lamemo_error());
    for (int i = 0; i < WORKERS; i++) {
        alone[i] = (worker){.engine = engine, .number = i};
        together[i] = (worker){.engine = engine, .ready = &ready, .number = i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, start, &together[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WORKERS; i++) {
        work(&alone[i]);
        ck_assert_msg(alone[i].status == LAMEMO_OK, "%s", alone[i].error);
        ck_assert_msg(together[i].status == LAMEMO_OK, "%s", together[i].error);
        ck_assert_int_eq(alone[i].r.n_generated, NEW);
        ck_assert_msg(memcmp(&alone[i].r, &together[i].r, sizeof alone[i].r) == 0,
                      "worker %d has another result than alone", i);
    }
    ck_assert_int_ne(memcmp(&alone[0].r, &alone[1].r, sizeof alone[0].r), 0);
    lamemo_engine_close(engine);
}

START_TEST(eight_threads_get_what_one_gets)
{
    static const char *const memories[] = {"lamemo", "xl", "none"};
    share_an_engine(memories[_i]);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, eight_threads_get_what_one_gets, 0, 3);
    return test_run("infer/api_threads", tests);
}
