/* params_int.h -- declarations shared by params.c, params_io.c and params_narrow.c. */
#ifndef LAM_NN_PARAMS_INT_H
#define LAM_NN_PARAMS_INT_H

#include "nn/params.h"

/* Do GEMMs read the master weights directly?  Otherwise `weight` is a copy. */
static inline int lam_params_one_copy(const lam_dev *dev)
{
    return dev->act == dev->wide && !dev->rounds;
}

/* Is parameter q of this table stored in bf16 or int8? */
int lam_param_is_narrow(const lam_params *p, const lam_param *q);

/* Gives the matrices separate memory and makes the others contiguous. */
lam_status lam_params_place_narrow(lam_params *p);

/* Stores rows first .. first + rows of a narrow parameter as it lies in memory, padding included. */
lam_status lam_params_put_rows(lam_params *p, int i, size_t first, size_t rows,
                               const double *padded);
/* The whole of it. */
lam_status lam_params_take_all(const lam_params *p, int i, double *padded);

#endif
