/* cuda/attn_own.cuh -- backward on tensor cores for a block that owns keys, or distances.
 *
 * fwd was S = scale (q . k + k_bias + q . r + r_bias) (attn_prepare.cu), P = exp(S - lse),
 * o = P value; dS = P (do . value - delta).
 *
 * One walk, two owners: attn_bwd_kv.cu and attn_bwd_r.cu.  A block owns rows of k and value (KEYS),
 * or rows of r (DISTANCES) for a group of streams, a warp 16 of them, and tiles of queries come by.
 * Scores are computed transposed, owned rows down and queries across, so that P and dS are at once
 * left operands of the sums.  Of the two parts of S one is a direct product with the owned rows; the
 * other belongs to rows that move along with the queries: a window of 32 rows for 16 queries, of r
 * for KEYS (offset j - i, so tiles go from the last query to the first), of k and value for DISTANCES
 * (key i + e).  Its product is skewed down the columns (attn_own_skew.cuh).  Each owner sums over
 * everything, in order: no atomics.  k, value and r are read through windows kept in registers (heads
 * up to 64) that move on by one 16-row tile a step. */
#ifndef LAM_OPS_CUDA_ATTN_OWN_CUH
#define LAM_OPS_CUDA_ATTN_OWN_CUH

#include "ops/cuda/attn_own_skew.cuh"
#include "ops/cuda/attn_tile.cuh"

template <int K, attn_owner OWNER>
struct attn_own_plan {
    enum {
        IN_REGS = K <= 64, /* left operands stay in registers */
        WARPS = K <= 64 ? 8 : 4,
        THREADS = WARPS * LAM_WARP,
        OWN = 16 * WARPS,
        QUERIES = K <= 64 ? 64 : 32, /* of a tile, and rows of a chunk of the ring */
        CHUNKS = OWN / QUERIES + 1,  /* that a tile's windows span */
        SLOTS = OWNER == KEYS ? CHUNKS + 1 : 2 * CHUNKS,
        PITCH = attn_tile<K>::PITCH,
        MINE = 0, /* k or r; then value */
        MINE2 = MINE + OWN * PITCH,
        Q = OWNER == KEYS ? MINE2 + OWN * PITCH : MINE2,
        DO = Q + 2 * QUERIES * PITCH,
        RING = DO + 2 * QUERIES * PITCH, /* r or k; then value */
        RING2 = RING + SLOTS * QUERIES * PITCH,
        LSE2 = OWNER == KEYS ? RING2 : RING2 + SLOTS * QUERIES * PITCH,
        DELTA = LSE2 + 2 * QUERIES * 4,
        BIAS = DELTA + 2 * QUERIES * 4, /* of the ring's rows */
        SUMS = BIAS + SLOTS * QUERIES * 4,
        BYTES = SUMS + OWN * 4
    };
};

/* What a block does: `steps` tiles of queries; step n of a stream uses chunks n .. n + CHUNKS - 1 of
 * the ring, and every stream starts a fresh run of chunks. */
struct attn_own_task {
    int h, stream, first; /* the first stream, the first owned row: a key, or an offset */
    int tile_lo, tile_hi; /* tiles of queries with something visible */
    int steps;
};

struct step {
    int stream, tile, chunk;
    bool fresh; /* first of its stream */
};

template <int K, attn_owner OWNER>
static __device__ __forceinline__ step step_of(const attn_own_task &w, int n)
{
    if (OWNER == KEYS)
        return {w.stream, w.tile_hi - n, n, n == 0};
    const int tiles = w.tile_hi - w.tile_lo + 1, stream = n / tiles, tile = n % tiles;
    return {w.stream + stream, w.tile_lo + tile,
            stream * (tiles + attn_own_plan<K, OWNER>::CHUNKS - 1) + tile, tile == 0};
}

