/* cuda/gemm_few.cu -- y = x W^T for up to 64 rows x in bf16: decoding many streams.
 *
 * As with fewer rows (gemv.cu) the time is that of a chain of dependent loads, here with products on tensor cores.  A
 * block makes 16 or 32 rows by 8 or 16 columns of y; its warps share the terms of the sums, each with every eighth stretch of
 * 32 terms, and are added up in order at the end.  So each warp reads its operands from memory straight into registers:
 * W before the work in front has ended (lam_chain), x as soon as it has.
 *
 * A lane reads 16 bytes, eight neighbours, where the layout of the instruction (ptx.cuh) wants pairs eight apart.  It does not
 * matter which terms stand where, as long as both operands agree: of a lane's eight the first four are its terms of
 * the first product, the others of the second. */
#include "ops/cuda/gemm_int.cuh"
#include "ops/cuda/ptx.cuh"

enum {
    WARPS = 8,
    TERMS = 32, /* of a stretch */
    MOST_ROWS = 64,
    MOST_COLUMNS = 8192, /* beyond, the library's larger tiles read x less often */
    MOST_STRETCHES = 10, /* of a warp: 2560 terms */
    PAIR = 2             /* stretches of x that are asked for at a time */
};

typedef lam_raw8<lam_bf16> piece;

/* 8 COLS columns of W from col on, this lane's part of stretch `s`. */
template <int COLS>
static __device__ __forceinline__ void fetch_weights(piece (&out)[COLS], const lam_gemm &a, int col,
                                                     int s)
{
    const int lane = (int)threadIdx.x % LAM_WARP, from = s * TERMS + lane % 4 * 8;
#pragma unroll
    for (int i = 0; i < COLS; i++) {
        const int c = col + 8 * i + lane / 4;
        out[i] = lam_ask8((const lam_bf16 *)a.b + (size_t)c * a.ldb + from, c < a.n && from < a.k);
    }
}

/* 16 ROWS rows of x from row on, likewise. */
template <int ROWS>
static __device__ __forceinline__ void fetch_rows(piece (&out)[2 * ROWS], const lam_gemm &a,
                                                  int row, int s)
{
    const int lane = (int)threadIdx.x % LAM_WARP, from = s * TERMS + lane % 4 * 8;
#pragma unroll
    for (int i = 0; i < 2 * ROWS; i++) {
        const int r = row + 8 * i + lane / 4;
        out[i] = lam_ask8((const lam_bf16 *)a.a + (size_t)r * a.lda + from, r < a.m && from < a.k);
    }
}

template <int ROWS, int COLS>
static __device__ __forceinline__ void multiply(float (&sum)[ROWS][COLS][4],
                                                const piece (&x)[2 * ROWS], const piece (&w)[COLS])
{
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const uint4 top = x[2 * i].v[0], low = x[2 * i + 1].v[0];
        const uint32_t first[4] = {top.x, low.x, top.y, low.y};
        const uint32_t second[4] = {top.z, low.z, top.w, low.w};
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            lam_mma(sum[i][j], first, w[j].v[0].x, w[j].v[0].y);
            lam_mma(sum[i][j], second, w[j].v[0].z, w[j].v[0].w);
        }
    }
}

/* Where the sums of a warp lie in shared memory: rows of neighbours, a little apart. */
template <int COLS>
struct sums {
    enum { PITCH = 8 * COLS + 4 };
};

template <int ROWS, int COLS>
static __device__ __forceinline__ void put_sums(float *smem, const float (&sum)[ROWS][COLS][4])
{
    const int lane = (int)threadIdx.x % LAM_WARP, warp = (int)threadIdx.x / LAM_WARP;
    float *to = smem + warp * 16 * ROWS * sums<COLS>::PITCH;
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                to[(16 * i + x / 2 * 8 + lane / 4) * sums<COLS>::PITCH + 8 * j + lane % 4 * 2 +
                   x % 2] = sum[i][j][x];
}

