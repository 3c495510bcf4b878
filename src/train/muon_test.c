/* muon_test.c -- Muon against the textbook in double, on padded bf16 too; what it leaves alone. */
#include "model/configure.h"
#include "support/alloc.h"
#include "support/naive16.h"
#include "support/suite.h"
#include "support/toy.h"
#include "train/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 31 };

static const double LR = 0.02, MATRIX_LR = 1.25, DECAY = 0.1, MOMENTUM = 0.9;

typedef struct bench {
    lam_dev *dev;
    lam_model *model;
    lam_optimizer *optimizer;
} bench;

static lam_optimizer_options options_of(double clip)
{
    lam_optimizer_options o = lam_optimizer_defaults();
    o.rule = lam_rules[LAM_OPTIM_MUON];
    o.clip = clip;
    o.weight_decay = DECAY;
    o.muon_mom = MOMENTUM;
    o.matrix_lr = MATRIX_LR;
    o.embed_lr = 0.5;
    o.vector_lr = 2.0;
    return o;
}

static bench open_config(const lam_ops *ops, lam_config cfg, int pad,
                         const lam_optimizer_options *o)
{
    bench b = {0};
    must(lam_config_finish(&cfg));
    must(ops->open(&b.dev, &(lam_dev_options){.threads = 2, .pad = pad}));
    must(lam_model_create(&b.model, &cfg, b.dev));
    must(lam_model_init(b.model, SEED));
    must(lam_optimizer_create(&b.optimizer, b.model, o));
    return b;
}

static bench open_bench(const lam_ops *ops, const char *memory, const lam_optimizer_options *o)
{
    return open_config(ops, toy_config(memory, -1, 4, strcmp(memory, "none") == 0 ? 0 : 4), 0, o);
}

static void close_bench(bench *b)
{
    lam_optimizer_free(b->optimizer);
    lam_model_free(b->model);
    b->dev->ops->close(b->dev);
}

static double *numbers_of(const bench *b, int i)
{
    double *x = calloc(lam_param_count(&b->model->params.list[i]) + 1, sizeof *x);
    ck_assert_ptr_nonnull(x);
    return x;
}

static double *parameter(const bench *b, int i)
{
    double *x = numbers_of(b, i);
    must(lam_params_get(&b->model->params, b->model->params.master, i, x));
    return x;
}

/* A gradient that depends on parameter and step alone; for maps of low rank, as real ones nearly are. */
static double gradient(int param, int step, size_t k)
{
    const double x = (double)k + 0.37 * param;
    return 0.3 * sin(1.7 * x * x + 5.0 * step) + 0.05 * cos(0.3 * x);
}

static void set_gradients(bench *b, int step)
{
    lam_params *p = &b->model->params;
    lam_optimizer_zero(b->optimizer);
    for (int i = 0; i < p->n; i++) {
        double *g = numbers_of(b, i);
        for (size_t k = 0; k < lam_param_count(&p->list[i]); k++)
            g[k] = gradient(i, step, k);
        must(lam_params_set(p, p->grad, i, g));
        p->list[i].used = 1;
        free(g);
    }
}

/* ---- the reference implementation ---- */

static int maps_in(const lam_param *q)
{
    if (q->rank != 2 || strncmp(q->name, "layers.", 7) != 0)
        return 0;
    return strstr(q->name, ".qkv_net") ? 3 : strstr(q->name, ".kv_net") ? 2 : 1;
}

/* x [rows][cols] <- a x + (b x x^T + c (x x^T)^2) x, five times, from |x| = 1. */
static void newton_schulz(double *x, int rows, int cols)
{
    double *gram = calloc((size_t)(2 * rows * rows + rows * cols), sizeof *gram), norm = 0.0;
    ck_assert_ptr_nonnull(gram);
    double *next = gram + 2 * rows * rows, *poly = gram + rows * rows;
    for (int i = 0; i < rows * cols; i++)
        norm += x[i] * x[i];
    for (int i = 0; i < rows * cols; i++)
        x[i] /= sqrt(norm);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < rows * rows; i++) {
            gram[i] = 0.0;
            for (int k = 0; k < cols; k++)
                gram[i] += x[i / rows * cols + k] * x[i % rows * cols + k];
        }
        for (int i = 0; i < rows * rows; i++) {
            poly[i] = -4.7750 * gram[i];
            for (int k = 0; k < rows; k++)
                poly[i] += 2.0315 * gram[i / rows * rows + k] * gram[k * rows + i % rows];
        }
        for (int i = 0; i < rows * cols; i++) {
            next[i] = 3.4445 * x[i];
            for (int k = 0; k < rows; k++)
                next[i] += poly[i / cols * rows + k] * x[k * cols + i % cols];
        }
        memcpy(x, next, (size_t)(rows * cols) * sizeof *x);
    }
    free(gram);
}

