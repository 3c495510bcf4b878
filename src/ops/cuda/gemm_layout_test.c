/* gemm_layout_test.c -- the index arithmetic of cuda/gemm_sm90.cu, followed on the host: does every element
 * of a tile arrive once, where it belongs, in the hands of its own Philox block?  And do the phases that
 * the pipeline waits for tell one use of a stage from the next? */
#include "ops/cuda/gemm_layout.h"

#include "core/rng.h"

#include "support/suite.h"

#include <string.h>

enum { LANES = 32, WARPS = 4, ROOM = GEMM_PIECE_BYTES / 2 };

/* Row and column of accumulator d[n][x] of half `half`: PTX ISA, the result of wgmma m64nNk16. */
static int acc_row(int half, int warp, int lane, int x)
{
    return 64 * half + 16 * warp + lane / 4 + x / 2 * 8;
}

static int acc_col(int lane, int n, int x)
{
    return 8 * n + lane % 4 * 2 + x % 2;
}

/* stmatrix x4 of a warp: lane l names the row l % 8 of matrix l / 8; lane l holds in register i the
 * elements 2 (l % 4) and the next of row l / 4 of matrix i. */
static void store4(int smem[ROOM], const unsigned at[LANES], int regs[LANES][4][2])
{
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 4; i++)
            for (int x = 0; x < 2; x++)
                smem[at[8 * i + lane / 4] / 2 + (unsigned)(lane % 4 * 2 + x)] = regs[lane][i][x];
}

/* A warp's piece into its part of shared memory, elements named by row * 128 + column; as gemm_put does it. */
static void put(int smem[ROOM], int warp, int piece)
{
    for (int kk = 0; kk < 4; kk++) {
        unsigned at[LANES];
        int regs[LANES][4][2];
        for (int lane = 0; lane < LANES; lane++) {
            at[lane] = gemm_store_at(lane, kk);
            ck_assert_uint_eq(at[lane] % 16, 0);
            for (int x = 0; x < 8; x++) {
                const int n = 8 * gemm_side(piece) + 2 * kk + x / 4, d = x / 2 % 2 * 2 + x % 2;
                regs[lane][x / 2][x % 2] =
                    acc_row(gemm_half(piece), warp, lane, d) * GEMM_TILE + acc_col(lane, n, d);
            }
        }
        store4(smem, at, regs);
    }
}

START_TEST(every_element_of_a_tile_reaches_its_octet)
{
    static int seen[GEMM_TILE * GEMM_TILE];
    memset(seen, 0, sizeof seen);
    for (int warp = 0; warp < WARPS; warp++)
        for (int piece = 0; piece < GEMM_PIECES; piece++) {
            int smem[ROOM];
            memset(smem, 0xff, sizeof smem);
            put(smem, warp, piece);
            for (int lane = 0; lane < LANES; lane++)
                for (int x = 0; x < GEMM_OCTETS; x++) {
                    const int row = gemm_lane_row(warp, lane) + gemm_down(piece, x);
                    const int col = gemm_lane_col(lane) + gemm_right(piece);
                    ck_assert_int_eq(col % 8, 0); /* an octet is one Philox block */
                    for (int i = 0; i < 8; i++) {
                        const int want = row * GEMM_TILE + col + i;
                        ck_assert_int_eq(smem[gemm_load_at(lane, x) / 2 + (unsigned)i], want);
                        seen[want]++;
                    }
                }
        }
    for (int i = 0; i < GEMM_TILE * GEMM_TILE; i++)
        ck_assert_int_eq(seen[i], 1);
}
END_TEST

START_TEST(every_octet_of_a_tile_has_its_masks_in_one_word)
{
    static int seen[GEMM_TILE][GEMM_TILE / 8];
    memset(seen, 0, sizeof seen);
    for (int word = 0; word < WARPS * LANES * GEMM_PIECES; word++) {
        const int warp = gemm_mask_warp(word), lane = gemm_mask_lane(word);
        const int piece = gemm_mask_piece(word);
        ck_assert_int_eq((warp * LANES + lane) * GEMM_PIECES + piece, word);
        for (int x = 0; x < GEMM_OCTETS; x++)
            seen[gemm_lane_row(warp, lane) + gemm_down(piece, x)]
                [(gemm_lane_col(lane) + gemm_right(piece)) / 8]++;
    }
    for (int row = 0; row < GEMM_TILE; row++)
        for (int octet = 0; octet < GEMM_TILE / 8; octet++)
            ck_assert_int_eq(seen[row][octet], 1);
}
END_TEST

/* Eight lanes at a time move 16 bytes each: all 32 banks of 4 bytes, each once. */
START_TEST(no_two_lanes_of_eight_meet_in_a_bank)
{
    for (int x = 0; x < 4; x++)
        for (int first = 0; first < LANES; first += 8) {
            unsigned in = 0, out = 0;
            for (int lane = first; lane < first + 8; lane++) {
                in |= 1u << gemm_store_at(lane, x) / 16 % 8;
                out |= 1u << gemm_load_at(lane, x) / 16 % 8;
            }
            ck_assert_uint_eq(in, 0xff);
            ck_assert_uint_eq(out, 0xff);
        }
}
END_TEST

