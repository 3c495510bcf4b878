/* folder.c -- see folder.h.
 *
 * Parameters are float32 on disk, whatever the device computes in; float16, bfloat16, float64 and (with
 * scales) int8 files load too. */
#include "model/folder.h"

#include "core/file.h"
#include "model/boxed.h"
#include "model/configure.h"
#include "nn/params_io.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char CONFIG[] = "config.json", WEIGHTS[] = "model.safetensors", VOCAB[] = "vocab.json";

static const char *const names[] = {"config.json",
                                    "vocab.json",
                                    "tokenizer.json",
                                    "tokenizer_config.json",
                                    "modeling_lamemo.py",
                                    "model.safetensors",
                                    "model-[0-9]*-of-[0-9]*.safetensors",
                                    "model.safetensors.index.json",
                                    NULL};
static const lam_mark marks[] = {
    {"config.json", "\"model_type\": \"lamemo\""}, {"vocab.json", "\"lamemo-vocab\""}, {0}};
const lam_kind lam_folder_kind = {"model", names, marks};

/* ---- reading ---- */

lam_status lam_folder_find(char *out, size_t size, const char *dir)
{
    /* The last two: what a crash between two renames leaves (core/file.h). */
    static const char *const parts[] = {"", "best", "last", "best.old", "last.old"};
    int yes = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (i == 0 && (size_t)snprintf(out, size, "%s", dir) >= size)
            return lam_fail(LAM_ERR_ARG, "%s: path longer than %zu bytes", dir, size);
        if (i > 0)
            LAM_TRY(lam_path_join(out, size, dir, parts[i]));
        /* One that may not be seen ends the search: the next would be another model. */
        LAM_TRY(lam_dir_look(&yes, out, CONFIG));
        if (yes)
            return LAM_OK;
    }
    if (!lam_path_exists(dir) && lam_boxed_find(out, size, dir))
        return LAM_OK;
    out[0] = '\0';
    if (!lam_path_exists(dir))
        return lam_fail(LAM_ERR_IO, "%s: there is no such folder%s", dir,
                        strchr(dir, '/') ? "" : ", nor does a model of this name come with lamemo");
    if (!lam_path_is_folder(dir))
        return lam_fail(LAM_ERR_FORMAT, "%s: a file, not the folder of a model or a run", dir);
    LAM_TRY(lam_dir_look(&yes, dir, "corpus.json"));
    if (yes)
        return lam_fail(LAM_ERR_FORMAT, "%s: a corpus folder, not that of a model or a run", dir);
    return lam_fail(LAM_ERR_FORMAT, "%s: not a model folder: it has no %s, best or last", dir,
                    CONFIG);
}

static lam_status read_config(lam_config *cfg, const char *dir)
{
    char path[PATH_MAX];
    LAM_TRY(lam_path_join(path, sizeof path, dir, CONFIG));
    return lam_config_load(cfg, path);
}

lam_status lam_folder_config(lam_config *cfg, const char *dir)
{
    char path[PATH_MAX];
    LAM_TRY(lam_folder_find(path, sizeof path, dir));
    return read_config(cfg, path);
}

lam_status lam_folder_vocab(char *path, size_t size, const char *dir)
{
    char folder[PATH_MAX];
    int yes;
    LAM_TRY(lam_folder_find(folder, sizeof folder, dir));
    LAM_TRY(lam_dir_look(&yes, folder, VOCAB));
    return lam_path_join(path, size, folder, VOCAB);
}

/* All names before any data: a file of another model changes nothing. */
static lam_status check_tensors(const lam_safetensors *st, const lam_params *params,
                                const lam_watch *watch)
{
    LAM_TRY(lam_params_check(st, params, &(lam_flat){.prefix = "", .watch = watch}));
    for (int i = 0; i < lam_st_count(st); i++)
        if (!lam_params_know(params, st, lam_st_at(st, i)->name))
            return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is not part of this configuration",
                            lam_st_path(st), lam_st_at(st, i)->name);
    return LAM_OK;
}

static lam_status read_weights(lam_model *model, const lam_safetensors *st, const lam_watch *watch)
{
    return lam_params_read(st, &model->params,
                           &(lam_flat){.prefix = "", .at = model->params.master, .watch = watch});
}

/* Before anything is allocated: a configuration cannot claim more than the file holds. */
static lam_status check_claim(const lam_config *cfg, const lam_safetensors *st, lam_dev *dev,
                              const lam_watch *watch)
{
    lam_model model;
    lam_status status = lam_model_declare(&model, cfg, dev);
    if (status == LAM_OK)
        status = check_tensors(st, &model.params, watch);
    lam_model_undeclare(&model);
    return status;
}

