/* deliver_int.h -- what deliver.c asks of deliver_data.c, of parameter i each time. */
#ifndef LAM_CONVERT_DELIVER_INT_H
#define LAM_CONVERT_DELIVER_INT_H

#include "convert/deliver.h"

/* Declares its tensor, and that of its scales if it becomes int8; later writes their data. */
lam_status lam_deliver_declare(const lam_delivery *d, lam_st_writer *w, int i);
lam_status lam_deliver_write(const lam_delivery *d, lam_st_writer *w, int i);

/* The name of its scales; returns 0 if it will have none. */
int lam_deliver_scale_name(const lam_delivery *d, int i, char out[LAM_TENSOR_NAME_MAX]);

#endif
