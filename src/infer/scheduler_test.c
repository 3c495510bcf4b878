/* scheduler_test.c -- many texts on one model: each gets what it would get alone, whoever comes and goes. */
#include "infer/scheduler.h"

#include "support/suite.h"
#include "support/toy_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = TOY_FOLDER_N, M = TOY_FOLDER_M, V = 256, JOBS = 7, LONGEST = 90, DRAW = 31, MOST = 256 };

/* ---- recording the events of a job ---- */

typedef struct heard {
    lam_job *job;
    int n_read, n_drawn, ended;
    int32_t read[MOST], drawn[MOST];
    double read_logprob[MOST], drawn_logprob[MOST];
    lam_likely top[MOST];
    char text[4 * MOST];
    size_t size;
    lam_finish finish;
    lam_status status;
} heard;

static void hear(void *user, const lam_job_event *e)
{
    heard *h = user;
    if (e->kind == LAM_JOB_READ) {
        if (e->n_top > 0)
            h->top[h->n_read] = e->top[0];
        h->read[h->n_read] = e->token;
        h->read_logprob[h->n_read++] = e->logprob;
    } else if (e->kind == LAM_JOB_DRAWN) {
        h->drawn[h->n_drawn] = e->token;
        h->drawn_logprob[h->n_drawn++] = e->logprob;
    } else {
        h->ended++;
        h->finish = e->finish;
        h->status = e->status;
    }
    memcpy(h->text + h->size, e->text ? e->text : "", e->size);
    h->size += e->size;
}

static int keep(void *user, const lam_generated *g)
{
    heard *h = user;
    if (g->token >= 0) {
        h->drawn[h->n_drawn] = g->token;
        h->drawn_logprob[h->n_drawn++] = g->logprob;
    }
    memcpy(h->text + h->size, g->text ? g->text : "", g->size);
    h->size += g->size;
    h->finish = g->finish;
    return 0;
}

/* ---- the model under test ---- */

typedef struct bed {
    lam_dev *dev;
    lam_engine *engine;
} bed;

static bed open_bed(const char *device, const char *memory)
{
    bed b;
    const lam_ops *ops;
    const char *dir = test_temp_path(memory);
    must(toy_folder_save(dir, memory, 3));
    must(lam_ops_find(&ops, device));
    must(ops->open(&b.dev, &(lam_dev_options){.threads = 1}));
    must(lam_engine_open(&b.engine, dir, b.dev, &(lam_storage){0}));
    return b;
}

static void close_bed(bed *b)
{
    lam_engine_close(b->engine);
    b->dev->ops->close(b->dev);
}

static lam_scheduler *open_scheduler(const bed *b, lam_scheduler_options o)
{
    lam_scheduler *s;
    must(lam_scheduler_create(&s, b->engine, &o));
    return s;
}

static lam_timeline *new_text(const lam_scheduler *s)
{
    lam_timeline *t;
    must(lam_timeline_create(&t, lam_scheduler_segment(s), 0));
    return t;
}

static void prompt_of(int32_t *tokens, int n, int number)
{
    for (int i = 0; i < n; i++)
        tokens[i] = 97 + (number * 7 + i * (3 + number)) % 26;
}

static int length_of(int number)
{
    return number == 0 ? 0 : 1 + number * 37 % LONGEST;
}

static lam_sampler_options sampling(int number)
{
    lam_sampler_options o = lam_sampler_defaults();
    o.seed = 100 + (uint64_t)number;
    return o;
}

static lam_job_options request(heard *h, lam_timeline *text, const int32_t *tokens, int n, int draw)
{
    return (lam_job_options){.text = text,
                             .tokens = tokens,
                             .n = (size_t)n,
                             .draw = draw,
                             .sampler = sampling(0),
                             .sink = hear,
                             .user = h};
}

static void submit(lam_scheduler *s, const bed *b, heard *h, const lam_job_options *o)
{
    memset(h, 0, sizeof *h);
    must(lam_job_create(&h->job, b->engine, o));
    must(lam_scheduler_submit(s, h->job));
}

static void run(lam_scheduler *s)
{
    bool busy = true;
    while (busy)
        must(lam_scheduler_tick(s, &busy));
}

static void finish(heard *h)
{
    ck_assert_int_eq(h->ended, 1);
    lam_job_free(h->job);
}

