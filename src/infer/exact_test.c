/* exact_test.c -- exact arithmetic gives the same bits on every back-end, instruction set, number of threads and batch
 * size, and however a text is fed; and the bits that it gave when this was written.  Where there is a GPU, it takes
 * part: scripts/gpu-check.sh runs this program, and so does CTest with the kernels on the host (cuda_host_exact). */
#include "infer/session.h"
#include "model/configure.h"
#include "ops/cpu_levels.h"
#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOTAL = 23, MOST_STREAMS = 8 };

/* Each with what its logits hashed to. */
typedef struct kind {
    const char *memory;
    int attn_type, N, M;
    int heads, width, inner; /* columns of a head, of the model and of its feed-forward part */
    uint64_t answer;
} kind;

static const kind kinds[] = {
    {"none", 0, 6, 0, 4, 8, 12, 0xfb5e245da2853a7du},
    {"none", 2, 6, 0, 5, 8, 12, 0x7ac6ae7f042abde9u},
    {"xl", 0, 6, 9, 16, 40, 1100, 0x78bdba85d1fba2c7u},
    {"xl", 1, 4, 5, 4, 8, 12, 0x391043d8d6570730u},
    {"lamemo", 3, 6, 6, 64, 72, 1300, 0xdcc05cd27ea740bcu},
    {"lamemo", 3, 4, 13, 7, 22, 31, 0x2fa5aedb5a07a2d2u},
    {"lamemo", 31, 5, 7, 4, 8, 12, 0xd934a06c6e172132u},
    {"lamemo", 32, 5, 7, 4, 8, 12, 0x2b06ef5c43435df7u},
    {"lamemo", 33, 5, 7, 4, 8, 12, 0x6ddb8e2eaa12b25au},
    {"lamemo zero", 3, 5, 7, 4, 8, 12, 0x4724536d20fe2e71u},
    {"lamemo one", 3, 5, 7, 4, 8, 12, 0xc93189da7da271d9u},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint64_t hash_more(uint64_t hash, const void *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return hash;
}

/* Numbers from integers alone: libm's may differ between machines. */
static void fill(lam_model *model)
{
    lam_params *p = &model->params;
    uint32_t state = 1;
    for (int i = 0; i < p->n; i++) {
        const size_t n = lam_param_count(&p->list[i]);
        const double mean = p->list[i].init == LAM_INIT_GAIN ? 1.0 : 0.0;
        double *host = malloc(n * sizeof *host);
        ck_assert_ptr_nonnull(host);
        for (size_t k = 0; k < n; k++) {
            state = state * 1664525u + 1013904223u;
            host[k] = mean + ((double)(state >> 8) / (1 << 24) - 0.5);
        }
        must(lam_params_set(p, p->master, i, host));
        free(host);
    }
}

static lam_config config_of(const kind *k)
{
    lam_config cfg = toy_config(k->memory, k->attn_type, k->N, k->M);
    cfg.d_head = k->heads;
    cfg.d_model = cfg.d_embed = k->width;
    cfg.d_inner = k->inner;
    must(lam_config_finish(&cfg));
    return cfg;
}

/* How the same text is computed. */
typedef struct way {
    const lam_ops *ops;
    int threads, streams;
    int piece; /* tokens fed at a time */
} way;

/* The hash of the first stream's logits after every piece-th token, so that only ways of equal pieces compare; and of its
 * losses, which all have. */
typedef struct result {
    uint64_t logits, losses;
} result;

/* Stream 0 reads the same text in every batch. */
static result compute(const kind *k, const way *w)
{
    const lam_config cfg = config_of(k);
    const size_t V = (size_t)cfg.n_token, streams = (size_t)w->streams;
    int32_t text[MOST_STREAMS * (TOTAL + 1)], in[MOST_STREAMS * TOTAL], out[MOST_STREAMS * TOTAL];
    double nll[MOST_STREAMS * TOTAL], *logits = calloc(streams * V, sizeof *logits);
    result r = {14695981039346656037u, 14695981039346656037u};
    lam_dev *dev;
    lam_model *model;
    lam_session *session;
    for (size_t i = 0; i < streams * (TOTAL + 1); i++)
        text[i] = (int32_t)((i * i + 7 * i / 3) % V);
    must(w->ops->open(&dev, &(lam_dev_options){.threads = w->threads, .exact = 1}));
    ck_assert_int_eq(dev->exact, 1);
    must(lam_model_create_as(&model, &cfg, dev, LAM_BYTE, LAM_BYTE));
    fill(model);
    must(lam_session_create(&session, model, &(lam_session_options){.streams = w->streams}));
    for (int at = 0; at < TOTAL; at += w->piece) {
        const int n = TOTAL - at < w->piece ? TOTAL - at : w->piece;
        toy_cut(in, text, w->streams, TOTAL + 1, at, n);
        toy_cut(out, text, w->streams, TOTAL + 1, at + 1, n);
        must(lam_session_feed_nll(session, in, out, n, nll));
        r.losses = hash_more(r.losses, nll, (size_t)n * sizeof *nll);
        must(lam_session_logits(session, logits));
        if (at + n == TOTAL || w->piece == 1)
            r.logits = hash_more(r.logits, logits, V * sizeof *logits);
    }
    for (size_t v = 0; v < V; v++)
        ck_assert(isfinite(logits[v]));
    lam_session_free(session);
    lam_model_free(model);
    dev->ops->close(dev);
    free(logits);
    return r;
}

int lam_cuda_present(void);

/* A GPU, for fewer ways: the whole program shall not take long where it is emulated. */
START_TEST(the_bits_are_those_of_a_gpu)
{
    static const struct {
        int streams, piece;
    } ways[] = {{1, 1}, {3, 4}, {2, TOTAL}};
    const kind *k = &kinds[_i];
    const result one = compute(k, &(way){toy_ops("cuda"), 1, 1, 1});
    ck_assert_msg(one.logits == k->answer, "%s %d: 0x%016llxu", k->memory, k->attn_type,
                  (unsigned long long)one.logits);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const result want = compute(k, &(way){toy_ops("ref"), 1, 3, ways[i].piece});
        const result got = compute(k, &(way){toy_ops("cuda"), 1, ways[i].streams, ways[i].piece});
        ck_assert_msg(got.logits == want.logits && got.losses == want.losses,
                      "%s %d: %d streams, pieces of %d", k->memory, k->attn_type, ways[i].streams,
                      ways[i].piece);
    }
}
END_TEST

