/* cuda/gemm_sm90.cu -- the feed-forward's inner products for Hopper, finished where they are made:
 *   forward   C = drop(relu(A B^T + bias)),       B stored [n][k]
 *   backward  C = h > 0 ? scale * A B : 0,        B stored [k][n];   dbias += column sums
 * which cuBLASLt would leave to a second pass over C.  gemm.cu tries this first; other cards, types and
 * shapes go its own way.  gemm_finish.cuh is what happens to a tile behind its product.
 *
 * A block owns 128 columns of C.  Its part of B, all of k <= 512, stays in shared memory (128 KB) while
 * tiles of 128 rows of A come by: from L2 a block takes 32 bytes a cycle of full tensor speed, where
 * tiles of 128 x 256 that bring both operands along would take 48.  Blocks with equal rows run at the
 * same time, so A comes from memory once.  The two warpgroups that compute take turns: while one
 * multiplies its tile (4096 cycles for k = 512), the other finishes the one before (some 1000).  Of the other
 * warps one copies, and in forward seven draw the masks of dropout, which would double the time of finishing.
 *
 * Why the barriers suffice.  Number the uses of stages u = 0, 1, .. over all steps of all tiles.  Use u
 * is phase u / STAGES of full[u % STAGES] (one arrival and the bytes) and of empty[u % STAGES] (the four
 * warps of the group that read it, after their products are done).
 *   - A stage is filled for u after empty told that u - STAGES is over; so full never runs ahead of a
 *     reader by more than the phase it waits for, provided that readers come in the order of uses:
 *   - turn[g] is over when the other group has seen the last step of its tile and started its
 *     products.  So groups wait for full in the order of tiles, and one bit of the phase is enough.
 *     turn[g] itself never gets two phases ahead: for its next arrival the other group needs a turn
 *     that this one gives after it took this one.
 *   - Step j of B comes with use j, on the same barrier.  Group 0 waits for it; group 1 begins after
 *     group 0 has seen them all.  B is never replaced, so nobody has to give it back.
 *   - The masks of a tile wait in registers until those of the tile before were taken; each group has a barrier of its
 *     own that tells of its masks, because the groups may wait for theirs at the same time.
 *   - Nothing waits for anything later: uses are given back without waiting for another group. */
#include "ops/cuda/gemm_finish.cuh"
#include "ops/cuda/gemm_int.cuh"
#include "ops/cuda/tma.cuh"

enum {
    TILE = GEMM_TILE,
    STAGES = GEMM_STAGES,
    DEPTH = 64,              /* of a step: rows of 128 bytes */
    MOST_STEPS = 8,          /* k <= 512 */
    STEP = 2 * LAM_TMA_TILE, /* bytes of an operand's step */
    GROUPS = 2,
    GROUP = 128, /* threads of a warpgroup */
    WARPS = GROUPS * GROUP / LAM_WARP,
    COPIER = GROUPS * GROUP, /* the thread that copies */
    FIRST_DRAWER = COPIER + LAM_WARP,
    THREADS = (GROUPS + 2) * GROUP, /* forward: seven warps draw */
    THREADS_BACK = (GROUPS + 1) * GROUP,
    DRAWERS = THREADS - FIRST_DRAWER,
    WORDS = GROUP * GEMM_PIECES, /* of masks, in a tile */
    RIGHT = 0,                   /* B */
    LEFT = RIGHT + MOST_STEPS * STEP,
    PIECES = LEFT + STAGES * STEP,
    BIAS = PIECES + WARPS * GEMM_PIECE_BYTES,
    MASKS = BIAS + TILE * (int)sizeof(float),
    BARS = MASKS + WORDS * (int)sizeof(uint32_t), /* full, empty, turn, drawn, taken */
    BYTES = BARS + 8 * (2 * STAGES + 2 * GROUPS + 1),
    WORTH_ROWS = 256, /* fewer rows do not pay for fetching B */
    WORTH_COLS = 128
};

struct fused {
    CUtensorMap a, b;
    gemm_out out;
    int steps, tiles;  /* along k; of rows */
    const float *bias; /* forward, or NULL */
};

