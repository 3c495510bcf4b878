/* folder_test.c -- what is saved comes back, and what does not fit is refused by name. */
#include "model/folder.h"

#include "core/file.h"
#include "io/safetensors.h"
#include "model/configure.h"
#include "support/fault.h"
#include "support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static lam_dev *dev;

static void open_device(void)
{
    const lam_ops *ops;
    ck_assert_int_eq(lam_ops_find(&ops, "ref"), LAM_OK);
    ck_assert_int_eq(ops->open(&dev, &(lam_dev_options){0}), LAM_OK);
}

static void close_device(void)
{
    dev->ops->close(dev);
}

static lam_model *make(int n_layer, const char *memory, uint64_t seed)
{
    lam_config cfg;
    lam_model *model;
    ck_assert_int_eq(lam_config_preset(&cfg, "tiny", memory), LAM_OK);
    cfg.n_layer = n_layer;
    cfg.d_model = 16;
    cfg.d_embed = 0;
    cfg.n_head = 2;
    cfg.d_head = 8;
    cfg.d_inner = 24;
    cfg.n_token = 11;
    cfg.tgt_len = cfg.mem_len = 4;
    ck_assert_int_eq(lam_config_finish(&cfg), LAM_OK);
    ck_assert_int_eq(lam_model_create(&model, &cfg, dev), LAM_OK);
    ck_assert_int_eq(lam_model_init(model, seed), LAM_OK);
    return model;
}

static int equal(const lam_model *a, const lam_model *b)
{
    int same = a->params.n == b->params.n;
    for (int i = 0; i < a->params.n && same; i++) {
        const size_t n = lam_param_count(&a->params.list[i]);
        double *x = malloc(2 * n * sizeof *x), *y = x + n;
        ck_assert_int_eq(lam_params_get(&a->params, a->params.master, i, x), LAM_OK);
        ck_assert_int_eq(lam_params_get(&b->params, b->params.master, i, y), LAM_OK);
        same = memcmp(x, y, n * sizeof *x) == 0;
        free(x);
    }
    return same;
}

/* With rows as they are, and with rows that the device wants wider. */
START_TEST(a_saved_model_comes_back)
{
    const char *dir = test_temp_path("model");
    dev->pad = _i ? 10 : 1;
    lam_model *a = make(2, "lamemo", 1), *b;
    char path[4096], *vocab;
    size_t size;
    ck_assert_int_eq(lam_folder_save(dir, a, "{\"x\": 1}"), LAM_OK);
    ck_assert_msg(lam_folder_load(&b, dir, dev, NULL) == LAM_OK, "%s", lam_error());
    ck_assert_int_eq(memcmp(&a->cfg, &b->cfg, sizeof a->cfg), 0);
    ck_assert(equal(a, b));
    ck_assert_int_eq(lam_folder_vocab(path, sizeof path, dir), LAM_OK);
    ck_assert_int_eq(lam_file_load(&vocab, &size, path, 100), LAM_OK);
    ck_assert_str_eq(vocab, "{\"x\": 1}");
    free(vocab);
    lam_model_free(a);
    lam_model_free(b);
}
END_TEST

START_TEST(a_run_folder_stands_for_its_best_then_its_last_model)
{
    char path[4096];
    const char *run = test_temp_path("run");
    lam_model *a = make(1, "xl", 1);
    ck_assert_int_eq(lam_folder_find(path, sizeof path, run), LAM_ERR_IO);
    ck_assert_int_eq(lam_dir_make(run), LAM_OK);
    ck_assert_int_eq(lam_folder_find(path, sizeof path, run), LAM_ERR_FORMAT);
    ck_assert_int_eq(lam_folder_save(test_temp_path("run/last/"), a, NULL), LAM_OK);
    ck_assert_int_eq(lam_folder_find(path, sizeof path, run), LAM_OK);
    ck_assert_str_eq(path, test_temp_path("run/last"));
    ck_assert_int_eq(lam_folder_save(test_temp_path("run/best"), a, NULL), LAM_OK);
    ck_assert_int_eq(lam_folder_find(path, sizeof path, run), LAM_OK);
    ck_assert_str_eq(path, test_temp_path("run/best"));
    /* A best that cannot be looked at (here a link to itself) is not a reason to take another model. */
    must(lam_dir_remove(test_temp_path("run/best")));
    ck_assert_int_eq(symlink("best", test_temp_path("run/best")), 0);
    ck_assert_int_eq(lam_folder_find(path, sizeof path, run), LAM_ERR_IO);
    ck_assert_msg(strstr(lam_error(), "run/best/config.json: cannot open: "), "%s", lam_error());
    lam_model_free(a);
}
END_TEST

