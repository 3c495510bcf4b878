/* model_writer_int.h -- what model_writer.c asks of model_writer_data.c, of parameter i each time. */
#ifndef LAM_CONVERT_MODEL_WRITER_INT_H
#define LAM_CONVERT_MODEL_WRITER_INT_H

#include "convert/model_writer.h"

/* Declares its tensor, and that of its scales if it becomes int8; later writes their data. */
lam_status lam_model_writer_declare(const lam_model_writer *d, lam_st_writer *w, int i);
lam_status lam_model_writer_write(const lam_model_writer *d, lam_st_writer *w, int i);

/* The name of its scales; returns 0 if it will have none. */
int lam_model_writer_scale_name(const lam_model_writer *d, int i, char out[LAM_TENSOR_NAME_MAX]);

#endif
