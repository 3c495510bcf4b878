/* cuda/mask.cuh -- dropout inside kernels: Philox, whose bits core/rng.h defines, eight elements at a
 * time. */
#ifndef LAM_OPS_CUDA_MASK_CUH
#define LAM_OPS_CUDA_MASK_CUH

extern "C" {
#include "core/rng.h"
#include "ops/types.h"
}

#include "ops/cuda/element.cuh"

enum { LAM_PHILOX_ROUNDS = 10 };

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

/* Two elements at once, those of one word: bits 15 and 31 are set where the lower and the upper one are kept. */
static __device__ __forceinline__ uint32_t lam_mask_keep2(const lam_cuda_mask &m, uint32_t word)
{
    const uint32_t top = 0x80008000u, least = m.threshold * 0x10001u;
    const uint32_t rest =
        (word | top) - (least & ~top); /* the top bits aside: set where not less */
    return ((word & ~least) | (~(word ^ least) & rest)) & top;
}

/* x = drop(x) for the eight elements of one block.  Loads the step every time, from the L1 cache; a kernel that is
 * short of instructions takes lam_mask_step() once and uses lam_mask_bits() itself, as gemm_finish.cuh does. */
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
