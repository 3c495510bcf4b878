/* cuda/exact_gemm.cu -- products in exact arithmetic on the GPU (specified in ref/exact_gemm.c).
 *
 * Some rows at a time: they are quantised into scratch, a kernel multiplies them, and where the result is a cache, the
 * floats go through scratch once more.  Operands go from memory straight to the registers of tensor cores: lanes that
 * share rows or columns find them in the first cache.
 *
 * Decoding (64 rows, 512 x 512 weights) waits for memory alone, so the warps of a block share the terms of one small tile
 * and all of them are under way at once: floor 0.25 MB of weights, 0.1 us.  Many rows (a segment, a memory refreshed) are
 * cut into tiles of 64 x 64, where 12 KB from the second cache serve 0.25 million terms, each multiplied twice. */
#include "ops/cuda/exact.cuh"

enum {
    CHUNK = 1 << 13, /* rows at a time */
    ROOM = 30 << 20, /* bytes for them, each part; at least one row of the widest */
    FEW_WARPS = 8,   /* which share the terms of a tile */
    FEW_COLUMNS = 16,
    MANY_ROWS = 64, /* of a block, a quarter to each of its warps */
    MANY_COLUMNS = 64
};

struct gemm_job {
    lam_gemm g;
    int first, rows; /* counted through the batch */
    int8_t *x;       /* [rows][2][terms] */
    int terms;       /* k rounded up */
    float *scale;    /* [rows] */
    float *wide;     /* [rows][n], where C is BYTE */
};

/* Element t of a row of A as it is quantised; zero behind its end. */
static __device__ float gemm_element(const lam_gemm *g, const float *x, int t)
{
    if (t >= g->k)
        return 0.0f;
    return g->tb == LAM_FLIP ? x[t] : LAM_MUL(x[t], ((const float *)g->b_scale)[t]);
}

