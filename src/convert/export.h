/* export.h -- writes a model folder with its weights in another type, or divided into shards.
 *
 * Names and shapes are already those of the authors' PyTorch modules. The result is a model folder that
 * lamemo reads too. */
#ifndef LAM_CONVERT_EXPORT_H
#define LAM_CONVERT_EXPORT_H

#include "core/status.h"
#include "core/tensor.h"

typedef struct lam_export_options {
    const char *model, *out; /* a model or run folder; the new folder */
    lam_dtype dtype;         /* LAM_F32, LAM_F16, LAM_BF16 or LAM_I8 */
    int64_t max_shard;       /* most bytes of a weights file; 0: one file */
    int replace;
    int hf;            /* for Hugging Face's transformers as well: convert/huggingface.h */
    int (*stop)(void); /* non-zero: leave nothing behind and return LAM_ERR_INTERRUPTED; or NULL */
} lam_export_options;

typedef struct lam_export_result {
    int tensors, files;
    size_t elements, bytes; /* bytes: of the weights' data */
} lam_export_result;

lam_status lam_export(const lam_export_options *options, lam_export_result *result);

#endif
