/* cuda/ortho.cu -- Muon's momentum, Newton-Schulz's polynomial and rows of one length on the GPU.
 *
 * ref/ortho.c says what is computed.  A block takes one tile of one matrix.  The norm of a matrix
 * needs all its tiles, so the first pass moves the momentum on and leaves one sum of squares (double)
 * per tile in scratch; the second adds those of its matrix, in the same order in every block, and
 * writes x from a u that it computes again: cheaper than keeping it.  The clip factor comes from
 * device memory, as in optim.cu: the host never waits. */
#include "ops/cuda/cuda_int.cuh"

enum {
    BLOCK = 256,
    TILE = 8192,        /* elements of a block's work */
    MAX_MATRICES = 240, /* of one launch: an argument must stay below 4096 bytes */
    MAX_TILES = 1 << 16 /* of one launch: a matrix of LAM_CUDA_ROW by LAM_MAX_WIDTH elements */
};

struct begin_args {
    int tiles; /* of one matrix */
    size_t size;
    float beta, clip;
    const float *norm, *grad;
    float *m;
    void *x;
    double *sums; /* [matrices][tiles] */
    size_t offset[MAX_MATRICES];
};

static __device__ __forceinline__ float clip_of(const begin_args &a, float norm)
{
    return a.clip == 0.0f ? 1.0f : fminf(1.0f, a.clip / (norm + 1e-6f));
}

/* grid: (tiles, matrices) */
static __global__ void __launch_bounds__(BLOCK) move_on(const __grid_constant__ begin_args a)
{
    __shared__ double smem[LAM_WARP];
    const float norm = *a.norm, clip = clip_of(a, norm);
    const size_t at = a.offset[blockIdx.y], first = (size_t)blockIdx.x * TILE;
    const size_t end = first + TILE < a.size ? first + TILE : a.size;
    double sum = 0.0;
    if (isfinite(norm)) /* the same for all: no barrier is missed */
#pragma unroll 4
        for (size_t i = first + threadIdx.x; i < end; i += BLOCK) {
            const float g = clip * a.grad[at + i], m = a.beta * a.m[at + i] + g;
            const float u = g + a.beta * m;
            a.m[at + i] = m;
            sum += (double)u * (double)u;
        }
    sum = lam_block_sum(sum, smem);
    if (threadIdx.x == 0)
        a.sums[(size_t)blockIdx.y * (size_t)a.tiles + blockIdx.x] = sum;
}

template <typename T>
static __global__ void __launch_bounds__(BLOCK) scale(const __grid_constant__ begin_args a)
{
    __shared__ double smem[LAM_WARP];
    const float clip = clip_of(a, *a.norm);
    const double *sums = a.sums + (size_t)blockIdx.y * (size_t)a.tiles;
    double squares = 0.0;
    for (int i = (int)threadIdx.x; i < a.tiles; i += BLOCK)
        squares += sums[i];
    squares = lam_block_sum(squares, smem);
    const float inverse = squares > 0.0 ? (float)(1.0 / sqrt(squares)) : 0.0f;

    const size_t at = a.offset[blockIdx.y], first = (size_t)blockIdx.x * TILE;
    const size_t end = first + TILE < a.size ? first + TILE : a.size;
    T *x = (T *)a.x + (size_t)blockIdx.y * a.size;
#pragma unroll 4
    for (size_t i = first + threadIdx.x; i < end; i += BLOCK) {
        const float u = clip * a.grad[at + i] + a.beta * a.m[at + i];
        /* without a norm u may be anything; 0 * infinity is not 0 */
        x[i] = lam_act<T>(squares > 0.0 ? u * inverse : 0.0f);
    }
}

size_t lam_cuda_ortho_scratch(void)
{
    return MAX_TILES * sizeof(double);
}

extern "C" void lam_cuda_ortho_begin(lam_dev *dev, const lam_ortho_begin *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    const size_t tiles = (a->size + TILE - 1) / TILE, act = cuda->bf16 ? 2 : 4;
    if (tiles == 0)
        return;
    if (tiles > MAX_TILES) {
        lam_cuda_note_text(cuda, "ortho_begin", "a matrix has too many elements");
        return;
    }
    const int fit = (int)(MAX_TILES / tiles), most = fit < MAX_MATRICES ? fit : MAX_MATRICES;
    for (int from = 0; from < a->count; from += most) {
        const int count = a->count - from < most ? a->count - from : most;
        begin_args args;
        args.tiles = (int)tiles;
        args.size = a->size;
        args.beta = (float)a->beta;
        args.clip = (float)a->clip;
        args.norm = (const float *)a->norm;
        args.grad = (const float *)a->grad;
        args.m = (float *)a->m;
        args.x = (char *)a->x + (size_t)from * a->size * act;
        args.sums = (double *)lam_cuda_scratch(cuda, (size_t)count * tiles * sizeof(double));
        for (int i = 0; i < MAX_MATRICES; i++)
            args.offset[i] = i < count ? a->offset[from + i] : 0;
        const dim3 grid((unsigned)tiles, (unsigned)count);
        lam_cuda_launch(cuda, "ortho_begin", move_on, {grid, BLOCK}, args);
        lam_cuda_launch(cuda, "ortho_begin", cuda->bf16 ? scale<lam_bf16> : scale<float>,
                        {grid, BLOCK}, args);
    }
}

