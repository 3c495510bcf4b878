/* cuda/gemm_int.cuh -- the ways of a product that gemm.cu puts together. */
#ifndef LAM_OPS_CUDA_GEMM_INT_CUH
#define LAM_OPS_CUDA_GEMM_INT_CUH

#include "ops/cuda/cuda_int.cuh"

/* A product with its epilogue fused, on Hopper (gemm_sm90.cu); false: not done. */
bool lam_cuda_gemm_sm90(lam_cuda_dev *dev, const lam_gemm *a);

/* A product of a few rows (decoding), where that is faster than cuBLASLt (gemv.cu); false: not done. */
bool lam_cuda_gemv(lam_cuda_dev *dev, const lam_gemm *a);
bool lam_cuda_gemv_norm(lam_cuda_dev *dev, const lam_norm_gemm *a);
/* The same of some more rows in bf16 (gemm_few.cu). */
bool lam_cuda_gemm_few(lam_cuda_dev *dev, const lam_gemm *a);

/* Separate products, finished, by cuBLASLt where it can (gemm.cu). */
void lam_cuda_gemm_each(lam_cuda_dev *dev, const lam_gemm *a);

/* All products into one C (gemm_sum.cu). */
void lam_cuda_gemm_sum(lam_cuda_dev *dev, const lam_gemm *a);

/* Separate products by a plain loop, unfinished; C = drop(relu(C + bias)) (gemm_plain.cu). */
void lam_cuda_gemm_multiply(lam_cuda_dev *dev, const lam_gemm *a);
void lam_cuda_gemm_finish(lam_cuda_dev *dev, const lam_gemm *a);

#endif
