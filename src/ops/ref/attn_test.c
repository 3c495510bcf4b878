/* attn_test.c -- is the attention a softmax over the right keys, and is its gradient the gradient,
 * through the output and through the log-sum-exp, in every mode and with every optional part? */
#include "ops/ref/ref.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 16 };
enum { B = 2, H = 2, K = 3, D = H * K, N = 4, T = 5, R = 14 };
enum { QUERIES = B * N * D, KEYS = B * T * D, STATS = B * N * H, TABLE = R * D };

typedef struct work {
    double q[QUERIES], k[KEYS], value[KEYS], u[D], v[D], r[TABLE], rbias[R * H];
    double o[QUERIES], lse[STATS], d_o[QUERIES], dlse[STATS];
    double dq[QUERIES], dk[KEYS], dvalue[KEYS], du[D], dv[D], dr[TABLE], drbias[R * H];
    lam_attn a;
} work;

/* Everything there is; the tests take parts away.  Row R / 2 of r is distance 0. */
static void make(work *t, lam_rng *rng, lam_attn_mode mode, int shift)
{
    memset(t, 0, sizeof *t);
    double *const random[] = {t->q, t->k, t->value, t->u, t->v, t->r, t->rbias, t->d_o, t->dlse};
    const size_t size[] = {QUERIES, KEYS, KEYS, D, D, TABLE, R * H, QUERIES, STATS};
    for (int i = 0; i < 9; i++)
        test_fill(rng, random[i], size[i]);
    t->a = (lam_attn){.B = B,
                      .H = H,
                      .K = K,
                      .queries = N,
                      .keys = T,
                      .mode = mode,
                      .shift = shift,
                      .scale = 1.0 / sqrt(K),
                      .q = {t->q, N * D},
                      .k = {t->k, T * D},
                      .value = {t->value, T * D},
                      .ldq = D,
                      .ldk = D,
                      .u = t->u,
                      .v = t->v,
                      .r = t->r,
                      .rbias = t->rbias,
                      .r_rows = R,
                      .r_zero = R / 2,
                      .r_sign = -1,
                      .ldr = D,
                      .o = {t->o, N * D},
                      .ldo = D,
                      .lse = {t->lse, N * H},
                      .d_o = {t->d_o, N * D},
                      .dlse = {t->dlse, N * H},
                      .dq = {t->dq, N * D},
                      .dk = {t->dk, T * D},
                      .dvalue = {t->dvalue, T * D},
                      .dr = t->dr,
                      .du = t->du,
                      .dv = t->dv,
                      .drbias = t->drbias};
}

static int sees(const lam_attn *a, int i, int j)
{
    const int past = a->shift + i - j;
    return a->mode == LAM_FULL || (a->mode == LAM_AHEAD && past < 0) ||
           (a->mode == LAM_CAUSAL && past >= 0 && (a->reach == 0 || past < a->reach));
}

/* <d_o, o> + <dlse, lse> over the rows that see something. */
static double attn_loss(const void *user)
{
    const work *t = user;
    double o[QUERIES], lse[STATS], loss;
    lam_attn a = t->a;
    a.o.p = o;
    a.lse.p = lse;
    lam_ref_attn_fwd(test_ref, &a);
    loss = test_dot(t->d_o, o, QUERIES);
    for (int s = 0; a.dlse.p && s < STATS; s++)
        loss += lse[s] == -INFINITY ? 0.0 : t->dlse[s] * lse[s];
    return loss;
}

static const struct geometry {
    lam_attn_mode mode;
    int shift, reach;
} geometries[] = {
    {LAM_CAUSAL, T - N, 0}, {LAM_CAUSAL, 0, 0}, {LAM_CAUSAL, -2, 0},
    {LAM_CAUSAL, 1, 2},     {LAM_AHEAD, -1, 0}, {LAM_AHEAD, 2, 0},
    {LAM_AHEAD, 5, 0},      {LAM_FULL, 1, 0},   {LAM_FULL, -2, 0},
};
enum { GEOMETRIES = sizeof geometries / sizeof *geometries, PARTS = 9 };

