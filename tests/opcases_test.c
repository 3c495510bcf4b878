/* opcases_test.c -- the judge judged: the cases find what is broken (that they pass: naive_test.c, naive16_test.c).
 *
 * Every broken table is the naive one with a single mistake of the kind that back-ends make. */
#include "support/naive.h"
#include "support/opcases.h"
#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST(an_unknown_family_is_a_failure)
{
    ck_assert_int_eq(lam_opcases_run(&lam_ops_naive, "gem", NULL), 1);
}
END_TEST

static void gemm_without_bias(lam_dev *dev, const lam_gemm *a)
{
    lam_gemm b = *a;
    b.bias = NULL;
    lam_naive_gemm(dev, &b);
}

static void gemm_that_reads_c(lam_dev *dev, const lam_gemm *a)
{
    for (int i = 0; a->beta == 0.0 && a->m > 0 && i < a->n; i++)
        ((float *)a->c)[i] *= 0.0f;
    lam_gemm b = *a;
    b.beta = 1.0;
    lam_naive_gemm(dev, a->m == 1 && a->batch == 1 ? &b : a);
}

static void gemm_of_another_site(lam_dev *dev, const lam_gemm *a)
{
    lam_gemm b = *a;
    b.drop.site++;
    lam_naive_gemm(dev, &b);
}

static void gemm_without_h(lam_dev *dev, const lam_gemm *a)
{
    lam_gemm b = *a;
    b.h = NULL;
    lam_naive_gemm(dev, &b);
}

static void gemm_that_sums_too_early(lam_dev *dev, const lam_gemm *a)
{
    lam_gemm b = *a;
    b.h = NULL;
    lam_naive_gemm(dev, &b);
    for (int i = 0; a->h && i < a->m * a->n; i++)
        ((float *)a->dbias)[i % a->n] += ((float *)a->c)[i];
    b.h = a->h;
    b.dbias = calloc((size_t)a->n, sizeof(float));
    lam_naive_gemm(dev, &b);
    free(b.dbias);
}

static void norm_fwd_with_another_eps(lam_dev *dev, const lam_norm *a)
{
    lam_norm b = *a;
    b.eps = 2e-5;
    lam_naive_norm_fwd(dev, &b);
}

static void norm_bwd_without_dsum(lam_dev *dev, const lam_norm *a)
{
    lam_norm b = *a;
    b.dsum.p = NULL;
    lam_naive_norm_bwd(dev, &b);
}

static void norm_bwd_with_dirty_padding(lam_dev *dev, const lam_norm *a)
{
    lam_naive_norm_bwd(dev, a);
    if (a->dx.p && a->ld > a->width && a->rows > 0)
        ((float *)a->dx.p)[a->width] = 1e-30f;
}

static void dropout_of_another_step(lam_dev *dev, const lam_dropout *a)
{
    lam_dropout b = *a;
    b.drop.step ^= 1;
    lam_naive_dropout(dev, &b);
}

static void copy_one_too_many(lam_dev *dev, const lam_copy *a)
{
    lam_copy b = *a;
    b.count += a->count > 0 && a->out.step > a->count;
    lam_naive_copy(dev, &b);
}

static void attn_fwd_without_reach(lam_dev *dev, const lam_attn *a)
{
    lam_attn b = *a;
    b.reach = a->r || a->rbias ? a->reach : 0; /* farther rows of r may not exist */
    lam_naive_attn_fwd(dev, &b);
}

static void attn_fwd_slightly_off_scale(lam_dev *dev, const lam_attn *a)
{
    lam_attn b = *a;
    b.scale *= 1.00001;
    lam_naive_attn_fwd(dev, &b);
}

static void attn_fwd_with_finite_nothing(lam_dev *dev, const lam_attn *a)
{
    lam_naive_attn_fwd(dev, a);
    float *lse = a->lse.p;
    *lse = isinf(*lse) ? -1e30f : *lse;
}

static void attn_fwd_with_another_mask(lam_dev *dev, const lam_attn *a)
{
    lam_attn b = *a;
    b.drop.seed++;
    lam_naive_attn_fwd(dev, &b);
}

static void attn_bwd_without_dlse(lam_dev *dev, const lam_attn *a)
{
    lam_attn b = *a;
    b.dlse.p = NULL;
    lam_naive_attn_bwd(dev, &b);
}

static void attn_stats_beyond_reach(lam_dev *dev, const lam_attn_stats *a)
{
    lam_attn_stats b = *a;
    b.attn.reach = a->attn.r || a->attn.rbias ? a->attn.reach : 0;
    lam_naive_attn_stats(dev, &b);
}

