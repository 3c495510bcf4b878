/* attn_next.cuh -- attention of one new row per stream, block by block: what decode.cu and token.cu launch.
 *
 * One query leaves nothing to a tile: the time is that of reading keys, values and positions once.  Eight
 * lanes share a key (sixteen bytes each for heads up to 64 wide), so that a warp reads whole rows of a
 * head, several in flight, and those of the next step while it computes with these; each group of lanes runs its own online
 * softmax over every so many keys, and the groups are joined in order, first those of a warp.  Where streams and heads are
 * too few to fill the card the keys are split over blocks too, and the last block to finish joins the parts, in order: the
 * result does not depend on which one that is.
 *
 * The work in front makes the query and the new key and value.  All others have been there since earlier tokens: the
 * first of them are asked for before that work has ended (`wait`), and of one stream these are all.
 *
 * The new key is read from where the GEMM left it and stored by the group that meets it; nobody else
 * reads it in this launch.  How many keys a stream has is read from memory: the launch is the same for every token, and
 * streams may be of different age.  How a stream's keys are divided depends on its own row and on the launch alone. */
#ifndef LAM_OPS_CUDA_ATTN_NEXT_CUH
#define LAM_OPS_CUDA_ATTN_NEXT_CUH

#include "ops/cuda/ptx.cuh"

#include <math_constants.h>

enum {
    NEXT_LANES = 8,
    NEXT_THREADS = 256,
    NEXT_GROUPS = NEXT_THREADS / NEXT_LANES,
    NEXT_WARPS = NEXT_THREADS / LAM_WARP,
    NEXT_MIN_KEYS = 64, /* of a split */
    NEXT_MOST_SPLITS = 32
};

struct next_call {
    lam_attn_next x;
    int splits;
    bool aligned;
    float *parts; /* [B][H][splits][K + 2]: top, total, o */
    unsigned *tickets;
};

/* A paused softmax: the largest score, the sum of exp(score - top), this lane's columns of the output. */
template <int C>
struct softmax {
    float top, total;
    lam_f8 o[C];
};

/* What this lane holds of the query: q + u, q + v. */
template <int C>
struct query {
    lam_f8 u[C], v[C];
};

/* Columns of slab c of this lane: how many of the eight exist. */
static __device__ __forceinline__ int column(int c)
{
    return 8 * ((int)threadIdx.x % NEXT_LANES + NEXT_LANES * c);
}

/* u and v, which are constants. */
template <int C>
static __device__ __forceinline__ query<C> load_biases(const next_call &n, int h)
{
    const lam_attn &a = n.x.a;
    query<C> q;
#pragma unroll
    for (int c = 0; c < C; c++) {
        const size_t at = (size_t)h * a.K + column(c);
        const float *u = (const float *)a.u + at, *v = (const float *)a.v + at;
        const int count = a.K - column(c);
        q.u[c] = lam_load8_n(u, a.u ? count : 0, (uintptr_t)u % 16 == 0);
        q.v[c] = lam_load8_n(v, a.v ? count : 0, (uintptr_t)v % 16 == 0);
    }
    return q;
}

/* q + u, q + v. */
template <typename T, int C>
static __device__ __forceinline__ void add_query(query<C> &q, const next_call &n, int b, int h)
{
    const lam_attn &a = n.x.a;
#pragma unroll
    for (int c = 0; c < C; c++) {
        const T *row = (const T *)a.q.p + (size_t)b * a.q.step + (size_t)h * a.K + column(c);
        const lam_f8 x = lam_load8_n(row, a.K - column(c), n.aligned);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            q.u[c].v[i] += x.v[i];
            q.v[c].v[i] += x.v[i];
        }
    }
}

template <int C>
static __device__ __forceinline__ float dot(const lam_f8 *x, const lam_f8 *y)
{
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < C; c++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum += x[c].v[i] * y[c].v[i];
    return sum;
}

/* A lane's columns of a key, its value and its position, as they lie in memory: until they are unpacked nothing waits. */
template <typename T, int C>
struct rows {
    lam_raw8<T> key[C], value[C], position[C];
};

/* ALIGNED: rows begin on 16-byte borders and K is a multiple of 8. */
template <typename T, int C, bool ALIGNED, lam_use USE = LAM_ONCE>
static __device__ __forceinline__ void fetch_row(lam_raw8<T> (&out)[C], const T *row, int K,
                                                 bool in)
{
#pragma unroll
    for (int c = 0; c < C; c++) {
        const int col = column(c);
        if (ALIGNED) {
            out[c] = lam_ask8<USE>(row + col, in && col < K);
            continue;
        }
        lam_f8 x = lam_load8_n(row + col, in ? K - col : 0, false);
        lam_store8((T *)&out[c], x);
    }
}

