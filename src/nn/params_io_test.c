/* params_io_test.c -- parameters come back from a file, whatever pads them; a file that does not fit is refused by name. */
#include "nn/params_io.h"

#include "core/quantize.h"
#include "support/gradient.h"
#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, COLS = 7 };

/* A padded matrix of heads, a plain vector, a turned convolution. */
static void declare(lam_params *p)
{
    const lam_dim heads = {.groups = 2, .size = 3, .ld = 4},
                  cols = {.groups = 1, .size = COLS, .ld = 8},
                  three = {.groups = 1, .size = 3, .ld = 3};
    const int matrix = lam_params_add(
        p, &(lam_spec){.rank = 2, .dim = {heads, cols}, .init = LAM_INIT_NORMAL, .scale = 1},
        "matrix");
    lam_params_add(p, &(lam_spec){.rank = 1, .dim = {cols}, .init = LAM_INIT_NORMAL, .scale = 1},
                   "bias");
    const int taps = lam_params_add(
        p, &(lam_spec){.rank = 3, .dim = {three, three, cols}, .init = LAM_INIT_NORMAL, .scale = 1},
        "taps");
    lam_params_set_maps(p, matrix, 1);
    lam_params_turn(p, taps);
    lam_params_arrange(p);
}

static lam_params made(lam_class store, uint64_t seed)
{
    lam_params p = {.store = store};
    declare(&p);
    must(lam_params_place(&p, test_ref));
    must(lam_params_init(&p, &(lam_init_rule){.seed = seed}));
    return p;
}

static const char *save(const lam_params *p, lam_dtype dtype, const lam_flat *flat)
{
    const char *const path = test_temp_path("params.safetensors");
    lam_st_writer *w;
    must(lam_st_writer_create(&w, path));
    must(lam_params_add_to(w, p, flat, dtype));
    must(lam_st_writer_begin(w));
    must(lam_params_write(w, p, flat, dtype));
    must(lam_st_writer_finish(w));
    return path;
}

static void compare(const lam_params *a, const lam_params *b, double tolerance)
{
    for (int i = 0; i < a->n; i++) {
        const size_t n = lam_param_count(&a->list[i]);
        double *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
        must(lam_params_get(a, a->master, i, x));
        must(lam_params_get(b, b->master, i, y));
        for (size_t k = 0; k < n; k++)
            ck_assert_msg(fabs(x[k] - y[k]) <= tolerance * fabs(x[k]), "%s[%zu]: %g, not %g",
                          a->list[i].name, k, y[k], x[k]);
        free(x);
        free(y);
    }
}

static const struct {
    const char *what;
    lam_dtype dtype;
    double tolerance; /* fresh parameters are floats */
} types[] = {
    {.what = "F64", .dtype = LAM_F64, .tolerance = 0.0},
    {.what = "F32", .dtype = LAM_F32, .tolerance = 0.0},
    {.what = "F16", .dtype = LAM_F16, .tolerance = 1.0 / 2048},
    {.what = "BF16", .dtype = LAM_BF16, .tolerance = 1.0 / 256},
};

START_TEST(every_type_comes_back)
{
    lam_params p = made(LAM_ACT, 1), back = made(LAM_ACT, 2);
    const lam_flat from = {.prefix = "", .at = p.master}, to = {.prefix = "", .at = back.master};
    lam_safetensors *st;
    must(lam_st_open(&st, save(&p, types[_i].dtype, &from)));
    const lam_st_tensor *taps = lam_st_find(st, "taps"); /* files do not see padding and turning */
    ck_assert_int_eq(taps->shape.dim[1], 3);
    ck_assert_int_eq(taps->shape.dim[2], COLS);
    must(lam_params_check(st, &back, &to));
    must(lam_params_read(st, &back, &to));
    compare(&p, &back, types[_i].tolerance);
    const double *at = lam_vector(&back, 0);
    ck_assert_double_eq(at[COLS], 0.0); /* padding */
    lam_st_close(st);
    lam_params_free(&p);
    lam_params_free(&back);
}
END_TEST

