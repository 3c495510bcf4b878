/* cuda/repeat.cu -- work that repeats itself is recorded as a CUDA graph and played.
 *
 * Starting an operation costs the host a few microseconds, as much as a small kernel takes; a graph of
 * hundreds costs as much as one.  Work of a new key first runs as it is, so that everything done once (loading
 * kernels, choosing products) is done; the second time it is recorded and played, from then on played alone.
 *
 * Uploads change from time to time, so they are not part of a recording: while one is made they go to
 * another stream, and while it is played the caller's code runs over a table of operations that do
 * nothing but upload (table.cu). */
#include "ops/cuda/cuda_int.cuh"

#include <stdlib.h>
#include <string.h>

enum { RECORDINGS = 8 }; /* of a tape; the oldest one gives way */

struct recording {
    uint64_t key; /* 0: free */
    unsigned moved;
    cudaGraphExec_t graph; /* NULL: seen once, not recorded yet */
};

struct lam_tape {
    recording list[RECORDINGS];
    int next;
    int broken; /* recording failed: not tried again */
};

static recording *find(lam_tape *tape, uint64_t key, unsigned moved)
{
    for (int i = 0; i < RECORDINGS; i++) {
        recording *r = &tape->list[i];
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

static void remember(lam_tape *tape, uint64_t key)
{
    recording *r = &tape->list[tape->next];
    tape->next = (tape->next + 1) % RECORDINGS;
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
    dev->recording = 1;
    work(arg);
    dev->recording = 0;
    error = cudaStreamEndCapture(dev->stream, &graph);
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(out, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    /* also where there is no graph to play */
    const cudaError_t after = order(dev->side, dev->stream);
    return error != cudaSuccess ? error : after;
}

/* Records work(arg) and plays it once.  Nothing has run on the device before the launch succeeds, so where any
 * part of this fails, in an operation too, the work is done as it is, now and from now on. */
static void record(lam_cuda_dev *dev, lam_tape *tape, recording *r, void (*work)(void *), void *arg)
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
    tape->broken = 1;
    work(arg);
}

static void play(lam_cuda_dev *dev, const recording *r, void (*work)(void *), void *arg)
{
    const lam_ops *ops = dev->base.ops;
    dev->base.ops = lam_cuda_quiet();
    work(arg);
    dev->base.ops = ops;
    lam_cuda_note_if(dev, "play", cudaGraphLaunch(r->graph, dev->stream));
}

void lam_cuda_repeat(lam_dev *base, lam_tape **tape, uint64_t key, void (*work)(void *), void *arg)
{
    lam_cuda_dev *dev = lam_cuda(base);
    if (!*tape && key != 0 && dev->repeats)
        *tape = (lam_tape *)calloc(1, sizeof **tape); /* without memory there is no tape */
    recording *r = *tape && key != 0 && !(*tape)->broken ? find(*tape, key, dev->moved) : NULL;
    if (r && r->graph) {
        play(dev, r, work, arg);
    } else if (r) {
        record(dev, *tape, r, work, arg);
    } else {
        work(arg);
        if (*tape && key != 0)
            remember(*tape, key);
    }
}

void lam_cuda_forget(lam_dev *base, lam_tape *tape)
{
    if (!tape)
        return;
    cudaStreamSynchronize(lam_cuda(base)->stream);
    for (int i = 0; i < RECORDINGS; i++)
        if (tape->list[i].graph)
            cudaGraphExecDestroy(tape->list[i].graph);
    free(tape);
}
