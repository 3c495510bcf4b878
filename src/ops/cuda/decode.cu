/* cuda/decode.cu -- attention of one new row per stream; put_rows.cu stores other rows where they are kept.
 *
 * One query leaves nothing to a tile: the time is that of reading keys, values and positions once.  Eight
 * lanes share a key (sixteen bytes each for heads up to 64 wide), so that a warp reads whole rows of a
 * head, several in flight, and those of the next step while it computes with these; each group of lanes runs its own online softmax over every so many keys, and
 * the groups are joined in order.  Where streams and heads are too few to fill the card the keys are split over
 * blocks too, and the last block to finish joins the parts, in order: the result does not depend on
 * which one that is.
 *
 * The new key is read from where the GEMM left it and stored by the group that meets it; nobody else
 * reads it in this launch.  How many keys a stream has is read from memory: the launch is the same for every token, and
 * streams may be of different age.  How a stream's keys are divided depends on its own row and on the launch alone. */
#include "ops/cuda/ptx.cuh"

#include <math_constants.h>

enum {
    LANES = 8,
    THREADS = 256,
    GROUPS = THREADS / LANES,
    MIN_KEYS = 64, /* of a split */
    MOST_SPLITS = 32
};

struct next_call {
    lam_attn_next x;
    int splits;
    bool aligned;
    float *parts; /* [B][H][splits][K + 2]: top, total, o */
    unsigned *tickets;
};

size_t lam_cuda_next_scratch(void)
{
    return (size_t)LAM_CUDA_TICKETS * 2 * (LAM_NEXT_WIDTH + 2) * sizeof(float);
}

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
    return 8 * ((int)threadIdx.x % LANES + LANES * c);
}