/* Submits, runs to the end, frees. */
static void do_job(lam_scheduler *s, const bed *b, heard *h, const lam_job_options *o)
{
    submit(s, b, h, o);
    run(s);
    ck_assert_int_eq(h->status, LAM_OK);
    finish(h);
}

static void same_draws(const heard *a, const heard *b, double tolerance)
{
    ck_assert_int_eq(a->n_drawn, b->n_drawn);
    ck_assert_mem_eq(a->drawn, b->drawn, (size_t)a->n_drawn * sizeof *a->drawn);
    for (int i = 0; i < a->n_drawn; i++)
        ck_assert_msg(fabs(a->drawn_logprob[i] - b->drawn_logprob[i]) <= tolerance,
                      "token %d: %.17g and %.17g", i, a->drawn_logprob[i], b->drawn_logprob[i]);
    ck_assert_uint_eq(a->size, b->size);
    ck_assert_mem_eq(a->text, b->text, a->size);
}

/* ---- texts side by side ---- */

static const char *const memories[] = {"lamemo", "xl", "none"};

/* Jobs `first` to `last`, which come one every third tick. */
static void together(const bed *b, heard *out, int first, int last, lam_scheduler_options o)
{
    static int32_t prompts[JOBS][LONGEST];
    lam_timeline *texts[JOBS];
    lam_scheduler *s = open_scheduler(b, o);
    bool busy = true;
    int next = first;
    for (int tick = 0; busy || next <= last; tick++) {
        if (next <= last && tick % 3 == 0) {
            const int n = length_of(next);
            prompt_of(prompts[next], n, next);
            texts[next] = new_text(s);
            lam_job_options job = request(&out[next], texts[next], prompts[next], n, DRAW);
            job.sampler = sampling(next);
            submit(s, b, &out[next], &job);
            next++;
        }
        must(lam_scheduler_tick(s, &busy));
    }
    for (int i = first; i <= last; i++) {
        ck_assert_int_eq(texts[i]->length, 0); /* it was not to keep anything */
        finish(&out[i]);
        lam_timeline_free(texts[i]);
    }
    lam_scheduler_free(s);
}

START_TEST(texts_side_by_side_are_those_of_generate)
{
    static heard got[JOBS], want;
    bed b = open_bed("ref", memories[_i]);
    together(&b, got, 0, JOBS - 1, (lam_scheduler_options){.lanes = 3, .rows = 40});
    for (int i = 0; i < JOBS; i++) {
        int32_t prompt[LONGEST];
        prompt_of(prompt, length_of(i), i);
        memset(&want, 0, sizeof want);
        must(lam_generate(b.engine, prompt, (size_t)length_of(i),
                          &(lam_generate_options){.samples = 1,
                                                  .tokens = DRAW,
                                                  .sampler = sampling(i),
                                                  .unknown = 1,
                                                  .sink = keep,
                                                  .user = &want}));
        same_draws(&got[i], &want, 0.0);
        ck_assert_int_eq(got[i].finish, LAM_FINISH_LENGTH);
    }
    close_bed(&b);
}
END_TEST

/* To the last bit where the batch always has the same width; otherwise but for rounding. */
START_TEST(neighbours_do_not_matter)
{
    static heard alone[JOBS], among[JOBS];
    const int fixed = _i % 2;
    const double tolerance = fixed || _i >= 2 ? 0.0 : 1e-4;
    bed b = open_bed(_i >= 2 ? "ref" : "cpu", "lamemo");
    const lam_scheduler_options o = {.lanes = 6, .rows = 30, .fixed = fixed};
    together(&b, alone, 2, 2, o);
    together(&b, among, 0, JOBS - 1, o);
    same_draws(&alone[2], &among[2], tolerance);
    close_bed(&b);
}
END_TEST

/* ---- scoring prompts ---- */