/* Copies what step n needs and the ones before it did not bring. */
template <int K, attn_owner OWNER>
static __device__ __forceinline__ void fetch(const attn_call &c, const attn_own_task &w, int n,
                                             uint32_t smem)
{
    typedef attn_own_plan<K, OWNER> P;
    const lam_attn &a = c.a;
    const step s = step_of<K, OWNER>(w, n);
    const size_t col = (size_t)w.h * K, row = ((size_t)s.stream * a.H + w.h);
    const int i0 = s.tile * P::QUERIES;
    const uint32_t stage = (uint32_t)(n % 2 * P::QUERIES);
    attn_load_rows<K, P::QUERIES, P::THREADS>(
        smem + P::Q + stage * P::PITCH, attn_row<const lam_bf16>(a.q, a.ldq, s.stream, 0, col),
        a.ldq, i0, 1, a.queries);
    attn_load_rows<K, P::QUERIES, P::THREADS>(
        smem + P::DO + stage * P::PITCH, attn_row<const lam_bf16>(a.d_o, a.ldo, s.stream, 0, col),
        a.ldo, i0, 1, a.queries);
    attn_load_floats<P::QUERIES>(smem + P::LSE2 + stage * 4, c.lse2 + row * c.q_pad, i0, 1,
                                 c.q_pad);
    attn_load_floats<P::QUERIES>(smem + P::DELTA + stage * 4, c.delta + row * c.q_pad, i0, 1,
                                 c.q_pad);
    for (int x = s.fresh ? 0 : P::CHUNKS - 1; x < P::CHUNKS; x++) {
        const uint32_t slot = (uint32_t)((s.chunk + x) % P::SLOTS * P::QUERIES);
        if (OWNER == KEYS) { /* the lowest offset belongs to the last query */
            const int offset = w.first - a.shift - (i0 + P::QUERIES - 1) + x * P::QUERIES;
            attn_load_band<K, P::QUERIES, P::THREADS>(smem + P::RING + slot * P::PITCH, c, w.h,
                                                      offset);
            attn_load_floats<P::QUERIES>(smem + P::BIAS + slot * 4,
                                         c.r_bias + (size_t)w.h * a.r_rows,
                                         a.r_zero + a.r_sign * offset, a.r_sign, a.r_rows);
        } else {
            const int key = w.first + a.shift + i0 + x * P::QUERIES;
            attn_load_rows<K, P::QUERIES, P::THREADS>(
                smem + P::RING + slot * P::PITCH,
                attn_row<const lam_bf16>(a.k, a.ldk, s.stream, 0, col), a.ldk, key, 1, a.keys);
            attn_load_rows<K, P::QUERIES, P::THREADS>(
                smem + P::RING2 + slot * P::PITCH,
                attn_row<const lam_bf16>(a.value, a.ldk, s.stream, 0, col), a.ldk, key, 1, a.keys);
            attn_load_floats<P::QUERIES>(smem + P::BIAS + slot * 4, c.k_bias + row * a.keys, key, 1,
                                         a.keys);
        }
    }
}

/* A 16-row left operand: kept in registers, or loaded where it is used. */
template <int K, bool IN_REGS>
struct left {
    uint32_t a[IN_REGS ? K / 16 : 1][4];
    uint32_t rows;

    __device__ __forceinline__ void set(uint32_t at, const attn_lanes &lanes)
    {
        rows = at;
        if (IN_REGS)
#pragma unroll
            for (int kk = 0; kk < K / 16; kk++)
                lam_load4(a[kk], at + (lanes.a ^ (uint32_t)(kk << 5)));
    }

    __device__ __forceinline__ const uint32_t (&at(int kk, const attn_lanes &lanes))[4]
    {
        if (IN_REGS)
            return a[IN_REGS ? kk : 0];
        lam_load4(a[0], rows + (lanes.a ^ (uint32_t)(kk << 5)));
        return a[0];
    }
};