/* Of four older keys stream 0 has one, stream 1 three. */
enum { PAST = 4 };
static const int32_t few[B] = {1, 3};

/* Which parts the variant has: all; no u; no v; no r; no rbias; r the other way; dropout; no dlse;
 * few valid keys. */
static void take_away(work *t, int variant)
{
    lam_attn *a = &t->a;
    if (variant == 1)
        a->u = a->du = NULL;
    if (variant == 2)
        a->v = a->dv = NULL;
    if (variant == 3)
        a->r = a->v = a->dr = a->dv = NULL;
    if (variant == 3 || variant == 4)
        a->rbias = a->drbias = NULL;
    if (variant == 5)
        a->r_sign = 1;
    if (variant == 8) {
        a->valid = few;
        a->past = PAST;
    }
    if (variant >= 6)
        a->drop = (lam_drop){.p = 0.3, .seed = SEED, .step = 3, .site = 4};
    if (variant == 7)
        a->dlse.p = NULL;
}

START_TEST(attn_bwd_is_the_gradient)
{
    const struct geometry *g = &geometries[_i / PARTS];
    lam_rng rng = {.key = SEED, .stream = (uint64_t)_i};
    work t;
    make(&t, &rng, g->mode, g->shift);
    t.a.reach = g->reach;
    take_away(&t, _i % PARTS);
    lam_ref_attn_fwd(test_ref, &t.a);
    for (int i = 0; i < TABLE; i++)
        t.dr[i] = t.dq[i % QUERIES] = NAN; /* overwritten */
    lam_ref_attn_bwd(test_ref, &t.a);

    test_gradient("q", t.q, t.dq, QUERIES, attn_loss, &t);
    test_gradient("k", t.k, t.dk, KEYS, attn_loss, &t);
    test_gradient("value", t.value, t.dvalue, KEYS, attn_loss, &t);
    if (t.a.u)
        test_gradient("u", t.u, t.du, D, attn_loss, &t);
    if (t.a.v)
        test_gradient("v", t.v, t.dv, D, attn_loss, &t);
    if (t.a.r)
        test_gradient("r", t.r, t.dr, TABLE, attn_loss, &t);
    if (t.a.rbias)
        test_gradient("rbias", t.rbias, t.drbias, R * H, attn_loss, &t);
}
END_TEST

START_TEST(gradients_are_overwritten_or_added_as_the_contract_says)
{
    lam_rng rng = {.key = SEED, .stream = 500};
    work t;
    make(&t, &rng, LAM_CAUSAL, 1);
    lam_ref_attn_fwd(test_ref, &t.a);
    lam_ref_attn_bwd(test_ref, &t.a);
    const work once = t;
    t.a.kv_add = 1;
    lam_ref_attn_bwd(test_ref, &t.a);
    for (int i = 0; i < KEYS; i++) {
        ck_assert_double_eq_tol(t.dk[i], 2.0 * once.dk[i], 1e-14);
        ck_assert_double_eq_tol(t.dvalue[i], 2.0 * once.dvalue[i], 1e-14);
    }
    for (int i = 0; i < D; i++) {
        ck_assert_double_eq_tol(t.du[i], 2.0 * once.du[i], 1e-13);
        ck_assert_double_eq_tol(t.dv[i], 2.0 * once.dv[i], 1e-13);
    }
    for (int i = 0; i < R * H; i++)
        ck_assert_double_eq_tol(t.drbias[i], 2.0 * once.drbias[i], 1e-13);
    ck_assert_mem_eq(t.dq, once.dq, sizeof t.dq);
    ck_assert_mem_eq(t.dr, once.dr, sizeof t.dr);
}
END_TEST