START_TEST(scores_are_those_of_a_session_to_the_last_bit)
{
    static heard h;
    const char *const devices[] = {"ref", "cpu"};
    bed b = open_bed(devices[_i / 3], memories[_i % 3]);
    lam_scheduler *s = open_scheduler(&b, (lam_scheduler_options){.lanes = 2});
    lam_session *session;
    lam_timeline *text = new_text(s);
    int32_t tokens[LONGEST];
    double nll[LONGEST];
    prompt_of(tokens, LONGEST, 4);
    must(lam_session_create(&session, b.engine->model, &(lam_session_options){0}));
    must(lam_session_feed_nll(session, tokens, tokens + 1, LONGEST - 1, nll));
    for (int draw = 0; draw <= 1; draw++) {
        lam_job_options o = request(&h, text, tokens, LONGEST, draw);
        o.score = 1;
        o.top = 3;
        do_job(s, &b, &h, &o);
        ck_assert_int_eq(h.n_read, LONGEST);
        ck_assert_int_eq(h.n_drawn, draw);
        ck_assert(isnan(h.read_logprob[0]));
        for (int i = 1; i < LONGEST; i++) {
            ck_assert_int_eq(h.read[i], tokens[i]);
            ck_assert_msg(h.read_logprob[i] == -nll[i - 1], "token %d", i);
            /* What is greedy is told by comparing the two numbers. */
            ck_assert((h.top[i].token == tokens[i]) == (h.top[i].logprob == h.read_logprob[i]));
            ck_assert(h.top[i].logprob >= h.read_logprob[i]);
        }
    }
    lam_session_free(session);
    lam_timeline_free(text);
    lam_scheduler_free(s);
    close_bed(&b);
}
END_TEST

/* ---- kept and forked texts ---- */

START_TEST(a_text_that_is_kept_goes_on_where_it_was)
{
    static heard h, whole;
    bed b = open_bed("ref", memories[_i]);
    lam_scheduler *s = open_scheduler(&b, (lam_scheduler_options){.lanes = 2});
    lam_timeline *text = new_text(s), *fork, *other = new_text(s);
    int32_t all[MOST];
    prompt_of(all, 40, 3);
    lam_job_options o = request(&h, text, all, 25, 10);
    o.keep = 1;
    do_job(s, &b, &h, &o);
    ck_assert_int_eq(text->length, 35);
    memcpy(all + 25, h.drawn, 10 * sizeof *all);
    must(lam_timeline_fork(&fork, text));
    for (int i = 0; i < 8; i++)
        all[35 + i] = 100 + i;
    /* Fed, then asked what follows; in the fork and in another text that reads all at once. */
    o = request(&h, text, all + 35, 8, 0);
    o.keep = o.score = 1;
    do_job(s, &b, &h, &o);
    ck_assert_int_eq(text->length, 43);
    ck_assert_int_eq(fork->length, 35);
    o = request(&whole, other, all, 43, 0);
    o.score = 1;
    do_job(s, &b, &whole, &o);
    for (int i = 0; i < 8; i++)
        ck_assert_msg(h.read_logprob[i] == whole.read_logprob[35 + i], "token %d", i);
    o = request(&h, text, NULL, 0, 12);
    do_job(s, &b, &h, &o);
    o = request(&whole, other, all, 43, 12);
    do_job(s, &b, &whole, &o);
    same_draws(&h, &whole, 0.0);
    o = request(&h, fork, all + 35, 8, 12);
    do_job(s, &b, &h, &o);
    same_draws(&h, &whole, 0.0);
    lam_timeline_free(text);
    lam_timeline_free(fork);
    lam_timeline_free(other);
    lam_scheduler_free(s);
    close_bed(&b);
}
END_TEST

START_TEST(a_text_that_forgets_remembers_its_segment_alone)
{
    static heard h, want;
    bed b = open_bed("ref", "lamemo");
    lam_scheduler *s = open_scheduler(&b, (lam_scheduler_options){.lanes = 2});
    lam_timeline *forgets, *text = new_text(s);
    int32_t tokens[3 * N];
    prompt_of(tokens, 3 * N, 5);
    must(lam_timeline_create(&forgets, N, 1));
    lam_job_options o = request(&h, forgets, tokens, 3 * N, 0);
    o.score = 1;
    do_job(s, &b, &h, &o);
    o = request(&want, text, tokens + 2 * N, N, 0);
    o.score = 1;
    do_job(s, &b, &want, &o);
    for (int i = 1; i < N; i++)
        ck_assert_msg(h.read_logprob[2 * N + i] == want.read_logprob[i], "token %d", i);
    lam_timeline_free(forgets);
    lam_timeline_free(text);
    lam_scheduler_free(s);
    close_bed(&b);
}
END_TEST

