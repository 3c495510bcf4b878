/* cuda/ptx.cuh -- the instructions our products on tensor cores are made of, one function each.
 *
 * Everything here is collective over a full warp.  Layouts (PTX ISA, m16n8k16): with g = lane / 4 and
 * t = lane % 4 an accumulator tile of 16 x 8 floats lies in four registers as
 *     d[0], d[1]: row g,     columns 2t, 2t + 1        d[2], d[3]: row g + 8, same columns
 * and packed to bf16 in pairs two neighbouring tiles are the left operand (16 x 16) of a further
 * product.  Addresses are those of the shared window, in bytes. */
#ifndef LAM_OPS_CUDA_PTX_CUH
#define LAM_OPS_CUDA_PTX_CUH

#include "ops/cuda/cuda_int.cuh"

/* The block's dynamic shared memory and the address of a byte in it. */
static __device__ __forceinline__ unsigned char *lam_shared_memory(void)
{
    extern __shared__ __align__(1024) unsigned char lam_shared_bytes[];
    return lam_shared_bytes;
}

static __device__ __forceinline__ uint32_t lam_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Four 8 x 8 matrices of bf16: lane l gives the address of row l % 8 of matrix l / 8, and receives of
 * matrix i in r[i] the two elements 2t, 2t + 1 of row g; with _t the matrices come transposed. */
static __device__ __forceinline__ void lam_load4(uint32_t r[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void lam_load4_t(uint32_t r[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

/* d += a b with a 16 x 16 and b 16 x 8: b0 holds rows 2t, 2t + 1 of column g, b1 rows 2t + 8, 2t + 9. */
static __device__ __forceinline__ void lam_mma(float d[4], const uint32_t a[4], uint32_t b0,
                                               uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* The same with 8-bit integers (m16n8k32): d += a b with a 16 x 32 and b 32 x 8.  Of row g a[0] holds columns 4t .. 4t + 3
 * and a[2] the same 16 further on, a[1] and a[3] likewise of row g + 8; of column g b0 and b1 hold rows in the same
 * way. */
static __device__ __forceinline__ void lam_mma8(int32_t d[4], const uint32_t a[4], uint32_t b0,
                                                uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* 16 (or 4) bytes from global to shared memory in the background; zeros when not valid. */
static __device__ __forceinline__ void lam_copy16(uint32_t to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
}

static __device__ __forceinline__ void lam_copy4(uint32_t to, const void *from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(to), "l"(from),
                 "r"(valid ? 4 : 0)
                 : "memory");
}

/* Closes a group of copies; waits for all but the newest N groups of this thread. */
static __device__ __forceinline__ void lam_copy_close(void)
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

template <int N>
static __device__ __forceinline__ void lam_copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

/* 2^x, with 2^-infinity = 0; about two units in the last place. */
static __device__ __forceinline__ float lam_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

/* Two floats rounded to bf16, `low` in the lower half. */
static __device__ __forceinline__ uint32_t lam_pack(float low, float high)
{
    uint32_t y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

/* The same after max(x, 0); a NaN stays one. */
static __device__ __forceinline__ uint32_t lam_pack_relu(float low, float high)
{
    uint32_t y;
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;\n" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

/* The line at p will be wanted soon: has it brought to the second cache. */
static __device__ __forceinline__ void lam_prefetch(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];\n" ::"l"(p));
}

/* Eight neighbours as lam_fetch8 has them, asked for here and not later: of several in a row all are under way at once, also
 * in front of lam_chain.  ONCE: past the L1 cache, which may hold what they were before; KEPT: through it, for constants
 * that are read again. */
enum lam_use { LAM_ONCE, LAM_KEPT };

#define LAM_ASK(how)                                                                               \
    asm volatile("{\n"                                                                             \
                 ".reg .pred there;\n"                                                             \
                 "setp.ne.b32 there, %5, 0;\n"                                                     \
                 "mov.b32 %0, 0;\n"                                                                \
                 "mov.b32 %1, 0;\n"                                                                \
                 "mov.b32 %2, 0;\n"                                                                \
                 "mov.b32 %3, 0;\n"                                                                \
                 "@there ld.global." how ".v4.b32 {%0, %1, %2, %3}, [%4];\n"                       \
                 "}\n"                                                                             \
                 : "=&r"(x.v[i].x), "=&r"(x.v[i].y), "=&r"(x.v[i].z), "=&r"(x.v[i].w)              \
                 : "l"((const uint4 *)p + i), "r"((int)in))

template <lam_use USE = LAM_ONCE, typename T>
static __device__ __forceinline__ lam_raw8<T> lam_ask8(const T *p, bool in)
{
    lam_raw8<T> x;
#pragma unroll
    for (int i = 0; i < (int)sizeof(T) / 2; i++)
        if (USE == LAM_KEPT)
            LAM_ASK("ca");
        else
            LAM_ASK("cg");
    return x;
}
#undef LAM_ASK

/* Programmatic dependent launch, for kernels that are launched as `chained` (cuda_int.cuh): waits until all work in
 * front has ended and can be seen, then lets the kernel behind begin, which waits here in its turn.  Before it a kernel may
 * read what the kernel in front does not write: weights, and what kernels further in front have left, for they had ended
 * when the one in front let this one begin.  It writes nothing before.  What may have been read by kernels before at an
 * older age is read past the L1 cache (lam_ask8).  Does nothing in a kernel that was launched otherwise. */
static __device__ __forceinline__ void lam_chain(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\n"
                 "griddepcontrol.launch_dependents;\n" ::
                     : "memory");
#endif
}

/* Between the blocks of a cooperative launch: what was written before a signal can be read where `count` was awaited. */
static __device__ __forceinline__ void lam_signal(unsigned *count)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;\n" ::"l"(count) : "memory");
}

static __device__ __forceinline__ void lam_await(const unsigned *count, unsigned target)
{
    unsigned now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];\n" : "=r"(now) : "l"(count) : "memory");
    } while (now < target);
}

/* Bytes of the pair (y:x) by selector, four bits each: 0-3 from x, 4-7 from y. */
static __device__ __forceinline__ uint32_t lam_bytes(uint32_t x, uint32_t y, uint32_t selector)
{
    return __byte_perm(x, y, selector);
}

/* All bits of either half of x as its top bit is. */
static __device__ __forceinline__ uint32_t lam_spread(uint32_t x)
{
    uint32_t y;
    asm("prmt.b32 %0, %1, 0, 0xbb99;\n" : "=r"(y) : "r"(x));
    return y;
}

/* Waits at barrier `number` (1 .. 15: __syncthreads is 0) for N threads of the block. */
template <int N>
static __device__ __forceinline__ void lam_barrier(int number)
{
    asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(N) : "memory");
}

/* The same in all lanes, and known to be by the compiler. */
static __device__ __forceinline__ int lam_uniform(int x)
{
    return __shfl_sync(0xffffffffu, x, 0);
}

#endif
