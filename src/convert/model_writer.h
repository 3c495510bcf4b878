/* model_writer.h -- writing a model folder from tensors that are somewhere else: the end of import and export.
 *
 * Nothing is held in memory but a piece of one tensor, so models larger than memory pass through. */
#ifndef LAM_CONVERT_MODEL_WRITER_H
#define LAM_CONVERT_MODEL_WRITER_H

#include "convert/tensors.h"
#include "data/vocab.h"
#include "nn/config.h"
#include "nn/params.h"

#include <stdbool.h>

typedef struct lam_model_writer {
    const lam_config *cfg;
    const lam_params *params;   /* declared for cfg: which tensors, and in what order */
    const lam_tensors *tensors; /* holds all of them, checked */
    const lam_vocab *vocab;     /* NULL: none is written */
    lam_dtype dtype;            /* LAM_F32, LAM_F16, LAM_BF16, or LAM_I8: matrices with scales */
    int64_t max_shard;          /* most bytes of a file; 0: one file */
    bool hf;                    /* for Hugging Face's transformers as well */
    const char *dir;
    int replace;       /* a model folder that is there may be replaced */
    int (*stop)(void); /* asked now and then; non-zero: LAM_ERR_INTERRUPTED.  May be NULL */
} lam_model_writer;

/* Refuses a target that exists, unless it is an empty folder or, with `replace`, a model folder with nothing else
 * in it.  To be asked before any work. */
lam_status lam_model_writer_check(const char *dir, int replace);

/* Bytes of the data of parameter i. */
size_t lam_model_writer_bytes(const lam_model_writer *d, int i);

/* Writes the folder: whole or not at all.  A weight that is NaN or infinite, or becomes infinite in the new type, is
 * LAM_ERR_NUMERIC: nothing could be computed with such a model, and reading it is refused.  *files: how many files the weights took. */
lam_status lam_model_writer_run(const lam_model_writer *d, int *files);

#endif
