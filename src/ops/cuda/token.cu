/* cuda/token.cu -- the operations of a decoded token as one kernel.
 *
 * One token of one stream is some sixty operations of which none fills the card, each waiting for the one before it.  As
 * kernels they take 3 us apiece.  Here one block of each multiprocessor stays for all of them and waits at a barrier in
 * memory.  All blocks have to be resident at once, hence a cooperative launch.
 *
 * What an operation reads of constants (weights, older keys) is announced to the second cache two operations before, and
 * asked for before the barrier.  A multiprocessor reads a row once, through its first cache: when each warp read it from
 * the second, the slices that hold these few lines were what all others waited for.  Attention leaves the parts of
 * its splits to the product behind it, where each block joins them for itself.
 *
 * While a pass is captured (repeat.cu) these operations are kept in a list, and whatever comes to the stream next starts
 * them before itself (lam_cuda_flush).  The numbers are those of the kernels: gemv.cuh and attn_next.cuh compute them. */
#include "ops/cuda/token.cuh"

#include <stdlib.h>

enum {
    THREADS = NEXT_THREADS,
    WARPS = THREADS / LAM_WARP,
    HEAD = 64,            /* columns of a head, at most */
    ROW = 2 * GEMV_APART, /* terms of a row that stays in registers */
    LINE = 128,           /* bytes that come to the second cache at once */
    AHEAD = 2,            /* operations from one that is announced to the one that runs */
    TOGETHER = 16,        /* parts that are asked for at a time */
    LEAST_JOBS = 4,       /* fewer are not worth it */
    SMEM = 2 * NEXT_WARPS + NEXT_WARPS * HEAD /* attend_split(), or a row */
};

/* LONG: rows of more than ROW terms.  JOINED: the row is what the attention in front left in parts. */
enum kind { NEXT, PLAIN, NORMED, LONG, JOINED };

/* The parts of a row's heads ([H][splits][K + 2], attn_next.cuh), and where the row belongs. */
struct heads {
    const float *parts;
    int H, K, splits;
    lam_bf16 *o;
    float *lse;
};

struct job {
    kind is;
    union {
        struct {
            gemv_call gemv;
            heads joined;
        };
        next_call next;
    };
};

/* Bytes that a kernel takes.  Old drivers take fewer: table.cu asks for their version. */
#if CUDART_VERSION >= 12010
enum { PARAMETERS = 32764 };
#else
enum { PARAMETERS = 4096 };
#endif
enum { MOST_JOBS = (PARAMETERS - 16) / sizeof(job) };

struct token {
    int n;
    unsigned *arrived; /* zero before and after */
    job jobs[MOST_JOBS];
};

static_assert(sizeof(token) <= PARAMETERS, "parameters of a kernel");

struct lam_cuda_kept {
    token t;
};

static __device__ __forceinline__ void arrive(const token &t, int i)
{
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    if (i + 1 < t.n)
        lam_signal(t.arrived);
    else if (atomicAdd(t.arrived, 1u) + 1 == (unsigned)t.n * gridDim.x)
        *t.arrived = 0; /* nobody waits any more */
}

/* ---- what will be read, to the second cache ---- */

/* `rows` rows of `width` bytes, `ld` bytes apart: thread `me` of `all`. */
static __device__ __forceinline__ void announce(const void *p, int rows, size_t width, size_t ld,
                                                unsigned me, unsigned all)
{
    const unsigned lines = (unsigned)(width / LINE), count = (unsigned)rows * lines;
    for (unsigned i = me; i < count; i += all)
        lam_prefetch((const char *)p + i / lines * ld + i % lines * LINE);
}

/* By all warps of all blocks but the first ones. */
static __device__ __forceinline__ void announce(const job &j)
{
    const unsigned each = THREADS - LAM_WARP, all = gridDim.x * each;
    const unsigned me = blockIdx.x * each + threadIdx.x - LAM_WARP;
    const size_t size = sizeof(lam_bf16);
    if (j.is != NEXT) {
        const lam_gemm &g = j.gemv.g;
        announce(g.b, 1, (size_t)g.n * g.ldb * size, 0, me, all);
        return;
    }
    const lam_attn &a = j.next.x.a;
    const size_t width = (size_t)a.H * a.K * size;
    announce(a.k.p, a.keys, width, a.ldk * size, me, all);
    announce(a.value.p, a.keys, width, a.ldk * size, me, all);
    if (a.r)
        announce(a.r, a.r_rows, width, a.ldr * size, me, all);
}

