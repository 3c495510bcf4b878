/* engine.h -- a loaded model with its device and its vocabulary, on which sessions run. */
#ifndef LAM_INFER_ENGINE_H
#define LAM_INFER_ENGINE_H

#include "data/vocab.h"
#include "model/model.h"
#include "model/storage.h"

typedef struct lam_engine {
    lam_dev *dev; /* kept */
    lam_model *model;
    lam_vocab *vocab;
    char *name; /* its folder, as the caller named it */
} lam_engine;

/* Loads a model or run folder. `dev` is kept and must outlive the engine.  The vocabulary must have the model's size.
 * storage as in lam_folder_load. */
lam_status lam_engine_open(lam_engine **out, const char *dir, lam_dev *dev,
                           const lam_storage *storage);
void lam_engine_close(lam_engine *engine); /* NULL is fine */

/* A message about a number that is not finite names the model that computed it. */
lam_status lam_engine_blame(const lam_engine *engine, lam_status status);

/* The token that starts a text without a prompt: <eos> for words, else a newline, a blank, its "_", or token 0. */
int32_t lam_engine_start_token(const lam_engine *engine);

#endif
