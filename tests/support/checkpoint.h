/* checkpoint.h -- files as the authors' PyTorch code saves them, made from the reference traces.
 *
 * The parameters of a trace ("param.NAME") are written as a state_dict that has what the authors' has beside
 * them: tied copies that share storage with their originals, buffers, the configuration as model_config and
 * args, the vocabulary object. */
#ifndef TEST_CHECKPOINT_H
#define TEST_CHECKPOINT_H

#include "io/safetensors.h"

typedef enum checkpoint_form {
    CHECKPOINT_LAMEMO, /* {"args", "model_config", "model_state", "vocab", ...} */
    CHECKPOINT_STATE,  /* an OrderedDict of tensors, names behind "module." */
    CHECKPOINT_MODULE  /* a whole nn.Module, as Transformer-XL's code saves it */
} checkpoint_form;

typedef struct checkpoint_flaw {
    const char *drop;    /* a tensor that is left out */
    const char *extra;   /* one more, of two elements */
    const char *untie;   /* a tied copy that differs */
    const char *setting; /* a key of model_config with the value 3 */
    int evil;            /* os.system stands where the vocabulary and an argument should be */
} checkpoint_flaw;

typedef struct checkpoint {
    checkpoint_form form;
    const char *const *symbols; /* the vocabulary; NULL: none */
    int n_symbols;
    int lower_case;
    checkpoint_flaw flaw;
} checkpoint;

/* Writes the file; `trace` is an open reference trace. */
void checkpoint_write(const char *path, const lam_safetensors *trace, const checkpoint *how);

#endif
