/* infinite_test.c -- what the infinity-former must be, beside the traces. */
#include "mem/fields.h"
#include "model/stack.h"

#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, V = 13, MOST = 64 };

static toy open_toy(const lam_config *cfg, int train)
{
    const lam_stack_options opt = {.B = B, .N = cfg->tgt_len, .M = cfg->mem_len, .train = train};
    return toy_open("ref", cfg, &opt, 1);
}

/* One segment of random tokens; the same ones for the same s. */
static void segment(toy *t, int s, double *nll)
{
    int32_t in[B * MOST], out[B * MOST];
    toy_tokens(in, (size_t)(B * t->N), V, (uint64_t)(10 + s));
    toy_tokens(out, (size_t)(B * t->N), V, (uint64_t)(50 + s));
    toy_segment(t, in, out, t->N, nll, 1);
}

static const lam_slot *find_slot(toy *t, const char *name)
{
    const lam_mem *mem = lam_stack_mem(t->stack);
    for (int i = 0; i < mem->n_slots; i++)
        if (strcmp(mem->slots[i].name, name) == 0)
            return &mem->slots[i];
    return NULL;
}

static int same(const double *x, const double *y, int n)
{
    for (int i = 0; i < n; i++)
        if (fabs(x[i] - y[i]) > 1e-12)
            return 0;
    return 1;
}

/* A block of 8 is complete after 5 segments of 3 with a memory of 5: 15 tokens, 10 of them evicted. */
START_TEST(it_is_transformer_xl_while_its_memory_is_empty)
{
    lam_config cfg = toy_config("infinite", 0, 3, 5), plain = toy_config("xl", 0, 3, 5);
    toy_set(&cfg, "ltm_block", "8");
    toy a = open_toy(&cfg, 0), b = open_toy(&plain, 0);
    double x[B * MOST], y[B * MOST];
    for (int s = 0; s < 8; s++) {
        const int waiting = find_slot(&a, "pend")->n;
        segment(&a, s, x);
        segment(&b, s, y);
        ck_assert_msg(same(x, y, B * 3) == (s < 5), "segment %d, %d rows waiting", s, waiting);
    }
    toy_close(&a);
    toy_close(&b);
}
END_TEST

/* Every evicted row enters once, a whole block at a time, before the segment that follows. */
START_TEST(blocks_enter_one_at_a_time)
{
    lam_config cfg = toy_config("infinite", 0, 5, 5);
    toy_set(&cfg, "ltm_block", "6");
    toy t = open_toy(&cfg, 0);
    double nll[B * MOST];
    int evicted = 0, entered = 0;
    for (int s = 0; s < 12; s++) {
        entered += find_slot(&t, "pend")->n >= 6 ? 6 : 0;
        segment(&t, s, nll);
        evicted += s > 0 ? 5 : 0;
        ck_assert_int_eq(find_slot(&t, "pend")->n, evicted - entered);
        ck_assert_int_eq(find_slot(&t, "B")->n,
                         entered > 0 ? (int)lam_fields_value(&cfg, "ltm_basis") : 0);
    }
    lam_stack_reset(t.stack);
    ck_assert_int_eq(find_slot(&t, "B")->n, 0);
    toy_close(&t);
}
END_TEST

/* Layers whose long-term projections are the layer's own compute what sharing computes. */
START_TEST(shared_projections_are_the_layers_own)
{
    lam_config cfg = toy_config("infinite", 0, 4, 4);
    toy a = open_toy(&cfg, 0);
    toy_set(&cfg, "ltm_share_proj", "1");
    toy b = open_toy(&cfg, 0);
    toy_copy_params(&b, &a);
    const lam_params *q = &b.model->params;
    lam_params *p = &a.model->params;
    for (int i = 0; i < p->n; i++) {
        char name[LAM_NAME_MAX];
        double host[24 * 8];
        strcpy(name, p->list[i].name);
        char *which = strstr(name, "ltm.key"), *value = strstr(name, "ltm.value");
        char *out = strstr(name, "ltm.out");
        if (!which && !value && !out)
            continue;
        strcpy(which   ? which
               : value ? value
                       : out,
               out ? "dec_attn.o_net.weight" : "dec_attn.qkv_net.weight");
        const int from = lam_params_find(q, name);
        ck_assert_int_ge(from, 0);
        ck_assert(lam_params_get(q, q->master, from, host) == LAM_OK);
        ck_assert(lam_params_set(p, p->master, i,
                                 host + (which   ? 8 * 8
                                         : value ? 16 * 8
                                                 : 0)) == LAM_OK);
    }
    double x[B * MOST], y[B * MOST];
    for (int s = 0; s < 6; s++) {
        segment(&a, s, x);
        segment(&b, s, y);
        ck_assert_msg(same(x, y, B * 4), "segment %d", s);
    }
    toy_close(&a);
    toy_close(&b);
}
END_TEST

