/* device.c -- see device.h. */
#include "cli/device.h"

#include "core/log.h"

const char *const lam_precisions[] = {"bf16", "float32", NULL};

lam_status lam_device_open(lam_dev **out, const lam_device_options *options)
{
    const lam_ops *ops = NULL;
    *out = NULL;
    LAM_TRY(lam_ops_find(&ops, options->device));
    LAM_TRY(ops->open(out, &(lam_dev_options){.threads = options->threads,
                                              .full_prec = options->precision == 1}));
    lam_log(LAM_LOG_DEBUG, "device %s: %s", ops->name, ops->summary);
    return LAM_OK;
}
