/* cuda/attn_sm90_bwd_kv.cu -- dS, dk and dvalue of relative-position attention for Hopper.
 *
 * fwd was S = scale (qu . k + qv . r), P = exp(S - lse), o = P value; with
 * dS = P (do . value - delta)
 *   dvalue_j = sum_i P_ij do_i        dk_j = scale sum_i dS_ij qu_i.
 * A block owns 192 keys, a warpgroup 64; tiles of 64 queries come by from the last to the first, so
 * that the offsets of the ring of r grow.  P and dS pass through shared memory once, as bf16, to be
 * read by columns: the left operands of the two sums.  The tile of dS then leaves for device memory,
 * for attn_sm90_bwd_q.cu and attn_sm90_bwd_r.cu, which so need neither scores nor exponentials.
 *
 * A chunk of r is multiplied for two tiles, unlike forward: what it adds to the next tile's scores would need 32
 * registers beside P, dP and both sums, more than a thread has. */
#include "ops/cuda/attn_sm90.cuh"

enum {
    STAGES = 3, /* this tile, one to come, one whose sums may still run */
    SLOTS = STAGES + WG_GROUPS,
    KEY = 0,
    VALUE = KEY + WG_GROUPS * WG_TILE,
    QU = VALUE + WG_GROUPS * WG_TILE,
    QV = QU + STAGES * WG_TILE,
    DO = QV + STAGES * WG_TILE,
    BAND = DO + STAGES * WG_TILE,
    P = BAND + SLOTS * WG_TILE,
    DS = P + WG_GROUPS * WG_TILE,
    LSE2 = DS + WG_GROUPS * WG_TILE,
    DELTA = LSE2 + STAGES * WG_ROWS * 4,
    BARS = DELTA + STAGES * WG_ROWS * 4,
    BYTES = BARS + attn_bars<STAGES>::BYTES
};

struct walk {
    int b, h;
    int first; /* owned key; below 0 where a block is not full */
    int tile_hi, tiles;
};

static __device__ __forceinline__ walk walk_of(const attn_call &c)
{
    const lam_attn &a = c.a;
    walk w;
    w.h = c.head + (int)blockIdx.y;
    w.b = (int)blockIdx.z;
    /* Earlier keys of a causal call see more queries, later ones of the others: longest work first,
     * and what is not full last. */
    const int end = c.key_tiles * WG_ROWS, block = (int)blockIdx.x;
    w.first = c.e_hi == 0 ? block * WG_OWN : end - (block + 1) * WG_OWN;
    const int last = min(w.first + WG_OWN, a.keys) - 1;
    const int i_hi = min(a.queries - 1, last - a.shift - c.e_lo);
    const int tile_lo = max(0, w.first - a.shift - c.e_hi) / WG_ROWS;
    w.tile_hi = i_hi < 0 ? -1 : i_hi / WG_ROWS;
    w.tiles = max(0, w.tile_hi - tile_lo + 1);
    return w;
}

/* Loads one more tile of queries, from the last to the first. */
template <int K>
static __device__ __forceinline__ void load_stage(const attn_call &c, const attn_maps &maps,
                                                  const walk &w, uint32_t smem, attn_producer &p)
{
    const lam_attn &a = c.a;
    const uint32_t bar = attn_open_stage<STAGES>(smem + BARS, p.tile, p.turn);
    const uint32_t stage = (uint32_t)p.turn.stage;
    const int i0 = (w.tile_hi - p.tile) * WG_ROWS, line = (w.b * a.H + w.h) * c.q_pad + i0;
    const int row = w.first - a.shift - (i0 + WG_ROWS - 1) - c.e_first; /* the last query's */
    lam_bar_expect(bar, (uint32_t)(3 + attn_fresh_chunks(p)) * WG_TILE + 2 * WG_ROWS * 4);
    lam_tma_tile(smem + QU + stage * WG_TILE, &maps.qu, 0, line, 0, bar);
    lam_tma_tile(smem + QV + stage * WG_TILE, &maps.qv, 0, line, 0, bar);
    attn_load_chunks<SLOTS>(p, smem + BAND, &maps.r, w.h * K, row, 0, bar);
    lam_tma_tile(smem + DO + stage * WG_TILE, &maps.d_o, w.h * K, i0, w.b, bar);
    lam_tma_line(smem + LSE2 + stage * WG_ROWS * 4, c.lse2 + line, WG_ROWS * 4, bar);
    lam_tma_line(smem + DELTA + stage * WG_ROWS * 4, c.delta + line, WG_ROWS * 4, bar);
    attn_close_stage<STAGES>(p);
}