static void attn_stats_with_the_cut_one_late(lam_dev *dev, const lam_attn_stats *a)
{
    lam_attn_stats b = *a;
    b.cut[1]++;
    lam_naive_attn_stats(dev, &b);
}

static void attn_bwd_that_always_overwrites(lam_dev *dev, const lam_attn *a)
{
    lam_attn b = *a;
    b.kv_add = 0;
    lam_naive_attn_bwd(dev, &b);
}

static void interp_fwd_without_eps(lam_dev *dev, const lam_interp *a)
{
    lam_interp b = *a;
    b.eps = 0.0;
    lam_naive_interp_fwd(dev, &b);
}

static void interp_bwd_that_spoils_an_input(lam_dev *dev, const lam_interp *a)
{
    lam_naive_interp_bwd(dev, a);
    if (a->rows > 0)
        ((float *)a->lse_old.p)[0] += 1.0f;
}

static void xent_that_always_stores(lam_dev *dev, const lam_xent *a)
{
    lam_xent b = *a;
    b.add = 0;
    lam_ops_naive.xent(dev, &b);
}

static void pool_of_one_row_less(lam_dev *dev, const lam_pool *a)
{
    lam_pool b = *a;
    b.rows -= a->rows > 1;
    lam_naive_pool(dev, &b);
}

static void distance_with_half_the_slope(lam_dev *dev, const lam_distance *a)
{
    lam_distance b = *a;
    b.scale /= 2.0;
    lam_naive_distance(dev, &b);
}

static void gate_bwd_without_the_slope(lam_dev *dev, const lam_gate *a)
{
    lam_gate b = *a;
    b.out = a->dpre;
    lam_naive_gate_fwd(dev, &b);
}

static void density_fwd_without_a_minimum(lam_dev *dev, const lam_density *a)
{
    lam_density b = *a;
    b.var_min = 0.0;
    lam_naive_density_fwd(dev, &b);
}

static void density_bwd_without_divergence(lam_dev *dev, const lam_density *a)
{
    lam_density b = *a;
    b.grad_scale = 0.0;
    lam_naive_density_bwd(dev, &b);
}

static void sticky_at_the_left_edge_only(lam_dev *dev, const lam_sticky_samples *a)
{
    lam_sticky_samples b = *a;
    b.within = 0;
    lam_naive_sticky(dev, &b);
}

static void ortho_begin_without_nesterov(lam_dev *dev, const lam_ortho_begin *a)
{
    float none = 0.0f;
    lam_naive_ortho_begin(dev, a);
    for (int k = 0; k < a->count && isfinite(*(const float *)a->norm); k++) {
        float *x = (float *)a->x + (size_t)k * a->size;
        const float *m = (const float *)a->m + a->offset[k];
        double sum = 0.0;
        for (size_t i = 0; i < a->size; i++)
            sum += (double)m[i] * (double)m[i];
        for (size_t i = 0; i < a->size; i++)
            x[i] = sum > 0.0 ? m[i] / (float)sqrt(sum) : none;
    }
}

static void ortho_mix_with_another_diagonal(lam_dev *dev, const lam_ortho_mix *a)
{
    lam_ortho_mix b = *a;
    b.a += 0.001;
    lam_naive_ortho_mix(dev, &b);
}

static void ortho_even_of_all_rows_but_the_last(lam_dev *dev, const lam_ortho_even *a)
{
    lam_ortho_even b = *a;
    b.rows--;
    lam_naive_ortho_even(dev, &b);
}

static void attn_next_one_row_late(lam_dev *dev, const lam_attn_next *x)
{
    int32_t late[64], first = 1;
    lam_attn_next y = *x;
    lam_naive_attn_next(dev, x);
    for (int b = 0; b < x->a.B; b++) {
        late[b] = ((const int32_t *)x->at)[b] - 1;
        first = late[b] < first ? late[b] : first;
    }
    y.at = late;
    if (first >= 0 && !x->a.r && !x->a.rbias) /* earlier rows of r may not exist */
        lam_naive_attn_next(dev, &y);
}

static void put_in_row_zero(lam_dev *dev, const lam_put_rows *a)
{
    static const int32_t zero[64];
    lam_put_rows b = *a;
    b.at = zero;
    lam_naive_put_rows(dev, &b);
}

static void tally_of_infinity(lam_dev *dev, const lam_tally *a)
{
    lam_tally b = *a;
    b.n_norms = 0;
    lam_naive_tally(dev, &b);
}