/* Of the eight lanes that share rows every one announces another: gemm_announce. */
START_TEST(all_lines_of_h_are_announced)
{
    int seen[GEMM_TILE][2] = {{0}};
    for (int warp = 0; warp < WARPS; warp++)
        for (int lane = 0; lane < LANES; lane++)
            for (int piece = lane / GEMM_OCTETS % 2; piece < GEMM_PIECES; piece += 2)
                seen[gemm_lane_row(warp, lane) + gemm_down(piece, lane % GEMM_OCTETS)]
                    [gemm_right(piece) / 64]++;
    for (int row = 0; row < GEMM_TILE; row++)
        ck_assert_int_eq(seen[row][0] * 10 + seen[row][1], 11);
}
END_TEST

/* One barrier: how many phases are over.  A wait for a parity passes when the phase in progress has the
 * other one, which is what the hardware does. */
static int passes(int over, unsigned phase)
{
    return ((unsigned)over & 1) != phase;
}

enum { MOST_TILES = 9 };

/* The pipeline of a block as three walkers, any of which may go on as long as its barrier lets it: all
 * the orders that a random choice finds.  A stage remembers the use that fills it. */
typedef struct pipeline {
    int tiles, steps;
    int full[GEMM_STAGES], empty[GEMM_STAGES], turn[2]; /* phases over */
    int holds[GEMM_STAGES];                             /* which use; -1: given back */
    int asked;                                          /* uses the copier asked for */
    struct {
        int tile, step, in_tile;
    } group[2];
} pipeline;

/* Lets the copier take one step if it can; a copy may also arrive later, which is the same as asking
 * later for all that others can see. */
static int copier_moves(pipeline *p)
{
    const int use = p->asked, stage = gemm_stage(use);
    if (use == p->tiles * p->steps)
        return 0;
    if (use >= GEMM_STAGES && !passes(p->empty[stage], gemm_phase(use - GEMM_STAGES)))
        return 0;
    ck_assert_int_eq(p->holds[stage], -1); /* nobody reads what is overwritten */
    p->holds[stage] = use;
    p->full[stage]++;
    p->asked++;
    return 1;
}

/* A group enters its tile, reads a step, gives the one before back, or ends the tile. */
static int group_moves(pipeline *p, int g)
{
    const int tile = p->group[g].tile, use = tile * p->steps + p->group[g].step;
    if (tile >= p->tiles)
        return 0;
    if (!p->group[g].in_tile) {
        if (!passes(p->turn[g], gemm_turn_phase(tile)))
            return 0;
        return p->group[g].in_tile = 1;
    }
    if (p->group[g].step < p->steps) {
        if (!passes(p->full[gemm_stage(use)], gemm_phase(use)))
            return 0;
        ck_assert_int_eq(p->holds[gemm_stage(use)], use); /* it is what was waited for */
        ck_assert_int_ge(p->asked, p->steps < use + 1 ? p->steps : use + 1); /* B's steps too */
    }
    if (p->group[g].step > 0) {
        p->holds[gemm_stage(use - 1)] = -1;
        p->empty[gemm_stage(use - 1)]++;
    }
    if (++p->group[g].step == p->steps)
        p->turn[1 - g]++;
    if (p->group[g].step > p->steps) {
        p->group[g].tile += 2;
        p->group[g].step = p->group[g].in_tile = 0;
    }
    return 1;
}

static int moves(pipeline *p, int who)
{
    return who == 2 ? copier_moves(p) : group_moves(p, who);
}

START_TEST(the_pipeline_neither_stops_nor_mixes_up_its_stages)
{
    lam_rng rng = {.key = 7, .stream = (uint64_t)_i};
    for (int again = 0; again < 2000; again++) {
        pipeline p = {.tiles = 1 + (int)lam_rng_below(&rng, MOST_TILES),
                      .steps = 1 + (int)lam_rng_below(&rng, 8)};
        memset(p.holds, 0xff, sizeof p.holds);
        p.group[1].tile = 1;
        const uint64_t slow = lam_rng_below(&rng, 4); /* one of them sleeps most of the time */
        for (int idle = 0; idle < 3;) {
            const uint64_t who = lam_rng_below(&rng, 3);
            if (who == slow && lam_rng_below(&rng, 20) != 0)
                continue;
            idle = moves(&p, (int)who) ? 0 : idle + 1;
            if (idle == 3) /* is that the end, or was it always the same one? */
                idle = moves(&p, 0) || moves(&p, 1) || moves(&p, 2) ? 0 : 3;
        }
        ck_assert_int_eq(p.asked, p.tiles * p.steps);
        ck_assert_int_ge(p.group[0].tile, p.tiles);
        ck_assert_int_ge(p.group[1].tile, p.tiles);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_test(tests, every_element_of_a_tile_reaches_its_octet);
    tcase_add_test(tests, every_octet_of_a_tile_has_its_masks_in_one_word);
    tcase_add_test(tests, no_two_lanes_of_eight_meet_in_a_bank);
    tcase_add_test(tests, all_lines_of_h_are_announced);
    tcase_add_loop_test(tests, the_pipeline_neither_stops_nor_mixes_up_its_stages, 0, 4);
    return test_run("ops/cuda/gemm_layout", tests);
}