static void transpose(double *to, const double *x, int rows, int cols)
{
    for (int i = 0; i < rows * cols; i++)
        to[i % cols * rows + i / cols] = x[i];
}

/* Every row of x gets the length it would have if the columns, or rows, were orthogonal and all rows equal. */
static void even_rows(double *x, int rows, int cols)
{
    for (int r = 0; r < rows; r++, x += cols) {
        double squares = 0.0;
        for (int c = 0; c < cols; c++)
            squares += x[c] * x[c];
        for (int c = 0; c < cols; c++)
            x[c] *= sqrt((rows > cols ? (double)cols / rows : 1.0) / squares);
    }
}

/* One map of [rows][cols]: w and m move on with gradient g, which is spoilt. */
static void muon_plain(double *w, double *m, double *g, int rows, int cols, lam_muon_rows how)
{
    double *turned = calloc((size_t)(rows * cols), sizeof *turned);
    ck_assert_ptr_nonnull(turned);
    for (int i = 0; i < rows * cols; i++) {
        m[i] = MOMENTUM * m[i] + g[i];
        g[i] += MOMENTUM * m[i];
    }
    if (rows > cols) { /* the textbook turns tall maps */
        transpose(turned, g, rows, cols);
        newton_schulz(turned, cols, rows);
        transpose(g, turned, cols, rows);
    } else
        newton_schulz(g, rows, cols);
    if (how == LAM_MUON_ROWS_EVEN)
        even_rows(g, rows, cols);
    const double lr = LR * MATRIX_LR;
    for (int i = 0; i < rows * cols; i++)
        w[i] = w[i] * (1.0 - lr * DECAY) - lr * 0.2 * sqrt(rows > cols ? rows : cols) * g[i];
    free(turned);
}

static void adam_plain(double *w, const double *g, size_t n, int t, double lr, double decay,
                       double (*moments)[2])
{
    for (size_t i = 0; i < n; i++) {
        moments[i][0] += 0.1 * (g[i] - moments[i][0]);
        moments[i][1] += 0.001 * (g[i] * g[i] - moments[i][1]);
        w[i] *= 1.0 - lr * decay;
        w[i] -= lr * moments[i][0] / (1.0 - pow(0.9, t)) /
                (sqrt(moments[i][1] / (1.0 - pow(0.999, t))) + 1e-8);
    }
}

static int is_vector(const lam_param *q)
{
    return q->rank == 1 || strncmp(q->name, "r_", 2) == 0;
}

/* Parameter i after `steps` steps, begun at w. */
static void train_plain(double *w, const bench *b, int i, int steps, double clip)
{
    const lam_param *q = &b->model->params.list[i];
    const size_t n = lam_param_count(q);
    const int maps = maps_in(q);
    double(*moments)[2] = calloc(n, sizeof *moments), *m = calloc(n, sizeof *m),
    *g = calloc(n, sizeof *g);
    ck_assert(moments && m && g);
    for (int t = 1; t <= steps; t++) {
        for (size_t k = 0; k < n; k++)
            g[k] = clip * gradient(i, t, k);
        if (maps == 0) {
            adam_plain(w, g, n, t, LR * (is_vector(q) ? 2.0 : 0.5), is_vector(q) ? 0.0 : DECAY,
                       moments);
            continue;
        }
        const lam_shape shape = lam_param_shape(q);
        const int rows = (int)shape.dim[0] / maps, cols = (int)shape.dim[1];
        for (int k = 0; k < maps; k++)
            muon_plain(w + k * rows * cols, m + k * rows * cols, g + k * rows * cols, rows, cols,
                       b->optimizer->opt.muon_rows);
    }
    free(moments);
    free(m);
    free(g);
}

/* ---- tests ---- */

extern const lam_ops lam_ops_ref, lam_ops_cpu;