START_TEST(a_snapshot_takes_a_text_elsewhere)
{
    static heard h, want;
    bed b = open_bed("cpu", memories[_i]);
    lam_scheduler *s = open_scheduler(&b, (lam_scheduler_options){.lanes = 2});
    lam_timeline *text = new_text(s), *back;
    lam_snapshot *p;
    lam_session *session;
    int32_t tokens[LONGEST];
    double scores[V];
    prompt_of(tokens, LONGEST, 2);
    lam_job_options o = request(&h, text, tokens, LONGEST, 0);
    o.keep = 1;
    do_job(s, &b, &h, &o);
    must(lam_scheduler_export(s, &p, text));
    must(lam_scheduler_import(s, &back, p));
    ck_assert_int_eq(back->length, LONGEST);
    ck_assert_int_eq(back->done, text->done);
    o = request(&want, text, NULL, 0, DRAW);
    do_job(s, &b, &want, &o);
    o = request(&h, back, NULL, 0, DRAW);
    do_job(s, &b, &h, &o);
    same_draws(&h, &want, 0.0);
    must(lam_session_create(&session, b.engine->model, &(lam_session_options){0}));
    must(lam_session_restore(session, p));
    must(lam_session_logits(session, scores));
    ck_assert_int_eq(lam_session_length(session), LONGEST);
    lam_session_free(session);
    lam_snapshot_free(p);
    lam_timeline_free(text);
    lam_timeline_free(back);
    lam_scheduler_free(s);
    close_bed(&b);
}
END_TEST

/* A session that changes the length of its segments ends the one it was in: until a token is read, no row is there to be
 * asked.  A draw was uniform. */
START_TEST(a_text_at_the_beginning_of_a_segment_needs_a_token)
{
    static heard h;
    bed b = open_bed("ref", memories[_i]);
    lam_scheduler *s = open_scheduler(&b, (lam_scheduler_options){.lanes = 2});
    lam_timeline *text, *other = new_text(s);
    lam_snapshot *p;
    lam_session *session;
    lam_job *job;
    int32_t tokens[2 * N + 2];
    double nll[1];
    prompt_of(tokens, 2 * N + 2, 4);
    must(lam_session_create(&session, b.engine->model, &(lam_session_options){0}));
    must(lam_session_feed(session, tokens, 2 * N));
    must(lam_session_segment(session, N - 1));
    must(lam_session_snapshot(session, &p));
    must(lam_scheduler_import(s, &text, p));
    ck_assert_int_eq(text->length, 2 * N);
    ck_assert_int_eq(text->done, 0);
    lam_job_options o = request(&h, other, tokens, N, 3);
    do_job(s, &b, &h, &o);
    o = request(&h, text, NULL, 0, 1);
    ck_assert_int_eq(lam_job_create(&job, b.engine, &o), LAM_ERR_ARG);
    ck_assert_ptr_null(job);
    ck_assert_ptr_nonnull(strstr(lam_error(), "nothing was read"));
    o.draw = 0; /* nothing to do */
    do_job(s, &b, &h, &o);
    o = request(&h, text, tokens + 2 * N, 2, 1);
    o.score = 1;
    do_job(s, &b, &h, &o);
    must(lam_session_feed_nll(session, tokens + 2 * N, tokens + 2 * N + 1, 1, nll));
    ck_assert_int_eq(h.n_read, 2);
    ck_assert(isnan(h.read_logprob[0])); /* its prediction ended with the segment */
    ck_assert_msg(h.read_logprob[1] == -nll[0], "%.17g and %.17g", h.read_logprob[1], -nll[0]);
    lam_session_free(session);
    lam_snapshot_free(p);
    lam_timeline_free(text);
    lam_timeline_free(other);
    lam_scheduler_free(s);
    close_bed(&b);
}
END_TEST

/* ---- the prefix cache ---- */

