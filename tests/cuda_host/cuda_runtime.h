/* cuda_host/cuda_runtime.h -- as much of CUDA as src/ops/cuda uses, for a host without a GPU.
 *
 * The kernels are compiled as C++ and run here: the threads of a block are fibers that take turns, and
 * everything they do together (barriers, shuffles, products of a warp) is a meeting (block.cc).  Streams
 * put work off until somebody waits for it (runtime.h).  CMake rewrites what is not C++ (cuda.sed):
 *     __shared__ float smem[4];   auto &smem = emu::shared<float[4]>(number of the place);
 * A launch is an ordinary call: lam_cuda_launch of cuda_int.cuh, so a raw <<<...>>> does not compile here.
 *
 * What it is for is finding mistakes, so it is as unkind as a GPU may be: fresh memory is NaN, shared
 * memory is so in every block, blocks, warps and lanes come in one order in one launch and in the other in the
 * next, and threads that do not meet where they should end the program. */
#ifndef LAM_CUDA_HOST_CUDA_RUNTIME_H
#define LAM_CUDA_HOST_CUDA_RUNTIME_H

#include "runtime.h"

#include <math.h>

#include <type_traits>

#define __CUDACC_VER_MAJOR__ 0
#define __CUDACC_VER_MINOR__ 0

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

/* ---- vectors ------------------------------------------------------------------------------------ */

struct float2 {
    float x, y;
} __align__(8);

struct float4 {
    float x, y, z, w;
} __align__(16);

struct uint2 {
    unsigned x, y;
} __align__(8);

struct uint4 {
    unsigned x, y, z, w;
} __align__(16);

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}

static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

/* ---- launches ----------------------------------------------------------------------------------- */

enum { cudaLaunchAttributeProgrammaticStreamSerialization, cudaLaunchAttributeCooperative };

struct cudaLaunchAttribute {
    int id;
    struct {
        int programmaticStreamSerializationAllowed, cooperative;
    } val;
};

struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emu
{

/* Runs `thread` in every thread of every block, now. */
void run_grid(const cudaLaunchConfig_t &config, const std::function<void()> &thread);

inline bool is_possible(const cudaLaunchConfig_t &c, const void *kernel)
{
    const dim3 g = c.gridDim, b = c.blockDim;
    const uint64_t threads = (uint64_t)b.x * b.y * b.z;
    const size_t most = granted.count(kernel) ? granted[kernel] : 48 << 10;
    return g.x >= 1 && g.x <= 0x7fffffff && g.y >= 1 && g.y <= 65535 && g.z >= 1 && g.z <= 65535 &&
           threads >= 1 && threads <= 1024 && b.z <= 64 && c.dynamicSmemBytes <= most;
}

template <typename... P, typename... A>
cudaError_t start(const cudaLaunchConfig_t &config, void (*kernel)(P...), A... args)
{
    static_assert((sizeof(P) + ... + 0) <= 4096, "a launch's arguments");
    if (!is_possible(config, (const void *)kernel))
        return note(cudaErrorInvalidConfiguration);
    config.stream->add([=] { run_grid(config, [=] { kernel(static_cast<P>(args)...); }); });
    return cudaSuccess;
}

/* ---- what a kernel finds in its block ----------------------------------------------------------- */

/* The block's dynamic shared memory. */
unsigned char *shared_memory(void);

/* Its other shared variables, by the number of the place that declares them. */
void *shared_at(int place, size_t bytes);

template <typename T>
T &shared(int place)
{
    return *(T *)shared_at(place, sizeof(T));
}

/* Waits at barrier `id` for all threads of the block that have not ended (count 0), or for `count`.  All who
 * meet there must have come from the same place of the source. */
void barrier(int id, int count, const char *file, int line);

/* Waits until all lanes of `mask` are here.  The last one calls meet(mask, given), where given[lane] is
 * what that lane gave: it may read and write all of it. */
void gather(unsigned mask, void (*meet)(unsigned mask, void **given), void *given);

/* This thread's number in its warp. */
int lane(void);

/* Ends the program, saying where it was. */
[[noreturn]] void die(const char *what);

template <typename T>
struct moved {
    T value;
    int from;
};

template <typename T>
void move(unsigned mask, void **given)
{
    T all[32];
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1)
            all[i] = ((moved<T> *)given[i])->value;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1) {
            moved<T> *m = (moved<T> *)given[i];
            if (!(mask >> m->from & 1))
                die("a shuffle reads from a lane that does not take part");
            m->value = all[m->from];
        }
}

template <typename T>
T shuffle(unsigned mask, T value, int from)
{
    moved<T> m = {value, from};
    gather(mask, move<T>, &m);
    return m.value;
}

void match(unsigned mask, void **given);
void any(unsigned mask, void **given);
void nothing(unsigned mask, void **given);

} // namespace emu

template <typename... P, typename... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A... args)
{
    return emu::start(*config, kernel, args...);
}

/* ---- what threads do together -------------------------------------------------------------------- */

#define __syncthreads() emu::barrier(0, 0, __FILE__, __LINE__)

static inline void __syncwarp(unsigned mask = ~0u)
{
    emu::gather(mask, emu::nothing, NULL);
}

template <typename T>
static inline T __shfl_sync(unsigned mask, T x, int from)
{
    return emu::shuffle(mask, x, from & 31);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T x, int bits)
{
    return emu::shuffle(mask, x, emu::lane() ^ bits);
}

template <typename T>
static inline T __shfl_up_sync(unsigned mask, T x, unsigned by)
{
    const int from = emu::lane() - (int)by;
    return emu::shuffle(mask, x, from < 0 ? emu::lane() : from);
}

static inline bool __any_sync(unsigned mask, bool x)
{
    unsigned given = x;
    emu::gather(mask, emu::any, &given);
    return given;
}

/* The lanes that have the same x. */
static inline unsigned __match_any_sync(unsigned mask, unsigned x)
{
    emu::gather(mask, emu::match, &x);
    return x;
}

/* ---- what a thread does alone --------------------------------------------------------------------- */

static inline void __threadfence(void) {}

template <typename T>
static inline T __ldg(const T *p)
{
    return *p;
}

template <typename T>
static inline T __ldcg(const T *p)
{
    return *p;
}

static inline int atomicAdd(int *p, int x)
{
    const int before = *p;
    *p += x;
    return before;
}

static inline unsigned atomicAdd(unsigned *p, unsigned x)
{
    const unsigned before = *p;
    *p += x;
    return before;
}

static inline unsigned atomicInc(unsigned *p, unsigned most)
{
    const unsigned before = *p;
    *p = before >= most ? 0 : before + 1;
    return before;
}

template <typename A, typename B>
static inline std::common_type_t<A, B> min(A a, B b)
{
    return a < b ? a : b;
}

template <typename A, typename B>
static inline std::common_type_t<A, B> max(A a, B b)
{
    return a > b ? a : b;
}

static inline float __uint_as_float(unsigned x)
{
    float y;
    memcpy(&y, &x, sizeof y);
    return y;
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

#define __expf expf

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

#endif
