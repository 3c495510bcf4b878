/* cuda/put_rows.cu -- stores the rows of a new token where they are kept, many tensors in one launch.
 *
 * The list travels as a kernel argument; row numbers are read from memory, as in decode.cu: the launch is
 * the same for every token. */
#include "ops/cuda/ptx.cuh"

enum { MOST_ITEMS = 64 }; /* of one launch: an argument must stay below 4096 bytes */

struct put_item {
    const uint32_t *in;
    uint32_t *out;
    size_t step; /* all in words */
    int words;
};

struct put_list {
    put_item item[MOST_ITEMS];
};

static __global__ void put_rows(const __grid_constant__ put_list list, const int32_t *at)
{
    lam_chain();
    const put_item i = list.item[blockIdx.x];
    const size_t row = (size_t)at[blockIdx.y] * i.words;
    for (int x = (int)threadIdx.x; x < i.words; x += (int)blockDim.x)
        i.out[blockIdx.y * i.step + row + x] = i.in[(size_t)blockIdx.y * i.words + x];
}

extern "C" void lam_cuda_put_rows(lam_dev *base, const lam_put_rows *a)
{
    lam_cuda_dev *dev = lam_cuda(base);
    for (int from = 0; from < a->n; from += MOST_ITEMS) {
        put_list list = {};
        const int n = a->n - from < MOST_ITEMS ? a->n - from : MOST_ITEMS;
        for (int i = 0; i < n; i++) {
            const lam_put_item *x = &a->items[from + i];
            const size_t size = lam_class_size(base, x->type);
            assert((size_t)x->width * size % 4 == 0 && x->out.step * size % 4 == 0);
            list.item[i] = {(const uint32_t *)x->in, (uint32_t *)x->out.p, x->out.step * size / 4,
                            (int)((size_t)x->width * size / 4)};
        }
        lam_cuda_launch(dev, "put_rows", put_rows,
                        {dim3((unsigned)n, (unsigned)a->B), 256, 0, true}, list,
                        (const int32_t *)a->at);
    }
}