START_TEST(a_known_beginning_is_not_read_again)
{
    static heard first, second;
    bed b = open_bed("cpu", "lamemo");
    lam_scheduler *s =
        open_scheduler(&b, (lam_scheduler_options){.lanes = 2, .prefixes = 1 << 20, .fixed = 1});
    lam_timeline *text = new_text(s);
    int32_t tokens[LONGEST];
    prompt_of(tokens, LONGEST, 6);
    lam_job_options o = request(&first, text, tokens, LONGEST, DRAW);
    do_job(s, &b, &first, &o);
    const lam_scheduler_load before = lam_scheduler_look(s);
    ck_assert_uint_gt(before.prefix_bytes, 0);
    o = request(&second, text, tokens, LONGEST, DRAW);
    submit(s, &b, &second, &o);
    run(s);
    ck_assert_uint_eq(lam_job_cached(second.job), (LONGEST - 1) / N * N);
    finish(&second);
    same_draws(&first, &second, 0.0);
    ck_assert_int_eq(lam_scheduler_look(s).read - before.read, (LONGEST - 1) % N);
    tokens[2 * N + 1]++; /* the first two segments are the same */
    o = request(&second, text, tokens, LONGEST, 1);
    submit(s, &b, &second, &o);
    run(s);
    ck_assert_uint_eq(lam_job_cached(second.job), 2 * N);
    finish(&second);
    lam_timeline_free(text);
    lam_scheduler_free(s);
    close_bed(&b);
}
END_TEST

START_TEST(the_prefix_cache_stays_under_its_limit)
{
    static heard h;
    bed b = open_bed("cpu", "lamemo");
    const size_t limit = 20000;
    lam_scheduler *s = open_scheduler(&b, (lam_scheduler_options){.lanes = 2, .prefixes = limit});
    lam_timeline *text = new_text(s);
    int32_t tokens[LONGEST];
    size_t most = 0;
    for (int i = 0; i < 40; i++) {
        prompt_of(tokens, LONGEST, i);
        lam_job_options o = request(&h, text, tokens, LONGEST, 1);
        do_job(s, &b, &h, &o);
        const size_t bytes = lam_scheduler_look(s).prefix_bytes;
        ck_assert_uint_le(bytes, limit);
        most = bytes > most ? bytes : most;
    }
    ck_assert_uint_gt(most, limit / 2);
    lam_timeline_free(text);
    lam_scheduler_free(s);
    close_bed(&b);
}
END_TEST

/* ---- submitting, pausing and cancelling ---- */

START_TEST(a_job_can_be_paused_and_cancelled_and_the_queue_is_bounded)
{
    static heard h[4];
    bed b = open_bed("cpu", "lamemo");
    lam_scheduler *s = open_scheduler(&b, (lam_scheduler_options){.lanes = 1, .queue = 2});
    lam_timeline *texts[4];
    lam_job *refused;
    int32_t tokens[20];
    bool busy;
    prompt_of(tokens, 20, 1);
    for (int i = 0; i < 4; i++)
        texts[i] = new_text(s);
    lam_job_options o = request(&h[0], texts[0], tokens, 20, 200);
    o.keep = 1;
    submit(s, &b, &h[0], &o);
    for (int i = 0; i < 9; i++)
        must(lam_scheduler_tick(s, &busy));
    ck_assert_int_gt(h[0].n_drawn, 3);
    for (int i = 1; i < 3; i++) {
        o = request(&h[i], texts[i], tokens, 20, 5);
        submit(s, &b, &h[i], &o);
    }
    o = request(&h[3], texts[3], tokens, 20, 5);
    must(lam_job_create(&refused, b.engine, &o));
    ck_assert_int_eq(lam_scheduler_submit(s, refused), LAM_ERR_UNSUPPORTED);
    lam_job_free(refused);

    lam_job_pause(h[0].job, true);
    const int drawn = h[0].n_drawn;
    for (int i = 0; i < 3; i++)
        must(lam_scheduler_tick(s, &busy));
    ck_assert(!busy);
    ck_assert_int_eq(h[0].n_drawn, drawn);
    lam_job_pause(h[0].job, false);
    must(lam_scheduler_tick(s, &busy));
    ck_assert(busy);
    ck_assert_int_eq(h[0].n_drawn, drawn + 1);

    lam_job_cancel(h[1].job); /* it waits */
    lam_job_cancel(h[0].job); /* it runs */
    must(lam_scheduler_tick(s, &busy));
    ck_assert_int_eq(h[0].finish, LAM_FINISH_BREAK);
    ck_assert_int_eq(h[1].finish, LAM_FINISH_BREAK);
    ck_assert_int_eq(h[1].n_drawn, 0);
    ck_assert_int_eq(texts[0]->length, 0); /* as it was */
    run(s);
    ck_assert_int_eq(h[2].n_drawn, 5);
    for (int i = 0; i < 3; i++)
        finish(&h[i]);
    for (int i = 0; i < 4; i++)
        lam_timeline_free(texts[i]);
    lam_scheduler_free(s);
    close_bed(&b);
}
END_TEST

