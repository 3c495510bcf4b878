/* cuda/wgmma.cuh -- Hopper's products of a warpgroup (wgmma, sm_90a), one function each.
 *
 * A warpgroup is four warps; warp w holds rows 16 w .. of a 64-row result in the layout of
 * ptx.cuh, N / 8 tiles of 8 columns.  Operands lie in shared memory as tiles of rows of 128
 * bytes with the hardware's 128-byte swizzle (chunk x of row y, 16 bytes, lies at position x ^ (y % 8));
 * tiles begin on 1024-byte borders.  Read "by rows" the depth of the product runs along a row (32 bytes a step);
 * "by columns" it runs down the rows (16 rows, 2048 bytes a step).  The left operand may also come
 * from registers, as a 16 x 16 left operand of each warp.
 *
 * Products run in the background, in order.  Their registers, those of left operands too, may not be
 * touched between the call and the wait, nor may the tiles be overwritten. */
#ifndef LAM_OPS_CUDA_WGMMA_CUH
#define LAM_OPS_CUDA_WGMMA_CUH

#include "ops/cuda/ptx.cuh"

enum lam_wg_by { BY_ROWS = 0, BY_COLUMNS = 1 };

/* An operand is described by 64 bits, of which only the start address, in units of 16 bytes, ever
 * changes: 8 rows of 128 bytes from group to group, 128-byte swizzle.  Steps are added to this lower
 * word, so that a tile costs one shift and not one for every product.  `apart`: how far, in the same
 * units, the next 64 columns of an operand read by columns lie behind the first; else not used. */
static __device__ __forceinline__ uint32_t lam_wg_operand(uint32_t address, uint32_t apart = 1)
{
    return address >> 4 | apart << 16;
}

static __device__ __forceinline__ uint64_t lam_wg_describe(uint32_t operand)
{
    return (uint64_t)(1u << 30 | 64u) << 32 | operand;
}

/* Before the first product after ordinary code touched its registers. */
static __device__ __forceinline__ void lam_wg_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

/* Closes a group of products; waits for all but the newest N groups. */
static __device__ __forceinline__ void lam_wg_close(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

template <int N>
static __device__ __forceinline__ void lam_wg_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}

/* Keeps the compiler from moving copies of accumulators across a begin or a wait. */
template <int TILES>
static __device__ __forceinline__ void lam_wg_hold(float (&d)[TILES][4])
{
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            asm volatile("" : "+f"(d[n][x])::"memory");
}

/* What this thread wrote to shared memory becomes visible to products, after the next barrier. */
static __device__ __forceinline__ void lam_wg_publish(void)
{
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

/* Waits for the N threads that compute. */
template <int N>
static __device__ __forceinline__ void lam_wg_all(void)
{
    asm volatile("bar.sync 8, %0;\n" ::"n"(N) : "memory");
}

/* Waits for the 128 threads of warpgroup `group`. */
static __device__ __forceinline__ void lam_wg_barrier(int group)
{
    asm volatile("bar.sync %0, 128;\n" ::"r"(group + 1) : "memory");
}

/* A warpgroup that needs no more than N gives up registers, those that compute take them. */
template <int N>
static __device__ __forceinline__ void lam_give_registers(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(N));
}

template <int N>
static __device__ __forceinline__ void lam_take_registers(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(N));
}

/* Stores four 8 x 8 matrices: the inverse of lam_load4. */
static __device__ __forceinline__ void lam_store4(uint32_t address, const uint32_t r[4])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
        : "memory");
}

#define LAM_WG_ACC(d)  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define LAM_WG_ACCS_32 LAM_WG_ACC(d[0]), LAM_WG_ACC(d[1]), LAM_WG_ACC(d[2]), LAM_WG_ACC(d[3])
#define LAM_WG_ACCS_48 LAM_WG_ACCS_32, LAM_WG_ACC(d[4]), LAM_WG_ACC(d[5])
#define LAM_WG_ACCS_64 LAM_WG_ACCS_48, LAM_WG_ACC(d[6]), LAM_WG_ACC(d[7])
#define LAM_WG_LIST_32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define LAM_WG_LIST_48 LAM_WG_LIST_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define LAM_WG_LIST_64 LAM_WG_LIST_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define LAM_WG_ACCS_128                                                                            \
    LAM_WG_ACCS_64, LAM_WG_ACC(d[8]), LAM_WG_ACC(d[9]), LAM_WG_ACC(d[10]), LAM_WG_ACC(d[11]),      \
        LAM_WG_ACC(d[12]), LAM_WG_ACC(d[13]), LAM_WG_ACC(d[14]), LAM_WG_ACC(d[15])
