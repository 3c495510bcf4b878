/* leaves_test.c -- the tree: which sums it makes, on devices that add in double and in float. */
#include "train/leaves.h"

#include "support/suite.h"
#include "support/toyrun.h"

#include <stdlib.h>
#include <string.h>

/* A number of leaf i whose sums round differently in another order. */
static float number(int i, size_t k)
{
    return (float)((double)((k * 7919 + (size_t)i * 104729) % 1000) / 3.0 - 150.0);
}

static float tree(int from, int n, size_t k)
{
    return n == 1 ? number(from, k) : tree(from, n / 2, k) + tree(from + n / 2, n / 2, k);
}

START_TEST(gradients_are_summed_pair_by_pair)
{
    const lam_config cfg = toyrun_config("xl");
    const lam_settings s = toyrun_settings();
    toyrun r = toyrun_open("cpu", &cfg, &s);
    const lam_params *p = &r.model->params;
    float *x = malloc(p->total * sizeof *x);
    for (int n = 1; n <= 16; n *= 2) {
        lam_leaves *l;
        must(lam_leaves_create(&l, r.model, n));
        ck_assert_uint_eq(lam_leaves_bytes(r.model, n) > 0, n > 1);
        for (int i = 0; i < n; i++) {
            lam_leaves_begin(l, i);
            if (i > 0) {
                must(r.dev->ops->download(r.dev, x, p->grad, p->total * sizeof *x));
                for (size_t k = 0; k < p->total; k++)
                    ck_assert_msg(x[k] == 0.0f, "leaf %d finds %g", i, (double)x[k]);
            }
            for (size_t k = 0; k < p->total; k++)
                x[k] = number(i, k);
            r.dev->ops->upload(r.dev, p->grad, x, p->total * sizeof *x);
            lam_leaves_end(l, i);
        }
        must(r.dev->ops->download(r.dev, x, p->grad, p->total * sizeof *x));
        for (size_t k = 0; k < p->total; k++)
            ck_assert_msg(x[k] == tree(0, n, k), "%d leaves, number %zu: %.9g, not %.9g", n, k,
                          (double)x[k], (double)tree(0, n, k));
        lam_leaves_free(l);
    }
    free(x);
    toyrun_close(&r);
}
END_TEST

START_TEST(totals_are_summed_in_the_same_tree)
{
    double x[8][2];
    for (int i = 0; i < 8; i++) {
        x[i][0] = i == 0 ? 1e300 : i == 4 ? -1e300 : 1.0;
        x[i][1] = i;
    }
    lam_leaves_sum(x[0], 8, 2);
    ck_assert_double_eq(x[0][0], 0.0); /* (1e300 + 3) + (-1e300 + 3): in order it would be 3 */
    ck_assert_double_eq(x[0][1], 28.0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, gradients_are_summed_pair_by_pair);
    tcase_add_test(tests, totals_are_summed_in_the_same_tree);
    return test_run("train/leaves", tests);
}
