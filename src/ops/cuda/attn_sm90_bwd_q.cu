/* cuda/attn_sm90_bwd_q.cu -- dq, du and dv of relative-position attention for Hopper, from dS.
 *
 * fwd was S = scale (qu . k + qv . r) with qu = q + u, qv = q + v, so
 *   dq_i = scale ( sum_j dS_ij k_j + sum_j dS_ij r[row(i,j)] );  du, dv: the sums over i of the two.
 * The walk of attn_sm90_fwd.cu, past the tiles of dS that attn_sm90_bwd_kv.cu left.  The first sum
 * takes them as they lie in shared memory.  For the second dS is skewed back to the band's columns
 * (attn_bwd_q.cu explains how) in registers, as left operands of its eight steps of depth 16; a
 * warp's window covers five of them, the others are zero.  The first sum of a tile runs meanwhile. */
#include "ops/cuda/attn_sm90.cuh"

enum {
    STAGES = 4, /* this tile, two to come, one whose sums may still run */
    SLOTS = STAGES + WG_GROUPS,
    DS = 0,
    KEY = DS + STAGES * WG_GROUPS * WG_TILE,
    BAND = KEY + STAGES * WG_TILE,
    BARS = BAND + SLOTS * WG_TILE,
    BYTES = BARS + attn_bars<STAGES>::BYTES
};

/* Sixteen rows of dS as left operands become those of the band's eight steps, as warp W of its group
 * sees it.  Rows g and g + 8 travel together, two numbers of one column in a register. */
template <int W>
static __device__ __forceinline__ void unskew_by(uint32_t (&a)[8][4], const uint32_t (&ds)[4][4],
                                                 const attn_unskew &back)
{
    uint32_t even[2] = {0, 0}, odd[2] = {0, 0}, x_last = 0, y_last = 0;
#pragma unroll
    for (int kk = 0; kk < 8; kk++)
        if (kk < 3 - W || kk > 7 - W)
            a[kk][0] = a[kk][1] = a[kk][2] = a[kk][3] = 0;
#pragma unroll
    for (int n = 0; n < 10; n++) {
        even[0] = even[1];
        odd[0] = odd[1];
        even[1] = odd[1] = 0;
        if (n < 8) {
            const uint32_t upper = ds[n / 2][n % 2 * 2], lower = ds[n / 2][n % 2 * 2 + 1];
            even[1] = __shfl_sync(ATTN_FULL_WARP, lam_bytes(upper, lower, 0x5410u), back.even);
            odd[1] = __shfl_sync(ATTN_FULL_WARP, lam_bytes(upper, lower, 0x7632u), back.odd);
        }
        const uint32_t x = back.even_same ? even[1] : even[0], y = back.odd_same ? odd[1] : odd[0];
        a[3 - W + n / 2][n % 2 * 2] = lam_bytes(x_last, y_last, back.upper);
        a[3 - W + n / 2][n % 2 * 2 + 1] = lam_bytes(x, y, back.lower);
        x_last = x;
        y_last = y;
    }
}

static __device__ __forceinline__ void unskew(uint32_t (&a)[8][4], const uint32_t (&ds)[4][4],
                                              int warp, const attn_unskew &back)
{
    switch (warp) {
    case 0:
        return unskew_by<0>(a, ds, back);
    case 1:
        return unskew_by<1>(a, ds, back);
    case 2:
        return unskew_by<2>(a, ds, back);
    default:
        return unskew_by<3>(a, ds, back);
    }
}

/* part[.] = scale * the sum of d over the block's rows, in a fixed order. */
template <int K>
static __device__ __forceinline__ void sum_rows(float *part, const float (&d)[K / 8][4],
                                                float *sums, float scale, const attn_lanes &lanes)
{
    const int warp = (int)threadIdx.x / LAM_WARP;
#pragma unroll
    for (int n = 0; n < K / 8; n++)
#pragma unroll
        for (int x = 0; x < 2; x++) {
            float sum = d[n][x] + d[n][2 + x];
#pragma unroll
            for (int step = 4; step < LAM_WARP; step *= 2)
                sum += __shfl_xor_sync(ATTN_FULL_WARP, sum, step);
            if (lanes.g == 0)
                sums[warp * K + 8 * n + 2 * lanes.t + x] = sum;
        }
    lam_wg_all<WG_BLOCK>();
    for (int x = (int)threadIdx.x; x < K; x += WG_BLOCK) {
        float sum = 0.0f;
        for (int w = 0; w < WG_BLOCK / LAM_WARP; w++)
            sum += sums[w * K + x];
        part[x] = sum * scale;
    }
    lam_wg_all<WG_BLOCK>();
}

/* Loads one more tile of keys, the tiles of dS above it, and the chunks of r no tile before it
 * brought: a block uses chunks t .. t + WG_GROUPS for tile t. */
template <int K>
static __device__ __forceinline__ void load_stage(const attn_call &c, const attn_maps &maps,
                                                  const attn_walk &w, uint32_t smem,
                                                  attn_producer &p)
{
    const uint32_t bar = attn_open_stage<STAGES>(smem + BARS, p.tile, p.turn);
    const uint32_t stage = (uint32_t)p.turn.stage;
    const int j0 = w.key_lo + p.tile * WG_ROWS, x = w.h * K;
    int tiles = 1 + attn_fresh_chunks(p);
    for (int group = 0; group < WG_GROUPS; group++)
        tiles += attn_uses(c, w.i0 + group * WG_ROWS, j0);
    lam_bar_expect(bar, (uint32_t)tiles * WG_TILE);
    for (int group = 0; group < WG_GROUPS; group++) {
        const int i0 = w.i0 + group * WG_ROWS;
        if (attn_uses(c, i0, j0))
            lam_tma_line(smem + DS + (stage * WG_GROUPS + (uint32_t)group) * WG_TILE,
                         attn_ds_tile(c, w.b, w.h, i0 / WG_ROWS, j0 / WG_ROWS), WG_TILE, bar);
    }
    lam_tma_tile(smem + KEY + stage * WG_TILE, &maps.k, x, j0, w.b, bar);
    attn_load_chunks<SLOTS>(p, smem + BAND, &maps.r, x, w.r0, p.tile, bar);
    attn_close_stage<STAGES>(p);
}

