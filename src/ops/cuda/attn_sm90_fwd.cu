/* cuda/attn_sm90_fwd.cu -- relative-position attention forward for Hopper (Eq. 2, 6, 9, 12).
 *
 * The walk of attn_fwd.cu with products of whole warpgroups: a block owns 192 queries, a warpgroup
 * 64; tiles of 64 keys and chunks of 64 rows of r come by, loaded ahead of their use.  q + u and
 * q + v stay in shared memory, the left operands of both parts of the scores.
 *
 * A tile's band of r is two chunks, and the second is the first of the next tile's: every chunk is multiplied
 * once, and what it adds to the next tile's scores is where their sums begin.
 *
 * The softmax is online with a lazy base: weights are 2^(S - base), and the base only moves when a
 * score passes it by more than 8 (in base 2), so the sums hardly ever have to be scaled again. */
#include "ops/cuda/attn_sm90.cuh"

enum {
    STAGES = 4, /* this tile and three to come */
    SLOTS = STAGES + WG_GROUPS,
    QU = 0, /* q first */
    QV = QU + WG_GROUPS * WG_TILE,
    KEY = QV + WG_GROUPS * WG_TILE,
    VALUE = KEY + STAGES * WG_TILE,
    BAND = VALUE + STAGES * WG_TILE,
    BARS = BAND + SLOTS * WG_TILE,
    BYTES = BARS + attn_bars<STAGES>::BYTES
};

template <int K>
struct state {
    float o[K / 8][4];
    float base[2], total[2]; /* rows g and g + 8 */
};

/* Moves the base of rows that passed it. */
template <int K>
static __device__ __forceinline__ void rebase(state<K> &st, const float (&top)[2])
{
    const float slack = 8.0f;
    if (!__any_sync(ATTN_FULL_WARP, top[0] > st.base[0] + slack || top[1] > st.base[1] + slack))
        return;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float base = top[half] > st.base[half] + slack ? top[half] : st.base[half];
        const float shrink = base == st.base[half] ? 1.0f : lam_exp2(st.base[half] - base);
        st.base[half] = base;
        st.total[half] *= shrink;
#pragma unroll
        for (int n = 0; n < K / 8; n++) {
            st.o[n][2 * half] *= shrink;
            st.o[n][2 * half + 1] *= shrink;
        }
    }
}

/* One tile's step of the online softmax; leaves the weights in s. */
template <int K>
static __device__ __forceinline__ void softmax_step(state<K> &st, float (&s)[8][4], float scale2)
{
    float top[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        top[half] = s[0][2 * half];
#pragma unroll
        for (int n = 0; n < 8; n++)
            top[half] = fmaxf(top[half], fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        top[half] = attn_quad_max(top[half]) * scale2;
    }
    rebase<K>(st, top);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        /* A row that has seen nothing yet: 2^(-infinity - 0) = 0, not 2^(inf - inf). */
        const float base = st.base[half] == -CUDART_INF_F ? 0.0f : st.base[half];
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int x = 2 * half; x < 2 * half + 2; x++) {
                s[n][x] = lam_exp2(fmaf(s[n][x], scale2, -base));
                st.total[half] += s[n][x];
            }
    }
}

/* Divides by the sums and writes o and lse of a warp's sixteen rows. */
template <int K>
static __device__ __forceinline__ void finish(const attn_call &c, const attn_walk &w,
                                              const attn_me &me, const state<K> &st)
{
    const lam_attn &a = c.a;
    const attn_lanes &lanes = me.lanes;
    const int row = w.i0 + WG_ROWS * me.group + 16 * me.warp;
    unsigned char *smem = lam_shared_memory() + QU + me.group * WG_TILE + me.rows;
    float inv_sum[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float total = attn_quad_sum(st.total[half]);
        inv_sum[half] = total > 0.0f ? 1.0f / total : 0.0f;
        const int i = row + lanes.g + 8 * half;
        if (lanes.t == 0 && i < a.queries)
            *attn_row<float>(a.lse, (size_t)a.H, w.b, i, (size_t)w.h) =
                total > 0.0f ? st.base[half] * CUDART_LN2_F + logf(total) : -CUDART_INF_F;
    }
    attn_store_tile<K>(smem, st.o, inv_sum[0], inv_sum[1], lanes);
    __syncwarp();
    attn_write_rows<K>(attn_row<lam_bf16>(a.o, a.ldo, w.b, row, (size_t)w.h * K), a.ldo, smem,
                       a.queries - row, false);
}

