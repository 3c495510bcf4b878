/* cuda_stub.c -- stands in for src/ops/cuda in a build without CUDA: there is nothing to open. */
#include "ops/ops.h"

extern const lam_ops lam_ops_cuda;
int lam_cuda_present(void);

int lam_cuda_present(void)
{
    return 0;
}

static lam_status stub_open(lam_dev **out, const lam_dev_options *options)
{
    (void)options;
    *out = NULL;
    return lam_fail(LAM_ERR_UNSUPPORTED,
                    "device cuda: this build has no CUDA back-end: take the device cpu, or build "
                    "lamemo with CUDA (nvcc)");
}

const lam_ops lam_ops_cuda = {.name = "cuda", .summary = "not in this build", .open = stub_open};
