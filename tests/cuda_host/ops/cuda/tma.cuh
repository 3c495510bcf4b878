/* cuda_host/ops/cuda/tma.cuh -- src/ops/cuda/tma.cuh without a GPU: the same functions, in C++ (hopper.cc).
 *
 * A copy may come at once or late, and copies overtake each other; until then the place it goes to holds
 * NaN. */
#ifndef LAM_OPS_CUDA_TMA_CUH
#define LAM_OPS_CUDA_TMA_CUH

#include "ops/cuda/ptx.cuh"

enum { LAM_TMA_ROWS = 64, LAM_TMA_TILE = LAM_TMA_ROWS * 128 };

struct lam_tma_shape {
    int cols, rows, streams;
    size_t ld, step;
};

struct CUtensorMap {
    const void *p;
    lam_tma_shape shape;
};

bool lam_cuda_tma_map(CUtensorMap *map, const void *p, const lam_tma_shape &shape);

namespace emu
{
void bar_init(uint32_t bar, int arrivals);
void bar_publish(void);
void bar_expect(uint32_t bar, uint32_t bytes);
void bar_arrive(uint32_t bar);
void bar_wait(uint32_t bar, uint32_t phase, const char *file, int line);
void bring_tile(uint32_t to, const CUtensorMap *map, int x, int y, int z, uint32_t bar);
void bring_line(uint32_t to, const void *from, uint32_t bytes, uint32_t bar);
void store_line(void *to, uint32_t from, uint32_t bytes);
void wait_for_stores(bool arrived, const char *file, int line);
} // namespace emu

static inline void lam_bar_init(uint32_t bar, int arrivals)
{
    emu::bar_init(bar, arrivals);
}

static inline void lam_bar_publish(void)
{
    emu::bar_publish();
}

static inline void lam_bar_expect(uint32_t bar, uint32_t bytes)
{
    emu::bar_expect(bar, bytes);
}

static inline void lam_bar_arrive(uint32_t bar)
{
    emu::bar_arrive(bar);
}

static inline void lam_bar_wait(uint32_t bar, uint32_t phase, const char *file = __builtin_FILE(),
                                int line = __builtin_LINE())
{
    emu::bar_wait(bar, phase, file, line);
}

static inline void lam_bar_leave(uint32_t bar)
{
    __syncwarp();
    if (threadIdx.x % LAM_WARP == 0)
        lam_bar_arrive(bar);
}

static inline void lam_tma_tile(uint32_t to, const CUtensorMap *map, int x, int y, int z,
                                uint32_t bar)
{
    emu::bring_tile(to, map, x, y, z, bar);
}

static inline void lam_tma_line(uint32_t to, const void *from, uint32_t bytes, uint32_t bar)
{
    emu::bring_line(to, from, bytes, bar);
}

static inline void lam_tma_store(void *to, uint32_t from, uint32_t bytes)
{
    emu::store_line(to, from, bytes);
}

static inline void lam_tma_stores_read(const char *file = __builtin_FILE(),
                                       int line = __builtin_LINE())
{
    emu::wait_for_stores(false, file, line);
}

static inline void lam_tma_stores_done(const char *file = __builtin_FILE(),
                                       int line = __builtin_LINE())
{
    emu::wait_for_stores(true, file, line);
}

#endif
