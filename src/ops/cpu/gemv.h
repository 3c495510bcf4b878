/* gemv.h -- the products that are not the library's: a few rows, and narrow operands.  gemm.c asks here
 * first.  Everywhere m, n and k are above 0.  And the question whether the library works. */
#ifndef LAM_OPS_CPU_GEMV_H
#define LAM_OPS_CPU_GEMV_H

#include "ops/cpu/cpu.h"

/* Is this y = x W^T with few rows, without dropout? */
int lam_gemv_takes(const lam_gemm *g);
void lam_gemv(const lam_cpu_dev *dev, const lam_gemm *g);

/* Any product with weights or result in HALF or BYTE, through floats.  A stored row has at most
 * LAM_NARROW_ROW elements. */
void lam_gemm_narrow(lam_dev *dev, const lam_gemm *g);
size_t lam_gemm_narrow_scratch(void);

/* Bytes of device memory in which each thread copies operands of the library (gemm.c). */
size_t lam_gemm_copies_bytes(int threads);

/* Bytes of address space for the kernels that oneDNN generates; it has asked for 18 MB. */
enum { LAM_GEMM_KERNELS = 24 << 20 };

/* Compares one GEMM of the library with a plain loop, and says in cpu->broken what is wrong. */
void lam_gemm_check(lam_cpu_dev *cpu);

static inline size_t lam_narrow_size(lam_class type)
{
    return type == LAM_BYTE ? 1 : type == LAM_HALF ? 2 : sizeof(float);
}

#endif
