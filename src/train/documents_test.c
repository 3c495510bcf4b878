/* documents_test.c -- state does not leak from one document into the next: several streams of documents side by side
 * give what each document gives when it is read alone, bit for bit on the reference. */
#include "data/batcher.h"
#include "data/shelves.h"
#include "model/stack.h"

#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 3, V = 13, SEPARATOR = 5, MOST = 512, N_MOST = 8, SEED = 77 };

typedef struct model_case {
    const char *memory;
    int attn_type, N, M, pre_lnorm, n_cutoffs;
} model_case;

/* Memories longer and shorter than a segment; groups and blocks that do not divide either. */
static const model_case cases[] = {
    {.memory = "none", .attn_type = -1, .N = 4},
    {.memory = "none", .attn_type = 2, .N = 5, .pre_lnorm = 1},
    {.memory = "xl", .attn_type = -1, .N = 4, .M = 4},
    {.memory = "xl", .attn_type = -1, .N = 3, .M = 8, .pre_lnorm = 1, .n_cutoffs = 2},
    {.memory = "xl", .attn_type = 1, .N = 5, .M = 3},
    {.memory = "lamemo", .attn_type = -1, .N = 4, .M = 4},
    {.memory = "lamemo", .attn_type = -1, .N = 3, .M = 7, .pre_lnorm = 1},
    {.memory = "lamemo", .attn_type = -1, .N = 5, .M = 3, .n_cutoffs = 2},
    {.memory = "lamemo zero", .attn_type = -1, .N = 4, .M = 6},
    {.memory = "lamemo one", .attn_type = -1, .N = 4, .M = 6},
    {.memory = "lamemo from1", .attn_type = -1, .N = 4, .M = 6},
    {.memory = "lamemo from1", .attn_type = -1, .N = 5, .M = 3, .pre_lnorm = 1},
    {.memory = "lamemo", .attn_type = LAM_ATTN_LAMEMO_FULL, .N = 4, .M = 5},
    {.memory = "compressive", .attn_type = -1, .N = 4, .M = 4},
    {.memory = "compressive", .attn_type = -1, .N = 6, .M = 8, .pre_lnorm = 1},
    {.memory = "compressive pad thirds", .attn_type = -1, .N = 4, .M = 5},
    {.memory = "compressive carry thirds", .attn_type = -1, .N = 4, .M = 3, .pre_lnorm = 1},
    {.memory = "compressive mean", .attn_type = -1, .N = 5, .M = 2},
    {.memory = "infinite", .attn_type = -1, .N = 4, .M = 4},
    {.memory = "infinite sticky", .attn_type = -1, .N = 3, .M = 5, .pre_lnorm = 1},
    {.memory = "infinite within slow", .attn_type = -1, .N = 4, .M = 3},
    {.memory = "infinite share", .attn_type = -1, .N = 5, .M = 4},
};
enum { CASES = sizeof cases / sizeof *cases };

static unsigned char ids[MOST];
static lam_tokens text;

/* Documents of one token and of many segments, some ending with a segment; the last one without its separator. */
static void make_text(int N)
{
    const int lengths[] = {3 * N, 1, N, 2 * N + 1, 7, 9 * N + 2, N - 1, 5, 4 * N, 2, 6 * N - 1, 3};
    lam_rng rng = {.key = SEED, .stream = (uint64_t)N};
    int n = 0;
    for (size_t d = 0; d < sizeof lengths / sizeof *lengths; d++) {
        for (int i = 1; i < lengths[d]; i++) {
            const int id = (int)lam_rng_below(&rng, V - 1);
            ids[n++] = (unsigned char)(id < SEPARATOR ? id : id + 1);
        }
        ids[n++] = SEPARATOR;
    }
    text = (lam_tokens){
        .ids = ids, .width = 1, .vocab_size = V, .count = n - 1, .separator = SEPARATOR};
}

