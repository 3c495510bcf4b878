/* exact_scores.cuh -- exact attention from queries and keys to the weights of values, by the warps of a block.
 *
 * row(i, j) depends on j - i alone: the product with positions has a column for each difference, and query i writes it
 * shifted by i. */
#ifndef LAM_OPS_CUDA_EXACT_SCORES_CUH
#define LAM_OPS_CUDA_EXACT_SCORES_CUH

#include "ops/cuda/exact_tile.cuh"

enum { ROWS = 4 }; /* times 8 rows of keys or positions: what a warp multiplies at a time */

/* A warp: float(q . k) * (s_q * s_k) of all queries and the 8 * ROWS columns from `first` on; [i][.] as in
 * lam_exact_sums. */
template <bool WHOLE>
static __device__ void multiply(float terms[ROWS][4], const attn_tile *x, int role,
                                const attn_head *r, int first)
{
    const int lane = (int)threadIdx.x % LAM_WARP, g = lane / 4, t = lane % 4, K = x->j->a.K;
    const lam_exact_planes q = {x->q + (size_t)role * TILE * 2 * x->j->terms, x->n, x->j->terms};
    const float *own = x->shared->scale[role];
    const float row_scale[2] = {own[g], own[g + 8]};
    int32_t sums[ROWS][4] = {};
    const int8_t *row[ROWS];
    float scale[ROWS][2];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        row[i] = r->p + row_at(r, first + 8 * i + g) * r->ld;
        scale[i][0] = r->scale[row_at(r, first + 8 * i + 2 * t) * r->scale_ld];
        scale[i][1] = r->scale[row_at(r, first + 8 * i + 2 * t + 1) * r->scale_ld];
    }
    for (int at = 0; at < q.terms; at += LAM_EXACT_CHUNK) {
        uint4 b[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            b[i] = lam_exact_right_at<WHOLE>(row[i], 1, at + 16 * t, K);
        const lam_exact_left a = lam_exact_left_at(q, 0, at);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            lam_exact_multiply_few(sums[i], &a, b[i]);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int d = 0; d < 4; d++)
            terms[i][d] = LAM_MUL((float)sums[i][d], LAM_MUL(row_scale[d / 2], scale[i][d % 2]));
}

/* The first terms of the scores, by position: column c is the difference lo + c - (n - 1) to the first query's place, and
 * belongs to key c + i - (n - 1) of query i. */
template <bool WHOLE>
static __device__ void add_places(const attn_tile *x)
{
    const lam_attn *a = &x->j->a;
    const int lane = (int)threadIdx.x % LAM_WARP, before = x->n - 1;
    const attn_head r =
        head_of(x, &x->j->r, a->r_zero + a->r_sign * (x->lo - before - x->shift), a->r_sign);
    for (int first = (int)threadIdx.x / LAM_WARP * 8 * ROWS; first < x->width + before;
         first += WARPS * 8 * ROWS) {
        float terms[ROWS][4];
        multiply<WHOLE>(terms, x, BY_PLACE, &r, first);
#pragma unroll
        for (int e = 0; e < 4 * ROWS; e++) {
            const int i = lane / 4 + e % 4 / 2 * 8;
            const int c = first + e / 4 * 8 + lane % 4 * 2 + e % 2 + i - before;
            if (i < x->n && c >= 0 && c < x->width)
                x->p[(size_t)i * x->j->stride + c] = terms[e / 4][e % 4];
        }
    }
}

/* The score of key c of query i, whose product with the key is known. */
static __device__ float score(const attn_tile *x, float sum, int i, int c)
{
    const lam_attn *a = &x->j->a;
    const long place = a->r_zero + a->r_sign * ((long)x->lo + c - x->shift - i);
    if (a->r)
        sum = LAM_ADD(sum, x->p[(size_t)i * x->j->stride + c]);
    if (a->rbias)
        sum = LAM_ADD(sum, ((const float *)a->rbias)[(size_t)place * a->H + x->h]);
    return LAM_MUL(sum, (float)a->scale);
}

