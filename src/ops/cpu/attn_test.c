/* attn_test.c -- attention on the CPU: as exact as a plain float loop, on every edge of its tiles.
 *
 * The oracle is ops/ref in double; the yardstick is the plain float loop of tests/support.  What
 * opcases draws at random is swept here along the edges of tiles, strips, blocks and chunks.  Gaps
 * between rows hold a guard that must survive.  Scratch is as large as promised and not a byte
 * larger, so a sanitizer sees every step outside. */
#include "core/rng.h"
#include "ops/cpu/cpu.h"
#include "ops/ref/ref.h"
#include "support/naive.h"
#include "support/suite.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 20240607 };

/* --- a case: shapes, options, and eighteen tensors ---------------------------------------------- */

enum { U = 1, V = 2, R = 4, RBIAS = 8, DROP = 16, DLSE = 32, ADD = 64, GAPS = 128, FLIP = 256 };

typedef struct shape {
    int B, H, K, queries, keys;
    lam_attn_mode mode;
    int shift, reach, options;
} shape;

/* clang-format off */
enum { Q, KEY, VALUE, BIAS_U, BIAS_V, POS, POS_BIAS, DO, DLSE_, O, LSE, DQ, DK, DVALUE, DR, DU, DV,
       DRBIAS, TENSORS };
/* clang-format on */
static const char *const names[TENSORS] = {"q",     "k",      "value", "u",  "v",   "r",
                                           "rbias", "do",     "dlse",  "o",  "lse", "dq",
                                           "dk",    "dvalue", "dr",    "du", "dv",  "drbias"};

typedef struct layout {
    size_t blocks, rows, width, ld, step;
} layout;

static size_t count_of(layout l)
{
    return l.blocks * l.step;
}

static int sees(const shape *s, int i, int j)
{
    const int gap = s->shift + i - j;
    if (s->mode == LAM_CAUSAL)
        return gap >= 0 && (s->reach == 0 || gap < s->reach);
    return s->mode == LAM_FULL || gap < 0;
}

/* A table of positions that fits the visible pairs, with two rows more than needed at each end. */
static void fit_positions(lam_attn *a, const shape *s)
{
    int lo = 0, hi = 0, any = 0;
    for (int i = 0; i < s->queries; i++)
        for (int j = 0; j < s->keys; j++)
            if (sees(s, i, j)) {
                const int d = j - s->shift - i;
                lo = !any || d < lo ? d : lo;
                hi = !any || d > hi ? d : hi;
                any = 1;
            }
    a->r_sign = s->options & FLIP ? 1 : -1;
    a->r_zero = 2 + (a->r_sign > 0 ? -lo : hi);
    a->r_rows = hi - lo + 1 + 4;
}

static lam_attn args_of(const shape *s)
{
    lam_attn a = {.B = s->B, .H = s->H, .K = s->K, .queries = s->queries, .keys = s->keys};
    const size_t gap = s->options & GAPS ? 3 : 0, width = (size_t)(s->H * s->K);
    a.mode = s->mode;
    a.shift = s->shift;
    a.reach = s->reach;
    a.scale = 1.0 / sqrt(s->K);
    a.ldq = width + gap;
    a.ldk = width + 2 * gap;
    a.ldo = width + 3 * gap;
    a.ldr = width + 4 * gap;
    a.kv_add = s->options & ADD ? 1 : 0;
    if (s->options & DROP)
        a.drop = (lam_drop){.p = 0.25, .seed = SEED, .step = 3, .site = 7};
    if (s->options & (R | RBIAS))
        fit_positions(&a, s);
    return a;
}

