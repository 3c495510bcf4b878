/* norm_team.cuh -- how the two passes of LayerNorm (norm_fwd.cu, norm_bwd.cu) share rows among warps.
 *
 * Both move bytes and little else (four tensors of rows x width), so a team of W warps owns a row and keeps it
 * in registers, one or two groups of eight columns a lane, and the next row is fetched while this one
 * is worked on.  Instructions are scarce: 400 for eight columns already take longer than the memory.
 * FULL kernels serve the common case that the teams' columns are exactly the row's. */
#ifndef LAM_OPS_CUDA_NORM_TEAM_CUH
#define LAM_OPS_CUDA_NORM_TEAM_CUH

#include "ops/cuda/ptx.cuh"

enum { THREADS = 256, BLOCKS_PER_SM = 3 }; /* blocks: all that are resident */

/* A team: W warps side by side, several teams to a block. */
template <int W>
struct team {
    enum {
        LANES = W * LAM_WARP,
        BLOCK = LANES > THREADS ? (int)LANES : (int)THREADS,
        TEAMS = BLOCK / LANES
    };
    int number, lane, col; /* within the block; within the team; the lane's first column */
    int row, rows;         /* its first row, and how far it is to the next */
    float2 (*smem)[W];     /* shared: two sets, used in turn */
    int turn;

    __device__ __forceinline__ explicit team(float2 (*shared)[2][W])
        : number((int)threadIdx.x / LANES), lane((int)threadIdx.x % LANES), col(lane * 8),
          row((int)blockIdx.x * TEAMS + number), rows((int)gridDim.x * TEAMS), smem(shared[number]),
          turn(0)
    {
    }

    /* The sums of both over the team, in every lane.  One barrier: a set is written again only after
     * the barrier of the other one. */
    __device__ __forceinline__ float2 sum(float x, float y)
    {
        return W == 1 ? make_float2(lam_warp_sum(x), lam_warp_sum(y))
                      : join(make_float2(lam_warp_sum(x), lam_warp_sum(y)));
    }

    __device__ __forceinline__ float sum(float x)
    {
        return W == 1 ? lam_warp_sum(x) : join(make_float2(lam_warp_sum(x), 0.0f)).x;
    }

    __device__ __forceinline__ float2 join(float2 mine)
    {
        float2 *set = smem[turn];
        turn ^= 1;
        if (lane % LAM_WARP == 0)
            set[lane / LAM_WARP] = mine;
        lam_barrier<W * LAM_WARP>(number + 1);
        float2 all = set[0];
#pragma unroll
        for (int i = 1; i < W; i++) {
            all.x += set[i].x;
            all.y += set[i].y;
        }
        return all;
    }
};

/* A row of the call, of its block; walking from one to the next takes no division. */
struct cursor {
    int row, b, r;
};

struct stride {
    int row, b, r;

    __device__ __forceinline__ stride(const lam_norm &a, int rows)
        : row(rows), b(rows / a.rows), r(rows % a.rows)
    {
    }
};

static __device__ __forceinline__ cursor next_of(const lam_norm &a, const cursor &c,
                                                 const stride &s)
{
    const int over = c.r + s.r >= a.rows;
    return {c.row + s.row, c.b + s.b + over, c.r + s.r - (over ? a.rows : 0)};
}

/* Products of 32 bits: the steps are known to fit (is_possible). */
template <typename T>
static __device__ __forceinline__ T *row_of(lam_view view, const lam_norm &a, const cursor &c)
{
    return (T *)view.p + (uint64_t)(uint32_t)c.b * (uint32_t)view.step +
           (uint64_t)(uint32_t)c.r * (uint32_t)a.ld;
}

template <typename T>
static __device__ __forceinline__ T *flat_row(const void *p, const lam_norm &a, const cursor &c)
{
    return (T *)(uintptr_t)p + (uint64_t)(uint32_t)c.row * (uint32_t)a.ld;
}

/* A WIDE vector's part for eight columns: zero beyond `width`, and where there is no vector.  Read
 * again for every row: it comes from the L1 cache, and in registers it would cost occupancy. */
template <bool FULL>
static __device__ __forceinline__ lam_f8 vector8(const void *vector, int col, int width)
{
    const float *p = (const float *)vector + col;
    if (FULL)
        return vector ? lam_load8(p) : lam_f8{};
    const int n = vector ? width - col : 0;
    return lam_load8_n(p, n, n >= 8 && (uintptr_t)p % 16 == 0);
}

/* As many blocks as the rows need, but no more than are resident at once. */
template <int W>
static int blocks_of(const lam_cuda_dev *dev, const lam_norm *a)
{
    const int needed = lam_cuda_ceil(a->blocks * a->rows, team<W>::TEAMS);
    const int most = dev->sms * (W <= 8 ? BLOCKS_PER_SM : 1);
    return needed < most ? needed : most;
}

/* Is there something to do that can be done?  A row has to fit the registers of one block, and what lies
 * between two streams 32 bits. */
static bool is_possible(lam_cuda_dev *dev, const char *op, const lam_norm *a)
{
    const size_t steps = a->x.step | a->y.step | a->dy.step | a->dx.step | a->dsum.step;
    assert(a->width >= 1 && a->ld >= a->width && a->ld % 8 == 0);
    if (a->blocks == 0 || a->rows == 0)
        return false;
    if (a->ld > LAM_CUDA_ROW)
        lam_cuda_note_text(dev, op, "rows (d_model) of more than 8192 columns");
    else if (steps > UINT32_MAX)
        lam_cuda_note_text(dev, op, "streams (rows times d_model) of more than 4294967295 numbers");
    return a->ld <= LAM_CUDA_ROW && steps <= UINT32_MAX;
}

static bool is_full(const lam_norm *a, int columns)
{
    const uintptr_t vectors = (uintptr_t)a->bias | (uintptr_t)a->gain | (uintptr_t)a->shift;
    return a->width == columns && a->ld == columns && !a->dsum.p && vectors % 16 == 0;
}

#endif
