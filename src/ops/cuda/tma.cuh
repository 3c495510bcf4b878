/* cuda/tma.cuh -- Hopper's copy engine and the barriers it reports to, one function each.
 *
 * A map describes a tensor of bf16 (columns, rows, streams) in global memory; a copy brings 64 columns
 * of 64 rows of it into a tile, swizzled as wgmma.cuh wants it, zeros where there is no element
 * (row numbers may be negative).  One thread starts the copy; the barrier counts the bytes that have come.
 *
 * A barrier turns its phase (0, 1, 0, ...) when the expected arrivals and bytes are complete; waiting
 * for phase p returns once p is over. */
#ifndef LAM_OPS_CUDA_TMA_CUH
#define LAM_OPS_CUDA_TMA_CUH

#include "ops/cuda/ptx.cuh"

#include <cuda.h>

enum { LAM_TMA_ROWS = 64, LAM_TMA_TILE = LAM_TMA_ROWS * 128 }; /* of a tile: rows; bytes */

/* Columns, rows, streams of bf16 with their strides in elements: multiples of 8, as is the address. */
struct lam_tma_shape {
    int cols, rows, streams;
    size_t ld, step;
};

/* Describes a tensor to the copy engine; false if the driver cannot. */
bool lam_cuda_tma_map(CUtensorMap *map, const void *p, const lam_tma_shape &shape);

static __device__ __forceinline__ void lam_bar_init(uint32_t bar, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(bar), "r"(arrivals) : "memory");
}

/* After all inits, by the thread that made them, before the block's barrier. */
static __device__ __forceinline__ void lam_bar_publish(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;\n"
                 "fence.proxy.async.shared::cta;\n" ::
                     : "memory");
}

/* One arrival, and `bytes` more to come. */
static __device__ __forceinline__ void lam_bar_expect(uint32_t bar, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(bar), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void lam_bar_arrive(uint32_t bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(bar) : "memory");
}

static __device__ __forceinline__ void lam_bar_wait(uint32_t bar, uint32_t phase)
{
    asm volatile("{ .reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}\n" ::"r"(bar),
                 "r"(phase)
                 : "memory");
}

/* This warp is done with what `bar` counts. */
static __device__ __forceinline__ void lam_bar_leave(uint32_t bar)
{
    __syncwarp(); /* every lane has seen it full: its phase may turn twice from here on */
    if (threadIdx.x % LAM_WARP == 0)
        lam_bar_arrive(bar);
}

/* 64 x 64 elements from column x, row y, stream z. */
static __device__ __forceinline__ void lam_tma_tile(uint32_t to, const CUtensorMap *map, int x,
                                                    int y, int z, uint32_t bar)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5}], [%2];\n" ::"r"(to),
                 "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* `bytes` neighbours; a multiple of 16, as are the addresses. */
static __device__ __forceinline__ void lam_tma_line(uint32_t to, const void *from, uint32_t bytes,
                                                    uint32_t bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];\n" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar)
                 : "memory");
}

/* The way back, in a group of copies of this thread; what was written to `from` must be published. */
static __device__ __forceinline__ void lam_tma_store(void *to, uint32_t from, uint32_t bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;\n" ::"l"(to),
                 "r"(from), "r"(bytes)
                 : "memory");
}

/* Until all of this thread's stores have been read from shared memory, or have arrived. */
static __device__ __forceinline__ void lam_tma_stores_read(void)
{
    asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");
}

static __device__ __forceinline__ void lam_tma_stores_done(void)
{
    asm volatile("cp.async.bulk.wait_group 0;\n" ::: "memory");
}

#endif