/* The producer: loads all that the block needs. */
template <int K>
static __device__ __forceinline__ void copy(const attn_call &c, const attn_maps &maps,
                                            const walk &w, uint32_t smem)
{
    const uint32_t once = attn_once<STAGES>(smem + BARS);
    attn_producer p = {};
    lam_bar_expect(once, 2 * WG_GROUPS * WG_TILE);
    for (int x = 0; x < WG_GROUPS; x++) {
        const uint32_t to = smem + (uint32_t)(x * WG_TILE);
        lam_tma_tile(to + KEY, &maps.k, w.h * K, w.first + x * WG_ROWS, w.b, once);
        lam_tma_tile(to + VALUE, &maps.value, w.h * K, w.first + x * WG_ROWS, w.b, once);
    }
    while (p.tile < w.tiles)
        load_stage<K>(c, maps, w, smem, p);
}

/* Writes dk and dvalue. */
template <int K>
static __device__ __forceinline__ void finish(const attn_call &c, const walk &w, const attn_me &me,
                                              const float (&dk)[K / 8][4],
                                              const float (&dv)[K / 8][4])
{
    const lam_attn &a = c.a;
    unsigned char *out = lam_shared_memory() + me.group * WG_TILE + me.rows;
    const int row = w.first + WG_ROWS * me.group + 16 * me.warp;
    const size_t col = (size_t)w.h * K;
    if (row < 0)
        return;
    lam_wg_barrier(me.group); /* k and value are free */
    attn_store_tile<K>(out + KEY, dk, (float)a.scale, (float)a.scale, me.lanes);
    attn_store_tile<K>(out + VALUE, dv, 1.0f, 1.0f, me.lanes);
    __syncwarp();
    attn_write_rows<K>(attn_row<lam_bf16>(a.dk, a.ldk, w.b, row, col), a.ldk, out + KEY,
                       a.keys - row, a.kv_add);
    attn_write_rows<K>(attn_row<lam_bf16>(a.dvalue, a.ldk, w.b, row, col), a.ldk, out + VALUE,
                       a.keys - row, a.kv_add);
}

/* P from scores. */
static __device__ __forceinline__ void probabilities(float (&s)[8][4], float scale2,
                                                     const float (&lse2)[2])
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            s[n][x] = lam_exp2(fmaf(s[n][x], scale2, -lse2[x / 2]));
}

/* dS = P (dP - delta), in place of P. */
static __device__ __forceinline__ void score_gradient(float (&p)[8][4], const float (&dp)[8][4],
                                                      const float (&delta)[2])
{
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            p[n][x] *= dp[n][x] - delta[x / 2];
}

/* A tile of queries: where it stands, and where its operands lie in shared memory. */
struct tile_at {
    int tile, stage;
    int at; /* the position of its first query */
    uint32_t qu, qv, d_o;
    uint32_t chunk0, chunk1; /* of the band of r */
};

/* One tile of queries that sees keys from j0 on: scores, P and dS, and the sums of the group's keys over it. */
template <int K>
static __device__ __forceinline__ void
visit(const attn_call &c, const walk &w, const attn_me &me, const tile_at &t, int j0, float scale2,
      const attn_skew &skew, const float *floats, bool lead, int &before, float (&dk)[K / 8][4],
      float (&dv)[K / 8][4])
{
    const uint32_t bars = me.smem + BARS;
    float s[8][4], band[8][4], last[4], lse2[2], delta[2];
    lam_wg_hold(s);
    lam_wg_hold(band);
    lam_wg_begin();
    attn_wg_rows<K>(s, t.qu, me.mine + KEY, false);
    attn_wg_rows<K>(band, t.qv, t.chunk0, false);
    lam_wg_close();
    attn_pass_order<STAGES>(bars, me.group);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        lse2[half] = floats[t.stage * WG_ROWS + 8 * half];
        delta[half] = floats[(STAGES + t.stage) * WG_ROWS + 8 * half];
    }
    lam_wg_wait<0>(); /* for the sums of the tile before, too */
    lam_wg_hold(s);
    lam_wg_hold(band);
    attn_leave_before<STAGES>(bars, before, t.stage);
    attn_add_skewed<0>(s, band, last, me.warp, skew);
    lam_wg_hold(band);
    lam_wg_begin();
    attn_wg_rows<K>(band, t.qv, t.chunk1, false);
    lam_wg_close();
    if (lead)
        lam_tma_stores_read(); /* dS of the tile before has left */
    lam_wg_wait<0>();
    lam_wg_hold(band);
    attn_add_skewed<8>(s, band, last, me.warp, skew);
    lam_wg_hold(band);
    lam_wg_begin();
    attn_wg_rows<K>(band, t.d_o, me.mine + VALUE, false); /* dP */
    lam_wg_close();
    attn_wg_hide(s, c, me, t.at, j0);
    probabilities(s, scale2, lse2);
    lam_wg_barrier(me.group); /* P and dS of the tile before are no longer read */
    attn_store_left(me.mine + me.rows + P, s, me.lanes);
    lam_wg_wait<0>();
    lam_wg_hold(band);
    score_gradient(s, band, delta);
    attn_store_left(me.mine + me.rows + DS, s, me.lanes);
    lam_wg_publish();
    lam_wg_barrier(me.group);
    if (lead)
        lam_tma_store(attn_ds_tile(c, w.b, w.h, t.tile, j0 / WG_ROWS), me.mine + DS, WG_TILE);
    lam_wg_begin();
    attn_wg_columns<K>(dv, me.mine + P, t.d_o);
    attn_wg_columns<K>(dk, me.mine + DS, t.qu);
    lam_wg_close();
}

