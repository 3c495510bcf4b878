/* storage.h -- the types in which weights and caches are stored for inference: the choices of --weights and --cache. */
#ifndef LAM_MODEL_STORAGE_H
#define LAM_MODEL_STORAGE_H

#include "core/watch.h"
#include "ops/types.h"

typedef enum lam_store { LAM_STORE_AUTO, LAM_STORE_F32, LAM_STORE_BF16, LAM_STORE_INT8 } lam_store;

/* {0} follows the folder: weights in the type in which they are stored, and caches in bf16 if weights are bf16 or int8;
 * both float32 on a device that has no other types. */
typedef struct lam_storage {
    lam_store weights;      /* matrices and embeddings */
    lam_store cache;        /* keys, values and positions; not INT8 */
    const lam_watch *watch; /* of loading; NULL: nobody */
} lam_storage;

static inline lam_class lam_store_class(lam_store store, lam_class standard)
{
    static const lam_class classes[] = {LAM_ACT, LAM_ACT, LAM_HALF, LAM_BYTE};
    return store == LAM_STORE_AUTO ? standard : classes[store];
}

#endif
