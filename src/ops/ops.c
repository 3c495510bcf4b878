/* ops.c -- finds a back-end by name.  The only file that knows which ones exist. */
#include "ops/ops.h"

#include <string.h>

extern const lam_ops lam_ops_ref, lam_ops_cpu;

lam_status lam_ops_find(const lam_ops **out, const char *name)
{
    static const lam_ops *const all[] = {&lam_ops_ref, &lam_ops_cpu};
    *out = NULL;
    if (strcmp(name, "auto") == 0)
        name = "cpu";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(name, all[i]->name) == 0)
            *out = all[i];
    if (*out)
        return LAM_OK;
    if (strcmp(name, "cuda") == 0)
        return lam_fail(LAM_ERR_UNSUPPORTED, "device cuda: this build has no CUDA back-end");
    return lam_fail(LAM_ERR_ARG, "device %s: there are auto, ref, cpu and cuda", name);
}
