/* export_int8_test.c -- int8 folders: near the model, the same on every device and way of holding them,
 * and refused by name when something about their scales is wrong. */
#include "convert/export.h"

#include "io/safetensors.h"
#include "model/folder.h"
#include "support/suite.h"
#include "support/toy_folder.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lam_dev *open_device(const char *name)
{
    const lam_ops *ops;
    lam_dev *dev;
    ck_assert_int_eq(lam_ops_find(&ops, name), LAM_OK);
    ck_assert_int_eq(ops->open(&dev, &(lam_dev_options){.threads = 1}), LAM_OK);
    return dev;
}

static lam_model *load(const char *dir, lam_dev *dev, lam_store weights)
{
    lam_model *model;
    const lam_storage storage = {.weights = weights};
    ck_assert_msg(lam_folder_load(&model, dir, dev, &storage) == LAM_OK, "%s", lam_error());
    return model;
}

static double *values_of(const lam_model *model, int i)
{
    double *x = malloc(lam_param_count(&model->params.list[i]) * sizeof *x);
    ck_assert_int_eq(lam_params_get(&model->params, model->params.master, i, x), LAM_OK);
    return x;
}

/* Largest difference of two models, as a share of the largest number in the row of the first. */
static double distance(const lam_model *a, const lam_model *b)
{
    double worst = 0.0;
    ck_assert_int_eq(a->params.n, b->params.n);
    for (int i = 0; i < a->params.n; i++) {
        const lam_param *param = &a->params.list[i];
        const size_t n = lam_param_count(param), rows = (size_t)lam_param_shape(param).dim[0];
        double *x = values_of(a, i), *y = values_of(b, i);
        for (size_t r = 0; r < rows; r++) {
            double most = 1e-30;
            for (size_t k = r * (n / rows); k < (r + 1) * (n / rows); k++)
                most = fmax(most, fabs(x[k]));
            for (size_t k = r * (n / rows); k < (r + 1) * (n / rows); k++)
                worst = fmax(worst, fabs(x[k] - y[k]) / most);
        }
        free(x);
        free(y);
    }
    return worst;
}

static lam_export_options make(const char *model, const char *out, int64_t max_shard)
{
    const lam_export_options o = {
        .model = model, .out = out, .dtype = LAM_I8, .max_shard = max_shard, .replace = 1};
    lam_export_result r;
    ck_assert_msg(lam_export(&o, &r) == LAM_OK, "%s", lam_error());
    ck_assert_uint_lt(r.bytes, 2 * r.elements);
    return o;
}

static const char *const memories[] = {"lamemo", "xl", "compressive", "infinite"};

START_TEST(an_int8_folder_is_one_model_however_it_is_held)
{
    const char *from = test_temp_path("float"), *dir = test_temp_path("int8");
    ck_assert_int_eq(toy_folder_save(from, memories[_i], 3), LAM_OK);
    make(from, dir, _i % 2 ? 9000 : 0);
    lam_dev *ref = open_device("ref"), *cpu = open_device("cpu");
    lam_model *whole = load(from, ref, LAM_STORE_AUTO), *wide = load(dir, ref, LAM_STORE_F32);
    lam_model *kept = load(dir, ref, LAM_STORE_AUTO), *fast = load(dir, cpu, LAM_STORE_AUTO);
    lam_model *narrowed = load(from, cpu, LAM_STORE_INT8);
    ck_assert_int_eq(whole->params.store, LAM_ACT);
    ck_assert_int_eq(wide->params.store, LAM_ACT);
    ck_assert_int_eq(kept->params.store, LAM_BYTE);
    ck_assert_int_eq(kept->cache, LAM_HALF);
    ck_assert_uint_lt(lam_params_bytes(&fast->params), lam_params_bytes(&wide->params) / 4);
    ck_assert_double_lt(distance(whole, wide), 0.502 / 127.0);
    ck_assert_double_gt(distance(whole, wide), 0.1 / 127.0);
    ck_assert(distance(wide, kept) == 0.0);
    ck_assert(distance(kept, fast) == 0.0);
    ck_assert(distance(fast, narrowed) == 0.0);
    lam_model *all[] = {whole, wide, kept, fast, narrowed};
    for (int i = 0; i < 5; i++)
        lam_model_free(all[i]);
    ref->ops->close(ref);
    cpu->ops->close(cpu);
}
END_TEST

