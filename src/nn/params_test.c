/* params_test.c -- where parameters lie, what is padding, how they begin, and what narrow storage keeps of them. */
#include "nn/params_int.h"

#include "core/arena.h"
#include "support/alloc.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = LAM_ALIGN / sizeof(float) }; /* elements to which a place is rounded up */

/* Two heads of 3 columns, stored 4 apart; 5 rows of 7, stored 8 apart. */
static const lam_dim five = {1, 5, 5}, seven = {1, 7, 8}, heads = {2, 3, 4};

/* A little of everything: a table, a bias, two joined matrices of heads, a convolution, a vector of rank 2. */
typedef struct sample {
    int table, bias, q, k, taps, shift;
} sample;

static sample declare(lam_params *p)
{
    sample s;
    s.table = lam_params_add(
        p, &(lam_spec){.rank = 2, .dim = {five, seven}, .init = LAM_INIT_NORMAL, .scale = 0.5},
        "table.%d", 7);
    s.bias =
        lam_params_add(p, &(lam_spec){.rank = 1, .dim = {five}, .init = LAM_INIT_ZERO}, "bias");
    s.q = lam_params_add(
        p, &(lam_spec){.rank = 2, .dim = {heads, seven}, .init = LAM_INIT_LINEAR, .scale = 0.1},
        "q");
    s.k = lam_params_add(
        p,
        &(lam_spec){
            .rank = 2, .dim = {heads, seven}, .init = LAM_INIT_LINEAR, .scale = 0.1, .joined = 1},
        "k");
    s.taps = lam_params_add(
        p,
        &(lam_spec){.rank = 3, .dim = {five, seven, heads}, .init = LAM_INIT_UNIFORM, .scale = 2},
        "taps");
    s.shift = lam_params_add(
        p, &(lam_spec){.rank = 2, .dim = {heads, five}, .init = LAM_INIT_GAIN, .scale = 0.01},
        "shift");
    lam_params_set_maps(p, s.q, 1);
    lam_params_set_maps(p, s.k, 2);
    lam_params_turn(p, s.taps);
    lam_params_set_vector(p, s.shift);
    return s;
}

START_TEST(places_are_aligned_and_joined_ones_touch)
{
    lam_params p = {0};
    const sample s = declare(&p);
    for (int i = 0; i < p.n; i++) {
        const lam_param *q = &p.list[i];
        ck_assert(q->joined || q->offset % LINE == 0);
        ck_assert_uint_ge(p.total, q->offset + q->stored);
        if (i > 0)
            ck_assert_uint_ge(q->offset, p.list[i - 1].offset + p.list[i - 1].stored);
    }
    ck_assert_uint_eq(p.list[s.k].offset, p.list[s.q].offset + p.list[s.q].stored);
    ck_assert_uint_eq(p.list[s.table].stored, 5 * 8);
    ck_assert_uint_eq(p.list[s.q].stored, 2 * 4 * 8);
    ck_assert_uint_eq(p.list[s.taps].stored, 5 * 8 * 2 * 4);
    lam_params_free(&p);
}
END_TEST

START_TEST(names_shapes_and_counts_do_not_see_padding)
{
    lam_params p = {0};
    const sample s = declare(&p);
    ck_assert_str_eq(p.list[s.table].name, "table.7");
    ck_assert_int_eq(lam_params_find(&p, "table.7"), s.table);
    ck_assert_int_eq(lam_params_find(&p, "taps"), s.taps);
    ck_assert_int_eq(lam_params_find(&p, "tap"), -1);
    const lam_shape shape = lam_param_shape(&p.list[s.taps]);
    ck_assert_int_eq(shape.rank, 3);
    ck_assert_int_eq(shape.dim[0], 5);
    ck_assert_int_eq(shape.dim[1], 7);
    ck_assert_int_eq(shape.dim[2], 6);
    ck_assert_uint_eq(lam_param_count(&p.list[s.taps]), 5 * 7 * 6);
    ck_assert(lam_param_is_plain(&p.list[s.bias]));
    ck_assert(!lam_param_is_plain(&p.list[s.table])); /* padded */
    lam_params_free(&p);
}
END_TEST

START_TEST(the_optimiser_is_told_what_each_is)
{
    lam_params p = {0};
    const sample s = declare(&p);
    ck_assert_int_eq(p.list[s.table].role, LAM_ROLE_TABLE);
    ck_assert_int_eq(p.list[s.bias].role, LAM_ROLE_VECTOR);
    ck_assert_int_eq(p.list[s.shift].role, LAM_ROLE_VECTOR);
    ck_assert_int_eq(p.list[s.taps].role, LAM_ROLE_TABLE);
    ck_assert_int_eq(p.list[s.k].role, LAM_ROLE_MATRIX);
    ck_assert_int_eq(p.list[s.k].maps, 2);
    ck_assert(lam_param_is_hidden(&p.list[s.q]) && !lam_param_is_hidden(&p.list[s.table]));
    lam_params_set_apart(&p, s.q);
    ck_assert(!lam_param_is_hidden(&p.list[s.q]));
    lam_params_free(&p);
}
END_TEST

