/* cuda_host/ops/cuda/ptx.cuh -- src/ops/cuda/ptx.cuh without a GPU: the same functions, in C++.
 *
 * Copies in the background are as late as they may be, at the wait; until then the place they go to
 * holds NaN.  Addresses count from the beginning of the block's dynamic shared memory. */
#ifndef LAM_OPS_CUDA_PTX_CUH
#define LAM_OPS_CUDA_PTX_CUH

#include "ops/cuda/cuda_int.cuh"

static inline unsigned char *lam_shared_memory(void)
{
    return emu::shared_memory();
}

static inline uint32_t lam_address(const void *p)
{
    return (uint32_t)((const unsigned char *)p - emu::shared_memory());
}

namespace emu
{
/* The lane's row and its four registers (load4); r is written. */
struct matrices {
    uint32_t r[4], row;
};
void load4(unsigned mask, void **given);
void load4_t(unsigned mask, void **given);

struct fragments {
    float d[4];
    uint32_t a[4], b[2];
};
void mma(unsigned mask, void **given);

struct fragments8 {
    int32_t d[4];
    uint32_t a[4], b[2];
};
void mma8(unsigned mask, void **given);

void copy_later(uint32_t to, const void *from, int bytes, bool valid);
void close_copies(void);
void wait_for_copies(int but);

/* This thread has waited for the kernels in front. */
void chain(void);
} // namespace emu

static inline void lam_load4(uint32_t r[4], uint32_t address)
{
    emu::matrices m = {{}, address};
    emu::gather(~0u, emu::load4, &m);
    memcpy(r, m.r, sizeof m.r);
}

static inline void lam_load4_t(uint32_t r[4], uint32_t address)
{
    emu::matrices m = {{}, address};
    emu::gather(~0u, emu::load4_t, &m);
    memcpy(r, m.r, sizeof m.r);
}

static inline void lam_mma(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    emu::fragments p = {{d[0], d[1], d[2], d[3]}, {a[0], a[1], a[2], a[3]}, {b0, b1}};
    emu::gather(~0u, emu::mma, &p);
    memcpy(d, p.d, sizeof p.d);
}

static inline void lam_mma8(int32_t d[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    emu::fragments8 p = {{d[0], d[1], d[2], d[3]}, {a[0], a[1], a[2], a[3]}, {b0, b1}};
    emu::gather(~0u, emu::mma8, &p);
    memcpy(d, p.d, sizeof p.d);
}

static inline void lam_copy16(uint32_t to, const void *from, bool valid)
{
    emu::copy_later(to, from, 16, valid);
}

static inline void lam_copy4(uint32_t to, const void *from, bool valid)
{
    emu::copy_later(to, from, 4, valid);
}

static inline void lam_copy_close(void)
{
    emu::close_copies();
}

template <int N>
static inline void lam_copy_wait(void)
{
    emu::wait_for_copies(N);
}

static inline float lam_exp2(float x)
{
    return exp2f(x);
}

static inline uint32_t lam_pack(float low, float high)
{
    return (uint32_t)__float2bfloat16_rn(high).bits << 16 | __float2bfloat16_rn(low).bits;
}

/* fmaxf() would make a NaN zero. */
static inline uint32_t lam_pack_relu(float low, float high)
{
    return lam_pack(low < 0.0f ? 0.0f : low, high < 0.0f ? 0.0f : high);
}

static inline void lam_prefetch(const void *) {}

enum lam_use { LAM_ONCE, LAM_KEPT };

template <lam_use USE = LAM_ONCE, typename T>
static inline lam_raw8<T> lam_ask8(const T *p, bool in)
{
    return lam_fetch8(p, in);
}

static inline void lam_chain(void)
{
    emu::chain();
}

/* Blocks run one after the other here, so nothing may wait for the others. */
static inline void lam_signal(unsigned *count)
{
    ++*count;
}

static inline void lam_await(const unsigned *count, unsigned target)
{
    if (*count < target)
        emu::die("a block waits for blocks that come after it");
}

static inline uint32_t lam_bytes(uint32_t x, uint32_t y, uint32_t selector)
{
    const uint64_t pair = (uint64_t)y << 32 | x;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++)
        out |= (uint32_t)(pair >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return out;
}

static inline uint32_t lam_spread(uint32_t x)
{
    return (x & 0x8000u ? 0xffffu : 0u) | (x & 0x80000000u ? 0xffff0000u : 0u);
}

template <int N>
static inline void lam_barrier(int number)
{
    emu::barrier(number, N, __FILE__, __LINE__);
}

static inline int lam_uniform(int x)
{
    return __shfl_sync(~0u, x, 0);
}

#endif
