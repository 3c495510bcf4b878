/* import.c -- see import.h. */
#include "convert/import.h"

#include "convert/model_writer.h"
#include "convert/foreign.h"
#include "convert/vocabulary.h"
#include "core/own.h"
#include "model/model.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CONFIG = 1 << 24 };

/* Everything that is open. */
typedef struct job {
    const lam_import_options *o;
    lam_torch *torch; /* one of these two */
    lam_safetensors *st;
    json_t *known;
    lam_tensors tensors;
    lam_vocab *vocab;
    lam_config cfg;
    lam_model model; /* declared, without memory */
} job;

/* ---- opening ---- */

static lam_status load_json(json_t **out, const char *path)
{
    LAM_TRY(lam_json_load(out, path, MAX_CONFIG));
    if (json_is_object(*out))
        return LAM_OK;
    json_decref(*out);
    *out = NULL;
    return lam_fail(LAM_ERR_FORMAT, "%s: not a JSON object", path);
}

/* `name` in the folder of the source, if it is there. */
static int find_beside(char *out, size_t size, const char *dir, const char *name)
{
    return lam_path_join(out, size, dir, name) == LAM_OK && lam_path_exists(out);
}

static lam_status open_torch(job *j, const char *path)
{
    const lam_py *module;
    LAM_TRY(lam_torch_open(&j->torch, path));
    LAM_TRY(lam_tensors_from_torch(&j->tensors, j->torch, &module));
    LAM_TRY(lam_foreign_known(&j->known, j->torch, module));
    return j->o->vocab ? LAM_OK : lam_vocabulary_from_torch(&j->vocab, j->torch);
}

static lam_status open_folder(job *j, const char *dir)
{
    static const char *const pickles[] = {"pytorch_model.bin", "model.pt", "checkpoint_best.pt",
                                          "checkpoint.pt"};
    char path[PATH_MAX];
    int whole;
    LAM_TRY(lam_dir_look(&whole, dir, "model.safetensors"));
    if (whole || find_beside(path, sizeof path, dir, "model.safetensors.index.json")) {
        LAM_TRY(lam_st_open_folder(&j->st, dir));
        return lam_tensors_from_safetensors(&j->tensors, j->st);
    }
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++)
        if (find_beside(path, sizeof path, dir, pickles[i]))
            return open_torch(j, path);
    if (find_beside(path, sizeof path, dir, "best") || find_beside(path, sizeof path, dir, "last"))
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: a run of lamemo's own, a model as it is; export makes another of it",
                        dir);
    return lam_fail(LAM_ERR_FORMAT,
                    "%s: holds neither model.safetensors nor pytorch_model.bin, model.pt, "
                    "checkpoint_best.pt or checkpoint.pt",
                    dir);
}

static lam_status open_file(job *j, const char *path)
{
    lam_map map;
    LAM_TRY(lam_map_open(&map, path));
    /* A safetensors file begins with the length of its header, and that with a brace; what torch.save writes is a
     * zip archive, and was a row of pickles before PyTorch 1.6. */
    const int safe = map.size > 8 && map.data[8] == '{';
    const int zip = map.size > 1 && memcmp(map.data, "PK", 2) == 0;
    const int pickle = map.size > 1 && map.data[0] == 0x80 && map.data[1] < 0x10;
    lam_map_close(&map);
    if (zip)
        return open_torch(j, path);
    if (!safe)
        return lam_fail(LAM_ERR_FORMAT,
                        pickle
                            ? "%s: saved by PyTorch before 1.6: load and save it with a newer one"
                            : "%s: neither a PyTorch file nor safetensors",
                        path);
    LAM_TRY(lam_st_open(&j->st, path));
    return lam_tensors_from_safetensors(&j->tensors, j->st);
}

/* The folder of a file, or the folder itself. */
static void folder_of(char out[PATH_MAX], const char *path)
{
    const char *slash = strrchr(path, '/');
    if (lam_path_is_folder(path))
        snprintf(out, PATH_MAX, "%s", path);
    else if (slash)
        snprintf(out, PATH_MAX, "%.*s", (int)(slash - path + 1), path);
    else
        snprintf(out, PATH_MAX, ".");
}

