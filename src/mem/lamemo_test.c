/* lamemo_test.c -- what changes LaMemo's memory, and where it is Transformer-XL. */
#include "model/stack.h"

#include "model/configure.h"

#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2 };

extern const lam_mem_ops lam_mem_lamemo;

static toy open_as(const char *memory, int attn_type, int N, int M, int pre_lnorm)
{
    lam_config cfg = toy_config(memory, attn_type, N, M);
    cfg.pre_lnorm = pre_lnorm;
    cfg.n_layer = 3;
    return toy_open("ref", &cfg, &(lam_stack_options){.B = B, .N = N, .M = M, .full = 1}, 1);
}

/* Reads the m refreshed memory contexts of a layer. */
static void lead_rows(toy *t, int layer, double *rows, size_t n)
{
    const lam_segment *s = lam_stack_segment(t->stack);
    ck_assert_uint_eq(lam_class_size(t->dev, LAM_ACT), sizeof(double));
    ck_assert(t->dev->ops->download(t->dev, rows, s->layer[layer].c, n * sizeof *rows) == LAM_OK);
}

START_TEST(only_the_first_token_of_a_segment_changes_the_memory)
{
    enum { N = 5, M = 7 };
    lam_config cfg = toy_config("lamemo", 3, N, M);
    cfg.n_layer = 3;
    toy t = toy_open("ref", &cfg, &(lam_stack_options){.B = 1, .N = N, .M = M}, 1);
    int32_t in[3 * N], out[3 * N];
    double nll[N], base[M * 8], rows[M * 8];
    toy_tokens(in, 3 * N, 13, 3);
    toy_tokens(out, 3 * N, 13, 4);
    lam_stack_reset(t.stack);
    toy_segment(&t, in, out, N, nll, 1);
    toy_segment(&t, in + N, out, N, nll, 1);
    for (int layer = 0; layer < 2; layer++) {
        const size_t n = M * 8;
        toy_segment(&t, in + 2 * N, out, N, nll, 0);
        lead_rows(&t, layer, base, n);
        for (int at = 0; at < N; at++) {
            int32_t changed[N];
            memcpy(changed, in + 2 * N, sizeof changed);
            changed[at] = (changed[at] + 1) % 13;
            toy_segment(&t, changed, out, N, nll, 0);
            lead_rows(&t, layer, rows, n);
            const int same = memcmp(rows, base, n * sizeof *rows) == 0;
            ck_assert_msg(same == (at > 0), "layer %d, token %d", layer, at);
        }
    }
    toy_close(&t);
}
END_TEST

START_TEST(lamemo_with_alpha_one_is_transformer_xl)
{
    for (int pre = 0; pre < 2; pre++) {
        toy a = open_as("lamemo one", 3, 5, 8, pre), b = open_as("xl", 0, 5, 8, pre);
        toy_copy_params(&b, &a);
        toy_same_losses(&a, &b, 6, 1e-12);
        toy_close(&a);
        toy_close(&b);
    }
}
END_TEST

/* Rows `from`.. of the input of a layer, of all streams. */
static void input_rows(const toy *t, int layer, int from, double *rows)
{
    const lam_segment *s = lam_stack_segment(t->stack);
    const size_t D = (size_t)s->dims.D, n = (size_t)(s->T - from);
    for (int b = 0; b < t->B; b++)
        must(t->dev->ops->download(t->dev, rows + (size_t)b * n * D,
                                   lam_at(t->dev, LAM_ACT, s->layer[layer].x,
                                          ((size_t)b * (size_t)s->T + (size_t)from) * D),
                                   n * D * sizeof *rows));
}

/* Below the layer at which refreshing begins LaMemo is Transformer-XL: same memory rows, same current rows, to the last
 * bit; above it is not, unless it never begins, or begins in the last layer, whose refreshed rows feed nothing. */
START_TEST(lamemo_is_transformer_xl_below_refresh_from)
{
    enum { N = 4, M = 6, L = 3, D = 8 };
    static const char *const from[] = {"lamemo", "lamemo from1", "lamemo from2", "lamemo from3"};
    const int pre = _i % 2, R = _i / 2;
    toy a = open_as(from[R], 3, N, M, pre), b = open_as("xl", 0, N, M, pre);
    toy_copy_params(&b, &a);
    const size_t n = (size_t)B * (M + N) * D;
    double *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
    ck_assert(x != NULL && y != NULL);
    for (int s = 0; s < 4; s++) {
        int32_t in[B * N], out[B * N];
        double nll[B * N], other[B * N];
        toy_tokens(in, B * N, 13, (uint64_t)(50 + s));
        toy_tokens(out, B * N, 13, (uint64_t)(70 + s));
        toy_segment(&a, in, out, N, nll, 1);
        toy_segment(&b, in, out, N, other, 1);
        const int ctx = lam_stack_segment(a.stack)->ctx;
        ck_assert_int_eq(ctx, s * N < M ? s * N : M);
        for (int l = 0; l <= L; l++) {
            const int all = l <= R && l < L; /* memory rows too */
            input_rows(&a, l, all ? 0 : ctx, x);
            input_rows(&b, l, all ? 0 : ctx, y);
            const size_t rows = (size_t)B * (size_t)(N + (all ? ctx : 0));
            /* with s = 0 there is no memory; a layer above R reads refreshed rows */
            const int same = s == 0 || l <= R + 1 || R >= L - 1;
            ck_assert_msg((memcmp(x, y, rows * D * sizeof *x) == 0) == same,
                          "refresh_from %d, segment %d, layer %d", R, s, l);
        }
        ck_assert((memcmp(nll, other, sizeof nll) == 0) == (s == 0 || R >= L - 1));
    }
    free(x);
    free(y);
    toy_close(&a);
    toy_close(&b);
}
END_TEST

