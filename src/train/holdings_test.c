/* holdings_test.c -- who keeps what of the optimiser's state: everything once, evenly, matrices whole, and no more memory
 * than that. */
#include "train/holdings.h"

#include "support/alloc.h"
#include "support/suite.h"
#include "support/toyrun.h"

#include <stdlib.h>
#include <string.h>

/* What a device is asked for. */
static size_t asked;
static lam_status (*plain_alloc)(lam_dev *dev, void **out, size_t bytes);

static lam_status counting_alloc(lam_dev *dev, void **out, size_t bytes)
{
    asked += bytes;
    return plain_alloc(dev, out, bytes);
}

static lam_optimizer_options options_of(int optim, int ranks, int rank)
{
    lam_optimizer_options o = lam_optimizer_defaults();
    o.rule = lam_rules[optim];
    o.shares = ranks;
    o.ranks = ranks;
    o.rank = rank;
    o.zero = true;
    return o;
}

static toyrun open_toy(const char *memory)
{
    const lam_config cfg = toyrun_config(memory);
    const lam_settings s = toyrun_settings();
    return toyrun_open("cpu", &cfg, &s);
}

/* Every number of a parameter is somebody's, and every rank thinks the same of it. */
START_TEST(everything_has_one_owner)
{
    toyrun r = open_toy(_i % 2 ? "compressive" : "lamemo");
    const lam_params *p = &r.model->params;
    const int ranks = 4;
    lam_holdings *all[4];
    for (int k = 0; k < ranks; k++) {
        const lam_optimizer_options o = options_of(_i / 2, ranks, k);
        must(lam_holdings_create(&all[k], r.model, &o));
    }
    size_t covered = 0, stored = 0;
    for (int i = 0; i < all[0]->n; i++) {
        const lam_holding *q = &all[0]->list[i];
        const lam_param *of = &p->list[q->param];
        ck_assert(q->offset >= of->offset && q->offset + q->count <= of->offset + of->stored);
        ck_assert(i == 0 || q->offset >= q[-1].offset + q[-1].count);
        ck_assert_ptr_eq(lam_holdings_at(all[0], q->offset), q);
        for (int k = 1; k < ranks; k++)
            ck_assert_int_eq(all[k]->list[i].owner, q->owner);
        covered += q->count;
    }
    for (int i = 0; i < p->n; i++)
        stored += p->list[i].stored;
    ck_assert_uint_eq(covered, stored);
    for (int k = 0; k < ranks; k++)
        lam_holdings_free(all[k]);
    toyrun_close(&r);
}
END_TEST

/* Each of R ranks allocates about a part of R of the moments, and what it said that it would. */
START_TEST(memory_shrinks_with_the_number_of_ranks)
{
    toyrun r = open_toy("lamemo");
    lam_ops counting = *r.dev->ops;
    const lam_ops *const plain = r.dev->ops;
    plain_alloc = plain->alloc;
    counting.alloc = counting_alloc;
    const int optim = _i;
    lam_optimizer_options whole = options_of(optim, 1, 0);
    whole.shares = 0;
    size_t one, own = 0;
    must(lam_optimizer_measure(&one, r.model, &whole));
    if (whole.rule->measure)
        must(whole.rule->measure(&own, r.model, &whole));
    const size_t moments = one - own;
    for (int ranks = 2; ranks <= 4; ranks *= 2) {
        size_t sum = 0;
        for (int k = 0; k < ranks; k++) {
            const lam_optimizer_options o = options_of(optim, ranks, k);
            size_t said, buffers = 0;
            lam_optimizer *made;
            must(lam_optimizer_measure(&said, r.model, &o));
            if (o.rule->measure)
                must(o.rule->measure(&buffers, r.model, &o));
            asked = 0;
            r.dev->ops = &counting;
            must(lam_optimizer_create(&made, r.model, &o));
            r.dev->ops = plain;
            const size_t norms = 2 * lam_class_size(r.dev, LAM_WIDE);
            ck_assert_uint_eq(asked, said + norms);
            ck_assert_msg(said - buffers < moments * 3 / 2 / (size_t)ranks,
                          "rank %d of %d keeps %zu of %zu bytes", k, ranks, said - buffers,
                          moments);
            sum += said - buffers;
            lam_optimizer_free(made);
        }
        ck_assert_msg(sum < moments * 11 / 10, "%d ranks keep %zu, one %zu", ranks, sum, moments);
    }
    toyrun_close(&r);
}
END_TEST

START_TEST(what_cannot_be_divided_is_refused)
{
    toyrun r = open_toy("none");
    const lam_optimizer_options o = options_of(_i, 4096, 0);
    lam_holdings *h;
    size_t bytes;
    ck_assert_int_eq(lam_holdings_create(&h, r.model, &o), LAM_ERR_ARG);
    ck_assert_ptr_null(h);
    ck_assert_ptr_nonnull(strstr(lam_error(), "--zero 1"));
    ck_assert_int_eq(lam_optimizer_measure(&bytes, r.model, &o), LAM_ERR_ARG);
    toyrun_close(&r);
}
END_TEST

START_TEST(a_lack_of_memory_is_reported_and_leaks_nothing)
{
    toyrun r = open_toy("lamemo");
    const lam_optimizer_options o = options_of(LAM_OPTIM_MUON, 2, 1);
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_holdings *h;
        const lam_status status = lam_holdings_create(&h, r.model, &o);
        const int failed = test_alloc_end(status);
        ck_assert(failed ? h == NULL : h != NULL);
        lam_holdings_free(h);
    }
    toyrun_close(&r);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, everything_has_one_owner, 0, 2 * LAM_OPTIMS);
    tcase_add_loop_test(tests, memory_shrinks_with_the_number_of_ranks, 0, LAM_OPTIMS);
    tcase_add_loop_test(tests, what_cannot_be_divided_is_refused, 0, LAM_OPTIMS);
    tcase_add_test(tests, a_lack_of_memory_is_reported_and_leaks_nothing);
    return test_run("train/holdings", tests);
}
