/* cuda/attn_tile.cuh -- tiles of bf16 rows in shared memory, and the skew between keys and distances.
 *
 * A tile holds rows of one head, 128 bytes apart (256 for heads wider than 64), in chunks of 16 bytes;
 * chunk x of row y lies at position x ^ (y % 8), so that eight rows at one chunk, which is what the matrix
 * loads want, touch all banks once.
 *
 * The skew.  For 16 queries and n keys the distances are n + 15 neighbours.  The positional scores
 * are therefore a product of the queries with a *band* of n + 16 rows of r, and the score of the
 * pair (row, key) stands in column key + 15 - row of it.  In the accumulator layout a row lies in the
 * four lanes of a quad, so shifting it is four shuffles a tile and some selects: nothing goes
 * through shared memory.  With shift = 7 - g for row g (and 8 columns more for the upper half)
 *     column 2t + x + shift, x = 0, 1    is an even one of lane (t + (shift + 1) / 2) % 4
 *                                        and an odd one of lane (t + shift / 2) % 4,
 * in the next tile where that lane number passed 3. */
#ifndef LAM_OPS_CUDA_ATTN_TILE_CUH
#define LAM_OPS_CUDA_ATTN_TILE_CUH

#include "ops/cuda/attn_int.cuh"
#include "ops/cuda/ptx.cuh"

#include <math_constants.h>

#define ATTN_FULL_WARP 0xffffffffu

template <int K>
struct attn_tile {
    enum {
        PITCH = K <= 64 ? 128 : 256, /* bytes between rows */
        STEPS = K / 16,              /* products of depth 16 over the head */
        COLS = K / 8                 /* tiles of 8 columns over the head */
    };
};

/* What depends on the lane alone. */
struct attn_lanes {
    int g, t;
    /* Byte offsets of this lane's row for a 16-row load:
     *   a: rows 0-15 at the first chunk, then at the second (left operands; right ones transposed)
     *   b: rows 0-7 at both chunks, then rows 8-15 (right operands: two tiles of 8 rows)
     * The chunk pair is chosen by ^ (pair << 5). */
    uint32_t a, b;
};

template <int K>
static __device__ __forceinline__ attn_lanes attn_lanes_of(int lane)
{
    const uint32_t l = (uint32_t)lane, pitch = attn_tile<K>::PITCH;
    return {lane / 4, lane % 4, (l % 16) * pitch + ((l / 16 ^ l % 8) << 4),
            (l % 8 + l / 16 * 8) * pitch + ((l / 8 % 2 ^ l % 8) << 4)};
}

/* Copies ROWS rows in the background: row x of the tile is row first + dir * x of `from`, zeros where
 * that is not in [0, limit).  All THREADS threads of the block take part. */
template <int K, int ROWS, int THREADS>
static __device__ __forceinline__ void attn_load_rows(uint32_t to, const lam_bf16 *from, size_t ld,
                                                      int first, int dir, int limit)
{
    enum { CHUNKS = K / 8, ALL = ROWS * CHUNKS };
#pragma unroll
    for (int n = 0; n < (ALL + THREADS - 1) / THREADS; n++) {
        const int x = n * THREADS + (int)threadIdx.x;
        const int row = x / CHUNKS, chunk = x % CHUNKS, source = first + dir * row;
        const bool valid = source >= 0 && source < limit;
        if (ALL % THREADS == 0 || x < ALL)
            lam_copy16(to + (uint32_t)(row * attn_tile<K>::PITCH + ((chunk ^ row % 8) << 4)),
                       from + (valid ? (size_t)source * ld : 0) + chunk * 8, valid);
    }
}

/* N floats the same way. */
template <int N>
static __device__ __forceinline__ void attn_load_floats(uint32_t to, const float *from, int first,
                                                        int dir, int limit)
{
    const int x = (int)threadIdx.x, source = first + dir * x;
    const bool valid = source >= 0 && source < limit;
    if (x < N)
        lam_copy4(to + 4u * (uint32_t)x, from + (valid ? source : 0), valid);
}

/* The band of rows of r that a block needs, by offset: row x of it has the offset `first + x`. */
template <int K, int ROWS, int THREADS>
static __device__ __forceinline__ void attn_load_band(uint32_t to, const attn_call &c, int h,
                                                      int first)
{
    attn_load_rows<K, ROWS, THREADS>(to, (const lam_bf16 *)c.a.r + (size_t)h * K, c.a.ldr,
                                     c.a.r_zero + c.a.r_sign * first, c.a.r_sign, c.a.r_rows);
}