/* Before memory is taken for what it claims: a message of memory would say that it was asked for. */
START_TEST(a_configuration_cannot_claim_more_than_the_file_holds)
{
    static const struct {
        const char *key;
        int value;
        const char *tensor;
    } claims[] = {{"n_token", 1 << 24, "word_emb.emb_layers.0.weight is [11, 16]"},
                  {"d_inner", 1 << 16, "layers.0.pos_ff.CoreNet.0.weight is [24, 16]"},
                  {"n_layer", 512, "layers.2.dec_attn.q_net.weight is missing"}};
    const char *dir = test_temp_path("claim");
    lam_model *a = make(2, "lamemo", 1), *b;
    lam_config cfg = a->cfg;
    must(lam_folder_save(dir, a, NULL));
    lam_model_free(a);
    dev->max_memory = 1;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        lam_config more = cfg;
        *(i == 0 ? &more.n_token : i == 1 ? &more.d_inner : &more.n_layer) = claims[i].value;
        must(lam_folder_write_config(dir, &more));
        ck_assert_int_eq(lam_folder_load(&b, dir, dev, NULL), LAM_ERR_FORMAT);
        ck_assert_msg(strstr(lam_error(), claims[i].tensor), "%s", lam_error());
        ck_assert_int_eq(lam_folder_check(dir, &more, dev), LAM_ERR_FORMAT);
    }
    dev->max_memory = 0;
    must(lam_folder_write_config(dir, &cfg));
    must(lam_folder_check(dir, &cfg, dev));
    must(lam_folder_load(&b, dir, dev, NULL));
    lam_model_free(b);
}
END_TEST

/* Writes model.safetensors of `model` with a change: parameter `skip` left out, `bend` with another
 * shape, one more tensor, or of another type. */
typedef struct change {
    int skip, bend, more;
    lam_dtype dtype;
} change;

static void write_changed(const char *dir, const lam_model *model, change c)
{
    char path[4096];
    lam_st_writer *w;
    ck_assert_int_eq(lam_path_join(path, sizeof path, dir, "model.safetensors"), LAM_OK);
    ck_assert_int_eq(lam_st_writer_create(&w, path), LAM_OK);
    size_t bytes = 0;
    for (int i = 0; i < model->params.n + c.more; i++) {
        const int extra = i == model->params.n;
        lam_shape shape = lam_param_shape(&model->params.list[extra ? 0 : i]);
        if (i == c.skip)
            continue;
        if (i == c.bend)
            shape.dim[shape.rank - 1]++;
        const char *name = extra ? "extra.weight" : model->params.list[i].name;
        ck_assert_int_eq(lam_st_writer_add(w, name, c.dtype, &shape), LAM_OK);
        bytes += lam_shape_count(&shape) * lam_dtype_size(c.dtype);
    }
    char *zeros = calloc(1, bytes);
    ck_assert_int_eq(lam_st_writer_begin(w), LAM_OK);
    ck_assert_int_eq(lam_st_writer_data(w, zeros, bytes), LAM_OK);
    ck_assert_int_eq(lam_st_writer_finish(w), LAM_OK);
    free(zeros);
}

static void check_refused(const char *dir, const char *why)
{
    lam_model *b;
    ck_assert_int_eq(lam_folder_load(&b, dir, dev, NULL), LAM_ERR_FORMAT);
    ck_assert_ptr_null(b);
    ck_assert_msg(strstr(lam_error(), why) != NULL, "'%s' is not in '%s'", why, lam_error());
}

START_TEST(a_tensor_missing_bent_or_extra_is_named)
{
    const char *dir = test_temp_path("changed");
    lam_model *a = make(1, "lamemo", 3), *b;
    char why[256];
    ck_assert_int_eq(lam_folder_save(dir, a, NULL), LAM_OK);
    for (int i = 0; i < a->params.n; i++) {
        const char *name = a->params.list[i].name;
        write_changed(dir, a, (change){.skip = i, .bend = -1, .dtype = LAM_F32});
        snprintf(why, sizeof why, "tensor %s is missing", name);
        check_refused(dir, why);
        write_changed(dir, a, (change){.skip = -1, .bend = i, .dtype = LAM_F32});
        snprintf(why, sizeof why, "tensor %s is [", name);
        check_refused(dir, why);
    }
    write_changed(dir, a, (change){.skip = -1, .bend = -1, .more = 1, .dtype = LAM_F32});
    check_refused(dir, "tensor extra.weight is not part of this configuration");
    write_changed(dir, a, (change){.skip = -1, .bend = -1, .dtype = LAM_I32});
    check_refused(dir, "is I32, must be F32");
    write_changed(dir, a, (change){.skip = -1, .bend = -1, .dtype = LAM_BF16});
    ck_assert_int_eq(lam_folder_load(&b, dir, dev, NULL), LAM_OK);
    lam_model_free(b);
    lam_model_free(a);
}
END_TEST

