/* cuda/table.cu -- the cuda device (a stream, scratch, a sticky failure) and its table. */
#include "ops/cuda/blas.cuh"
#include "ops/cuda/exact.cuh"

extern "C" {
#include "core/budget.h"
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_SCRATCH = 64 << 20, /* bytes: what small models share */
    MIN_MAJOR = 8           /* compute capability: bf16 on tensor cores */
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
    (void)cudaGetLastError();
    lam_cuda_note_text(dev, op, cudaGetErrorString(error));
}

extern "C" int lam_cuda_present(void)
{
    int n = 0, major = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess && n > 0 &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
           major >= MIN_MAJOR;
}

extern "C" const lam_ops lam_ops_cuda_exact;

static lam_status check_card(lam_cuda_dev *dev, int wanted)
{
    int n = 0, card = 0, major = 0, minor = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error != cudaSuccess || n == 0)
        return lam_fail(LAM_ERR_UNSUPPORTED,
                        "device cuda: no CUDA GPU found (%s): take the device cpu, or see "
                        "nvidia-smi and CUDA_VISIBLE_DEVICES",
                        error != cudaSuccess ? cudaGetErrorString(error) : "none is visible");
    card = wanted % n;
    error = wanted > 0 ? cudaSetDevice(card) : cudaGetDevice(&card); /* what is current stays */
    if (error == cudaSuccess)
        error = cudaDeviceGetPCIBusId(dev->link.card, sizeof dev->link.card, card);
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
    dev->chains = dev->chains && major >= 9; /* Hopper and later can */
    if (cudaDeviceGetAttribute(&dev->together, cudaDevAttrCooperativeLaunch, card) != cudaSuccess)
        dev->together = 0;
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver < 12010)
        dev->persistent = 0; /* its parameters are too many */
    return LAM_OK;
}

static void cuda_close(lam_dev *base)
{
    lam_cuda_dev *dev = lam_cuda(base);
    if (!dev)
        return;
    if (dev->stream)
        cudaStreamSynchronize(dev->stream);
    lam_cuda_blas_close(dev);
    lam_cuda_stage_close(dev);
    if (dev->scratch)
        cudaFree(dev->scratch);
    if (dev->tickets)
        cudaFree(dev->tickets);
    for (int i = 0; i < LAM_MARKS; i++)
        if (dev->marks[i])
            cudaEventDestroy(dev->marks[i]);
    if (dev->side)
        cudaStreamDestroy(dev->side);
    if (dev->stream)
        cudaStreamDestroy(dev->stream);
    free(dev->kept);
    free(dev);
}

static int cuda_idle(lam_dev *base)
{
    const bool busy = cudaStreamQuery(lam_cuda(base)->stream) == cudaErrorNotReady;
    if (busy)
        (void)cudaGetLastError(); /* the runtime keeps even this answer, and NCCL may ask it */
    return !busy;
}

static lam_status open_parts(lam_cuda_dev *dev, int card)
{
    LAM_TRY(check_card(dev, card));
    const size_t tickets = (LAM_CUDA_TICKETS + 1) * sizeof *dev->tickets;
    size_t total = 0;
    cudaError_t error = cudaMemGetInfo(&dev->free_at_open, &total);
    dev->least_free = dev->free_at_open;
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&dev->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&dev->side, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&dev->tickets, tickets);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(dev->tickets, 0, tickets, dev->stream);
    if (error != cudaSuccess)
        return lam_fail(LAM_ERR_DEVICE, "device cuda: %s", cudaGetErrorString(error));
    LAM_TRY(lam_cuda_stage_open(dev));
    return lam_cuda_blas_open(dev);
}

