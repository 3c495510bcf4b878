/* cuda/attn_sm90_bwd_r.cu -- dr of relative-position attention for Hopper, from dS.
 *
 * fwd was S = scale (qu . k + qv . r); along the diagonal j - shift - i = e and over all streams
 *   dr_e = scale sum_{b,i} dS qv_i.
 * A block owns 192 offsets e, a warpgroup 64, for a group of streams.  Tiles of 64 queries come by,
 * one stream after the other, with the tiles of dS that attn_sm90_bwd_kv.cu left: those of two
 * neighbouring tiles of keys hold the 64 diagonals, because offsets are counted from a multiple of 64
 * keys on.  Their rows are shifted in registers so that diagonals become columns, which are then the
 * left operand of the sum.  Groups of streams are summed in order at the end. */
#include "ops/cuda/attn_sm90.cuh"

enum {
    CHUNKS = WG_GROUPS + 1, /* tiles of dS for a tile of queries */
    STAGES = 4,             /* this tile, two to come, one whose sum may still run */
    DS = 0,
    QV = DS + STAGES * CHUNKS * WG_TILE,
    SKEWED = QV + STAGES * WG_TILE, /* two for each warpgroup */
    BARS = SKEWED + 2 * WG_GROUPS * WG_TILE,
    BYTES = BARS + attn_bars<STAGES>::BYTES
};

/* x / 64, rounded down. */
static __host__ __device__ __forceinline__ int tile_of(int x)
{
    return x >= 0 ? x / WG_ROWS : -((WG_ROWS - 1 - x) / WG_ROWS);
}

struct walk {
    int h, stream;      /* the first stream */
    int first;          /* the tile of keys at the first owned offset from query 0 */
    int tile_lo, tiles; /* of queries, in every stream */
    int steps;
};

static __device__ __forceinline__ walk walk_of(const attn_call &c)
{
    const lam_attn &a = c.a;
    walk w;
    const int block = c.e_hi == 0 ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    w.h = c.head + (int)blockIdx.y;
    w.stream = (int)((long)blockIdx.z * a.B / c.groups);
    const int streams = (int)((long)(blockIdx.z + 1) * a.B / c.groups) - w.stream;
    w.first = tile_of(c.e_first + a.shift) + block * WG_GROUPS;
    const int e0 = w.first * WG_ROWS - a.shift;
    const int lo = max(e0, c.e_lo), hi = min(e0 + WG_OWN - 1, c.e_hi);
    const int i_hi = lo > hi ? -1 : min(a.queries - 1, a.keys - 1 - a.shift - lo);
    w.tile_lo = max(0, -a.shift - hi) / WG_ROWS;
    w.tiles = i_hi < 0 ? 0 : max(0, i_hi / WG_ROWS - w.tile_lo + 1);
    w.steps = w.tiles * streams;
    return w;
}

/* Is there such a tile of dS? */
static __device__ __forceinline__ bool is_there(const attn_call &c, int query_tile, int key_tile)
{
    return key_tile >= 0 && key_tile < c.key_tiles &&
           attn_sees(c, c.a.shift + query_tile * WG_ROWS, key_tile * WG_ROWS);
}

/* The producer: loads all that the block needs. */
static __device__ __forceinline__ void copy(const attn_call &c, const attn_maps &maps,
                                            const walk &w, uint32_t smem)
{
    attn_turn turn = {};
    int b = w.stream, tile = w.tile_lo;
    for (int n = 0; n < w.steps; n++) {
        const uint32_t bar = attn_open_stage<STAGES>(smem + BARS, n, turn);
        int tiles = 1;
        for (int x = 0; x < CHUNKS; x++)
            tiles += is_there(c, tile, w.first + tile + x);
        lam_bar_expect(bar, (uint32_t)tiles * WG_TILE);
        for (int x = 0; x < CHUNKS; x++)
            if (is_there(c, tile, w.first + tile + x))
                lam_tma_line(smem + DS + (uint32_t)((turn.stage * CHUNKS + x) * WG_TILE),
                             attn_ds_tile(c, b, w.h, tile, w.first + tile + x), WG_TILE, bar);
        lam_tma_tile(smem + QV + (uint32_t)(turn.stage * WG_TILE), &maps.qv, 0,
                     (b * c.a.H + w.h) * c.q_pad + tile * WG_ROWS, 0, bar);
        attn_advance<STAGES>(turn);
        if (++tile == w.tile_lo + w.tiles) {
            tile = w.tile_lo;
            b++;
        }
    }
}

/* The five 16-column steps that a warp's rows need of two neighbouring tiles, from column 16 warp on;
 * bit x of `there`: is tile x? */
static __device__ __forceinline__ void load_rows(uint32_t (&a)[5][4], uint32_t tiles, int there,
                                                 const attn_me &me)
{
#pragma unroll
    for (int n = 0; n < 5; n++) {
        const int step = me.warp + n, right = step / 4;
        if (there >> right & 1)
            lam_load4(a[n], tiles + (uint32_t)(right * WG_TILE) + me.rows +
                                (me.lanes.a ^ (uint32_t)(step % 4 << 5)));
        else
            a[n][0] = a[n][1] = a[n][2] = a[n][3] = 0;
    }
}

/* Row y of the warp's sixteen moves y columns to the left: out(y, x) = in(y, x + y).  Rows g and g + 8
 * travel together, two numbers in a register: the upper of tile n with the lower of tile n + 1. */