/* ---- the polynomial -------------------------------------------------------------------------- */

struct mix_args {
    int n;
    float a, b, c;
    bool aligned; /* rows begin on 16-byte borders */
    const void *A, *P;
    void *q;
};

/* A thread owns eight columns of every so many rows of matrix blockIdx.z. */
template <typename T>
static __global__ void mix(mix_args a)
{
    const int from = 8 * (int)(blockIdx.x * blockDim.x + threadIdx.x), n = min(a.n - from, 8);
    if (n <= 0)
        return;
    for (int row = (int)(blockIdx.y * blockDim.y + threadIdx.y); row < a.n;
         row += (int)(gridDim.y * blockDim.y)) {
        const size_t at = ((size_t)blockIdx.z * a.n + row) * a.n + from;
        const lam_f8 A = lam_load8_n((const T *)a.A + at, n, a.aligned);
        const lam_f8 P = lam_load8_n((const T *)a.P + at, n, a.aligned);
        lam_f8 q;
#pragma unroll
        for (int i = 0; i < 8; i++)
            q.v[i] = (from + i == row ? a.a : 0.0f) + a.b * A.v[i] + a.c * P.v[i];
        lam_store8_n((T *)a.q + at, q, n, a.aligned);
    }
}

extern "C" void lam_cuda_ortho_mix(lam_dev *dev, const lam_ortho_mix *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    if (a->count == 0 || a->n == 0)
        return;
    const uintptr_t bits = (uintptr_t)a->A | (uintptr_t)a->P | (uintptr_t)a->q;
    const mix_args args = {
        a->n, (float)a->a, (float)a->b, (float)a->c, bits % 16 == 0 && a->n % 8 == 0,
        a->A, a->P,        a->q};
    const lam_cuda_grid g = lam_cuda_grid_of(cuda, lam_cuda_ceil(a->n, 8), a->n, a->count);
    lam_cuda_launch(cuda, "ortho_mix", cuda->bf16 ? mix<lam_bf16> : mix<float>, g, args);
}

/* ---- rows of one length ---------------------------------------------------------------------- */

struct even_args {
    int rows, cols;
    float length;
    float *x;
    size_t offset[MAX_MATRICES];
};

/* A warp owns a row; grid: (rows of BLOCK / LAM_WARP warps, matrices). */
static __global__ void __launch_bounds__(BLOCK) even(const __grid_constant__ even_args a)
{
    const int row = (int)((blockIdx.x * BLOCK + threadIdx.x) / LAM_WARP);
    if (row >= a.rows)
        return; /* whole warps leave */
    float *x = a.x + a.offset[blockIdx.y] + (size_t)row * (size_t)a.cols;
    const int lane = (int)threadIdx.x % LAM_WARP;
    double squares = 0.0;
    for (int i = lane; i < a.cols; i += LAM_WARP)
        squares += (double)x[i] * (double)x[i];
    squares = lam_warp_sum(squares);
    const float factor = (float)fmin(a.length / sqrt(squares), LAM_EVEN_MOST);
    for (int i = lane; i < a.cols; i += LAM_WARP)
        x[i] *= factor;
}

extern "C" void lam_cuda_ortho_even(lam_dev *dev, const lam_ortho_even *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    if (a->rows == 0 || a->cols == 0)
        return;
    for (int from = 0; from < a->count; from += MAX_MATRICES) {
        const int count = a->count - from < MAX_MATRICES ? a->count - from : MAX_MATRICES;
        even_args args;
        args.rows = a->rows;
        args.cols = a->cols;
        args.length = (float)a->length;
        args.x = (float *)a->x;
        for (int k = 0; k < count; k++)
            args.offset[k] = a->offset[from + k];
        const dim3 grid((unsigned)lam_cuda_ceil(a->rows, BLOCK / LAM_WARP), (unsigned)count);
        lam_cuda_launch(cuda, "ortho_even", even, {grid, BLOCK}, args);
    }
}
