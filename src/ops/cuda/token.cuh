/* token.cuh -- operations of a decoded token that token.cu joins, and how each is started alone. */
#ifndef LAM_OPS_CUDA_TOKEN_CUH
#define LAM_OPS_CUDA_TOKEN_CUH

#include "ops/cuda/attn_next.cuh"
#include "ops/cuda/gemv.cuh"

/* Keeps the operation, to be started with those that follow it; false: it has to be started now. */
bool lam_cuda_keep_gemv(lam_cuda_dev *dev, const gemv_call *n, bool norm);
bool lam_cuda_keep_next(lam_cuda_dev *dev, const next_call *n);

void lam_cuda_start_gemv(lam_cuda_dev *dev, const gemv_call *n, bool norm); /* gemv.cu */
void lam_cuda_start_next(lam_cuda_dev *dev, const next_call *n);            /* decode.cu */

#endif
