/* params_io.h -- flat vectors of a parameter table (weights, moments) to and from safetensors.
 *
 * Tensor "PREFIX" "NAME" holds parameter NAME without padding, in the table's order.  Several vectors may share a file
 * under several prefixes.
 *
 * A matrix may be int8: then tensor NAME.scale (F32, one per index of its first dimension) holds the scales of its
 * rows. */
#ifndef LAM_NN_PARAMS_IO_H
#define LAM_NN_PARAMS_IO_H

#include "core/watch.h"
#include "io/safetensors.h"
#include "nn/params.h"

/* A flat vector as a file has it. */
typedef struct lam_flat {
    const char *prefix;
    void *at;
    int rest;               /* it ends before the hidden matrices (lam_params_arrange) */
    const lam_watch *watch; /* of check and read, half of the way each; NULL: nobody */
} lam_flat;

/* Before lam_st_writer_begin: declares one tensor per parameter. */
lam_status lam_params_add_to(lam_st_writer *w, const lam_params *p, const lam_flat *flat,
                             lam_dtype dtype);
/* After it: writes the data of all of them, in the same order. */
lam_status lam_params_write(lam_st_writer *w, const lam_params *p, const lam_flat *flat,
                            lam_dtype dtype);

#define LAM_SCALE_SUFFIX ".scale"

/* Checks that every parameter is present, with its shape and finite numbers of a floating-point type, or int8 and
 * scales; LAM_ERR_FORMAT names the first that is not. */
lam_status lam_params_check(const lam_safetensors *st, const lam_params *p, const lam_flat *flat);
/* Is a tensor of the file (no prefix) a parameter, or the scales of one in int8? */
int lam_params_know(const lam_params *p, const lam_safetensors *st, const char *name);
/* Fills the flat vector from a checked file; reading the master refreshes the weights too. */
lam_status lam_params_read(const lam_safetensors *st, lam_params *p, const lam_flat *flat);

#endif
