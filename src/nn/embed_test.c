/* embed_test.c -- embeddings against a plain lookup, and their gradients. */
#include "nn/embed.h"

#include "support/clusters.h"

#include <string.h>

enum { ROWS = 13 };

typedef struct fixture {
    lam_config cfg;
    lam_params params;
    lam_embed_params ids;
    lam_embedding e;
    void *memory;
    int32_t tokens[ROWS];
    int ld; /* of rows */
} fixture;

static void open_case(fixture *f, int i, int pad)
{
    *f = (fixture){.cfg = cluster_config(i)};
    test_ref->pad = pad;
    lam_embed_declare(&f->ids, &f->params, &f->cfg, test_ref);
    cluster_draw(&f->params, test_ref);
    f->e = (lam_embedding){.dev = test_ref,
                           .cfg = &f->cfg,
                           .params = &f->params,
                           .ids = &f->ids,
                           .dims = lam_dims_of(&f->cfg, test_ref),
                           .rows = ROWS};
    lam_arena measure = {0};
    lam_embed_layout(&f->e, &measure, 1);
    must(test_ref->ops->alloc(test_ref, &f->memory, measure.used + LAM_ALIGN));
    lam_embed_layout(&f->e, &(lam_arena){.base = f->memory, .size = measure.used}, 1);
    for (int r = 0; r < ROWS; r++)
        f->tokens[r] = (r * 7 + 3) % CLUSTER_V; /* every type, some twice */
    f->ld = f->e.dims.D;
}

static void close_case(fixture *f)
{
    test_ref->ops->release(test_ref, f->memory);
    lam_params_free(&f->params);
}

/* sqrt(D) E[id], through the projection of the table that has the id. */
static double element(const fixture *f, int id, int d)
{
    int t = 0;
    while (t + 1 < f->ids.tables && id >= lam_embed_table(&f->cfg, t + 1).first)
        t++;
    const lam_cluster c = lam_embed_table(&f->cfg, t);
    double *table = cluster_param(&f->params, f->ids.table[t]), sum = 0.0;
    const double *row = table + (id - c.first) * c.width;
    if (f->ids.proj[t] < 0) {
        sum = row[d];
    } else {
        double *proj = cluster_param(&f->params, f->ids.proj[t]); /* [D][width] */
        for (int w = 0; w < c.width; w++)
            sum += row[w] * proj[d * c.width + w];
        free(proj);
    }
    free(table);
    return sqrt(CLUSTER_D) * sum;
}

START_TEST(rows_are_those_of_the_table)
{
    for (int pad = 1; pad <= 4; pad += 3) {
        fixture f;
        double out[ROWS * 8];
        open_case(&f, _i, pad);
        memset(out, 0x7f, sizeof out);
        lam_embed_rows(&f.e, out, f.tokens, ROWS);
        for (int r = 0; r < ROWS; r++)
            for (int d = 0; d < f.ld; d++)
                ck_assert_double_eq_tol(out[r * f.ld + d],
                                        d < CLUSTER_D ? element(&f, f.tokens[r], d) : 0.0, 1e-13);
        close_case(&f);
    }
}
END_TEST

typedef struct loss_of {
    const fixture *f;
    const double *weight;
} loss_of;

static double loss(const void *user)
{
    const loss_of *l = user;
    double out[ROWS * CLUSTER_D];
    lam_embed_rows(&l->f->e, out, l->f->tokens, ROWS);
    return test_dot(l->weight, out, ROWS * CLUSTER_D);
}

START_TEST(gradients_are_the_differences)
{
    fixture f;
    double dout[ROWS * CLUSTER_D];
    lam_rng rng = test_rng(5);
    open_case(&f, _i, 1);
    test_fill(&rng, dout, ROWS * CLUSTER_D);
    lam_embed_rows_bwd(&f.e, dout, f.tokens, ROWS);
    for (int i = 0; i < f.params.n; i++)
        test_gradient(f.params.list[i].name, lam_vector(&f.params, i), lam_grad(&f.params, i),
                      f.params.list[i].stored, loss, &(loss_of){&f, dout});
    close_case(&f);
}
END_TEST

START_TEST(tables_have_the_authors_names)
{
    fixture f;
    open_case(&f, 8, 1); /* three clusters, divided by 2 */
    ck_assert_int_eq(f.ids.tables, 3);
    ck_assert_str_eq(f.params.list[f.ids.table[2]].name, "word_emb.emb_layers.2.weight");
    ck_assert_str_eq(f.params.list[f.ids.proj[1]].name, "word_emb.emb_projs.1");
    ck_assert_int_eq(lam_embed_table(&f.cfg, 1).width, 3);
    close_case(&f);
    open_case(&f, 0, 4);
    ck_assert_int_eq(f.ids.proj[0], -1);
    ck_assert_int_eq(lam_embed_stored(&f.cfg, test_ref, CLUSTER_V), 12); /* like a width */
    close_case(&f);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_loop_test(tests, rows_are_those_of_the_table, 0, CLUSTER_CASES);
    tcase_add_loop_test(tests, gradients_are_the_differences, 0, CLUSTER_CASES);
    tcase_add_test(tests, tables_have_the_authors_names);
    return test_run("nn/embed", tests);
}
