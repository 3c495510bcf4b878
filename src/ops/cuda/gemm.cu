/* cuda/gemm.cu -- matrix products by cuBLASLt.
 *
 * ref/gemm.c says what is computed.  bf16 or float operands, float sums, C in ACT or float.  What
 * differs:
 *   - bias and ReLU ride in cuBLASLt's epilogue; with dropout one pass over C finishes the result, and
 *     with h another one; on Hopper a kernel of our own does both on the way (gemm_sm90.cu);
 *   - rows that are no multiple of 16 bytes are split into the most of it and a rest;
 *   - a sum of products (step_c = 0) becomes one product with a longer k (gemm_sum.cu);
 *   - what cuBLASLt declines is done by a plain loop (gemm_plain.cu). */
#include "ops/cuda/blas.cuh"
#include "ops/cuda/gemm_int.cuh"

#include <string.h>

/* The largest power of two, up to 256, that divides the address and every step from it. */
static int alignment(const void *p, size_t step, size_t size)
{
    const uintptr_t bits = (uintptr_t)p | step * size | 256;
    return (int)(bits & (0 - bits));
}

static lam_blas_key key_of(const lam_cuda_dev *dev, const lam_gemm *a, int fuse)
{
    const size_t size = dev->bf16 ? 2 : 4;
    const int wide = !dev->bf16 || a->c_class == LAM_WIDE;
    lam_blas_key key;
    memset(&key, 0, sizeof key);
    key.m = a->m;
    key.n = a->n;
    key.k = a->k;
    key.batch = a->batch;
    key.ta = a->ta;
    key.tb = a->tb;
    key.wide = wide;
    key.beta = a->beta != 0.0;
    key.bias = fuse && a->bias;
    key.relu = fuse && a->relu;
    key.lda = a->lda;
    key.ldb = a->ldb;
    key.ldc = a->ldc;
    if (a->batch > 1) {
        key.step_a = a->step_a;
        key.step_b = a->step_b;
        key.step_c = a->step_c;
    }
    key.align_a = alignment(a->a, key.step_a, size);
    key.align_b = alignment(a->b, key.step_b, size);
    key.align_c = alignment(a->c, key.step_c, wide ? 4 : size);
    return key;
}

static void run_plan(lam_cuda_dev *dev, const lam_gemm *a, const lam_blas_plan *plan,
                     const void *bias)
{
    const lam_cuda_blas *blas = dev->blas;
    const float one = 1.0f, beta = (float)a->beta;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    lam_cuda_flush(dev);
    if (plan->key.bias)
        status = blas->cublasLtMatmulDescSetAttribute(
            plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmul(blas->handle, plan->product, &one, a->b, plan->a, a->a,
                                      plan->b, &beta, a->c, plan->c, a->c, plan->c, &plan->algo,
                                      blas->workspace, blas->workspace_bytes, dev->stream);
    if (status != CUBLAS_STATUS_SUCCESS)
        lam_cuda_note_text(dev, "gemm", blas->cublasLtGetStatusName(status));
}

/* bf16 results want a bf16 bias: rounded here, once per product.  It is rounded again with the result
 * anyway. */
static __global__ void round_bias(lam_bf16 *out, const float *bias, int n)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        out[i] = lam_act<lam_bf16>(bias[i]);
}

static const void *fused_bias(lam_cuda_dev *dev, const lam_gemm *a)
{
    if (!a->bias || !dev->bf16 || a->c_class == LAM_WIDE)
        return a->bias;
    lam_cuda_launch(dev, "gemm", round_bias, {lam_cuda_ceil(a->n, 256), 256},
                    (lam_bf16 *)dev->blas->bias, (const float *)a->bias, a->n);
    return dev->blas->bias;
}

/* Separate products with bias and ReLU, but not dropout, in sizes cuBLASLt is fast at. */
static void run_even(lam_cuda_dev *dev, const lam_gemm *a)
{
    const int finished = !a->bias && !a->relu;
    if (!finished && a->k > 0 && a->n <= LAM_BLAS_BIAS && (uintptr_t)a->bias % 16 == 0) {
        const lam_blas_key key = key_of(dev, a, 1);
        const lam_blas_plan *plan = lam_cuda_blas_plan(dev, &key);
        if (plan->found > 0) {
            run_plan(dev, a, plan, fused_bias(dev, a));
            return;
        }
    }
    const lam_blas_key key = key_of(dev, a, 0);
    const lam_blas_plan *plan = a->k > 0 ? lam_cuda_blas_plan(dev, &key) : NULL;
    if (plan && plan->found > 0)
        run_plan(dev, a, plan, NULL);
    else
        lam_cuda_gemm_multiply(dev, a);
    if (!finished)
        lam_cuda_gemm_finish(dev, a);
}

