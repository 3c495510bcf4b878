/* cuda/cuda_int.cuh -- what the files of the cuda back-end share: the device, its scratch, the names
 * of the ops, and the few device functions every kernel needs.
 *
 * ACT is bf16, or float when the device was opened with full_prec; kernels are templates over it and
 * compute in float.  WIDE is float.  Buffers are padded to LAM_CUDA_PAD elements, so that rows begin
 * on 16-byte borders and tensor cores see whole tiles.
 *
 * All work goes to one stream; no operation waits for the device, allocates, or uses float atomics:
 * partial sums have a fixed order, so one seed gives one result.  A failure is remembered with the
 * name of the operation (the first one wins) and reported by sync() or download().  Nothing outside
 * ops/cuda includes this. */
#ifndef LAM_OPS_CUDA_CUDA_INT_CUH
#define LAM_OPS_CUDA_CUDA_INT_CUH

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

extern "C" {
#include "core/rng.h"
#include "ops/cuda/limits.h"
#include "ops/ops.h"
}

typedef __nv_bfloat16 lam_bf16;

enum { LAM_WARP = 32, LAM_CUDA_PAD = 16, LAM_PHILOX_ROUNDS = 10, LAM_CUDA_TICKETS = 1024 };

/* ---- host ------------------------------------------------------------------------------------ */

struct lam_cuda_blas;  /* cuda/blas.cuh: cuBLASLt and the algorithms found so far */
struct lam_cuda_stage; /* cuda/table.cu: pinned memory for uploads */

struct lam_cuda_dev {
    lam_dev base;
    int bf16;       /* ACT is bf16, else float */
    int sms;        /* multiprocessors of the card */
    int capability; /* ten times the compute capability: 80, 90, ... */
    cudaStream_t stream;

    void *scratch; /* contents valid within one operation only; owned */
    size_t scratch_bytes;
    unsigned
        *tickets; /* [LAM_CUDA_TICKETS], zero between operations: which block is the last; owned */

    /* Recordings (repeat.cu). */
    int repeats;       /* wanted: LAMEMO_GRAPHS=0 in the environment turns them off */
    cudaStream_t side; /* where uploads go while the stream is being recorded */
    int recording;
    unsigned moved; /* times that scratch moved: recordings hold its address */

    size_t free_at_open, least_free; /* bytes of the card */

    lam_cuda_blas *blas;   /* owned */
    lam_cuda_stage *stage; /* owned */

    int failed; /* sticky: set with the text below by the first failure */
    char failure[160];
};

static inline lam_cuda_dev *lam_cuda(lam_dev *dev)
{
    return (lam_cuda_dev *)dev;
}

/* The scratch of the running operation, which reserve() promised to be large enough; 256-aligned. */
static inline void *lam_cuda_scratch(const lam_cuda_dev *dev, size_t bytes)
{
    assert(bytes <= dev->scratch_bytes);
    (void)bytes;
    return dev->scratch;
}

/* Remembers the failure unless there was one before.  What the runtime keeps of it is cleared, so that
 * nobody meets it again at another launch, or on the next device. */
void lam_cuda_note(lam_cuda_dev *dev, const char *op, cudaError_t error);
void lam_cuda_note_text(lam_cuda_dev *dev, const char *op, const char *text);

/* To be called after every launch: picks up its error, if any. */
static inline void lam_cuda_check_launch(lam_cuda_dev *dev, const char *op)
{
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        lam_cuda_note(dev, op, error);
}

