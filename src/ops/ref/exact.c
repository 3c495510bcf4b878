/* ref/exact.c -- the exact reference device and its table. */
#include "ops/ref/exact.h"

static lam_status open_exact(lam_dev **out, const lam_dev_options *options)
{
    LAM_TRY(lam_ref_open(out, &lam_ops_ref_exact, options));
    lam_dev *dev = *out;
    dev->act = dev->wide = LAM_F32;
    dev->exact = 1;
    dev->tolerance = 6e-2; /* weights have 8 bits */
    return LAM_OK;
}

#define ENTRY(name, argument) .name = lam_ref_exact_##name,

const lam_ops lam_ops_ref_exact = {
    LAM_EXACT_OPS(ENTRY) LAM_OTHER_OPS(LAM_INEXACT_ENTRY) LAM_SHARED_OPS(LAM_HOST_ENTRY) /* */
        .name = "ref",
    .summary = "exact, integers and float32, naive loops, one thread",
    .open = open_exact,
    LAM_REF_SERVICES,
};