template <typename T, int C>
static __device__ __forceinline__ query<C> load_query(const next_call &n, int b, int h)
{
    const lam_attn &a = n.x.a;
    const size_t head = (size_t)h * a.K;
    query<C> q;
#pragma unroll
    for (int c = 0; c < C; c++) {
        const int col = column(c), count = a.K - col;
        const T *row = (const T *)a.q.p + (size_t)b * a.q.step + head + col;
        const float *u = (const float *)a.u + head + col, *v = (const float *)a.v + head + col;
        q.u[c] = q.v[c] = lam_load8_n(row, count, n.aligned);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            q.u[c].v[i] += a.u && i < count ? u[i] : 0.0f;
            q.v[c].v[i] += a.v && i < count ? v[i] : 0.0f;
        }
    }
    return q;
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
template <typename T, int C, bool ALIGNED>
static __device__ __forceinline__ void fetch_row(lam_raw8<T> (&out)[C], const T *row, int K,
                                                 bool in)
{
#pragma unroll
    for (int c = 0; c < C; c++) {
        const int col = column(c);
        if (ALIGNED) {
            out[c] = lam_fetch8(row + col, in && col < K);
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

/* Key j and what belongs to it, if it is below `to`. */
template <typename T, int C, bool ALIGNED>
static __device__ __forceinline__ void fetch(rows<T, C> &out, const lam_attn &a,
                                             const head_rows<T> &p, int j, int at, int to)
{
    const bool in = j < to;
    const int row = a.r_zero + a.r_sign * (j - at);
    fetch_row<T, C, ALIGNED>(out.key, j == at ? p.new_key : p.keys + (size_t)j * a.ldk, a.K, in);
    fetch_row<T, C, ALIGNED>(out.value, j == at ? p.new_value : p.values + (size_t)j * a.ldk, a.K,
                             in);
    fetch_row<T, C, ALIGNED>(out.position, p.positions + (size_t)row * a.ldr, a.K, in && a.r);
}

/* The keys from, from + GROUPS, ... below `to`, U at a time. */
template <typename T, int C, int U, bool ALIGNED>
static __device__ __forceinline__ softmax<C> attend(const next_call &n, int b, int h, int at,
                                                    int from, int to)
{
    enum { AHEAD = C <= 2 && sizeof(T) == 2 }; /* else registers are short */
    const lam_attn &a = n.x.a;
    const unsigned mask = 0xffu << (threadIdx.x % LAM_WARP / LANES * LANES);
    const head_rows<T> p = rows_of<T>(n, b, h);
    const query<C> q = load_query<T, C>(n, b, h);
    softmax<C> s = {-CUDART_INF_F, 0.0f, {}};
    rows<T, C> now[U], soon[U];
#pragma unroll
    for (int x = 0; AHEAD && x < U; x++)
        fetch<T, C, ALIGNED>(soon[x], a, p, from + x * GROUPS, at, to);
    for (int first = from; first < to; first += U * GROUPS) {
        float score[U], top = s.top, total = 0.0f;
#pragma unroll
        for (int x = 0; x < U; x++) {
            if (AHEAD)
                now[x] = soon[x];
            fetch<T, C, ALIGNED>(AHEAD ? soon[x] : now[x], a, p,
                                 first + (x + (AHEAD ? U : 0)) * GROUPS, at, to);
        }
#pragma unroll
        for (int x = 0; x < U; x++) {
            const int j = first + x * GROUPS, row = a.r_zero + a.r_sign * (j - at);
            const bool in = j < to;
            lam_f8 key[C], position[C];
            unpack_row(key, now[x].key);
            unpack_row(position, now[x].position);
            score[x] = lam_lanes_sum<LANES>(dot<C>(q.u, key) + dot<C>(q.v, position), mask);
            if (in && a.rbias)
                score[x] += ((const float *)a.rbias)[(size_t)row * a.H + h];
            score[x] = in ? score[x] * (float)a.scale : -CUDART_INF_F;
            top = fmaxf(top, score[x]);
        }
        const float shrink = expf(s.top - top);
#pragma unroll
        for (int c = 0; c < C; c++)
#pragma unroll
            for (int i = 0; i < 8; i++)
                s.o[c].v[i] *= shrink;
#pragma unroll
        for (int x = 0; x < U; x++) {
            const float weight = expf(score[x] - top);
            const int j = first + x * GROUPS;
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

/* One column (or, for x < 0, the sum) of `parts` paused softmaxes, each `apart` floats from the next; what
 * is joined may have been written by other blocks. */
struct joint {
    float top, total;
};

static __device__ __forceinline__ joint join(const float *tops, const float *totals, int parts,
                                             int apart)
{
    joint all = {-CUDART_INF_F, 0.0f};
    for (int p = 0; p < parts; p++)
        all.top = fmaxf(all.top, __ldcg(tops + (size_t)p * apart));
    if (all.top == -CUDART_INF_F)
        return all;
    for (int p = 0; p < parts; p++)
        all.total +=
            __ldcg(totals + (size_t)p * apart) * expf(__ldcg(tops + (size_t)p * apart) - all.top);
    return all;
}

/* This block's part of the row: joined from its groups into shared memory [K + 2]. */
template <int C>
static __device__ __forceinline__ void join_groups(const softmax<C> &s, float *smem, int K)
{
    const int group = (int)threadIdx.x / LANES;
    float *tops = smem, *totals = smem + GROUPS, *o = smem + 2 * GROUPS, *shares = o + GROUPS * K;
    if (threadIdx.x % LANES == 0) {
        tops[group] = s.top;
        totals[group] = s.total;
    }
#pragma unroll
    for (int c = 0; c < C; c++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (column(c) + i < K)
                o[group * K + column(c) + i] = s.o[c].v[i];
    __syncthreads();
    float top = -CUDART_INF_F, total = 0.0f;
    for (int g = 0; g < GROUPS; g++)
        top = fmaxf(top, tops[g]);
    const float base = top == -CUDART_INF_F ? 0.0f : top; /* nothing seen: all terms are 0 */
    if (threadIdx.x < GROUPS)
        shares[threadIdx.x] = expf(tops[threadIdx.x] - base);
    __syncthreads();
    for (int g = 0; g < GROUPS; g++)
        total += totals[g] * shares[g];
    for (int x = (int)threadIdx.x; x < K; x += THREADS) {
        float sum = 0.0f;
        for (int g = 0; g < GROUPS; g++)
            sum += o[g * K + x] * shares[g];
        o[x] = sum; /* row 0 is read by this thread alone */
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        tops[0] = top;
        totals[0] = total;
    }
    __syncthreads();
}

template <typename T>
static __device__ __forceinline__ void write_row(const lam_attn &a, int b, int h, int x, float o)
{
    ((T *)a.o.p)[(size_t)b * a.o.step + (size_t)h * a.K + x] = lam_act<T>(o);
}

template <typename T, int C, int U, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS, C == 1 ? 2 : 1)
    attn_next(const __grid_constant__ next_call n)
{
    extern __shared__ float smem[]; /* GROUPS * (K + 3): join_groups */
    __shared__ unsigned ticket;
    lam_chain();
    const lam_attn &a = n.x.a;
    const int split = (int)blockIdx.x, h = (int)blockIdx.y, b = (int)blockIdx.z, K = a.K;
    const int at = ((const int32_t *)n.x.at)[b];
    const int seen = a.reach > 0 ? max(0, at - a.reach + 1) : 0;
    const int oldest = a.valid ? max(seen, a.past - ((const int32_t *)a.valid)[b]) : seen;
    const int each = lam_cuda_ceil(at - oldest + 1, n.splits), begin = oldest + split * each;
    const int end = min(begin + each, at + 1);
    join_groups<C>(attend<T, C, U, ALIGNED>(n, b, h, at, begin + (int)threadIdx.x / LANES, end),
                   smem, K);

    float *lse = (float *)a.lse.p + (size_t)b * a.lse.step + h;
    const float *tops = smem, *totals = smem + GROUPS, *o = smem + 2 * GROUPS;
    if (n.splits == 1) {
        for (int x = (int)threadIdx.x; x < K; x += THREADS)
            write_row<T>(a, b, h, x, o[x] / totals[0]);
        if (threadIdx.x == 0)
            *lse = tops[0] + logf(totals[0]);
        return;
    }
    const size_t row = (size_t)b * a.H + h;
    float *parts = n.parts + row * n.splits * (K + 2), *mine = parts + split * (K + 2);
    for (int x = (int)threadIdx.x; x < K; x += THREADS)
        mine[2 + x] = o[x];
    if (threadIdx.x == 0) {
        mine[0] = tops[0];
        mine[1] = totals[0];
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) /* counts to splits - 1 and begins again */
        ticket = atomicInc(n.tickets + row, (unsigned)n.splits - 1);
    __syncthreads();
    if (ticket != (unsigned)n.splits - 1)
        return;
    __threadfence();
    const joint all = join(parts, parts + 1, n.splits, K + 2);
    for (int x = (int)threadIdx.x; x < K; x += THREADS) {
        float sum = 0.0f;
        for (int p = 0; p < n.splits; p++)
            sum +=
                __ldcg(parts + p * (K + 2) + 2 + x) * expf(__ldcg(parts + p * (K + 2)) - all.top);
        write_row<T>(a, b, h, x, sum / all.total);
    }
    if (threadIdx.x == 0)
        *lse = all.top + logf(all.total);
}

template <typename T, int C, int U>
static void launch(lam_cuda_dev *dev, const next_call &n)
{
    const lam_attn *a = &n.x.a;
    const size_t shared = (3 + (size_t)a->K) * GROUPS * sizeof(float);
    const dim3 grid((unsigned)n.splits, (unsigned)a->H, (unsigned)a->B);
    const auto kernel = n.aligned ? attn_next<T, C, U, true> : attn_next<T, C, U, false>;
    lam_cuda_launch(dev, "attn_next", kernel, {grid, THREADS, shared, true}, n);
}

template <typename T>
static void launch_width(lam_cuda_dev *dev, const next_call &n)
{
    const int K = n.x.a.K;
    if (K <= 64)
        launch<T, 1, 2>(dev, n);
    else if (K <= 128)
        launch<T, 2, 1>(dev, n);
    else if (K <= 256)
        launch<T, 4, 1>(dev, n);
    else
        launch<T, 8, 1>(dev, n);
}

extern "C" void lam_cuda_attn_next(lam_dev *base, const lam_attn_next *x)
{
    lam_cuda_dev *dev = lam_cuda(base);
    const lam_attn *a = &x->a;
    const size_t size = dev->bf16 ? sizeof(lam_bf16) : sizeof(float);
    assert(a->mode == LAM_CAUSAL && a->queries == 1 && a->drop.p == 0.0 && a->K <= LAM_NEXT_WIDTH);
    assert(a->kv_class == LAM_ACT);
    next_call n = {*x, 1, false, NULL, dev->tickets};
    n.aligned = a->K % 8 == 0 && lam_cuda_on_border(a->q.p, a->q.step, size) &&
                lam_cuda_on_border(a->k.p, a->k.step, size) &&
                lam_cuda_on_border(a->value.p, a->value.step, size) &&
                lam_cuda_on_border(x->k.p, x->k.step, size) &&
                lam_cuda_on_border(x->value.p, x->value.step, size) &&
                lam_cuda_on_border(a->r, a->ldr, size) && a->ldk * size % 16 == 0;
    const int rows = a->B * a->H, want = lam_cuda_ceil(2 * dev->sms, rows);
    const int most = lam_cuda_ceil(a->keys, MIN_KEYS);
    n.splits = want < most ? want : most;
    n.splits = rows > LAM_CUDA_TICKETS ? 1 : n.splits > MOST_SPLITS ? MOST_SPLITS : n.splits;
    if (n.splits > 1) /* so few rows that their parts fit */
        n.parts =
            (float *)lam_cuda_scratch(dev, (size_t)rows * n.splits * (a->K + 2) * sizeof(float));
    if (dev->bf16)
        launch_width<lam_bf16>(dev, n);
    else
        launch_width<float>(dev, n);
}
