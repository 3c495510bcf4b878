/* export_test.c -- exported weights are the model's, in any type and any number of files, and an index that
 * does not fit its files is refused. */
#include "convert/export.h"

#include "convert/import.h"
#include "core/file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "model/folder.h"
#include "support/suite.h"
#include "support/toy_folder.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *model;

static void make_model(void)
{
    model = test_temp_path("toy");
    ck_assert_msg(toy_folder_save(model, "lamemo", 5) == LAM_OK, "%s", lam_error());
}

static lam_export_options request(const char *name, lam_dtype dtype, int64_t max_shard)
{
    return (lam_export_options){
        .model = model, .out = test_temp_path(name), .dtype = dtype, .max_shard = max_shard};
}

static lam_safetensors *weights_of(const char *dir)
{
    lam_safetensors *st;
    ck_assert_msg(lam_st_open_folder(&st, dir) == LAM_OK, "%s", lam_error());
    return st;
}

/* Every tensor of the one folder is in the other, rounded to `dtype`. */
static void same_weights(const char *dir, lam_dtype dtype)
{
    lam_safetensors *have = weights_of(dir), *want = weights_of(model);
    ck_assert_int_eq(lam_st_count(have), lam_st_count(want));
    for (int i = 0; i < lam_st_count(want); i++) {
        const lam_st_tensor *t = lam_st_at(want, i), *u = lam_st_find(have, t->name);
        ck_assert_ptr_nonnull(u);
        ck_assert_int_eq(u->dtype, dtype);
        ck_assert(lam_shape_equal(&t->shape, &u->shape));
        void *rounded = malloc(u->bytes + 1);
        lam_convert(rounded, dtype, t->data, LAM_F32, lam_shape_count(&t->shape));
        ck_assert_int_eq(memcmp(rounded, u->data, u->bytes), 0);
        free(rounded);
    }
    lam_st_close(have);
    lam_st_close(want);
}

START_TEST(weights_of_every_type_and_division_are_the_models)
{
    static const lam_dtype dtypes[] = {LAM_F32, LAM_BF16, LAM_F16};
    static const int64_t limits[] = {0, 20000, 1, 1 << 30};
    for (int k = 0; k < 4; k++) {
        char name[32];
        snprintf(name, sizeof name, "out-%d-%d", _i, k);
        const lam_export_options o = request(name, dtypes[_i], limits[k]);
        lam_export_result r;
        ck_assert_msg(lam_export(&o, &r) == LAM_OK, "%s", lam_error());
        ck_assert_int_eq(r.files, k == 2 ? r.tensors : k == 1 ? r.files : 1);
        ck_assert(k != 1 || _i > 0 || r.files > 1);
        ck_assert_uint_eq(r.bytes, r.elements * lam_dtype_size(dtypes[_i]));
        same_weights(o.out, dtypes[_i]);
    }
}
END_TEST

static void load_vocab(char **text, const char *dir)
{
    char path[4096];
    size_t size;
    ck_assert_int_eq(lam_folder_vocab(path, sizeof path, dir), LAM_OK);
    ck_assert_int_eq(lam_file_load(text, &size, path, 1 << 20), LAM_OK);
}

START_TEST(the_folder_is_a_model_folder_again)
{
    const lam_export_options o = request("again", LAM_F32, 9000);
    lam_export_result r;
    const lam_ops *ops;
    lam_dev *dev;
    lam_model *loaded;
    char *a, *b;
    ck_assert_int_eq(lam_export(&o, &r), LAM_OK);
    ck_assert_int_eq(lam_ops_find(&ops, "ref"), LAM_OK);
    ck_assert_int_eq(ops->open(&dev, &(lam_dev_options){0}), LAM_OK);
    ck_assert_msg(lam_folder_load(&loaded, o.out, dev, NULL) == LAM_OK, "%s", lam_error());
    lam_model_free(loaded);
    ops->close(dev);
    load_vocab(&a, model);
    load_vocab(&b, o.out);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    ck_assert_int_eq(lam_export(&o, &r), LAM_ERR_IO); /* it is there now */
    const lam_export_options twice = {
        .model = o.out, .out = test_temp_path("twice"), .dtype = LAM_F32};
    ck_assert_int_eq(lam_export(&twice, &r), LAM_OK);
    same_weights(twice.out, LAM_F32);
}
END_TEST

