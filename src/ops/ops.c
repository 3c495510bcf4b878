/* ops.c -- finds a back-end by name.  The only file that knows which ones exist. */
#include "ops/ops.h"

#include <string.h>

extern const lam_ops lam_ops_ref, lam_ops_cpu, lam_ops_cuda;
int lam_cuda_present(void); /* is there a GPU, and the back-end for it? */

lam_status lam_ops_find(const lam_ops **out, const char *name)
{
    static const lam_ops *const all[] = {&lam_ops_ref, &lam_ops_cpu, &lam_ops_cuda};
    *out = NULL;
    if (strcmp(name, "auto") == 0)
        name = lam_cuda_present() ? "cuda" : "cpu";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(name, all[i]->name) == 0)
            *out = all[i];
    if (*out)
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "device %s: there are auto, ref, cpu and cuda", name);
}
