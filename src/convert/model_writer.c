/* model_writer.c -- see model_writer.h. */
#include "convert/model_writer_int.h"

#include "convert/huggingface.h"
#include "core/file.h"
#include "io/json.h"
#include "model/folder.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARD_NAME = 64 }; /* bytes of a file's name */

lam_status lam_model_writer_check(const char *dir, int replace)
{
    return lam_own_target(dir, &lam_folder_kind, replace);
}

/* ---- which tensor goes where ---- */

/* shard[i]: the file of parameter i, in order, each as full as it may be; a tensor is never cut. */
static int divide(const lam_model_writer *d, int *shard)
{
    int files = 0;
    size_t filled = 0;
    for (int i = 0; i < d->params->n; i++) {
        const size_t bytes = lam_model_writer_bytes(d, i);
        if (i == 0 || (d->max_shard > 0 && filled + bytes > (size_t)d->max_shard)) {
            files++;
            filled = 0;
        }
        filled += bytes;
        shard[i] = files - 1;
    }
    return files;
}

static void shard_name(char out[SHARD_NAME], int file, int files)
{
    if (files == 1)
        snprintf(out, SHARD_NAME, "model.safetensors");
    else
        snprintf(out, SHARD_NAME, "model-%05d-of-%05d.safetensors", file + 1, files);
}

/* ---- the data ---- */

static lam_status write_file(const lam_model_writer *d, lam_st_writer *w, const int *shard,
                             int file)
{
    LAM_TRY(lam_st_writer_meta(w, "format", "pt"));
    for (int i = 0; i < d->params->n; i++)
        if (shard[i] == file)
            LAM_TRY(lam_model_writer_declare(d, w, i));
    LAM_TRY(lam_st_writer_begin(w));
    for (int i = 0; i < d->params->n; i++)
        if (shard[i] == file)
            LAM_TRY(lam_model_writer_write(d, w, i));
    return LAM_OK;
}

static lam_status save_file(const lam_model_writer *d, const char *dir, const int *shard, int file,
                            int files)
{
    char name[SHARD_NAME], path[PATH_MAX];
    lam_st_writer *w;
    shard_name(name, file, files);
    LAM_TRY(lam_path_join(path, sizeof path, dir, name));
    LAM_TRY(lam_st_writer_create(&w, path));
    const lam_status status = write_file(d, w, shard, file);
    if (status == LAM_OK)
        return lam_st_writer_finish(w);
    lam_st_writer_abort(w);
    return status;
}

static lam_status save_index(const lam_model_writer *d, const char *dir, const int *shard,
                             int files)
{
    char name[SHARD_NAME], scale[LAM_TENSOR_NAME_MAX], path[PATH_MAX];
    size_t total = 0;
    LAM_TRY(lam_path_join(path, sizeof path, dir, "model.safetensors.index.json"));
    json_t *map = json_object();
    int bad = !map;
    for (int i = 0; i < d->params->n; i++) {
        shard_name(name, shard[i], files);
        bad |= json_object_set_new(map, d->params->list[i].name, json_string(name));
        if (lam_model_writer_scale_name(d, i, scale))
            bad |= json_object_set_new(map, scale, json_string(name));
        total += lam_model_writer_bytes(d, i);
    }
    json_t *root =
        json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)total, "weight_map", map);
    if (bad) {
        json_decref(root);
        root = NULL;
    }
    return lam_json_save(path, root, JSON_INDENT(2));
}

static lam_status save_weights(const lam_model_writer *d, const char *dir, int *files)
{
    int *shard = malloc((size_t)d->params->n * sizeof *shard + 1);
    if (!shard)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", dir);
    *files = divide(d, shard);
    lam_status status = LAM_OK;
    for (int file = 0; file < *files && status == LAM_OK; file++)
        status = save_file(d, dir, shard, file, *files);
    if (status == LAM_OK && *files > 1)
        status = save_index(d, dir, shard, *files);
    free(shard);
    return status;
}

typedef struct job {
    const lam_model_writer *d;
    int *files;
} job;

static lam_status fill(void *user, const char *dir)
{
    const job *j = user;
    char path[PATH_MAX];
    LAM_TRY(j->d->hf ? lam_hf_write(dir, j->d->cfg, j->d->dtype, j->d->vocab)
                     : lam_folder_write_config(dir, j->d->cfg));
    if (j->d->vocab) {
        LAM_TRY(lam_path_join(path, sizeof path, dir, "vocab.json"));
        LAM_TRY(lam_vocab_save(j->d->vocab, path));
    }
    return save_weights(j->d, dir, j->files);
}

lam_status lam_model_writer_run(const lam_model_writer *d, int *files)
{
    *files = 0;
    return lam_own_write(d->dir, &lam_folder_kind, d->replace, fill, &(job){d, files});
}