/* The type in which a file keeps its matrices, where the device has it: int8 if any is, bf16 if all are. */
static lam_class kept_as(const lam_safetensors *st, const lam_dev *dev)
{
    int matrices = 0, halves = 0, bytes = 0;
    for (int i = 0; i < lam_st_count(st); i++) {
        const lam_st_tensor *t = lam_st_at(st, i);
        matrices += t->shape.rank >= 2;
        halves += t->shape.rank >= 2 && t->dtype == LAM_BF16;
        bytes += t->dtype == LAM_I8;
    }
    if (!dev->narrow)
        return LAM_ACT;
    return bytes > 0 ? LAM_BYTE : matrices > 0 && halves == matrices ? LAM_HALF : LAM_ACT;
}

static lam_status load(lam_model **out, const lam_config *cfg, const lam_safetensors *st,
                       lam_dev *dev, lam_storage storage)
{
    const lam_class weights =
        lam_store_class(storage.weights, dev->exact ? LAM_BYTE : kept_as(st, dev));
    const lam_class cache = lam_store_class(storage.cache, dev->exact           ? LAM_BYTE
                                                           : weights == LAM_ACT ? LAM_ACT
                                                                                : LAM_HALF);
    lam_model *model;
    LAM_TRY(check_claim(cfg, st, dev, storage.watch));
    LAM_TRY(lam_model_create_as(&model, cfg, dev, weights, cache));
    const lam_status status = read_weights(model, st, storage.watch);
    if (status == LAM_OK)
        *out = model;
    else
        lam_model_free(model);
    return status;
}

lam_status lam_folder_load(lam_model **out, const char *dir, lam_dev *dev,
                           const lam_storage *storage)
{
    char path[PATH_MAX];
    lam_config cfg;
    lam_safetensors *st;
    *out = NULL;
    LAM_TRY(lam_folder_find(path, sizeof path, dir));
    LAM_TRY(read_config(&cfg, path));
    LAM_TRY(lam_st_open_folder(&st, path));
    const lam_status status = load(out, &cfg, st, dev, storage ? *storage : (lam_storage){0});
    lam_st_close(st);
    return status;
}

lam_status lam_folder_check(const char *dir, const lam_config *cfg, lam_dev *dev)
{
    lam_safetensors *st;
    LAM_TRY(lam_st_open_folder(&st, dir));
    const lam_status status = check_claim(cfg, st, dev, NULL);
    lam_st_close(st);
    return status;
}

lam_status lam_folder_adopt(lam_model *model, const char *dir)
{
    lam_safetensors *st;
    LAM_TRY(lam_st_open_folder(&st, dir));
    lam_status status = check_tensors(st, &model->params, NULL);
    if (status == LAM_OK)
        status = read_weights(model, st, NULL);
    lam_st_close(st);
    return status;
}

lam_status lam_folder_restore(lam_model *model, const char *dir)
{
    lam_config cfg;
    LAM_TRY(read_config(&cfg, dir));
    LAM_TRY(lam_config_same(&cfg, &model->cfg, dir));
    return lam_folder_adopt(model, dir);
}

/* ---- writing ---- */

lam_status lam_folder_write_config(const char *dir, const lam_config *cfg)
{
    char path[PATH_MAX], *text;
    LAM_TRY(lam_path_join(path, sizeof path, dir, CONFIG));
    LAM_TRY(lam_config_print(&text, cfg));
    const size_t size = strlen(text);
    text[size] = '\n'; /* in the place of its NUL: lam_file_save takes a size */
    const lam_status status = lam_file_save(path, text, size + 1);
    free(text);
    return status;
}

static lam_status write_weights(const char *dir, const lam_params *params)
{
    const lam_flat masters = {.prefix = "", .at = params->master};
    char path[PATH_MAX];
    lam_st_writer *w;
    LAM_TRY(lam_path_join(path, sizeof path, dir, WEIGHTS));
    LAM_TRY(lam_st_writer_create(&w, path));
    lam_status status = lam_st_writer_meta(w, "format", "pt");
    if (status == LAM_OK)
        status = lam_params_add_to(w, params, &masters, LAM_F32);
    if (status == LAM_OK)
        status = lam_st_writer_begin(w);
    if (status == LAM_OK)
        status = lam_params_write(w, params, &masters, LAM_F32);
    return lam_st_writer_end(w, status);
}

lam_status lam_folder_write(const char *dir, lam_model *model, const char *vocab)
{
    char path[PATH_MAX];
    LAM_TRY(lam_folder_write_config(dir, &model->cfg));
    if (vocab) {
        LAM_TRY(lam_path_join(path, sizeof path, dir, VOCAB));
        LAM_TRY(lam_file_save(path, vocab, strlen(vocab)));
    }
    return write_weights(dir, &model->params);
}

typedef struct contents {
    lam_model *model;
    const char *vocab;
} contents;

static lam_status fill(void *user, const char *dir)
{
    const contents *c = user;
    return lam_folder_write(dir, c->model, c->vocab);
}

lam_status lam_folder_save(const char *dir, lam_model *model, const char *vocab)
{
    LAM_TRY(lam_dir_recover(dir));
    return lam_dir_write(dir, ".new", fill, &(contents){model, vocab});
}