static void repeat_once(lam_dev *dev, lam_graphs **graphs, uint64_t key, void (*job)(void *),
                        void *arg)
{
    static int done;
    (void)dev, (void)graphs, (void)key;
    if (done++ == 0)
        job(arg);
}

static void update_despite_infinity(lam_dev *dev, const lam_update *a)
{
    float one = 1.0f;
    lam_update b = *a;
    b.norm = isfinite(*(const float *)a->norm) ? a->norm : &one;
    lam_ops_naive.update(dev, &b);
}

static void colsum_differs_from_run_to_run(lam_dev *dev, const lam_colsum *a)
{
    static int runs;
    lam_naive_colsum(dev, a);
    if (a->width > 0 && runs++ % 2)
        ((float *)a->out)[0] = nextafterf(((float *)a->out)[0], 1e30f);
}

/* Puts the slot of `family` into a copy of the naive table. */
#define BREAK(family, mistake)                                                                     \
    {                                                                                              \
#family,                                                                                   \
        {                                                                                          \
            .family = mistake                                                                      \
        }                                                                                          \
    }
static const struct broken {
    const char *family;
    lam_ops slot; /* only the broken one is filled */
} broken[] = {
    BREAK(gemm, gemm_without_bias),
    BREAK(gemm, gemm_that_reads_c),
    BREAK(gemm, gemm_of_another_site),
    {"gemm_inner", {.gemm = gemm_of_another_site}},
    {"gemm_inner", {.gemm = gemm_without_h}},
    {"gemm_inner", {.gemm = gemm_that_sums_too_early}},
    BREAK(norm_fwd, norm_fwd_with_another_eps),
    BREAK(norm_bwd, norm_bwd_without_dsum),
    BREAK(norm_bwd, norm_bwd_with_dirty_padding),
    BREAK(dropout, dropout_of_another_step),
    BREAK(copy, copy_one_too_many),
    BREAK(colsum, colsum_differs_from_run_to_run),
    BREAK(attn_fwd, attn_fwd_without_reach),
    BREAK(attn_fwd, attn_fwd_slightly_off_scale),
    BREAK(attn_fwd, attn_fwd_with_finite_nothing),
    BREAK(attn_fwd, attn_fwd_with_another_mask),
    BREAK(attn_bwd, attn_bwd_without_dlse),
    BREAK(attn_bwd, attn_bwd_that_always_overwrites),
    BREAK(attn_stats, attn_stats_beyond_reach),
    BREAK(attn_stats, attn_stats_with_the_cut_one_late),
    BREAK(interp_fwd, interp_fwd_without_eps),
    BREAK(interp_bwd, interp_bwd_that_spoils_an_input),
    BREAK(xent, xent_that_always_stores),
    BREAK(update, update_despite_infinity),
    BREAK(pool, pool_of_one_row_less),
    BREAK(distance, distance_with_half_the_slope),
    BREAK(gate_bwd, gate_bwd_without_the_slope),
    BREAK(density_fwd, density_fwd_without_a_minimum),
    BREAK(density_bwd, density_bwd_without_divergence),
    BREAK(sticky, sticky_at_the_left_edge_only),
    BREAK(ortho_begin, ortho_begin_without_nesterov),
    BREAK(ortho_mix, ortho_mix_with_another_diagonal),
    BREAK(ortho_even, ortho_even_of_all_rows_but_the_last),
    BREAK(attn_next, attn_next_one_row_late),
    BREAK(put_rows, put_in_row_zero),
    BREAK(tally, tally_of_infinity),
    BREAK(repeat, repeat_once),
};
enum { BROKEN = sizeof broken / sizeof *broken };

static lam_ops table; /* the table under test; its device points to it */

static lam_status open_broken(lam_dev **out, const lam_dev_options *options)
{
    const lam_status st = lam_ops_naive.open(out, options);
    if (st == LAM_OK)
        (*out)->ops = &table;
    return st;
}

START_TEST(a_broken_operation_is_found)
{
    const lam_ops *slot = &broken[_i].slot;
    table = lam_ops_naive;
    table.open = open_broken;
#define TAKE(name, argument) table.name = slot->name ? slot->name : table.name;
    LAM_OPS(TAKE)
    TAKE(repeat, )
#undef TAKE
    ck_assert_msg(lam_opcases_find_failure(&table, broken[_i].family),
                  "mistake %d in %s was not found", _i, broken[_i].family);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, an_unknown_family_is_a_failure);
    tcase_add_loop_test(tests, a_broken_operation_is_found, 0, BROKEN);
    return test_run("opcases", tests);
}