/* Before operation i what the one in front wrote has to be there.  Meanwhile there is time to announce others. */
static __device__ __forceinline__ void wait_for(const token &t, int i)
{
    if (threadIdx.x >= LAM_WARP && i + AHEAD < t.n)
        announce(t.jobs[i + AHEAD]);
    else if (threadIdx.x == 0 && i > 0)
        lam_await(t.arrived, (unsigned)i * gridDim.x);
    __syncthreads();
}

/* ---- operations ---- */

template <typename WAIT>
static __device__ __forceinline__ void attend_splits(const next_call &n, float *smem,
                                                     const WAIT &wait)
{
    const float *o = smem + 2 * NEXT_WARPS;
    const int parts = n.x.a.H * n.splits;
    if ((int)blockIdx.x >= parts)
        wait();
    for (int i = (int)blockIdx.x; i < parts; i += (int)gridDim.x) {
        const int h = i / n.splits, split = i % n.splits;
        attend_split<lam_bf16, 1, 2, true>(n, 0, h, split, smem, wait);
        put_part(n, join<NEXT_WARPS>(smem, smem + NEXT_WARPS, NEXT_WARPS, 1), o, (size_t)h, split);
        __syncthreads();
    }
}

/* A warp joins a head as attend_head does, two columns a lane; all heads are the row. */
static __device__ __forceinline__ void join_heads(const heads &n, lam_bf16 *row)
{
    const int lane = (int)threadIdx.x % LAM_WARP, apart = n.K + 2;
    for (int h = (int)threadIdx.x / LAM_WARP; h < n.H; h += WARPS) {
        const float *part = n.parts + (size_t)h * n.splits * apart;
        const float *mine = part + min(lane, n.splits - 1) * apart;
        const float top = lane < n.splits ? __ldcg(mine) : -CUDART_INF_F, total = __ldcg(mine + 1);
        const float most = lam_warp_max(top), base = most == -CUDART_INF_F ? 0.0f : most;
        const float share = expf(top - base);
        const int col = min(2 * lane, n.K - 2);
        float all = 0.0f;
        float2 sum = make_float2(0.0f, 0.0f);
        for (int first = 0; first < n.splits; first += TOGETHER) {
            float2 o[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; i++)
                o[i] =
                    __ldcg((const float2 *)(part + min(first + i, n.splits - 1) * apart + 2 + col));
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) { /* beyond the last one a share is 0 */
                const float weight = __shfl_sync(0xffffffffu, share, first + i);
                all = fmaf(__shfl_sync(0xffffffffu, total, first + i), weight, all);
                sum.x = fmaf(o[i].x, weight, sum.x);
                sum.y = fmaf(o[i].y, weight, sum.y);
            }
        }
        const uint32_t pair = lam_pack(sum.x / all, sum.y / all);
        if (2 * lane < n.K)
            *(uint32_t *)(row + h * n.K + col) = pair;
        if (2 * lane < n.K && blockIdx.x == 0)
            *(uint32_t *)(n.o + h * n.K + col) = pair;
        if (lane == 0 && blockIdx.x == 0)
            n.lse[h] = most + logf(all);
    }
    __syncthreads();
}

template <typename WAIT>
static __device__ __forceinline__ void multiply_joined(const job &j, const gemv_columns &mine,
                                                       lam_bf16 *row, const WAIT &wait)
{
    typedef lam_raw8<lam_bf16> piece;
    gemv_short<lam_bf16, lam_bf16, 1, 2, 2>(j.gemv.g, mine, [&](piece(&x)[1][2]) {
        wait();
        join_heads(j.joined, row);
#pragma unroll
        for (int p = 0; p < 2; p++) {
            const int from = gemv_lane() + p * GEMV_APART;
            x[0][p] = from < j.gemv.g.k ? *(const piece *)(row + from) : piece{};
        }
    });
}

template <typename WAIT>
static __device__ __forceinline__ void run(const job &j, float *smem, const WAIT &wait)
{
    const int warp = (int)blockIdx.x * WARPS + (int)threadIdx.x / LAM_WARP;
    const int warps = (int)gridDim.x * WARPS;
    const gemv_columns twice = {warp, warps, 2 * warps}, once = {warp, 0, warps};
    switch (j.is) {
    case NEXT:
        return attend_splits(j.next, smem, wait);
    case PLAIN:
        return gemv_plain<lam_bf16, lam_bf16, 1, 2, 2, LAM_KEPT>(j.gemv, twice, wait);
    case NORMED:
        return gemv_normed<lam_bf16, 1, 2, 2, LAM_KEPT>(j.gemv, twice, wait);
    case LONG:
        return gemv_long<lam_bf16, lam_bf16, 1, LAM_KEPT>(j.gemv, once, wait);
    case JOINED:
        return multiply_joined(j, twice, (lam_bf16 *)smem, wait);
    }
}

