/* cuda/rowwise.cu -- ReLU's gradient, dropout, copies and column sums.
 *
 * ref/rowwise.c says what is computed; norms: norm_fwd.cu, norm_bwd.cu.  Everything here is bandwidth: 16 bytes a
 * thread and access, coalesced along the row.  A column sum is taken by blocks that own 256 columns and
 * a chunk of rows; each leaves a line in scratch, and fold() adds the lines in order.  The number of
 * chunks depends on the shape and the card alone. */
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

/* ---- column sums ----------------------------------------------------------------------------- */

/* Sum blockIdx.y of a set; warps take every 32nd line, then meet. */
static __global__ void fold(lam_cuda_sums s)
{
    __shared__ float room[FOLDERS][LAM_WARP];
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
    room[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || col >= s.width)
        return;
    sum = 0.0f;
    for (int i = 0; i < FOLDERS; i++)
        sum += room[i][threadIdx.x];
    out[col] += sum;
}

void lam_cuda_fold(lam_cuda_dev *dev, const char *op, const lam_cuda_sums *s)
{
    const dim3 grid((unsigned)lam_cuda_ceil(s->width, LAM_WARP), LAM_CUDA_SUMS);
    fold<<<grid, dim3(LAM_WARP, FOLDERS), 0, dev->stream>>>(*s);
    lam_cuda_check_launch(dev, op);
}

struct columns {
    int rows, width, extent; /* extent: columns to be visited, width: to be summed */
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
    const int n = min(a.extent - col, 8);
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
    __shared__ __align__(16) float room[WARPS][COLUMNS];
    const int col = (int)blockIdx.x * COLUMNS + (int)threadIdx.x * 8;
    const int begin = (int)blockIdx.y * a.chunk, last = min(begin + a.chunk, a.rows);
    const int first = begin + (int)threadIdx.y;
    lam_f8 sum = {};
    if (a.aligned && col + 8 <= a.extent)
        sum = walk<T, RELU>(a, first, last, col);
    else if (col < a.extent)
        sum = walk_slowly<T, RELU>(a, first, last, col);
    lam_store8(&room[threadIdx.y][threadIdx.x * 8], sum);
    __syncthreads();
    const int mine = (int)(threadIdx.y * LAM_WARP + threadIdx.x);
    const int out = (int)blockIdx.x * COLUMNS + mine;
    if (out >= a.width)
        return;
    float total = 0.0f;
    for (int i = 0; i < WARPS; i++)
        total += room[i][mine];
    if (a.lines)
        a.lines[(size_t)blockIdx.y * (size_t)a.width + (size_t)out] = total;
    else
        a.out[out] += total;
}

static int chunks_of(const lam_cuda_dev *dev, int rows, int extent)
{
    const int most = lam_cuda_ceil(rows, MIN_CHUNK);
    const int wanted = dev->sms * BLOCKS_PER_SM / lam_cuda_ceil(extent, COLUMNS);
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
    const int wanted = chunks_of(dev, a.rows, a.extent);
    a.chunk = lam_cuda_ceil(a.rows, wanted);
    const int chunks = lam_cuda_ceil(a.rows, a.chunk);
    if (chunks > 1)
        a.lines = (float *)lam_cuda_scratch(dev, (size_t)chunks * (size_t)a.width * sizeof(float));
    const dim3 grid((unsigned)lam_cuda_ceil(a.extent, COLUMNS), (unsigned)chunks);
    const dim3 block(LAM_WARP, WARPS);
    if (dev->bf16)
        sum_columns<lam_bf16, RELU><<<grid, block, 0, dev->stream>>>(a);
    else
        sum_columns<float, RELU><<<grid, block, 0, dev->stream>>>(a);
    lam_cuda_check_launch(dev, op);
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
    c.extent = a->width;
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
    c.width = c.extent = a->width;
    c.ld = (size_t)a->ld;
    c.aligned = (uintptr_t)a->in % 16 == 0 && a->ld % 8 == 0;
    c.in = (void *)(uintptr_t)a->in;
    c.out = (float *)a->out;
    launch_columns<false>(lam_cuda(dev), "colsum", c);
}