/* The producer: loads all that the block needs. */
template <int K>
static __device__ __forceinline__ void copy(const attn_call &c, const attn_maps &maps,
                                            const attn_walk &w, uint32_t smem)
{
    attn_producer p = {};
    while (p.tile < w.tiles)
        load_stage<K>(c, maps, w, smem, p);
}

/* Writes du, dv and dq. */
template <int K>
static __device__ __forceinline__ void finish(const attn_call &c, const attn_walk &w,
                                              const attn_me &me, float (&dq_k)[K / 8][4],
                                              float (&dq_r)[K / 8][4])
{
    const lam_attn &a = c.a;
    const attn_lanes lanes = attn_lanes_of<K>(me.lane); /* me.lanes: of dS */
    const float scale = (float)a.scale;
    float *sums = (float *)(lam_shared_memory() + KEY);
    const size_t part = (((size_t)w.b * gridDim.x + blockIdx.x) * a.H + w.h) * K;
    lam_wg_all<WG_BLOCK>(); /* the tiles are free */
    if (a.u)
        sum_rows<K>(c.du_part + part, dq_k, sums, scale, lanes);
    if (a.v)
        sum_rows<K>(c.dv_part + part, dq_r, sums, scale, lanes);
#pragma unroll
    for (int n = 0; n < K / 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            dq_k[n][x] += dq_r[n][x];
    const int row = w.i0 + WG_ROWS * me.group + 16 * me.warp;
    unsigned char *out = lam_shared_memory() + DS + me.group * WG_TILE + me.rows;
    if (row < 0)
        return;
    attn_store_tile<K>(out, dq_k, scale, scale, lanes);
    __syncwarp();
    attn_write_rows<K>(attn_row<lam_bf16>(a.dq, a.ldq, w.b, row, (size_t)w.h * K), a.ldq, out,
                       a.queries - row, false);
}

template <int K>
static __device__ __forceinline__ void compute(const attn_call &c, const attn_walk &w)
{
    const attn_me me = attn_find_me<WG_ROWS>();
    const attn_unskew back = attn_unskew_of(me.lane);
    const uint32_t bars = me.smem + BARS;
    const int i0 = w.i0 + WG_ROWS * me.group;

    float dq_k[K / 8][4] = {}, dq_r[K / 8][4] = {};
    attn_turn turn = {};
    int slot = WG_GROUPS - 1 - me.group; /* the first chunk of the group's band */
    int before = -1;                     /* the stage whose sums may still run */
    for (int t = 0; t < w.tiles; t++) {
        const int stage = turn.stage;
        const uint32_t ds = me.smem + DS + (uint32_t)((stage * WG_GROUPS + me.group) * WG_TILE);
        const uint32_t key = me.smem + KEY + (uint32_t)(stage * WG_TILE);
        const uint32_t chunk0 = me.smem + BAND + (uint32_t)(slot * WG_TILE);
        slot = attn_next<SLOTS>(slot);
        const uint32_t chunk1 = me.smem + BAND + (uint32_t)(slot * WG_TILE);
        lam_bar_wait(attn_full<STAGES>(bars, stage), turn.phase);
        attn_advance<STAGES>(turn);
        const bool mine = attn_uses(c, i0, w.key_lo + t * WG_ROWS);
        if (mine) {
            lam_wg_begin();
            attn_wg_sum<K>(dq_k, ds, key);
            lam_wg_close();
            lam_wg_wait<1>(); /* for the tile before: its left operands' registers are free */
        } else {
            lam_wg_wait<0>();
        }
        attn_leave_before<STAGES>(bars, before, stage);
        if (!mine)
            continue;
        uint32_t left[4][4], band[8][4];
        attn_load_left<WG_ROWS>(left, ds + me.rows, me.lanes);
        unskew(band, left, me.warp, back);
        lam_wg_begin();
        attn_wg_left<K>(dq_r, band, chunk0);
        attn_wg_left<K>(dq_r, band + 4, chunk1);
        lam_wg_close();
    }
    lam_wg_wait<0>();
    lam_wg_hold(dq_k);
    lam_wg_hold(dq_r);
    finish<K>(c, w, me, dq_k, dq_r);
}

template <int K>
static __global__ void __launch_bounds__(WG_ALL, 1)
    sm90_bwd_q(const attn_call c, const __grid_constant__ attn_maps maps)
{
    const attn_walk w = attn_walk_of(c);
    const uint32_t smem = lam_address(lam_shared_memory());
    attn_run<STAGES>(
        smem + BARS, [&] { copy<K>(c, maps, w, smem); }, [&] { compute<K>(c, w); });
}

void lam_cuda_attn_sm90_bwd_q(lam_cuda_dev *dev, const attn_call *c, const attn_maps *maps)
{
    const dim3 grid((unsigned)attn_query_blocks(&c->a), (unsigned)c->heads, (unsigned)c->a.B);
    attn_by_sm90_width(c->a.K, [&](auto width) {
        lam_cuda_launch(dev, "attn_bwd", sm90_bwd_q<width>, {grid, WG_ALL, BYTES}, *c, *maps);
    });
}
