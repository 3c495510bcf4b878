/* cuda/table.cu -- the cuda device (a stream, scratch, a sticky failure) and its table.
 *
 * Uploads go through a ring of pinned memory, so that the caller's memory is free at once and the
 * stream is not stalled; larger ones are copied by the driver, which has the same effect later. */
#include "ops/cuda/blas.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STAGE_SLOTS = 8,
    STAGE_BYTES = 512 << 10, /* of a slot */
    MIN_SCRATCH = 64 << 20,  /* bytes: what small models share */
    MIN_MAJOR = 8            /* compute capability: bf16 on tensor cores */
};

struct lam_cuda_stage {
    char *memory; /* pinned, STAGE_SLOTS * STAGE_BYTES */
    cudaEvent_t done[STAGE_SLOTS];
    int next;
};

void lam_cuda_note_text(lam_cuda_dev *dev, const char *op, const char *text)
{
    if (dev->failed)
        return;
    dev->failed = 1;
    snprintf(dev->failure, sizeof dev->failure, "%s: %s", op, text);
}

void lam_cuda_note(lam_cuda_dev *dev, const char *op, cudaError_t error)
{
    lam_cuda_note_text(dev, op, cudaGetErrorString(error));
}

static void note_if(lam_cuda_dev *dev, const char *op, cudaError_t error)
{
    if (error != cudaSuccess)
        lam_cuda_note(dev, op, error);
}

extern "C" int lam_cuda_present(void)
{
    int n = 0, major = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess && n > 0 &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
           major >= MIN_MAJOR;
}

static lam_status check_card(lam_cuda_dev *dev)
{
    int n = 0, card = 0, major = 0, minor = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error != cudaSuccess || n == 0)
        return lam_fail(LAM_ERR_UNSUPPORTED, "device cuda: no GPU: %s",
                        error != cudaSuccess ? cudaGetErrorString(error) : "none is visible");
    error = cudaGetDevice(&card);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, card);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, card);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&dev->sms, cudaDevAttrMultiProcessorCount, card);
    if (error != cudaSuccess)
        return lam_fail(LAM_ERR_DEVICE, "device cuda: %s", cudaGetErrorString(error));
    if (major < MIN_MAJOR)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "device cuda: compute capability %d.%d, must be %d.0 or newer", major,
                        minor, (int)MIN_MAJOR);
    dev->capability = 10 * major + minor;
    return LAM_OK;
}

static lam_status open_stage(lam_cuda_dev *dev)
{
    lam_cuda_stage *s = (lam_cuda_stage *)calloc(1, sizeof *s);
    dev->stage = s; /* close() frees what there is */
    if (!s)
        return lam_fail(LAM_ERR_MEMORY, "device cuda: no memory for uploads");
    cudaError_t error = cudaMallocHost((void **)&s->memory, (size_t)STAGE_SLOTS * STAGE_BYTES);
    for (int i = 0; error == cudaSuccess && i < STAGE_SLOTS; i++)
        error = cudaEventCreateWithFlags(&s->done[i], cudaEventDisableTiming);
    if (error != cudaSuccess)
        return lam_fail(LAM_ERR_DEVICE, "device cuda: pinned memory: %s",
                        cudaGetErrorString(error));
    return LAM_OK;
}

static void close_stage(lam_cuda_dev *dev)
{
    lam_cuda_stage *s = dev->stage;
    if (!s)
        return;
    for (int i = 0; i < STAGE_SLOTS; i++)
        if (s->done[i])
            cudaEventDestroy(s->done[i]);
    if (s->memory)
        cudaFreeHost(s->memory);
    free(s);
}

static void cuda_close(lam_dev *base)
{
    lam_cuda_dev *dev = lam_cuda(base);
    if (!dev)
        return;
    if (dev->stream)
        cudaStreamSynchronize(dev->stream);
    lam_cuda_blas_close(dev);
    close_stage(dev);
    if (dev->scratch)
        cudaFree(dev->scratch);
    if (dev->stream)
        cudaStreamDestroy(dev->stream);
    free(dev);
}

