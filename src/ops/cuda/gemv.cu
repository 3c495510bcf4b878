/* cuda/gemv.cu -- y = x W^T for a few rows x (gemv.cuh) as kernels of their own: decoding a few streams. */
#include "ops/cuda/token.cuh"

enum {
    WARPS = 4,  /* a block of each multiprocessor for 512 columns */
    BLOCKS = 8, /* of a multiprocessor at a time */
    MOST_ROWS = 4,
    MANY = 1 << 16 /* columns from which a warp takes two at a time */
};

static __device__ __forceinline__ gemv_columns columns_of(int U)
{
    const int warp = (int)blockIdx.x * WARPS + (int)threadIdx.x / LAM_WARP;
    return {warp * U, 1, (int)gridDim.x * WARPS * U};
}

template <typename T, typename C, int M, int P, int U>
static __global__ void __launch_bounds__(WARPS *LAM_WARP) gemv(const __grid_constant__ gemv_call n)
{
    gemv_plain<T, C, M, P, U, LAM_ONCE>(n, columns_of(U), [] { lam_chain(); });
}

template <typename T, int M, int P>
static __global__ void __launch_bounds__(WARPS *LAM_WARP)
    normed_gemv(const __grid_constant__ gemv_call n)
{
    gemv_normed<T, M, P, 1, LAM_ONCE>(n, columns_of(1), [] { lam_chain(); });
}

template <typename T, typename C, int M>
static __global__ void __launch_bounds__(WARPS *LAM_WARP)
    long_gemv(const __grid_constant__ gemv_call n)
{
    gemv_long<T, C, M, LAM_ONCE>(n, columns_of(1), [] { lam_chain(); });
}

typedef void gemv_kernel(gemv_call);

/* U columns at a time. */
static void launch_columns(lam_cuda_dev *dev, const char *op, gemv_kernel *kernel, int U,
                           const gemv_call *n)
{
    const int blocks = lam_cuda_ceil(n->g.n, U * WARPS), most = dev->sms * BLOCKS;
    lam_cuda_launch(dev, op, kernel, {blocks < most ? blocks : most, WARPS * LAM_WARP, 0, true},
                    *n);
}

template <typename T, typename C, int M>
static void launch_rows(lam_cuda_dev *dev, const gemv_call *n)
{
    if (n->g.k <= 2 * GEMV_APART && M == 1 && n->g.n >= MANY)
        launch_columns(dev, "gemm", gemv < T, C, M, 2, M == 1 ? 2 : 1 >, 2, n);
    else if (n->g.k <= 2 * GEMV_APART)
        launch_columns(dev, "gemm", gemv<T, C, M, 2, 1>, 1, n);
    else if (n->g.k <= 4 * GEMV_APART)
        launch_columns(dev, "gemm", gemv<T, C, M, 4, 1>, 1, n);
    else
        launch_columns(dev, "gemm", long_gemv<T, C, M>, 1, n);
}

template <typename T, int M>
static void launch_normed(lam_cuda_dev *dev, const gemv_call *n)
{
    launch_columns(dev, "norm_gemm",
                   n->g.k <= 2 * GEMV_APART ? normed_gemv<T, M, 2> : normed_gemv<T, M, 4>, 1, n);
}

template <typename T, typename C>
static void launch(lam_cuda_dev *dev, const gemv_call *n)
{
    if (n->g.m == 1)
        launch_rows<T, C, 1>(dev, n);
    else if (n->g.m == 2)
        launch_rows<T, C, 2>(dev, n);
    else
        launch_rows<T, C, MOST_ROWS>(dev, n);
}

template <typename T>
static void launch_normed(lam_cuda_dev *dev, const gemv_call *n)
{
    if (n->g.m == 1)
        launch_normed<T, 1>(dev, n);
    else if (n->g.m == 2)
        launch_normed<T, 2>(dev, n);
    else
        launch_normed<T, MOST_ROWS>(dev, n);
}

void lam_cuda_start_gemv(lam_cuda_dev *dev, const gemv_call *n, bool norm)
{
    if (norm && dev->bf16)
        launch_normed<lam_bf16>(dev, n);
    else if (norm)
        launch_normed<float>(dev, n);
    else if (!dev->bf16)
        launch<float, float>(dev, n);
    else if (n->g.c_class == LAM_WIDE)
        launch<lam_bf16, float>(dev, n);
    else
        launch<lam_bf16, lam_bf16>(dev, n);
}

static bool takes(const lam_gemm *a)
{
    return a->m <= MOST_ROWS && a->batch == 1 && a->ta == LAM_KEEP && a->tb == LAM_FLIP &&
           a->drop.p == 0.0 && !a->h && (a->k | a->lda | a->ldb) % 8 == 0 && a->k >= 8 &&
           ((uintptr_t)a->a | (uintptr_t)a->b) % 16 == 0;
}

bool lam_cuda_gemv(lam_cuda_dev *dev, const lam_gemm *a)
{
    const gemv_call n = {*a, {}, 0, 0};
    if (!takes(a))
        return false;
    if (!lam_cuda_keep_gemv(dev, &n, false))
        lam_cuda_start_gemv(dev, &n, false);
    return true;
}

/* Rows of equal distance, which are A, and a norm that nothing is left out of. */
static bool takes_norm(const lam_norm_gemm *a, size_t x_row, size_t y_row)
{
    const lam_norm *n = &a->norm;
    const lam_gemm *g = &a->gemm;
    return takes(g) && g->c_class == LAM_ACT && g->k <= 4 * GEMV_APART && n->gain &&
           n->drop.p == 0.0 && n->ld == g->k && n->blocks * n->rows == g->m &&
           (n->blocks == 1 || n->rows == 1) && n->y.p == g->a && y_row == g->lda &&
           (x_row | y_row | (size_t)n->ld) % 8 == 0 &&
           ((uintptr_t)n->x.p | (uintptr_t)n->add | (uintptr_t)n->sum) % 16 == 0;
}

bool lam_cuda_gemv_norm(lam_cuda_dev *dev, const lam_norm_gemm *a)
{
    const lam_norm *n = &a->norm;
    const gemv_call call = {a->gemm, *n, n->rows == 1 ? n->x.step : (size_t)n->ld,
                            n->rows == 1 ? n->y.step : (size_t)n->ld};
    if (!takes_norm(a, call.x_row, call.y_row))
        return false;
    if (!lam_cuda_keep_gemv(dev, &call, true))
        lam_cuda_start_gemv(dev, &call, true);
    return true;
}