static layout layout_of(const lam_attn *a, const shape *s, int tensor)
{
    const size_t B = (size_t)a->B, H = (size_t)a->H, width = H * (size_t)a->K;
    const size_t q = (size_t)a->queries, k = (size_t)a->keys, r = (size_t)a->r_rows;
    const size_t gap = s->options & GAPS ? 5 : 0;
    switch (tensor) {
    case Q:
    case DQ:
        return (layout){B, q, width, a->ldq, q * a->ldq + gap};
    case KEY:
    case VALUE:
    case DK:
    case DVALUE:
        return (layout){B, k, width, a->ldk, k * a->ldk + gap};
    case DO:
    case O:
        return (layout){B, q, width, a->ldo, q * a->ldo + gap};
    case LSE:
    case DLSE_:
        return (layout){B, q, H, H, q * H + gap};
    case POS:
    case DR:
        return (layout){1, r, width, a->ldr, r * a->ldr};
    case POS_BIAS:
    case DRBIAS:
        return (layout){1, r, H, H, r * H};
    default:
        return (layout){1, 1, width, width, width};
    }
}

static int present(const shape *s, int tensor)
{
    switch (tensor) {
    case BIAS_U:
    case DU:
        return s->options & U;
    case BIAS_V:
    case DV:
        return s->options & V;
    case POS:
    case DR:
        return s->options & R;
    case POS_BIAS:
    case DRBIAS:
        return s->options & RBIAS;
    case DLSE_:
        return s->options & DLSE;
    default:
        return 1;
    }
}

static void point(lam_attn *a, const shape *s, void *const *p)
{
    const lam_view none = {NULL, 0};
    lam_view view[TENSORS];
    for (int t = 0; t < TENSORS; t++)
        view[t] = present(s, t) ? (lam_view){p[t], layout_of(a, s, t).step} : none;
    a->q = view[Q], a->k = view[KEY], a->value = view[VALUE];
    a->o = view[O], a->lse = view[LSE], a->d_o = view[DO], a->dlse = view[DLSE_];
    a->dq = view[DQ], a->dk = view[DK], a->dvalue = view[DVALUE];
    a->u = view[BIAS_U].p, a->v = view[BIAS_V].p, a->r = view[POS].p, a->rbias = view[POS_BIAS].p;
    a->dr = view[DR].p, a->du = view[DU].p, a->dv = view[DV].p, a->drbias = view[DRBIAS].p;
}

/* --- running a case ----------------------------------------------------------------------------- */

static const float guard = 0x1p90f;

typedef struct bundle {
    float *x[TENSORS];
} bundle;

/* Inputs are normal, outputs that are only written start as NaN, sums start as normal numbers. */
static void fill(bundle *out, const lam_attn *a, const shape *s, lam_rng rng)
{
    for (int t = 0; t < TENSORS; t++) {
        const layout l = layout_of(a, s, t);
        const int adds =
            t == DU || t == DV || t == DRBIAS || ((t == DK || t == DVALUE) && a->kv_add);
        float *x = malloc((count_of(l) + 1) * sizeof *x);
        for (size_t n = 0; n < count_of(l); n++)
            x[n] = guard;
        for (size_t b = 0; b < l.blocks; b++)
            for (size_t r = 0; r < l.rows; r++)
                for (size_t c = 0; c < l.width; c++)
                    x[b * l.step + r * l.ld + c] =
                        t < O || adds ? (float)lam_rng_normal(&rng) : NAN;
        out->x[t] = x;
    }
}

static void release(bundle *b)
{
    for (int t = 0; t < TENSORS; t++)
        free(b->x[t]);
}

static lam_cpu_dev open_dev(const lam_attn *a, int threads)
{
    const lam_work work = {.B = a->B,
                           .H = a->H,
                           .K = a->K,
                           .queries = a->queries,
                           .keys = a->keys,
                           .r_rows = a->r_rows};
    lam_cpu_dev dev = {.threads = threads, .scratch_bytes = lam_cpu_attn_scratch(&work, threads)};
    dev.scratch = aligned_alloc(64, dev.scratch_bytes);
    ck_assert_ptr_nonnull(dev.scratch);
    memset(dev.scratch, 0xff, dev.scratch_bytes); /* NaN: nothing stale may count */
    return dev;
}

