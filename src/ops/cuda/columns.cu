/* cuda/columns.cu -- column sums, alone and behind ReLU's gradient.
 *
 * ref/rowwise.c says what is computed.  A column sum is taken by blocks that own 256 columns and a chunk
 * of rows; each leaves a line in scratch, and fold() adds the lines in order.  The number of chunks
 * depends on the shape and the card alone. */
#include "ops/cuda/cuda_int.cuh"

enum {
    COLUMNS = 8 * LAM_WARP, /* of a block that sums columns */
    WARPS = 8,
    FOLDERS = 32,     /* warps of a block that adds lines */
    FOLD_AHEAD = 8,   /* lines a thread fetches before it adds the first */
    AHEAD = 4,        /* rows a thread fetches before it works on the first */
    MIN_CHUNK = 64,   /* rows */
    BLOCKS_PER_SM = 8 /* wanted for column sums */
};

/* Sum blockIdx.y of a set; warps take every 32nd line, then meet. */
static __global__ void fold(lam_cuda_sums s)
{
    __shared__ float smem[FOLDERS][LAM_WARP];
    const int col = (int)(blockIdx.x * LAM_WARP + threadIdx.x);
    const float *lines = s.lines + blockIdx.y * s.apart + col;
    float *out = s.out[blockIdx.y];
    if (!out)
        return;
    float sum = 0.0f;
    for (int i = (int)threadIdx.y; col < s.width && i < s.n; i += FOLDERS * FOLD_AHEAD) {
        float x[FOLD_AHEAD];
#pragma unroll
        for (int j = 0; j < FOLD_AHEAD; j++)
            x[j] = i + j * FOLDERS < s.n ? lines[(size_t)(i + j * FOLDERS) * s.step] : 0.0f;
#pragma unroll
        for (int j = 0; j < FOLD_AHEAD; j++)
            sum += x[j];
    }
    smem[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || col >= s.width)
        return;
    sum = 0.0f;
    for (int i = 0; i < FOLDERS; i++)
        sum += smem[i][threadIdx.x];
    out[col] += sum;
}

void lam_cuda_fold(lam_cuda_dev *dev, const char *op, const lam_cuda_sums *s)
{
    const dim3 grid((unsigned)lam_cuda_ceil(s->width, LAM_WARP), LAM_CUDA_SUMS);
    lam_cuda_launch(dev, op, fold, {grid, dim3(LAM_WARP, FOLDERS)}, *s);
}

struct columns {
    int rows, width;
    size_t ld;
    int chunk; /* rows of a block */
    bool aligned;
    float scale;
    const void *h; /* ReLU only */
    void *in;      /* ReLU: dh, rewritten */
    float *lines;  /* [chunks][width], or NULL: one chunk, added to out */
    float *out;
};

/* Works on one row's eight columns.  ReLU: fwd was h = drop(relu(z)), where h > 0 says "passed both". */
template <bool RELU>
static __device__ __forceinline__ void visit(lam_f8 &sum, lam_f8 &x, const lam_f8 &h, float scale)
{
#pragma unroll
    for (int j = 0; j < 8; j++) {
        if (RELU)
            x.v[j] = h.v[j] > 0.0f ? scale * x.v[j] : 0.0f;
        sum.v[j] += x.v[j];
    }
}

/* Rows first, first + WARPS, ... of eight columns; AHEAD of them are fetched before one is used. */
template <typename T, bool RELU>
static __device__ __forceinline__ lam_f8 walk(const columns &a, int first, int last, int col)
{
    lam_f8 sum = {};
    for (int row = first; row < last; row += WARPS * AHEAD) {
        lam_raw8<T> x[AHEAD], h[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const size_t at = (size_t)(row + i * WARPS) * a.ld + (size_t)col;
            x[i] = lam_fetch8((const T *)a.in + at, row + i * WARPS < last);
            h[i] = lam_fetch8((const T *)a.h + at, RELU && row + i * WARPS < last);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            lam_f8 y = lam_unpack8(x[i]);
            visit<RELU>(sum, y, lam_unpack8(h[i]), a.scale);
            if (RELU && row + i * WARPS < last)
                lam_store8((T *)a.in + (size_t)(row + i * WARPS) * a.ld + (size_t)col, y);
        }
    }
    return sum;
}

