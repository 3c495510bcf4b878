/* cuda/blas.cuh -- cuBLASLt, loaded when a device is opened.
 *
 * The library is half a gigabyte and needed by nothing but matrix products on a GPU, so it is not
 * linked: a program with this back-end starts, quickly, on machines that do not have it. */
#ifndef LAM_OPS_CUDA_BLAS_CUH
#define LAM_OPS_CUDA_BLAS_CUH

#include "ops/cuda/cuda_int.cuh"

#include <cublasLt.h>

#define LAM_BLAS_FUNCTIONS(X)                                                                      \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtGetStatusName)                                                                       \
    X(cublasLtMatmul)                                                                              \
    X(cublasLtMatmulAlgoConfigGetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatrixLayoutSetAttribute)

/* What decides which algorithm is used.  Compared byte by byte: clear it first. */
struct lam_blas_key {
    int m, n, k, batch;
    int ta, tb, wide, beta, bias, relu; /* wide: C is float */
    size_t lda, ldb, ldc, step_a, step_b, step_c;
    int align_a, align_b, align_c; /* bytes */
};

struct lam_blas_plan {
    lam_blas_key key;
    int found; /* 0: an empty slot; 1: usable; -1: cuBLASLt cannot do it */
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c; /* a is our B: cuBLASLt thinks in columns */
    cublasLtMatmulAlgo_t algo;
};

enum {
    LAM_BLAS_PLANS = 1024,  /* slots of the hash table; when half full it is emptied */
    LAM_BLAS_BIAS = 1 << 20 /* elements of the longest bias that is fused */
};

struct lam_cuda_blas {
    void *library;
    cublasLtHandle_t handle;
    void *workspace; /* device memory */
    size_t workspace_bytes;
    void *bias; /* device memory: a bias rounded to bf16 */
    lam_blas_plan plans[LAM_BLAS_PLANS];
    int n_plans;
#define LAM_BLAS_POINTER(name) decltype(&::name) name;
    LAM_BLAS_FUNCTIONS(LAM_BLAS_POINTER)
#undef LAM_BLAS_POINTER
};

lam_status lam_cuda_blas_open(lam_cuda_dev *dev);
void lam_cuda_blas_close(lam_cuda_dev *dev);

/* The plan for this product, found now or before; its `found` says whether there is one. */
lam_blas_plan *lam_cuda_blas_plan(lam_cuda_dev *dev, const lam_blas_key *key);

#endif
