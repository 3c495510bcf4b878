/* xl_test.c -- Transformer-XL is a Transformer whose text was not cut, as far as its memory reaches. */
#include "model/stack.h"

#include "support/suite.h"
#include "support/toy.h"

enum { B = 2 };

static toy open_as(const char *memory, int attn_type, int N, int M, int pre_lnorm)
{
    lam_config cfg = toy_config(memory, attn_type, N, M);
    cfg.pre_lnorm = pre_lnorm;
    cfg.n_layer = 3;
    return toy_open("ref", &cfg, &(lam_stack_options){.B = B, .N = N, .M = M}, 1);
}

START_TEST(xl_without_memory_is_none)
{
    toy a = open_as("xl", 0, 5, 0, 0), b = open_as("none", 0, 5, 0, 0);
    toy_same_losses(&a, &b, 4, 0.0);
    toy_close(&a);
    toy_close(&b);
}
END_TEST

/* What was trained without a memory may be read with one. */
START_TEST(the_memory_is_as_long_as_the_stack_says)
{
    lam_config without = toy_config("xl", 0, 4, 0);
    without.n_layer = 3;
    toy a = open_as("xl", 0, 4, 6, 0);
    toy b = toy_open("ref", &without, &(lam_stack_options){.B = B, .N = 4, .M = 6}, 1);
    toy_same_losses(&a, &b, 4, 0.0);
    ck_assert_int_eq(lam_stack_mem(b.stack)->m, 6);
    toy_close(&a);
    toy_close(&b);
}
END_TEST

START_TEST(a_memory_of_all_history_is_the_unsplit_text)
{
    enum { N = 4, ALL = 16 };
    toy a = open_as("xl", 0, N, ALL, 0), b = open_as("none", 0, ALL, 0, 0);
    int32_t in[B * ALL], out[B * ALL], x[B * N], y[B * N];
    double want[B * ALL], got[B * N];
    toy_tokens(in, B * ALL, 13, 9);
    toy_tokens(out, B * ALL, 13, 10);
    toy_segment(&b, in, out, ALL, want, 0);
    for (int at = 0; at < ALL; at += N) {
        toy_cut(x, in, B, ALL, at, N);
        toy_cut(y, out, B, ALL, at, N);
        toy_segment(&a, x, y, N, got, 1);
        for (int i = 0; i < B * N; i++)
            ck_assert_double_eq_tol(got[i], want[i / N * ALL + at + i % N], 1e-12);
    }
    toy_close(&a);
    toy_close(&b);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, xl_without_memory_is_none);
    tcase_add_test(tests, the_memory_is_as_long_as_the_stack_says);
    tcase_add_test(tests, a_memory_of_all_history_is_the_unsplit_text);
    return test_run("mem/xl", tests);
}
