/* ops.c -- finds a back-end by name, asks for its memory, and converts host numbers to its types.  The only file
 * that knows which back-ends exist. */
#include "ops/ops.h"

#include "core/budget.h"
#include "ops/cpu_levels.h"

#include <string.h>

extern const lam_ops lam_ops_ref, lam_ops_ref16, lam_ops_cuda;
int lam_cuda_present(void); /* is there a GPU, and the back-end for it? */

lam_status lam_ops_find(const lam_ops **out, const char *name)
{
    static const lam_ops *const all[] = {&lam_ops_ref, &lam_ops_ref16, &lam_ops_cuda};
    *out = NULL;
    if (strcmp(name, "auto") == 0)
        name = lam_cuda_present() ? "cuda" : "cpu";
    if (strcmp(name, "cpu") == 0)
        return lam_cpu_choose(out);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(name, all[i]->name) == 0)
            *out = all[i];
    if (*out)
        return LAM_OK;
    return lam_fail(LAM_ERR_ARG, "device %s: there are auto, ref, ref16, cpu and cuda", name);
}

lam_status lam_dev_ask(lam_dev *dev, const char *what, size_t bytes)
{
    return lam_budget_compare(what, bytes, bytes < LAM_BUDGET_SMALL ? bytes : dev->ops->left(dev),
                              lam_budget_limit(dev->max_memory));
}

size_t lam_host_left(lam_dev *dev)
{
    return lam_budget_left(dev->max_memory);
}

int lam_host_replay(lam_dev *dev, lam_graphs *graphs, uint64_t key)
{
    (void)dev, (void)graphs, (void)key;
    return 0;
}

void lam_round16(double *x, size_t n)
{
    uint16_t half[256];
    for (size_t at = 0; at < n; at += 256) {
        const size_t k = n - at < 256 ? n - at : 256;
        lam_convert(half, LAM_BF16, x + at, LAM_F64, k);
        lam_convert(x + at, LAM_F64, half, LAM_BF16, k);
    }
}

void lam_to_class(const lam_dev *dev, lam_class type, void *out, const void *in, lam_dtype in_type,
                  size_t n)
{
    lam_convert(out, lam_class_dtype(dev, type), in, in_type, n);
    if (type == LAM_ACT && dev->rounds)
        lam_round16(out, n);
}
