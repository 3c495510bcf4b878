/* cuda/cuda_int.cuh -- what the files of the cuda back-end share: the device, its scratch, launches,
 * the names of the ops; and, by way of element.cuh and mask.cuh, the few device functions every kernel
 * needs.
 *
 * ACT is bf16, or float when the device was opened with full_prec; kernels are templates over it and
 * compute in float.  WIDE is float.  Buffers are padded to LAM_CUDA_PAD elements, so that rows begin
 * on 16-byte borders and tensor cores see whole tiles.
 *
 * All work goes to one stream; no operation waits for the device, allocates, or uses float atomics:
 * partial sums have a fixed order, so one seed gives one result.  A failure is remembered with the
 * name of the operation (the first one wins) and reported by sync() or download().  Nothing outside
 * ops/cuda includes this. */
#ifndef LAM_OPS_CUDA_CUDA_INT_CUH
#define LAM_OPS_CUDA_CUDA_INT_CUH

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

extern "C" {
#include "ops/cuda/limits.h"
#include "ops/ops.h"
}

#include "ops/cuda/element.cuh"
#include "ops/cuda/mask.cuh"

enum { LAM_CUDA_PAD = 16, LAM_CUDA_TICKETS = 1024, LAM_CUDA_ALLOWED = 128 };

struct lam_cuda_blas;  /* cuda/blas.cuh: cuBLASLt and the algorithms found so far */
struct lam_cuda_stage; /* cuda/transfer.cu: pinned memory for uploads */
struct lam_cuda_kept;  /* cuda/token.cu: operations that are to be started together */

struct lam_cuda_dev {
    lam_dev base;
    lam_dev_link link;
    int bf16;       /* ACT is bf16, else float */
    int sms;        /* multiprocessors of the card */
    int capability; /* ten times the compute capability: 80, 90, ... */
    cudaStream_t stream;

    void *scratch; /* contents valid within one operation only; owned */
    size_t scratch_bytes;
    /* [LAM_CUDA_TICKETS], zero between operations: which block is the last; then one for token.cu.  Owned. */
    unsigned *tickets;

    /* Kernels that were allowed more than 48 KB of shared memory (launch.cu). */
    struct {
        const void *kernel;
        size_t bytes;
    } allowed[LAM_CUDA_ALLOWED];
    int n_allowed;

    int chains; /* programmatic dependent launch of decoding's kernels: LAMEMO_PDL=0 turns it off */
    int persistent;      /* a token as one kernel: LAMEMO_PERSISTENT=0 turns it off */
    int together;        /* the card has cooperative launches */
    lam_cuda_kept *kept; /* NULL: none so far; owned */

    /* Captured graphs (repeat.cu). */
    int repeats;       /* wanted: LAMEMO_GRAPHS=0 in the environment turns them off */
    cudaStream_t side; /* where uploads go while the stream is being captured */
    int capturing;
    cudaEvent_t marks[LAM_MARKS]; /* NULL: not used yet */
    unsigned moved;               /* times that scratch moved: captured graphs hold its address */

    size_t free_at_open, least_free; /* bytes of the card */

    lam_cuda_blas *blas;   /* owned */
    lam_cuda_stage *stage; /* owned */

    int failed; /* sticky: set with the text below by the first failure */
    char failure[160];
};

static inline lam_cuda_dev *lam_cuda(lam_dev *dev)
{
    return (lam_cuda_dev *)dev;
}

/* The scratch of the running operation, which reserve() promised to be large enough; 256-aligned. */
static inline void *lam_cuda_scratch(const lam_cuda_dev *dev, size_t bytes)
{
    assert(bytes <= dev->scratch_bytes);
    (void)bytes;
    return dev->scratch;
}

/* Remembers the failure unless there was one before.  What the runtime keeps of it is cleared, so that
 * nobody meets it again at another launch, or on the next device. */
void lam_cuda_note(lam_cuda_dev *dev, const char *op, cudaError_t error);
void lam_cuda_note_text(lam_cuda_dev *dev, const char *op, const char *text);

static inline void lam_cuda_note_if(lam_cuda_dev *dev, const char *op, cudaError_t error)
{
    if (error != cudaSuccess)
        lam_cuda_note(dev, op, error);
}

/* How a kernel is launched.  One that is chained may begin before the kernel in front of it has ended, and calls
 * lam_chain() first (ptx.cuh). */
struct lam_cuda_grid {
    dim3 grid, block;
    size_t shared = 0; /* bytes of dynamic shared memory of a block */
    bool chained = false;
    bool together = false; /* all blocks at once */
};

/* Starts what token.cu keeps: to be called before anything else comes to the stream. */
void lam_cuda_flush(lam_cuda_dev *dev);

/* Allows the kernel so much dynamic shared memory; calls the driver once for each kernel (launch.cu). */
cudaError_t lam_cuda_allow_shared(lam_cuda_dev *dev, const void *kernel, size_t bytes);

/* Launches a kernel: every launch of this back-end goes through here.  An error is noted with the name
 * of the operation. */