START_TEST(prefixes_keep_vectors_apart_and_rest_ends_before_the_matrices)
{
    lam_params p = made(LAM_ACT, 1);
    const lam_flat all = {.prefix = "m.", .at = p.master},
                   rest = {.prefix = "v.", .at = p.master, .rest = 1};
    lam_safetensors *st;
    must(lam_st_open(&st, save(&p, LAM_F32, &rest)));
    ck_assert_ptr_nonnull(lam_st_find(st, "v.bias"));
    ck_assert_ptr_null(lam_st_find(st, "v.matrix"));
    ck_assert_ptr_null(lam_st_find(st, "bias"));
    must(lam_params_check(st, &p, &rest));
    ck_assert_int_eq(lam_params_check(st, &p, &all), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "tensor m.matrix is missing"), "%s", lam_error());
    lam_st_close(st);
    lam_params_free(&p);
}
END_TEST

/* ---- files from other programs ---- */

typedef struct tensor {
    const char *name;
    lam_dtype dtype;
    lam_shape shape;
    const void *data;
} tensor;

static lam_safetensors *file_of(const tensor *all, int n)
{
    const char *const path = test_temp_path("other.safetensors");
    lam_st_writer *w;
    lam_safetensors *st;
    must(lam_st_writer_create(&w, path));
    for (int i = 0; i < n; i++)
        must(lam_st_writer_add(w, all[i].name, all[i].dtype, &all[i].shape));
    must(lam_st_writer_begin(w));
    for (int i = 0; i < n; i++)
        must(lam_st_writer_data(w, all[i].data,
                                lam_shape_count(&all[i].shape) * lam_dtype_size(all[i].dtype)));
    must(lam_st_writer_finish(w));
    must(lam_st_open(&st, path));
    return st;
}

static float floats[256], scales[ROWS], infinite[COLS] = {[3] = INFINITY},
                                        negative[ROWS] = {[2] = -1.0f};
static int8_t bytes[ROWS * COLS];

#define MATRIX_SHAPE .shape = {.rank = 2, .dim = {ROWS, COLS}}
#define BIAS                                                                                       \
    {                                                                                              \
        .name = "bias", .dtype = LAM_F32, .shape = {.rank = 1, .dim = {COLS}}, .data = floats      \
    }
#define TAPS                                                                                       \
    {                                                                                              \
        .name = "taps", .dtype = LAM_F32, .shape = {.rank = 3, .dim = {3, 3, COLS}},               \
        .data = floats                                                                             \
    }
#define INT8                                                                                       \
    {                                                                                              \
        .name = "matrix", .dtype = LAM_I8, MATRIX_SHAPE, .data = bytes                             \
    }
#define SCALE(type, count, values)                                                                 \
    {                                                                                              \
        .name = "matrix.scale", .dtype = type, .shape = {.rank = 1, .dim = {count}},               \
        .data = values                                                                             \
    }

static const struct {
    const char *says;
    int n;
    tensor all[4];
} wrong[] = {
    {.says = "tensor matrix is missing", .n = 2, .all = {BIAS, TAPS}},
    {.says = "tensor matrix is [7, 6], the configuration makes it [6, 7]",
     .n = 3,
     .all = {{.name = "matrix",
              .dtype = LAM_F32,
              .shape = {.rank = 2, .dim = {COLS, ROWS}},
              .data = floats},
             BIAS,
             TAPS}},
    {.says = "tensor matrix is I32, must be F32, F16, BF16 or F64, or I8 with scales",
     .n = 3,
     .all = {{.name = "matrix", .dtype = LAM_I32, MATRIX_SHAPE, .data = floats}, BIAS, TAPS}},
    {.says = "tensor matrix is I8 and has no matrix.scale", .n = 3, .all = {INT8, BIAS, TAPS}},
    {.says = "tensor matrix.scale is F32 [3], must be F32 [6]",
     .n = 4,
     .all = {INT8, SCALE(LAM_F32, 3, scales), BIAS, TAPS}},
    {.says = "scale 2 of matrix is -1, must be finite and not below 0",
     .n = 4,
     .all = {INT8, SCALE(LAM_F32, ROWS, negative), BIAS, TAPS}},
    {.says = "element 3 of tensor bias is not finite",
     .n = 4,
     .all =
         {INT8,
          SCALE(LAM_F32, ROWS, scales),
          {.name = "bias", .dtype = LAM_F32, .shape = {.rank = 1, .dim = {COLS}}, .data = infinite},
          TAPS}},
};

START_TEST(what_does_not_fit_is_named)
{
    lam_params p = made(LAM_ACT, 1);
    lam_safetensors *st = file_of(wrong[_i].all, wrong[_i].n);
    ck_assert_int_eq(lam_params_check(st, &p, &(lam_flat){.prefix = ""}), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "other.safetensors: ") && strstr(lam_error(), wrong[_i].says),
                  "%s", lam_error());
    lam_st_close(st);
    lam_params_free(&p);
}
END_TEST

