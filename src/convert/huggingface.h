/* huggingface.h -- a model folder that Hugging Face's transformers load, too.
 *
 * Beside the weights, whose names and shapes are those of its modules, such a folder holds a PyTorch module
 * (python/hf/modeling_lamemo.py, embedded in the program), a config.json that names it, and for byte pairs and bytes a
 * tokenizer.json. It is a model folder of lamemo's as well. */
#ifndef LAM_CONVERT_HUGGINGFACE_H
#define LAM_CONVERT_HUGGINGFACE_H

#include "core/asset.h"
#include "core/tensor.h"
#include "data/vocab.h"
#include "nn/config.h"

extern const lam_asset lam_asset_modeling_lamemo;

/* LAM_ERR_UNSUPPORTED names what the PyTorch module does not compute. */
lam_status lam_hf_check(const lam_config *cfg, lam_dtype dtype);

/* Writes config.json, modeling_lamemo.py and what there is for the tokenizer; `vocab` may be NULL. */
lam_status lam_hf_write(const char *dir, const lam_config *cfg, lam_dtype dtype,
                        const lam_vocab *vocab);

#endif