static void run_cpu(bundle *x, lam_attn a, const shape *s, int threads)
{
    lam_cpu_dev dev = open_dev(&a, threads);
    point(&a, s, (void *const *)x->x);
    lam_cpu_attn_fwd(&dev.base, &a);
    lam_cpu_attn_bwd(&dev.base, &a);
    free(dev.scratch);
}

/* The double oracle on the same inputs; the results replace what `out` holds. */
static void run_ref(double **out, const bundle *in, lam_attn a, const shape *s)
{
    lam_dev *dev;
    ck_assert_int_eq(lam_ops_ref.open(&dev, &(lam_dev_options){0}), LAM_OK);
    ck_assert_int_eq(lam_ops_ref.reserve(dev, &(lam_work){.keys = a.keys}), LAM_OK);
    for (int t = 0; t < TENSORS; t++) {
        const size_t n = count_of(layout_of(&a, s, t));
        out[t] = malloc((n + 1) * sizeof **out);
        for (size_t e = 0; e < n; e++)
            out[t][e] = (double)in->x[t][e];
    }
    point(&a, s, (void *const *)out);
    lam_ops_ref.attn_fwd(dev, &a);
    lam_ops_ref.attn_bwd(dev, &a);
    lam_ops_ref.close(dev);
}

/* Errors of one tensor: the largest, and the largest number itself. */
static double worst(const float *x, const double *want, layout l, double *scale)
{
    double error = 0.0;
    *scale = 0.0;
    for (size_t b = 0; b < l.blocks; b++)
        for (size_t r = 0; r < l.rows; r++)
            for (size_t c = 0; c < l.width; c++) {
                const size_t n = b * l.step + r * l.ld + c;
                if (isinf(want[n])) {
                    ck_assert(isinf(x[n]) && x[n] < 0.0f);
                    continue;
                }
                const double e = fabs((double)x[n] - want[n]);
                error = isnan(e) || e > error ? e : error;
                *scale = fmax(*scale, fabs(want[n]));
                if (isnan(error))
                    return error;
            }
    return error;
}

static void describe(char *text, size_t size, const shape *s)
{
    snprintf(text, size, "B %d H %d K %d queries %d keys %d mode %d shift %d reach %d options %d",
             s->B, s->H, s->K, s->queries, s->keys, (int)s->mode, s->shift, s->reach, s->options);
}

static void check_guards(const float *x, layout l, const char *name, const char *text)
{
    for (size_t n = 0; n < count_of(l); n++) {
        const size_t r = n % l.step / l.ld, c = n % l.step % l.ld;
        if (r >= l.rows || c >= l.width)
            ck_assert_msg(x[n] == guard, "%s: %s wrote between rows, element %zu", text, name, n);
    }
}

/* The plain loop's errors, tensor by tensor.  They are random numbers and small by luck where there
 * is little to sum, so the worst of a few runs counts, whose inputs are off by up to one unit in the
 * last place.  Numbers are of order 1, so four roundings of such a number are always allowed. */
static void naive_errors(double *error, double *const *want, const shape *s, lam_rng rng)
{
    lam_attn a = args_of(s);
    for (int run = 0; run < 3; run++) {
        lam_rng shake = {.key = SEED, .stream = 100 + (uint64_t)run};
        bundle x;
        fill(&x, &a, s, rng);
        for (int t = 0; run > 0 && t < O; t++)
            for (size_t n = 0; n < count_of(layout_of(&a, s, t)); n++) {
                const float side = (float)lam_rng_below(&shake, 3) - 1.0f;
                x.x[t][n] = nextafterf(x.x[t][n], x.x[t][n] + side);
            }
        point(&a, s, (void *const *)x.x);
        lam_naive_attn_fwd(NULL, &a);
        lam_naive_attn_bwd(NULL, &a);
        for (int t = O; t < TENSORS; t++) {
            double scale,
                e = present(s, t) ? worst(x.x[t], want[t], layout_of(&a, s, t), &scale) : 0;
            error[t] = run == 0 || e > error[t] ? e : error[t];
        }
        release(&x);
    }
}