static lam_status open_parts(lam_cuda_dev *dev)
{
    LAM_TRY(check_card(dev));
    const cudaError_t error = cudaStreamCreateWithFlags(&dev->stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
        return lam_fail(LAM_ERR_DEVICE, "device cuda: %s", cudaGetErrorString(error));
    LAM_TRY(open_stage(dev));
    return lam_cuda_blas_open(dev);
}

static lam_status cuda_open(lam_dev **out, const lam_dev_options *options)
{
    *out = NULL;
    lam_cuda_dev *dev = (lam_cuda_dev *)calloc(1, sizeof *dev);
    if (!dev)
        return lam_fail(LAM_ERR_MEMORY, "device cuda: no memory for the device itself");
    dev->bf16 = !options->full_prec;
    dev->base.ops = &lam_ops_cuda;
    dev->base.act = dev->bf16 ? LAM_BF16 : LAM_F32;
    dev->base.wide = LAM_F32;
    dev->base.pad = LAM_CUDA_PAD;
    dev->base.logits = (size_t)1 << 28; /* half a gigabyte of bf16: few, large products */
    const lam_status status = open_parts(dev);
    if (status != LAM_OK) {
        cuda_close(&dev->base);
        return status;
    }
    *out = &dev->base;
    return LAM_OK;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t cuda_reserve_bytes(const lam_dev *base, const lam_work *largest)
{
    const lam_cuda_dev *dev = (const lam_cuda_dev *)base;
    size_t bytes = MIN_SCRATCH;
    bytes = larger(bytes, lam_cuda_attn_scratch(largest));
    bytes = larger(bytes, lam_cuda_gemm_scratch(dev, largest));
    bytes = larger(bytes, lam_cuda_rowwise_scratch(dev, largest));
    bytes = larger(bytes, lam_cuda_vocab_scratch(largest));
    bytes = larger(bytes, lam_cuda_density_scratch(largest));
    return larger(bytes, lam_cuda_optim_scratch());
}

/* Grows only, so that a smaller plan does not take from a larger one. */
static lam_status cuda_reserve(lam_dev *base, const lam_work *largest)
{
    lam_cuda_dev *dev = lam_cuda(base);
    const size_t bytes = cuda_reserve_bytes(base, largest);
    if (bytes <= dev->scratch_bytes)
        return LAM_OK;
    void *scratch = NULL;
    if (dev->scratch)
        cudaFree(dev->scratch); /* waits for the work that uses it */
    dev->scratch = NULL;
    dev->scratch_bytes = 0;
    if (cudaMalloc(&scratch, bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return lam_fail(LAM_ERR_MEMORY, "device cuda: no memory for %zu bytes of scratch", bytes);
    }
    dev->scratch = scratch;
    dev->scratch_bytes = bytes;
    return LAM_OK;
}

static lam_status cuda_alloc(lam_dev *base, void **out, size_t bytes)
{
    lam_cuda_dev *dev = lam_cuda(base);
    *out = NULL;
    const size_t whole = bytes > 0 ? bytes : 1;
    if (cudaMalloc(out, whole) != cudaSuccess) {
        (void)cudaGetLastError(); /* this failure is reported here and does not stick */
        *out = NULL;
        return lam_fail(LAM_ERR_MEMORY, "device cuda: no memory for %zu bytes", bytes);
    }
    note_if(dev, "alloc", cudaMemsetAsync(*out, 0, whole, dev->stream));
    return LAM_OK;
}

static void cuda_release(lam_dev *dev, void *memory)
{
    (void)dev;
    if (memory)
        cudaFree(memory);
}

static void cuda_upload(lam_dev *base, void *dst, const void *host, size_t bytes)
{
    lam_cuda_dev *dev = lam_cuda(base);
    lam_cuda_stage *s = dev->stage;
    if (bytes == 0)
        return;
    if (bytes > STAGE_BYTES) {
        note_if(dev, "upload",
                cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice, dev->stream));
        return;
    }
    const int slot = s->next;
    char *stage = s->memory + (size_t)slot * STAGE_BYTES;
    s->next = (slot + 1) % STAGE_SLOTS;
    note_if(dev, "upload", cudaEventSynchronize(s->done[slot])); /* eight uploads ago */
    memcpy(stage, host, bytes);
    note_if(dev, "upload", cudaMemcpyAsync(dst, stage, bytes, cudaMemcpyHostToDevice, dev->stream));
    note_if(dev, "upload", cudaEventRecord(s->done[slot], dev->stream));
}

static lam_status cuda_sync(lam_dev *base)
{
    lam_cuda_dev *dev = lam_cuda(base);
    note_if(dev, "sync", cudaStreamSynchronize(dev->stream));
    if (dev->failed)
        return lam_fail(LAM_ERR_DEVICE, "device cuda: %s", dev->failure);
    return LAM_OK;
}

static lam_status cuda_download(lam_dev *base, void *host, const void *src, size_t bytes)
{
    lam_cuda_dev *dev = lam_cuda(base);
    if (bytes > 0)
        note_if(dev, "download",
                cudaMemcpyAsync(host, src, bytes, cudaMemcpyDeviceToHost, dev->stream));
    return cuda_sync(base);
}

static void cuda_zero(lam_dev *base, void *dst, size_t bytes)
{
    lam_cuda_dev *dev = lam_cuda(base);
    if (bytes > 0)
        note_if(dev, "zero", cudaMemsetAsync(dst, 0, bytes, dev->stream));
}

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

/* In the order of lam_ops: C++17 has no names in initialisers. */
extern "C" const lam_ops lam_ops_cuda = {
    "cuda",
    "bf16 (float32 on request), CUDA " TEXT(__CUDACC_VER_MAJOR__) "." TEXT(
        __CUDACC_VER_MINOR__) ", cuBLASLt",
    cuda_open,
    cuda_close,
    cuda_reserve,
    cuda_reserve_bytes,
    cuda_alloc,
    cuda_release,
    cuda_upload,
    cuda_download,
    cuda_zero,
    cuda_sync,
    lam_cuda_gemm,
    lam_cuda_norm_fwd,
    lam_cuda_norm_bwd,
    lam_cuda_relu_bwd,
    lam_cuda_dropout,
    lam_cuda_copy,
    lam_cuda_colsum,
    lam_cuda_attn_fwd,
    lam_cuda_attn_bwd,
    lam_cuda_profile,
    lam_cuda_interp_fwd,
    lam_cuda_interp_bwd,
    lam_cuda_pool,
    lam_cuda_distance,
    lam_cuda_gate_fwd,
    lam_cuda_gate_bwd,
    lam_cuda_density_fwd,
    lam_cuda_density_bwd,
    lam_cuda_sticky,
    lam_cuda_embed_fwd,
    lam_cuda_embed_bwd,
    lam_cuda_xent,
    lam_cuda_gather,
    lam_cuda_scatter,
    lam_cuda_gnorm,
    lam_cuda_update,
    lam_cuda_ortho_begin,
    lam_cuda_ortho_mix,
};
