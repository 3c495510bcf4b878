/* cuda/repeat.cu -- work that repeats itself is captured as a CUDA graph and replayed.
 *
 * Launching a kernel costs the host a few microseconds, as much as a small kernel takes; a graph of hundreds costs as
 * much as one.  Work of a new key first runs as it is, so that everything done once (loading kernels, choosing GEMM
 * algorithms) is done; the second time it is captured and replayed, from then on replayed alone.
 *
 * Uploads differ from one replay to the next, so they are not part of a graph: during capture they go to
 * another stream, and during a replay the caller's code runs over a table of operations that do nothing
 * but upload (table.cu).
 *
 * Another context may wait for a point within such work (mark, after): the event is a node of the graph, and every
 * launch records it. */
#include "ops/cuda/cuda_int.cuh"

#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 8 }; /* that are kept; the oldest one gives way */

struct captured {
    uint64_t key; /* 0: free */
    unsigned moved;
    cudaGraphExec_t graph; /* NULL: seen once, not captured yet */
};

struct lam_graphs {
    captured list[GRAPHS];
    int next;
    int broken; /* capture failed: not tried again */
};

static captured *find(lam_graphs *graphs, uint64_t key, unsigned moved)
{
    for (int i = 0; i < GRAPHS; i++) {
        captured *r = &graphs->list[i];
        if (r->key != key)
            continue;
        if (r->graph && r->moved != moved) { /* its scratch is elsewhere now */
            cudaGraphExecDestroy(r->graph);
            r->graph = NULL;
        }
        return r;
    }
    return NULL;
}

static void remember(lam_graphs *graphs, uint64_t key)
{
    captured *r = &graphs->list[graphs->next];
    graphs->next = (graphs->next + 1) % GRAPHS;
    if (r->graph)
        cudaGraphExecDestroy(r->graph);
    *r = {key, 0, NULL};
}

/* Makes `after` wait for what is in `before` now. */
static cudaError_t order(cudaStream_t before, cudaStream_t after)
{
    cudaEvent_t event;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error != cudaSuccess)
        return error;
    error = cudaEventRecord(event, before);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(after, event, 0);
    cudaEventDestroy(event);
    return error;
}

/* Captures work(arg) as a graph.  Uploads go to the side stream meanwhile, behind all earlier work. */
static cudaError_t capture(lam_cuda_dev *dev, cudaGraphExec_t *out, void (*work)(void *), void *arg)
{
    cudaGraph_t graph = NULL;
    cudaError_t error = order(dev->stream, dev->side);
    if (error == cudaSuccess)
        error = cudaStreamBeginCapture(dev->stream, cudaStreamCaptureModeRelaxed);
    if (error != cudaSuccess)
        return error;
    dev->capturing = 1;
    work(arg);
    lam_cuda_flush(dev);
    dev->capturing = 0;
    error = cudaStreamEndCapture(dev->stream, &graph);
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(out, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    /* also where there is no graph to launch */
    const cudaError_t after = order(dev->side, dev->stream);
    return error != cudaSuccess ? error : after;
}

/* Captures work(arg) and replays it once.  Nothing has run on the device before the launch succeeds, so where any
 * part of this fails, in an operation too, the work is done as it is, now and from now on. */
static void capture_and_launch(lam_cuda_dev *dev, lam_graphs *graphs, captured *r,
                               void (*work)(void *), void *arg)
{
    const int failed = dev->failed;
    cudaError_t error = capture(dev, &r->graph, work, arg);
    if (error == cudaSuccess && dev->failed == failed)
        error = cudaGraphLaunch(r->graph, dev->stream);
    if (error == cudaSuccess && dev->failed == failed) {
        r->moved = dev->moved;
        return;
    }
    (void)cudaGetLastError();
    if (r->graph)
        cudaGraphExecDestroy(r->graph);
    r->graph = NULL;
    dev->failed = failed;
    graphs->broken = 1;
    work(arg);
}

static void replay(lam_cuda_dev *dev, const captured *r, void (*work)(void *), void *arg)
{
    const lam_ops *ops = dev->base.ops;
    dev->base.ops = lam_cuda_quiet();
    work(arg);
    dev->base.ops = ops;
    lam_cuda_note_if(dev, "graph replay", cudaGraphLaunch(r->graph, dev->stream));
}

void lam_cuda_repeat(lam_dev *base, lam_graphs **graphs, uint64_t key, void (*work)(void *),
                     void *arg)
{
    lam_cuda_dev *dev = lam_cuda(base);
    if (!*graphs && key != 0 && dev->repeats)
        *graphs = (lam_graphs *)calloc(1, sizeof **graphs); /* without memory there are no graphs */
    captured *r = *graphs && key != 0 && !(*graphs)->broken ? find(*graphs, key, dev->moved) : NULL;
    if (r && r->graph) {
        replay(dev, r, work, arg);
    } else if (r) {
        capture_and_launch(dev, *graphs, r, work, arg);
    } else {
        work(arg);
        if (*graphs && key != 0)
            remember(*graphs, key);
    }
}

int lam_cuda_replay(lam_dev *base, lam_graphs *graphs, uint64_t key)
{
    lam_cuda_dev *dev = lam_cuda(base);
    const captured *r =
        graphs && key != 0 && !graphs->broken ? find(graphs, key, dev->moved) : NULL;
    if (!r || !r->graph)
        return 0;
    lam_cuda_note_if(dev, "graph replay", cudaGraphLaunch(r->graph, dev->stream));
    return 1;
}

void lam_cuda_free_graphs(lam_dev *base, lam_graphs *graphs)
{
    if (!graphs)
        return;
    cudaStreamSynchronize(lam_cuda(base)->stream);
    for (int i = 0; i < GRAPHS; i++)
        if (graphs->list[i].graph)
            cudaGraphExecDestroy(graphs->list[i].graph);
    free(graphs);
}

/* ---- points that another context waits for ---- */

void lam_cuda_mark(lam_dev *base, int i)
{
    lam_cuda_dev *dev = lam_cuda(base);
    cudaError_t error = cudaSuccess;
    assert(i >= 0 && i < LAM_MARKS);
    if (base->ops == lam_cuda_quiet())
        return; /* it is in the graph that will be launched */
    lam_cuda_flush(dev);
    if (!dev->marks[i])
        error = cudaEventCreateWithFlags(&dev->marks[i], cudaEventDisableTiming);
    /* External: an ordinary record would be about the order within the graph alone. */
    if (error == cudaSuccess)
        error = cudaEventRecordWithFlags(dev->marks[i], dev->stream,
                                         dev->capturing ? cudaEventRecordExternal
                                                        : cudaEventRecordDefault);
    lam_cuda_note_if(dev, "mark", error);
}

void lam_cuda_after(lam_dev *base, lam_dev *other, int i)
{
    lam_cuda_dev *dev = lam_cuda(base);
    const cudaEvent_t mark = lam_cuda(other)->marks[i];
    lam_cuda_note_if(dev, "after",
                     mark ? cudaStreamWaitEvent(dev->stream, mark, 0) : cudaErrorInvalidValue);
}