/* Bit for bit, also where hardly any or no key is left. */
START_TEST(a_key_that_is_not_valid_might_as_well_not_be_there)
{
    const struct geometry *g = &geometries[_i];
    lam_rng rng = {.key = SEED, .stream = 550 + (uint64_t)_i};
    work t, alone;
    make(&t, &rng, g->mode, g->shift);
    t.a.reach = g->reach;
    alone = t;
    t.a.valid = few;
    t.a.past = PAST;
    lam_ref_attn_fwd(test_ref, &t.a);
    for (int b = 0; b < B; b++) {
        const int oldest = PAST - few[b];
        lam_attn a = t.a;
        a.valid = NULL;
        a.B = 1;
        a.keys = T - oldest;
        a.shift = g->shift - oldest;
        a.q.p = t.q + b * N * D;
        a.k.p = t.k + (b * T + oldest) * D;
        a.value.p = t.value + (b * T + oldest) * D;
        a.o.p = alone.o + b * N * D;
        a.lse.p = alone.lse + b * N * H;
        lam_ref_attn_fwd(test_ref, &a);
    }
    ck_assert_mem_eq(t.o, alone.o, sizeof t.o);
    ck_assert_mem_eq(t.lse, alone.lse, sizeof t.lse);
}
END_TEST

/* Eq. 2 and 6 once more, spelled out for one head with nothing but the definition. */
START_TEST(the_output_is_the_softmax_of_the_scores)
{
    const struct geometry *g = &geometries[_i];
    lam_rng rng = {.key = SEED, .stream = 600 + (uint64_t)_i};
    work t;
    make(&t, &rng, g->mode, g->shift);
    t.a.reach = g->reach;
    lam_ref_attn_fwd(test_ref, &t.a);
    for (int n = 0; n < STATS; n++) {
        const int b = n / (N * H), i = n / H % N, h = n % H;
        double sum = 0.0, mix[K] = {0};
        for (int j = 0; j < T; j++) {
            if (!sees(&t.a, i, j))
                continue;
            const int row = R / 2 + (g->shift + i - j); /* r_sign = -1: by distance to the past */
            double s = t.rbias[row * H + h];
            for (int c = 0; c < K; c++) {
                const double q = t.q[(b * N + i) * D + h * K + c];
                s += (q + t.u[h * K + c]) * t.k[(b * T + j) * D + h * K + c];
                s += (q + t.v[h * K + c]) * t.r[row * D + h * K + c];
            }
            const double e = exp(s / sqrt(K));
            sum += e;
            for (int c = 0; c < K; c++)
                mix[c] += e * t.value[(b * T + j) * D + h * K + c];
        }
        for (int c = 0; c < K; c++)
            ck_assert_double_eq_tol(t.o[(b * N + i) * D + h * K + c],
                                    sum > 0.0 ? mix[c] / sum : 0.0, 1e-13);
        if (sum > 0.0)
            ck_assert_double_eq_tol(t.lse[n], log(sum), 1e-13);
        else
            ck_assert(t.lse[n] == -INFINITY);
    }
}
END_TEST

START_TEST(the_output_is_a_convex_combination_of_visible_values)
{
    const struct geometry *g = &geometries[_i];
    lam_rng rng = {.key = SEED, .stream = 700 + (uint64_t)_i};
    work t;
    make(&t, &rng, g->mode, g->shift);
    t.a.reach = g->reach;
    for (int i = 0; i < QUERIES; i++)
        t.q[i] *= 50.0; /* scores in the thousands must not overflow */
    lam_ref_attn_fwd(test_ref, &t.a);
    for (int n = 0; n < QUERIES; n++) {
        const int b = n / (N * D), i = n / D % N, c = n % D;
        double low = INFINITY, high = -INFINITY;
        for (int j = 0; j < T; j++)
            if (sees(&t.a, i, j)) {
                low = fmin(low, t.value[(b * T + j) * D + c]);
                high = fmax(high, t.value[(b * T + j) * D + c]);
            }
        if (low <= high)
            ck_assert(t.o[n] >= low - 1e-12 && t.o[n] <= high + 1e-12);
        else
            ck_assert_double_eq(t.o[n], 0.0);
    }
}
END_TEST

