/* cuda_host/math_constants.h -- the constants that kernels use. */
#ifndef LAM_CUDA_HOST_MATH_CONSTANTS_H
#define LAM_CUDA_HOST_MATH_CONSTANTS_H

#define CUDART_INF_F __builtin_inff()
#define CUDART_L2E_F 1.442695041f
#define CUDART_LN2_F 0.693147181f

#endif
