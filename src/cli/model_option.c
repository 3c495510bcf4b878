/* model_option.c -- see model_option.h. */
#include "cli/model_option.h"

#include <limits.h>

lam_status lam_model_required(const char *model)
{
    char folder[PATH_MAX];
    if (model)
        return LAM_OK;
    if (lam_boxed_find(folder, sizeof folder, LAM_BOXED))
        return lam_fail(LAM_ERR_ARG, "--model is missing: a folder, or " LAM_BOXED
                                     ", the model that comes with lamemo");
    return lam_fail(LAM_ERR_ARG, "--model is missing");
}

lam_status lam_model_remembers(const lam_model *model, int mem_len)
{
    if (mem_len > 0 && !lam_mem_has(model->mem, LAM_REMEMBERS))
        return lam_fail(LAM_ERR_ARG, "--mem-len %d: memory %s has none to be longer", mem_len,
                        model->cfg.memory);
    return LAM_OK;
}