/* A product of bf16 is five times slower where a row of an operand or of C is not a multiple of
 * 16 bytes long (a vocabulary of 267735, say): the last few columns, rows or terms are done apart. */
enum { EVEN = 8, WORTH_IT = 64 };

static int odd_end(const lam_cuda_dev *dev, int size)
{
    return dev->bf16 && size >= WORTH_IT ? size % EVEN : 0;
}

static void run_product(lam_cuda_dev *dev, const lam_gemm *a)
{
    const size_t size = dev->bf16 ? 2 : 4, size_c = a->c_class == LAM_WIDE ? 4 : size;
    const int n = odd_end(dev, a->n), m = a->ta == LAM_FLIP ? odd_end(dev, a->m) : 0;
    const int k = a->ta == LAM_KEEP || a->tb == LAM_FLIP ? odd_end(dev, a->k) : 0;
    lam_gemm most = *a, rest = *a;
    if (n > 0) {
        most.n -= n;
        rest.n = n;
        rest.b = (const char *)a->b + (size_t)most.n * (a->tb == LAM_KEEP ? 1 : a->ldb) * size;
        rest.c = (char *)a->c + (size_t)most.n * size_c;
        rest.bias = a->bias ? (const float *)a->bias + most.n : NULL;
    } else if (m > 0) {
        most.m -= m;
        rest.m = m;
        rest.a = (const char *)a->a + (size_t)most.m * size;
        rest.c = (char *)a->c + (size_t)most.m * a->ldc * size_c;
    } else if (k > 0) { /* the small part first: what it loses by rounding is small too */
        most.k -= k;
        rest.k = k;
        rest.a = (const char *)a->a + (size_t)most.k * (a->ta == LAM_KEEP ? 1 : a->lda) * size;
        rest.b = (const char *)a->b + (size_t)most.k * (a->tb == LAM_KEEP ? a->ldb : 1) * size;
        rest.bias = NULL;
        rest.relu = 0;
        most.beta = 1.0;
    } else {
        run_even(dev, a);
        return;
    }
    run_product(dev, &rest);
    run_product(dev, &most);
}

/* Separate products, finished.  Dropout counts whole rows, so it comes last and for all. */
void lam_cuda_gemm_each(lam_cuda_dev *dev, const lam_gemm *a)
{
    if (a->drop.p == 0.0) {
        run_product(dev, a);
        return;
    }
    lam_gemm plain = *a;
    plain.bias = NULL;
    plain.relu = 0;
    plain.drop.p = 0.0;
    run_product(dev, &plain);
    lam_cuda_gemm_finish(dev, a);
}

extern "C" void lam_cuda_gemm(lam_dev *dev, const lam_gemm *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    assert(a->m >= 0 && a->n >= 0 && a->k >= 0 && a->batch >= 0);
    assert(a->beta == 0.0 || a->beta == 1.0);
    if (a->m == 0 || a->n == 0 || a->batch == 0)
        return;
    if (lam_cuda_gemm_sm90(cuda, a))
        return;
    if (a->batch > 1 && a->step_c == 0)
        lam_cuda_gemm_sum(cuda, a);
    else if (!lam_cuda_gemv(cuda, a) && !lam_cuda_gemm_few(cuda, a))
        lam_cuda_gemm_each(cuda, a);
    if (a->h) {
        const lam_relu_bwd back = lam_gemm_back(a);
        lam_cuda_relu_bwd(dev, &back);
    }
}

extern "C" void lam_cuda_norm_gemm(lam_dev *dev, const lam_norm_gemm *a)
{
    if (!dev->exact && lam_cuda_gemv_norm(lam_cuda(dev), a))
        return;
    dev->ops->norm_fwd(dev, &a->norm);
    dev->ops->gemm(dev, &a->gemm);
}