template <int C, typename T>
static __device__ __forceinline__ void unpack_row(lam_f8 (&out)[C], const lam_raw8<T> (&row)[C])
{
#pragma unroll
    for (int c = 0; c < C; c++)
        out[c] = lam_unpack8(row[c]);
}

/* Where a head's keys and values of a stream lie, and the new ones. */
template <typename T>
struct head_rows {
    T *keys, *values;
    const T *new_key, *new_value, *positions;
};

template <typename T>
static __device__ __forceinline__ head_rows<T> rows_of(const next_call &n, int b, int h)
{
    const lam_attn &a = n.x.a;
    const size_t head = (size_t)h * a.K;
    return {(T *)a.k.p + (size_t)b * a.k.step + head,
            (T *)a.value.p + (size_t)b * a.value.step + head,
            (const T *)n.x.k.p + (size_t)b * n.x.k.step + head,
            (const T *)n.x.value.p + (size_t)b * n.x.value.step + head, (const T *)a.r + head};
}

/* Key j and what belongs to it, if it is below `to`.  `old`: of the new key only its position, the rest is not there yet. */
enum when { OLD, ALL };

template <typename T, int C, bool ALIGNED>
static __device__ __forceinline__ void
fetch(rows<T, C> &out, const lam_attn &a, const head_rows<T> &p, int j, int at, int to, when then)
{
    const bool in = j < to, kept = in && (then == ALL || j != at);
    const int row = a.r_zero + a.r_sign * (j - at);
    fetch_row<T, C, ALIGNED>(out.key, j == at ? p.new_key : p.keys + (size_t)j * a.ldk, a.K, kept);
    fetch_row<T, C, ALIGNED>(out.value, j == at ? p.new_value : p.values + (size_t)j * a.ldk, a.K,
                             kept);
    fetch_row<T, C, ALIGNED, LAM_KEPT>(out.position, p.positions + (size_t)row * a.ldr, a.K,
                                       in && a.r);
}

/* The keys from, from + NEXT_GROUPS, ... below `to`, U at a time; a warp's groups stay together, the last time some without a
 * key.  Waits for the kernel in front. */
template <typename T, int C, int U, bool ALIGNED, typename WAIT>
static __device__ __forceinline__ softmax<C> attend(const next_call &n, int b, int h, int at,
                                                    int from, int to, const WAIT &wait)
{
    enum { AHEAD = C <= 2 && sizeof(T) == 2 && ALIGNED }; /* else registers are short */
    const lam_attn &a = n.x.a;
    const int ahead = (int)threadIdx.x % LAM_WARP / NEXT_LANES; /* of the warp's first group */
    const head_rows<T> p = rows_of<T>(n, b, h);
    query<C> q = load_biases<C>(n, h);
    softmax<C> s = {-CUDART_INF_F, 0.0f, {}};
    rows<T, C> now[U], soon[U];
#pragma unroll
    for (int x = 0; AHEAD && x < U; x++)
        fetch<T, C, ALIGNED>(soon[x], a, p, from + x * NEXT_GROUPS, at, to, OLD);
    wait();
#pragma unroll
    for (int x = 0; AHEAD && x < U; x++)
        if (from + x * NEXT_GROUPS == at && at < to) {
            fetch_row<T, C, ALIGNED>(soon[x].key, p.new_key, a.K, true);
            fetch_row<T, C, ALIGNED>(soon[x].value, p.new_value, a.K, true);
        }
    add_query<T, C>(q, n, b, h);
    for (int first = from; first - ahead < to; first += U * NEXT_GROUPS) {
        float score[U], top = s.top, total = 0.0f;
#pragma unroll
        for (int x = 0; x < U; x++) {
            if (AHEAD)
                now[x] = soon[x];
            fetch<T, C, ALIGNED>(AHEAD ? soon[x] : now[x], a, p,
                                 first + (x + (AHEAD ? U : 0)) * NEXT_GROUPS, at, to, ALL);
        }
#pragma unroll
        for (int x = 0; x < U; x++) {
            const int j = first + x * NEXT_GROUPS, row = a.r_zero + a.r_sign * (j - at);
            const bool in = j < to;
            lam_f8 key[C], position[C];
            unpack_row(key, now[x].key);
            unpack_row(position, now[x].position);
            score[x] = lam_lanes_sum<NEXT_LANES>(dot<C>(q.u, key) + dot<C>(q.v, position));
            if (in && a.rbias)
                score[x] += ((const float *)a.rbias)[(size_t)row * a.H + h];
            score[x] = in ? score[x] * (float)a.scale : -CUDART_INF_F;
            top = fmaxf(top, score[x]);
        }
        const float base = top == -CUDART_INF_F ? 0.0f : top; /* a group without keys so far */
        const float shrink = expf(s.top - base);
#pragma unroll
        for (int c = 0; c < C; c++)
#pragma unroll
            for (int i = 0; i < 8; i++)
                s.o[c].v[i] *= shrink;
#pragma unroll
        for (int x = 0; x < U; x++) {
            const float weight = expf(score[x] - base);
            const int j = first + x * NEXT_GROUPS;
            lam_f8 value[C];
            unpack_row(value, now[x].value);
            total += weight;
#pragma unroll
            for (int c = 0; c < C; c++)
#pragma unroll
                for (int i = 0; i < 8; i++)
                    s.o[c].v[i] += weight * value[c].v[i];
            if (j == at && j < to) /* beyond its end a split has read nothing */
#pragma unroll
                for (int c = 0; c < C; c++) {
                    const size_t to_row = (size_t)j * a.ldk + column(c);
                    lam_store8_n(p.keys + to_row, lam_unpack8(now[x].key[c]), a.K - column(c),
                                 ALIGNED);
                    lam_store8_n(p.values + to_row, value[c], a.K - column(c), ALIGNED);
                }
        }
        s.total = s.total * shrink + total;
        s.top = top;
    }
    return s;
}