#define LAM_WG_LIST_128                                                                            \
    LAM_WG_LIST_64 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
                   "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "   \
                   "%62, %63"
#define LAM_WG_OP(N) "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 "

/* Sets p, "add to what d holds", from operand x. */
#define LAM_WG_IF(x) "{ .reg .pred p; setp.ne.b32 p, %" #x ", 0;\n"

/* clang-format off */

/* d = a b, or d += a b: a 64 x 16, b 16 x N. */
template <int N, lam_wg_by A, lam_wg_by B>
static __device__ __forceinline__ void lam_wg_mma(float (&d)[N / 8][4], uint32_t a, uint32_t b,
                                                   bool add)
{
    static_assert(N == 128 || N == 64 || N == 48 || N == 32, "no such product");
    if constexpr (N == 128)
        asm volatile(LAM_WG_IF(66) LAM_WG_OP(128) "{" LAM_WG_LIST_128 "}, %64, %65, p, 1, 1, %67, %68; }\n"
                     : LAM_WG_ACCS_128
                     : "l"(lam_wg_describe(a)), "l"(lam_wg_describe(b)), "r"((int)add), "n"((int)A), "n"((int)B));
    else if constexpr (N == 64)
        asm volatile(LAM_WG_IF(34) LAM_WG_OP(64) "{" LAM_WG_LIST_64 "}, %32, %33, p, 1, 1, %35, %36; }\n"
                     : LAM_WG_ACCS_64
                     : "l"(lam_wg_describe(a)), "l"(lam_wg_describe(b)), "r"((int)add), "n"((int)A), "n"((int)B));
    else if constexpr (N == 48)
        asm volatile(LAM_WG_IF(26) LAM_WG_OP(48) "{" LAM_WG_LIST_48 "}, %24, %25, p, 1, 1, %27, %28; }\n"
                     : LAM_WG_ACCS_48
                     : "l"(lam_wg_describe(a)), "l"(lam_wg_describe(b)), "r"((int)add), "n"((int)A), "n"((int)B));
    else
        asm volatile(LAM_WG_IF(18) LAM_WG_OP(32) "{" LAM_WG_LIST_32 "}, %16, %17, p, 1, 1, %19, %20; }\n"
                     : LAM_WG_ACCS_32
                     : "l"(lam_wg_describe(a)), "l"(lam_wg_describe(b)), "r"((int)add), "n"((int)A), "n"((int)B));
}

/* The same with the left operand in registers. */
template <int N, lam_wg_by B>
static __device__ __forceinline__ void lam_wg_mma(float (&d)[N / 8][4], const uint32_t (&a)[4],
                                                   uint32_t b, bool add)
{
    static_assert(N == 64 || N == 48 || N == 32, "no such product");
    if constexpr (N == 64)
        asm volatile(LAM_WG_IF(37) LAM_WG_OP(64) "{" LAM_WG_LIST_64 "}, {%32, %33, %34, %35}, %36, p, 1, 1, %38; }\n"
                     : LAM_WG_ACCS_64
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(lam_wg_describe(b)), "r"((int)add),
                       "n"((int)B));
    else if constexpr (N == 48)
        asm volatile(LAM_WG_IF(29) LAM_WG_OP(48) "{" LAM_WG_LIST_48 "}, {%24, %25, %26, %27}, %28, p, 1, 1, %30; }\n"
                     : LAM_WG_ACCS_48
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(lam_wg_describe(b)), "r"((int)add),
                       "n"((int)B));
    else
        asm volatile(LAM_WG_IF(21) LAM_WG_OP(32) "{" LAM_WG_LIST_32 "}, {%16, %17, %18, %19}, %20, p, 1, 1, %22; }\n"
                     : LAM_WG_ACCS_32
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(lam_wg_describe(b)), "r"((int)add),
                       "n"((int)B));
}

/* clang-format on */

#endif