static lam_status cuda_open(lam_dev **out, const lam_dev_options *options)
{
    *out = NULL;
    lam_cuda_dev *dev = (lam_cuda_dev *)calloc(1, sizeof *dev);
    if (!dev)
        return lam_fail(LAM_ERR_MEMORY, "device cuda: no memory for the device itself");
    const char *graphs = getenv("LAMEMO_GRAPHS"); /* 0: every operation is started by the host */
    dev->repeats = !graphs || strcmp(graphs, "0") != 0;
    /* 0: decoding's kernels do not overlap; 1: those of exact arithmetic do, too, which is not faster. */
    const char *chains = getenv("LAMEMO_PDL");
    dev->chains = chains ? strcmp(chains, "0") != 0 : !options->exact;
    /* 0: each operation of a token is a kernel. */
    const char *persistent = getenv("LAMEMO_PERSISTENT");
    dev->persistent = !persistent || strcmp(persistent, "0") != 0;
    dev->bf16 = !options->full_prec && !options->exact;
    dev->base.ops = options->exact ? &lam_ops_cuda_exact : &lam_ops_cuda;
    dev->base.exact = dev->base.narrow = options->exact != 0;
    dev->base.act = dev->bf16 ? LAM_BF16 : LAM_F32;
    dev->base.wide = LAM_F32;
    dev->base.own_memory = 1;
    dev->base.tolerance = options->exact ? 6e-2 : 1e-3;
    dev->base.macs_per_s = 1e13;
    dev->base.pad = LAM_CUDA_PAD;
    dev->base.max_memory = options->max_memory;
    dev->base.logits = (size_t)1 << 28; /* half a gigabyte of bf16: few, large products */
    const lam_status status = open_parts(dev, options->card);
    if (status != LAM_OK) {
        cuda_close(&dev->base);
        (void)cudaGetLastError(); /* it has been told; the next device is not to meet it */
        return status;
    }
    dev->link.stream = dev->stream;
    dev->link.idle = cuda_idle;
    dev->link.mark = lam_cuda_mark;
    dev->link.after = lam_cuda_after;
    dev->base.link = &dev->link;
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
    if (base->exact)
        return larger(larger(bytes, lam_cuda_exact_scratch(largest)),
                      lam_cuda_vocab_scratch(largest));
    bytes = larger(bytes, lam_cuda_attn_scratch(largest));
    bytes = larger(bytes, lam_cuda_gemm_scratch(dev, largest));
    bytes = larger(bytes, lam_cuda_rowwise_scratch(dev, largest));
    bytes = larger(bytes, lam_cuda_vocab_scratch(largest));
    bytes = larger(bytes, lam_cuda_density_scratch(largest));
    bytes = larger(bytes, lam_cuda_next_scratch());
    bytes = larger(bytes, lam_cuda_optim_scratch());
    bytes = larger(bytes, lam_cuda_ortho_scratch());
    return larger(bytes, lam_cuda_tally_scratch());
}

/* The most of the card's memory that was taken since open, by this process or others. */
static size_t cuda_peak(lam_dev *base)
{
    lam_cuda_dev *dev = lam_cuda(base);
    size_t now = 0, total = 0;
    if (cudaMemGetInfo(&now, &total) == cudaSuccess && now < dev->least_free)
        dev->least_free = now;
    return dev->free_at_open - dev->least_free;
}

/* What the card has, or what max_memory leaves beside what was taken since open. */
static size_t cuda_left(lam_dev *base)
{
    const lam_cuda_dev *dev = lam_cuda(base);
    size_t now = 0, total = 0;
    if (cudaMemGetInfo(&now, &total) != cudaSuccess)
        return SIZE_MAX;
    const size_t limit = lam_budget_limit(base->max_memory);
    const size_t taken = dev->free_at_open > now ? dev->free_at_open - now : 0;
    return limit == 0 ? now : limit > taken ? limit - taken : 0;
}

/* A failure is reported here and does not stick; one that an earlier operation left behind is called by
 * its name. */
static lam_status take_memory(lam_cuda_dev *dev, void **out, size_t bytes, const char *what)
{
    *out = NULL;
    LAM_TRY(lam_dev_ask(&dev->base, "device cuda", bytes));
    const cudaError_t error = cudaMalloc(out, bytes);
    if (error == cudaSuccess)
        return LAM_OK;
    (void)cudaGetLastError();
    *out = NULL;
    if (error == cudaErrorMemoryAllocation)
        return lam_fail(LAM_ERR_MEMORY, "device cuda: no memory for %zu bytes%s", bytes, what);
    return lam_fail(LAM_ERR_DEVICE, "device cuda: %s", cudaGetErrorString(error));
}

