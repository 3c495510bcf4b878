/* toy_folder.c -- see toy_folder.h. */
#include "support/toy_folder.h"

#include "core/file.h"
#include "data/vocab.h"
#include "model/configure.h"
#include "model/folder.h"

#include <stdlib.h>
#include <string.h>

static lam_status save_vocab(const char *dir)
{
    char path[4200];
    lam_vocab *vocab = NULL;
    LAM_TRY(lam_path_join(path, sizeof path, dir, "vocab.json"));
    lam_status status = lam_vocab_create_bytes(&vocab);
    if (status == LAM_OK)
        status = lam_vocab_save(vocab, path);
    lam_vocab_free(vocab);
    return status;
}

static lam_status save_model(const char *dir, const char *memory, unsigned seed, lam_dev *dev)
{
    lam_config cfg;
    lam_model *model = NULL;
    lam_config_defaults(&cfg);
    strcpy(cfg.memory, memory);
    cfg.n_token = 256;
    cfg.n_layer = cfg.n_head = 2;
    cfg.d_head = 8;
    cfg.d_model = 16;
    cfg.d_inner = 24;
    cfg.tgt_len = TOY_FOLDER_N;
    cfg.mem_len = TOY_FOLDER_M;
    cfg.init_std = 0.4;
    LAM_TRY(lam_config_finish(&cfg));
    lam_status status = lam_model_create(&model, &cfg, dev);
    if (status == LAM_OK)
        status = lam_model_init(model, seed);
    if (status == LAM_OK)
        status = lam_folder_save(dir, model, NULL);
    lam_model_free(model);
    return status;
}

lam_status toy_folder_save(const char *dir, const char *memory, unsigned seed)
{
    const lam_ops *ops = NULL;
    lam_dev *dev = NULL;
    LAM_TRY(lam_ops_find(&ops, "cpu"));
    LAM_TRY(ops->open(&dev, &(lam_dev_options){.threads = 1}));
    lam_status status = save_model(dir, memory, seed, dev);
    if (status == LAM_OK)
        status = save_vocab(dir);
    ops->close(dev);
    return status;
}
