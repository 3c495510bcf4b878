/* import.h -- converts a model that another program saved into a model folder.
 *
 * Sources: a torch.save file (the authors' checkpoints of LaMemo and Transformer-XL, whole modules, bare
 * state_dicts), a safetensors file, or a folder with config.json and safetensors (one file or shards) or
 * pytorch_model.bin. Nothing in them is executed. */
#ifndef LAM_CONVERT_IMPORT_H
#define LAM_CONVERT_IMPORT_H

#include "core/status.h"

#include <stddef.h>

typedef struct lam_import_options {
    const char *source, *out;
    const char *config;   /* a JSON file whose keys win over the source's; NULL: none */
    const char *vocab;    /* NULL: the source's own, if it has one */
    int tgt_len, mem_len; /* -1: as the source says */
    int replace;
    int (*stop)(void); /* non-zero: leave nothing behind and return LAM_ERR_INTERRUPTED; or NULL */
} lam_import_options;

typedef struct lam_import_result {
    int tensors;     /* written */
    int left_out;    /* tied copies and buffers */
    size_t elements; /* of the tensors written */
    int symbols;     /* of the vocabulary; 0: there is none */
    char memory[16];
    int attn_type;
} lam_import_result;

lam_status lam_import(const lam_import_options *options, lam_import_result *result);

#endif
