/* engine.c -- see engine.h. */
#include "infer/engine.h"

#include "core/file.h"
#include "model/folder.h"

#include <stdlib.h>
#include <string.h>

static lam_status load(lam_engine *e, const char *dir, const lam_storage *storage)
{
    char folder[4096], path[4200];
    LAM_TRY(lam_folder_find(folder, sizeof folder, dir));
    LAM_TRY(lam_folder_load(&e->model, folder, e->dev, storage));
    LAM_TRY(lam_path_join(path, sizeof path, folder, "vocab.json"));
    LAM_TRY(lam_vocab_load(&e->vocab, path));
    return lam_vocab_fits(e->vocab, path, e->model->cfg.n_token);
}

lam_status lam_engine_open(lam_engine **out, const char *dir, lam_dev *dev,
                           const lam_storage *storage)
{
    *out = NULL;
    lam_engine *e = calloc(1, sizeof *e);
    if (!e)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", dir);
    e->dev = dev;
    e->name = strdup(dir);
    const lam_status status =
        e->name ? load(e, dir, storage) : lam_fail(LAM_ERR_MEMORY, "%s: no memory", dir);
    if (status != LAM_OK) {
        lam_engine_close(e);
        return status;
    }
    *out = e;
    return LAM_OK;
}

void lam_engine_close(lam_engine *e)
{
    if (!e)
        return;
    lam_vocab_free(e->vocab);
    lam_model_free(e->model);
    free(e->name);
    free(e);
}

lam_status lam_engine_blame(const lam_engine *e, lam_status status)
{
    return status == LAM_ERR_NUMERIC ? lam_fail(status, "model %s: %s", e->name, lam_error())
                                     : status;
}

int32_t lam_engine_start_token(const lam_engine *e)
{
    static const char *const beginnings[] = {"\n", " ", "_"};
    const int32_t eos = lam_vocab_eos(e->vocab);
    /* A separator of documents that the training text did not have means nothing to the model. */
    if (eos >= 0 && (lam_vocab_kind(e->vocab) != LAM_BPE || lam_vocab_count(e->vocab, eos) > 0))
        return eos;
    for (int i = 0; i < 3; i++) {
        const int32_t id = lam_vocab_find(e->vocab, beginnings[i], 1);
        if (id >= 0)
            return id;
    }
    return 0;
}
