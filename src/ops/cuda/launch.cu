/* cuda/launch.cu -- what the one function that launches kernels (lam_cuda_launch in cuda_int.cuh) needs: the grid
 * of row-wise work, and the limit of shared memory. */
#include "ops/cuda/cuda_int.cuh"

#include <pthread.h>

lam_cuda_grid lam_cuda_grid_of(const lam_cuda_dev *dev, size_t cols, int rows, int blocks)
{
    unsigned x = 256;
    while (x > 1 && x / 2 >= cols)
        x /= 2;
    assert(blocks >= 1 && blocks <= LAM_CUDA_STREAMS);
    const unsigned y = 256 / x, wide = (unsigned)((cols + x - 1) / x);
    const unsigned tall = (unsigned)lam_cuda_ceil(rows, (int)y), deep = (unsigned)blocks;
    /* enough to fill the card several times over, then rows are walked */
    const unsigned most = (unsigned)dev->sms * 32 / wide / deep + 1;
    lam_cuda_grid g;
    g.grid = dim3(wide, tall < most ? tall : most, deep);
    g.block = dim3(x, y, 1);
    return g;
}

static pthread_mutex_t limits = PTHREAD_MUTEX_INITIALIZER;

/* The limit belongs to the kernel, whichever device set it, and a lower one would take away what another device
 * relies on. */
static cudaError_t raise_limit(const void *kernel, size_t bytes)
{
    cudaFuncAttributes now;
    pthread_mutex_lock(&limits);
    cudaError_t error = cudaFuncGetAttributes(&now, kernel);
    if (error == cudaSuccess && now.maxDynamicSharedSizeBytes < (int)bytes)
        error =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    pthread_mutex_unlock(&limits);
    return error;
}

/* A block has 48 KB of dynamic shared memory by default.  The driver is asked only when a launch of this device
 * needs more than any before; when the list is full, every time. */
cudaError_t lam_cuda_allow_shared(lam_cuda_dev *dev, const void *kernel, size_t bytes)
{
    int i = 0;
    if (bytes == 0)
        return cudaSuccess;
    while (i < dev->n_allowed && dev->allowed[i].kernel != kernel)
        i++;
    if (i < dev->n_allowed && bytes <= dev->allowed[i].bytes)
        return cudaSuccess;
    const cudaError_t error = raise_limit(kernel, bytes);
    if (error != cudaSuccess || i == LAM_CUDA_ALLOWED)
        return error;
    dev->allowed[i].kernel = kernel;
    dev->allowed[i].bytes = bytes;
    dev->n_allowed = i == dev->n_allowed ? i + 1 : dev->n_allowed;
    return cudaSuccess;
}