/* A model folder in which this tensor begins with these numbers. */
static const char *model_with(const char *name, const char *tensor, const float *numbers, size_t n)
{
    const char *dir = test_temp_path(name);
    char path[PATH_MAX];
    ck_assert_int_eq(toy_folder_save(dir, "xl", 1), LAM_OK);
    ck_assert_int_eq(lam_path_join(path, sizeof path, dir, "model.safetensors"), LAM_OK);
    lam_safetensors *st = weights_of(dir);
    const lam_st_tensor *last = lam_st_at(st, lam_st_count(st) - 1);
    const char *end = (const char *)last->data + last->bytes;
    const size_t from_end = (size_t)(end - (const char *)lam_st_find(st, tensor)->data);
    lam_st_close(st);
    char *copy;
    size_t size;
    ck_assert_int_eq(lam_file_load(&copy, &size, path, 1 << 20), LAM_OK);
    memcpy(copy + size - from_end, numbers, n * sizeof *numbers);
    ck_assert_int_eq(lam_file_save(path, copy, size), LAM_OK);
    free(copy);
    return dir;
}

START_TEST(a_weight_too_large_for_float16_is_refused)
{
    lam_export_result r;
    lam_export_options o = {.model = model_with("large", "r_w_bias", (float[]){1e6f}, 1),
                            .out = test_temp_path("f16"),
                            .dtype = LAM_F16};
    ck_assert_int_eq(lam_export(&o, &r), LAM_ERR_NUMERIC);
    ck_assert_msg(strstr(lam_error(), "1e+06 is too large for F16"), "%s", lam_error());
    ck_assert(!lam_path_exists(o.out));
    o.dtype = LAM_BF16;
    ck_assert_int_eq(lam_export(&o, &r), LAM_OK);
}
END_TEST

/* In every type, and by import.  In int8 a matrix goes another way than the rest. */
START_TEST(weights_that_are_not_finite_are_refused_and_counted)
{
    static const lam_dtype dtypes[] = {LAM_F32, LAM_BF16, LAM_F16, LAM_I8};
    static const char *const tensors[] = {"crit.out_layers.0.bias", "word_emb.emb_layers.0.weight"};
    const float wild[] = {1.0f, NAN, -INFINITY, 1.0f, INFINITY};
    const char *dir = model_with("wild", tensors[_i], wild, 5);
    char why[160];
    snprintf(why, sizeof why, "tensor %s: 3 of %d numbers are not finite, the first is element 1;",
             tensors[_i], _i ? 4096 : 256);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        lam_export_result r;
        const lam_export_options o = {
            .model = dir, .out = test_temp_path("out"), .dtype = dtypes[i]};
        ck_assert_int_eq(lam_export(&o, &r), LAM_ERR_NUMERIC);
        ck_assert_msg(strstr(lam_error(), why), "%s", lam_error());
        ck_assert(!lam_path_exists(o.out));
    }
    lam_import_result r;
    const lam_import_options o = {
        .source = dir, .out = test_temp_path("in"), .tgt_len = -1, .mem_len = -1};
    ck_assert_int_eq(lam_import(&o, &r), LAM_ERR_NUMERIC);
    ck_assert_msg(strstr(lam_error(), why), "%s", lam_error());
    ck_assert(!lam_path_exists(o.out));
}
END_TEST

/* The weights of a model in float64, the first of each tensor replaced. */
static void widen(const char *path, const lam_safetensors *from, double first)
{
    lam_st_writer *w;
    must(lam_st_writer_create(&w, path));
    for (int i = 0; i < lam_st_count(from); i++)
        must(lam_st_writer_add(w, lam_st_at(from, i)->name, LAM_F64, &lam_st_at(from, i)->shape));
    must(lam_st_writer_begin(w));
    for (int i = 0; i < lam_st_count(from); i++) {
        const size_t n = lam_shape_count(&lam_st_at(from, i)->shape);
        double *x = malloc(n * sizeof *x);
        must(lam_st_read(from, lam_st_at(from, i)->name, x, LAM_F64, n));
        x[0] = first;
        must(lam_st_writer_data(w, x, n * sizeof *x));
        free(x);
    }
    must(lam_st_writer_finish(w));
}

START_TEST(a_double_too_large_for_float32_is_refused)
{
    const char *path = test_temp_path("wide.safetensors");
    lam_safetensors *from = weights_of(model);
    const lam_import_options o = {
        .source = path, .out = test_temp_path("narrow"), .tgt_len = 4, .mem_len = 4};
    lam_import_result r;
    widen(path, from, 0.5);
    must(lam_import(&o, &r));
    lam_dir_remove(o.out);
    widen(path, from, 1e300);
    ck_assert_int_eq(lam_import(&o, &r), LAM_ERR_NUMERIC);
    ck_assert_msg(strstr(lam_error(), "1e+300 is too large for F32"), "%s", lam_error());
    ck_assert(!lam_path_exists(o.out));
    lam_st_close(from);
}
END_TEST