static __device__ __forceinline__ uint32_t full(uint32_t smem, int use)
{
    return smem + BARS + 8 * (uint32_t)gemm_stage(use);
}

static __device__ __forceinline__ uint32_t empty(uint32_t smem, int use)
{
    return smem + BARS + 8 * (uint32_t)(STAGES + gemm_stage(use));
}

static __device__ __forceinline__ uint32_t turn(uint32_t smem, int group)
{
    return smem + BARS + 8 * (uint32_t)(2 * STAGES + group);
}

/* The masks of this group's next tile are there; those of the last tile that was drawn have been read. */
static __device__ __forceinline__ uint32_t drawn(uint32_t smem, int group)
{
    return smem + BARS + 8 * (uint32_t)(2 * STAGES + GROUPS + group);
}

static __device__ __forceinline__ uint32_t taken(uint32_t smem)
{
    return smem + BARS + 8 * (uint32_t)(2 * STAGES + 2 * GROUPS);
}

/* Draws the masks of all tiles; `me` of DRAWERS threads. */
static __device__ __forceinline__ void draw(const fused &f, uint32_t smem, int me)
{
    enum { MOST = (WORDS + DRAWERS - 1) / DRAWERS };
    const uint32_t step = lam_mask_step(f.out.mask);
    const int col = (int)blockIdx.x * TILE;
    uint32_t *to = (uint32_t *)(lam_shared_memory() + MASKS);
    int n = 0;
    for (int tile = (int)blockIdx.y; tile < f.tiles; tile += (int)gridDim.y, n++) {
        uint32_t words[MOST]; /* the newest first, so that the loop need not be unrolled */
#pragma unroll 1
        for (int x = 0; x < MOST; x++) {
            const int word = me + x * DRAWERS, lane = gemm_mask_lane(word);
            const gemm_spot s = {tile * TILE + gemm_lane_row(gemm_mask_warp(word), lane),
                                 col + gemm_lane_col(lane), lane};
#pragma unroll
            for (int y = MOST - 1; y > 0; y--)
                words[y] = words[y - 1];
            if (word < WORDS) /* whole warps */
                words[0] = gemm_draw(f.out, step, s, gemm_mask_piece(word));
        }
        if (n > 0)
            lam_bar_wait(taken(smem), (uint32_t)(n - 1) & 1);
#pragma unroll
        for (int x = 0; x < MOST; x++)
            if (me + x * DRAWERS < WORDS)
                to[me + x * DRAWERS] = words[MOST - 1 - x];
        lam_bar_leave(drawn(smem, n % GROUPS));
    }
}

/* This lane's masks of tile n of the block. */
static __device__ __forceinline__ uint4 take_masks(const fused &f, uint32_t smem, int n)
{
    if (f.out.mask.threshold == 0)
        return make_uint4(0, 0, 0, 0);
    lam_bar_wait(drawn(smem, n % GROUPS), (uint32_t)(n / GROUPS) & 1);
    const uint4 masks = ((const uint4 *)(lam_shared_memory() + MASKS))[threadIdx.x % GROUP];
    lam_bar_leave(taken(smem));
    return masks;
}

/* The producer, one thread, loads all that the block needs. */
template <lam_wg_by B>
static __device__ __forceinline__ void copy(const fused &f, uint32_t smem)
{
    const int col = (int)blockIdx.x * TILE;
    int use = 0;
    for (int tile = (int)blockIdx.y; tile < f.tiles; tile += (int)gridDim.y)
        for (int step = 0; step < f.steps; step++, use++) {
            const uint32_t bar = full(smem, use);
            const uint32_t left = smem + LEFT + STEP * (uint32_t)gemm_stage(use);
            const bool first = use < f.steps;
            if (use >= STAGES)
                lam_bar_wait(empty(smem, use), gemm_phase(use - STAGES));
            lam_bar_expect(bar, first ? 2 * STEP : STEP);
            for (int half = 0; half < 2; half++) {
                const uint32_t part = (uint32_t)(half * LAM_TMA_TILE);
                const int along = step * DEPTH, across = col + half * LAM_TMA_ROWS;
                lam_tma_tile(left + part, &f.a, along, tile * TILE + half * LAM_TMA_ROWS, 0, bar);
                if (first)
                    lam_tma_tile(smem + RIGHT + (uint32_t)(step * STEP) + part, &f.b,
                                 B == BY_ROWS ? along : across, B == BY_ROWS ? across : along, 0,
                                 bar);
            }
        }
}

