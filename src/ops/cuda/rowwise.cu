/* cuda/rowwise.cu -- dropout and copies.
 *
 * ref/rowwise.c says what is computed; norms: norm_fwd.cu, norm_bwd.cu; column sums: columns.cu.  Everything
 * here is bandwidth: 16 bytes a thread and access, coalesced along the row. */
#include "ops/cuda/cuda_int.cuh"

/* ---- dropout --------------------------------------------------------------------------------- */

template <typename T>
static __global__ void drop(lam_dropout a, lam_cuda_mask mask)
{
    const int group = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const int groups = lam_cuda_ceil(a.width, 8), col = group * 8;
    if (col >= a.ld)
        return;
    for (int row = (int)(blockIdx.y * blockDim.y + threadIdx.y); row < a.rows;
         row += (int)(gridDim.y * blockDim.y)) {
        const size_t at = (size_t)row * (size_t)a.ld + (size_t)col;
        lam_f8 x = {};
        if (col < a.width) {
            x = lam_load8((const T *)a.in.p + blockIdx.z * a.in.step + at);
            const size_t above = blockIdx.z * (size_t)a.rows + (size_t)row;
            lam_mask8(x, mask, above * (size_t)groups + (size_t)group);
        }
        lam_store8((T *)a.out.p + blockIdx.z * a.out.step + at, x);
    }
}

extern "C" void lam_cuda_dropout(lam_dev *dev, const lam_dropout *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    assert(a->ld % 8 == 0);
    if (a->blocks == 0 || a->rows == 0)
        return;
    const lam_cuda_mask mask = lam_cuda_mask_of(&a->drop);
    const lam_cuda_grid g = lam_cuda_grid_of(cuda, (size_t)a->ld / 8, a->rows, a->blocks);
    lam_cuda_launch(cuda, "dropout", cuda->bf16 ? drop<lam_bf16> : drop<float>, g, *a, mask);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* `Word` is as wide as every address and stride allows. */
template <typename Word>
static __global__ void copy_words(lam_cuda_rows c, size_t words)
{
    const char *src = (const char *)c.src + blockIdx.z * c.src_step;
    char *dst = (char *)c.dst + blockIdx.z * c.dst_step;
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t r = blockIdx.y * blockDim.y + threadIdx.y; r < c.rows; r += gridDim.y * blockDim.y)
        for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride)
            ((Word *)(dst + r * c.dst_ld))[i] =
                c.src ? ((const Word *)(src + r * c.src_ld))[i] : Word();
}

template <typename Word>
static void launch_copy(lam_cuda_dev *dev, const char *op, const lam_cuda_rows *c)
{
    const size_t words = c->width / sizeof(Word);
    const int rows = c->rows < 1 << 20 ? (int)c->rows : 1 << 20;
    const lam_cuda_grid g = lam_cuda_grid_of(dev, words, rows, c->blocks);
    lam_cuda_launch(dev, op, copy_words<Word>, g, *c, words);
}

void lam_cuda_copy_rows(lam_cuda_dev *dev, const char *op, const lam_cuda_rows *c)
{
    if (c->blocks == 0 || c->rows == 0 || c->width == 0)
        return;
    const size_t bits = (uintptr_t)c->src | (uintptr_t)c->dst | c->src_step | c->src_ld |
                        c->dst_step | c->dst_ld | c->width;
    if (bits % 16 == 0)
        launch_copy<uint4>(dev, op, c);
    else if (bits % 4 == 0)
        launch_copy<uint32_t>(dev, op, c);
    else
        launch_copy<uint16_t>(dev, op, c);
}

extern "C" void lam_cuda_copy(lam_dev *dev, const lam_copy *a)
{
    const size_t size = lam_class_size(dev, a->type);
    lam_cuda_rows c = {};
    c.src = a->in.p;
    c.dst = a->out.p;
    c.src_step = a->in.p ? a->in.step * size : 0;
    c.dst_step = a->out.step * size;
    c.blocks = a->blocks;
    c.rows = 1;
    c.width = a->count * size;
    lam_cuda_copy_rows(lam_cuda(dev), "copy", &c);
}