static const struct {
    const lam_ops *ops;
    double tolerance; /* part of the distance that a parameter has moved */
} devices[] = {{&lam_ops_ref, 1e-10}, {&lam_ops_cpu, 1e-3}, {&lam_ops_naive16, 0.1}};

static void compare(const bench *b, int i, const double *want, const double *before,
                    double tolerance)
{
    const lam_param *q = &b->model->params.list[i];
    double *got = parameter(b, i), off = 0.0, moved = 0.0;
    for (size_t k = 0; k < lam_param_count(q); k++) {
        off += pow(got[k] - want[k], 2.0);
        moved += pow(want[k] - before[k], 2.0);
    }
    ck_assert_msg(moved > 0.0, "%s did not move", q->name);
    ck_assert_msg(sqrt(off / moved) < tolerance, "%s on %s: off by %.3g of the way", q->name,
                  b->dev->ops->name, sqrt(off / moved));
    free(got);
}

static void follow_the_textbook(bench *b, double tolerance)
{
    enum { STEPS = 4 };
    double *before[256], *want[256];
    const int n = b->model->params.n;
    ck_assert_int_lt(n, 256);
    for (int i = 0; i < n; i++) {
        before[i] = parameter(b, i);
        want[i] = parameter(b, i);
        if (!b->model->params.list[i].turned)
            train_plain(want[i], b, i, STEPS, 1.0);
    }
    for (int t = 1; t <= STEPS; t++) {
        set_gradients(b, t);
        lam_optimizer_step(b->optimizer, LR);
    }
    for (int i = 0; i < n; i++) {
        if (!b->model->params.list[i].turned)
            compare(b, i, want[i], before[i], tolerance);
        free(before[i]);
        free(want[i]);
    }
}

START_TEST(every_parameter_follows_the_textbook)
{
    static const char *const memories[] = {"xl", "lamemo", "infinite within"};
    lam_optimizer_options o = options_of(0.0);
    o.muon_rows = _i < 9 ? LAM_MUON_ROWS_FREE : LAM_MUON_ROWS_EVEN;
    bench b = open_bench(devices[_i % 3].ops, memories[_i / 3 % 3], &o);
    follow_the_textbook(&b, devices[_i % 3].tolerance);
    close_bench(&b);
}
END_TEST

/* W_q is 5 x 8 and W_o 8 x 5: with padding both are 16 x 16, but an even row of the one is longer. */
START_TEST(maps_that_differ_only_without_padding_are_told_apart)
{
    lam_optimizer_options o = options_of(0.0);
    o.muon_rows = LAM_MUON_ROWS_EVEN;
    lam_config cfg = toy_config("lamemo", -1, 4, 4);
    cfg.n_head = 1;
    cfg.d_head = 5;
    bench b = open_config(&lam_ops_ref, cfg, 16, &o);
    follow_the_textbook(&b, 1e-10);
    close_bench(&b);
}
END_TEST

/* With one norm for all: the clip factor is the same in Muon's gradients and in Adam's. */
START_TEST(gradients_are_clipped_before_they_enter_the_momentum)
{
    const lam_optimizer_options o = options_of(0.5);
    bench b = open_bench(&lam_ops_ref, "lamemo", &o);
    set_gradients(&b, 1);
    lam_optimizer_step(b.optimizer, LR);
    double norm;
    must(lam_optimizer_norm(b.optimizer, &norm));
    ck_assert_double_gt(norm, 1.0);
    for (int i = 0; i < b.model->params.n; i++) {
        const lam_param *q = &b.model->params.list[i];
        if (maps_in(q) == 0)
            continue;
        double *m = numbers_of(&b, i);
        must(lam_params_get(&b.model->params, b.optimizer->m, i, m));
        for (size_t k = 0; k < lam_param_count(q); k++)
            ck_assert_double_eq_tol(m[k], gradient(i, 1, k) * 0.5 / (norm + 1e-6), 1e-13);
        free(m);
    }
    close_bench(&b);
}
END_TEST

