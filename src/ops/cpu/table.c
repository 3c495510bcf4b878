/* cpu/table.c -- the cpu device (threads, host memory, scratch) and its table. */
#include "core/arena.h"
#include "core/cpus.h"
#include "ops/cpu/exact.h"
#include "ops/cpu/gemv.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef LAM_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl_version.h>
#endif

/* The table of this level (cmake/levels.cmake). */
extern const lam_ops LAM_CPU_TABLE;
static const lam_ops exact_table;

enum { MAX_THREADS = 1024 };

/* Blocks this large are aligned to huge pages and ask for them. */
static const size_t huge_page = (size_t)2 << 20;

/* As many as asked for, or one for each CPU this process may use. */
static int thread_count(int asked)
{
    const int n = asked > 0 ? asked : lam_cpus();
    return n < MAX_THREADS ? n : MAX_THREADS;
}

static lam_status cpu_open(lam_dev **out, const lam_dev_options *options)
{
    *out = NULL;
    /* libgomp ends the process when it cannot have a thread. */
    if (options->threads < 0 || options->threads > MAX_THREADS)
        return lam_fail(LAM_ERR_ARG, "device cpu: %d threads, must be 0 (all) to %d",
                        options->threads, MAX_THREADS);
    lam_cpu_dev *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return lam_fail(LAM_ERR_MEMORY, "device cpu: no memory for the device itself");
    cpu->base = (lam_dev){.ops = &LAM_CPU_TABLE,
                          .act = LAM_F32,
                          .wide = LAM_F32,
                          .tolerance = 1e-4,
                          .macs_per_s = 1e11, /* two cores */
                          .pad = 1,
                          .narrow = 1,
                          .max_memory = options->max_memory};
    cpu->threads = thread_count(options->threads);
    cpu->base.together = (size_t)cpu->threads << 18; /* 1 MB each: what a core keeps near */
    if (options->exact) {
        cpu->base.ops = &exact_table;
        cpu->base.exact = 1;
        cpu->base.tolerance = 6e-2; /* weights have 8 bits */
    }
    *out = &cpu->base;
    return LAM_OK;
}

static void cpu_close(lam_dev *dev)
{
    if (!dev)
        return;
    free(lam_cpu(dev)->copies);
    free(lam_cpu(dev)->scratch);
    free(dev);
}

static lam_status cpu_alloc(lam_dev *dev, void **out, size_t bytes)
{
    *out = NULL;
    LAM_TRY(lam_dev_ask(dev, "device cpu", bytes));
    const size_t align = bytes >= huge_page ? huge_page : LAM_ALIGN;
    const size_t whole = (bytes / align + 1) * align; /* never 0 */
    if (whole >= bytes)
        *out = aligned_alloc(align, whole);
    if (!*out)
        return lam_fail(LAM_ERR_MEMORY, "device cpu: no memory for %zu bytes", bytes);
    if (bytes >= huge_page)
        (void)madvise(*out, whole, MADV_HUGEPAGE); /* a wish; without it the pages are small */
    memset(*out, 0, whole);
    return LAM_OK;
}

static void cpu_release(lam_dev *dev, void *memory)
{
    (void)dev;
    free(memory);
}

static size_t scratch_bytes(const lam_dev *dev, const lam_work *largest)
{
    const int threads = ((const lam_cpu_dev *)dev)->threads;
    if (dev->exact) {
        const size_t gemm = lam_cpu_exact_gemm_scratch(threads);
        const size_t exact = lam_cpu_exact_attn_scratch(largest, threads);
        return exact > gemm ? exact : gemm;
    }
    const size_t attn = lam_cpu_attn_scratch(largest, threads);
    const size_t rowwise = lam_cpu_rowwise_scratch(largest);
    const size_t narrow = largest->narrow ? lam_gemm_narrow_scratch() : 0;
    const size_t most = attn > rowwise ? attn : rowwise;
    return most > narrow ? most : narrow;
}

static size_t copies_bytes(const lam_dev *dev)
{
    return dev->exact ? 0 : lam_gemm_copies_bytes(((const lam_cpu_dev *)dev)->threads);
}

static size_t cpu_reserve_bytes(const lam_dev *dev, const lam_work *largest)
{
    return scratch_bytes(dev, largest) + copies_bytes(dev);
}

int lam_cpu_has_room(size_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *const room = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
    if (room != MAP_FAILED)
        munmap(room, bytes);
    return room != MAP_FAILED;
}

/* OpenMP ends the process where it cannot start a thread, and oneDNN where it cannot generate its kernels.
 * Both happen in operations, which cannot fail: so whoever is about to compute is refused here. */