/* Adds the warps up, and what comes behind the product.  `bias`: of the column, the same for all of a thread's. */
template <typename C, int ROWS, int COLS>
static __device__ __forceinline__ void finish(const lam_gemm &a, const float *smem, int row,
                                              int col, float bias)
{
    enum { ALL = 16 * ROWS * 8 * COLS, STEP = WARPS * LAM_WARP };
#pragma unroll
    for (int i = 0; i < (ALL + STEP - 1) / STEP; i++) {
        const int x = (int)threadIdx.x + i * STEP, r = x / (8 * COLS), c = x % (8 * COLS);
        if (x >= ALL || row + r >= a.m || col + c >= a.n)
            continue;
        C *to = (C *)a.c + (size_t)(row + r) * a.ldc + col + c;
        float y = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            y += smem[(w * 16 * ROWS + r) * sums<COLS>::PITCH + c];
        y += a.beta != 0.0 ? lam_float(*to) : 0.0f;
        y += bias;
        *to = lam_act<C>(a.relu && y < 0.0f ? 0.0f : y); /* a NaN stays one */
    }
}

/* S: stretches of a warp, at most. */
template <typename C, int ROWS, int COLS, int S>
static __global__ void __launch_bounds__(WARPS *LAM_WARP)
    gemm_few(const __grid_constant__ lam_gemm a)
{
    __shared__ float smem[WARPS * 16 * ROWS * sums<COLS>::PITCH];
    const int warp = (int)threadIdx.x / LAM_WARP;
    const int col = (int)blockIdx.x * 8 * COLS, row = (int)blockIdx.y * 16 * ROWS;
    const int column = col + (int)threadIdx.x % (8 * COLS);
    piece w[S][COLS], x[2][PAIR][2 * ROWS];
    float sum[ROWS][COLS][4] = {};
#pragma unroll
    for (int s = 0; s < S; s++)
        fetch_weights(w[s], a, col, warp + s * WARPS);
    const float bias = a.bias && column < a.n ? ((const float *)a.bias)[column] : 0.0f;
    lam_chain();
#pragma unroll
    for (int s = -PAIR; s < S; s += PAIR) {
#pragma unroll
        for (int i = 0; i < PAIR && s + PAIR < S; i++) /* the next pair, behind this one */
            fetch_rows<ROWS>(x[(s + PAIR) / PAIR % 2][i], a, row, warp + (s + PAIR + i) * WARPS);
#pragma unroll
        for (int i = 0; i < PAIR && s >= 0; i++)
            multiply<ROWS, COLS>(sum, x[s / PAIR % 2][i], w[s + i]);
    }
    put_sums<ROWS, COLS>(smem, sum);
    __syncthreads();
    finish<C, ROWS, COLS>(a, smem, row, col, bias);
}

template <typename C, int ROWS, int COLS>
static void launch_tile(lam_cuda_dev *dev, const lam_gemm *a)
{
    const dim3 grid((unsigned)lam_cuda_ceil(a->n, 8 * COLS),
                    (unsigned)lam_cuda_ceil(a->m, 16 * ROWS));
    const auto kernel = a->k <= 2 * WARPS * TERMS   ? gemm_few<C, ROWS, COLS, 2>
                        : a->k <= 8 * WARPS * TERMS ? gemm_few<C, ROWS, COLS, 8>
                                                    : gemm_few<C, ROWS, COLS, MOST_STRETCHES>;
    lam_cuda_launch(dev, "gemm", kernel, {grid, WARPS * LAM_WARP, 0, true}, *a);
}

/* The largest tiles of which there is one for each multiprocessor. */
template <typename C>
static void launch(lam_cuda_dev *dev, const lam_gemm *a)
{
    const int rows = lam_cuda_ceil(a->m, 32), wide = lam_cuda_ceil(a->n, 16) * rows;
    if (a->m <= 16)
        launch_tile<C, 1, 1>(dev, a);
    else if (wide < dev->sms)
        launch_tile<C, 2, 1>(dev, a);
    else
        launch_tile<C, 2, 2>(dev, a);
}

bool lam_cuda_gemm_few(lam_cuda_dev *dev, const lam_gemm *a)
{
    if (!dev->bf16 || a->m > MOST_ROWS || a->n > MOST_COLUMNS ||
        a->k > MOST_STRETCHES * WARPS * TERMS || a->k < 8 || a->batch != 1 || a->ta != LAM_KEEP ||
        a->tb != LAM_FLIP || a->drop.p != 0.0 || (a->k | a->lda | a->ldb) % 8 != 0 ||
        ((uintptr_t)a->a | (uintptr_t)a->b) % 16 != 0)
        return false;
    if (a->c_class == LAM_WIDE)
        launch<float>(dev, a);
    else
        launch<lam_bf16>(dev, a);
    return true;
}
