/* cuda/gemm_sum.cu -- a sum of products (step_c = 0) as one product with a longer k, its operands packed
 * side by side in scratch unless they lie so already: one rounding, and one launch for 40 streams. */
#include "ops/cuda/gemm_int.cuh"

/* One operand of a sum of products: `outer` rows of the result, k terms each, `batch` times. */
struct operand {
    const void *p;
    size_t ld, step;
    size_t outer;
    int k_is_row; /* stored k x outer, else outer x k */
};

/* Do the products of this operand lie side by side along k already? */
static int in_line(const operand *o, size_t k)
{
    return o->step == (o->k_is_row ? k * o->ld : k);
}

/* Row stride of the packed operand, kept a multiple of 16 bytes. */
static size_t packed_ld(const operand *o, size_t k, size_t batch)
{
    return ((o->k_is_row ? o->outer : k * batch) + 7) / 8 * 8;
}

static size_t packed_bytes(const operand *o, size_t k, size_t batch, size_t size)
{
    if (in_line(o, k))
        return 0;
    return ((o->k_is_row ? k * batch : o->outer) * packed_ld(o, k, batch) * size + 255) / 256 * 256;
}

static void pack(lam_cuda_dev *dev, operand *o, void *to, size_t k, size_t batch, size_t size)
{
    if (in_line(o, k))
        return;
    const size_t ld = packed_ld(o, k, batch);
    lam_cuda_rows rows;
    rows.src = o->p;
    rows.dst = to;
    rows.src_step = o->step * size;
    rows.src_ld = o->ld * size;
    rows.dst_step = (o->k_is_row ? k * ld : k) * size;
    rows.dst_ld = ld * size;
    rows.blocks = (int)batch;
    rows.rows = o->k_is_row ? k : o->outer;
    rows.width = (o->k_is_row ? o->outer : k) * size;
    lam_cuda_copy_rows(dev, "gemm", &rows);
    o->p = to;
    o->ld = ld;
}

/* Packing the rows of all streams of the widest pair that a memory of ours needs: W_o's and W_q's. */
size_t lam_cuda_gemm_scratch(const lam_cuda_dev *dev, const lam_work *w)
{
    return (size_t)w->rows * 2 * (size_t)w->H * (size_t)w->K * (dev->bf16 ? 2 : 4) + 512;
}

/* Adds up the products one after the other: only when the scratch is too small to pack.  In bf16 the sum is
 * then rounded after each. */
static void run_in_turn(lam_cuda_dev *dev, const lam_gemm *a)
{
    const size_t size = dev->bf16 ? 2 : 4;
    for (size_t i = 0; i < (size_t)a->batch; i++) {
        lam_gemm one = *a;
        one.batch = 1;
        one.a = (const char *)a->a + i * a->step_a * size;
        one.b = (const char *)a->b + i * a->step_b * size;
        one.beta = i > 0 ? 1.0 : a->beta;
        if (i + 1 < (size_t)a->batch) {
            one.bias = NULL;
            one.relu = 0;
            one.drop.p = 0.0;
        }
        lam_cuda_gemm_each(dev, &one);
    }
}

void lam_cuda_gemm_sum(lam_cuda_dev *dev, const lam_gemm *a)
{
    const size_t size = dev->bf16 ? 2 : 4, k = (size_t)a->k, batch = (size_t)a->batch;
    operand x = {a->a, a->lda, a->step_a, (size_t)a->m, a->ta == LAM_FLIP};
    operand y = {a->b, a->ldb, a->step_b, (size_t)a->n, a->tb == LAM_KEEP};
    const size_t for_x = packed_bytes(&x, k, batch, size), for_y = packed_bytes(&y, k, batch, size);
    if (for_x + for_y > dev->scratch_bytes || k * batch > INT32_MAX) {
        run_in_turn(dev, a);
        return;
    }
    pack(dev, &x, dev->scratch, k, batch, size);
    pack(dev, &y, (char *)dev->scratch + for_x, k, batch, size);
    lam_gemm one = *a;
    one.batch = 1;
    one.k = (int)(k * batch);
    one.a = x.p;
    one.lda = x.ld;
    one.b = y.p;
    one.ldb = y.ld;
    lam_cuda_gemm_each(dev, &one);
}