static lam_status ask_room(lam_cpu_dev *cpu)
{
    pthread_attr_t attr;
    size_t stack = 0;
    if (!cpu->has_room && pthread_getattr_default_np(&attr) == 0) {
        pthread_attr_getstacksize(&attr, &stack);
        pthread_attr_destroy(&attr);
    }
    const size_t bytes = (size_t)(cpu->threads - 1) * stack + LAM_GEMM_KERNELS;
    if (!cpu->has_room && !lam_cpu_has_room(bytes))
        return lam_fail(LAM_ERR_MEMORY,
                        "device cpu: no %zu MB of address space for the stacks of %d threads and "
                        "for kernels (ulimit -v)",
                        bytes >> 20, cpu->threads);
    cpu->has_room = 1;
    return LAM_OK;
}

/* Grows only, so that a smaller plan does not take from a larger one. */
static lam_status cpu_reserve(lam_dev *dev, const lam_work *largest)
{
    lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t bytes = scratch_bytes(dev, largest);
    void *scratch, *copies;
    LAM_TRY(ask_room(cpu));
    if (!cpu->copies && copies_bytes(dev) > 0) {
        LAM_TRY(cpu_alloc(dev, &copies, copies_bytes(dev)));
        cpu->copies = copies;
    }
    if (bytes <= cpu->scratch_bytes)
        return LAM_OK;
    LAM_TRY(cpu_alloc(dev, &scratch, bytes));
    free(cpu->scratch);
    cpu->scratch = scratch;
    cpu->scratch_bytes = bytes;
    return LAM_OK;
}

static void cpu_upload(lam_dev *dev, void *dst, const void *host, size_t bytes)
{
    (void)dev;
    if (bytes)
        memcpy(dst, host, bytes);
}

static lam_status cpu_sync(lam_dev *dev)
{
    if (lam_cpu(dev)->broken[0])
        return lam_fail(LAM_ERR_DEVICE, "device cpu: %s", lam_cpu(dev)->broken);
    return LAM_OK;
}

static lam_status cpu_download(lam_dev *dev, void *host, const void *src, size_t bytes)
{
    if (bytes)
        memcpy(host, src, bytes);
    return cpu_sync(dev);
}

static void cpu_zero(lam_dev *dev, void *dst, size_t bytes)
{
    const lam_copy all = {.blocks = 1, .count = bytes / 4, .type = LAM_INT, .out = {dst, 0}};
    lam_cpu_copy(dev, &all);
    if (bytes % 4)
        memset((char *)dst + bytes / 4 * 4, 0, bytes % 4);
}

static size_t cpu_peak(lam_dev *dev)
{
    (void)dev;
    return 0;
}

/* Starting an operation costs nothing here. */
static void cpu_repeat(lam_dev *dev, lam_graphs **graphs, uint64_t key, void (*work)(void *),
                       void *arg)
{
    (void)dev, (void)graphs, (void)key;
    work(arg);
}

static void cpu_free_graphs(lam_dev *dev, lam_graphs *graphs)
{
    (void)dev, (void)graphs;
}

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

#ifdef LAM_HAVE_ONEDNN
#define GEMM_TEXT "oneDNN " TEXT(DNNL_VERSION_MAJOR) "." TEXT(DNNL_VERSION_MINOR)
#else
#define GEMM_TEXT "CBLAS"
#endif

#define SERVICES                                                                                   \
    .open = cpu_open, .close = cpu_close, .reserve = cpu_reserve,                                  \
    .reserve_bytes = cpu_reserve_bytes, .alloc = cpu_alloc, .release = cpu_release,                \
    .upload = cpu_upload, .download = cpu_download, .zero = cpu_zero, .sync = cpu_sync,            \
    .peak = cpu_peak, .left = lam_host_left, .repeat = cpu_repeat, .replay = lam_host_replay,      \
    .free_graphs = cpu_free_graphs

#define ENTRY(name, argument) .name = lam_cpu_##name,

const lam_ops LAM_CPU_TABLE = {
    LAM_KERNEL_OPS(ENTRY) LAM_SHARED_OPS(LAM_HOST_ENTRY) /* every operation; then the device */
        .name = "cpu",
    .summary = "float32, " GEMM_TEXT ", " LAM_CPU_LEVEL,
    SERVICES,
};

#define EXACT_ENTRY(name, argument) .name = lam_cpu_exact_##name,

static const lam_ops exact_table = {
    LAM_EXACT_OPS(EXACT_ENTRY) LAM_OTHER_OPS(LAM_INEXACT_ENTRY) LAM_SHARED_OPS(LAM_HOST_ENTRY) /* */
        .name = "cpu",
    .summary = "exact, integers and float32, " LAM_CPU_LEVEL,
    SERVICES,
};