START_TEST(exporting_int8_again_changes_nothing_and_float_widens_it)
{
    const char *from = test_temp_path("a"), *one = test_temp_path("b"), *two = test_temp_path("c");
    ck_assert_int_eq(toy_folder_save(from, "lamemo", 3), LAM_OK);
    make(from, one, 0);
    make(one, two, 0);
    lam_dev *ref = open_device("ref");
    lam_model *a = load(one, ref, LAM_STORE_AUTO), *b = load(two, ref, LAM_STORE_AUTO);
    ck_assert(distance(a, b) == 0.0);
    const lam_export_options o = {
        .model = one, .out = test_temp_path("d"), .dtype = LAM_F32, .replace = 1};
    lam_export_result r;
    ck_assert_msg(lam_export(&o, &r) == LAM_OK, "%s", lam_error());
    lam_model *c = load(o.out, ref, LAM_STORE_AUTO);
    ck_assert_int_eq(c->params.store, LAM_ACT);
    ck_assert_double_lt(distance(a, c), 1e-7); /* a product rounded to float */
    lam_model_free(a);
    lam_model_free(b);
    lam_model_free(c);
    ref->ops->close(ref);
}
END_TEST

/* One tensor of a file as another would write it. */
typedef struct change {
    const char *tensor, *why;
    int remove;
    lam_dtype dtype; /* when not F64: zeros of this type */
    int64_t rows;    /* when above 0: zeros, so many */
    float first;     /* when not 0: instead of the first number */
} change;

static const change changes[] = {
    {"layers.0.pos_ff.CoreNet.0.weight.scale", "is I8 and has no", 1, LAM_F64, 0, 0},
    {"layers.0.pos_ff.CoreNet.0.weight.scale", "must be F32 [", 0, LAM_F64, 3, 0},
    {"layers.0.pos_ff.CoreNet.0.weight.scale", "must be F32 [", 0, LAM_F16, 0, 0},
    {"layers.0.pos_ff.CoreNet.0.weight.scale", "must be finite", 0, LAM_F64, 0, NAN},
    {"word_emb.emb_layers.0.weight.scale", "must be finite", 0, LAM_F64, 0, INFINITY},
    {"word_emb.emb_layers.0.weight.scale", "is -1, must be finite", 0, LAM_F64, 0, -1},
    {"layers.0.pos_ff.CoreNet.0.weight", "the configuration makes it", 0, LAM_F64, 7, 0},
    {"layers.0.pos_ff.CoreNet.0.weight", "not part of this configuration", 0, LAM_F32, 0, 0},
    {"layers.0.pos_ff.CoreNet.0.bias", "is I8, must be F32", 0, LAM_I8, 0, 0},
    {"r_w_bias", "is I8, must be F32", 0, LAM_I8, 0, 0},
};