/* The scores, and each warp's largest one of each query. */
template <bool WHOLE>
static __device__ void add_keys(const attn_tile *x)
{
    const int lane = (int)threadIdx.x % LAM_WARP, warp = (int)threadIdx.x / LAM_WARP;
    const attn_head k = head_of(x, &x->j->k, x->lo, 1);
    const attn_span spans[2] = {seen_by(x, lane / 4), seen_by(x, lane / 4 + 8)};
    int32_t top[2] = {INT32_MIN, INT32_MIN};
    for (int first = warp * 8 * ROWS; first < x->width; first += WARPS * 8 * ROWS) {
        float terms[ROWS][4];
        multiply<WHOLE>(terms, x, BY_KEY, &k, first);
#pragma unroll
        for (int e = 0; e < 4 * ROWS; e++) {
            const int half = e % 4 / 2, i = lane / 4 + half * 8;
            const int c = first + e / 4 * 8 + lane % 4 * 2 + e % 2, key = x->lo + c;
            if (i >= x->n || key < spans[half].lo || key >= spans[half].hi)
                continue;
            const float s = score(x, terms[e / 4][e % 4], i, c);
            x->p[(size_t)i * x->j->stride + c] = s;
            top[half] = lam_exact_rank(s) > top[half] ? lam_exact_rank(s) : top[half];
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        for (int step = 1; step < 4; step *= 2) {
            const int32_t other = __shfl_xor_sync(0xffffffffu, top[half], step);
            top[half] = other > top[half] ? other : top[half];
        }
        if (lane % 4 == 0)
            x->shared->top[warp][lane / 4 + half * 8] = top[half];
    }
}

static __device__ int32_t most_of(const int32_t (*of_warps)[TILE], int i)
{
    int32_t most = of_warps[0][i];
    for (int w = 1; w < WARPS; w++)
        most = of_warps[w][i] > most ? of_warps[w][i] : most;
    return most;
}

/* w = p * s_value in the place of the scores, zeros where nothing is visible; of each warp the sum of p and the largest w. */
static __device__ void weigh(const attn_tile *x)
{
    const int warp = (int)threadIdx.x / LAM_WARP, width = lam_exact_whole(x->width);
    for (int i = 0; i < x->n; i++) {
        const attn_span s = seen_by(x, i);
        const float top = lam_exact_unrank(most_of(x->shared->top, i));
        float *p = x->p + (size_t)i * x->j->stride;
        int64_t n = 0;
        int32_t size = 0;
        for (int c = (int)threadIdx.x; c < width; c += THREADS) {
            const int key = x->lo + c;
            float w = 0.0f;
            if (key >= s.lo && key < s.hi) {
                const float e = lam_exact_expf(LAM_ADD(p[c], -top));
                n += lam_exact_round(LAM_MUL(e, (float)LAM_EXACT_P));
                w = LAM_MUL(e, x->value_scale[c]);
            }
            size = lam_exact_size(w) > size ? lam_exact_size(w) : size;
            p[c] = w;
        }
        n = lam_exact_warp_total(n);
        size = lam_exact_warp_most(size);
        if (threadIdx.x % LAM_WARP == 0) {
            x->shared->n[warp][i] = n;
            x->shared->size[warp][i] = size;
        }
    }
}

/* The weights as 15-bit numbers: in the place of four of them their high bytes, then their low ones. */
static __device__ void quantise_weights(const attn_tile *x)
{
    for (int i = 0; i < x->n; i++) {
        const lam_exact_grid grid =
            lam_exact_grid_of(most_of(x->shared->size, i), (float)LAM_EXACT_ROW);
        float4 *const p = (float4 *)(x->p + (size_t)i * x->j->stride);
        for (int c = (int)threadIdx.x; c < lam_exact_whole(x->width) / 4; c += THREADS) {
            const float4 four = p[c];
            const float w[4] = {four.x, four.y, four.z, four.w};
            *(uint2 *)&p[c] = lam_exact_split(grid, w);
        }
    }
}

/* A thread: the log-sum-exp of query i, and the factor of its sum of values. */
static __device__ void finish_softmax(const attn_tile *x, int i)
{
    const lam_attn *a = &x->j->a;
    const attn_span s = seen_by(x, i);
    float *lse = (float *)a->lse.p + x->b * a->lse.step + (size_t)(x->first + i) * a->H + x->h;
    int64_t n = 0;
    for (int w = 0; w < WARPS; w++)
        n += x->shared->n[w][i];
    x->shared->share[i] = lam_exact_share(most_of(x->shared->size, i), n);
    *lse = s.lo < s.hi ? lam_exact_lse(lam_exact_unrank(most_of(x->shared->top, i)), n)
                       : lam_exact_float((int32_t)0xff800000);
}

#endif