static lam_status open_source(job *j)
{
    char dir[PATH_MAX], path[PATH_MAX];
    j->tensors.label = j->o->source;
    j->tensors.stop = j->o->stop;
    LAM_TRY(lam_path_is_folder(j->o->source) ? open_folder(j, j->o->source)
                                             : open_file(j, j->o->source));
    folder_of(dir, j->o->source);
    /* Weights alone, as in pytorch_model.bin: their configuration and vocabulary may lie beside them. */
    if (json_object_size(j->known) == 0 && find_beside(path, sizeof path, dir, "config.json")) {
        json_decref(j->known);
        j->known = NULL;
        LAM_TRY(load_json(&j->known, path));
    }
    if (!j->known && !(j->known = json_object()))
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", j->o->source);
    if (j->o->vocab)
        return lam_vocabulary_load(&j->vocab, j->o->vocab, NULL);
    /* Hugging Face has another file of this name, beside the tokenizer.json. */
    const bool ours = find_beside(path, sizeof path, dir, "vocab.json") &&
                      lam_own_file(path, "\"lamemo-vocab\"") == LAM_OK;
    if (!j->vocab && (ours || find_beside(path, sizeof path, dir, "tokenizer.json") ||
                      find_beside(path, sizeof path, dir, "vocab.json")))
        return lam_vocabulary_load(&j->vocab, path, NULL);
    return LAM_OK;
}

/* ---- the configuration ---- */

static lam_status set_length(job *j, const char *key, int value)
{
    if (value < 0 || json_object_set_new(j->known, key, json_integer(value)) == 0)
        return LAM_OK;
    return lam_fail(LAM_ERR_MEMORY, "%s: no memory", j->o->source);
}

static lam_status resolve(job *j)
{
    lam_dev plain = {.act = LAM_F32, .wide = LAM_F32, .pad = 1};
    if (j->o->config) {
        json_t *more;
        LAM_TRY(load_json(&more, j->o->config));
        const int bad = json_object_update(j->known, more);
        json_decref(more);
        if (bad)
            return lam_fail(LAM_ERR_MEMORY, "%s: no memory", j->o->config);
    }
    LAM_TRY(set_length(j, "tgt_len", j->o->tgt_len));
    LAM_TRY(set_length(j, "mem_len", j->o->mem_len));
    lam_foreign_turn(&j->tensors, j->known);
    LAM_TRY(lam_foreign_config(&j->cfg, j->known, &j->tensors));
    LAM_TRY(lam_model_declare(&j->model, &j->cfg, &plain));
    j->model.dev = j->model.params.dev = NULL; /* it was only asked for shapes */
    LAM_TRY(lam_foreign_check(&j->tensors, &j->model.params, &j->cfg));
    return j->vocab
               ? lam_vocab_fits(j->vocab, j->o->vocab ? j->o->vocab : j->o->source, j->cfg.n_token)
               : LAM_OK;
}

static void report(const job *j, lam_import_result *r)
{
    int scales = 0; /* of int8 matrices: used, though no parameters */
    for (int i = 0; i < j->model.params.n; i++)
        scales += lam_tensors_scales(&j->tensors, j->model.params.list[i].name) != NULL;
    *r = (lam_import_result){.tensors = j->model.params.n,
                             .left_out = j->tensors.n - j->model.params.n - scales,
                             .elements = lam_model_count(&j->model),
                             .symbols = j->vocab ? lam_vocab_size(j->vocab) : 0,
                             .attn_type = j->cfg.attn_type};
    memcpy(r->memory, j->cfg.memory, sizeof r->memory);
}

static lam_status run(job *j, lam_import_result *result)
{
    int files;
    LAM_TRY(lam_model_writer_check(j->o->out, j->o->replace));
    LAM_TRY(open_source(j));
    LAM_TRY(resolve(j));
    report(j, result);
    return lam_model_writer_run(&(lam_model_writer){.cfg = &j->cfg,
                                                    .params = &j->model.params,
                                                    .tensors = &j->tensors,
                                                    .vocab = j->vocab,
                                                    .dtype = LAM_F32,
                                                    .dir = j->o->out,
                                                    .replace = j->o->replace,
                                                    .stop = j->o->stop},
                                &files);
}

lam_status lam_import(const lam_import_options *options, lam_import_result *result)
{
    job j = {.o = options};
    *result = (lam_import_result){0};
    const lam_status status = run(&j, result);
    lam_model_undeclare(&j.model);
    lam_tensors_free(&j.tensors);
    lam_vocab_free(j.vocab);
    json_decref(j.known);
    lam_st_close(j.st);
    lam_torch_close(j.torch);
    return status;
}
