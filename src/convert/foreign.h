/* foreign.h -- the configuration of a model that another program saved.
 *
 * What the source states comes as one JSON object with the keys of config.json: from the checkpoint's
 * model_config or args, from attributes of a module, or from a config.json. What is missing is inferred
 * from the shapes of the tensors; only lengths and pre_lnorm cannot be. */
#ifndef LAM_CONVERT_FOREIGN_H
#define LAM_CONVERT_FOREIGN_H

#include "convert/tensors.h"
#include "io/json.h"
#include "nn/config.h"
#include "nn/params.h"

/* What a checkpoint says about its model, owned by the caller (json_decref); perhaps {}.  `module` as
 * lam_tensors_from_torch() found it. */
lam_status lam_foreign_known(json_t **known, const lam_torch *file, const lam_py *module);

/* Hugging Face's TransfoXL has the clusters of the adaptive softmax in the other order: the rows of their weights and
 * biases are turned round where `known` says that it is one. */
void lam_foreign_turn(lam_tensors *all, const json_t *known);

/* Adds to `known` what the tensors show and finishes the configuration. */
lam_status lam_foreign_config(lam_config *cfg, json_t *known, const lam_tensors *all);

/* Every parameter is there in its shape; every other tensor is one that may be left out: a tied copy
 * that equals its original, a buffer with the values we compute ourselves. */
lam_status lam_foreign_check(const lam_tensors *all, const lam_params *params,
                             const lam_config *cfg);

#endif
