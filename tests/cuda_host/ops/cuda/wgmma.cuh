/* cuda_host/ops/cuda/wgmma.cuh -- src/ops/cuda/wgmma.cuh without a GPU: the same functions, in C++ (hopper.cc).
 *
 * A product may be made where it is started, where it is waited for, or in between, by each warp for itself: only
 * then its operands are read, those in registers too.  Until the wait its accumulators are NaN, and
 * whoever writes them ends the program. */
#ifndef LAM_OPS_CUDA_WGMMA_CUH
#define LAM_OPS_CUDA_WGMMA_CUH

#include "ops/cuda/ptx.cuh"

enum lam_wg_by { BY_ROWS = 0, BY_COLUMNS = 1 };

namespace emu
{
struct operands {
    int columns; /* of the product, N */
    lam_wg_by a_by, b_by;
    uint32_t a, b;
    const uint32_t *left; /* instead of a, or NULL */
    float *d;
    bool add;
};
void product(unsigned mask, void **given);
void open_products(unsigned mask, void **given);
void close_products(unsigned mask, void **given);
void wait_for_products(int but, const char *file, int line);
void publish(void);
void stored4(unsigned mask, void **given);
void give_registers(unsigned mask, void **given);
void take_registers(int count, const char *file, int line);
} // namespace emu

static inline uint32_t lam_wg_operand(uint32_t address, uint32_t apart = 1)
{
    return address >> 4 | apart << 16;
}

static inline void lam_wg_begin(void)
{
    emu::gather(~0u, emu::open_products, NULL);
}

static inline void lam_wg_close(void)
{
    emu::gather(~0u, emu::close_products, NULL);
}

template <int N>
static inline void lam_wg_wait(const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    emu::wait_for_products(N, file, line);
}

template <int TILES>
static inline void lam_wg_hold(float (&)[TILES][4])
{
}

static inline void lam_wg_publish(void)
{
    emu::publish();
}

template <int N>
static inline void lam_wg_all(const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    emu::barrier(8, N, file, line);
}

static inline void lam_wg_barrier(int group, const char *file = __builtin_FILE(),
                                  int line = __builtin_LINE())
{
    emu::barrier(group + 1, 128, file, line);
}

template <int N>
static inline void lam_give_registers(void)
{
    int left = N;
    emu::gather(~0u, emu::give_registers, &left);
}

template <int N>
static inline void lam_take_registers(const char *file = __builtin_FILE(),
                                      int line = __builtin_LINE())
{
    emu::take_registers(N, file, line);
}

static inline void lam_store4(uint32_t address, const uint32_t r[4])
{
    emu::matrices m = {{r[0], r[1], r[2], r[3]}, address};
    emu::gather(~0u, emu::stored4, &m);
}

template <int N, lam_wg_by A, lam_wg_by B>
static inline void lam_wg_mma(float (&d)[N / 8][4], uint32_t a, uint32_t b, bool add)
{
    static_assert(N == 128 || N == 64 || N == 48 || N == 32, "no such product");
    emu::operands o = {N, A, B, a, b, NULL, &d[0][0], add};
    emu::gather(~0u, emu::product, &o);
}

template <int N, lam_wg_by B>
static inline void lam_wg_mma(float (&d)[N / 8][4], const uint32_t (&a)[4], uint32_t b, bool add)
{
    static_assert(N == 64 || N == 48 || N == 32, "no such product");
    emu::operands o = {N, BY_ROWS, B, 0, b, a, &d[0][0], add};
    emu::gather(~0u, emu::product, &o);
}

#endif
