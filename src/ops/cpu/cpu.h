/* cpu.h -- what the files of the cpu back-end share: the device, its scratch, the names of the ops.
 *
 * float everywhere (ACT = WIDE = float), no padding, OpenMP threads.  Work is cut into chunks whose
 * number and borders depend on the shapes alone, each chunk is computed by one thread, and partial
 * sums are added in chunk order: no result depends on the number of threads, except where the GEMM library sums
 * differently in blocks of C of another size.  Nothing outside ops/cpu includes this. */
#ifndef LAM_OPS_CPU_CPU_H
#define LAM_OPS_CPU_CPU_H

#include "ops/ops.h"

#include <assert.h>

typedef struct lam_cpu_dev {
    lam_dev base;
    int threads; /* >= 1; for num_threads(dev->threads): a team has at most as many, maybe fewer */
    void *scratch; /* LAM_ALIGN-aligned, owned, contents valid within one operation only */
    size_t scratch_bytes;
    /* Owned: of operands of GEMMs, for each thread; NULL before the first reserve(). */
    float *copies;
    int has_room;     /* for threads and kernels: was asked */
    int checked;      /* the GEMM library was (gemm_check.c) */
    char broken[128]; /* sticky: why GEMMs cannot go on, for sync() to report; "" while they can */
} lam_cpu_dev;

static inline lam_cpu_dev *lam_cpu(lam_dev *dev)
{
    return (lam_cpu_dev *)dev;
}

/* Can so many bytes of address space be had?  They are not kept. */
int lam_cpu_has_room(size_t bytes);

/* The scratch of the running operation, which reserve() promised to be large enough. */
static inline void *lam_cpu_scratch(const lam_cpu_dev *dev, size_t bytes)
{
    assert(bytes <= dev->scratch_bytes);
    (void)bytes;
    return dev->scratch;
}

/* Threads for work on `elements` elements: little work is done by the caller, because waking others
 * takes as long as touching this many floats. */
static inline int lam_cpu_team(const lam_cpu_dev *dev, size_t elements)
{
    return elements < 32768 ? 1 : dev->threads;
}

/* Row `row` of block `block` of a view of floats; NULL stays NULL. */
static inline float *lam_cpu_row(lam_view view, size_t ld, size_t block, size_t row)
{
    return view.p ? (float *)view.p + block * view.step + row * ld : NULL;
}

/* Bytes of scratch each family needs for the largest shapes; reserve() takes the maximum. */
size_t lam_cpu_attn_scratch(const lam_work *largest, int threads);
size_t lam_cpu_rowwise_scratch(const lam_work *largest);

#define LAM_CPU_OP(name, argument) void lam_cpu_##name(lam_dev *dev, const argument *a);
LAM_KERNEL_OPS(LAM_CPU_OP)
#undef LAM_CPU_OP

#endif