static void check(const shape *s)
{
    const lam_attn a = args_of(s);
    const lam_rng rng = {.key = SEED, .stream = (uint64_t)(s->queries * 1000 + s->keys)};
    bundle got;
    double *want[TENSORS], naive[TENSORS];
    char text[160];
    describe(text, sizeof text, s);
    fill(&got, &a, s, rng);
    run_ref(want, &got, a, s);
    run_cpu(&got, a, s, 1);
    naive_errors(naive, want, s, rng);

    for (int t = 0; t < TENSORS; t++) {
        const layout l = layout_of(&a, s, t);
        if (t >= O && present(s, t)) {
            double scale;
            const double error = worst(got.x[t], want[t], l, &scale);
            const double limit =
                (t <= LSE ? 2.0 : 3.0) * naive[t] + 4.0 * FLT_EPSILON * fmax(scale, 1.0);
            ck_assert_msg(error <= limit, "%s (seed %d): %s is off by %g, limit %g (loop %g)", text,
                          SEED, names[t], error, limit, naive[t]);
        }
        check_guards(got.x[t], l, names[t], text);
        free(want[t]);
    }
    release(&got);
}

/* --- claims ------------------------------------------------------------------------------------- */

enum { ALL = U | V | R | RBIAS | DLSE | GAPS };

START_TEST(every_tile_edge_is_right)
{
    static const int queries[] = {1, 2, 3, 8, 9, 17, 64, 65};
    static const int keys[] = {1, 2, 7, 8, 15, 16, 17, 31, 33, 48, 49, 97};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        for (size_t j = 0; j < sizeof keys / sizeof *keys; j++) {
            const int past = keys[j] - queries[i];
            check(&(shape){2, 1, 16, queries[i], keys[j], LAM_CAUSAL, past, 0, U | V | R | DLSE});
            check(&(shape){1, 2, 16, queries[i], keys[j], LAM_AHEAD, 0, 0, ALL | FLIP});
        }
}
END_TEST

START_TEST(every_width_is_right)
{
    static const int widths[] = {1, 6, 8, 15, 16, 17, 32, 41, 48, 64, 65, 80, 96, 100, 128, 150};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int queries = 1; queries <= 20; queries += 19) {
            check(&(shape){2, 3, widths[i], queries, 37, LAM_CAUSAL, 17, 0, ALL});
            check(&(shape){1, 2, widths[i], queries, 37, LAM_FULL, 3, 0, ALL | FLIP | ADD});
        }
}
END_TEST

START_TEST(every_option_is_right_alone_and_together)
{
    for (int options = 0; options < 512; options += 1 + options % 2)
        check(&(shape){2, 2, 10, 11, 19, (lam_attn_mode)(options % 3), 5, 0, options});
    for (int options = 0; options < 512; options += 3)
        check(&(shape){3, 1, 20, 1, 70, (lam_attn_mode)(options % 2 * 2), 60, 0, options});
}
END_TEST

START_TEST(several_chunks_of_keys_are_one_softmax)
{
    check(&(shape){1, 1, 16, 70, 1100, LAM_CAUSAL, 1030, 0, ALL});
    check(&(shape){1, 1, 16, 70, 1100, LAM_CAUSAL, 1030, 300, ALL});
    check(&(shape){1, 1, 16, 66, 1025, LAM_AHEAD, 490, 0, ALL | FLIP});
    check(&(shape){1, 1, 8, 9, 1537, LAM_FULL, 0, 0, ALL | DROP});
    check(&(shape){1, 1, 8, 600, 600, LAM_CAUSAL, 0, 0, U | V | R});
    check(&(shape){1, 1, 8, 600, 513, LAM_AHEAD, -40, 0, R | FLIP | DLSE});
}
END_TEST