/* All singular values of a step, in units of lr * 0.2 sqrt(side), lie where five rounds bring them. */
START_TEST(a_step_is_nearly_orthogonal)
{
    lam_optimizer_options o = options_of(0.0);
    o.weight_decay = 0.0;
    bench b = open_bench(&lam_ops_ref, "xl", &o);
    const lam_params *p = &b.model->params;
    const int i = lam_params_find(p, "layers.0.pos_ff.CoreNet.0.weight");
    ck_assert_int_ge(i, 0);
    const int rows = (int)lam_param_shape(&p->list[i]).dim[0],
              cols = (int)lam_param_shape(&p->list[i]).dim[1];
    double *before = parameter(&b, i), x[64];
    set_gradients(&b, 1);
    lam_optimizer_step(b.optimizer, LR);
    double *after = parameter(&b, i);
    lam_rng rng = test_rng(SEED);
    ck_assert(rows > cols && cols <= 64);
    for (int trial = 0; trial < 50; trial++) { /* |O x| / |x| for random x */
        double in = 0.0, out = 0.0;
        for (int c = 0; c < cols; c++) {
            x[c] = lam_rng_normal(&rng);
            in += x[c] * x[c];
        }
        for (int r = 0; r < rows; r++) {
            double y = 0.0;
            for (int c = 0; c < cols; c++)
                y += (after[r * cols + c] - before[r * cols + c]) * x[c];
            out += y * y;
        }
        const double stretch = sqrt(out / in) / (LR * MATRIX_LR * 0.2 * sqrt(rows));
        ck_assert_msg(stretch > 0.65 && stretch < 1.25, "%g", stretch);
    }
    free(before);
    free(after);
    close_bench(&b);
}
END_TEST

static void *flat_copy(const bench *b, const void *flat)
{
    const size_t bytes = b->model->params.total * lam_class_size(b->dev, LAM_WIDE);
    void *copy = malloc(bytes);
    ck_assert_ptr_nonnull(copy);
    must(b->dev->ops->download(b->dev, copy, flat, bytes));
    return copy;
}

START_TEST(a_gradient_that_is_not_finite_changes_nothing)
{
    const lam_optimizer_options o = options_of(0.25);
    bench b = open_bench(devices[_i].ops, "lamemo", &o);
    const size_t bytes = b.model->params.total * lam_class_size(b.dev, LAM_WIDE);
    set_gradients(&b, 1);
    lam_optimizer_step(b.optimizer, LR);
    void *w = flat_copy(&b, b.model->params.master), *m = flat_copy(&b, b.optimizer->m);
    set_gradients(&b, 2);
    double *bad = numbers_of(&b, b.model->layer[0].w1);
    bad[3] = NAN;
    must(lam_params_set(&b.model->params, b.model->params.grad, b.model->layer[0].w1, bad));
    lam_optimizer_step(b.optimizer, LR);
    void *w2 = flat_copy(&b, b.model->params.master), *m2 = flat_copy(&b, b.optimizer->m);
    ck_assert_int_eq(memcmp(w, w2, bytes), 0);
    ck_assert_int_eq(memcmp(m, m2, bytes), 0);
    free(w), free(m), free(w2), free(m2), free(bad);
    close_bench(&b);
}
END_TEST

/* One map at a time, a few, or all of a shape: the same steps. */
START_TEST(batches_of_any_size_are_the_same)
{
    static const size_t limits[] = {0, 1, 200};
    const lam_optimizer_options o = options_of(0.25);
    void *w[3];
    size_t bytes[3], all = 0;
    for (int i = 0; i < 3; i++) {
        bench b = open_bench(devices[_i].ops, "lamemo", &o);
        lam_optimizer_free(b.optimizer);
        b.dev->together = limits[i];
        must(lam_optimizer_create(&b.optimizer, b.model, &o));
        must(lam_rules[LAM_OPTIM_MUON]->measure(&bytes[i], b.model, &o));
        set_gradients(&b, 1);
        lam_optimizer_step(b.optimizer, LR);
        w[i] = flat_copy(&b, b.model->params.master);
        all = b.model->params.total * lam_class_size(b.dev, LAM_WIDE);
        close_bench(&b);
    }
    ck_assert(bytes[1] < bytes[0] && bytes[1] <= bytes[2]);
    ck_assert_int_eq(memcmp(w[0], w[1], all), 0);
    ck_assert_int_eq(memcmp(w[0], w[2], all), 0);
    free(w[0]), free(w[1]), free(w[2]);
}
END_TEST