/* Loads one more tile: its keys and values, and the chunks of r no tile before it brought.  A
 * block uses chunks t .. t + WG_GROUPS for tile t; with STAGES + WG_GROUPS slots what a chunk
 * replaces is done with when the stage is. */
template <int K>
static __device__ __forceinline__ void load_stage(const attn_maps &maps, const attn_walk &w,
                                                  uint32_t smem, attn_producer &p)
{
    const uint32_t bar = attn_open_stage<STAGES>(smem + BARS, p.tile, p.turn);
    const uint32_t stage = (uint32_t)(p.turn.stage * WG_TILE);
    const int x = w.h * K, key = w.key_lo + p.tile * WG_ROWS;
    lam_bar_expect(bar, (uint32_t)(2 + attn_fresh_chunks(p)) * WG_TILE);
    lam_tma_tile(smem + KEY + stage, &maps.k, x, key, w.b, bar);
    attn_load_chunks<SLOTS>(p, smem + BAND, &maps.r, x, w.r0, p.tile, bar);
    lam_tma_tile(smem + VALUE + stage, &maps.value, x, key, w.b, bar);
    attn_close_stage<STAGES>(p);
}

/* The producer: loads all that the block needs. */
template <int K>
static __device__ __forceinline__ void copy(const attn_maps &maps, const attn_walk &w,
                                            uint32_t smem)
{
    const uint32_t once = attn_once<STAGES>(smem + BARS);
    attn_producer p = {};
    lam_bar_expect(once, WG_GROUPS * WG_TILE);
    for (int x = 0; x < WG_GROUPS; x++)
        lam_tma_tile(smem + QU + (uint32_t)(x * WG_TILE), &maps.q, w.h * K, w.i0 + x * WG_ROWS, w.b,
                     once);
    while (p.tile < w.tiles)
        load_stage<K>(maps, w, smem, p);
}

/* q becomes q + u and q + v, rounded once, in this warp's sixteen rows. */
template <int K>
static __device__ __forceinline__ void add_biases(const attn_call &c, const attn_walk &w,
                                                  const attn_me &me)
{
    const lam_attn &a = c.a;
    const attn_lanes &lanes = me.lanes;
    const uint32_t rows = me.mine + me.rows;
    uint32_t qu[K / 16][4], qv[K / 16][4];
    attn_load_biased<K>(qu, rows + QU, a.u ? (const float *)a.u + w.h * K : NULL, lanes);
    attn_load_biased<K>(qv, rows + QU, a.v ? (const float *)a.v + w.h * K : NULL, lanes);
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++) {
        lam_store4(rows + QU + (lanes.a ^ (uint32_t)(kk << 5)), qu[kk]);
        lam_store4(rows + QV + (lanes.a ^ (uint32_t)(kk << 5)), qv[kk]);
    }
}

/* The scores of a tile as they are made: what the first chunk of its band adds to them is there before, as is
 * the number `last` that the skew carries on to the second. */
struct scores {
    float s[8][4], band[8][4], last[4];
};

/* The first tile has no tile before it that left its first chunk's part behind. */
template <int K>
static __device__ __forceinline__ void begin_scores(scores &x, const attn_me &me, uint32_t chunk,
                                                    const attn_skew &skew)
{
    lam_wg_hold(x.band);
    lam_wg_begin();
    attn_wg_rows<K>(x.band, me.mine + QV, chunk, false);
    lam_wg_close();
    lam_wg_wait<0>();
    lam_wg_hold(x.band);
    attn_begin_skewed(x.s, x.band, x.last, me.warp, skew);
}

/* Adds the products with the keys and with the second chunk, then passes the turn. */
template <int K>
static __device__ __forceinline__ void add_scores(scores &x, const attn_me &me, uint32_t key,
                                                  uint32_t chunk, const attn_skew &skew)
{
    lam_wg_hold(x.s);
    lam_wg_hold(x.band);
    lam_wg_begin();
    attn_wg_rows<K>(x.s, me.mine + QU, key, true);
    attn_wg_rows<K>(x.band, me.mine + QV, chunk, false);
    lam_wg_close();
    attn_pass_order<STAGES>(me.smem + BARS, me.group);
    lam_wg_wait<0>();
    lam_wg_hold(x.s);
    lam_wg_hold(x.band);
    attn_add_skewed<8>(x.s, x.band, x.last, me.warp, skew);
}