/* The left operands and sums of a warp. */
template <int K, attn_owner OWNER>
struct attn_owned {
    enum { IN_REGS = attn_own_plan<K, OWNER>::IN_REGS };
    left<K, IN_REGS> own;                              /* k or r */
    left<K, OWNER == KEYS && IN_REGS> own2;            /* value (KEYS) */
    left<K, IN_REGS> window[2];                        /* r or k */
    left<K, OWNER == DISTANCES && IN_REGS> window2[2]; /* value (DISTANCES) */
    float bias[2];                                     /* of the owned rows g, g + 8 */
    float d[K / 8][4];                                 /* dk or dr */
    float d2[OWNER == KEYS ? K / 8 : 1][4];            /* dvalue */
    float sum[4];                                      /* of dS over queries */
};

/* What a pair of window tiles and a step of 16 queries need to know. */
struct where {
    uint32_t q, d_o; /* the step's 16 queries */
    const float *lse2, *delta;
    const float *bias[2]; /* of the window tiles */
    int hidden;           /* some pairs are not visible */
    int lo, hi;           /* visible iff lo <= (row - or + column) <= hi, see step16 */
    int row_lo, row_hi;   /* owned rows that exist (KEYS) or are visible (DISTANCES) */
};

/* The scores of 16 owned rows and 16 queries, and dP - delta. */
template <int K, attn_owner OWNER>
static __device__ __forceinline__ void
score16(float (&s)[2][4], float (&dp)[2][4], attn_owned<K, OWNER> &m,
        left<K, attn_owned<K, OWNER>::IN_REGS> &w0, left<K, attn_owned<K, OWNER>::IN_REGS> &w1,
        int even, const where &at, const slide &sl, const attn_lanes &lanes)
{
    float w[2][2][4];
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            s[n][x] = m.bias[x / 2];
            dp[n][x] = -at.delta[8 * n + 2 * lanes.t + x % 2];
            w[0][n][x] = at.bias[0][lanes.g + x / 2 * 8];
            w[1][n][x] = at.bias[1][lanes.g + x / 2 * 8];
        }
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++) {
        uint32_t q[4];
        lam_load4(q, at.q + (lanes.b ^ (uint32_t)(kk << 5)));
#pragma unroll
        for (int n = 0; n < 2; n++) {
            lam_mma(s[n], m.own.at(kk, lanes), q[2 * n], q[2 * n + 1]);
            lam_mma(w[0][n], w0.at(kk, lanes), q[2 * n], q[2 * n + 1]);
            lam_mma(w[1][n], w1.at(kk, lanes), q[2 * n], q[2 * n + 1]);
        }
    }
    add_skewed<OWNER>(s, w, sl);
    float w2[2][2][4] = {};
#pragma unroll
    for (int kk = 0; kk < K / 16; kk++) {
        uint32_t d_o[4];
        lam_load4(d_o, at.d_o + (lanes.b ^ (uint32_t)(kk << 5)));
#pragma unroll
        for (int n = 0; n < 2; n++)
            if (OWNER == KEYS) {
                lam_mma(dp[n], m.own2.at(kk, lanes), d_o[2 * n], d_o[2 * n + 1]);
            } else {
                lam_mma(w2[0][n], m.window2[even].at(kk, lanes), d_o[2 * n], d_o[2 * n + 1]);
                lam_mma(w2[1][n], m.window2[1 - even].at(kk, lanes), d_o[2 * n], d_o[2 * n + 1]);
            }
    }
    if (OWNER == DISTANCES)
        add_skewed<OWNER>(dp, w2, sl);
}

