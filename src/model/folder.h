/* folder.h -- a model on disk: config.json, model.safetensors (or several such files and their index),
 * vocab.json (docs/formats.md).
 *
 * What is read is checked against the configuration, tensor by tensor: a missing one, a wrong shape or
 * one too many is LAM_ERR_FORMAT and names it.  vocab.json is text to this file; data/vocab.h knows what
 * it means. */
#ifndef LAM_MODEL_FOLDER_H
#define LAM_MODEL_FOLDER_H

#include "core/own.h"
#include "model/model.h"
#include "model/storage.h"

/* How a folder of ours is told from others, before it is replaced. */
extern const lam_kind lam_folder_kind;

/* The folder that holds the model: `dir` itself, or, where `dir` is a run of `lamemo train`, its
 * best checkpoint, else its last one; or, where nothing is called so, a model of that name that comes
 * with lamemo (boxed.h).  out has `size` bytes. */
lam_status lam_folder_find(char *out, size_t size, const char *dir);

/* Opens the model in `dir` (looked up as above) on `dev`, which is kept.  storage NULL: as it suits the folder;
 * asking for a type that the device has not is LAM_ERR_UNSUPPORTED. */
lam_status lam_folder_load(lam_model **out, const char *dir, lam_dev *dev,
                           const lam_storage *storage);
/* Only its configuration. */
lam_status lam_folder_config(lam_config *cfg, const char *dir);
/* The path of its vocab.json, which it may lack. */
lam_status lam_folder_vocab(char *path, size_t size, const char *dir);

/* Do the parameters in the folder (exactly this one) fit `cfg`?  To be asked before a model is created that is to
 * read them. */
lam_status lam_folder_check(const char *dir, const lam_config *cfg, lam_dev *dev);
/* Reads the parameters of a folder (exactly this one) into a model of the same configuration. */
lam_status lam_folder_restore(lam_model *model, const char *dir);
/* Its parameters alone: names and shapes must fit; lengths and dropout, say, may be others. */
lam_status lam_folder_adopt(lam_model *model, const char *dir);

/* Writes the model as `dir`, in the place of what was there: whole or not at all.  `vocab` is the
 * text of vocab.json; NULL: none. */
lam_status lam_folder_save(const char *dir, lam_model *model, const char *vocab);
/* Puts the files of a model into an existing folder that is about to be renamed. */
lam_status lam_folder_write(const char *dir, lam_model *model, const char *vocab);
/* Only its config.json. */
lam_status lam_folder_write_config(const char *dir, const lam_config *cfg);

#endif