/* The product of a tile; uses from `use` on.  Two steps are under way at a time. */
template <lam_wg_by B>
static __device__ __forceinline__ void multiply(float (&acc)[2][16][4], const fused &f,
                                                uint32_t smem, int use, int group)
{
    enum { ALONG = 2, DOWN = 128, NEXT = LAM_TMA_TILE / 16 }; /* 16 deep; the next tile: 16 bytes */
    for (int step = 0; step < f.steps; step++, use++) {
        const uint32_t left = lam_wg_operand(smem + LEFT + STEP * gemm_stage(use));
        const uint32_t right =
            lam_wg_operand(smem + RIGHT + (uint32_t)(STEP * step), B == BY_ROWS ? 1 : NEXT);
        lam_bar_wait(full(smem, use), gemm_phase(use));
        lam_wg_begin();
#pragma unroll
        for (int kk = 0; kk < DEPTH / 16; kk++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                lam_wg_mma<TILE, BY_ROWS, B>(acc[half], left + half * NEXT + ALONG * kk,
                                             right + (B == BY_ROWS ? ALONG : DOWN) * kk,
                                             step > 0 || kk > 0);
        lam_wg_close();
        if (step > 0) {
            lam_wg_wait<1>();
            lam_bar_leave(empty(smem, use - 1));
        }
    }
    lam_bar_leave(turn(smem, 1 - group));
    lam_wg_wait<0>();
    lam_bar_leave(empty(smem, use - 1));
    lam_wg_hold(acc[0]);
    lam_wg_hold(acc[1]);
}

template <lam_wg_by B, bool BACK>
static __device__ __forceinline__ void compute(const fused &f, uint32_t smem)
{
    const int group = lam_uniform((int)threadIdx.x / GROUP);
    const int warp = lam_uniform((int)threadIdx.x / LAM_WARP); /* of the block */
    const int lane = (int)threadIdx.x % LAM_WARP, col = (int)blockIdx.x * TILE;
    lam_f8 sums[2] = {};
    for (int i = group;; i += GROUPS) {
        const int tile = (int)(blockIdx.y + gridDim.y * (unsigned)i);
        if (tile >= f.tiles)
            break;
        float acc[2][16][4];
        const gemm_spot s = {tile * TILE + gemm_lane_row(warp % 4, lane), col + gemm_lane_col(lane),
                             lane};
        if (BACK)
            gemm_announce(f.out, s);
        lam_bar_wait(turn(smem, group), gemm_turn_phase(i));
        multiply<B>(acc, f, smem, i * f.steps, group);
        const uint4 masks = BACK ? make_uint4(0, 0, 0, 0) : take_masks(f, smem, i);
        gemm_finish<BACK>(f.out, acc, lam_shared_memory() + PIECES + warp * GEMM_PIECE_BYTES,
                          (const float *)(lam_shared_memory() + BIAS), s, masks, sums);
    }
    if (BACK)
        gemm_put_sums(f.out.lines + (size_t)(blockIdx.y * WARPS + (unsigned)warp) * f.out.n, sums,
                      col, f.out.n, lane);
}

static __device__ __forceinline__ void open_bars(uint32_t smem)
{
    if (threadIdx.x == 0) {
        for (int x = 0; x < STAGES; x++) {
            lam_bar_init(full(smem, x), 1);
            lam_bar_init(empty(smem, x), GROUP / LAM_WARP);
        }
        for (int x = 0; x < GROUPS; x++) {
            lam_bar_init(turn(smem, x), GROUP / LAM_WARP);
            lam_bar_init(drawn(smem, x), DRAWERS / LAM_WARP);
        }
        lam_bar_init(taken(smem), GROUP / LAM_WARP);
        lam_bar_publish();
    }
}

template <lam_wg_by B, bool BACK>
static __global__ void __launch_bounds__(BACK ? THREADS_BACK : THREADS, 1)
    product(const __grid_constant__ fused f)
{
    const uint32_t smem = lam_address(lam_shared_memory());
    open_bars(smem);
    if (!BACK && threadIdx.x < TILE) { /* the scale goes through the ReLU: it is positive */
        const int col = (int)(blockIdx.x * TILE + threadIdx.x);
        ((float *)(lam_shared_memory() + BIAS))[threadIdx.x] =
            f.bias && col < f.out.n ? f.bias[col] * f.out.scale : 0.0f;
    }
    __syncthreads();
    if (threadIdx.x >= COPIER) {
        lam_give_registers<BACK ? 24 : 48>();
        if (threadIdx.x == COPIER)
            copy<B>(f, smem);
        else if (!BACK && threadIdx.x >= FIRST_DRAWER && f.out.mask.threshold != 0)
            draw(f, smem, (int)threadIdx.x - FIRST_DRAWER);
    } else {
        lam_take_registers<BACK ? 240 : 208>();
        compute<B, BACK>(f, smem);
    }
}

/* ---- host ------------------------------------------------------------------------------------ */

static bool takes(const lam_cuda_dev *dev, const lam_gemm *a)
{
    const uintptr_t addresses =
        (uintptr_t)a->a | (uintptr_t)a->b | (uintptr_t)a->c | (uintptr_t)a->h;
    const size_t widths = (size_t)a->n | a->lda | a->ldb | a->ldc;
    const bool forward = !a->h && a->relu && a->tb == LAM_FLIP;
    const bool backward = a->h && a->tb == LAM_KEEP;
    return dev->bf16 && dev->capability == 90 && (forward || backward) && a->ta == LAM_KEEP &&
           a->batch == 1 && a->beta == 0.0 && a->c_class == LAM_ACT && a->ldc <= INT32_MAX &&
           a->m >= WORTH_ROWS && a->n >= WORTH_COLS && a->k > 0 && a->k <= MOST_STEPS * DEPTH &&
           addresses % 16 == 0 && widths % 8 == 0;
}

bool lam_cuda_gemm_sm90(lam_cuda_dev *dev, const lam_gemm *a)
{
    if (!takes(dev, a))
        return false;
    const bool kept = a->tb == LAM_KEEP;
    const int columns = lam_cuda_ceil(a->n, TILE), tiles = lam_cuda_ceil(a->m, TILE);
    const int most = columns < dev->sms ? dev->sms / columns : 1; /* blocks that share columns */
    const int rows = most < tiles ? most : tiles;
    const size_t need = a->h ? (size_t)(rows * WARPS) * (size_t)a->n * sizeof(float) : 0;
    const lam_cuda_mask mask = lam_cuda_mask_of(&a->drop);
    fused f = {};
    if (need > dev->scratch_bytes || !lam_cuda_tma_map(&f.a, a->a, {a->k, a->m, 1, a->lda, 0}) ||
        !lam_cuda_tma_map(&f.b, a->b, {kept ? a->n : a->k, kept ? a->k : a->n, 1, a->ldb, 0}))
        return false;
    f.out = {(lam_bf16 *)a->c,
             (const lam_bf16 *)a->h,
             (unsigned)a->ldc,
             a->m,
             a->n,
             a->h ? (float)a->h_scale : mask.scale,
             mask,
             (float *)lam_cuda_scratch(dev, need)};
    f.steps = lam_cuda_ceil(a->k, DEPTH);
    f.tiles = tiles;
    f.bias = (const float *)a->bias;
    const dim3 grid((unsigned)columns, (unsigned)rows);
    if (!a->h) {
        lam_cuda_launch(dev, "gemm", product<BY_ROWS, false>, {grid, THREADS, BYTES}, f);
        return true;
    }
    lam_cuda_launch(dev, "gemm", product<BY_COLUMNS, true>, {grid, THREADS_BACK, BYTES}, f);
    const lam_cuda_sums sums = {{(float *)a->dbias}, f.out.lines, (size_t)a->n, 0,
                                rows * WARPS,        a->n};
    lam_cuda_fold(dev, "gemm", &sums);
    return true;
}