/* Several paused softmaxes as one: the largest of their tops, the sum of their totals, and what each counts for. */
template <int MOST>
struct joint {
    float top, total, share[MOST];
};

/* Softmax p has its top at tops[p * apart] and its total at totals[p * apart], in shared memory; `count` of them. */
template <int MOST>
static __device__ __forceinline__ joint<MOST> join(const float *tops, const float *totals,
                                                   int count, int apart)
{
    joint<MOST> all = {-CUDART_INF_F, 0.0f, {}};
#pragma unroll
    for (int p = 0; p < MOST; p++)
        all.share[p] = p < count ? tops[p * apart] : -CUDART_INF_F;
#pragma unroll
    for (int p = 0; p < MOST; p++)
        all.top = fmaxf(all.top, all.share[p]);
    const float base =
        all.top == -CUDART_INF_F ? 0.0f : all.top; /* nothing seen: all terms are 0 */
#pragma unroll
    for (int p = 0; p < MOST; p++) {
        all.share[p] = expf(all.share[p] - base);
        all.total = fmaf(p < count ? totals[p * apart] : 0.0f, all.share[p], all.total);
    }
    return all;
}

/* Column x of their outputs, output p at o[p * apart]. */
template <int MOST>
static __device__ __forceinline__ float column_of(const joint<MOST> &all, const float *o, int count,
                                                  int apart)
{
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < MOST; p++)
        sum = fmaf(p < count ? o[p * apart] : 0.0f, all.share[p], sum);
    return sum;
}

/* The softmaxes of a warp's groups as one, which its first group holds then, to this warp's place in shared memory:
 * tops, totals [NEXT_WARPS], o [NEXT_WARPS][K]. */
