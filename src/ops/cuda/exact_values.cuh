/* exact_values.cuh -- the weighted sum of values in exact attention, by the warps of a block.
 *
 * Here the keys are the terms of a product, whose values lie apart, while a lane needs four of them in a register: it
 * reads four columns of each and transposes. */
#ifndef LAM_OPS_CUDA_EXACT_VALUES_CUH
#define LAM_OPS_CUDA_EXACT_VALUES_CUH

#include "ops/cuda/exact_tile.cuh"

enum {
    STEP = LAM_EXACT_CHUNK,        /* keys whose values a warp adds at a time */
    PARTS = COLUMNS / 32,          /* of its columns */
    SPAN = WARPS * LAM_EXACT_TERMS /* keys after which the sums of its lanes are full */
};

/* The weights of 64 keys from column c on. */
static __device__ lam_exact_left weights_at(const attn_tile *x, int c)
{
    const int lane = (int)threadIdx.x % LAM_WARP;
    lam_exact_left a;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int i = lane / 4 + 8 * half, row = i < x->n ? i : x->n - 1;
        const uint4 *cell = (const uint4 *)(x->p + (size_t)row * x->j->stride + c) + lane % 4 * 4;
        uint2 w[4];
#pragma unroll
        for (int e = 0; e < 4; e++)
            w[e] = *(const uint2 *)(cell + e);
        a.high[half] = make_uint4(w[0].x, w[1].x, w[2].x, w[3].x);
        a.low[half] = make_uint4(w[0].y, w[1].y, w[2].y, w[3].y);
    }
    return a;
}

/* Columns c .. c + 3 of a row of K, zeros behind its end. */
template <bool WHOLE>
static __device__ uint32_t four_at(const int8_t *row, int c, int K)
{
    if (WHOLE)
        return c < K ? *(const uint32_t *)(row + c) : 0;
    uint32_t w = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (c + i < K)
            w |= (uint32_t)(uint8_t)row[c + i] << (8 * i);
    return w;
}

/* Four rows of four bytes become four columns. */
static __device__ void transpose(uint32_t out[4], const uint32_t in[4])
{
    const uint32_t low0 = lam_bytes(in[0], in[1], 0x5140), high0 = lam_bytes(in[0], in[1], 0x7362);
    const uint32_t low1 = lam_bytes(in[2], in[3], 0x5140), high1 = lam_bytes(in[2], in[3], 0x7362);
    out[0] = lam_bytes(low0, low1, 0x5410);
    out[1] = lam_bytes(low0, low1, 0x7632);
    out[2] = lam_bytes(high0, high1, 0x5410);
    out[3] = lam_bytes(high0, high1, 0x7632);
}

/* A warp: the values of 64 keys from column c on, times their weights.  Of each 32 columns, lane 4 g + t reads columns
 * 4 g .. 4 g + 3 of keys 16 t .. 16 t + 15: as column g of four products. */
template <bool WHOLE>
static __device__ void add_values(int32_t sums[PARTS][4][4], const attn_tile *x, const attn_head *v,
                                  int c, int column)
{
    const int lane = (int)threadIdx.x % LAM_WARP, K = x->j->a.K;
    const lam_exact_left a = weights_at(x, c);
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        const int first = column + 32 * part + lane / 4 * 4;
        uint32_t rows[4][4], columns[4][4];
#pragma unroll
        for (int e = 0; e < 16; e++)
            rows[e / 4][e % 4] =
                four_at<WHOLE>(v->p + row_at(v, c + lane % 4 * 16 + e) * v->ld, first, K);
#pragma unroll
        for (int e = 0; e < 4; e++)
            transpose(columns[e], rows[e]);
#pragma unroll
        for (int i = 0; i < 4; i++)
            lam_exact_multiply_few(
                sums[part][i], &a,
                make_uint4(columns[0][i], columns[1][i], columns[2][i], columns[3][i]));
    }
}

/* The warps' sums become one: they take turns. */
static __device__ void join(const attn_tile *x, const int32_t sums[PARTS][4][4])
{
    const int lane = (int)threadIdx.x % LAM_WARP, warp = (int)threadIdx.x / LAM_WARP;
    for (int turn = 0; turn < WARPS; turn++) {
        if (warp == turn)
#pragma unroll
            for (int e = 0; e < 16 * PARTS; e++) {
                const int part = e / 16, i = lane / 4 + e / 8 % 2 * 8,
                          d = e / 8 % 2 * 2 + e / 4 % 2;
                if (i < x->n)
                    x->shared->total[i][32 * part + lane % 4 * 8 + e % 8] += sums[part][e % 4][d];
            }
        __syncthreads();
    }
}

/* o, COLUMNS at a time. */
template <bool WHOLE>
static __device__ void sum_values(const attn_tile *x)
{
    const lam_attn *a = &x->j->a;
    const attn_head v = head_of(x, &x->j->value, x->lo, 1);
    float *o = (float *)a->o.p + x->b * a->o.step + (size_t)x->first * a->ldo + (size_t)x->h * a->K;
    for (int column = 0; column < a->K; column += COLUMNS) {
        for (int e = (int)threadIdx.x; e < TILE * COLUMNS; e += THREADS)
            x->shared->total[e / COLUMNS][e % COLUMNS] = 0;
        __syncthreads();
        for (int from = 0; from < x->width; from += SPAN) {
            const int end = x->width - from < SPAN ? x->width : from + SPAN;
            int32_t sums[PARTS][4][4] = {};
            for (int c = from + (int)threadIdx.x / LAM_WARP * STEP; c < end; c += WARPS * STEP)
                add_values<WHOLE>(sums, x, &v, c, column);
            join(x, sums);
        }
        for (int e = (int)threadIdx.x; e < x->n * COLUMNS; e += THREADS) {
            const int i = e / COLUMNS, c = column + e % COLUMNS;
            const attn_span s = seen_by(x, i);
            if (c < a->K)
                o[(size_t)i * a->ldo + c] =
                    s.lo < s.hi
                        ? LAM_MUL((float)x->shared->total[i][e % COLUMNS], x->shared->share[i])
                        : 0.0f;
        }
        __syncthreads(); /* before the totals begin again */
    }
}

#endif