static void rewrite(const char *dir, const lam_safetensors *st, const change *c)
{
    char path[PATH_MAX];
    lam_st_writer *w;
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    ck_assert_int_eq(lam_st_writer_create(&w, path), LAM_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < lam_st_count(st); i++) {
            const lam_st_tensor *t = lam_st_at(st, i);
            const int it = strcmp(t->name, c->tensor) == 0, typed = it && c->dtype != LAM_F64;
            lam_shape shape = t->shape;
            if (it && c->remove)
                continue;
            if (it && c->rows > 0)
                shape.dim[0] = c->rows;
            const lam_dtype dtype = typed ? c->dtype : t->dtype;
            if (pass == 0) {
                ck_assert_int_eq(lam_st_writer_add(w, t->name, dtype, &shape), LAM_OK);
                continue;
            }
            const size_t bytes = lam_shape_count(&shape) * lam_dtype_size(dtype);
            char *data = calloc(1, bytes + 1);
            if (!typed && c->rows == 0)
                memcpy(data, t->data, bytes);
            if (it && c->first != 0.0f)
                memcpy(data, &c->first, sizeof c->first);
            ck_assert_int_eq(lam_st_writer_data(w, data, bytes), LAM_OK);
            free(data);
        }
        if (pass == 0)
            ck_assert_int_eq(lam_st_writer_begin(w), LAM_OK);
    }
    ck_assert_int_eq(lam_st_writer_finish(w), LAM_OK);
}

START_TEST(wrong_scales_are_named)
{
    const change *c = &changes[_i];
    const char *from = test_temp_path("e"), *good = test_temp_path("f"), *dir = test_temp_path("g");
    lam_safetensors *st;
    lam_model *model;
    lam_export_result r;
    char name[32];
    ck_assert_int_eq(toy_folder_save(from, "lamemo", 3), LAM_OK);
    make(from, good, 0);
    make(from, dir, 0);
    ck_assert_int_eq(lam_st_open_folder(&st, good), LAM_OK);
    rewrite(dir, st, c);
    lam_st_close(st);
    lam_dev *cpu = open_device("cpu");
    ck_assert_int_eq(lam_folder_load(&model, dir, cpu, NULL), LAM_ERR_FORMAT);
    ck_assert_ptr_null(model);
    snprintf(name, sizeof name, "%.24s", c->tensor); /* without ".scale" */
    ck_assert_msg(strstr(lam_error(), c->why) && strstr(lam_error(), name), "%s", lam_error());
    const lam_export_options o = {
        .model = dir, .out = test_temp_path("h"), .dtype = LAM_F32, .replace = 1};
    ck_assert_int_eq(lam_export(&o, &r), LAM_ERR_FORMAT);
    cpu->ops->close(cpu);
}
END_TEST

START_TEST(what_cannot_be_held_or_trained_is_refused)
{
    const char *from = test_temp_path("i");
    ck_assert_int_eq(toy_folder_save(from, "lamemo", 3), LAM_OK);
    lam_dev *cpu = open_device("cpu");
    lam_model *model = load(from, cpu, LAM_STORE_INT8), *none;
    ck_assert_int_eq(lam_params_place_grad(&model->params), LAM_ERR_ARG);
    ck_assert_msg(strstr(lam_error(), "cannot be trained"), "%s", lam_error());
    lam_model_free(model);
    cpu->narrow = 0; /* as on cuda */
    const lam_storage int8 = {.weights = LAM_STORE_INT8}, cache = {.cache = LAM_STORE_BF16};
    ck_assert_int_eq(lam_folder_load(&none, from, cpu, &int8), LAM_ERR_UNSUPPORTED);
    ck_assert_int_eq(lam_folder_load(&none, from, cpu, &cache), LAM_ERR_UNSUPPORTED);
    make(from, test_temp_path("j"), 0);
    model = load(test_temp_path("j"), cpu, LAM_STORE_AUTO);
    ck_assert_int_eq(model->params.store, LAM_ACT);
    lam_model_free(model);
    cpu->ops->close(cpu);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_loop_test(tests, an_int8_folder_is_one_model_however_it_is_held, 0,
                        (int)(sizeof memories / sizeof *memories));
    tcase_add_test(tests, exporting_int8_again_changes_nothing_and_float_widens_it);
    tcase_add_loop_test(tests, wrong_scales_are_named, 0, (int)(sizeof changes / sizeof *changes));
    tcase_add_test(tests, what_cannot_be_held_or_trained_is_refused);
    return test_run("convert/export int8", tests);
}