START_TEST(refresh_from_needs_a_layer_of_the_model)
{
    lam_config cfg = toy_config("lamemo", 3, 4, 4);
    toy_set(&cfg, "refresh_from", "2"); /* of two layers: none */
    must(lam_config_finish(&cfg));
    toy_set(&cfg, "refresh_from", "3");
    ck_assert_int_eq(lam_config_finish(&cfg), LAM_ERR_ARG);
    ck_assert_str_eq(lam_error(), "config: refresh_from 3, must be 0 to the number of layers, 2");
}
END_TEST

/* refresh_every K with segments of N is LaMemo with segments of K N, as long as nothing leaves the memory: a segment
 * that rests reads the same rows as the later part of a long one, and the next refresh looks ahead as far. */
START_TEST(a_memory_refreshed_every_kth_segment_is_that_of_segments_k_times_as_long)
{
    enum { N = 3, M = 36, MOST = 64 };
    static const char *const kinds[] = {"lamemo every2", "lamemo every2 zero",
                                        "lamemo every2 from1", "lamemo every3",
                                        "lamemo every3 one"};
    static const int encodings[] = {LAM_ATTN_LAMEMO, LAM_ATTN_LAMEMO_BOTH, LAM_ATTN_LAMEMO_XL};
    const char *kind = kinds[_i / 3];
    char plain[32] = "lamemo";
    const int K = strstr(kind, "every3") ? 3 : 2, encoding = encodings[_i % 3];
    strcat(plain, kind + strlen("lamemo every2"));
    lam_config cfg = toy_config(kind, encoding, N, M),
               longer = toy_config(plain, encoding, K * N, M);
    cfg.n_layer = longer.n_layer = 3;
    cfg.pre_lnorm = longer.pre_lnorm = _i % 2;
    toy a = toy_open("ref", &cfg, &(lam_stack_options){.B = B, .N = N, .M = M, .full = 1}, 1);
    toy b =
        toy_open("ref", &longer, &(lam_stack_options){.B = B, .N = K * N, .M = M, .full = 1}, 1);
    const int total = K * N;
    int32_t in[MOST], out[MOST], x[MOST], y[MOST];
    double part[MOST], whole[MOST];
    for (int s = 0; s < 4; s++) {
        toy_tokens(in, (size_t)(B * total), 13, (uint64_t)(50 + s));
        toy_tokens(out, (size_t)(B * total), 13, (uint64_t)(70 + s));
        toy_segment(&b, in, out, total, whole, 1);
        for (int k = 0; k < K; k++) {
            toy_cut(x, in, B, total, k * N, N);
            toy_cut(y, out, B, total, k * N, N);
            toy_segment(&a, x, y, N, part, 1);
            for (int i = 0; i < B * N; i++) {
                const double want = whole[i / N * total + k * N + i % N];
                ck_assert_msg(fabs(part[i] - want) < 1e-12,
                              "%s, segment %d.%d, token %d: %.17g, not %.17g", kind, s, k, i,
                              part[i], want);
            }
        }
    }
    toy_close(&a);
    toy_close(&b);
}
END_TEST

START_TEST(refresh_every_needs_the_previous_window_and_no_documents)
{
    lam_config cfg = toy_config("lamemo every2", 3, 4, 4);
    must(lam_config_finish(&cfg));
    ck_assert_int_eq(lam_mem_takes_documents(&lam_mem_lamemo, &cfg), LAM_ERR_UNSUPPORTED);
    toy_set(&cfg, "window", "current");
    ck_assert_int_eq(lam_config_finish(&cfg), LAM_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(lam_error(), "refresh_every 2 needs window previous"));
    toy_set(&cfg, "refresh_every", "1");
    must(lam_config_finish(&cfg));
    must(lam_mem_takes_documents(&lam_mem_lamemo, &cfg));
    toy_set(&cfg, "refresh_every", "0");
    ck_assert_int_eq(lam_config_finish(&cfg), LAM_ERR_ARG);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, only_the_first_token_of_a_segment_changes_the_memory);
    tcase_add_test(tests, lamemo_with_alpha_one_is_transformer_xl);
    tcase_add_loop_test(tests, lamemo_is_transformer_xl_below_refresh_from, 0, 8);
    tcase_add_test(tests, refresh_from_needs_a_layer_of_the_model);
    tcase_add_loop_test(
        tests, a_memory_refreshed_every_kth_segment_is_that_of_segments_k_times_as_long, 0, 15);
    tcase_add_test(tests, refresh_every_needs_the_previous_window_and_no_documents);
    return test_run("mem/lamemo", tests);
}