/* A matrix of int8 into every kind of storage: it is what its bytes and scales say. */
START_TEST(int8_is_read_into_every_storage)
{
    static const lam_class stores[] = {LAM_ACT, LAM_HALF, LAM_BYTE};
    static const tensor good[] = {INT8, SCALE(LAM_F32, ROWS, scales), BIAS, TAPS};
    double got[ROWS * COLS];
    for (int r = 0; r < ROWS; r++)
        scales[r] = ldexpf(0.25f, r); /* 7 bits and a power of two fit bf16 */
    for (int k = 0; k < ROWS * COLS; k++)
        bytes[k] =
            (int8_t)(k % COLS == 0 ? 127 : k * 37 % 255 - 127); /* each row fills its range */
    lam_params p = made(stores[_i], 1);
    lam_safetensors *st = file_of(good, 4);
    const lam_flat flat = {.prefix = "", .at = p.master};
    must(lam_params_check(st, &p, &flat));
    must(lam_params_read(st, &p, &flat));
    ck_assert(lam_params_know(&p, st, "matrix.scale") && lam_params_know(&p, st, "bias"));
    ck_assert(!lam_params_know(&p, st, "bias.scale") && !lam_params_know(&p, st, ".scale"));
    must(lam_params_get(&p, p.master, lam_params_find(&p, "matrix"), got));
    for (int k = 0; k < ROWS * COLS; k++) {
        const double want = (double)scales[k / COLS] * bytes[k];
        ck_assert_double_eq_tol(got[k], want, 1e-6 * fabs(want) + 1e-9);
    }
    lam_st_close(st);
    lam_params_free(&p);
}
END_TEST

/* Large ones are read and written piece by piece. */
START_TEST(a_matrix_of_several_pieces_comes_back)
{
    enum { WIDTH = 200000, COUNT = 3 * WIDTH };
    static const lam_class stores[] = {LAM_ACT, LAM_HALF, LAM_BYTE};
    static int8_t large[COUNT];
    static double got[COUNT];
    static const float worth[3] = {0.5f, 2.0f, 0.125f};
    const tensor all[] = {
        {.name = "large", .dtype = LAM_I8, .shape = {.rank = 2, .dim = {3, WIDTH}}, .data = large},
        {.name = "large.scale", .dtype = LAM_F32, .shape = {.rank = 1, .dim = {3}}, .data = worth}};
    for (int k = 0; k < COUNT; k++)
        large[k] = (int8_t)(k % 255 - 127);
    lam_params p = {.store = stores[_i]};
    const lam_dim rows = {1, 3, 3}, cols = {1, WIDTH, WIDTH};
    lam_params_add(&p, &(lam_spec){.rank = 2, .dim = {rows, cols}, .init = LAM_INIT_ZERO}, "large");
    must(lam_params_place(&p, test_ref));
    const lam_flat flat = {.prefix = "", .at = p.master};
    for (int again = 0; again < 2; again++) { /* from int8; from what was written */
        lam_safetensors *st;
        if (again)
            must(lam_st_open(&st, save(&p, LAM_F32, &flat)));
        else
            st = file_of(all, 2);
        must(lam_params_check(st, &p, &flat));
        must(lam_params_read(st, &p, &flat));
        must(lam_params_get(&p, p.master, 0, got));
        for (int k = 0; k < COUNT; k++)
            if (fabs(got[k] - (double)worth[k / WIDTH] * large[k]) > 1e-5)
                ck_abort_msg("element %d: %g, not %g", k, got[k],
                             (double)worth[k / WIDTH] * large[k]);
        lam_st_close(st);
    }
    lam_params_free(&p);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    for (int i = 0; i < ROWS; i++)
        scales[i] = 1.0f;
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, test_ref_open, test_ref_close);
    tcase_add_loop_test(tests, every_type_comes_back, 0, (int)(sizeof types / sizeof *types));
    tcase_add_test(tests, prefixes_keep_vectors_apart_and_rest_ends_before_the_matrices);
    tcase_add_loop_test(tests, what_does_not_fit_is_named, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_loop_test(tests, int8_is_read_into_every_storage, 0, 3);
    tcase_add_loop_test(tests, a_matrix_of_several_pieces_comes_back, 0, 3);
    return test_run("nn/params_io", tests);
}