static lam_config config_of(const model_case *c)
{
    lam_config cfg = toy_config(c->memory, c->attn_type, c->N, c->M);
    cfg.n_layer = 3;
    cfg.pre_lnorm = c->pre_lnorm;
    cfg.dropout = cfg.dropatt = 0.0;
    cfg.n_cutoffs = c->n_cutoffs;
    for (int i = 0; i < c->n_cutoffs; i++)
        cfg.cutoffs[i] = 4 * (i + 1);
    return cfg;
}

/* What a pass leaves: the loss of every token of the text, the gradients, the memory's own loss. */
typedef struct outcome {
    double nll[MOST], aux;
    double *grad;
    size_t n_grad;
} outcome;

static double *gradients(toy *t, size_t *n)
{
    lam_params *p = &t->model->params;
    *n = p->total;
    void *raw = malloc(*n * sizeof(double));
    double *out = malloc(*n * sizeof *out);
    must(t->dev->ops->download(t->dev, raw, p->grad, *n * lam_class_size(t->dev, LAM_WIDE)));
    lam_convert(out, LAM_F64, raw, t->dev->wide, *n);
    free(raw);
    return out;
}

static toy open_toy(const model_case *c, const char *device, int streams, int train)
{
    const lam_config cfg = config_of(c);
    toy t = toy_open(device, &cfg,
                     &(lam_stack_options){.B = streams, .N = c->N, .M = c->M, .train = train}, 1);
    toy_fill(&t);
    return t;
}

static void add_aux(toy *t, double *sum)
{
    double aux = 0.0;
    if (lam_stack_has_aux(t->stack))
        must(lam_stack_aux(t->stack, &aux));
    *sum += aux;
}

/* One document after the other, each a text of its own: a separator, and its tokens. */
static void read_alone(outcome *out, const model_case *c, const char *device, int train)
{
    toy t = open_toy(c, device, 1, train);
    int64_t start = 0;
    for (int64_t end = 1; end <= text.count; end++) {
        if (end < text.count && ids[end - 1] != SEPARATOR)
            continue;
        lam_stack_reset(t.stack);
        for (int64_t at = start; at < end; at += c->N) {
            const int n = end - at < c->N ? (int)(end - at) : c->N;
            int32_t in[N_MOST], want[N_MOST];
            for (int i = 0; i < n; i++) {
                in[i] = at + i == 0 ? SEPARATOR : ids[at + i - 1];
                want[i] = ids[at + i];
            }
            lam_stack_pass(t.stack, &(lam_pass){.inputs = in,
                                                .targets = want,
                                                .n = n,
                                                .grad_scale = train ? 0.7 : 0.0});
            must(lam_stack_nll(t.stack, out->nll + at));
            if (train)
                add_aux(&t, &out->aux);
        }
        start = end;
    }
    if (train)
        out->grad = gradients(&t, &out->n_grad);
    toy_close(&t);
}

/* The document that a stream reads, and how far it is. */
typedef struct place {
    int64_t document, done;
} place;

