/* cuda/decode.cu -- attention of one new row per stream (attn_next.cuh) as a kernel of its own; put_rows.cu stores other
 * rows where they are kept. */
#include "ops/cuda/token.cuh"

size_t lam_cuda_next_scratch(void)
{
    return (size_t)LAM_CUDA_TICKETS * 2 * (LAM_NEXT_WIDTH + 2) * sizeof(float);
}

/* A block stays with its head, whose positions, the same for all streams, are in the L1 cache then. */
template <typename T, int C, int U, bool ALIGNED>
static __global__ void __launch_bounds__(NEXT_THREADS, C == 1 ? 2 : 1)
    attn_next(const __grid_constant__ next_call n)
{
    extern __shared__ float smem[]; /* join_warp; later all parts of the row */
    __shared__ unsigned ticket;
    for (int b = (int)blockIdx.z; b < n.x.a.B; b += (int)gridDim.z) {
        attend_head<T, C, U, ALIGNED>(n, b, (int)blockIdx.y, (int)blockIdx.x, smem, &ticket,
                                      [] { lam_chain(); });
        __syncthreads();
    }
}

template <typename T, int C, int U>
static void launch(lam_cuda_dev *dev, const next_call &n)
{
    const lam_attn *a = &n.x.a;
    const int parts = n.splits > (int)NEXT_WARPS ? n.splits : (int)NEXT_WARPS;
    const size_t shared = (size_t)parts * ((size_t)a->K + 2) * sizeof(float);
    const int streams =
        lam_cuda_ceil(2 * dev->sms, a->H); /* at a time: two blocks a multiprocessor */
    const dim3 grid((unsigned)n.splits, (unsigned)a->H,
                    (unsigned)(n.splits == 1 && a->B > streams ? streams : a->B));
    const auto kernel = n.aligned ? attn_next<T, C, U, true> : attn_next<T, C, U, false>;
    lam_cuda_launch(dev, "attn_next", kernel, {grid, NEXT_THREADS, shared, true}, n);
}

template <typename T>
static void launch_width(lam_cuda_dev *dev, const next_call &n)
{
    const int K = n.x.a.K;
    if (K <= 64)
        launch<T, 1, 2>(dev, n);
    else if (K <= 128)
        launch<T, 2, 1>(dev, n);
    else if (K <= 256)
        launch<T, 4, 1>(dev, n);
    else
        launch<T, 8, 1>(dev, n);
}

void lam_cuda_start_next(lam_cuda_dev *dev, const next_call *n)
{
    if (dev->bf16)
        launch_width<lam_bf16>(dev, *n);
    else
        launch_width<float>(dev, *n);
}

extern "C" void lam_cuda_attn_next(lam_dev *base, const lam_attn_next *x)
{
    lam_cuda_dev *dev = lam_cuda(base);
    const lam_attn *a = &x->a;
    const size_t size = dev->bf16 ? sizeof(lam_bf16) : sizeof(float);
    assert(a->mode == LAM_CAUSAL && a->queries == 1 && a->drop.p == 0.0 && a->K <= LAM_NEXT_WIDTH);
    assert(a->kv_class == LAM_ACT);
    next_call n = {*x, 1, false, NULL, dev->tickets};
    n.aligned = a->K % 8 == 0 && lam_cuda_on_border(a->q.p, a->q.step, size) &&
                lam_cuda_on_border(a->k.p, a->k.step, size) &&
                lam_cuda_on_border(a->value.p, a->value.step, size) &&
                lam_cuda_on_border(x->k.p, x->k.step, size) &&
                lam_cuda_on_border(x->value.p, x->value.step, size) &&
                lam_cuda_on_border(a->r, a->ldr, size) && a->ldk * size % 16 == 0;
    const int rows = a->B * a->H, want = lam_cuda_ceil(2 * dev->sms, rows);
    const int most = lam_cuda_ceil(a->keys, NEXT_MIN_KEYS);
    n.splits = want < most ? want : most;
    n.splits = rows > LAM_CUDA_TICKETS       ? 1
               : n.splits > NEXT_MOST_SPLITS ? NEXT_MOST_SPLITS
                                             : n.splits;
    if (n.splits > 1) /* so few rows that their parts fit */
        n.parts =
            (float *)lam_cuda_scratch(dev, (size_t)rows * n.splits * (a->K + 2) * sizeof(float));
    if (!lam_cuda_keep_next(dev, &n))
        lam_cuda_start_next(dev, &n);
}
