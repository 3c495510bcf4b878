/* identity.h -- which model an archive was made with: the SHA-256 of its files. */
#ifndef LAM_COMPRESS_IDENTITY_H
#define LAM_COMPRESS_IDENTITY_H

#include "compress/lmz.h"

/* Of config.json, vocab.json and the tensors (model.safetensors, or the parts and their index): for each, in the order
 * of their names, the name, a NUL, the size as 8 bytes, lowest first, and the bytes. */
typedef struct lam_identity {
    uint8_t sha256[32];
    char name[LAM_LMZ_NAME +
              1];   /* of its folder; characters other than letters, digits, ._-+ become _ */
    uint64_t bytes; /* of those files: what somebody without the model needs besides an archive */
} lam_identity;

lam_status lam_identity_of(lam_identity *out, const lam_engine *engine);

/* Is it the model the header names?  LAM_ERR_FORMAT says which one that is, and which was given. */
lam_status lam_identity_compare(const lam_identity *mine, const lam_lmz_header *h);

#endif