/* A block that owns P::QUERIES queries of head h walks over tiles of P::KEYS keys: keys and values lie in two stages,
 * rows of r in a ring of P::RING, whose row 0 has offset e0.  Copies what the first tile needs .. */
template <int K, typename P>
static __device__ __forceinline__ void
attn_load_first_tile(const attn_call &c, uint32_t smem, const lam_bf16 *k, const lam_bf16 *value,
                     int h, int key_lo, int e0)
{
    const lam_attn &a = c.a;
    if (a.r)
        attn_load_band<K, P::QUERIES + P::KEYS, P::THREADS>(smem + P::BAND, c, h, e0);
    attn_load_rows<K, P::KEYS, P::THREADS>(smem + P::KEY, k, a.ldk, key_lo, 1, a.keys);
    attn_load_rows<K, P::KEYS, P::THREADS>(smem + P::VALUE, value, a.ldk, key_lo, 1, a.keys);
}

/* .. and what the tile behind tile t needs, whose keys begin at j0. */
template <int K, typename P>
static __device__ __forceinline__ void attn_load_next_tile(const attn_call &c, uint32_t smem,
                                                           const lam_bf16 *k, const lam_bf16 *value,
                                                           int h, int t, int j0, int e0)
{
    const lam_attn &a = c.a;
    const uint32_t next = (uint32_t)((t + 1) % 2 * P::KEYS * P::PITCH);
    const int fresh = t * P::KEYS + P::QUERIES + P::KEYS;
    attn_load_rows<K, P::KEYS, P::THREADS>(smem + P::KEY + next, k, a.ldk, j0 + P::KEYS, 1, a.keys);
    if (a.r)
        attn_load_band<K, P::KEYS, P::THREADS>(
            smem + P::BAND + (uint32_t)(fresh % P::RING * P::PITCH), c, h, e0 + fresh);
    attn_load_rows<K, P::KEYS, P::THREADS>(smem + P::VALUE + next, value, a.ldk, j0 + P::KEYS, 1,
                                           a.keys);
}

/* The keys that the block of QUERIES queries from i0 on walks over, in tiles of KEYS. */
struct attn_tile_walk {
    int key_lo, tiles;
    int e0; /* the offset of row 0 of the ring */
};

template <int QUERIES, int KEYS>
static __device__ __forceinline__ attn_tile_walk attn_tile_walk_of(const attn_call &c, int i0)
{
    const lam_attn &a = c.a;
    const int i_end = min(i0 + QUERIES, a.queries);
    const int key_lo = max(0, a.shift + i0 + c.e_lo) / KEYS * KEYS;
    const int key_hi = min(a.keys - 1, a.shift + i_end - 1 + c.e_hi);
    return {key_lo, key_hi < key_lo ? 0 : (key_hi - key_lo) / KEYS + 1,
            key_lo - a.shift - (i0 + QUERIES - 1)};
}

/* ---- scores and their softmax ------------------------------------------------------------------- */

/* The largest, and the sum, of the four lanes that share a row of accumulators. */
static __device__ __forceinline__ float attn_quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(ATTN_FULL_WARP, x, 1));
    return fmaxf(x, __shfl_xor_sync(ATTN_FULL_WARP, x, 2));
}

static __device__ __forceinline__ float attn_quad_sum(float x)
{
    x += __shfl_xor_sync(ATTN_FULL_WARP, x, 1);
    return x + __shfl_xor_sync(ATTN_FULL_WARP, x, 2);
}

/* Scores of 16 queries with TILES * 8 keys that are not visible become -infinity.  Row g + down sees keys
 * lo + down .. hi + down of those from start to end - 1, counted from the first key of the tile; the queries are
 * rows `first` .. `first` + 15. */
template <int TILES>
static __device__ __forceinline__ void attn_hide(float (&s)[TILES][4], int lo, int hi, int start,
                                                 int end, int t, int first = 0)
{
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            const int key = 8 * n + 2 * t + x % 2, down = first + x / 2 * 8;
            if (key < lo + down || key > hi + down || key < start || key >= end)
                s[n][x] = -CUDART_INF_F;
        }
}

/* ---- the skew of rows ------------------------------------------------------------------------ */

struct attn_skew {
    int even, odd;            /* the lanes that columns come from */
    bool even_next, odd_next; /* from the next tile */
    bool swap;
};

/* Which way rows move: columns of row g come from 7 - g further right, or from g further right. */
enum attn_side { RIGHT, LEFT };

static __device__ __forceinline__ attn_skew attn_skew_by(attn_side side, int lane)
{
    const int g = lane / 4, t = lane % 4, quad = lane & ~3, shift = side == RIGHT ? 7 - g : g;
    const int even = t + (shift + 1) / 2, odd = t + shift / 2;
    return {quad + even % 4, quad + odd % 4, even >= 4, odd >= 4, shift % 2 == 1};
}