/* The same where rows are not aligned, or the row ends within the eight columns. */
template <typename T, bool RELU>
static __device__ lam_f8 walk_slowly(const columns &a, int first, int last, int col)
{
    const int n = min(a.width - col, 8);
    lam_f8 sum = {};
    for (int row = first; row < last; row += WARPS) {
        const size_t at = (size_t)row * a.ld + (size_t)col;
        lam_f8 x = lam_load8_n((const T *)a.in + at, n, false), h = {};
        if (RELU)
            h = lam_load8_n((const T *)a.h + at, n, false);
        visit<RELU>(sum, x, h, a.scale);
        if (RELU)
            lam_store8_n((T *)a.in + at, x, n, false);
    }
    return sum;
}

template <typename T, bool RELU>
static __global__ void __launch_bounds__(LAM_WARP *WARPS) sum_columns(columns a)
{
    __shared__ __align__(16) float smem[WARPS][COLUMNS];
    const int col = (int)blockIdx.x * COLUMNS + (int)threadIdx.x * 8;
    const int begin = (int)blockIdx.y * a.chunk, last = min(begin + a.chunk, a.rows);
    const int first = begin + (int)threadIdx.y;
    lam_f8 sum = {};
    if (a.aligned && col + 8 <= a.width)
        sum = walk<T, RELU>(a, first, last, col);
    else if (col < a.width)
        sum = walk_slowly<T, RELU>(a, first, last, col);
    lam_store8(&smem[threadIdx.y][threadIdx.x * 8], sum);
    __syncthreads();
    const int mine = (int)(threadIdx.y * LAM_WARP + threadIdx.x);
    const int out = (int)blockIdx.x * COLUMNS + mine;
    if (out >= a.width)
        return;
    float total = 0.0f;
    for (int i = 0; i < WARPS; i++)
        total += smem[i][mine];
    if (a.lines)
        a.lines[(size_t)blockIdx.y * (size_t)a.width + (size_t)out] = total;
    else
        a.out[out] += total;
}

static int chunks_of(const lam_cuda_dev *dev, int rows, int width)
{
    const int most = lam_cuda_ceil(rows, MIN_CHUNK);
    const int wanted = dev->sms * BLOCKS_PER_SM / lam_cuda_ceil(width, COLUMNS);
    return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

/* A chunked sum has at most sms * BLOCKS_PER_SM blocks of COLUMNS columns. */
static size_t columns_scratch(const lam_cuda_dev *dev)
{
    return (size_t)(dev->sms * BLOCKS_PER_SM) * COLUMNS * sizeof(float);
}

size_t lam_cuda_rowwise_scratch(const lam_cuda_dev *dev, const lam_work *largest)
{
    const size_t norm = lam_cuda_norm_scratch(dev, largest), columns = columns_scratch(dev);
    return norm > columns ? norm : columns;
}

template <bool RELU>
static void launch_columns(lam_cuda_dev *dev, const char *op, columns a)
{
    if (a.rows == 0)
        return;
    const int wanted = chunks_of(dev, a.rows, a.width);
    a.chunk = lam_cuda_ceil(a.rows, wanted);
    const int chunks = lam_cuda_ceil(a.rows, a.chunk);
    if (chunks > 1)
        a.lines = (float *)lam_cuda_scratch(dev, (size_t)chunks * (size_t)a.width * sizeof(float));
    const dim3 grid((unsigned)lam_cuda_ceil(a.width, COLUMNS), (unsigned)chunks);
    const auto kernel = dev->bf16 ? sum_columns<lam_bf16, RELU> : sum_columns<float, RELU>;
    lam_cuda_launch(dev, op, kernel, {grid, dim3(LAM_WARP, WARPS)}, a);
    if (chunks > 1) {
        const lam_cuda_sums sums = {{a.out}, a.lines, (size_t)a.width, 0, chunks, a.width};
        lam_cuda_fold(dev, op, &sums);
    }
}

extern "C" void lam_cuda_relu_bwd(lam_dev *dev, const lam_relu_bwd *a)
{
    columns c = {};
    c.rows = a->rows;
    c.width = a->width;
    c.ld = (size_t)a->width;
    c.aligned = ((uintptr_t)a->h | (uintptr_t)a->dh) % 16 == 0 && a->width % 8 == 0;
    c.scale = (float)a->scale;
    c.h = a->h;
    c.in = a->dh;
    c.out = (float *)a->dbias;
    launch_columns<true>(lam_cuda(dev), "relu_bwd", c);
}

extern "C" void lam_cuda_colsum(lam_dev *dev, const lam_colsum *a)
{
    columns c = {};
    c.rows = a->rows;
    c.width = a->width;
    c.ld = (size_t)a->ld;
    c.aligned = (uintptr_t)a->in % 16 == 0 && a->ld % 8 == 0;
    c.in = (void *)(uintptr_t)a->in;
    c.out = (float *)a->out;
    launch_columns<false>(lam_cuda(dev), "colsum", c);
}