/* The last number of the file is of its last parameter. */
START_TEST(a_weight_that_is_not_finite_is_named)
{
    static const struct {
        lam_dtype dtype;
        double value;
    } bad[] = {{LAM_F32, NAN}, {LAM_BF16, INFINITY}, {LAM_F16, -INFINITY}, {LAM_F64, NAN}};
    const char *dir = test_temp_path("bad");
    lam_model *a = make(1, "lamemo", 3);
    const lam_param *last = &a->params.list[a->params.n - 1];
    char why[5000], path[4096], *bytes;
    size_t size;
    ck_assert_int_eq(lam_folder_save(dir, a, NULL), LAM_OK);
    ck_assert_int_eq(lam_path_join(path, sizeof path, dir, "model.safetensors"), LAM_OK);
    write_changed(dir, a, (change){.skip = -1, .bend = -1, .dtype = bad[_i].dtype});
    ck_assert_int_eq(lam_file_load(&bytes, &size, path, 1 << 24), LAM_OK);
    lam_convert(bytes + size - lam_dtype_size(bad[_i].dtype), bad[_i].dtype, &bad[_i].value,
                LAM_F64, 1);
    ck_assert_int_eq(lam_file_save(path, bytes, size), LAM_OK);
    snprintf(why, sizeof why, "%s: element %zu of tensor %s is not finite", path,
             lam_param_count(last) - 1, last->name);
    check_refused(dir, why);
    free(bytes);
    lam_model_free(a);
}
END_TEST

START_TEST(another_configuration_is_refused_and_named)
{
    const char *dir = test_temp_path("other");
    lam_model *a = make(2, "lamemo", 1), *b = make(3, "lamemo", 1);
    ck_assert_int_eq(lam_folder_save(dir, a, NULL), LAM_OK);
    ck_assert_int_eq(lam_folder_restore(b, dir), LAM_ERR_FORMAT);
    ck_assert_msg(strstr(lam_error(), "it has \"n_layer\": 2, not \"n_layer\": 3") != NULL, "%s",
                  lam_error());
    ck_assert_int_eq(lam_folder_restore(a, dir), LAM_OK);
    ck_assert_int_eq(lam_folder_adopt(b, dir), LAM_ERR_FORMAT); /* a third layer is not there */
    a->cfg.mem_len++;
    ck_assert_int_eq(lam_folder_restore(a, dir), LAM_ERR_FORMAT);
    ck_assert_int_eq(lam_folder_adopt(a, dir), LAM_OK); /* the same weights, used otherwise */
    lam_model_free(a);
    lam_model_free(b);
}
END_TEST

START_TEST(a_failed_save_leaves_the_old_model)
{
    const char *dir = test_temp_path("kept");
    for (int no_exchange = 0; no_exchange < 2; no_exchange++) {
        test_fault_no_exchange(no_exchange);
        for (int n = 1; test_fault_at(n, ENOSPC); n++) {
            lam_model *a = make(1, "lamemo", 1), *b = make(1, "lamemo", 2), *c;
            lam_file_fault = NULL;
            ck_assert_int_eq(lam_folder_save(dir, a, NULL), LAM_OK);
            test_fault_no_exchange(no_exchange); /* the hook again */
            const lam_status status = lam_folder_save(dir, b, NULL);
            ck_assert_int_eq(status != LAM_OK, test_fault_happened());
            ck_assert_msg(lam_folder_load(&c, dir, dev, NULL) == LAM_OK, "call %d: %s", n,
                          lam_error());
            /* The last fsync fails after the new folder is in place: then it is b, and whole. */
            ck_assert(equal(c, b) || (status != LAM_OK && equal(c, a)));
            lam_model_free(a);
            lam_model_free(b);
            lam_model_free(c);
        }
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_unchecked_fixture(tests, test_temp_make, test_temp_remove);
    tcase_add_checked_fixture(tests, open_device, close_device);
    tcase_add_loop_test(tests, a_saved_model_comes_back, 0, 2);
    tcase_add_test(tests, a_configuration_cannot_claim_more_than_the_file_holds);
    tcase_add_test(tests, a_run_folder_stands_for_its_best_then_its_last_model);
    tcase_add_test(tests, a_tensor_missing_bent_or_extra_is_named);
    tcase_add_loop_test(tests, a_weight_that_is_not_finite_is_named, 0, 4);
    tcase_add_test(tests, another_configuration_is_refused_and_named);
    tcase_add_test(tests, a_failed_save_leaves_the_old_model);
    return test_run("model/folder", tests);
}
