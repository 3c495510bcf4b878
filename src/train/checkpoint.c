/* checkpoint.c -- see checkpoint.h.
 *
 * Moments are kept in the device's own precision.  So are the weights where that is more than the
 * float32 of model.safetensors (the reference device computes in double): without it a resumed run
 * would differ in the last digits. */
#include "train/checkpoint.h"

#include "core/file.h"
#include "core/seal.h"
#include "model/folder.h"
#include "nn/params_io.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char STATE[] = "training_state.json", MOMENTS[] = "optimizer.safetensors",
                  MEMORY[] = "memory.safetensors", CONFIG[] = "config.json";

static const char *const names[] = {"config.json", "vocab.json", "model.safetensors", MOMENTS,
                                    MEMORY,        STATE,        "CRC32SUMS",         NULL};
static const lam_mark marks[] = {
    {STATE, "\"position\": {"}, {"config.json", "\"model_type\": \"lamemo\""}, {0}};
const lam_kind lam_checkpoint_kind = {"checkpoint", names, marks};

/* The flat vectors of optimizer.safetensors, in order; those that do not exist are left out. */
typedef struct vectors {
    int n;
    lam_flat list[3];
} vectors;

static vectors vectors_of(const lam_checkpoint *c)
{
    vectors v = {0};
    const lam_params *p = &c->model->params;
    if (c->optimizer->m)
        v.list[v.n++] = (lam_flat){.prefix = "m.", .at = c->optimizer->m, .rest = 0};
    if (c->optimizer->v)
        v.list[v.n++] = (lam_flat){
            .prefix = "v.", .at = c->optimizer->v, .rest = c->optimizer->opt.rule->takes != NULL};
    if (p->dev->wide == LAM_F64)
        v.list[v.n++] = (lam_flat){.prefix = "weight.", .at = p->master, .rest = 0};
    return v;
}

static lam_status write_moments(const char *path, const lam_checkpoint *c)
{
    const lam_params *p = &c->model->params;
    const vectors v = vectors_of(c);
    lam_st_writer *w;
    LAM_TRY(lam_st_writer_create(&w, path));
    lam_status status = LAM_OK;
    for (int i = 0; i < v.n && status == LAM_OK; i++)
        status = lam_params_add_to(w, p, &v.list[i], p->dev->wide);
    if (status == LAM_OK)
        status = lam_st_writer_begin(w);
    for (int i = 0; i < v.n && status == LAM_OK; i++)
        status = lam_params_write(w, p, &v.list[i], p->dev->wide);
    if (status == LAM_OK)
        return lam_st_writer_finish(w);
    lam_st_writer_abort(w);
    return status;
}

/* A run of another device has its weights in model.safetensors alone. */
static int has_weights(const lam_safetensors *st)
{
    for (int i = 0; i < lam_st_count(st); i++)
        if (strncmp(lam_st_at(st, i)->name, "weight.", 7) == 0)
            return 1;
    return 0;
}

/* Tensors that have no place here are passed over: older checkpoints have a v of Muon's matrices too. */
static lam_status read_moments(const char *path, const lam_checkpoint *c)
{
    lam_params *p = &c->model->params;
    const vectors v = vectors_of(c);
    lam_safetensors *st;
    LAM_TRY(lam_st_open(&st, path));
    lam_status status = LAM_OK;
    for (int i = 0; i < v.n && status == LAM_OK; i++) {
        if (v.list[i].at == p->master && !has_weights(st))
            continue;
        status = lam_params_check(st, p, &v.list[i]);
        if (status == LAM_OK)
            status = lam_params_read(st, p, &v.list[i]);
    }
    lam_st_close(st);
    return status;
}

static lam_status write_parts(void *user, const char *dir)
{
    const lam_checkpoint *c = user;
    char path[PATH_MAX];
    LAM_TRY(lam_folder_write(dir, c->model, c->vocab));
    LAM_TRY(lam_path_join(path, sizeof path, dir, MOMENTS));
    LAM_TRY(write_moments(path, c));
    LAM_TRY(lam_path_join(path, sizeof path, dir, MEMORY));
    LAM_TRY(lam_memories_save(c->memories, path));
    LAM_TRY(lam_path_join(path, sizeof path, dir, STATE));
    LAM_TRY(lam_train_state_save(c->state, &c->model->params, path));
    return lam_seal_write(dir);
}

lam_status lam_checkpoint_save(const char *dir, const lam_checkpoint *c)
{
    lam_checkpoint parts = *c;
    LAM_TRY(lam_dir_recover(dir));
    return lam_dir_write(dir, ".new", write_parts, &parts);
}

lam_status lam_checkpoint_load(const char *dir, const lam_checkpoint *c)
{
    char path[PATH_MAX];
    LAM_TRY(lam_seal_check(dir, NULL));
    LAM_TRY(lam_folder_restore(c->model, dir));
    LAM_TRY(lam_path_join(path, sizeof path, dir, MOMENTS));
    LAM_TRY(read_moments(path, c));
    LAM_TRY(lam_path_join(path, sizeof path, dir, MEMORY));
    LAM_TRY(lam_memories_load(c->memories, path));
    LAM_TRY(lam_path_join(path, sizeof path, dir, STATE));
    lam_train_state_free(c->state);
    return lam_train_state_load(c->state, &c->model->params, path);
}

lam_status lam_checkpoint_peek(const char *dir, lam_train_state *state)
{
    char path[PATH_MAX];
    LAM_TRY(lam_dir_recover(dir));
    LAM_TRY(lam_seal_check(dir, STATE));
    LAM_TRY(lam_seal_check(dir, CONFIG));
    LAM_TRY(lam_path_join(path, sizeof path, dir, STATE));
    return lam_train_state_load(state, NULL, path);
}
