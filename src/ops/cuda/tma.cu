/* cuda/tma.cu -- describes tensors to Hopper's copy engine. */
#include "ops/cuda/tma.cuh"

#include <cudaTypedefs.h>

typedef PFN_cuTensorMapEncodeTiled_v12000 encoder;

/* The driver's function, which the runtime library does not offer. */
static encoder find_encoder(void)
{
    void *found = NULL;
    cudaDriverEntryPointQueryResult how;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                               12000, cudaEnableDefault, &how);
#else
    const cudaError_t error =
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &how);
#endif
    if (error != cudaSuccess)
        (void)cudaGetLastError(); /* there are other ways: no launch is to report it */
    return error == cudaSuccess && how == cudaDriverEntryPointSuccess ? (encoder)found : NULL;
}

bool lam_cuda_tma_map(CUtensorMap *map, const void *p, const lam_tma_shape &s)
{
    static encoder encode = NULL; /* the same for every thread */
    if (!encode)
        encode = find_encoder();
    const cuuint64_t size[3] = {(cuuint64_t)s.cols, (cuuint64_t)s.rows, (cuuint64_t)s.streams};
    const cuuint64_t step = s.streams > 1 ? s.step : s.ld * (size_t)s.rows;
    const cuuint64_t strides[2] = {s.ld * sizeof(lam_bf16), step * sizeof(lam_bf16)};
    const cuuint32_t box[3] = {LAM_TMA_ROWS, LAM_TMA_ROWS, 1}, every[3] = {1, 1, 1};
    return encode && encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, (void *)(uintptr_t)p, size,
                            strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                            CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