template <int C>
static __device__ __forceinline__ void join_warp(softmax<C> s, float *smem, int K)
{
    const int warp = (int)threadIdx.x / LAM_WARP, lane = (int)threadIdx.x % LAM_WARP;
#pragma unroll
    for (int step = NEXT_LANES; step < LAM_WARP; step *= 2) {
        const float top = fmaxf(s.top, __shfl_xor_sync(0xffffffffu, s.top, step));
        const float share = expf(s.top - (top == -CUDART_INF_F ? 0.0f : top));
        s.top = top;
        s.total *= share;
        s.total += __shfl_xor_sync(0xffffffffu, s.total, step);
#pragma unroll
        for (int c = 0; c < C; c++)
#pragma unroll
            for (int i = 0; i < 8; i++) {
                s.o[c].v[i] *= share;
                s.o[c].v[i] += __shfl_xor_sync(0xffffffffu, s.o[c].v[i], step);
            }
    }
    if (lane == 0) {
        smem[warp] = s.top;
        smem[NEXT_WARPS + warp] = s.total;
    }
#pragma unroll
    for (int c = 0; c < C; c++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (lane < NEXT_LANES && column(c) + i < K)
                smem[2 * NEXT_WARPS + warp * K + column(c) + i] = s.o[c].v[i];
}

template <typename T>
static __device__ __forceinline__ void write_row(const lam_attn &a, int b, int h, int x, float o)
{
    ((T *)a.o.p)[(size_t)b * a.o.step + (size_t)h * a.K + x] = lam_act<T>(o);
}

/* Puts this block's part beside those of the other splits. */
static __device__ __forceinline__ void put_part(const next_call &n, const joint<NEXT_WARPS> &all,
                                                const float *o, size_t row, int split)
{
    const int K = n.x.a.K;
    float *mine = n.parts + (row * n.splits + split) * (K + 2);
    for (int x = (int)threadIdx.x; x < K; x += NEXT_THREADS)
        mine[2 + x] = column_of(all, o + x, NEXT_WARPS, K);
    if (threadIdx.x == 0) {
        mine[0] = all.top;
        mine[1] = all.total;
    }
}

/* The same; true in the block that is the last one. */
static __device__ __forceinline__ bool hand_in(const next_call &n, const joint<NEXT_WARPS> &all,
                                               const float *o, size_t row, int split,
                                               unsigned *ticket)
{
    put_part(n, all, o, row, split);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) /* counts to splits - 1 and begins again */
        *ticket = atomicInc(n.tickets + row, (unsigned)n.splits - 1);
    __syncthreads();
    return *ticket == (unsigned)n.splits - 1;
}

/* Head h of stream b: a split of its keys, by a block, whose softmaxes are in smem then, one of each warp. */
template <typename T, int C, int U, bool ALIGNED, typename WAIT>
static __device__ __forceinline__ void attend_split(const next_call &n, int b, int h, int split,
                                                    float *smem, const WAIT &wait)
{
    const lam_attn &a = n.x.a;
    const int at = __ldcg((const int32_t *)n.x.at + b);
    const int seen = a.reach > 0 ? max(0, at - a.reach + 1) : 0;
    const int oldest = a.valid ? max(seen, a.past - __ldcg((const int32_t *)a.valid + b)) : seen;
    const int each = lam_cuda_ceil(at - oldest + 1, n.splits), begin = oldest + split * each;
    const int end = min(begin + each, at + 1);
    join_warp<C>(
        attend<T, C, U, ALIGNED>(n, b, h, at, begin + (int)threadIdx.x / NEXT_LANES, end, wait),
        smem, a.K);
    __syncthreads();
}

template <typename T, int C, int U, bool ALIGNED, typename WAIT>
static __device__ __forceinline__ void attend_head(const next_call &n, int b, int h, int split,
                                                   float *smem, unsigned *ticket, const WAIT &wait)
{
    const lam_attn &a = n.x.a;
    const int K = a.K;
    attend_split<T, C, U, ALIGNED>(n, b, h, split, smem, wait);
    float *lse = (float *)a.lse.p + (size_t)b * a.lse.step + h;
    const float *o = smem + 2 * NEXT_WARPS;
    const joint<NEXT_WARPS> block = join<NEXT_WARPS>(smem, smem + NEXT_WARPS, NEXT_WARPS, 1);
    if (n.splits == 1) {
        for (int x = (int)threadIdx.x; x < K; x += NEXT_THREADS)
            write_row<T>(a, b, h, x, column_of(block, o + x, NEXT_WARPS, K) / block.total);
        if (threadIdx.x == 0)
            *lse = block.top + logf(block.total);
        return;
    }
    const size_t row = (size_t)b * a.H + h;
    if (!hand_in(n, block, o, row, split, ticket))
        return;
    __threadfence();
    for (int i = (int)threadIdx.x; i < n.splits * (K + 2); i += NEXT_THREADS)
        smem[i] = __ldcg(n.parts + row * n.splits * (K + 2) + i);
    __syncthreads();
    const joint<NEXT_MOST_SPLITS> all = join<NEXT_MOST_SPLITS>(smem, smem + 1, n.splits, K + 2);
    for (int x = (int)threadIdx.x; x < K; x += NEXT_THREADS)
        write_row<T>(a, b, h, x, column_of(all, smem + 2 + x, n.splits, K + 2) / all.total);
    if (threadIdx.x == 0)
        *lse = all.top + logf(all.total);
}

#endif