template <typename... P, typename... A>
static void lam_cuda_launch(lam_cuda_dev *dev, const char *op, void (*kernel)(P...),
                            const lam_cuda_grid &g, A... args)
{
    lam_cuda_flush(dev);
    cudaLaunchConfig_t config = {};
    config.gridDim = g.grid;
    config.blockDim = g.block;
    config.dynamicSmemBytes = g.shared;
    config.stream = dev->stream;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchAttribute all = {};
    all.id = cudaLaunchAttributeCooperative;
    all.val.cooperative = 1;
    config.attrs = g.together ? &all : &early;
    config.numAttrs = (g.together && dev->together) || (g.chained && dev->chains) ? 1 : 0;
    cudaError_t error = lam_cuda_allow_shared(dev, (const void *)kernel, g.shared);
    if (error == cudaSuccess)
        error = cudaLaunchKernelEx(&config, kernel, args...);
    lam_cuda_note_if(dev, op, error);
}

/* Do rows of `element` bytes each, `stride` of them apart, begin on 16-byte borders? */
static inline bool lam_cuda_on_border(const void *p, size_t stride, size_t element)
{
    return (uintptr_t)p % 16 == 0 && stride * element % 16 == 0;
}

static inline __host__ __device__ int lam_cuda_ceil(int n, int step)
{
    return (n + step - 1) / step;
}

/* A launch over `cols` by `rows` items of `blocks` blocks: x walks the columns, one item a thread; y
 * walks the rows, each thread taking every gridDim.y * blockDim.y-th; z is the block. */
lam_cuda_grid lam_cuda_grid_of(const lam_cuda_dev *dev, size_t cols, int rows, int blocks);

/* Bytes of scratch each family needs for the largest shapes; reserve() takes the maximum. */
size_t lam_cuda_attn_scratch(const lam_work *largest);
size_t lam_cuda_rowwise_scratch(const lam_cuda_dev *dev, const lam_work *largest);
size_t lam_cuda_norm_scratch(const lam_cuda_dev *dev, const lam_work *largest);
size_t lam_cuda_vocab_scratch(const lam_work *largest);
size_t lam_cuda_optim_scratch(void);
size_t lam_cuda_ortho_scratch(void);
size_t lam_cuda_tally_scratch(void);
size_t lam_cuda_density_scratch(const lam_work *largest);
size_t lam_cuda_gemm_scratch(const lam_cuda_dev *dev, const lam_work *largest);
size_t lam_cuda_next_scratch(void);

/* Between the host and the card (transfer.cu); a stage that was opened in part can be closed. */
lam_status lam_cuda_stage_open(lam_cuda_dev *dev);
void lam_cuda_stage_close(lam_cuda_dev *dev);
void lam_cuda_upload(lam_dev *dev, void *dst, const void *host, size_t bytes);
lam_status lam_cuda_download(lam_dev *dev, void *host, const void *src, size_t bytes);
lam_status lam_cuda_sync(lam_dev *dev); /* waits, and reports what failed */

/* The table whose operations do nothing, but for uploads: what runs during the replay of a graph. */
const lam_ops *lam_cuda_quiet(void);
void lam_cuda_repeat(lam_dev *dev, lam_graphs **graphs, uint64_t key, void (*work)(void *),
                     void *arg);
int lam_cuda_replay(lam_dev *dev, lam_graphs *graphs, uint64_t key);
void lam_cuda_free_graphs(lam_dev *dev, lam_graphs *graphs);
void lam_cuda_mark(lam_dev *dev, int i);
void lam_cuda_after(lam_dev *dev, lam_dev *other, int i);

/* The second half of column sums: out[q][c] += the sum over i < n of lines[i * step + q * apart + c],
 * in order; an out that is NULL is left out. */
enum { LAM_CUDA_SUMS = 3 };
struct lam_cuda_sums {
    float *out[LAM_CUDA_SUMS];
    const float *lines;
    size_t step, apart;
    int n, width;
};
void lam_cuda_fold(lam_cuda_dev *dev, const char *op, const lam_cuda_sums *sums);

/* Copies `blocks` blocks of `rows` rows of `width` bytes; row r of block b lies at b * step + r * ld,
 * in bytes.  A NULL source means zeros.  Used by copy() and to pack the operands of products. */
struct lam_cuda_rows {
    const void *src;
    void *dst;
    size_t src_step, src_ld, dst_step, dst_ld;
    int blocks;
    size_t rows, width;
};
void lam_cuda_copy_rows(lam_cuda_dev *dev, const char *op, const lam_cuda_rows *c);

extern "C" {
extern const lam_ops lam_ops_cuda;

#define LAM_CUDA_OP(name, argument) void lam_cuda_##name(lam_dev *dev, const argument *a);
LAM_OPS(LAM_CUDA_OP)
#undef LAM_CUDA_OP
void lam_cuda_relu_bwd(lam_dev *dev, const lam_relu_bwd *a); /* the second half of gemm */
}

#endif