static __global__ void __launch_bounds__(THREADS, 1) run_token(const __grid_constant__ token t)
{
    __shared__ __align__(16) float smem[SMEM];
    static_assert(sizeof(lam_bf16) * ROW <= sizeof(float) * NEXT_WARPS * HEAD, "a row");
    for (int i = 0; i < t.n; i++) {
        run(t.jobs[i], smem, [&] { wait_for(t, i); });
        arrive(t, i);
    }
}

/* ---- host ------------------------------------------------------------------------------------ */

static void start(lam_cuda_dev *dev, const job *j)
{
    if (j->is == NEXT)
        lam_cuda_start_next(dev, &j->next);
    else
        lam_cuda_start_gemv(dev, &j->gemv, j->is == NORMED);
}

/* Is every attention followed by the product that joins its parts? */
static bool is_whole(const token *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->jobs[i].is == NEXT && (i + 1 == t->n || t->jobs[i + 1].is != JOINED))
            return false;
    return true;
}

static void launch(lam_cuda_dev *dev, const token &t)
{
    lam_cuda_launch(dev, "token", run_token, {(unsigned)dev->sms, THREADS, 0, false, true}, t);
}

void lam_cuda_flush(lam_cuda_dev *dev)
{
    lam_cuda_kept *kept = dev->kept;
    if (!kept || kept->t.n == 0)
        return;
    const token t = kept->t;
    kept->t.n = 0; /* before what follows comes by here */
    const bool whole = t.n >= LEAST_JOBS && is_whole(&t);
    if (whole && dev->together)
        return launch(dev, t);
    for (int i = 0; i < t.n; i++) {
        token one = {1, t.arrived, {t.jobs[i]}};
        if (whole)
            launch(dev, one);
        else
            start(dev, &t.jobs[i]);
    }
}

/* The next place of the list, or NULL where nothing is kept. */
static job *place(lam_cuda_dev *dev, kind is)
{
    if (!dev->capturing || !dev->persistent || !dev->bf16)
        return NULL;
    if (!dev->kept)
        dev->kept = (lam_cuda_kept *)calloc(1, sizeof *dev->kept);
    if (!dev->kept)
        return NULL;
    token *t = &dev->kept->t;
    if (t->n + (is == NEXT) >= (int)MOST_JOBS) /* its product is to come along */
        lam_cuda_flush(dev);
    t->arrived = dev->tickets + LAM_CUDA_TICKETS;
    t->jobs[t->n].is = is;
    return &t->jobs[t->n++];
}

/* The attention kept last, if its result is the row `g` multiplies. */
static const next_call *in_front(const lam_cuda_dev *dev, const lam_gemm *g)
{
    const token *t = dev->kept ? &dev->kept->t : NULL;
    const job *last = t && t->n > 0 ? &t->jobs[t->n - 1] : NULL;
    const lam_attn *a = last && last->is == NEXT ? &last->next.x.a : NULL;
    return a && a->o.p == g->a && a->H * a->K == g->k && g->k <= ROW ? &last->next : NULL;
}

bool lam_cuda_keep_gemv(lam_cuda_dev *dev, const gemv_call *n, bool norm)
{
    const lam_gemm *g = &n->g;
    if (g->m != 1 || g->c_class != LAM_ACT)
        return false;
    /* Vectors of odd widths are read number by number, which is not faster than kernels are. */
    if (norm && (g->k > ROW || n->norm.width % 8 != 0))
        return false;
    const next_call *before = norm ? NULL : in_front(dev, g);
    const heads joined = before ? heads{before->parts,
                                        before->x.a.H,
                                        before->x.a.K,
                                        before->splits,
                                        (lam_bf16 *)before->x.a.o.p,
                                        (float *)before->x.a.lse.p}
                                : heads{};
    job *j = place(dev, norm ? NORMED : before ? JOINED : g->k <= ROW ? PLAIN : LONG);
    if (!j)
        return false;
    j->gemv = *n;
    j->joined = joined;
    return true;
}

bool lam_cuda_keep_next(lam_cuda_dev *dev, const next_call *n)
{
    const lam_attn *a = &n->x.a;
    const size_t part = (size_t)(a->K + 2) * sizeof(float);
    if (a->B != 1 || a->K > HEAD || !n->aligned)
        return false;
    job *j = place(dev, NEXT);
    if (!j)
        return false;
    j->next = *n;
    j->next.parts = (float *)lam_cuda_scratch(dev, (size_t)(a->H * n->splits) * part);
    return true;
}
