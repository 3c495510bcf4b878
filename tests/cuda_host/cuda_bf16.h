/* cuda_host/cuda_bf16.h -- bf16 as the kernels use it: the upper half of a float. */
#ifndef LAM_CUDA_HOST_BF16_H
#define LAM_CUDA_HOST_BF16_H

#include "cuda_runtime.h"

struct __nv_bfloat16 {
    uint16_t bits;
};

struct __nv_bfloat162 {
    __nv_bfloat16 x, y;
} __align__(4);

static inline float __bfloat162float(__nv_bfloat16 x)
{
    return __uint_as_float((uint32_t)x.bits << 16);
}

/* To nearest, ties to even; a NaN stays one. */
static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return {(uint16_t)(isnan(x) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}

static inline __nv_bfloat162 __float2bfloat162_rn(float x)
{
    return __floats2bfloat162_rn(x, x);
}

/* All bits of a half where a > b, none elsewhere. */
static inline unsigned __hgt2_mask(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return (__bfloat162float(a.x) > __bfloat162float(b.x) ? 0xffffu : 0u) |
           (__bfloat162float(a.y) > __bfloat162float(b.y) ? 0xffff0000u : 0u);
}

#endif