START_TEST(hidden_matrices_come_last)
{
    lam_params p = {0};
    const sample s = declare(&p);
    const size_t before = p.total;
    lam_params_arrange(&p);
    for (int i = 0; i < p.n; i++) {
        const size_t end = p.list[i].offset + p.list[i].stored;
        ck_assert(lam_param_is_hidden(&p.list[i]) ? p.list[i].offset >= p.rest : end <= p.rest);
    }
    ck_assert_uint_eq(p.list[s.k].offset, p.list[s.q].offset + p.list[s.q].stored);
    ck_assert_uint_gt(p.rest, 0);
    ck_assert_uint_lt(p.rest, p.total);
    ck_assert_uint_le(p.total, before + LINE * (size_t)p.n);
    lam_params_free(&p);
}
END_TEST

/* Where element `index` of the file's tensor is stored, said once more, from the words of params.h. */
static size_t place_in(const lam_dim *dim, int i)
{
    return (size_t)(i / dim->size * dim->ld + i % dim->size);
}

START_TEST(elements_go_to_their_places_and_padding_stays_zero)
{
    lam_params p = {0};
    const sample s = declare(&p);
    must(lam_params_place(&p, test_ref));
    for (int i = 0; i < p.n; i++) {
        const size_t n = lam_param_count(&p.list[i]);
        double *host = malloc(n * sizeof *host), *back = malloc(n * sizeof *back);
        for (size_t k = 0; k < n; k++)
            host[k] = 1.0 + (double)k;
        must(lam_params_set(&p, p.master, i, host));
        must(lam_params_get(&p, p.master, i, back));
        ck_assert_mem_eq(back, host, n * sizeof *host);
        free(host);
        free(back);
    }
    const double *q = lam_vector(&p, s.q), *taps = lam_vector(&p, s.taps);
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 7; b++)
            ck_assert_double_eq(q[place_in(&heads, a) * 8 + (size_t)b], 1.0 + a * 7 + b);
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 7; b++)
            for (int c = 0; c < 6; c++) /* [a][b][c] in files, [a][c][b] in memory */
                ck_assert_double_eq(taps[((size_t)a * 8 + place_in(&heads, c)) * 8 + (size_t)b],
                                    1.0 + (a * 7 + b) * 6 + c);
    for (int i = 0; i < p.n; i++) { /* as many zeros as padding */
        const double *at = lam_vector(&p, i);
        size_t zeros = 0;
        for (size_t k = 0; k < p.list[i].stored; k++)
            zeros += at[k] == 0.0;
        ck_assert_uint_eq(zeros, p.list[i].stored - lam_param_count(&p.list[i]));
    }
    lam_params_free(&p);
}
END_TEST

static double *drawn(const lam_params *p, int i)
{
    double *host = malloc(lam_param_count(&p->list[i]) * sizeof *host);
    must(lam_params_get(p, p->master, i, host));
    return host;
}

