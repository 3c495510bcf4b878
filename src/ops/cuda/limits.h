/* cuda/limits.h -- the largest shapes this back-end takes, in plain C, so that a test without a GPU can
 * ask (limits_test.c).
 *
 * What a batch or a model chooses is looked at once, by reserve(), and refused with a message; the
 * operations that follow take it as promised.  Only the width of a row is not known there:
 * norm_team.cuh looks at that. */
#ifndef LAM_OPS_CUDA_LIMITS_H
#define LAM_OPS_CUDA_LIMITS_H

#include "ops/ops.h"

enum {
    LAM_CUDA_STREAMS = 65535, /* a grid's blocks in z */
    LAM_CUDA_HEADS = 65535,   /* a grid's blocks in y */
    LAM_CUDA_HEAD = 2048,     /* columns of a head: eight a thread, in one block (memory.cu) */
    LAM_CUDA_ROW = 8192 /* columns of a row: they stay in a block's registers (norm_team.cuh) */
};

static inline lam_status lam_cuda_check(const lam_work *w)
{
    if (w->B > LAM_CUDA_STREAMS)
        return lam_fail(LAM_ERR_UNSUPPORTED, "device cuda: %d streams (batch size), at most %d",
                        w->B, (int)LAM_CUDA_STREAMS);
    if (w->H > LAM_CUDA_HEADS)
        return lam_fail(LAM_ERR_UNSUPPORTED, "device cuda: %d heads, at most %d", w->H,
                        (int)LAM_CUDA_HEADS);
    if (w->K > LAM_CUDA_HEAD)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "device cuda: heads (d_head) of %d columns, at most %d", w->K,
                        (int)LAM_CUDA_HEAD);
    return LAM_OK;
}

#endif