/* o += P value; meanwhile the next tile's scores begin, in place of P. */
template <int K>
static __device__ __forceinline__ void add_values(state<K> &st, scores &x, const attn_me &me,
                                                  uint32_t value, const attn_skew &skew)
{
    uint32_t p[4][4];
    attn_pack_left(p, x.s);
    lam_wg_hold(st.o);
    lam_wg_begin();
    attn_wg_left<K>(st.o, p, value);
    lam_wg_close();
    attn_begin_skewed(x.s, x.band, x.last, me.warp, skew);
    lam_wg_wait<0>();
    lam_wg_hold(st.o);
}

template <int K>
static __device__ __forceinline__ void compute(const attn_call &c, const attn_walk &w)
{
    const attn_me me = attn_find_me<K>();
    const attn_skew skew = attn_skew_by(RIGHT, me.lane);
    const uint32_t bars = me.smem + BARS;
    const float scale2 = attn_scale2(c);
    const int i0 = w.i0 + WG_ROWS * me.group, at = c.a.shift + i0;

    lam_bar_wait(attn_once<STAGES>(bars), 0);
    add_biases<K>(c, w, me);
    lam_wg_publish();
    lam_wg_barrier(me.group);
    state<K> st = {};
    st.base[0] = st.base[1] = -CUDART_INF_F;

    scores x;
    attn_turn turn = {};
    int slot = WG_GROUPS - 1 - me.group; /* the first chunk of the group's band */
    bool begun = false;                  /* tiles that a group uses are neighbours */
    for (int t = 0; t < w.tiles; t++) {
        const int j0 = w.key_lo + t * WG_ROWS, stage = turn.stage;
        const uint32_t at_stage = me.smem + (uint32_t)(stage * WG_TILE);
        const uint32_t chunk0 = me.smem + BAND + (uint32_t)(slot * WG_TILE);
        slot = attn_next<SLOTS>(slot);
        const uint32_t chunk1 = me.smem + BAND + (uint32_t)(slot * WG_TILE);
        lam_bar_wait(attn_full<STAGES>(bars, stage), turn.phase);
        attn_advance<STAGES>(turn);
        if (attn_uses(c, i0, j0)) {
            if (!begun)
                begin_scores<K>(x, me, chunk0, skew);
            begun = true;
            attn_wait_order<STAGES>(bars, me.group, t);
            add_scores<K>(x, me, at_stage + KEY, chunk1, skew);
            attn_wg_hide(x.s, c, me, at, j0);
            softmax_step<K>(st, x.s, scale2);
            add_values<K>(st, x, me, at_stage + VALUE, skew);
        } else {
            attn_wait_order<STAGES>(bars, me.group, t);
            attn_pass_order<STAGES>(bars, me.group);
        }
        lam_bar_leave(attn_empty<STAGES>(bars, stage));
    }
    if (i0 >= 0)
        finish<K>(c, w, me, st);
}

template <int K>
static __global__ void __launch_bounds__(WG_ALL, 1)
    sm90_fwd(const attn_call c, const __grid_constant__ attn_maps maps)
{
    const attn_walk w = attn_walk_of(c);
    const uint32_t smem = lam_address(lam_shared_memory());
    attn_run<STAGES>(
        smem + BARS, [&] { copy<K>(maps, w, smem); }, [&] { compute<K>(c, w); });
}

void lam_cuda_attn_sm90_fwd(lam_cuda_dev *dev, const attn_call *c)
{
    const dim3 grid((unsigned)attn_query_blocks(&c->a), (unsigned)c->a.H, (unsigned)c->a.B);
    attn_maps maps;
    if (!lam_cuda_attn_maps(dev, "attn_fwd", &maps, c))
        return;
    attn_by_sm90_width(c->a.K, [&](auto width) {
        lam_cuda_launch(dev, "attn_fwd", sm90_fwd<width>, {grid, WG_ALL, BYTES}, *c, maps);
    });
}
