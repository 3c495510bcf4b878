/* folder.h -- a model on disk: config.json, model.safetensors (or several such files and their index), vocab.json
 * (docs/formats.md).
 *
 * Every tensor is checked against the configuration: a missing or unknown tensor or a wrong shape is LAM_ERR_FORMAT,
 * with its name.  This file treats vocab.json as text; data/vocab.h parses it. */
#ifndef LAM_MODEL_FOLDER_H
#define LAM_MODEL_FOLDER_H

#include "core/own.h"
#include "model/model.h"
#include "model/storage.h"

/* How a model folder of lamemo is recognised before it is replaced. */
extern const lam_kind lam_folder_kind;

/* The folder that holds the model: `dir` itself, or, where `dir` is a run of `lamemo train`, its best checkpoint, else
 * its last one; or, if there is no such folder, the bundled model of that name (boxed.h). out has `size` bytes. */
lam_status lam_folder_find(char *out, size_t size, const char *dir);

/* Opens the model in `dir` (looked up as above) on `dev`, which is kept. storage NULL: as the folder stores its
 * weights; a type that the device does not support is LAM_ERR_UNSUPPORTED. */
lam_status lam_folder_load(lam_model **out, const char *dir, lam_dev *dev,
                           const lam_storage *storage);
/* Only its configuration. */
lam_status lam_folder_config(lam_config *cfg, const char *dir);
/* The path of its vocab.json, which it may lack. */
lam_status lam_folder_vocab(char *path, size_t size, const char *dir);

/* Do the parameters in the folder (exactly this one) fit `cfg`?  Call this before creating the model that reads
 * them. */
lam_status lam_folder_check(const char *dir, const lam_config *cfg, lam_dev *dev);
/* Reads the parameters of a folder (exactly this one) into a model of the same configuration. */
lam_status lam_folder_restore(lam_model *model, const char *dir);
/* The same for the parameters alone: names and shapes must fit; lengths and dropout, for example, may differ. */
lam_status lam_folder_adopt(lam_model *model, const char *dir);

/* Writes the model as `dir`, in the place of what was there: whole or not at all.  `vocab` is the
 * text of vocab.json; NULL: none. */
lam_status lam_folder_save(const char *dir, lam_model *model, const char *vocab);
/* Puts the files of a model into an existing folder that is about to be renamed. */
lam_status lam_folder_write(const char *dir, lam_model *model, const char *vocab);
/* Only its config.json. */
lam_status lam_folder_write_config(const char *dir, const lam_config *cfg);

#endif