static __device__ __forceinline__ void straighten(uint32_t (&out)[4][4], const uint32_t (&in)[5][4],
                                                  const attn_skew &skew)
{
    const uint32_t upper = skew.swap ? 0x1054u : 0x5410u, lower = skew.swap ? 0x3276u : 0x7632u;
    uint32_t even = 0, odd = 0;
#pragma unroll
    for (int n = 0; n < 9; n++) { /* tiles of 8 columns; the lower rows' number n + 1 */
        const uint32_t up = in[n / 2][n % 2 * 2], low = in[(n + 1) / 2][(n + 1) % 2 * 2 + 1];
        const uint32_t x = __shfl_sync(ATTN_FULL_WARP, lam_bytes(up, low, 0x5410u), skew.even);
        const uint32_t y = __shfl_sync(ATTN_FULL_WARP, lam_bytes(up, low, 0x7632u), skew.odd);
        if (n > 0) {
            const int m = n - 1;
            const uint32_t first = skew.even_next ? x : even, second = skew.odd_next ? y : odd;
            out[m / 2][m % 2 * 2] = lam_bytes(first, second, upper);
            out[m / 2][m % 2 * 2 + 1] = lam_bytes(first, second, lower);
        }
        even = x;
        odd = y;
    }
}

/* Writes this group of streams' part of dr. */
template <int K>
static __device__ __forceinline__ void finish(const attn_call &c, const walk &w, const attn_me &me,
                                              const float (&dr)[K / 8][4])
{
    const lam_attn &a = c.a;
    const int e0 = (w.first + me.group) * WG_ROWS - a.shift + 16 * me.warp + me.lanes.g;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = a.r_zero + a.r_sign * (e0 + 8 * half);
        if (row < 0 || row >= a.r_rows)
            continue;
        float *out = c.dr_part + ((size_t)blockIdx.z * a.r_rows + row) * a.H * K + (size_t)w.h * K;
#pragma unroll
        for (int y = 0; y < K / 8; y++)
            *(float2 *)(out + 8 * y + 2 * me.lanes.t) =
                make_float2(dr[y][2 * half] * (float)a.scale, dr[y][2 * half + 1] * (float)a.scale);
    }
}

template <int K>
static __device__ __forceinline__ void compute(const attn_call &c, const walk &w)
{
    const attn_me me = attn_find_me<WG_ROWS>();
    const attn_skew skew = attn_skew_by(LEFT, me.lane);
    const uint32_t bars = me.smem + BARS;
    const int mine = w.first + me.group;

    float dr[K / 8][4] = {};
    attn_turn turn = {};
    int tile = w.tile_lo, before = -1; /* the stage whose sum may still run */
    for (int n = 0; n < w.steps; n++) {
        const int stage = turn.stage, key_tile = mine + tile;
        const int there = is_there(c, tile, key_tile) | is_there(c, tile, key_tile + 1) << 1;
        const uint32_t ds = me.smem + DS + (uint32_t)((stage * CHUNKS + me.group) * WG_TILE);
        const uint32_t skewed = me.smem + SKEWED + (uint32_t)((2 * me.group + n % 2) * WG_TILE);
        tile = tile + 1 == w.tile_lo + w.tiles ? w.tile_lo : tile + 1;
        lam_bar_wait(attn_full<STAGES>(bars, stage), turn.phase);
        attn_advance<STAGES>(turn);
        if (there) {
            uint32_t rows[5][4], left[4][4];
            load_rows(rows, ds, there, me);
            straighten(left, rows, skew);
#pragma unroll
            for (int kk = 0; kk < 4; kk++)
                lam_store4(skewed + me.rows + (me.lanes.a ^ (uint32_t)(kk << 5)), left[kk]);
            lam_wg_publish();
        }
        lam_wg_wait<0>();
        attn_leave_before<STAGES>(bars, before, stage);
        lam_wg_barrier(me.group); /* also: nobody reads the other `skewed` any more */
        if (there) {
            lam_wg_begin();
            attn_wg_columns<K>(dr, skewed, me.smem + QV + (uint32_t)(stage * WG_TILE));
            lam_wg_close();
        }
    }
    lam_wg_wait<0>();
    lam_wg_hold(dr);
    finish<K>(c, w, me, dr);
}

template <int K>
static __global__ void __launch_bounds__(WG_ALL, 1)
    sm90_bwd_r(const attn_call c, const __grid_constant__ attn_maps maps)
{
    const walk w = walk_of(c);
    const uint32_t smem = lam_address(lam_shared_memory());
    attn_run<STAGES>(
        smem + BARS, [&] { copy(c, maps, w, smem); }, [&] { compute<K>(c, w); });
}

void lam_cuda_attn_sm90_bwd_r(lam_cuda_dev *dev, const attn_call *c, const attn_maps *maps)
{
    const int lo = c->e_first + c->a.shift, hi = lo + c->a.r_rows - 1;
    const int tiles = tile_of(hi) - tile_of(lo) + 1;
    const dim3 grid((unsigned)lam_cuda_ceil(tiles, WG_GROUPS), (unsigned)c->heads,
                    (unsigned)c->groups);
    attn_by_sm90_width(c->a.K, [&](auto width) {
        lam_cuda_launch(dev, "attn_bwd", sm90_bwd_r<width>, {grid, WG_ALL, BYTES}, *c, *maps);
    });
}