START_TEST(a_period_makes_it_forget)
{
    lam_config cfg = toy_config("infinite sticky", 0, 4, 4);
    toy_set(&cfg, "ltm_reset", "16");
    toy t = open_toy(&cfg, 0);
    double nll[B * MOST];
    for (int s = 0; s < 12; s++) {
        segment(&t, s, nll);
        /* after 4, 8 and 12 segments nothing is left; a fit takes one to evict and one to enter */
        const int left = (s + 1) % 4 != 0;
        ck_assert_int_eq(find_slot(&t, "pend")->n, s > 0 && left ? 4 : 0);
        ck_assert_int_eq(find_slot(&t, "B")->n, left && s % 4 >= (s < 4 ? 2 : 1) ? 6 : 0);
        ck_assert_int_eq(find_slot(&t, "mu")->n, left && s % 4 >= (s < 4 ? 2 : 1) ? 4 : 0);
        ck_assert_int_eq(find_slot(&t, "m")->n, 4); /* the newest rows stay */
    }
    toy_close(&t);
}
END_TEST

/* Of 13 tokens: it ends within the fourth, seventh and tenth segment of four. */
START_TEST(a_period_may_end_within_a_segment)
{
    lam_config cfg = toy_config("infinite", 0, 4, 4);
    toy_set(&cfg, "ltm_reset", "13");
    toy t = open_toy(&cfg, 0);
    double nll[B * MOST];
    for (int s = 0; s < 12; s++) {
        segment(&t, s, nll);
        ck_assert_int_eq(find_slot(&t, "pend")->n, s == 0 || s % 3 == 0 ? 0 : 4);
    }
    toy_close(&t);
}
END_TEST

/* Losses of eight segments from a seed. */
static void noisy(const lam_config *cfg, uint64_t seed, double *sums)
{
    toy t = open_toy(cfg, 1);
    for (int s = 0; s < 8; s++) {
        int32_t in[B * MOST];
        double nll[B * MOST];
        toy_tokens(in, (size_t)(B * t.N), V, (uint64_t)s);
        lam_stack_begin(t.stack, t.N, (lam_stack_dropout){.seed = seed});
        lam_stack_forward(t.stack, in, t.N);
        lam_stack_loss(t.stack, in, 1.0);
        lam_stack_backward(t.stack);
        ck_assert(lam_stack_nll(t.stack, nll) == LAM_OK);
        lam_stack_commit(t.stack);
        sums[s] = 0.0;
        for (int i = 0; i < B * t.N; i++)
            sums[s] += nll[i];
    }
    toy_close(&t);
}

START_TEST(sticky_samples_come_from_the_seed)
{
    double one[8], again[8], other[8], even[8];
    const lam_config sticky = toy_config("infinite sticky", 0, 4, 4);
    const lam_config evenly = toy_config("infinite", 0, 4, 4);
    noisy(&sticky, 1, one);
    noisy(&sticky, 1, again);
    noisy(&sticky, 2, other);
    noisy(&evenly, 1, even);
    ck_assert_mem_eq(one, again, sizeof one);
    for (int s = 0; s < 8; s++) {
        /* the first update is that before segment 3 */
        ck_assert_int_eq(one[s] == other[s], s < 3);
        ck_assert_int_eq(one[s] == even[s], s < 3);
    }
}
END_TEST

/* Segments longer than a block make the block longer: waiting rows never pile up. */
START_TEST(segments_may_be_longer_than_blocks)
{
    lam_config cfg = toy_config("infinite", 0, 6, 4), as_long = cfg;
    toy_set(&cfg, "ltm_block", "3");
    toy_set(&as_long, "ltm_block", "6");
    toy a = open_toy(&cfg, 0), b = open_toy(&as_long, 0);
    double x[B * MOST], y[B * MOST];
    for (int s = 0; s < 6; s++) {
        segment(&a, s, x);
        segment(&b, s, y);
        ck_assert(same(x, y, B * 6));
    }
    toy_close(&a);
    toy_close(&b);
}
END_TEST

START_TEST(what_cannot_work_is_refused)
{
    const lam_config cfg = toy_config("infinite", 0, 4, 4);
    toy t = open_toy(&cfg, 0);
    lam_stack *st = NULL;
    const lam_stack_options none = {.B = 1, .N = 4};
    ck_assert(lam_stack_create(&st, t.model, &none) == LAM_ERR_ARG);
    toy_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, it_is_transformer_xl_while_its_memory_is_empty);
    tcase_add_test(tests, blocks_enter_one_at_a_time);
    tcase_add_test(tests, shared_projections_are_the_layers_own);
    tcase_add_test(tests, a_period_makes_it_forget);
    tcase_add_test(tests, a_period_may_end_within_a_segment);
    tcase_add_test(tests, sticky_samples_come_from_the_seed);
    tcase_add_test(tests, segments_may_be_longer_than_blocks);
    tcase_add_test(tests, what_cannot_work_is_refused);
    return test_run("mem/infinite", tests);
}
