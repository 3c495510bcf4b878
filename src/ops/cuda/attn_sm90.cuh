/* cuda/attn_sm90.cuh -- what the Hopper attention kernels share: 64 x 64 tiles of a warpgroup.
 *
 * Rows are always queries, columns keys.  A block of three warpgroups computes, each on tiles of
 * its own, and one thread of a fourth has the copy engine bring what they need. */
#ifndef LAM_OPS_CUDA_ATTN_SM90_CUH
#define LAM_OPS_CUDA_ATTN_SM90_CUH

#include "ops/cuda/attn_sm90_skew.cuh"
#include "ops/cuda/attn_tile.cuh"
#include "ops/cuda/tma.cuh"
#include "ops/cuda/wgmma.cuh"

#include <limits.h>

/* The tensors of a call, as parameters of the kernel. */
struct attn_maps {
    CUtensorMap q, k, value; /* q: forward only */
    CUtensorMap r;           /* rows in the order of offsets */
    CUtensorMap qu, qv, d_o; /* backward only */
};

enum {
    WG_ROWS = LAM_TMA_ROWS, /* of every tile */
    WG_TILE = LAM_TMA_TILE, /* its bytes */
    WG_THREADS = 128,       /* of a warpgroup */
    WG_STEP_ROWS = 2,
    WG_STEP_COLS = 128, /* a step of depth 16, by rows and by columns, in units of 16 bytes */
    WG_GROUPS = 3,      /* warpgroups of a block that compute */
    WG_OWN = WG_GROUPS * WG_ROWS,      /* queries, keys or offsets of a block */
    WG_BLOCK = WG_GROUPS * WG_THREADS, /* threads that compute; then those that copy */
    WG_ALL = WG_BLOCK + WG_THREADS,
    WG_REGISTERS = 160 /* of a thread that computes */
};

/* d = a b^T, or d += a b^T, in the background, for tiles of 64 rows of K elements. */
template <int K>
static __device__ __forceinline__ void attn_wg_rows(float (&d)[8][4], uint32_t a, uint32_t b,
                                                    bool add)
{
    const uint32_t left = lam_wg_operand(a), right = lam_wg_operand(b);
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++)
        lam_wg_mma<WG_ROWS, BY_ROWS, BY_ROWS>(d, left + WG_STEP_ROWS * kk,
                                              right + WG_STEP_ROWS * kk, add || kk > 0);
}

/* d += a b for four left operands a in registers, 16 columns each, and the 64 rows of b. */
template <int K>
static __device__ __forceinline__ void attn_wg_left(float (&d)[K / 8][4], const uint32_t (*a)[4],
                                                    uint32_t b)
{
    const uint32_t right = lam_wg_operand(b);
#pragma unroll
    for (int kk = 0; kk < 4; kk++)
        lam_wg_mma<K, BY_COLUMNS>(d, *(const uint32_t(*)[4])a[kk], right + WG_STEP_COLS * kk, true);
}

/* d += a b: a holds 64 columns, b K columns, both 64 rows. */
template <int K>
static __device__ __forceinline__ void attn_wg_sum(float (&d)[K / 8][4], uint32_t a, uint32_t b)
{
    const uint32_t left = lam_wg_operand(a), right = lam_wg_operand(b);
#pragma unroll
    for (int kk = 0; kk < 4; kk++)
        lam_wg_mma<K, BY_ROWS, BY_COLUMNS>(d, left + WG_STEP_ROWS * kk, right + WG_STEP_COLS * kk,
                                           true);
}

/* d += a^T b: a holds 64 columns, b K columns, both 64 rows. */
template <int K>
static __device__ __forceinline__ void attn_wg_columns(float (&d)[K / 8][4], uint32_t a, uint32_t b)
{
    const uint32_t left = lam_wg_operand(a), right = lam_wg_operand(b);
#pragma unroll
    for (int kk = 0; kk < 4; kk++)
        lam_wg_mma<K, BY_COLUMNS, BY_COLUMNS>(d, left + WG_STEP_COLS * kk,
                                              right + WG_STEP_COLS * kk, true);
}

