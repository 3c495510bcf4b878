/* cuda/gemm_layout.h -- where the numbers of a tile of gemm_sm90.cu lie: index arithmetic alone, in
 * plain C, so that a test without a GPU can follow every element (gemm_layout_test.c).
 *
 * A tile has 128 x 128 numbers.  Products leave them as wgmma does: warp w of the warpgroup holds rows
 * 16 w .. 16 w + 15 of either half of 64 rows.  It passes them on in four pieces of 16 rows and 64
 * columns through a part of shared memory of its own, rows of 128 bytes, chunk x of row y at position
 * x ^ (y % 8).  In go accumulators, four 8 x 8 matrices at a time (stmatrix); out come octets, eight
 * neighbours of a row: 16 bytes, one Philox block, and eight lanes cover a line of 128 bytes. */
#ifndef LAM_OPS_CUDA_GEMM_LAYOUT_H
#define LAM_OPS_CUDA_GEMM_LAYOUT_H

#ifdef __CUDACC__
#define GEMM_BOTH static __host__ __device__ __forceinline__
#else
#define GEMM_BOTH static inline
#endif

enum {
    GEMM_TILE = 128, /* rows and columns */
    GEMM_PIECES = 4, /* of a warp: two sides of 64 columns, two halves of the rows */
    GEMM_OCTETS = 4, /* of a lane in a piece */
    GEMM_PIECE_BYTES = 16 * 64 * 2,
    GEMM_STAGES = 5 /* of the pipeline */
};

GEMM_BOTH int gemm_side(int piece)
{
    return piece / 2;
}

GEMM_BOTH int gemm_half(int piece)
{
    return piece % 2;
}

/* Where in it the row goes that lane `lane` names for the matrices of columns 16 kk .. 16 kk + 15:
 * rows 0-7 and 8-15 of the first eight columns, then of the other eight. */
GEMM_BOTH unsigned gemm_store_at(int lane, int kk)
{
    const int row = lane % 16, chunk = 2 * kk + lane / 16;
    return (unsigned)(128 * row + 16 * (chunk ^ row % 8));
}

/* Octets.  A lane's first one begins at this element of the tile .. */
GEMM_BOTH int gemm_lane_row(int warp, int lane)
{
    return 16 * warp + lane / 8;
}

GEMM_BOTH int gemm_lane_col(int lane)
{
    return 8 * (lane % 8);
}

/* .. octet x of a piece so many rows and columns further on, the same for all lanes .. */
GEMM_BOTH int gemm_down(int piece, int x)
{
    return 64 * gemm_half(piece) + 4 * x;
}

GEMM_BOTH int gemm_right(int piece)
{
    return 64 * gemm_side(piece);
}

/* .. and in shared memory it lies here. */
GEMM_BOTH unsigned gemm_load_at(int lane, int x)
{
    const int row = 4 * x + lane / 8, chunk = lane % 8;
    return (unsigned)(128 * row + 16 * (chunk ^ row % 8));
}

/* Dropout: word `word` of a tile holds the masks of a lane's piece, in octet x those of elements 2 i and 2 i + 1 in
 * bits 15 - 4 x - i and 31 - 4 x - i; the words of a lane's pieces are neighbours. */
GEMM_BOTH int gemm_mask_warp(int word)
{
    return word / (32 * GEMM_PIECES);
}

GEMM_BOTH int gemm_mask_lane(int word)
{
    return word / GEMM_PIECES % 32;
}

GEMM_BOTH int gemm_mask_piece(int word)
{
    return word % GEMM_PIECES;
}

/* The pipeline: use u of a stage, counted over all steps of all tiles of a block, is this stage in
 * this phase of its barriers. */
GEMM_BOTH int gemm_stage(int use)
{
    return use % GEMM_STAGES;
}

GEMM_BOTH unsigned gemm_phase(int use)
{
    return (unsigned)(use / GEMM_STAGES) & 1;
}

/* Which phase of its turn the group of tile `tile` (0, 1, .. of the block; group tile % 2) waits for:
 * group 1 the one its partner ends in the same round, group 0 that of the round before; before the
 * first round that is the phase which a new barrier has behind it. */
GEMM_BOTH unsigned gemm_turn_phase(int tile)
{
    return (unsigned)(tile / 2 + tile % 2 + 1) & 1;
}

#endif