/* One step of a warp: 16 owned rows, 16 queries.  `even` is the older of the two window tiles. */
template <int K, attn_owner OWNER>
static __device__ __forceinline__ void step16(attn_owned<K, OWNER> &m, int even, const where &at,
                                              float scale2, const slide &sl,
                                              const attn_lanes &lanes)
{
    float p[2][4], ds[2][4];
    score16<K, OWNER>(p, ds, m, m.window[even], m.window[1 - even], even, at, sl, lanes);
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            const int row = lanes.g + x / 2 * 8, column = 8 * n + 2 * lanes.t + x % 2;
            p[n][x] = lam_exp2(fmaf(p[n][x], scale2, -at.lse2[column]));
            if (at.hidden) {
                const int offset = OWNER == KEYS ? row - column : row + column;
                if (offset < at.lo || offset > at.hi || row < at.row_lo || row > at.row_hi)
                    p[n][x] = 0.0f;
            }
            ds[n][x] *= p[n][x];
        }
    uint32_t left_p[4], left_ds[4];
#pragma unroll
    for (int x = 0; x < 4; x++) {
        left_p[x] = lam_pack(p[x / 2][x % 2 * 2], p[x / 2][x % 2 * 2 + 1]);
        left_ds[x] = lam_pack(ds[x / 2][x % 2 * 2], ds[x / 2][x % 2 * 2 + 1]);
    }
    if constexpr (OWNER == KEYS)
        attn_add_rows<K>(m.d2, left_p, at.d_o, lanes);
    attn_add_rows<K>(m.d, left_ds, at.q, lanes);
    lam_mma(m.sum, left_ds, 0x3f803f80u, 0x3f803f80u); /* times ones */
}

/* A tile of queries. */
template <int K, attn_owner OWNER, bool PARTLY>
static __device__ __forceinline__ void visit(const attn_call &c, const attn_own_task &w, int n,
                                             attn_owned<K, OWNER> &m, const slide &sl,
                                             const attn_lanes &lanes)
{
    typedef attn_own_plan<K, OWNER> P;
    const lam_attn &a = c.a;
    const int warp = (int)threadIdx.x / LAM_WARP;
    const step s = step_of<K, OWNER>(w, n);
    const int i0 = s.tile * P::QUERIES, row0 = w.first + 16 * warp;
    const int oldest = attn_oldest<PARTLY>(c, s.stream);
    where at;
    if (OWNER == KEYS) {
        const int low = row0 - a.shift - (i0 + P::QUERIES - 1), high = row0 + 15 - a.shift - i0;
        if (low > c.e_hi || high < c.e_lo || row0 >= a.keys)
            return;
        at.hidden =
            low < c.e_lo || high > c.e_hi || row0 + 16 > a.keys || (PARTLY && row0 < oldest);
        at.row_lo = PARTLY ? oldest - row0 : 0;
        at.row_hi = a.keys - 1 - row0;
    } else {
        const int low = row0 + a.shift + i0, high = low + 15 + P::QUERIES - 1;
        if (row0 > c.e_hi || row0 + 15 < c.e_lo || high < 0 || low >= a.keys)
            return;
        at.hidden = row0 < c.e_lo || row0 + 15 > c.e_hi || low < oldest || high >= a.keys;
        at.row_lo = c.e_lo - row0;
        at.row_hi = c.e_hi - row0;
    }
    const uint32_t smem = lam_address(lam_shared_memory());
    const float *floats = (const float *)(lam_shared_memory() + P::LSE2);
    const float *biases = (const float *)(lam_shared_memory() + P::BIAS);
    const float scale2 = (float)a.scale * CUDART_L2E_F;
    const int base = s.chunk % P::SLOTS;
#pragma unroll
    for (int x = 0; x <= P::QUERIES / 16; x++) {
        const int y = 16 * (warp + x); /* the window tile this step brings, counted in the ring */
        const int slot = base + y / P::QUERIES;
        const int row = (slot < P::SLOTS ? slot : slot - P::SLOTS) * P::QUERIES + y % P::QUERIES;
        m.window[x % 2].set(smem + P::RING + (uint32_t)(row * P::PITCH), lanes);
        if (OWNER == DISTANCES)
            m.window2[x % 2].set(smem + P::RING2 + (uint32_t)(row * P::PITCH), lanes);
        at.bias[0] = at.bias[1];
        at.bias[1] = biases + row;
        if (x == 0)
            continue;
        const int sub = OWNER == KEYS ? P::QUERIES / 16 - x : x - 1;
        const int stage = n % 2 * P::QUERIES + 16 * sub;
        at.q = smem + P::Q + (uint32_t)(stage * P::PITCH);
        at.d_o = smem + P::DO + (uint32_t)(stage * P::PITCH);
        at.lse2 = floats + stage;
        at.delta = floats + 2 * P::QUERIES + stage;
        if (OWNER == KEYS) {
            at.lo = c.e_lo - (row0 - a.shift - i0 - 16 * sub);
            at.hi = c.e_hi - (row0 - a.shift - i0 - 16 * sub);
        } else {
            at.lo = oldest - (row0 + a.shift + i0 + 16 * sub);
            at.hi = a.keys - 1 - (row0 + a.shift + i0 + 16 * sub);
        }
        step16<K, OWNER>(m, (x - 1) % 2, at, scale2, sl, lanes);
    }
}