/* The 64 x 64 numbers of a warpgroup as left operands. */
static __device__ __forceinline__ void attn_pack_left(uint32_t (&a)[4][4], const float (&s)[8][4])
{
#pragma unroll
    for (int kk = 0; kk < 4; kk++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            a[kk][x] = lam_pack(s[2 * kk + x / 2][x % 2 * 2], s[2 * kk + x / 2][x % 2 * 2 + 1]);
}

/* The same into this warp's sixteen rows of a tile. */
static __device__ __forceinline__ void attn_store_left(uint32_t rows, const float (&s)[8][4],
                                                       const attn_lanes &lanes)
{
    uint32_t a[4][4];
    attn_pack_left(a, s);
#pragma unroll
    for (int kk = 0; kk < 4; kk++)
        lam_store4(rows + (lanes.a ^ (uint32_t)(kk << 5)), a[kk]);
}

/* ---- the pipeline of tiles ------------------------------------------------------------------- */

/* One thread of the last warpgroup, the producer, has the copy engine load tiles ahead of their use: `full`
 * turns when a stage has come, `empty` when all warps that compute are done with it. */
struct attn_turn {
    int stage;
    uint32_t phase;
};

template <int STAGES>
static __device__ __forceinline__ void attn_advance(attn_turn &turn)
{
    if (++turn.stage == STAGES) {
        turn.stage = 0;
        turn.phase ^= 1;
    }
}

/* x + 1 in a ring of N. */
template <int N>
static __device__ __forceinline__ int attn_next(int x)
{
    return x + 1 == N ? 0 : x + 1;
}

/* What the producer loads next: this tile, into this stage; the next chunk of r into this slot of its ring. */
struct attn_producer {
    int tile, slot;
    attn_turn turn;
};

/* Barriers at `bars`: full[STAGES], empty[STAGES], one for what is copied once, and order[WG_GROUPS]. */
template <int STAGES>
struct attn_bars {
    enum { BYTES = 8 * (2 * STAGES + 1 + WG_GROUPS) };
};

template <int STAGES>
static __device__ __forceinline__ void attn_open_bars(uint32_t bars)
{
    if (threadIdx.x == 0) {
        for (int x = 0; x < STAGES; x++) {
            lam_bar_init(bars + 8 * (uint32_t)x, 1);
            lam_bar_init(bars + 8 * (uint32_t)(STAGES + x), WG_BLOCK / LAM_WARP);
        }
        lam_bar_init(bars + 16 * STAGES, 1);
        for (int x = 0; x < WG_GROUPS; x++)
            lam_bar_init(bars + 8 * (uint32_t)(2 * STAGES + 1 + x), WG_THREADS / LAM_WARP);
        lam_bar_publish();
    }
    __syncthreads();
}

template <int STAGES>
static __device__ __forceinline__ uint32_t attn_full(uint32_t bars, int stage)
{
    return bars + 8 * (uint32_t)stage;
}

template <int STAGES>
static __device__ __forceinline__ uint32_t attn_empty(uint32_t bars, int stage)
{
    return bars + 8 * (uint32_t)(STAGES + stage);
}

template <int STAGES>
static __device__ __forceinline__ uint32_t attn_once(uint32_t bars)
{
    return bars + 16 * STAGES;
}

template <int STAGES>
static __device__ __forceinline__ uint32_t attn_order(uint32_t bars, int group)
{
    return bars + 8 * (uint32_t)(2 * STAGES + 1 + group);
}

/* Groups that start their products together also compute together, while the tensor cores have nothing to do.
 * So they start those of a tile in turns, 0, 1, 2, 0, ...; group 0 waits for the end of the tile before, and
 * for the first one for the phase that a new barrier has behind it.  Nobody gets two phases ahead: the next turn
 * of the group in front comes after this group's. */
template <int STAGES>
static __device__ __forceinline__ void attn_wait_order(uint32_t bars, int group, int tile)
{
    lam_bar_wait(attn_order<STAGES>(bars, group), (uint32_t)(group == 0 ? tile + 1 : tile) & 1);
}

template <int STAGES>
static __device__ __forceinline__ void attn_pass_order(uint32_t bars, int group)
{
    lam_bar_leave(attn_order<STAGES>(bars, attn_next<WG_GROUPS>(group)));
}

/* Waits until the stage for tile `tile` of the walk is free; returns the barrier that counts its bytes. */
template <int STAGES>
static __device__ __forceinline__ uint32_t attn_open_stage(uint32_t bars, int tile,
                                                           const attn_turn &turn)
{
    const uint32_t full = attn_full<STAGES>(bars, turn.stage);
    if (tile >= STAGES)
        lam_bar_wait(attn_empty<STAGES>(bars, turn.stage), turn.phase ^ 1);
    return full;
}

/* After the last copy of a stage was started. */
template <int STAGES>
static __device__ __forceinline__ void attn_close_stage(attn_producer &p)
{
    p.tile++;
    attn_advance<STAGES>(p.turn);
}

/* A block needs WG_GROUPS + 1 neighbouring chunks of r for a tile, and one of them is new, but for the first
 * tile. */
static __device__ __forceinline__ int attn_fresh_chunks(const attn_producer &p)
{
    return p.tile == 0 ? 1 + WG_GROUPS : 1;
}

/* Loads those that no tile before brought.  The tile's first chunk is number `first` of those that begin at
 * `row` of r. */
template <int SLOTS>
static __device__ __forceinline__ void attn_load_chunks(attn_producer &p, uint32_t band,
                                                        const CUtensorMap *r, int x, int row,
                                                        int first, uint32_t bar)
{
    for (int chunk = p.tile == 0 ? 0 : WG_GROUPS; chunk <= WG_GROUPS; chunk++) {
        lam_tma_tile(band + (uint32_t)(p.slot * WG_TILE), r, x, row + (first + chunk) * WG_ROWS, 0,
                     bar);
        p.slot = attn_next<SLOTS>(p.slot);
    }
}

/* A thread's position among those that compute, and in shared memory. */
struct attn_me {
    int group, warp; /* warpgroup of the block, warp of the group */
    int lane;
    attn_lanes lanes;
    uint32_t rows;       /* where this warp's sixteen rows lie in a tile, in bytes */
    uint32_t smem, mine; /* the block's tiles; those that each group has one of, at this group's */
};

/* K: columns of the tiles that the warp's own loads and stores see. */
template <int K>
static __device__ __forceinline__ attn_me attn_find_me(void)
{
    const int warp = lam_uniform((int)threadIdx.x / LAM_WARP % 4);
    const int group = lam_uniform((int)threadIdx.x / WG_THREADS);
    const int lane = (int)threadIdx.x % LAM_WARP;
    const uint32_t smem = lam_address(lam_shared_memory());
    return {group,
            warp,
            lane,
            attn_lanes_of<K>(lane),
            (uint32_t)(16 * warp * 128),
            smem,
            smem + (uint32_t)(group * WG_TILE)};
}

/* Of every query the scores in base 2: 2^x is faster than e^x. */
static __device__ __forceinline__ float attn_scale2(const attn_call &c)
{
    return (float)c.a.scale * CUDART_L2E_F;
}

/* Behind a wait for products: gives back the stage whose sums they were, if any; the next to be given
 * back is `stage`. */
template <int STAGES>
static __device__ __forceinline__ void attn_leave_before(uint32_t bars, int &before, int stage)
{
    if (before >= 0)
        lam_bar_leave(attn_empty<STAGES>(bars, before));
    before = stage;
}

/* One thread of the last warpgroup copies, the others compute. */
template <int STAGES, typename COPY, typename COMPUTE>
static __device__ __forceinline__ void attn_run(uint32_t bars, COPY copy, COMPUTE compute)
{
    attn_open_bars<STAGES>(bars);
    if (threadIdx.x >= WG_BLOCK) {
        lam_give_registers<24>();
        if (threadIdx.x == WG_BLOCK)
            copy();
    } else {
        lam_take_registers<WG_REGISTERS>();
        compute();
    }
}

/* ---- what is visible ------------------------------------------------------------------------- */

/* Is any pair of the 64 queries from position `at` on and the 64 keys from j0 on visible? */
static __device__ __forceinline__ bool attn_sees(const attn_call &c, int at, int j0)
{
    const int last = min(j0 + WG_ROWS, c.a.keys) - 1;
    return last - at >= c.e_lo && j0 - (at + WG_ROWS - 1) <= c.e_hi;
}

/* attn_hide() for queries from position `at` on and keys from j0 on, where it is needed. */
static __device__ __forceinline__ void attn_wg_hide(float (&s)[8][4], const attn_call &c,
                                                    const attn_me &me, int at, int j0)
{
    if (j0 - (at + WG_ROWS - 1) >= c.e_lo && j0 + WG_ROWS - 1 - at <= c.e_hi &&
        j0 + WG_ROWS <= c.a.keys)
        return;
    const int row = 16 * me.warp + me.lanes.g; /* this thread's first query */
    attn_hide(s, at + row - j0 + c.e_lo, at + row - j0 + c.e_hi, INT_MIN, c.a.keys - j0,
              me.lanes.t);
}

/* Tile (query_tile, key_tile) of dS of a stream and head. */
static __device__ __forceinline__ lam_bf16 *attn_ds_tile(const attn_call &c, int b, int h,
                                                         int query_tile, int key_tile)
{
    const size_t line = (size_t)(h - c.head) * c.a.B + b;
    const size_t tile = (line * (c.q_pad / WG_ROWS) + query_tile) * c.key_tiles + key_tile;
    return c.ds + tile * (WG_ROWS * WG_ROWS);
}

/* ---- the walk of a block of queries over its keys -------------------------------------------- */

struct attn_walk {
    int b, h;
    int i0;            /* the first query; below 0 where a block is not full */
    int key_lo, tiles; /* tiles of 64 keys */
    int r0;            /* the row of r, in the order of offsets, that chunk 0 begins with */
};

static __device__ __forceinline__ attn_walk attn_walk_of(const attn_call &c)
{
    const lam_attn &a = c.a;
    attn_walk w;
    w.h = c.head + (int)blockIdx.y;
    w.b = (int)blockIdx.z;
    /* Later queries of a causal call see more keys, earlier ones of the others: longest work first,
     * and what is not full last. */
    const int end = (a.queries + WG_ROWS - 1) / WG_ROWS * WG_ROWS, block = (int)blockIdx.x;
    w.i0 = c.e_hi == 0 ? end - (block + 1) * WG_OWN : block * WG_OWN;
    const int i_end = min(w.i0 + WG_OWN, a.queries);
    const int key_hi = min(a.keys - 1, a.shift + i_end - 1 + c.e_hi);
    w.key_lo = max(0, a.shift + max(0, w.i0) + c.e_lo) / WG_ROWS * WG_ROWS;
    w.tiles = key_hi < w.key_lo ? 0 : (key_hi - w.key_lo) / WG_ROWS + 1;
    w.r0 = w.key_lo - a.shift - (w.i0 + WG_OWN - 1) - c.e_first;
    return w;
}

/* Does a warpgroup that owns the 64 queries from i0 on use the tile of keys from j0 on? */
static __device__ __forceinline__ bool attn_uses(const attn_call &c, int i0, int j0)
{
    return i0 >= 0 && i0 < c.a.queries && attn_sees(c, c.a.shift + i0, j0);
}

/* Describes the call's tensors; false, and noted, if the driver cannot. */
bool lam_cuda_attn_maps(lam_cuda_dev *dev, const char *op, attn_maps *m, const attn_call *c);

/* Blocks that share the queries of a stream and head; in backward each leaves a part of du and dv. */
static inline int attn_query_blocks(const lam_attn *a)
{
    return lam_cuda_ceil(a->queries, WG_OWN);
}

/* The three passes of backward over heads head .. head + heads - 1: the first leaves dS behind, the
 * other two read it; du, dv and dr as partial sums. */
void lam_cuda_attn_sm90_bwd_kv(lam_cuda_dev *dev, const attn_call *c,
                               const attn_maps *maps); /* dk, dvalue, dS */
void lam_cuda_attn_sm90_bwd_q(lam_cuda_dev *dev, const attn_call *c,
                              const attn_maps *maps); /* dq, du, dv */
void lam_cuda_attn_sm90_bwd_r(lam_cuda_dev *dev, const attn_call *c,
                              const attn_maps *maps); /* dr */

#endif