/* A block: one row. */
static __global__ void quantise_rows(const __grid_constant__ gemm_job j)
{
    lam_chain();
    __shared__ int32_t smem[LAM_EXACT_WARPS];
    const int row = j.first + (int)blockIdx.x;
    const float *from =
        (const float *)j.g.a + (size_t)(row / j.g.m) * j.g.step_a + (size_t)(row % j.g.m) * j.g.lda;
    int8_t *to = j.x + (size_t)blockIdx.x * 2 * j.terms;
    int32_t size = 0;
    for (int t = (int)threadIdx.x; t < j.g.k; t += LAM_EXACT_THREADS) {
        const int32_t now = lam_exact_size(gemm_element(&j.g, from, t));
        size = now > size ? now : size;
    }
    const lam_exact_grid grid = lam_exact_grid_of(lam_exact_most(size, smem), (float)LAM_EXACT_ROW);
    for (int t = 4 * (int)threadIdx.x; t < j.terms; t += 4 * LAM_EXACT_THREADS) {
        float x[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[i] = gemm_element(&j.g, from, t + i);
        const uint2 planes = lam_exact_split(grid, x);
        *(uint32_t *)(to + t) = planes.x;
        *(uint32_t *)(to + j.terms + t) = planes.y;
    }
    if (threadIdx.x == 0)
        j.scale[blockIdx.x] = grid.scale;
}

static __device__ lam_exact_planes gemm_left(const gemm_job *j)
{
    return {j->x, j->rows, j->terms};
}

/* Terms t .. t + 15 of a column of B; behind the last column there is the last one again. */
template <bool WHOLE>
static __device__ uint4 gemm_right(const gemm_job *j, int col, int t)
{
    const lam_gemm *g = &j->g;
    const int8_t *b = (const int8_t *)g->b;
    const size_t at = (size_t)(col < g->n ? col : g->n - 1);
    return WHOLE || g->tb == LAM_FLIP ? lam_exact_right_at<WHOLE>(b + at * g->ldb, 1, t, g->k)
                                      : lam_exact_right_at<WHOLE>(b + at, g->ldb, t, g->k);
}

/* Where the results of a row go. */
struct gemm_row {
    float *c, scale;
};

static __device__ gemm_row gemm_row_at(const gemm_job *j, int r)
{
    const lam_gemm *g = &j->g;
    const int row = j->first + r;
    float *const wide = j->wide + (size_t)r * g->n;
    float *const c =
        (float *)g->c + (size_t)(row / g->m) * g->step_c + (size_t)(row % g->m) * g->ldc;
    return {j->wide ? wide : c, j->scale[r]};
}

static __device__ void gemm_store(const lam_gemm *g, gemm_row row, int col, int64_t sum)
{
    const float scale =
        g->tb == LAM_FLIP ? LAM_MUL(row.scale, ((const float *)g->b_scale)[col]) : row.scale;
    float x = LAM_MUL((float)sum, scale);
    if (g->beta != 0.0)
        x = LAM_ADD(row.c[col], x);
    if (g->bias)
        x = LAM_ADD(x, ((const float *)g->bias)[col]);
    row.c[col] = g->relu && x < 0.0f ? 0.0f : x;
}

/* A block: 16 rows and FEW_COLUMNS columns, its warps share the terms. */
template <bool WHOLE>
static __global__ void __launch_bounds__(FEW_WARPS *LAM_WARP)
    multiply_few(const __grid_constant__ gemm_job j)
{
    lam_chain();
    __shared__ int64_t part[FEW_WARPS][16][FEW_COLUMNS];
    const int lane = (int)threadIdx.x % LAM_WARP, warp = (int)threadIdx.x / LAM_WARP;
    const int g = lane / 4, t = lane % 4;
    const int row0 = (int)blockIdx.y * 16, col0 = (int)blockIdx.x * FEW_COLUMNS;
    lam_exact_sums sums[FEW_COLUMNS / 8] = {};
#pragma unroll 2
    for (int at = warp * LAM_EXACT_CHUNK; at < j.terms; at += FEW_WARPS * LAM_EXACT_CHUNK) {
        const lam_exact_left a = lam_exact_left_at(gemm_left(&j), row0, at);
#pragma unroll
        for (int i = 0; i < FEW_COLUMNS / 8; i++)
            lam_exact_multiply(&sums[i], &a, gemm_right<WHOLE>(&j, col0 + 8 * i + g, at + 16 * t));
    }
#pragma unroll
    for (int i = 0; i < FEW_COLUMNS / 8; i++)
#pragma unroll
        for (int d = 0; d < 4; d++)
            part[warp][g + d / 2 * 8][8 * i + 2 * t + d % 2] = lam_exact_sum(&sums[i], d);
    __syncthreads();
    const int r = (int)threadIdx.x / FEW_COLUMNS, c = (int)threadIdx.x % FEW_COLUMNS;
    int64_t sum = 0;
    for (int w = 0; w < FEW_WARPS; w++)
        sum += part[w][r][c];
    if (row0 + r < j.rows && col0 + c < j.g.n)
        gemm_store(&j.g, gemm_row_at(&j, row0 + r), col0 + c, sum);
}

/* A block: MANY_ROWS rows and MANY_COLUMNS columns; each of its four warps has a quarter of them to itself. */
template <bool WHOLE>
static __global__ void __launch_bounds__(LAM_EXACT_THREADS)
    multiply_many(const __grid_constant__ gemm_job j)
{
    enum { LEFT = MANY_ROWS / 2 / 16, RIGHT = MANY_COLUMNS / 2 / 8 };
    const int lane = (int)threadIdx.x % LAM_WARP, warp = (int)threadIdx.x / LAM_WARP;
    const int g = lane / 4, t = lane % 4;
    const int row0 = (int)blockIdx.y * MANY_ROWS + warp / 2 * 16 * LEFT;
    const int col0 = (int)blockIdx.x * MANY_COLUMNS + warp % 2 * 8 * RIGHT;
    if (row0 >= j.rows || col0 >= j.g.n)
        return; /* whole warps leave together */
    lam_exact_sums sums[LEFT][RIGHT] = {};
    for (int at = 0; at < j.terms; at += LAM_EXACT_CHUNK) {
        lam_exact_left a[LEFT];
        uint4 b[RIGHT];
#pragma unroll
        for (int i = 0; i < LEFT; i++)
            a[i] = lam_exact_left_at(gemm_left(&j), row0 + 16 * i, at);
#pragma unroll
        for (int i = 0; i < RIGHT; i++)
            b[i] = gemm_right<WHOLE>(&j, col0 + 8 * i + g, at + 16 * t);
#pragma unroll
        for (int i = 0; i < LEFT * RIGHT; i++)
            lam_exact_multiply(&sums[i / RIGHT][i % RIGHT], &a[i / RIGHT], b[i % RIGHT]);
    }
#pragma unroll
    for (int i = 0; i < 2 * LEFT; i++) {
        const int r = row0 + g + 8 * i;
        if (r >= j.rows)
            continue;
        const gemm_row row = gemm_row_at(&j, r);
#pragma unroll
        for (int c = 0; c < 2 * RIGHT; c++) {
            const int col = col0 + c / 2 * 8 + 2 * t + c % 2;
            if (col < j.g.n)
                gemm_store(&j.g, row, col, lam_exact_sum(&sums[i / 2][c / 2], i % 2 * 2 + c % 2));
        }
    }
}

/* A warp: one group of columns of one row. */
static __global__ void pack_rows(const __grid_constant__ gemm_job j)
{
    const lam_gemm *g = &j.g;
    const int row = j.first + (int)blockIdx.y, width = g->c_group;
    const int group = (int)blockIdx.x * LAM_EXACT_WARPS + (int)threadIdx.x / LAM_WARP;
    const size_t at =
        (size_t)(row / g->m) * g->step_c + (size_t)(row % g->m) * g->ldc + (size_t)group * width;
    if (group < g->n / width)
        lam_exact_pack((int8_t *)g->c + at, (float *)g->c_scale + at / width,
                       j.wide + (size_t)blockIdx.y * g->n + (size_t)group * width, width);
}

/* The widest row, 2^18 numbers, fits. */
size_t lam_cuda_exact_gemm_scratch(void)
{
    return 2 * (size_t)ROOM + CHUNK * sizeof(float);
}

template <bool WHOLE>
static void multiply(lam_cuda_dev *dev, const gemm_job *j)
{
    const dim3 few((unsigned)lam_cuda_ceil(j->g.n, FEW_COLUMNS),
                   (unsigned)lam_cuda_ceil(j->rows, 16));
    const dim3 many((unsigned)lam_cuda_ceil(j->g.n, MANY_COLUMNS),
                    (unsigned)lam_cuda_ceil(j->rows, MANY_ROWS));
    if (many.x * many.y >= (unsigned)dev->sms && j->terms <= LAM_EXACT_PLANE)
        lam_cuda_launch(dev, "gemm", multiply_many<WHOLE>, {many, dim3(LAM_EXACT_THREADS)}, *j);
    else
        lam_cuda_launch(dev, "gemm", multiply_few<WHOLE>,
                        {few, dim3(FEW_WARPS * LAM_WARP), 0, true}, *j);
}

extern "C" void lam_cuda_exact_gemm(lam_dev *base, const lam_gemm *a)
{
    lam_cuda_dev *dev = lam_cuda(base);
    char *room = (char *)lam_cuda_scratch(dev, lam_cuda_exact_gemm_scratch());
    const int rows = a->m * a->batch, terms = lam_exact_whole(a->k);
    const size_t packed = 2 * (size_t)terms;
    const size_t floats = a->c_class == LAM_BYTE ? (size_t)a->n * sizeof(float) : 0;
    const size_t wide = packed > floats ? packed : floats;
    const int fit = (int)(ROOM / (wide > 0 ? wide : 1)), most = fit < CHUNK ? fit : CHUNK;
    assert(a->ta == LAM_KEEP && a->b_class == LAM_BYTE && a->step_b == 0 && !a->h && most > 0);
    assert(a->drop.p == 0.0 && (a->batch < 2 || a->step_c > 0));
    assert(a->k <= FEW_WARPS * LAM_EXACT_PLANE);
    gemm_job j = {};
    j.g = *a;
    j.terms = terms;
    j.x = (int8_t *)room;
    j.wide = a->c_class == LAM_BYTE ? (float *)(room + ROOM) : NULL;
    j.scale = (float *)(room + 2 * (size_t)ROOM);
    const bool whole = a->tb == LAM_FLIP && a->k % 16 == 0 && lam_cuda_on_border(a->b, a->ldb, 1);
    for (j.first = 0; j.first < rows && a->n > 0; j.first += most) {
        j.rows = rows - j.first < most ? rows - j.first : most;
        lam_cuda_launch(dev, "gemm", quantise_rows,
                        {dim3((unsigned)j.rows), dim3(LAM_EXACT_THREADS), 0, true}, j);
        if (whole)
            multiply<true>(dev, &j);
        else
            multiply<false>(dev, &j);
        if (j.wide) {
            const int groups = lam_cuda_ceil(a->n / a->c_group, LAM_EXACT_WARPS);
            lam_cuda_launch(dev, "gemm", pack_rows,
                            {dim3((unsigned)groups, (unsigned)j.rows), dim3(LAM_EXACT_THREADS)}, j);
        }
    }
}
