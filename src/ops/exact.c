/* exact.c -- what exact devices have in the place of operations that only exist in floating point.
 *
 * Nothing reaches them: a stack that trains or measures attention, and a memory without exact arithmetic, are
 * refused before (model/model.c, model/stack.c).  Where one does, that is a bug, told loudly. */
#include "ops/ops.h"

#include "core/log.h"

#include <assert.h>

static void refuse(const char *name)
{
    lam_log(LAM_LOG_ERROR, "operation %s has no exact arithmetic; its result is missing", name);
    assert(0 && "an operation without exact arithmetic was called");
}

#define REFUSE(name, argument)                                                                     \
    void lam_inexact_##name(lam_dev *dev, const argument *a)                                       \
    {                                                                                              \
        (void)dev, (void)a;                                                                        \
        refuse(#name);                                                                             \
    }
LAM_OTHER_OPS(REFUSE)
