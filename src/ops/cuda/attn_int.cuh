/* cuda/attn_int.cuh -- what the files of the attention share: the call as kernels see it.
 *
 * Three implementations stand behind the two entry points of attn.cu:
 *   attn_simt*.cu  plain loops over ACT = float or bf16, any shape and option: verification, odd cases
 *   attn_fwd.cu, attn_bwd_*.cu  tiles on tensor cores: bf16, head widths that are multiples of 16
 *   attn_sm90_*.cu              the same with the products of Hopper's warpgroups, heads up to 64
 * With e = j - shift - i, the offset of a key from its query, every mode is one interval:
 * a pair is visible iff e_lo <= e <= e_hi (and, where streams remember different numbers of rows, j is one of
 * theirs: attn_oldest), and row(i,j) = r_zero + r_sign * e (ops/attn.h). */
#ifndef LAM_OPS_CUDA_ATTN_INT_CUH
#define LAM_OPS_CUDA_ATTN_INT_CUH

#include "ops/cuda/cuda_int.cuh"

#include <type_traits>

struct attn_call {
    lam_attn a;
    int e_lo, e_hi;
    lam_cuda_mask mask;
    int e_first; /* the lowest offset r has a row for */
    int aligned; /* rows of all ACT operands begin on 16-byte borders */

    /* All in scratch; backward only, except rp. */
    lam_bf16 *rp;      /* [r_rows][H * K]  r in the order of offsets, where r_sign < 0   (sm90) */
    int q_pad;         /* queries rounded up to whole tiles: the row length of the next two */
    float *delta;      /* [B][H][q_pad]  do . o - dlse; 0 beyond the queries */
    float *lse2;       /* [B][H][q_pad]  log2(e) * lse; +infinity for a query that sees nothing */
    lam_bf16 *qu, *qv; /* [B][H][q_pad][K]  q + u, q + v; 0 beyond the queries   (sm90) */
    lam_bf16 *ds;      /* [heads][B][q_pad / 64][key_tiles][64][64]  dS of some heads   (sm90), laid
                          out as in shared memory; tiles without a visible pair are left out */
    int head, heads;   /* the first of them and how many: those that are worked on */
    int key_tiles;
    float *k_bias;            /* [B][H][keys]   u . k_j */
    float *r_bias;            /* [H][r_rows]    v . r + rbias */
    float *k_sum;             /* [B][H][keys]   sum of dS over queries   (simt) */
    float *r_sum;             /* [H][r_rows]    sum of dS over a distance (simt) */
    float *du_part, *dv_part; /* [parts][H][K] */
    float *dr_part;           /* [groups][r_rows][H * K] */
    int groups;               /* of streams, each with its own sum of dr */
};

enum {
    ATTN_Q_TILE = 64,   /* q_pad is a multiple of it */
    ATTN_OWN = 128,     /* keys or distances of a block of the backward, heads up to 64 wide */
    ATTN_OWN_WIDE = 64, /* the same for wider heads */
    ATTN_CHUNKS = 64    /* partial sums of du and dv (simt) */
};

static inline int attn_own(int K)
{
    return K <= 64 ? ATTN_OWN : ATTN_OWN_WIDE;
}

/* Groups of streams whose dr is summed apart, so that enough blocks run. */
static inline int attn_groups(int B, int H, int K, int r_rows)
{
    const int blocks = H * lam_cuda_ceil(r_rows, attn_own(K));
    const int want = lam_cuda_ceil(512, blocks);
    return want < B ? want : B;
}

/* Row `row` of stream b of a view of T, at head h. */
template <typename T>
static __device__ __forceinline__ T *attn_row(lam_view view, size_t ld, int b, int row, size_t col)
{
    return (T *)view.p + (size_t)b * view.step + (size_t)row * ld + col;
}

/* The first valid key of stream b.  PARTLY: the call may say so; otherwise nothing is compiled for it. */
template <bool PARTLY>
static __device__ __forceinline__ int attn_oldest(const attn_call &c, int b)
{
    return PARTLY && c.a.valid ? max(0, c.a.past - ((const int32_t *)c.a.valid)[b]) : 0;
}

/* ---- the pieces attn.cu puts together -------------------------------------------------------- */

/* Whichever of delta, lse2, qu, qv, k_bias and r_bias have scratch. */
void lam_cuda_attn_prepare(lam_cuda_dev *dev, const attn_call *c);

/* out[x] += the sum over p of part[p][x], p = 0 .. parts - 1, in a fixed order: du and dv. */
void lam_cuda_attn_fold(lam_cuda_dev *dev, float *out, const float *part, int parts, int width);

/* rp = r backwards. */
void lam_cuda_attn_reverse(lam_cuda_dev *dev, const attn_call *c);

/* dr = the sum of dr_part over the groups. */
void lam_cuda_attn_sum_groups(lam_cuda_dev *dev, const attn_call *c);

void lam_cuda_attn_stats_run(lam_cuda_dev *dev, const attn_call *c, const lam_attn_stats *x);

void lam_cuda_attn_simt_fwd(lam_cuda_dev *dev, const attn_call *c);
void lam_cuda_attn_simt_bwd(lam_cuda_dev *dev, const attn_call *c);

/* Calls launch(width) with the head width as a constant; false if it is not one of WIDTHS. */
template <int... WIDTHS, typename LAUNCH>
static bool attn_by_width(int K, LAUNCH launch)
{
    return ((K == WIDTHS && (launch(std::integral_constant<int, WIDTHS>()), true)) || ...);
}

/* Head widths the tiles are built for. */
template <typename LAUNCH>
static bool attn_by_tiled_width(int K, LAUNCH launch)
{
    return attn_by_width<32, 48, 64, 80, 96, 128>(K, launch);
}

void lam_cuda_attn_tile_fwd(lam_cuda_dev *dev, const attn_call *c);
void lam_cuda_attn_tile_bwd_q(lam_cuda_dev *dev, const attn_call *c);  /* dq */
void lam_cuda_attn_tile_bwd_kv(lam_cuda_dev *dev, const attn_call *c); /* dk, dvalue, du */
void lam_cuda_attn_tile_bwd_r(lam_cuda_dev *dev, const attn_call *c);  /* dr, dv */

/* Head widths the Hopper kernels are built for. */
template <typename LAUNCH>
static bool attn_by_sm90_width(int K, LAUNCH launch)
{
    return attn_by_width<32, 48, 64>(K, launch);
}

void lam_cuda_attn_sm90_fwd(lam_cuda_dev *dev, const attn_call *c);
void lam_cuda_attn_sm90_bwd(lam_cuda_dev *dev, const attn_call *c);

#endif