START_TEST(reach_and_shift_cut_where_they_should)
{
    for (int shift = -20; shift <= 60; shift += 5)
        for (int reach = 0; reach <= 40; reach += 8)
            check(&(shape){1, 2, 12, 26, 40, LAM_CAUSAL, shift, reach, ALL});
    for (int shift = -40; shift <= 45; shift += 5)
        check(&(shape){1, 2, 12, 26, 40, LAM_AHEAD, shift, 0, ALL | FLIP});
}
END_TEST

START_TEST(queries_that_see_nothing_give_zero)
{
    check(&(shape){2, 1, 16, 20, 12, LAM_CAUSAL, -30, 0, ALL});
    check(&(shape){2, 1, 16, 20, 12, LAM_AHEAD, 30, 0, ALL});
    check(&(shape){1, 1, 16, 1, 12, LAM_AHEAD, 11, 0, ALL});
    check(&(shape){1, 1, 16, 2, 12, LAM_CAUSAL, -1, 0, ALL});
}
END_TEST

START_TEST(random_shapes_are_right)
{
    lam_rng rng = {.key = SEED, .stream = 1};
    for (int n = 0; n < 150; n++) {
        shape s = {.B = 1 + (int)lam_rng_below(&rng, 3),
                   .H = 1 + (int)lam_rng_below(&rng, 3),
                   .K = 1 + (int)lam_rng_below(&rng, 70),
                   .queries = 1 + (int)lam_rng_below(&rng, 90),
                   .keys = 1 + (int)lam_rng_below(&rng, 150),
                   .mode = (lam_attn_mode)lam_rng_below(&rng, 3),
                   .options = (int)lam_rng_below(&rng, 512)};
        s.shift = (int)lam_rng_below(&rng, 100) - 30;
        s.reach = lam_rng_below(&rng, 2) ? 1 + (int)lam_rng_below(&rng, 60) : 0;
        check(&s);
    }
}
END_TEST

START_TEST(threads_do_not_change_a_bit)
{
    static const shape shapes[] = {
        {5, 3, 32, 100, 200, LAM_CAUSAL, 100, 0, ALL},
        {1, 4, 64, 130, 260, LAM_CAUSAL, 130, 0, ALL | DROP},
        {7, 2, 41, 70, 140, LAM_AHEAD, 0, 0, ALL | FLIP | ADD},
        {1, 8, 64, 1, 1024, LAM_CAUSAL, 1023, 0, U | V | R},
        {3, 5, 64, 2, 700, LAM_CAUSAL, 698, 0, ALL},
    };
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        const shape *s = &shapes[n];
        const lam_attn a = args_of(s);
        const lam_rng rng = {.key = SEED, .stream = n};
        bundle one;
        fill(&one, &a, s, rng);
        run_cpu(&one, a, s, 1);
        for (int threads = 2; threads <= 5; threads++) {
            bundle more;
            fill(&more, &a, s, rng);
            run_cpu(&more, a, s, threads);
            for (int t = 0; t < TENSORS; t++)
                ck_assert_msg(!memcmp(one.x[t], more.x[t], count_of(layout_of(&a, s, t)) * 4),
                              "shape %zu, %d threads: %s differs", n, threads, names[t]);
            release(&more);
        }
        release(&one);
    }
}
END_TEST

/* Causality to the bit: what lies after a query changes neither its output nor its log-sum-exp. */
START_TEST(later_keys_leave_no_trace)
{
    const shape s = {1, 1, 16, 40, 72, LAM_CAUSAL, 32, 0, U | V | R};
    const lam_attn a = args_of(&s);
    const lam_rng rng = {.key = SEED, .stream = 4};
    bundle base;
    fill(&base, &a, &s, rng);
    run_cpu(&base, a, &s, 1);
    for (int t = 0; t < 40; t++) {
        bundle other;
        fill(&other, &a, &s, rng);
        for (int c = 0; c < 16; c++) {
            other.x[KEY][(32 + t) * 16 + c] += 3.0f;
            other.x[VALUE][(32 + t) * 16 + c] -= 5.0f;
        }
        run_cpu(&other, a, &s, 1);
        ck_assert(!memcmp(base.x[O], other.x[O], (size_t)t * 16 * sizeof(float)));
        ck_assert(!memcmp(base.x[LSE], other.x[LSE], (size_t)t * sizeof(float)));
        release(&other);
    }
    release(&base);
}
END_TEST