/* A tile's columns, brought from their lanes. */
static __device__ __forceinline__ void attn_skew_fetch(float (&now)[4], const float (&band)[4],
                                                       const attn_skew &skew)
{
    now[0] = __shfl_sync(ATTN_FULL_WARP, band[0], skew.even);
    now[1] = __shfl_sync(ATTN_FULL_WARP, band[1], skew.odd);
    now[2] = __shfl_sync(ATTN_FULL_WARP, band[2], skew.even);
    now[3] = __shfl_sync(ATTN_FULL_WARP, band[3], skew.odd);
}

/* The way back of attn_skew: column 2t + x of a band tile comes from column 2t + x - shift of the
 * tile of keys with the same number, or of the one before. */
struct attn_unskew {
    int even, odd;
    bool even_same, odd_same;
    uint32_t upper, lower; /* byte selectors that also put the two columns in order */
};

static __device__ __forceinline__ attn_unskew attn_unskew_of(int lane)
{
    const int shift = 7 - lane / 4, t = lane % 4, quad = lane & ~3;
    const int even = t - shift / 2, odd = t - (shift + 1) / 2;
    return {quad + (even & 3),
            quad + (odd & 3),
            even >= 0,
            odd >= 0,
            shift % 2 ? 0x1054u : 0x5410u,
            shift % 2 ? 0x3276u : 0x7632u};
}

/* Takes tile `n` of a band (0, 1, ...) and completes what it can of the scores s, tiles of 8 keys:
 * the lower half of tile n - 1 and the upper half of n - 2.  `last` carries from call to call. */
template <int TILES>
static __device__ __forceinline__ void attn_skew_feed(float (&s)[TILES][4], float (&last)[4],
                                                      const float (&band)[4], int n,
                                                      const attn_skew &skew)
{
    float now[4];
    attn_skew_fetch(now, band, skew);
    if (n >= 2) {
        const float x = skew.even_next ? now[0] : last[0], y = skew.odd_next ? now[1] : last[1];
        s[n - 2][0] = skew.swap ? y : x;
        s[n - 2][1] = skew.swap ? x : y;
    }
    if (n >= 1 && n <= TILES) {
        const float x = skew.even_next ? now[2] : last[2], y = skew.odd_next ? now[3] : last[3];
        s[n - 1][2] = skew.swap ? y : x;
        s[n - 1][3] = skew.swap ? x : y;
    }
#pragma unroll
    for (int x = 0; x < 4; x++)
        last[x] = now[x];
}

/* s = the positional scores of 16 * MT queries with KEYS keys.  The band of row-tile m starts at row
 * `first` + 16 (MT - 1 - m) of a ring of RING rows. */
template <int K, int MT, int KEYS, int RING>
static __device__ __forceinline__ void
attn_band_scores(float (&s)[MT][KEYS / 8][4], const uint32_t (&q)[MT][K / 16][4], uint32_t ring,
                 int first, const attn_lanes &lanes, const attn_skew &skew)
{
    float last[MT][4];
#pragma unroll
    for (int pair = 0; pair < KEYS / 16 + MT; pair++) {
        const uint32_t at =
            ring + (uint32_t)(((first + 16 * pair) & (RING - 1)) * attn_tile<K>::PITCH);
        float band[MT][2][4] = {};
#pragma unroll
        for (int kk = 0; kk < K / 16; kk++) {
            uint32_t r[4];
            lam_load4(r, at + (lanes.b ^ (uint32_t)(kk << 5)));
#pragma unroll
            for (int m = 0; m < MT; m++) {
                const int mine = pair - (MT - 1 - m);
                if (mine < 0 || mine > KEYS / 16)
                    continue;
                lam_mma(band[m][0], q[m][kk], r[0], r[1]);
                lam_mma(band[m][1], q[m][kk], r[2], r[3]);
            }
        }
#pragma unroll
        for (int m = 0; m < MT; m++) {
            const int mine = pair - (MT - 1 - m);
            if (mine < 0 || mine > KEYS / 16)
                continue;
            attn_skew_feed(s[m], last[m], band[m][0], 2 * mine, skew);
            attn_skew_feed(s[m], last[m], band[m][1], 2 * mine + 1, skew);
        }
    }
}

