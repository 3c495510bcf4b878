/* export.c -- see export.h. */
#include "convert/export.h"

#include "convert/model_writer.h"
#include "convert/foreign.h"
#include "convert/huggingface.h"
#include "core/file.h"
#include "model/folder.h"

#include <limits.h>

typedef struct job {
    const lam_export_options *o;
    lam_safetensors *st;
    lam_tensors tensors;
    lam_vocab *vocab;
    lam_config cfg;
    lam_model model; /* declared, without memory */
} job;

static lam_status open_folder(job *j)
{
    char dir[PATH_MAX], path[PATH_MAX];
    lam_dev plain = {.act = LAM_F32, .wide = LAM_F32, .pad = 1};
    LAM_TRY(lam_folder_find(dir, sizeof dir, j->o->model));
    LAM_TRY(lam_folder_config(&j->cfg, dir));
    if (j->o->hf)
        LAM_TRY(lam_hf_check(&j->cfg, j->o->dtype));
    LAM_TRY(lam_st_open_folder(&j->st, dir));
    j->tensors.label = lam_st_path(j->st);
    j->tensors.stop = j->o->stop;
    LAM_TRY(lam_tensors_from_safetensors(&j->tensors, j->st));
    LAM_TRY(lam_model_declare(&j->model, &j->cfg, &plain));
    j->model.dev = j->model.params.dev = NULL; /* it was only asked for shapes */
    LAM_TRY(lam_foreign_check(&j->tensors, &j->model.params, &j->cfg));
    LAM_TRY(lam_path_join(path, sizeof path, dir, "vocab.json"));
    if (!lam_path_exists(path))
        return LAM_OK;
    LAM_TRY(lam_vocab_load(&j->vocab, path));
    return lam_vocab_fits(j->vocab, path, j->cfg.n_token);
}

static lam_status run(job *j, lam_export_result *result)
{
    LAM_TRY(lam_model_writer_check(j->o->out, j->o->replace));
    LAM_TRY(open_folder(j));
    const lam_model_writer d = {.cfg = &j->cfg,
                                .params = &j->model.params,
                                .tensors = &j->tensors,
                                .vocab = j->vocab,
                                .dtype = j->o->dtype,
                                .max_shard = j->o->max_shard,
                                .hf = j->o->hf,
                                .dir = j->o->out,
                                .replace = j->o->replace,
                                .stop = j->o->stop};
    *result = (lam_export_result){.tensors = d.params->n, .elements = lam_model_count(&j->model)};
    for (int i = 0; i < d.params->n; i++)
        result->bytes += lam_model_writer_bytes(&d, i);
    return lam_model_writer_run(&d, &result->files);
}

lam_status lam_export(const lam_export_options *options, lam_export_result *result)
{
    job j = {.o = options};
    *result = (lam_export_result){0};
    const lam_status status = run(&j, result);
    lam_model_undeclare(&j.model);
    lam_tensors_free(&j.tensors);
    lam_vocab_free(j.vocab);
    lam_st_close(j.st);
    return status;
}
