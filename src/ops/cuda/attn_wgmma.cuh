/* cuda/attn_wgmma.cuh -- Hopper's products of a warpgroup (wgmma, sm_90a), one function each.
 *
 * A warpgroup is four warps; warp w holds rows 16 w .. of a 64-row result in the layout of
 * attn_ptx.cuh, N / 8 tiles of 8 columns.  Operands lie in shared memory as tiles of rows of 128
 * bytes with the swizzle of attn_tile.cuh, which is the hardware's 128-byte one; tiles begin on
 * 1024-byte borders.  Read "by rows" the depth of the product runs along a row (32 bytes a step);
 * "by columns" it runs down the rows (16 rows, 2048 bytes a step).  The left operand may also come
 * from registers, as a 16 x 16 left operand of each warp.
 *
 * Products run in the background, in order.  Their registers, those of left operands too, may not be
 * touched between the call and the wait, nor may the tiles be overwritten. */
#ifndef LAM_OPS_CUDA_ATTN_WGMMA_CUH
#define LAM_OPS_CUDA_ATTN_WGMMA_CUH

#include "ops/cuda/attn_ptx.cuh"

enum attn_by { BY_ROWS = 0, BY_COLUMNS = 1 };

/* An operand is described by 64 bits, of which only the start address, in units of 16 bytes, ever
 * changes: 8 rows of 128 bytes from group to group, 128-byte swizzle.  Steps are added to this lower
 * word, so that a tile costs one shift and not one for every product. */
static __device__ __forceinline__ uint32_t attn_operand(uint32_t address)
{
    return address >> 4 | 1u << 16;
}

static __device__ __forceinline__ uint64_t attn_describe(uint32_t operand)
{
    return (uint64_t)(1u << 30 | 64u) << 32 | operand;
}

/* Before the first product after ordinary code touched its registers. */
static __device__ __forceinline__ void attn_wg_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

/* Closes a group of products; waits for all but the newest N groups. */
static __device__ __forceinline__ void attn_wg_close(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

template <int N>
static __device__ __forceinline__ void attn_wg_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}

/* Keeps the compiler from moving copies of accumulators across a begin or a wait. */
template <int TILES>
static __device__ __forceinline__ void attn_wg_hold(float (&d)[TILES][4])
{
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            asm volatile("" : "+f"(d[n][x])::"memory");
}

/* What this thread wrote to shared memory becomes visible to products, after the next barrier. */
static __device__ __forceinline__ void attn_wg_publish(void)
{
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

/* Waits for the N threads that compute. */
template <int N>
static __device__ __forceinline__ void attn_wg_all(void)
{
    asm volatile("bar.sync 8, %0;\n" ::"n"(N) : "memory");
}

/* Waits for the 128 threads of warpgroup `group`. */
static __device__ __forceinline__ void attn_wg_barrier(int group)
{
    asm volatile("bar.sync %0, 128;\n" ::"r"(group + 1) : "memory");
}

/* A warpgroup that only copies gives up registers, those that compute take them. */
static __device__ __forceinline__ void attn_give_registers(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;\n");
}

template <int N>
static __device__ __forceinline__ void attn_take_registers(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(N));
}

/* Stores four 8 x 8 matrices: the inverse of attn_load4. */
static __device__ __forceinline__ void attn_store4(uint32_t address, const uint32_t r[4])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
        : "memory");
}

#define ATTN_ACC(d)  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define ATTN_ACCS_32 ATTN_ACC(d[0]), ATTN_ACC(d[1]), ATTN_ACC(d[2]), ATTN_ACC(d[3])
#define ATTN_ACCS_48 ATTN_ACCS_32, ATTN_ACC(d[4]), ATTN_ACC(d[5])
#define ATTN_ACCS_64 ATTN_ACCS_48, ATTN_ACC(d[6]), ATTN_ACC(d[7])
#define ATTN_LIST_32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define ATTN_LIST_48 ATTN_LIST_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define ATTN_LIST_64 ATTN_LIST_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define ATTN_ACCS_128                                                                              \
    ATTN_ACCS_64, ATTN_ACC(d[8]), ATTN_ACC(d[9]), ATTN_ACC(d[10]), ATTN_ACC(d[11]),                \
        ATTN_ACC(d[12]), ATTN_ACC(d[13]), ATTN_ACC(d[14]), ATTN_ACC(d[15])