START_TEST(the_bits_are_those_of_every_machine)
{
    const kind *k = &kinds[_i];
    const result one = compute(k, &(way){toy_ops("ref"), 1, 1, 1});
    ck_assert_msg(one.logits == k->answer, "%s %d: 0x%016llxu", k->memory, k->attn_type,
                  (unsigned long long)one.logits);
}
END_TEST

START_TEST(the_bits_do_not_depend_on_the_way)
{
    static const struct {
        int threads, streams;
    } cases[] = {{1, 1}, {2, 3}, {7, 8}, {2, 1}};
    const kind *k = &kinds[_i];
    const int pieces[] = {1, 4, TOTAL};
    int levels;
    const lam_cpu_level *level = lam_cpu_levels(&levels);
    const result one = compute(k, &(way){toy_ops("ref"), 1, 1, 1});
    for (int p = 0; p < 3; p++) {
        const result want = compute(k, &(way){toy_ops("ref"), 1, 3, pieces[p]});
        ck_assert_msg(want.losses == one.losses, "%s %d: pieces of %d", k->memory, k->attn_type,
                      pieces[p]);
        for (int l = 0; l < levels; l++)
            for (int i = 0; i < 4 && lam_cpu_level_runs(level[l].name); i++) {
                const way w = {level[l].ops, cases[i].threads, cases[i].streams, pieces[p]};
                const result got = compute(k, &w);
                ck_assert_msg(got.logits == want.logits && got.losses == want.losses,
                              "%s %d on %s: %d threads, %d streams, pieces of %d", k->memory,
                              k->attn_type, level[l].name, w.threads, w.streams, w.piece);
            }
    }
}
END_TEST

START_TEST(what_has_no_exact_arithmetic_is_refused)
{
    lam_dev *dev;
    lam_model *model;
    lam_stack *stack;
    lam_config cfg = toy_config("compressive", 0, 4, 4);
    must(toy_ops("cpu")->open(&dev, &(lam_dev_options){.exact = 1}));
    must(lam_config_finish(&cfg));
    ck_assert_int_eq(lam_model_create_as(&model, &cfg, dev, LAM_BYTE, LAM_BYTE),
                     LAM_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(lam_error(), "none, xl, lamemo"));
    cfg = config_of(&kinds[4]);
    ck_assert_int_eq(lam_model_create(&model, &cfg, dev), LAM_ERR_ARG);
    must(lam_model_create_as(&model, &cfg, dev, LAM_BYTE, LAM_BYTE));
    ck_assert_int_eq(
        lam_stack_create(&stack, model, &(lam_stack_options){.B = 1, .N = 4, .M = 4, .train = 1}),
        LAM_ERR_UNSUPPORTED);
    lam_model_free(model);
    dev->ops->close(dev);
    ck_assert_int_eq(toy_ops("ref16")->open(&dev, &(lam_dev_options){.exact = 1}),
                     LAM_ERR_UNSUPPORTED);
}
END_TEST

/* LAM_TEST_DEVICE=cuda: the GPU alone. */
int main(void)
{
    const char *const only = getenv("LAM_TEST_DEVICE");
    TCase *const tests = tcase_create("all");
    if (only || lam_cuda_present())
        tcase_add_loop_test(tests, the_bits_are_those_of_a_gpu, 0, KINDS);
    if (only)
        return test_run("infer/exact", tests);
    tcase_add_loop_test(tests, the_bits_are_those_of_every_machine, 0, KINDS);
    tcase_add_loop_test(tests, the_bits_do_not_depend_on_the_way, 0, KINDS);
    tcase_add_test(tests, what_has_no_exact_arithmetic_is_refused);
    return test_run("infer/exact", tests);
}