/* Grows only, so that a smaller plan does not take from a larger one.  The old scratch goes first, for
 * both may not fit; where the new one does not either, those who planned with the old one get its size
 * again: they may be other sessions. */
static lam_status cuda_reserve(lam_dev *base, const lam_work *largest)
{
    lam_cuda_dev *dev = lam_cuda(base);
    LAM_TRY(lam_cuda_check(largest));
    const size_t bytes = cuda_reserve_bytes(base, largest), before = dev->scratch_bytes;
    if (bytes <= before)
        return LAM_OK;
    if (dev->scratch)
        cudaFree(dev->scratch); /* waits for the work that uses it */
    dev->moved++;
    const lam_status status = take_memory(dev, &dev->scratch, bytes, " of scratch");
    dev->scratch_bytes = status == LAM_OK ? bytes : before;
    if (status != LAM_OK && before > 0)
        lam_cuda_note_if(dev, "reserve", cudaMalloc(&dev->scratch, before));
    (void)cuda_peak(base);
    return status;
}

static lam_status cuda_alloc(lam_dev *base, void **out, size_t bytes)
{
    lam_cuda_dev *dev = lam_cuda(base);
    *out = NULL;
    const size_t whole = bytes > 0 ? bytes : 1;
    LAM_TRY(take_memory(dev, out, whole, ""));
    lam_cuda_note_if(dev, "alloc", cudaMemsetAsync(*out, 0, whole, dev->stream));
    (void)cuda_peak(base);
    return LAM_OK;
}

static void cuda_release(lam_dev *dev, void *memory)
{
    (void)dev;
    if (memory)
        cudaFree(memory);
}

lam_status lam_cuda_sync(lam_dev *base)
{
    lam_cuda_dev *dev = lam_cuda(base);
    lam_cuda_note_if(dev, "sync", cudaStreamSynchronize(dev->stream));
    if (dev->failed)
        return lam_fail(LAM_ERR_DEVICE, "device cuda: %s", dev->failure);
    return LAM_OK;
}

static void cuda_zero(lam_dev *base, void *dst, size_t bytes)
{
    lam_cuda_dev *dev = lam_cuda(base);
    lam_cuda_flush(dev);
    if (bytes > 0)
        lam_cuda_note_if(dev, "zero", cudaMemsetAsync(dst, 0, bytes, dev->stream));
}

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

template <typename A>
static void quiet(lam_dev *, const A *)
{
}

static void quiet_zero(lam_dev *, void *, size_t) {}

/* In the order of lam_ops: C++17 has no names in initialisers. */
#define TABLE(what, zero, entries)                                                                 \
    {                                                                                              \
        "cuda", what, cuda_open, cuda_close, cuda_reserve, cuda_reserve_bytes, cuda_alloc,         \
            cuda_release, lam_cuda_upload, lam_cuda_download, zero, lam_cuda_sync, cuda_peak,      \
            cuda_left, lam_cuda_repeat, lam_cuda_replay, lam_cuda_free_graphs, entries             \
    }
#define REAL(name, argument)  lam_cuda_##name,
#define QUIET(name, argument) quiet<argument>,
#define EXACT(name, argument) lam_cuda_exact_##name,
#define NONE(name, argument)  lam_inexact_##name,
#define CUDA_TEXT             "CUDA " TEXT(__CUDACC_VER_MAJOR__) "." TEXT(__CUDACC_VER_MINOR__)

extern "C" const lam_ops lam_ops_cuda =
    TABLE("bf16 (float32 on request), " CUDA_TEXT ", cuBLASLt", cuda_zero, LAM_OPS(REAL));
extern "C" const lam_ops lam_ops_cuda_exact =
    TABLE("exact, integers and float32, " CUDA_TEXT, cuda_zero,
          LAM_EXACT_OPS(EXACT) LAM_OTHER_OPS(NONE) LAM_SHARED_OPS(REAL));
static const lam_ops quiet_ops = TABLE("", quiet_zero, LAM_OPS(QUIET));

const lam_ops *lam_cuda_quiet(void)
{
    return &quiet_ops;
}