/* s += q k^T for the KEYS rows of the tile at `keys`. */
template <int K, int MT, int KEYS>
static __device__ __forceinline__ void attn_scores(float (&s)[MT][KEYS / 8][4],
                                                   const uint32_t (&q)[MT][K / 16][4],
                                                   uint32_t keys, const attn_lanes &lanes)
{
#pragma unroll
    for (int pair = 0; pair < KEYS / 16; pair++)
#pragma unroll
        for (int kk = 0; kk < K / 16; kk++) {
            uint32_t k[4];
            lam_load4(k, keys + (uint32_t)(16 * pair * attn_tile<K>::PITCH) +
                             (lanes.b ^ (uint32_t)(kk << 5)));
#pragma unroll
            for (int m = 0; m < MT; m++) {
                lam_mma(s[m][2 * pair], q[m][kk], k[0], k[1]);
                lam_mma(s[m][2 * pair + 1], q[m][kk], k[2], k[3]);
            }
        }
}

/* o += p v, where p is a left operand (16 x 16) and v sixteen rows of a tile at `rows`. */
template <int K>
static __device__ __forceinline__ void attn_add_rows(float (&o)[K / 8][4], const uint32_t (&p)[4],
                                                     uint32_t rows, const attn_lanes &lanes)
{
#pragma unroll
    for (int pair = 0; pair < K / 16; pair++) {
        uint32_t v[4];
        lam_load4_t(v, rows + (lanes.a ^ (uint32_t)(pair << 5)));
        lam_mma(o[2 * pair], p, v[0], v[1]);
        lam_mma(o[2 * pair + 1], p, v[2], v[3]);
    }
}

/* The sixteen rows at `rows` as left operands. */
template <int K>
static __device__ __forceinline__ void attn_load_left(uint32_t (&a)[K / 16][4], uint32_t rows,
                                                      const attn_lanes &lanes)
{
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++)
        lam_load4(a[kk], rows + (lanes.a ^ (uint32_t)(kk << 5)));
}

/* The same with a float vector added to every row, rounded once; NULL: nothing added. */
template <int K>
static __device__ __forceinline__ void attn_load_biased(uint32_t (&a)[K / 16][4], uint32_t rows,
                                                        const float *bias, const attn_lanes &lanes)
{
    attn_load_left<K>(a, rows, lanes);
    if (!bias)
        return;
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            const float *at = bias + 16 * kk + 2 * lanes.t + x / 2 * 8;
            a[kk][x] = lam_pack(__uint_as_float(a[kk][x] << 16) + at[0],
                                __uint_as_float(a[kk][x] & 0xffff0000u) + at[1]);
        }
}

/* Writes sixteen rows of accumulators, times `scale`, as bf16 into a tile. */
template <int K>
static __device__ __forceinline__ void attn_store_tile(unsigned char *rows,
                                                       const float (&o)[K / 8][4], float upper,
                                                       float lower, const attn_lanes &lanes)
{
    unsigned char *at = rows + lanes.g * attn_tile<K>::PITCH + lanes.t * 4;
    __syncwarp(); /* other lanes may still load what lay here */
#pragma unroll
    for (int n = 0; n < K / 8; n++) { /* in row g + 8 chunk n has the same position */
        const int at_chunk = (n ^ lanes.g) << 4;
        *(uint32_t *)(at + at_chunk) = lam_pack(o[n][0] * upper, o[n][1] * upper);
        *(uint32_t *)(at + 8 * attn_tile<K>::PITCH + at_chunk) =
            lam_pack(o[n][2] * lower, o[n][3] * lower);
    }
}

/* Sixteen rows of a tile to global memory by one warp, `rows` of them; ADD: onto what is there. */
template <int K>
static __device__ __forceinline__ void
attn_write_rows(lam_bf16 *to, size_t ld, const unsigned char *tile, int rows, bool add)
{
    enum { CHUNKS = K / 8 };
    const int lane = (int)threadIdx.x % LAM_WARP;
#pragma unroll
    for (int n = 0; n < 16 * CHUNKS / LAM_WARP; n++) {
        const int x = n * LAM_WARP + lane, row = x / CHUNKS, chunk = x % CHUNKS;
        if (row >= rows)
            continue;
        const lam_bf16 *from =
            (const lam_bf16 *)(tile + row * attn_tile<K>::PITCH + ((chunk ^ row % 8) << 4));
        lam_bf16 *out = to + (size_t)row * ld + chunk * 8;
        if (!add) {
            *(uint4 *)out = *(const uint4 *)from;
            continue;
        }
        lam_f8 sum = lam_load8(out);
        const lam_f8 more = lam_load8(from);
#pragma unroll
        for (int y = 0; y < 8; y++)
            sum.v[y] += more.v[y];
        lam_store8(out, sum);
    }
}

#endif