START_TEST(what_received_no_gradient_stays)
{
    const lam_optimizer_options o = options_of(0.0);
    bench b = open_bench(&lam_ops_ref, "lamemo", &o);
    lam_params *p = &b.model->params;
    const int still = b.model->layer[1].o_net;
    double *before = parameter(&b, still);
    set_gradients(&b, 1);
    p->list[still].used = 0;
    lam_optimizer_step(b.optimizer, LR);
    double *after = parameter(&b, still);
    for (size_t k = 0; k < lam_param_count(&p->list[still]); k++)
        ck_assert(before[k] == after[k]);
    ck_assert_int_eq(p->list[still].steps, 0);
    ck_assert_int_eq(p->list[b.model->layer[0].o_net].steps, 1);
    free(before);
    free(after);
    close_bench(&b);
}
END_TEST

START_TEST(padding_stays_zero)
{
    lam_optimizer_options o = options_of(0.25);
    o.muon_rows = _i ? LAM_MUON_ROWS_EVEN : LAM_MUON_ROWS_FREE;
    bench b = open_bench(&lam_ops_naive16, "lamemo", &o);
    for (int t = 1; t <= 2; t++) {
        set_gradients(&b, t);
        lam_optimizer_step(b.optimizer, LR);
    }
    const lam_params *p = &b.model->params;
    float *w = flat_copy(&b, p->master);
    int padded = 0;
    for (int i = 0; i < p->n; i++) {
        const lam_param *q = &p->list[i];
        size_t zeros = 0;
        for (size_t k = 0; k < q->stored; k++)
            zeros += w[q->offset + k] == 0.0f;
        if (q->init != LAM_INIT_ZERO)
            ck_assert_uint_eq(zeros, q->stored - lam_param_count(q));
        padded += q->stored > lam_param_count(q);
    }
    ck_assert_int_gt(padded, 5);
    free(w);
    close_bench(&b);
}
END_TEST

/* However the maps are divided into parts, each takes the same step. */
START_TEST(parts_of_the_work_are_the_whole)
{
    static const int shares[] = {0, 2, 4, 64};
    void *w[4];
    size_t all = 0;
    for (int i = 0; i < 4; i++) {
        lam_optimizer_options o = options_of(0.25);
        o.shares = shares[i];
        bench b = open_bench(devices[_i].ops, "lamemo", &o);
        set_gradients(&b, 1);
        ck_assert_int_eq(lam_optimizer_step(b.optimizer, LR), LAM_OK);
        w[i] = flat_copy(&b, b.model->params.master);
        all = b.model->params.total * lam_class_size(b.dev, LAM_WIDE);
        close_bench(&b);
    }
    for (int i = 1; i < 4; i++)
        ck_assert_msg(memcmp(w[0], w[i], all) == 0, "%d parts", shares[i]);
    for (int i = 0; i < 4; i++)
        free(w[i]);
}
END_TEST

START_TEST(a_lack_of_memory_is_reported_and_leaks_nothing)
{
    lam_optimizer_options o = options_of(0.0);
    o.shares = 2;
    bench b = open_bench(&lam_ops_ref, "lamemo", &o);
    for (long n = 1; test_alloc_fail(n); n++) {
        void *m;
        const lam_status status = lam_rules[LAM_OPTIM_MUON]->create(&m, b.model, &o);
        const int failed = test_alloc_end(status);
        ck_assert(failed ? m == NULL : m != NULL);
        lam_rules[LAM_OPTIM_MUON]->free(m);
    }
    close_bench(&b);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, every_parameter_follows_the_textbook, 0, 18);
    tcase_add_test(tests, maps_that_differ_only_without_padding_are_told_apart);
    tcase_add_test(tests, gradients_are_clipped_before_they_enter_the_momentum);
    tcase_add_test(tests, a_step_is_nearly_orthogonal);
    tcase_add_loop_test(tests, a_gradient_that_is_not_finite_changes_nothing, 0, 3);
    tcase_add_loop_test(tests, batches_of_any_size_are_the_same, 0, 3);
    tcase_add_loop_test(tests, parts_of_the_work_are_the_whole, 0, 3);
    tcase_add_test(tests, what_received_no_gradient_stays);
    tcase_add_loop_test(tests, padding_stays_zero, 0, 2);
    tcase_add_test(tests, a_lack_of_memory_is_reported_and_leaks_nothing);
    return test_run("train/muon", tests);
}