template <int K>
static __device__ __forceinline__ void compute(const attn_call &c, const walk &w)
{
    const lam_attn &a = c.a;
    const attn_me me = attn_find_me<K>();
    const attn_skew skew = attn_skew_by(RIGHT, me.lane);
    const uint32_t bars = me.smem + BARS;
    const float *floats = (const float *)(lam_shared_memory() + LSE2) + 16 * me.warp + me.lanes.g;
    const float scale2 = attn_scale2(c);
    const bool lead = threadIdx.x % WG_THREADS == 0; /* stores dS */
    const int j0 = w.first + WG_ROWS * me.group;

    lam_bar_wait(attn_once<STAGES>(bars), 0);
    float dk[K / 8][4] = {}, dv[K / 8][4] = {};
    attn_turn turn = {};
    int slot = me.group; /* the first chunk of the group's band */
    int before = -1;     /* the stage whose sums may still run */
    for (int n = 0; n < w.tiles; n++) {
        tile_at t;
        t.tile = w.tile_hi - n;
        t.stage = turn.stage;
        t.at = a.shift + t.tile * WG_ROWS;
        t.qu = me.smem + QU + (uint32_t)(t.stage * WG_TILE);
        t.qv = me.smem + QV + (uint32_t)(t.stage * WG_TILE);
        t.d_o = me.smem + DO + (uint32_t)(t.stage * WG_TILE);
        t.chunk0 = me.smem + BAND + (uint32_t)(slot * WG_TILE);
        slot = attn_next<SLOTS>(slot);
        t.chunk1 = me.smem + BAND + (uint32_t)(slot * WG_TILE);
        lam_bar_wait(attn_full<STAGES>(bars, t.stage), turn.phase);
        attn_advance<STAGES>(turn);
        attn_wait_order<STAGES>(bars, me.group, n);
        if (j0 < 0 || j0 >= a.keys || !attn_sees(c, t.at, j0)) {
            attn_pass_order<STAGES>(bars, me.group);
            lam_wg_wait<0>();
            attn_leave_before<STAGES>(bars, before, -1);
            lam_bar_leave(attn_empty<STAGES>(bars, t.stage));
            continue;
        }
        visit<K>(c, w, me, t, j0, scale2, skew, floats, lead, before, dk, dv);
    }
    lam_wg_wait<0>();
    lam_wg_hold(dk);
    lam_wg_hold(dv);
    if (lead)
        lam_tma_stores_done();
    finish<K>(c, w, me, dk, dv);
}

template <int K>
static __global__ void __launch_bounds__(WG_ALL, 1)
    sm90_bwd_kv(const attn_call c, const __grid_constant__ attn_maps maps)
{
    const walk w = walk_of(c);
    const uint32_t smem = lam_address(lam_shared_memory());
    attn_run<STAGES>(
        smem + BARS, [&] { copy<K>(c, maps, w, smem); }, [&] { compute<K>(c, w); });
}

void lam_cuda_attn_sm90_bwd_kv(lam_cuda_dev *dev, const attn_call *c, const attn_maps *maps)
{
    const dim3 grid((unsigned)lam_cuda_ceil(c->a.keys, WG_OWN), (unsigned)c->heads,
                    (unsigned)c->a.B);
    attn_by_sm90_width(c->a.K, [&](auto width) {
        lam_cuda_launch(dev, "attn_bwd", sm90_bwd_kv<width>, {grid, WG_ALL, BYTES}, *c, *maps);
    });
}