#define ATTN_LIST_128                                                                              \
    ATTN_LIST_64 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "   \
                 "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "     \
                 "%62, %63"
#define ATTN_WG(N) "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 "

/* Sets p, "add to what d holds", from operand x. */
#define ATTN_IF(x) "{ .reg .pred p; setp.ne.b32 p, %" #x ", 0;\n"

/* clang-format off */

/* d = a b, or d += a b: a 64 x 16, b 16 x N. */
template <int N, attn_by A, attn_by B>
static __device__ __forceinline__ void attn_wg_mma(float (&d)[N / 8][4], uint32_t a, uint32_t b,
                                                   bool add)
{
    static_assert(N == 128 || N == 64 || N == 48 || N == 32, "no such product");
    if constexpr (N == 128)
        asm volatile(ATTN_IF(66) ATTN_WG(128) "{" ATTN_LIST_128 "}, %64, %65, p, 1, 1, %67, %68; }\n"
                     : ATTN_ACCS_128
                     : "l"(attn_describe(a)), "l"(attn_describe(b)), "r"((int)add), "n"((int)A), "n"((int)B));
    else if constexpr (N == 64)
        asm volatile(ATTN_IF(34) ATTN_WG(64) "{" ATTN_LIST_64 "}, %32, %33, p, 1, 1, %35, %36; }\n"
                     : ATTN_ACCS_64
                     : "l"(attn_describe(a)), "l"(attn_describe(b)), "r"((int)add), "n"((int)A), "n"((int)B));
    else if constexpr (N == 48)
        asm volatile(ATTN_IF(26) ATTN_WG(48) "{" ATTN_LIST_48 "}, %24, %25, p, 1, 1, %27, %28; }\n"
                     : ATTN_ACCS_48
                     : "l"(attn_describe(a)), "l"(attn_describe(b)), "r"((int)add), "n"((int)A), "n"((int)B));
    else
        asm volatile(ATTN_IF(18) ATTN_WG(32) "{" ATTN_LIST_32 "}, %16, %17, p, 1, 1, %19, %20; }\n"
                     : ATTN_ACCS_32
                     : "l"(attn_describe(a)), "l"(attn_describe(b)), "r"((int)add), "n"((int)A), "n"((int)B));
}

/* The same with the left operand in registers. */
template <int N, attn_by B>
static __device__ __forceinline__ void attn_wg_mma(float (&d)[N / 8][4], const uint32_t (&a)[4],
                                                   uint32_t b, bool add)
{
    static_assert(N == 64 || N == 48 || N == 32, "no such product");
    if constexpr (N == 64)
        asm volatile(ATTN_IF(37) ATTN_WG(64) "{" ATTN_LIST_64 "}, {%32, %33, %34, %35}, %36, p, 1, 1, %38; }\n"
                     : ATTN_ACCS_64
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(attn_describe(b)), "r"((int)add),
                       "n"((int)B));
    else if constexpr (N == 48)
        asm volatile(ATTN_IF(29) ATTN_WG(48) "{" ATTN_LIST_48 "}, {%24, %25, %26, %27}, %28, p, 1, 1, %30; }\n"
                     : ATTN_ACCS_48
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(attn_describe(b)), "r"((int)add),
                       "n"((int)B));
    else
        asm volatile(ATTN_IF(21) ATTN_WG(32) "{" ATTN_LIST_32 "}, {%16, %17, %18, %19}, %20, p, 1, 1, %22; }\n"
                     : ATTN_ACCS_32
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(attn_describe(b)), "r"((int)add),
                       "n"((int)B));
}

/* clang-format on */

#endif
