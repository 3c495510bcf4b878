/* checkpoint.c -- see checkpoint.h.
 *
 * Moments are kept in the device's own precision.  So are the weights where that is more than the
 * float32 of model.safetensors (the reference device computes in double): without it a resumed run
 * would differ in the last digits.  Where weights are averaged model.safetensors has the mean, and both vectors are kept
 * beside the moments. */
#include "train/checkpoint.h"

#include "core/file.h"
#include "core/seal.h"
#include "model/folder.h"
#include "nn/params_io.h"
#include "train/average.h"
#include "train/holdings.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char STATE[] = "training_state.json", MOMENTS[] = "optimizer.safetensors",
                  MEMORY[] = "memory.safetensors", CONFIG[] = "config.json";

static const char *const names[] = {
    "config.json", "vocab.json", "model.safetensors",         MOMENTS,
    MEMORY,        STATE,        "memory.[0-9]*.safetensors", "CRC32SUMS",
    NULL};
static const lam_mark marks[] = {
    {STATE, "\"position\": {"}, {"config.json", "\"model_type\": \"lamemo\""}, {0}};
const lam_kind lam_checkpoint_kind = {"checkpoint", names, marks};

/* The flat vectors of optimizer.safetensors, in order; those that do not exist are left out. */
typedef struct vectors {
    int n;
    lam_flat list[4];
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
    if (c->state->averaged > 0 && c->optimizer->average)
        v.list[v.n++] = (lam_flat){.prefix = "average.", .at = c->optimizer->average, .rest = 0};
    if (p->dev->wide == LAM_F64 || c->state->averaged > 0)
        v.list[v.n++] = (lam_flat){.prefix = "weight.", .at = p->master, .rest = 0};
    return v;
}

/* Moments may be; weights and their mean are the same on all ranks. */
static int is_divided(const lam_checkpoint *c, const lam_flat *flat)
{
    return c->optimizer->holdings && (flat->at == c->optimizer->m || flat->at == c->optimizer->v);
}

/* Of a state that is divided between ranks a vector comes together just before it is written, on all of them: what
 * goes wrong with the file of rank 0, `status`, must not keep it from taking part. */
static lam_status write_vectors(lam_st_writer *w, const lam_checkpoint *c, lam_status status)
{
    const lam_params *p = &c->model->params;
    vectors v = vectors_of(c);
    for (int i = 0; i < v.n; i++) {
        if (is_divided(c, &v.list[i])) {
            LAM_TRY(lam_holdings_collect(c->optimizer, v.list[i].at == c->optimizer->v));
            v.list[i].at = p->grad;
        }
        if (w && status == LAM_OK)
            status = lam_params_write(w, p, &v.list[i], p->dev->wide);
    }
    return status;
}

static lam_status begin_moments(lam_st_writer **w, const char *path, const lam_checkpoint *c)
{
    const lam_params *p = &c->model->params;
    const vectors v = vectors_of(c);
    LAM_TRY(lam_st_writer_create(w, path));
    for (int i = 0; i < v.n; i++)
        LAM_TRY(lam_params_add_to(*w, p, &v.list[i], p->dev->wide));
    return lam_st_writer_begin(*w);
}

/* `status` is that of what was written before: with another one than LAM_OK nothing is. */
static lam_status write_moments(const char *path, const lam_checkpoint *c, lam_status status)
{
    lam_st_writer *w = NULL;
    char text[1024];
    if (status == LAM_OK)
        status = begin_moments(&w, path, c);
    snprintf(text, sizeof text, "%s", status == LAM_OK ? "" : lam_error());
    const lam_status all = write_vectors(w, c, status);
    if (all == LAM_OK)
        return lam_st_writer_finish(w);
    lam_st_writer_abort(w);
    return status == LAM_OK ? all : lam_fail(status, "%s", text);
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
        lam_flat flat = v.list[i];
        const int divided = is_divided(c, &flat);
        if (flat.at == p->master && !has_weights(st))
            continue;
        if (divided)
            flat.at = p->grad;
        status = lam_params_check(st, p, &flat);
        if (status == LAM_OK)
            status = lam_params_read(st, p, &flat);
        if (status == LAM_OK && divided)
            lam_holdings_keep(c->optimizer, v.list[i].at == c->optimizer->v);
    }
    lam_st_close(st);
    return status;
}