/* Launches a kernel that may want more than 48 KB of shared memory. */
template <typename... P, typename... A>
static void lam_cuda_launch(lam_cuda_dev *dev, const char *op, void (*kernel)(P...), dim3 grid,
                            int threads, size_t shared, A... args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = shared;
    config.stream = dev->stream;
    cudaError_t error = cudaSuccess;
    if (shared > 48 * 1024)
        error = cudaFuncSetAttribute((const void *)kernel,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (error == cudaSuccess)
        error = cudaLaunchKernelEx(&config, kernel, args...);
    if (error != cudaSuccess)
        lam_cuda_note(dev, op, error);
}

static inline __host__ __device__ int lam_cuda_ceil(int n, int step)
{
    return (n + step - 1) / step;
}

/* A launch over `cols` by `rows` items of `blocks` blocks: x walks the columns, one item a thread; y
 * walks the rows, each thread taking every gridDim.y * blockDim.y-th; z is the block. */
struct lam_cuda_grid {
    dim3 grid, block;
};
lam_cuda_grid lam_cuda_grid_of(const lam_cuda_dev *dev, size_t cols, int rows, int blocks);

/* Bytes of scratch each family needs for the largest shapes; reserve() takes the maximum. */
size_t lam_cuda_attn_scratch(const lam_work *largest);
size_t lam_cuda_rowwise_scratch(const lam_cuda_dev *dev, const lam_work *largest);
size_t lam_cuda_norm_scratch(const lam_cuda_dev *dev, const lam_work *largest);
size_t lam_cuda_vocab_scratch(const lam_work *largest);
size_t lam_cuda_optim_scratch(void);
size_t lam_cuda_density_scratch(const lam_work *largest);
size_t lam_cuda_gemm_scratch(const lam_cuda_dev *dev, const lam_work *largest);
size_t lam_cuda_next_scratch(void);

/* A product of a few rows (decoding), where that is faster than cuBLASLt; false: not done. */
bool lam_cuda_gemv(lam_cuda_dev *dev, const lam_gemm *a);

/* A product with its epilogue fused, on Hopper (gemm_sm90.cu); false: not done. */
bool lam_cuda_gemm_sm90(lam_cuda_dev *dev, const lam_gemm *a);

/* The table whose operations do nothing, but for uploads: what runs while a recording is played. */
const lam_ops *lam_cuda_quiet(void);
void lam_cuda_repeat(lam_dev *dev, lam_tape **tape, uint64_t key, void (*work)(void *), void *arg);
void lam_cuda_forget(lam_dev *dev, lam_tape *tape);

/* The second half of column sums: out[q][c] += the sum over i < n of lines[i * step + q * apart + c],
 * in order; an out that is NULL is left out. */
enum { LAM_CUDA_SUMS = 3 };
struct lam_cuda_sums {
    float *out[LAM_CUDA_SUMS];
    const float *lines;
    size_t step, apart;
    int n, width;
};
void lam_cuda_fold(lam_cuda_dev *dev, const char *op, const lam_cuda_sums *sums);

/* Copies `blocks` blocks of `rows` rows of `width` bytes; row r of block b lies at b * step + r * ld,
 * in bytes.  A NULL source means zeros.  Used by copy() and to pack the operands of products. */
struct lam_cuda_rows {
    const void *src;
    void *dst;
    size_t src_step, src_ld, dst_step, dst_ld;
    int blocks;
    size_t rows, width;
};
void lam_cuda_copy_rows(lam_cuda_dev *dev, const char *op, const lam_cuda_rows *c);

extern "C" {
extern const lam_ops lam_ops_cuda;

void lam_cuda_gemm(lam_dev *dev, const lam_gemm *a);
void lam_cuda_norm_fwd(lam_dev *dev, const lam_norm *a);
void lam_cuda_norm_bwd(lam_dev *dev, const lam_norm *a);
void lam_cuda_relu_bwd(lam_dev *dev, const lam_relu_bwd *a);
void lam_cuda_dropout(lam_dev *dev, const lam_dropout *a);
void lam_cuda_copy(lam_dev *dev, const lam_copy *a);
void lam_cuda_colsum(lam_dev *dev, const lam_colsum *a);
void lam_cuda_attn_fwd(lam_dev *dev, const lam_attn *a);
void lam_cuda_attn_bwd(lam_dev *dev, const lam_attn *a);
void lam_cuda_profile(lam_dev *dev, const lam_profile *a);
void lam_cuda_attn_next(lam_dev *dev, const lam_attn_next *a);
void lam_cuda_place(lam_dev *dev, const lam_place *a);
void lam_cuda_interp_fwd(lam_dev *dev, const lam_interp *a);
void lam_cuda_interp_bwd(lam_dev *dev, const lam_interp *a);
void lam_cuda_pool(lam_dev *dev, const lam_pool *a);
void lam_cuda_distance(lam_dev *dev, const lam_distance *a);
void lam_cuda_gate_fwd(lam_dev *dev, const lam_gate *a);
void lam_cuda_gate_bwd(lam_dev *dev, const lam_gate *a);
void lam_cuda_density_fwd(lam_dev *dev, const lam_density *a);
void lam_cuda_density_bwd(lam_dev *dev, const lam_density *a);
void lam_cuda_sticky(lam_dev *dev, const lam_sticky_samples *a);
void lam_cuda_embed_fwd(lam_dev *dev, const lam_embed *a);
void lam_cuda_embed_bwd(lam_dev *dev, const lam_embed *a);
void lam_cuda_xent(lam_dev *dev, const lam_xent *a);
void lam_cuda_gather(lam_dev *dev, const lam_pick *a);
void lam_cuda_scatter(lam_dev *dev, const lam_pick *a);
void lam_cuda_gnorm(lam_dev *dev, const lam_gnorm *a);
void lam_cuda_update(lam_dev *dev, const lam_update *a);
void lam_cuda_ortho_begin(lam_dev *dev, const lam_ortho_begin *a);
void lam_cuda_ortho_mix(lam_dev *dev, const lam_ortho_mix *a);
void lam_cuda_tally(lam_dev *dev, const lam_tally *a);
}

/* ---- elements -------------------------------------------------------------------------------- */

static __device__ __forceinline__ float lam_float(float x)
{
    return x;
}

static __device__ __forceinline__ float lam_float(lam_bf16 x)
{
    return __bfloat162float(x);
}

template <typename T>
static __device__ __forceinline__ T lam_act(float x); /* rounds to nearest even */

template <>
__device__ __forceinline__ float lam_act<float>(float x)
{
    return x;
}

template <>
__device__ __forceinline__ lam_bf16 lam_act<lam_bf16>(float x)
{
    return __float2bfloat16_rn(x);
}

/* Eight neighbours at a time: one 16-byte access of bf16, two of float, one Philox block.  The
 * address must be a multiple of 16 bytes. */
struct lam_f8 {
    float v[8];
};

static __device__ __forceinline__ lam_f8 lam_load8(const float *p)
{
    const float4 a = ((const float4 *)p)[0], b = ((const float4 *)p)[1];
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

static __device__ __forceinline__ lam_f8 lam_load8(const lam_bf16 *p)
{
    const uint4 raw = *(const uint4 *)p; /* a bf16 is the upper half of a float */
    const uint32_t w[4] = {raw.x, raw.y, raw.z, raw.w};
    lam_f8 out;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        out.v[2 * i] = __uint_as_float(w[i] << 16);
        out.v[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
    }
    return out;
}

static __device__ __forceinline__ void lam_store8(float *p, const lam_f8 &x)
{
    ((float4 *)p)[0] = make_float4(x.v[0], x.v[1], x.v[2], x.v[3]);
    ((float4 *)p)[1] = make_float4(x.v[4], x.v[5], x.v[6], x.v[7]);
}

static __device__ __forceinline__ void lam_store8(lam_bf16 *p, const lam_f8 &x)
{
    uint32_t w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(x.v[2 * i], x.v[2 * i + 1]);
        w[i] = *(const uint32_t *)&pair;
    }
    *(uint4 *)p = make_uint4(w[0], w[1], w[2], w[3]);
}

/* Eight neighbours as they lie in memory: fetched early, unpacked late.  Unpacking waits for the data,
 * so whoever wants several fetches in flight keeps them raw.  What is not `in` reads as zero. */
template <typename T>
struct lam_raw8 {
    uint4 v[sizeof(T) / 2];
};

template <typename T>
static __device__ __forceinline__ lam_raw8<T> lam_fetch8(const T *p, bool in)
{
    lam_raw8<T> x;
#pragma unroll
    for (int i = 0; i < (int)sizeof(T) / 2; i++)
        x.v[i] = in ? ((const uint4 *)p)[i] : make_uint4(0, 0, 0, 0);
    return x;
}

template <typename T>
static __device__ __forceinline__ lam_f8 lam_unpack8(const lam_raw8<T> &x)
{
    return lam_load8((const T *)&x);
}

/* The same for the last n <= 8 of a row: what lies beyond reads as zero and is not written.
 * `aligned` says whether the rows begin on 16-byte borders. */
template <typename T>
static __device__ __forceinline__ lam_f8 lam_load8_n(const T *p, int n, bool aligned)
{
    if (n >= 8 && aligned)
        return lam_load8(p);
    lam_f8 out;
#pragma unroll
    for (int i = 0; i < 8; i++)
        out.v[i] = i < n ? lam_float(p[i]) : 0.0f;
    return out;
}

template <typename T>
static __device__ __forceinline__ void lam_store8_n(T *p, const lam_f8 &x, int n, bool aligned)
{
    if (n >= 8 && aligned) {
        lam_store8(p, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < n)
            p[i] = lam_act<T>(x.v[i]);
}

/* ---- sums over a warp and a block ------------------------------------------------------------ */

/* Every lane receives the result; all 32 lanes must take part. */
static __device__ __forceinline__ float lam_warp_sum(float x)
{
#pragma unroll
    for (int step = LAM_WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

static __device__ __forceinline__ double lam_warp_sum(double x)
{
#pragma unroll
    for (int step = LAM_WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

static __device__ __forceinline__ float lam_warp_max(float x)
{
#pragma unroll
    for (int step = LAM_WARP / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* Sum over a one-dimensional block of whole warps; every thread receives it.  `room` is shared
 * memory for 32 elements; it may be used again after the next barrier. */
template <typename T>
static __device__ __forceinline__ T lam_block_sum(T x, T *room)
{
    const int lane = (int)threadIdx.x % LAM_WARP, warp = (int)threadIdx.x / LAM_WARP;
    const int warps = (int)blockDim.x / LAM_WARP;
    x = lam_warp_sum(x);
    if (lane == 0)
        room[warp] = x;
    __syncthreads();
    return lam_warp_sum(lane < warps ? room[lane] : (T)0);
}

/* ---- dropout --------------------------------------------------------------------------------- */

/* One use of dropout as kernels see it; core/rng.h says which bits.  As a kernel argument it lies in
 * constant memory, from where Philox takes its round keys at no cost. */
struct lam_cuda_mask {
    uint32_t key[2 * LAM_PHILOX_ROUNDS];
    uint32_t step, site;
    const uint32_t *more; /* added to step, or NULL */
    uint32_t threshold;   /* 0: off */
    float scale;          /* of what is kept */
};

static inline lam_cuda_mask lam_cuda_mask_of(const lam_drop *d)
{
    lam_cuda_mask m;
    for (uint32_t i = 0; i < LAM_PHILOX_ROUNDS; i++) {
        m.key[2 * i] = (uint32_t)d->seed + i * 0x9E3779B9u;
        m.key[2 * i + 1] = (uint32_t)(d->seed >> 32) + i * 0xBB67AE85u;
    }
    m.step = d->step;
    m.more = (const uint32_t *)d->more;
    m.site = d->site;
    m.threshold = d->p == 0.0 ? 0 : lam_drop_threshold(d->p);
    m.scale = d->p == 0.0 ? 1.0f : (float)lam_drop_scale(d->p);
    return m;
}

/* The step a mask is drawn for: a load, where it counts in memory. */
static __device__ __forceinline__ uint32_t lam_mask_step(const lam_cuda_mask &m)
{
    return m.step + (m.more ? __ldg(m.more) : 0);
}

/* Philox4x32-10: the 16 random bits each of the eight elements of block `block` (element index / 8):
 * element i has word i / 2, half i % 2. */
static __device__ __forceinline__ uint4 lam_mask_bits(const lam_cuda_mask &m, uint32_t step,
                                                      uint64_t block)
{
    uint32_t x0 = (uint32_t)block, x1 = (uint32_t)(block >> 32), x2 = m.site, x3 = step;
#pragma unroll
    for (int i = 0; i < LAM_PHILOX_ROUNDS; i++) { /* as in lam_philox() of core/rng.c */
        const uint64_t p0 = (uint64_t)0xD2511F53u * x0, p1 = (uint64_t)0xCD9E8D57u * x2;
        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ m.key[2 * i];
        x1 = (uint32_t)p1;
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ m.key[2 * i + 1];
        x3 = (uint32_t)p0;
    }
    return make_uint4(x0, x1, x2, x3);
}

/* 1 where element i (0..7, a constant after unrolling) of the block is kept. */
static __device__ __forceinline__ bool lam_mask_keep(const lam_cuda_mask &m, const uint4 &bits,
                                                     int i)
{
    const uint32_t w = i < 2 ? bits.x : i < 4 ? bits.y : i < 6 ? bits.z : bits.w;
    return (i % 2 ? w : w << 16) >= m.threshold << 16; /* the lower half cannot decide */
}

/* x = drop(x) for the eight elements of one block. */
static __device__ __forceinline__ void lam_mask8(lam_f8 &x, const lam_cuda_mask &m, uint64_t block)
{
    if (m.threshold == 0)
        return;
    const uint4 bits = lam_mask_bits(m, lam_mask_step(m), block);
#pragma unroll
    for (int i = 0; i < 8; i++)
        x.v[i] = lam_mask_keep(m, bits, i) ? x.v[i] * m.scale : 0.0f;
}

#endif
