/* cuda_host/runtime.h -- memory, streams, events, graphs: the functions of CUDA that src/ops/cuda calls.
 *
 * A stream is a list of work that is done as late as it may be: when somebody waits for the stream, or
 * for an event in it.  Whoever does not wait where it is needed finds old numbers, or NaN. */
#ifndef LAM_CUDA_HOST_RUNTIME_H
#define LAM_CUDA_HOST_RUNTIME_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

enum cudaError_t {
    cudaSuccess,
    cudaErrorInvalidValue,
    cudaErrorMemoryAllocation,
    cudaErrorInvalidConfiguration,
    cudaErrorNotReady
};
enum { cudaStreamNonBlocking, cudaEventDisableTiming, cudaStreamCaptureModeRelaxed };
enum { cudaEventRecordDefault, cudaEventRecordExternal };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDeviceAttr {
    cudaDevAttrComputeCapabilityMajor,
    cudaDevAttrComputeCapabilityMinor,
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrCooperativeLaunch
};

namespace emu
{

typedef std::function<void()> job;

/* Of a graph: work, or an event that every launch records there. */
struct event;
struct node {
    job work;
    event *record;
};
typedef std::vector<node> graph;

struct stream {
    std::deque<job> jobs;
    uint64_t done = 0; /* jobs so far */
    graph *recording = NULL;

    void add(job work)
    {
        if (recording)
            recording->push_back({std::move(work), NULL});
        else
            jobs.push_back(std::move(work));
    }
    uint64_t end(void) const
    {
        return done + jobs.size();
    }
    void run(uint64_t upto)
    {
        while (done < upto) {
            const job next = std::move(jobs.front());
            jobs.pop_front();
            done++;
            next();
        }
    }
};

struct event {
    stream *in = NULL; /* NULL: never recorded */
    uint64_t upto = 0;
};

inline std::set<stream *> streams;
inline std::map<const char *, size_t> device, pinned; /* memory: where, how many bytes */
inline std::map<const void *, size_t> granted; /* shared memory of kernels that asked for it */
inline cudaError_t last;

inline cudaError_t note(cudaError_t error)
{
    last = error != cudaSuccess ? error : last;
    return error;
}

inline bool is_hopper(void)
{
    const char *wanted = getenv("CUDA_HOST_HOPPER");
    return wanted && strcmp(wanted, "0") != 0;
}

/* Told at the end where CUDA_HOST_TELL is set. */
struct count {
    long graphs = 0;
    ~count()
    {
        if (getenv("CUDA_HOST_TELL"))
            fprintf(stderr, "cuda_host: %ld graphs launched\n", graphs);
    }
};
inline count launched;

inline bool is_pinned(const void *p)
{
    auto at = pinned.upper_bound((const char *)p);
    return at != pinned.begin() && (--at)->first + at->second > p;
}

} // namespace emu

typedef emu::stream *cudaStream_t;
typedef emu::event *cudaEvent_t;
typedef emu::graph *cudaGraph_t, *cudaGraphExec_t;

/* ---- the card ------------------------------------------------------------------------------------- */

inline cudaError_t cudaGetLastError(void)
{
    return std::exchange(emu::last, cudaSuccess);
}

inline const char *cudaGetErrorString(cudaError_t error)
{
    static const char *const text[] = {"no error", "invalid argument", "out of memory",
                                       "invalid configuration argument", "device not ready"};
    return text[error];
}

inline cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 1;
    return cudaSuccess;
}

inline cudaError_t cudaGetDevice(int *number)
{
    *number = 0;
    return cudaSuccess;
}

inline cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}

/* Processes on one host have a card each, unless CUDA_HOST_ONE_CARD is set. */
inline cudaError_t cudaDeviceGetPCIBusId(char *name, int size, int)
{
    const char *rank = getenv("CUDA_HOST_ONE_CARD") ? NULL : getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    snprintf(name, (size_t)size, "0000:%s:00.0", rank ? rank : "0");
    return cudaSuccess;
}

/* 8.0, or 9.0 where CUDA_HOST_HOPPER is set, for whose own kernels the code asks then; few multiprocessors, so that
 * blocks have several turns. */
inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr name, int)
{
    const int of_card[] = {emu::is_hopper() ? 9 : 8, 0, 4, 0};
    *value = of_card[name];
    return cudaSuccess;
}

inline cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

/* ---- streams and events --------------------------------------------------------------------------- */

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, int)
{
    *out = *emu::streams.insert(new emu::stream()).first;
    return cudaSuccess;
}

inline cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    if (s->recording)
        return emu::note(cudaErrorInvalidValue);
    s->run(s->end());
    return cudaSuccess;
}

