/* cuda/transfer.cu -- between the host's memory and the card's.
 *
 * Uploads go through a ring of pinned memory, so that the caller's memory is free at once and the
 * stream is not stalled; larger ones are copied by the driver, which has the same effect later.  Small
 * downloads go through pinned memory too: the driver's own way takes longer. */
#include "ops/cuda/cuda_int.cuh"

#include <stdlib.h>
#include <string.h>

enum {
    STAGE_SLOTS = 8,
    STAGE_BYTES = 512 << 10,  /* of a slot */
    DOWNLOAD_BYTES = 2 << 20, /* the logits of a token of WikiText-103 and more */
};

struct lam_cuda_stage {
    char *memory; /* pinned, STAGE_BYTES for each slot, then DOWNLOAD_BYTES */
    cudaEvent_t done[STAGE_SLOTS];
    int next;
};

lam_status lam_cuda_stage_open(lam_cuda_dev *dev)
{
    lam_cuda_stage *s = (lam_cuda_stage *)calloc(1, sizeof *s);
    dev->stage = s; /* close() frees what there is */
    if (!s)
        return lam_fail(LAM_ERR_MEMORY, "device cuda: no memory for uploads");
    cudaError_t error =
        cudaMallocHost((void **)&s->memory, (size_t)STAGE_SLOTS * STAGE_BYTES + DOWNLOAD_BYTES);
    for (int i = 0; error == cudaSuccess && i < STAGE_SLOTS; i++)
        error = cudaEventCreateWithFlags(&s->done[i], cudaEventDisableTiming);
    if (error != cudaSuccess)
        return lam_fail(LAM_ERR_DEVICE, "device cuda: pinned memory: %s",
                        cudaGetErrorString(error));
    return LAM_OK;
}

void lam_cuda_stage_close(lam_cuda_dev *dev)
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

void lam_cuda_upload(lam_dev *base, void *dst, const void *host, size_t bytes)
{
    lam_cuda_dev *dev = lam_cuda(base);
    lam_cuda_stage *s = dev->stage;
    const cudaStream_t stream = dev->capturing ? dev->side : dev->stream;
    if (bytes == 0)
        return;
    if (bytes > STAGE_BYTES) {
        lam_cuda_note_if(dev, "upload",
                         cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice, stream));
        return;
    }
    const int slot = s->next;
    char *stage = s->memory + (size_t)slot * STAGE_BYTES;
    s->next = (slot + 1) % STAGE_SLOTS;
    lam_cuda_note_if(dev, "upload", cudaEventSynchronize(s->done[slot])); /* eight uploads ago */
    memcpy(stage, host, bytes);
    lam_cuda_note_if(dev, "upload",
                     cudaMemcpyAsync(dst, stage, bytes, cudaMemcpyHostToDevice, stream));
    lam_cuda_note_if(dev, "upload", cudaEventRecord(s->done[slot], stream));
}

lam_status lam_cuda_download(lam_dev *base, void *host, const void *src, size_t bytes)
{
    lam_cuda_dev *dev = lam_cuda(base);
    char *stage = dev->stage->memory + (size_t)STAGE_SLOTS * STAGE_BYTES;
    void *to = bytes <= DOWNLOAD_BYTES ? stage : host;
    if (bytes > 0)
        lam_cuda_note_if(dev, "download",
                         cudaMemcpyAsync(to, src, bytes, cudaMemcpyDeviceToHost, dev->stream));
    LAM_TRY(lam_cuda_sync(base));
    if (bytes > 0 && to != host)
        memcpy(host, to, bytes);
    return LAM_OK;
}