/* part[.] = scale * sum over the owned rows of (sum of dS) * row: this block's share of du or dv. */
template <int K, attn_owner OWNER>
static __device__ __forceinline__ void attn_own_sum_rows(float *part, float scale)
{
    typedef attn_own_plan<K, OWNER> P;
    const unsigned char *rows = lam_shared_memory() + P::MINE;
    const float *sums = (const float *)(lam_shared_memory() + P::SUMS);
    const int x = (int)threadIdx.x;
    if (x >= K)
        return;
    float total = 0.0f;
    for (int y = 0; y < P::OWN; y++)
        total += sums[y] * lam_float(*(const lam_bf16 *)(rows + y * P::PITCH +
                                                         ((x / 8 ^ y % 8) << 4) + x % 8 * 2));
    part[x] = total * scale;
}

/* d += (sum of dS) * u, or v. */
template <int K, attn_owner OWNER>
static __device__ __forceinline__ void attn_own_add_bias(attn_owned<K, OWNER> &m, const float *bias,
                                                         const attn_lanes &lanes)
{
    if (!bias)
        return;
#pragma unroll
    for (int n = 0; n < K / 8; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            m.d[n][x] += m.sum[x] * bias[8 * n + 2 * lanes.t + x % 2];
}

static __device__ __forceinline__ void attn_own_share(float *sums, const float (&sum)[4], int warp,
                                                      const attn_lanes &lanes)
{
    if (lanes.t == 0) {
        sums[16 * warp + lanes.g] = sum[0];
        sums[16 * warp + lanes.g + 8] = sum[2];
    }
}

template <int K, attn_owner OWNER, bool PARTLY>
static __device__ __forceinline__ void attn_own_walk(const attn_call &c, const attn_own_task &w,
                                                     attn_owned<K, OWNER> &m,
                                                     const attn_lanes &lanes)
{
    typedef attn_own_plan<K, OWNER> P;
    const uint32_t smem = lam_address(lam_shared_memory());
    const uint32_t rows = smem + (uint32_t)((int)threadIdx.x / LAM_WARP * 16 * P::PITCH);
    const slide sl = slide_of<OWNER>(lanes);
    if (w.steps > 0)
        fetch<K, OWNER>(c, w, 0, smem);
    lam_copy_close();
    for (int n = 0; n < w.steps; n++) {
        lam_copy_wait<0>();
        __syncthreads(); /* all have this step's tiles, and none reads the ones before any more */
        if (n == 0) {
            m.own.set(rows + P::MINE, lanes);
            if (OWNER == KEYS)
                m.own2.set(rows + P::MINE2, lanes);
        }
        if (n + 1 < w.steps)
            fetch<K, OWNER>(c, w, n + 1, smem);
        lam_copy_close();
        visit<K, OWNER, PARTLY>(c, w, n, m, sl, lanes);
    }
    lam_copy_wait<0>();
}

#endif
