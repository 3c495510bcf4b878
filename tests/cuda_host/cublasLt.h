/* cuda_host/cublasLt.h -- as much of cuBLASLt as src/ops/cuda uses: products by plain loops.
 *
 * cuda.sed has blas.cu take these functions instead of those of a library that it opens. */
#ifndef LAM_CUDA_HOST_CUBLASLT_H
#define LAM_CUDA_HOST_CUBLASLT_H

#include "cuda_bf16.h"

#define CUBLAS_VER_MAJOR 0

enum cudaDataType { CUDA_R_32F, CUDA_R_16BF };
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_SUPPORTED };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasLtEpilogue_t {
    CUBLASLT_EPILOGUE_DEFAULT,
    CUBLASLT_EPILOGUE_RELU,
    CUBLASLT_EPILOGUE_BIAS,
    CUBLASLT_EPILOGUE_RELU_BIAS /* both bits */
};
enum { CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET };
enum cublasLtMatmulDescAttributes_t {
    CUBLASLT_MATMUL_DESC_TRANSA,
    CUBLASLT_MATMUL_DESC_TRANSB,
    CUBLASLT_MATMUL_DESC_EPILOGUE,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER,
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE
};
enum cublasLtMatmulPreferenceAttributes_t {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
};
enum { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, CUBLASLT_MATMUL_TILE_128x160, CUBLAS_COMPUTE_32F };
enum { CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_SPLITK_NUM };

namespace emu
{

struct layout { /* columns of neighbours */
    cudaDataType type;
    size_t rows, cols, ld;
    int batch;
    int64_t step;
};

struct product {
    cublasOperation_t ta, tb;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    cudaDataType bias_type;
};

inline float read(const void *p, cudaDataType type, size_t i)
{
    return type == CUDA_R_32F ? ((const float *)p)[i]
                              : __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}

/* Matrix `number` of a batch as rows of k neighbours, turned or not. */
inline std::vector<float> rows_of(const void *p, const layout &l, bool turn, int number)
{
    const size_t n = turn ? l.rows : l.cols, k = turn ? l.cols : l.rows;
    const size_t step_n = turn ? 1 : l.ld, step_k = turn ? l.ld : 1;
    std::vector<float> out(n * k);
    for (size_t i = 0; i < n * k; i++)
        out[i] = read(p, l.type, (size_t)(number * l.step) + i / k * step_n + i % k * step_k);
    return out;
}

inline void multiply(const product &p, const void *a, const layout &la, const void *b,
                     const layout &lb, float beta, void *c, const layout &lc, int number)
{
    const size_t k = p.ta == CUBLAS_OP_N ? la.cols : la.rows;
    const std::vector<float> left = rows_of(a, la, p.ta == CUBLAS_OP_N, number);
    const std::vector<float> right = rows_of(b, lb, p.tb == CUBLAS_OP_T, number);
    for (size_t j = 0; j < lc.cols; j++)
        for (size_t i = 0; i < lc.rows; i++) {
            const size_t at = (size_t)(number * lc.step) + j * lc.ld + i;
            float sum = beta == 0.0f ? 0.0f : beta * read(c, lc.type, at);
            for (size_t t = 0; t < k; t++)
                sum += left[i * k + t] * right[j * k + t];
            if (p.epilogue & CUBLASLT_EPILOGUE_BIAS)
                sum += read(p.bias, p.bias_type, i);
            if (p.epilogue & CUBLASLT_EPILOGUE_RELU && sum < 0.0f)
                sum = 0.0f;
            if (lc.type == CUDA_R_32F)
                ((float *)c)[at] = sum;
            else
                ((__nv_bfloat16 *)c)[at] = __float2bfloat16_rn(sum);
        }
}

} // namespace emu

typedef void *cublasLtHandle_t, *cublasLtMatmulPreference_t;
typedef emu::layout *cublasLtMatrixLayout_t;
typedef emu::product *cublasLtMatmulDesc_t;
typedef int cublasLtMatmulAlgo_t;
struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
};

/* What nothing depends on here. */
#define NOTHING(name, ...)                                                                         \
    inline cublasStatus_t name(__VA_ARGS__)                                                        \
    {                                                                                              \
        return CUBLAS_STATUS_SUCCESS;                                                              \
    }
NOTHING(cublasLtCreate, cublasLtHandle_t *)
NOTHING(cublasLtDestroy, cublasLtHandle_t)
NOTHING(cublasLtMatmulPreferenceCreate, cublasLtMatmulPreference_t *)
NOTHING(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t)
NOTHING(cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreference_t, int, const void *, size_t)
NOTHING(cublasLtMatmulAlgoConfigGetAttribute, cublasLtMatmulAlgo_t *, int, void *, size_t, size_t *)
#undef NOTHING

inline const char *cublasLtGetStatusName(cublasStatus_t)
{
    return "CUBLAS_STATUS_NOT_SUPPORTED";
}

inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                                 uint64_t rows, uint64_t cols, int64_t ld)
{
    *out = new emu::layout{type, rows, cols, (size_t)ld, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    delete l;
    return CUBLAS_STATUS_SUCCESS;
}

inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, int name,
                                                       const void *value, size_t bytes)
{
    void *const at[] = {&l->batch, &l->step};
    memcpy(at[name], value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, int, cudaDataType)
{
    *out = new emu::product();
    return CUBLAS_STATUS_SUCCESS;
}

inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}

inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p,
                                                     cublasLtMatmulDescAttributes_t name,
                                                     const void *value, size_t bytes)
{
    void *const at[] = {&p->ta, &p->tb, &p->epilogue, &p->bias, &p->bias_type};
    memcpy(at[name], value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatmulPreference_t, int,
                                                     cublasLtMatmulHeuristicResult_t *out, int *n)
{
    out->algo = 0;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t p, const void *,
                                     const void *a, cublasLtMatrixLayout_t la, const void *b,
                                     cublasLtMatrixLayout_t lb, const void *beta, const void *,
                                     cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t ld,
                                     const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t s)
{
    s->add([=, p = *p, la = *la, lb = *lb, ld = *ld, beta = *(const float *)beta] {
        for (int i = 0; i < ld.batch; i++)
            emu::multiply(p, a, la, b, lb, beta, d, ld, i);
    });
    return CUBLAS_STATUS_SUCCESS;
}

#endif