static int asked, stop_at;

static int stop_later(void)
{
    return ++asked == stop_at;
}

/* Whenever it is stopped, nothing is left of the new folder and everything of an old one. */
START_TEST(a_stopped_export_leaves_what_was_there)
{
    lam_export_options o = request("stopped", _i ? LAM_I8 : LAM_BF16, 14000);
    lam_export_result r;
    lam_status status = LAM_ERR_INTERRUPTED;
    o.stop = stop_later;
    const int names = test_temp_count();
    for (stop_at = 1; status == LAM_ERR_INTERRUPTED; stop_at++) {
        asked = 0;
        status = lam_export(&o, &r);
        ck_assert_int_eq(test_temp_count(), names + (status == LAM_OK));
    }
    ck_assert_msg(status == LAM_OK, "%s", lam_error());
    ck_assert_int_gt(stop_at, r.tensors);

    o.dtype = LAM_F32;
    o.replace = 1;
    asked = 0;
    stop_at = 2;
    ck_assert_int_eq(lam_export(&o, &r), LAM_ERR_INTERRUPTED);
    if (!_i)
        same_weights(o.out, LAM_BF16);
    ck_assert_int_eq(test_temp_count(), names + 1);
    lam_dir_remove(o.out);
}
END_TEST

/* Writes the index of a folder with one entry changed; value NULL removes it. */
static void change_index(const char *dir, const char *tensor, const char *value)
{
    char path[PATH_MAX], *text;
    size_t size;
    json_t *root;
    ck_assert_int_eq(lam_path_join(path, sizeof path, dir, "model.safetensors.index.json"), LAM_OK);
    ck_assert_int_eq(lam_file_load(&text, &size, path, 1 << 20), LAM_OK);
    ck_assert_int_eq(lam_json_parse(&root, path, text, size), LAM_OK);
    free(text);
    json_t *map = json_object_get(root, "weight_map");
    if (value)
        json_object_set_new(map, tensor, json_string(value));
    else
        json_object_del(map, tensor);
    ck_assert_int_eq(lam_json_text(&text, &size, root, 0), LAM_OK);
    ck_assert_int_eq(lam_file_save(path, text, size), LAM_OK);
    free(text);
    json_decref(root);
}

static const struct {
    const char *tensor, *value, *why;
    lam_status code;
} lies[] = {
    {"r_w_bias", NULL, "its files hold", LAM_ERR_FORMAT},
    {"no.such.tensor", "model-00001-of-00004.safetensors", "no.such.tensor is not in",
     LAM_ERR_FORMAT},
    {"r_w_bias", "model-00003-of-00004.safetensors", "r_w_bias is not in", LAM_ERR_FORMAT},
    {"r_w_bias", "../toy/model.safetensors", "beside it", LAM_ERR_FORMAT},
    {"r_w_bias", "/etc/passwd", "beside it", LAM_ERR_FORMAT},
    {"r_w_bias", ".safetensors", "beside it", LAM_ERR_FORMAT},
    {"r_w_bias", "model-00005-of-00004.safetensors", "model-00005", LAM_ERR_IO},
};

START_TEST(an_index_that_lies_is_refused)
{
    const lam_export_options o = request("lies", LAM_F32, 14000);
    lam_export_result r;
    lam_safetensors *st;
    ck_assert_int_eq(lam_export(&o, &r), LAM_OK);
    ck_assert_int_eq(r.files, 4);
    change_index(o.out, lies[_i].tensor, lies[_i].value);
    ck_assert_int_eq(lam_st_open_folder(&st, o.out), lies[_i].code);
    ck_assert_ptr_null(st);
    ck_assert_msg(strstr(lam_error(), lies[_i].why), "%s", lam_error());
    lam_dir_remove(o.out);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_unchecked_fixture(tests, make_model, NULL);
    tcase_add_loop_test(tests, weights_of_every_type_and_division_are_the_models, 0, 3);
    tcase_add_test(tests, the_folder_is_a_model_folder_again);
    tcase_add_test(tests, a_weight_too_large_for_float16_is_refused);
    tcase_add_test(tests, a_double_too_large_for_float32_is_refused);
    tcase_add_loop_test(tests, weights_that_are_not_finite_are_refused_and_counted, 0, 2);
    tcase_add_loop_test(tests, a_stopped_export_leaves_what_was_there, 0, 2);
    tcase_add_loop_test(tests, an_index_that_lies_is_refused, 0, (int)(sizeof lies / sizeof *lies));
    return test_run("convert/export", tests);
}