/* ---- memories: one file, or one per leaf ---- */

static lam_status leaf_path(char path[PATH_MAX], const char *dir, int leaf)
{
    char name[64];
    snprintf(name, sizeof name, "memory.%05d.safetensors", leaf);
    return lam_path_join(path, PATH_MAX, dir, name);
}

typedef lam_status each_memory(lam_group_memory *m, const char *path, int i, int n);

static lam_status for_memories(const char *dir, const lam_checkpoint *c, each_memory *act)
{
    const lam_groups groups = lam_group_memory_groups(c->memories);
    char path[PATH_MAX];
    if (c->state->settings.leaves == 0) {
        LAM_TRY(lam_path_join(path, sizeof path, dir, MEMORY));
        return act(c->memories, path, 0, groups.n);
    }
    for (int i = 0; i < groups.n; i++) {
        LAM_TRY(leaf_path(path, dir, groups.first + i));
        LAM_TRY(act(c->memories, path, i, 1));
    }
    return LAM_OK;
}

/* What rank 0 writes. */
static lam_status write_parts(const lam_checkpoint *c, const char *dir)
{
    char path[PATH_MAX];
    lam_average_show(c->optimizer, c->state->averaged);
    lam_status status = lam_folder_write(dir, c->model, c->vocab);
    lam_average_hide(c->optimizer, c->state->averaged);
    if (status == LAM_OK)
        status = lam_path_join(path, sizeof path, dir, MOMENTS);
    LAM_TRY(write_moments(path, c, status));
    LAM_TRY(for_memories(dir, c, lam_group_memory_save));
    LAM_TRY(lam_path_join(path, sizeof path, dir, STATE));
    return lam_train_state_save(c->state, &c->model->params, path);
}

/* What the others do. */
static lam_status write_others(const lam_checkpoint *c, const char *dir)
{
    LAM_TRY(write_vectors(NULL, c, LAM_OK));
    return for_memories(dir, c, lam_group_memory_save);
}

/* A folder that is being filled.  The ranks meet when it is there, when it is full and when it has its name; whichever
 * of these fails for one of them fails for all, and is the last. */
typedef struct filling {
    const lam_checkpoint *c;
    int failed;
} filling;

static lam_status meet(filling *f, lam_status status)
{
    const lam_status all = lam_comm_agree(f->c->comm, status);
    f->failed |= all != LAM_OK;
    return all;
}

static lam_status fill(void *user, const char *dir)
{
    filling *f = user;
    LAM_TRY(meet(f, LAM_OK));
    LAM_TRY(meet(f, write_parts(f->c, dir)));
    return lam_seal_write(dir);
}

static const char NEW[] = ".new";

static lam_status save_first(filling *f, const char *dir)
{
    lam_status status = lam_dir_recover(dir);
    if (status == LAM_OK)
        status = lam_dir_write(dir, NEW, fill, f);
    return f->failed ? status : meet(f, status);
}

static lam_status save_other(filling *f, const char *dir)
{
    char path[PATH_MAX];
    LAM_TRY(meet(f, LAM_OK));
    snprintf(path, sizeof path, "%s%s", dir, NEW); /* rank 0 has found it not too long */
    LAM_TRY(meet(f, write_others(f->c, path)));
    return meet(f, LAM_OK);
}

lam_status lam_checkpoint_save(const char *dir, const lam_checkpoint *c)
{
    filling f = {.c = c};
    return lam_comm_rank(c->comm) == 0 ? save_first(&f, dir) : save_other(&f, dir);
}

lam_status lam_checkpoint_load(const char *dir, const lam_checkpoint *c)
{
    char path[PATH_MAX];
    if (lam_comm_rank(c->comm) == 0) /* the others come after it */
        LAM_TRY(lam_seal_check(dir, NULL));
    LAM_TRY(lam_folder_restore(c->model, dir));
    LAM_TRY(lam_path_join(path, sizeof path, dir, MOMENTS));
    LAM_TRY(read_moments(path, c));
    LAM_TRY(for_memories(dir, c, lam_group_memory_load));
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
