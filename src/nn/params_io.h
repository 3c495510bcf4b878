/* params_io.h -- flat vectors of a parameter table (weights, moments) to and from safetensors.
 *
 * Tensor "PREFIX" "NAME" holds the stretch of parameter NAME without padding, in the table's order.
 * Several vectors may share a file under several prefixes. */
#ifndef LAM_NN_PARAMS_IO_H
#define LAM_NN_PARAMS_IO_H

#include "io/safetensors.h"
#include "nn/params.h"

/* Before lam_st_writer_begin: declares one tensor per parameter. */
lam_status lam_params_add_to(lam_st_writer *w, const lam_params *p, const char *prefix,
                             lam_dtype dtype);
/* After it: writes the data of all of them, in the same order. */
lam_status lam_params_write(lam_st_writer *w, const lam_params *p, const void *flat,
                            lam_dtype dtype);

/* Every parameter is there, with its shape and a floating-point type; LAM_ERR_FORMAT names the first
 * that is not. */
lam_status lam_params_check(const lam_safetensors *st, const lam_params *p, const char *prefix);
/* Fills the flat vector from a checked file; reading the master refreshes the weights too. */
lam_status lam_params_read(const lam_safetensors *st, lam_params *p, void *flat,
                           const char *prefix);

#endif
