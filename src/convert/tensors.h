/* tensors.h -- the named tensors of a file, before their roles in the model are known.
 *
 * They are views: the file must stay open. Prefixes that PyTorch users put around a model are removed from
 * the names ("module." of DataParallel, "transformer." of Hugging Face). */
#ifndef LAM_CONVERT_TENSORS_H
#define LAM_CONVERT_TENSORS_H

#include "io/safetensors.h"
#include "io/torchfile.h"

enum { LAM_TENSORS_MAX = 1 << 14, LAM_TENSOR_NAME_MAX = 256 };

typedef struct lam_named {
    char name[LAM_TENSOR_NAME_MAX];
    lam_strided t;
} lam_named;

typedef struct lam_tensors {
    const char *label; /* borrowed: the file's name for messages */
    int (*stop)(void); /* asked for each tensor; non-zero: LAM_ERR_INTERRUPTED.  May be NULL */
    lam_named *list;
    int n;
    size_t room;
} lam_tensors;

/* A zeroed struct with a label is empty. */
lam_status lam_tensors_add(lam_tensors *all, const char *name, const lam_strided *t);
void lam_tensors_free(lam_tensors *all);
/* LAM_ERR_INTERRUPTED if `stop` says so: to be asked between tensors. */
lam_status lam_tensors_go_on(const lam_tensors *all);

const lam_strided *lam_tensors_find(const lam_tensors *all, const char *name); /* NULL: absent */
/* The same with a printf-formatted name. */
const lam_strided *lam_tensors_at(const lam_tensors *all, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Elements first .. first + n of the tensor called `name`, which is there; one in int8 has scales
 * (lam_tensors_scales) and is worth its numbers times them. */
void lam_tensors_copy(double *out, const lam_tensors *all, const char *name, size_t first,
                      size_t n);
/* The tensor NAME.scale, or NULL. */
const lam_strided *lam_tensors_scales(const lam_tensors *all, const char *name);

lam_status lam_tensors_from_safetensors(lam_tensors *all, const lam_safetensors *st);
/* The state_dict of a checkpoint ("model_state", "state_dict", ...), a bare state_dict, or the parameters
 * and buffers of a pickled module.  Where it is such a module, *module is its node, else NULL. */
lam_status lam_tensors_from_torch(lam_tensors *all, lam_torch *file, const lam_py **module);

#endif