/* Each question is one job further. */
inline cudaError_t cudaStreamQuery(cudaStream_t s)
{
    if (s->recording)
        return emu::note(cudaErrorInvalidValue);
    if (!s->jobs.empty())
        s->run(s->done + 1);
    return s->jobs.empty() ? cudaSuccess : emu::note(cudaErrorNotReady);
}

inline cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    s->run(s->end());
    emu::streams.erase(s);
    delete s;
    return cudaSuccess;
}

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, int)
{
    *out = new emu::event();
    return cudaSuccess;
}

inline cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return cudaSuccess;
}

/* During a capture only what is External is of use outside the graph. */
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags)
{
    if ((s->recording != NULL) != (flags == cudaEventRecordExternal))
        return emu::note(cudaErrorInvalidValue);
    if (s->recording)
        s->recording->push_back({NULL, e});
    else
        *e = {s, s->end()};
    return cudaSuccess;
}

inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    return cudaEventRecordWithFlags(e, s, cudaEventRecordDefault);
}

inline cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    if (e->in)
        e->in->run(e->upto);
    return cudaSuccess;
}

/* For the record there is now: a later one, of a graph that has not been launched yet, is not waited for. */
inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, int)
{
    if (e->in)
        s->add([first = *e] { first.in->run(first.upto); });
    return cudaSuccess;
}

/* ---- graphs --------------------------------------------------------------------------------------- */

inline cudaError_t cudaStreamBeginCapture(cudaStream_t s, int)
{
    s->recording = new emu::graph();
    return cudaSuccess;
}

inline cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out)
{
    *out = std::exchange(s->recording, (emu::graph *)NULL);
    return cudaSuccess;
}

/* Fails where CUDA_HOST_NO_GRAPHS is set: a card without memory for a graph. */
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, int)
{
    if (getenv("CUDA_HOST_NO_GRAPHS"))
        return cudaErrorMemoryAllocation;
    *out = new emu::graph(*g);
    return cudaSuccess;
}

inline cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s)
{
    emu::launched.graphs++;
    for (const emu::node &n : *g)
        if (n.record)
            cudaEventRecord(n.record, s);
        else
            s->add(n.work);
    return cudaSuccess;
}

inline cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    delete g;
    return cudaSuccess;
}

inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g)
{
    return cudaGraphDestroy(g);
}

/* ---- memory --------------------------------------------------------------------------------------- */

inline cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
    *left = *total = (size_t)1 << 40;
    for (const auto &block : emu::device)
        *left -= block.second;
    return cudaSuccess;
}

inline cudaError_t cudaMalloc(void **out, size_t bytes)
{
    if (posix_memalign(out, 256, bytes) != 0)
        return emu::note(cudaErrorMemoryAllocation);
    memset(*out, 0xff, bytes); /* NaN */
    emu::device[(char *)*out] = bytes;
    return cudaSuccess;
}

/* Waits for all work, as on a GPU. */
inline cudaError_t cudaFree(void *p)
{
    for (emu::stream *s : emu::streams)
        s->run(s->end());
    emu::device.erase((char *)p);
    free(p);
    return cudaSuccess;
}

inline cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    *out = malloc(bytes);
    emu::pinned[(char *)*out] = bytes;
    return *out ? cudaSuccess : emu::note(cudaErrorMemoryAllocation);
}

inline cudaError_t cudaFreeHost(void *p)
{
    emu::pinned.erase((char *)p);
    free(p);
    return cudaSuccess;
}

/* From memory that is not pinned the driver takes a copy before it returns; for such memory it waits. */
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t s)
{
    if (kind == cudaMemcpyHostToDevice && !emu::is_pinned(from)) {
        const std::vector<char> kept((const char *)from, (const char *)from + bytes);
        s->add([=] { memcpy(to, kept.data(), bytes); });
        return cudaSuccess;
    }
    s->add([=] { memcpy(to, from, bytes); });
    const bool waits = kind == cudaMemcpyDeviceToHost && !emu::is_pinned(to);
    return waits ? cudaStreamSynchronize(s) : cudaSuccess;
}

inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t s)
{
    s->add([=] { memset(to, value, bytes); });
    return cudaSuccess;
}

struct cudaFuncAttributes {
    int maxDynamicSharedSizeBytes;
};

inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *kernel)
{
    out->maxDynamicSharedSizeBytes =
        emu::granted.count(kernel) ? (int)emu::granted[kernel] : 48 << 10;
    return cudaSuccess;
}

/* The most shared memory a block may have. */
inline cudaError_t cudaFuncSetAttribute(const void *kernel, int, int bytes)
{
    if (bytes > (emu::is_hopper() ? 227 : 163) << 10)
        return emu::note(cudaErrorInvalidValue);
    emu::granted[kernel] = (size_t)bytes;
    return cudaSuccess;
}

#endif