/* ---- dropout --------------------------------------------------------------------------------- */

template <typename T>
static __global__ void drop(lam_dropout a, lam_cuda_mask mask)
{
    const int group = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const int groups = lam_cuda_ceil(a.width, 8), col = group * 8;
    if (col >= a.ld)
        return;
    for (int row = (int)(blockIdx.y * blockDim.y + threadIdx.y); row < a.rows;
         row += (int)(gridDim.y * blockDim.y)) {
        const size_t at = (size_t)row * (size_t)a.ld + (size_t)col;
        lam_f8 x = {};
        if (col < a.width) {
            x = lam_load8((const T *)a.in.p + blockIdx.z * a.in.step + at);
            const size_t above = blockIdx.z * (size_t)a.rows + (size_t)row;
            lam_mask8(x, mask, above * (size_t)groups + (size_t)group);
        }
        lam_store8((T *)a.out.p + blockIdx.z * a.out.step + at, x);
    }
}

extern "C" void lam_cuda_dropout(lam_dev *dev, const lam_dropout *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    assert(a->ld % 8 == 0);
    if (a->blocks == 0 || a->rows == 0)
        return;
    const lam_cuda_mask mask = lam_cuda_mask_of(&a->drop);
    const lam_cuda_grid g = lam_cuda_grid_of(cuda, (size_t)a->ld / 8, a->rows, a->blocks);
    if (cuda->bf16)
        drop<lam_bf16><<<g.grid, g.block, 0, cuda->stream>>>(*a, mask);
    else
        drop<float><<<g.grid, g.block, 0, cuda->stream>>>(*a, mask);
    lam_cuda_check_launch(cuda, "dropout");
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* `Word` is as wide as every address and stride allows. */
template <typename Word>
static __global__ void copy_words(lam_cuda_rows c, size_t words)
{
    const char *src = (const char *)c.src + blockIdx.z * c.src_step;
    char *dst = (char *)c.dst + blockIdx.z * c.dst_step;
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t r = blockIdx.y * blockDim.y + threadIdx.y; r < c.rows; r += gridDim.y * blockDim.y)
        for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride)
            ((Word *)(dst + r * c.dst_ld))[i] =
                c.src ? ((const Word *)(src + r * c.src_ld))[i] : Word();
}

template <typename Word>
static void launch_copy(lam_cuda_dev *dev, const lam_cuda_rows *c)
{
    const size_t words = c->width / sizeof(Word);
    const int rows = c->rows < 1 << 20 ? (int)c->rows : 1 << 20;
    const lam_cuda_grid g = lam_cuda_grid_of(dev, words, rows, c->blocks);
    copy_words<Word><<<g.grid, g.block, 0, dev->stream>>>(*c, words);
}

void lam_cuda_copy_rows(lam_cuda_dev *dev, const char *op, const lam_cuda_rows *c)
{
    if (c->blocks == 0 || c->rows == 0 || c->width == 0)
        return;
    const size_t bits = (uintptr_t)c->src | (uintptr_t)c->dst | c->src_step | c->src_ld |
                        c->dst_step | c->dst_ld | c->width;
    if (bits % 16 == 0)
        launch_copy<uint4>(dev, c);
    else if (bits % 4 == 0)
        launch_copy<uint32_t>(dev, c);
    else
        launch_copy<uint16_t>(dev, c);
    lam_cuda_check_launch(dev, op);
}

extern "C" void lam_cuda_copy(lam_dev *dev, const lam_copy *a)
{
    const size_t size = lam_class_size(dev, a->type);
    lam_cuda_rows c = {};
    c.src = a->in.p;
    c.dst = a->out.p;
    c.src_step = a->in.p ? a->in.step * size : 0;
    c.dst_step = a->out.step * size;
    c.blocks = a->blocks;
    c.rows = 1;
    c.width = a->count * size;
    lam_cuda_copy_rows(lam_cuda(dev), "copy", &c);
}