START_TEST(a_job_with_nothing_to_do_ends)
{
    static heard h;
    bed b = open_bed("cpu", "lamemo");
    lam_scheduler *s = open_scheduler(&b, (lam_scheduler_options){.lanes = 1});
    lam_timeline *text = new_text(s);
    lam_job *job;
    lam_job_options o = request(&h, text, NULL, 0, 0);
    o.keep = 1;
    do_job(s, &b, &h, &o);
    ck_assert_int_eq(text->length, 0);
    o = request(&h, text, (const int32_t[]){V}, 1, 0);
    ck_assert_int_eq(lam_job_create(&job, b.engine, &o), LAM_ERR_ARG);
    ck_assert_ptr_null(job);
    lam_timeline_free(text);
    lam_scheduler_free(s);
    close_bed(&b);
}
END_TEST

/* ---- memory views ---- */

START_TEST(a_view_shows_the_segment_and_the_memory)
{
    static heard h;
    bed b = open_bed("cpu", memories[_i]);
    lam_scheduler *s = open_scheduler(&b, (lam_scheduler_options){.lanes = 2});
    lam_timeline *text = new_text(s);
    lam_memory_view v;
    int32_t tokens[2 * N + 5];
    prompt_of(tokens, 2 * N + 5, 2);
    lam_job_options o = request(&h, text, tokens, 2 * N + 5, 0);
    o.keep = o.score = 1;
    do_job(s, &b, &h, &o);
    must(lam_scheduler_view(s, &v, text));
    ck_assert_int_eq(v.length, 2 * N + 5);
    ck_assert_int_eq(v.done, 5);
    ck_assert_int_eq(v.remembered, _i == 2 ? 0 : M);
    ck_assert(isnan(v.surprise[0]));
    for (int i = 1; i < 5; i++)
        ck_assert_double_eq_tol(v.surprise[i], -h.read_logprob[2 * N + i], 1e-5);
    ck_assert_int_eq(v.alpha != NULL, _i == 0);
    for (int i = 0; v.alpha && i < v.alpha_layers * v.remembered; i++)
        ck_assert(v.alpha[i] > 0.0 && v.alpha[i] < 1.0);
    for (int l = 0; l < v.layers; l++) {
        ck_assert(v.entropy[l] > 0.0);
        ck_assert(_i == 2 ? v.share[l] == 0.0 : v.share[l] > 0.0 && v.share[l] < 1.0);
        ck_assert(v.weight[l * v.bins] > 0.0 && v.weight[l * v.bins] <= 1.0);
    }
    lam_memory_view_free(&v);
    lam_timeline_free(text);
    lam_scheduler_free(s);
    close_bed(&b);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, texts_side_by_side_are_those_of_generate, 0, 3);
    tcase_add_loop_test(tests, neighbours_do_not_matter, 0, 4);
    tcase_add_loop_test(tests, scores_are_those_of_a_session_to_the_last_bit, 0, 6);
    tcase_add_loop_test(tests, a_text_that_is_kept_goes_on_where_it_was, 0, 3);
    tcase_add_test(tests, a_text_that_forgets_remembers_its_segment_alone);
    tcase_add_loop_test(tests, a_snapshot_takes_a_text_elsewhere, 0, 3);
    tcase_add_loop_test(tests, a_text_at_the_beginning_of_a_segment_needs_a_token, 0, 3);
    tcase_add_test(tests, a_known_beginning_is_not_read_again);
    tcase_add_test(tests, the_prefix_cache_stays_under_its_limit);
    tcase_add_test(tests, a_job_can_be_paused_and_cancelled_and_the_queue_is_bounded);
    tcase_add_test(tests, a_job_with_nothing_to_do_ends);
    tcase_add_loop_test(tests, a_view_shows_the_segment_and_the_memory, 0, 3);
    return test_run("infer/scheduler", tests);
}
