/* batch_test.c -- texts of different age in one batch: each is what it would be alone, whoever its neighbours are. */
#include "model/stack.h"

#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <string.h>

enum { STREAMS = 3, TEXTS = 5, N = 6, M = 7, LENGTH = 40, V = 13 };

typedef struct kind {
    const char *memory, *device;
    int attn_type;
    lam_class cache;
    double tolerance; /* against the text alone */
} kind;

static const kind kinds[] = {{"none", "ref", 0, LAM_ACT, 0.0},
                             {"xl", "ref", 0, LAM_ACT, 0.0},
                             {"compressive", "ref", 0, LAM_ACT, 0.0},
                             {"lamemo", "ref", 3, LAM_ACT, 0.0},
                             {"lamemo", "ref", 33, LAM_ACT, 0.0},
                             {"lamemo", "ref", 3, LAM_HALF, 0.0},
                             {"xl", "cpu", 0, LAM_ACT, 1e-4},
                             {"lamemo", "cpu", 3, LAM_ACT, 1e-4},
                             {"lamemo", "cpu", 3, LAM_HALF, 1e-3},
                             {"compressive", "replayed", 0, LAM_ACT, 1e-4},
                             {"lamemo", "replayed", 3, LAM_ACT, 1e-4},
                             {"lamemo from1", "ref", 3, LAM_ACT, 0.0},
                             {"lamemo from1", "replayed", 3, LAM_ACT, 1e-4},
                             {"lamemo every2", "ref", 3, LAM_ACT, 0.0},
                             {"lamemo every2", "replayed", 3, LAM_ACT, 1e-4}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static lam_config config_of(const kind *k)
{
    lam_config cfg = toy_config(k->memory, k->attn_type, N, strcmp(k->memory, "none") == 0 ? 0 : M);
    cfg.n_layer = 3; /* so that memory rows climb from layer 1, too */
    return cfg;
}

static toy open(const kind *k, int streams)
{
    const lam_config cfg = config_of(k);
    return toy_open_as(
        k->device, &cfg,
        &(lam_stack_options){.B = streams, .N = N, .M = cfg.mem_len, .batch = streams > 1},
        k->cache, k->cache);
}

/* The logits after every token of a text that is read alone. */
static void alone(const kind *k, const int32_t *text, double *logits)
{
    toy t = open(k, 1);
    for (int i = 0; i < LENGTH; i++) {
        if (i % N == 0)
            lam_stack_begin(t.stack, N, (lam_stack_dropout){0});
        lam_stack_forward(t.stack, text + i, 1);
        must(lam_stack_logits(t.stack, logits + i * V));
        if (i % N == N - 1)
            lam_stack_commit(t.stack);
    }
    toy_close(&t);
}

/* A text on its way: its own memory, in a stack of one stream, and what it has read. */
typedef struct reader {
    const int32_t *text;
    double *logits;
    int at, stream; /* tokens read; -1: not in the batch */
    lam_stack *one;
    lam_graphs *graphs[STREAMS];
} reader;

/* The first token of a segment, which refreshes the memory, is read alone. */
static void begin(reader *r, lam_stack *batch, int stream)
{
    lam_stack_sit(r->one, batch, stream);
    lam_stack_begin_token(r->one, N, r->text + r->at, &r->graphs[stream]);
    must(lam_stack_logits(r->one, r->logits + r->at * V));
    r->at++;
    r->stream = stream;
    lam_stack_join(batch, r->one);
}

/* One more token in the seat, as a prompt that is read in pieces, after others have used the batch. */
static void read_alone(reader *r, lam_stack *batch)
{
    lam_stack_resume(r->one, N, lam_stack_age(batch, r->stream));
    lam_stack_forward(r->one, r->text + r->at, 1);
    must(lam_stack_logits(r->one, r->logits + r->at * V));
    r->at++;
    lam_stack_join(batch, r->one);
}

static void end(reader *r, lam_stack *batch)
{
    lam_stack_resume(r->one, N, lam_stack_age(batch, r->stream));
    lam_stack_commit(r->one);
    lam_stack_drop(batch, r->stream);
}

/* Every text from its beginning to its end, text i from tick 3 i on, in whatever stream is free; now and then one
 * pauses or reads a token alone. */
static void together(const kind *k, const int32_t *texts, int n, double *logits)
{
    toy t = open(k, STREAMS);
    reader readers[TEXTS] = {0};
    int owner[STREAMS], left = n;
    ck_assert(lam_stack_can_batch(t.stack));
    lam_stack_open_batch(t.stack, N);
    for (int b = 0; b < STREAMS; b++)
        owner[b] = -1;
    for (int i = 0; i < n; i++) {
        readers[i] =
            (reader){.text = texts + i * LENGTH, .logits = logits + i * LENGTH * V, .stream = -1};
        must(
            lam_stack_create(&readers[i].one, t.model,
                             &(lam_stack_options){.B = 1, .N = N, .M = lam_stack_mem(t.stack)->M}));
    }
    for (int tick = 0, next = 0; left > 0; tick++) {
        for (int b = 0; b < STREAMS; b++)
            if (owner[b] < 0 && next < n && tick >= 3 * next) {
                owner[b] = next++;
                begin(&readers[owner[b]], t.stack, b);
            }
        int32_t tokens[STREAMS] = {0};
        unsigned char go[STREAMS] = {0};
        double all[STREAMS * V];
        for (int b = 0; b < STREAMS; b++) {
            go[b] = owner[b] >= 0 && (tick + b) % 5 < 3;
            tokens[b] = go[b] ? readers[owner[b]].text[readers[owner[b]].at] : 0;
        }
        lam_stack_forward_batch(t.stack, tokens, go);
        must(lam_stack_logits(t.stack, all));
        for (int b = 0; b < STREAMS; b++) {
            reader *r = owner[b] < 0 ? NULL : &readers[owner[b]];
            if (go[b])
                memcpy(r->logits + r->at++ * V, all + b * V, V * sizeof *all);
            else if (r && (tick + b) % 5 == 3)
                read_alone(r, t.stack);
            else
                continue;
            ck_assert_int_eq(lam_stack_age(t.stack, b), (r->at - 1) % N + 1);
            if (r->at % N == 0 || r->at == LENGTH)
                end(r, t.stack);
            if (r->at == LENGTH) {
                owner[b] = -1;
                left--;
            } else if (r->at % N == 0) {
                begin(r, t.stack, b);
            }
        }
    }
    for (int i = 0; i < n; i++) {
        for (int b = 0; b < STREAMS; b++)
            t.dev->ops->free_graphs(t.dev, readers[i].graphs[b]);
        lam_stack_free(readers[i].one);
    }
    toy_close(&t);
}

START_TEST(a_text_in_a_batch_is_the_text_alone)
{
    const kind *k = &kinds[_i];
    static int32_t texts[TEXTS * LENGTH];
    static double want[LENGTH * V], got[TEXTS * LENGTH * V];
    toy_tokens(texts, TEXTS * LENGTH, V, 5);
    together(k, texts, TEXTS, got);
    for (int i = 0; i < TEXTS; i++) {
        alone(k, texts + i * LENGTH, want);
        for (int x = 0; x < LENGTH * V; x++) {
            const double error = fabs(got[i * LENGTH * V + x] - want[x]);
            ck_assert_msg(error <= k->tolerance * (1.0 + fabs(want[x])),
                          "%s on %s, text %d, token %d: %.17g, alone %.17g", k->memory, k->device,
                          i, x / V, got[i * LENGTH * V + x], want[x]);
        }
    }
}
END_TEST

/* To the last bit on every back-end: the batch has the same size, the neighbours are others, and come and go. */
START_TEST(neighbours_do_not_change_a_bit)
{
    const kind *k = &kinds[_i];
    static int32_t texts[TEXTS * LENGTH];
    static double first[TEXTS * LENGTH * V], second[TEXTS * LENGTH * V];
    toy_tokens(texts, TEXTS * LENGTH, V, 5);
    together(k, texts, TEXTS, first);
    toy_tokens(texts + LENGTH, (TEXTS - 1) * LENGTH, V, 6);
    together(k, texts, TEXTS - 2, second);
    ck_assert_mem_eq(first, second, LENGTH * V * sizeof *first);
    ck_assert(memcmp(first + LENGTH * V, second + LENGTH * V, LENGTH * V * sizeof *first) != 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, a_text_in_a_batch_is_the_text_alone, 0, KINDS);
    tcase_add_loop_test(tests, neighbours_do_not_change_a_bit, 0, KINDS);
    return test_run("model/batch", tests);
}
