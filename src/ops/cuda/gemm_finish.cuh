/* cuda/gemm_finish.cuh -- what gemm_sm90.cu does with a tile of 128 x 128 sums, warp by warp:
 *   forward   C = drop(relu(sum + bias)), with the masks every back-end draws (core/rng.h), here other warps
 *   backward  C = h > 0 ? scale * sum : 0, and the column sums of that
 * Accumulators are scaled and rounded as they lie, then pass through shared memory (gemm_layout.h) to
 * become octets: there one Philox block, or 16 bytes of h, decides about eight elements, and whole
 * lines go to memory.  No warp waits for another. */
#ifndef LAM_OPS_CUDA_GEMM_FINISH_CUH
#define LAM_OPS_CUDA_GEMM_FINISH_CUH

#include "ops/cuda/gemm_layout.h"
#include "ops/cuda/wgmma.cuh"

struct gemm_out {
    lam_bf16 *c;
    const lam_bf16 *h; /* backward */
    unsigned ldc;      /* of h too */
    int m, n;          /* n: a multiple of 8, so octets are in C or not */
    float scale;
    lam_cuda_mask mask; /* forward */
    float *lines;       /* backward: column sums, [n] for every warp of every block of rows */
};

/* A thread's position: the first element of its first octet of the tile, in C, and the lane. */
struct gemm_spot {
    int row, col, lane;
};

/* What decides about a lane's octets of a piece.  Forward: a mask, ones where an element is kept.
 * Backward: h, zero where there is no element. */
struct gemm_gates {
    lam_raw8<lam_bf16> of[GEMM_OCTETS];
};

/* Is octet x of a piece in C, and where?  Rows of 32 bits times a distance of 32: one multiplication an
 * access, so that nobody keeps sixteen addresses in registers (with 64 bits eleven of them spilled). */
static __device__ __forceinline__ bool gemm_in(const gemm_out &f, const gemm_spot &s, int piece,
                                               int x)
{
    return s.row + gemm_down(piece, x) < f.m && s.col + gemm_right(piece) < f.n;
}

static __device__ __forceinline__ size_t gemm_index(const gemm_out &f, const gemm_spot &s,
                                                    int piece, int x)
{
    return (size_t)((unsigned)s.row + (unsigned)gemm_down(piece, x)) * f.ldc +
           (size_t)(s.col + gemm_right(piece));
}

/* The word of a lane's piece (gemm_layout.h).  Four Philox blocks side by side: one after the other they would wait for
 * themselves. */
