/* device.c -- see device.h. */
#include "cli/device.h"

#include "core/log.h"

#include <string.h>

const char *const lam_precisions[] = {"bf16", "float32", NULL};
const char *const lam_numerics[] = {"fast", "exact", NULL};
const char *const lam_stores[] = {"auto", "float32", "bf16", "int8", NULL};
const char *const lam_cache_stores[] = {"auto", "float32", "bf16", NULL};

lam_storage lam_storage_of(const lam_storage_options *options)
{
    return (lam_storage){.weights = (lam_store)options->weights,
                         .cache = (lam_store)options->cache};
}

lam_status lam_device_open(lam_dev **out, const lam_device_options *options)
{
    const lam_ops *ops = NULL;
    *out = NULL;
    if (strcmp(options->device, "gpu") == 0)
        return lam_fail(LAM_ERR_ARG, "--device gpu: GPUs are used with --device cuda");
    LAM_TRY(lam_ops_find(&ops, options->device));
    LAM_TRY(ops->open(out, &(lam_dev_options){.threads = options->threads,
                                              .full_prec = options->precision == 1,
                                              .exact = options->numerics == 1,
                                              .card = options->card}));
    lam_log(LAM_LOG_DEBUG, "device %s: %s", ops->name, ops->summary);
    return LAM_OK;
}