static void read_together(outcome *out, const model_case *c, const char *device, int train)
{
    toy t = open_toy(c, device, B, train);
    lam_batcher *batcher;
    lam_shelves shelves;
    place at[B];
    int32_t in[B * N_MOST], want[B * N_MOST];
    int rows[B], n;
    const lam_batcher_options options = {.streams = B, .length = c->N, .documents = true};
    must(lam_batcher_create(&batcher, &text, &options));
    must(lam_shelves_create(&shelves, &text, B));
    lam_shelves_deal(&shelves, c->N, NULL);
    for (int b = 0; b < B; b++)
        at[b] = (place){shelves.first[b], 0};
    while ((n = lam_batcher_next(batcher, in, want)) > 0) {
        const lam_stream_rows *streams = lam_batcher_streams(batcher);
        double nll[B * N_MOST];
        for (int b = 0; b < B; b++) {
            rows[b] = streams[b].rows;
            if (streams[b].fresh)
                lam_stack_forget(t.stack, b);
        }
        lam_stack_pass(t.stack, &(lam_pass){.inputs = in,
                                            .targets = want,
                                            .n = n,
                                            .rows = rows,
                                            .grad_scale = train ? 0.7 : 0.0});
        must(lam_stack_nll(t.stack, nll));
        if (train)
            add_aux(&t, &out->aux);
        for (int b = 0; b < B; b++) {
            if (rows[b] == 0)
                continue;
            const lam_document *d = &shelves.list[at[b].document];
            memcpy(out->nll + d->start + at[b].done, nll + b * n, (size_t)rows[b] * sizeof *nll);
            for (int i = rows[b]; i < n; i++)
                ck_assert_msg(nll[b * n + i] == 0.0, "padding has a loss");
            at[b].done += rows[b];
            if (at[b].done == d->count)
                at[b] = (place){at[b].document + 1, 0};
        }
    }
    if (train)
        out->grad = gradients(&t, &out->n_grad);
    lam_shelves_free(&shelves);
    lam_batcher_free(batcher);
    toy_close(&t);
}

static void compare(const model_case *c, const char *device, double tolerance)
{
    outcome alone = {0}, together = {0};
    make_text(c->N);
    read_alone(&alone, c, device, 0);
    read_together(&together, c, device, 0);
    for (int64_t i = 0; i < text.count; i++)
        ck_assert_msg(tolerance > 0.0 ? fabs(together.nll[i] - alone.nll[i]) <= tolerance
                                      : together.nll[i] == alone.nll[i],
                      "%s N %d M %d on %s: token %lld of %lld: %.17g, alone %.17g", c->memory, c->N,
                      c->M, device, (long long)i, (long long)text.count, together.nll[i],
                      alone.nll[i]);
}

START_TEST(documents_side_by_side_are_documents_alone_bit_for_bit)
{
    compare(&cases[_i], "ref", 0.0);
}
END_TEST

START_TEST(on_other_devices_up_to_rounding)
{
    compare(&cases[_i], "cpu", 2e-5);
    compare(&cases[_i], "replayed", 2e-5);
}
END_TEST

/* Memory is a constant between segments, so the gradient of a text is the sum of its segments'. */
START_TEST(the_gradient_is_the_sum_of_the_documents)
{
    const model_case *c = &cases[_i];
    outcome alone = {0}, together = {0};
    double largest = 0.0;
    make_text(c->N);
    read_alone(&alone, c, "ref", 1);
    read_together(&together, c, "ref", 1);
    ck_assert_uint_eq(alone.n_grad, together.n_grad);
    for (size_t i = 0; i < alone.n_grad; i++)
        largest = fmax(largest, fabs(alone.grad[i]));
    ck_assert(largest > 0.0);
    for (size_t i = 0; i < alone.n_grad; i++)
        ck_assert_msg(fabs(alone.grad[i] - together.grad[i]) <= 1e-11 * largest,
                      "%s N %d M %d: gradient %zu: %.17g, alone %.17g", c->memory, c->N, c->M, i,
                      together.grad[i], alone.grad[i]);
    ck_assert_double_eq_tol(alone.aux, together.aux, 1e-11 * fmax(1.0, fabs(alone.aux)));
    if (strncmp(c->memory, "infinite", 8) == 0)
        ck_assert(alone.aux != 0.0); /* the long-term memory was read at all */
    free(alone.grad);
    free(together.grad);
}
END_TEST

int main(void)
{
    printf("seed %d\n", SEED);
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, documents_side_by_side_are_documents_alone_bit_for_bit, 0, CASES);
    tcase_add_loop_test(tests, on_other_devices_up_to_rounding, 0, CASES);
    tcase_add_loop_test(tests, the_gradient_is_the_sum_of_the_documents, 0, CASES);
    return test_run("train/documents", tests);
}
