/* model.h -- a model: its configuration and its parameters on one device.
 *
 * Holds no activations and no state: those belong to a stack (stack.h), of which a model may have several
 * (training, evaluation, sessions). */
#ifndef LAM_MODEL_MODEL_H
#define LAM_MODEL_MODEL_H

#include "mem/mem.h"
#include "nn/embed.h"
#include "nn/head.h"

typedef struct lam_model {
    lam_config cfg;
    lam_dev *dev; /* kept */
    lam_dims dims;
    const lam_mem_ops *mem;
    lam_params params;
    lam_pos_params pos;
    lam_embed_params embed;
    lam_head_params head;
    lam_layer_params *layer; /* [L] */
    void *own;               /* [L] of the memory's struct of parameters */
    lam_class cache; /* of keys, values and positions in inference: ACT or HALF; exact: BYTE */
} lam_model;

/* Declares and places all parameters, zeroed.  cfg must be finished.  On failure *out is NULL. */
lam_status lam_model_create(lam_model **out, const lam_config *cfg, lam_dev *dev);
/* The same for inference, with matrices in `weights` (ACT, HALF or BYTE) and keys and values in `cache` (ACT
 * or HALF; on an exact device both are BYTE).  LAM_ERR_UNSUPPORTED where the device has no such types, or the model's
 * memory has no exact arithmetic. */
lam_status lam_model_create_as(lam_model **out, const lam_config *cfg, lam_dev *dev,
                               lam_class weights, lam_class cache);
void lam_model_free(lam_model *model); /* NULL is fine */

/* Declares the parameters without allocating them, for counting: lamemo info. `dev` may be a bare
 * struct with act, wide and pad set. */
lam_status lam_model_declare(lam_model *model, const lam_config *cfg, lam_dev *dev);
void lam_model_undeclare(lam_model *model);

/* The authors' initialisation (nn/params.h, lam_init), or what the config says; one seed, the same numbers on every
 * device. */
lam_status lam_model_init(lam_model *model, uint64_t seed);

/* The number of parameters, without padding, tied ones once. */
size_t lam_model_count(const lam_model *model);

#endif