static __device__ __forceinline__ uint32_t gemm_draw(const gemm_out &f, uint32_t step,
                                                     const gemm_spot &s, int piece)
{
    uint32_t word = 0;
#pragma unroll
    for (int x = 0; x < GEMM_OCTETS; x++) {
        const uint64_t above = (uint64_t)(s.row + gemm_down(piece, x));
        const uint64_t left = (uint64_t)((s.col + gemm_right(piece)) / 8);
        const uint4 bits = lam_mask_bits(f.mask, step, above * (uint64_t)(f.n / 8) + left);
        const uint32_t pairs[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
            word |= lam_mask_keep2(f.mask, pairs[i]) >> (4 * x + i);
    }
    return word;
}

static __device__ __forceinline__ gemm_gates gemm_masks(uint32_t word)
{
    gemm_gates g;
#pragma unroll
    for (int x = 0; x < GEMM_OCTETS; x++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            (&g.of[x].v[0].x)[i] = lam_spread(word << (4 * x + i));
    return g;
}

static __device__ __forceinline__ gemm_gates gemm_fetch(const gemm_out &f, const gemm_spot &s,
                                                        int piece)
{
    gemm_gates g;
#pragma unroll
    for (int x = 0; x < GEMM_OCTETS; x++)
        g.of[x] = lam_fetch8(f.h + gemm_index(f, s, piece, x), gemm_in(f, s, piece, x));
    return g;
}

/* Before the product: has the warp's 64 lines of h brought to L2, where gemm_fetch will find them.  Of the
 * eight lanes that share their rows each fetches another one, left and right. */
static __device__ __forceinline__ void gemm_announce(const gemm_out &f, const gemm_spot &s)
{
    const int x = s.lane % GEMM_OCTETS;
    for (int piece = s.lane / GEMM_OCTETS % 2; piece < GEMM_PIECES; piece += 2)
        if (gemm_in(f, s, piece, x))
            lam_prefetch(f.h + gemm_index(f, s, piece, x));
}

/* A warp's piece into its part of shared memory.  ReLU rides in the rounding. */
template <bool BACK>
static __device__ __forceinline__ void gemm_put(uint32_t smem, const float (*acc)[4],
                                                const float2 (&bias)[8], float scale, int lane)
{
#pragma unroll
    for (int kk = 0; kk < 4; kk++) {
        uint32_t r[4];
#pragma unroll
        for (int x = 0; x < 4; x++) {
            const float *d = acc[2 * kk + x / 2] + x % 2 * 2;
            const float2 b = bias[2 * kk + x / 2];
            r[x] = BACK ? lam_pack(d[0] * scale, d[1] * scale)
                        : lam_pack_relu(fmaf(d[0], scale, b.x), fmaf(d[1], scale, b.y));
        }
        lam_store4(smem + gemm_store_at(lane, kk), r);
    }
}

/* Two elements of C: those under the mask, or with h > 0 (false for a NaN). */
template <bool BACK>
static __device__ __forceinline__ uint32_t gemm_pass(uint32_t c, uint32_t gate)
{
    if (BACK)
        gate = __hgt2_mask(*(const __nv_bfloat162 *)&gate, __float2bfloat162_rn(0.0f));
    return c & gate;
}

/* A piece from shared memory to C. */
template <bool BACK>
static __device__ __forceinline__ void gemm_write(const gemm_out &f, const unsigned char *smem,
                                                  const gemm_gates &g, const gemm_spot &s,
                                                  int piece, lam_f8 &sum)
{
    lam_raw8<lam_bf16> c[GEMM_OCTETS];
#pragma unroll
    for (int x = 0; x < GEMM_OCTETS; x++)
        c[x].v[0] = *(const uint4 *)(smem + gemm_load_at(s.lane, x));
#pragma unroll
    for (int x = 0; x < GEMM_OCTETS; x++) {
        uint32_t *pair = &c[x].v[0].x;
        const uint32_t *gate = &g.of[x].v[0].x;
#pragma unroll
        for (int i = 0; i < 4; i++)
            pair[i] = gemm_pass<BACK>(pair[i], gate[i]);
        const lam_f8 term = lam_unpack8(c[x]);
#pragma unroll
        for (int i = 0; BACK && i < 8; i++)
            sum.v[i] += term.v[i];
    }
#pragma unroll
    for (int x = 0; x < GEMM_OCTETS; x++)
        if (gemm_in(f, s, piece, x))
            *(uint4 *)(f.c + gemm_index(f, s, piece, x)) = c[x].v[0];
}

/* Finishes a tile.  smem: the warp's own part; bias: [128] times scale, in shared memory; masks: words of this
 * lane's pieces, where there is dropout; sums: of the columns of this lane's octets, either side. */
template <bool BACK>
static __device__ __forceinline__ void
gemm_finish(const gemm_out &f, const float (&acc)[2][16][4], unsigned char *smem, const float *bias,
            const gemm_spot &s, const uint4 &masks, lam_f8 (&sums)[2])
{
    const uint32_t words[GEMM_PIECES] = {masks.x, masks.y, masks.z, masks.w};
    gemm_gates g, next; /* h is asked for a piece ahead of its use */
    float2 b[8] = {};
    memset(&g, 0xff, sizeof g);
    if (BACK)
        next = gemm_fetch(f, s, 0);
#pragma unroll
    for (int piece = 0; piece < GEMM_PIECES; piece++) {
        const int side = gemm_side(piece), half = gemm_half(piece);
        if (BACK) {
            g = next;
            if (piece + 1 < GEMM_PIECES)
                next = gemm_fetch(f, s, piece + 1);
        } else if (f.mask.threshold != 0)
            g = gemm_masks(words[piece]);
#pragma unroll
        for (int n = 0; n < 8 && !BACK && half == 0; n++)
            b[n] = *(const float2 *)(bias + 64 * side + 8 * n + 2 * (s.lane % 4));
        gemm_put<BACK>(lam_address(smem), acc[half] + 8 * side, b, f.scale, s.lane);
        __syncwarp();
        gemm_write<BACK>(f, smem, g, s, piece, sums[side]);
        __syncwarp(); /* smem is free for the next piece */
    }
}

/* The sums of all tiles, over the four lanes that share columns, into this warp's line. */
static __device__ __forceinline__ void gemm_put_sums(float *line, lam_f8 (&sums)[2], int col,
                                                     int end, int lane)
{
#pragma unroll
    for (int side = 0; side < 2; side++) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            sums[side].v[i] += __shfl_xor_sync(0xffffffffu, sums[side].v[i], 8);
            sums[side].v[i] += __shfl_xor_sync(0xffffffffu, sums[side].v[i], 16);
        }
        const int at = col + 64 * side + 8 * lane;
        if (lane < 8 && at < end)
            lam_store8(line + at, sums[side]);
    }
}

#endif