START_TEST(invisible_keys_have_no_influence_and_no_gradient)
{
    const struct geometry *g = &geometries[_i];
    lam_rng rng = {.key = SEED, .stream = 800 + (uint64_t)_i};
    work t, other;
    make(&t, &rng, g->mode, g->shift);
    t.a.reach = g->reach;
    lam_ref_attn_fwd(test_ref, &t.a);
    lam_ref_attn_bwd(test_ref, &t.a);
    for (int j = 0; j < T; j++) {
        other = t;
        lam_attn a = t.a;
        a.k.p = other.k;
        a.value.p = other.value;
        a.o.p = other.o;
        a.lse.p = other.lse;
        for (int n = 0; n < B * D; n++) {
            other.k[(n / D * T + j) * D + n % D] = 100.0;
            other.value[(n / D * T + j) * D + n % D] = 100.0;
        }
        lam_ref_attn_fwd(test_ref, &a);
        int seen = 0;
        for (int i = 0; i < N; i++) {
            seen |= sees(&t.a, i, j);
            for (int b = 0; b < B && !sees(&t.a, i, j); b++)
                ck_assert_mem_eq(other.o + (b * N + i) * D, t.o + (b * N + i) * D,
                                 D * sizeof(double));
        }
        for (int n = 0; n < B * D && !seen; n++) {
            ck_assert_double_eq(t.dk[(n / D * T + j) * D + n % D], 0.0);
            ck_assert_double_eq(t.dvalue[(n / D * T + j) * D + n % D], 0.0);
        }
    }
}
END_TEST

/* The idea of the memory: looking back, then ahead, and interpolating without eps is the same as
 * having looked at everything at once. */
START_TEST(past_and_future_interpolated_are_the_full_attention)
{
    lam_rng rng = {.key = SEED, .stream = 900 + (uint64_t)_i};
    work past, ahead, full;
    make(&past, &rng, LAM_CAUSAL, _i - 2);
    ahead = full = past;
    lam_attn *const other[] = {&ahead.a, &full.a};
    for (int n = 0; n < 2; n++) {
        other[n]->mode = n == 0 ? LAM_AHEAD : LAM_FULL;
        other[n]->o.p = n == 0 ? ahead.o : full.o;
        other[n]->lse.p = n == 0 ? ahead.lse : full.lse;
    }
    lam_ref_attn_fwd(test_ref, &past.a);
    lam_ref_attn_fwd(test_ref, &ahead.a);
    lam_ref_attn_fwd(test_ref, &full.a);

    double c[QUERIES], lse[STATS], alpha[STATS];
    lam_ref_interp_fwd(test_ref, &(lam_interp){.B = B,
                                               .rows = N,
                                               .H = H,
                                               .K = K,
                                               .c_old = past.a.o,
                                               .c_new = ahead.a.o,
                                               .c_out = {c, N * D},
                                               .lse_old = past.a.lse,
                                               .lse_new = ahead.a.lse,
                                               .lse_out = {lse, N * H},
                                               .alpha = {alpha, N * H}});
    for (int i = 0; i < QUERIES; i++)
        ck_assert_double_eq_tol(c[i], full.o[i], 1e-14);
    for (int s = 0; s < STATS; s++)
        ck_assert_double_eq_tol(lse[s], full.lse[s], 1e-14);
}
END_TEST