START_TEST(each_begins_as_declared_and_by_its_own_stream)
{
    enum { MANY = 20000 };
    static const struct {
        lam_init init;
        double scale, mean, std;
    } rows[] = {
        {.init = LAM_INIT_ZERO, .scale = 9.0, .mean = 0.0, .std = 0.0},
        {.init = LAM_INIT_NORMAL, .scale = 0.5, .mean = 0.0, .std = 0.5},
        {.init = LAM_INIT_LINEAR, .scale = 0.1, .mean = 0.0, .std = 0.1},
        {.init = LAM_INIT_GAIN, .scale = 0.02, .mean = 1.0, .std = 0.02},
        {.init = LAM_INIT_UNIFORM, .scale = 3.0, .mean = 0.0, .std = 1.7320508},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    lam_params p = {0}, more = {0};
    for (int i = 0; i < ROWS; i++) {
        const lam_spec spec = {
            .rank = 1, .dim = {{1, MANY, MANY}}, .init = rows[i].init, .scale = rows[i].scale};
        lam_params_add(&p, &spec, "row%d", i);
        lam_params_add(&more, &spec, "row%d", i);
    }
    lam_params_add(&more, &(lam_spec){.rank = 1, .dim = {five}, .init = LAM_INIT_NORMAL}, "new");
    must(lam_params_place(&p, test_ref));
    must(lam_params_place(&more, test_ref));
    must(lam_params_init(&p, &(lam_init_rule){.seed = 5}));
    must(lam_params_init(&more, &(lam_init_rule){.seed = 5}));
    for (int i = 0; i < ROWS; i++) {
        double *x = drawn(&p, i), *same = drawn(&more, i), sum = 0.0, squares = 0.0;
        ck_assert_mem_eq(x, same, MANY * sizeof *x); /* one more parameter changes no other */
        for (int k = 0; k < MANY; k++)
            sum += x[k];
        for (int k = 0; k < MANY; k++)
            squares += (x[k] - sum / MANY) * (x[k] - sum / MANY);
        const double allowed = 5.0 * rows[i].std / sqrt(MANY) + 1e-7;
        ck_assert_double_eq_tol(sum / MANY, rows[i].mean, allowed);
        ck_assert_double_eq_tol(sqrt(squares / MANY), rows[i].std, allowed);
        free(x);
        free(same);
    }
    must(lam_params_init(&p, &(lam_init_rule){.seed = 5, .uniform = 1, .range = 0.25}));
    double *x = drawn(&p, 2), largest = 0.0;
    for (int k = 0; k < MANY; k++)
        largest = fmax(largest, fabs(x[k]));
    ck_assert(largest <= 0.25 && largest > 0.249);
    free(x);
    lam_params_free(&p);
    lam_params_free(&more);
}
END_TEST

START_TEST(a_gradient_is_marked_as_used)
{
    lam_params p = {0};
    const sample s = declare(&p);
    must(lam_params_place(&p, test_ref));
    must(lam_params_place_grad(&p));
    ck_assert_ptr_eq(lam_grad(&p, s.q), (double *)p.grad + p.list[s.q].offset);
    ck_assert(p.list[s.q].used && !p.list[s.k].used);
    void *const grad = p.grad;
    must(lam_params_place_grad(&p)); /* once more changes nothing */
    ck_assert_ptr_eq(p.grad, grad);
    lam_params_free(&p);
}
END_TEST

/* bf16 keeps 8 bits of a number, int8 a 254th of the largest of a row; vectors stay as they are. */
START_TEST(narrow_matrices_keep_what_their_type_can)
{
    const lam_class store = _i ? LAM_BYTE : LAM_HALF;
    lam_params p = {.store = store};
    const sample s = declare(&p);
    must(lam_params_place(&p, test_ref));
    lam_rng rng = test_rng(3);
    for (int i = 0; i < p.n; i++) {
        const size_t n = lam_param_count(&p.list[i]);
        double *host = malloc(n * sizeof *host), *back = malloc(n * sizeof *back), largest = 0.0;
        test_fill(&rng, host, n);
        for (size_t k = 0; k < n; k++)
            largest = fmax(largest, fabs(host[k]));
        must(lam_params_set(&p, p.master, i, host));
        must(lam_params_get(&p, p.master, i, back));
        const int narrow = lam_param_is_narrow(&p, &p.list[i]);
        for (size_t k = 0; k < n; k++)
            ck_assert_double_eq_tol(back[k], host[k],
                                    !narrow             ? 1e-300
                                    : store == LAM_HALF ? fabs(host[k]) / 256
                                                        : largest / 250);
        free(host);
        free(back);
    }
    ck_assert(lam_param_is_narrow(&p, &p.list[s.q]) && !lam_param_is_narrow(&p, &p.list[s.bias]));
    ck_assert_int_eq(lam_weight(&p, s.q).type, store);
    ck_assert_int_eq(lam_params_place_grad(&p), LAM_ERR_ARG);
    lam_params_free(&p);
}
END_TEST

START_TEST(without_memory_placing_fails)
{
    for (long n = 1; test_alloc_fail(n); n++) {
        lam_params p = {0};
        declare(&p);
        const lam_status status = lam_params_place(&p, test_ref);
        const int failed = test_alloc_stop();
        lam_params_free(&p);
        ck_assert_int_eq(status, failed ? LAM_ERR_MEMORY : LAM_OK);
        if (!failed)
            break;
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_test(tests, places_are_aligned_and_joined_ones_touch);
    tcase_add_test(tests, names_shapes_and_counts_do_not_see_padding);
    tcase_add_test(tests, the_optimiser_is_told_what_each_is);
    tcase_add_test(tests, hidden_matrices_come_last);
    tcase_add_test(tests, elements_go_to_their_places_and_padding_stays_zero);
    tcase_add_test(tests, each_begins_as_declared_and_by_its_own_stream);
    tcase_add_test(tests, a_gradient_is_marked_as_used);
    tcase_add_loop_test(tests, narrow_matrices_keep_what_their_type_can, 0, 2);
    tcase_add_test(tests, without_memory_placing_fails);
    return test_run("nn/params", tests);
}