/* With one key P is 1 whatever the scores are: dS cancels, and must do so to the last bit. */
START_TEST(a_single_key_gives_exactly_no_gradient)
{
    for (int queries = 1; queries <= 9; queries++) {
        const shape s = {2, 2, 40, queries, 1, LAM_FULL, 0, 0, U | V | R | GAPS};
        const lam_attn a = args_of(&s);
        bundle x;
        fill(&x, &a, &s, (lam_rng){.key = SEED, .stream = 7});
        memset(x.x[DU], 0, 80 * sizeof(float));
        run_cpu(&x, a, &s, 1);
        for (int b = 0; b < 2; b++)
            for (int c = 0; c < 80; c++) {
                ck_assert(x.x[DU][c] == 0.0f);
                ck_assert(x.x[DK][(size_t)b * layout_of(&a, &s, DK).step + (size_t)c] == 0.0f);
                ck_assert(x.x[DQ][(size_t)b * layout_of(&a, &s, DQ).step + (size_t)c] == 0.0f);
            }
        release(&x);
    }
}
END_TEST

/* Rows of keys that nobody sees are not part of the result, whatever they hold. */
START_TEST(unseen_keys_may_hold_anything)
{
    const shape s = {1, 2, 24, 20, 50, LAM_CAUSAL, 10, 6, U | V | R};
    lam_attn a = args_of(&s);
    bundle x;
    fill(&x, &a, &s, (lam_rng){.key = SEED, .stream = 5});
    for (int j = 0; j < 50; j++)
        if (j < 5 || j >= 30)
            for (int c = 0; c < 48; c++)
                x.x[KEY][j * 48 + c] = x.x[VALUE][j * 48 + c] = NAN;
    run_cpu(&x, a, &s, 1);
    for (int t = O; t < TENSORS; t++)
        if (present(&s, t))
            for (size_t n = 0; n < count_of(layout_of(&a, &s, t)); n++)
                ck_assert_msg(isfinite(x.x[t][n]), "%s[%zu] is not finite", names[t], n);
    release(&x);
}
END_TEST

START_TEST(scratch_for_larger_shapes_serves_smaller_ones)
{
    lam_rng rng = {.key = SEED, .stream = 6};
    for (int n = 0; n < 2000; n++) {
        int big[6], small[6];
        for (int k = 0; k < 6; k++) {
            big[k] = 1 + (int)lam_rng_below(&rng, k < 2 ? 40 : 700);
            small[k] = 1 + (int)lam_rng_below(&rng, (uint64_t)big[k]);
        }
        const lam_work x = {big[0], big[1], big[2], big[3], big[4], big[5], 0, 0, 0};
        const lam_work y = {small[0], small[1], small[2], small[3], small[4], small[5], 0, 0, 0};
        ck_assert_uint_ge(lam_cpu_attn_scratch(&x, 3), lam_cpu_attn_scratch(&y, 3));
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_tile_edge_is_right);
    tcase_add_test(tests, every_width_is_right);
    tcase_add_test(tests, every_option_is_right_alone_and_together);
    tcase_add_test(tests, several_chunks_of_keys_are_one_softmax);
    tcase_add_test(tests, reach_and_shift_cut_where_they_should);
    tcase_add_test(tests, queries_that_see_nothing_give_zero);
    tcase_add_test(tests, random_shapes_are_right);
    tcase_add_test(tests, threads_do_not_change_a_bit);
    tcase_add_test(tests, later_keys_leave_no_trace);
    tcase_add_test(tests, a_single_key_gives_exactly_no_gradient);
    tcase_add_test(tests, unseen_keys_may_hold_anything);
    tcase_add_test(tests, scratch_for_larger_shapes_serves_smaller_ones);
    return test_run("ops/cpu/attn", tests);
}
