/* cuda/exact_gemm.cu -- products in exact arithmetic on the GPU (specified in ref/exact_gemm.c).
 *
 * Some rows at a time: they are quantised into scratch, a warp makes a column of ROWS of them, and where the result is a
 * cache, the floats go through scratch once more. */
#include "ops/cuda/exact.cuh"

enum {
    ROWS = 4,          /* of a warp's sums */
    CHUNK = 1 << 10,   /* rows at a time */
    ROOM = 16 << 20,   /* bytes for them, each part; at least one row of the widest */
    FLUSH = 1024 * 32, /* terms after which a lane's 32 bits are full */
    WARPS = LAM_EXACT_THREADS / LAM_WARP
};

struct gemm_job {
    lam_gemm g;
    int first, rows; /* counted through the batch */
    int16_t *x;      /* [rows][k] */
    float *scale;    /* [rows] */
    float *wide;     /* [rows][n], where C is BYTE */
};

static __device__ float gemm_element(const lam_gemm *g, const float *x, int t)
{
    return g->tb == LAM_FLIP ? x[t] : LAM_MUL(x[t], ((const float *)g->b_scale)[t]);
}

static __global__ void quantise_rows(const __grid_constant__ gemm_job j)
{
    __shared__ int32_t smem[LAM_EXACT_THREADS];
    const int row = j.first + (int)blockIdx.x, k = j.g.k;
    const float *x =
        (const float *)j.g.a + (size_t)(row / j.g.m) * j.g.step_a + (size_t)(row % j.g.m) * j.g.lda;
    int32_t size = 0;
    for (int t = (int)threadIdx.x; t < k; t += LAM_EXACT_THREADS) {
        const int32_t now = lam_exact_size(gemm_element(&j.g, x, t));
        size = now > size ? now : size;
    }
    const lam_exact_grid grid = lam_exact_grid_of(lam_exact_most(size, smem), (float)LAM_EXACT_ROW);
    for (int t = (int)threadIdx.x; t < k; t += LAM_EXACT_THREADS)
        j.x[(size_t)blockIdx.x * k + t] = (int16_t)lam_exact_level(grid, gemm_element(&j.g, x, t));
    if (threadIdx.x == 0)
        j.scale[blockIdx.x] = grid.scale;
}

static __device__ void gemm_store(const gemm_job *j, int r, int col, int64_t sum)
{
    const lam_gemm *g = &j->g;
    const float scale =
        g->tb == LAM_FLIP ? LAM_MUL(j->scale[r], ((const float *)g->b_scale)[col]) : j->scale[r];
    float x = LAM_MUL((float)sum, scale);
    if (j->wide) {
        j->wide[(size_t)r * g->n + col] = x;
        return;
    }
    const int row = j->first + r;
    float *c =
        (float *)g->c + (size_t)(row / g->m) * g->step_c + (size_t)(row % g->m) * g->ldc + col;
    if (g->beta != 0.0)
        x = LAM_ADD(*c, x);
    if (g->bias)
        x = LAM_ADD(x, ((const float *)g->bias)[col]);
    *c = g->relu && x < 0.0f ? 0.0f : x;
}

/* A warp: one column of up to ROWS rows; its lanes share the terms. */
static __global__ void multiply(const __grid_constant__ gemm_job j)
{
    const int lane = (int)threadIdx.x % LAM_WARP, k = j.g.k;
    const int col = (int)blockIdx.x * WARPS + (int)threadIdx.x / LAM_WARP;
    const int from = (int)blockIdx.y * ROWS;
    if (col >= j.g.n)
        return; /* whole warps leave together */
    const int flip = j.g.tb == LAM_FLIP;
    const int8_t *b = (const int8_t *)j.g.b + (flip ? (size_t)col * j.g.ldb : (size_t)col);
    const size_t step = flip ? 1 : j.g.ldb;
    for (int r = from; r < from + ROWS && r < j.rows; r++) {
        const int16_t *x = j.x + (size_t)r * k;
        int64_t sum = 0;
        for (int at = 0; at < k; at += FLUSH) {
            int32_t part = 0;
            const int end = k - at < FLUSH ? k : at + FLUSH;
            for (int t = at + lane; t < end; t += LAM_WARP)
                part += (int32_t)x[t] * b[(size_t)t * step];
            sum += part;
        }
        for (int s = LAM_WARP / 2; s > 0; s /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, s);
        if (lane == 0)
            gemm_store(&j, r, col, sum);
    }
}

/* A block: one group of columns of one row. */
static __global__ void pack_rows(const __grid_constant__ gemm_job j)
{
    __shared__ int32_t smem[LAM_EXACT_THREADS];
    const lam_gemm *g = &j.g;
    const int row = j.first + (int)blockIdx.y, group = g->c_group;
    const size_t at = (size_t)(row / g->m) * g->step_c + (size_t)(row % g->m) * g->ldc +
                      (size_t)blockIdx.x * group;
    lam_exact_pack((int8_t *)g->c + at, (float *)g->c_scale + at / group,
                   j.wide + (size_t)blockIdx.y * g->n + (size_t)blockIdx.x * group, group, smem);
}

/* The widest row, 2^18 numbers, fits. */
size_t lam_cuda_exact_gemm_scratch(void)
{
    return 2 * (size_t)ROOM + CHUNK * sizeof(float);
}

extern "C" void lam_cuda_exact_gemm(lam_dev *base, const lam_gemm *a)
{
    lam_cuda_dev *dev = lam_cuda(base);
    char *room = (char *)lam_cuda_scratch(dev, lam_cuda_exact_gemm_scratch());
    const int rows = a->m * a->batch;
    const size_t packed = (size_t)a->k * sizeof(int16_t);
    const size_t floats = a->c_class == LAM_BYTE ? (size_t)a->n * sizeof(float) : 0;
    const size_t wide = packed > floats ? packed : floats;
    const int fit = (int)(ROOM / (wide > 0 ? wide : 1)), most = fit < CHUNK ? fit : CHUNK;
    assert(a->ta == LAM_KEEP && a->b_class == LAM_BYTE && a->step_b == 0 && !a->h && most > 0);
    assert(a->drop.p == 0.0 && (a->batch < 2 || a->step_c > 0));
    gemm_job j = {};
    j.g = *a;
    j.x = (int16_t *)room;
    j.wide = a->c_class == LAM_BYTE ? (float *)(room + ROOM) : NULL;
    j.scale = (float *)(room + 2 * (size_t)ROOM);
    for (j.first = 0; j.first < rows && a->n > 0; j.first += most) {
        j.rows = rows - j.first < most ? rows - j.first : most;
        const dim3 grid((unsigned)lam_cuda_ceil(a->n, WARPS),
                        (unsigned)lam_cuda_ceil(j.rows, ROWS));
        lam_cuda_launch(dev, "gemm", quantise_rows,
                        {dim3((unsigned)j.rows), dim3(LAM_EXACT_THREADS)}, j);
        lam_cuda_launch(dev, "gemm", multiply, {grid, dim3(LAM_EXACT_THREADS)}, j);
        if (j.wide) {
            const dim3 groups((unsigned)(a->n / a->c_group), (unsigned)j.rows);
            lam_cuda_launch(dev, "gemm", pack_rows, {groups, dim3(LAM_EXACT_THREADS)}, j);
        }
    }
}