START_TEST(a_table_stored_backwards_is_the_same_table)
{
    lam_rng rng = {.key = SEED, .stream = 1000};
    work t, turned;
    make(&t, &rng, LAM_FULL, 1);
    turned = t;
    for (int row = 0; row < R; row++) {
        memcpy(turned.r + row * D, t.r + (R - 1 - row) * D, D * sizeof(double));
        memcpy(turned.rbias + row * H, t.rbias + (R - 1 - row) * H, H * sizeof(double));
    }
    lam_attn a = t.a;
    a.r = turned.r;
    a.rbias = turned.rbias;
    a.r_sign = 1;
    a.r_zero = R - 1 - t.a.r_zero;
    a.o.p = turned.o;
    a.lse.p = turned.lse;
    lam_ref_attn_fwd(test_ref, &t.a);
    lam_ref_attn_fwd(test_ref, &a);
    ck_assert_mem_eq(turned.o, t.o, sizeof t.o);
    ck_assert_mem_eq(turned.lse, t.lse, sizeof t.lse);
}
END_TEST

/* With the identity as values o is P itself: it shows which weights were dropped. */
START_TEST(dropout_acts_on_the_weights_and_not_on_the_log_sum_exp)
{
    enum { WIDE = 5 }; /* K = keys */
    lam_rng rng = {.key = SEED, .stream = 1100};
    double q[B * N * WIDE], k[B * T * WIDE], value[B * T * WIDE] = {0};
    double o[2][B * N * WIDE], lse[2][B * N];
    test_fill(&rng, q, B * N * WIDE);
    test_fill(&rng, k, B * T * WIDE);
    for (int j = 0; j < B * T; j++)
        value[j * WIDE + j % T] = 1.0;
    for (int on = 0; on < 2; on++) {
        const lam_attn a = {.B = B,
                            .H = 1,
                            .K = WIDE,
                            .queries = N,
                            .keys = T,
                            .mode = LAM_FULL,
                            .scale = 1.0,
                            .q = {q, N * WIDE},
                            .k = {k, T * WIDE},
                            .value = {value, T * WIDE},
                            .ldq = WIDE,
                            .ldk = WIDE,
                            .o = {o[on], N * WIDE},
                            .ldo = WIDE,
                            .lse = {lse[on], N},
                            .drop = {.p = on ? 0.5 : 0.0, .seed = 8, .step = 7, .site = 6}};
        lam_ref_attn_fwd(test_ref, &a);
    }
    ck_assert_mem_eq(lse[0], lse[1], sizeof lse[0]);
    for (size_t row = 0; row < B * N; row++)
        for (size_t j = 0; j < T; j++) {
            const int keep = lam_drop_keep(8, 7, 6, row * 8 + j, lam_drop_threshold(0.5));
            const double want = keep ? o[0][row * WIDE + j] * lam_drop_scale(0.5) : 0.0;
            ck_assert_double_eq(o[1][row * WIDE + j], want);
        }
}
END_TEST

int main(void)
{
    printf("seed %d\n", SEED);
    TCase *const tests = tcase_create("all");
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_loop_test(tests, attn_bwd_is_the_gradient, 0, GEOMETRIES * PARTS);
    tcase_add_test(tests, gradients_are_overwritten_or_added_as_the_contract_says);
    tcase_add_loop_test(tests, a_key_that_is_not_valid_might_as_well_not_be_there, 0, GEOMETRIES);
    tcase_add_loop_test(tests, the_output_is_the_softmax_of_the_scores, 0, GEOMETRIES);
    tcase_add_loop_test(tests, the_output_is_a_convex_combination_of_visible_values, 0, GEOMETRIES);
    tcase_add_loop_test(tests, invisible_keys_have_no_influence_and_no_gradient, 0, GEOMETRIES);
    tcase_add_loop_test(tests, past_and_future_interpolated_are_the_full_attention, 0, 5);
    tcase_add_test(tests, a_table_stored_backwards_is_the_same_table);
    tcase_add_test(tests, dropout_acts_on_the_weights_and_not_on_the_log_sum_exp);
    return test_run("ops/ref/attn", tests);
}
