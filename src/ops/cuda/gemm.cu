/* cuda/gemm.cu -- matrix products by cuBLASLt.
 *
 * ref/gemm.c says what is computed.  bf16 or float operands, float sums, C in ACT or float.  What
 * differs:
 *   - bias and ReLU ride in cuBLASLt's epilogue; with dropout one pass over C finishes the result, and
 *     with h another one; on Hopper a kernel of our own does both on the way (gemm_sm90.cu);
 *   - rows that are no multiple of 16 bytes are split into the most of it and a rest;
 *   - a sum of products (step_c = 0) becomes one product with a longer k, its operands packed side
 *     by side in scratch unless they lie so already: one rounding, and one launch for 40 streams;
 *   - what cuBLASLt declines (addresses that are not even 4-byte aligned, k = 0) is done by a plain
 *     loop: correct, slow, and not met by any model of ours but in three columns of a softmax. */
#include "ops/cuda/blas.cuh"

#include <string.h>

/* ---- after the product: drop(relu(c + bias)) ------------------------------------------------- */

struct finish_args {
    void *c;
    const float *bias;
    size_t ldc, step_c;
    int m, n, relu;
    bool aligned;
    lam_cuda_mask mask;
};

/* A thread owns eight columns, one Philox block, of every so many rows of product blockIdx.z.  ALIGNED:
 * all eight exist and lie on a 16-byte border; the next row is fetched while this one is worked on. */
template <typename C, bool ALIGNED>
static __device__ __forceinline__ void finish_rows(const finish_args &a, int group, int n)
{
    const int groups = lam_cuda_ceil(a.n, 8), stride = (int)(gridDim.y * blockDim.y);
    const lam_f8 bias = lam_load8_n(a.bias + group * 8, a.bias ? n : 0, false);
    C *c = (C *)a.c + blockIdx.z * a.step_c + group * 8;
    int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    lam_raw8<C> ahead = lam_fetch8(c + (size_t)row * a.ldc, ALIGNED && row < a.m);
    for (; row < a.m; row += stride) {
        C *at = c + (size_t)row * a.ldc;
        lam_f8 x = ALIGNED ? lam_unpack8(ahead) : lam_load8_n(at, n, false);
        ahead = lam_fetch8(c + (size_t)(row + stride) * a.ldc, ALIGNED && row + stride < a.m);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            x.v[j] += bias.v[j];
            if (a.relu)
                x.v[j] = x.v[j] < 0.0f ? 0.0f : x.v[j]; /* a NaN stays one */
        }
        const uint64_t above = blockIdx.z * (uint64_t)a.m + (uint64_t)row;
        lam_mask8(x, a.mask, above * (uint64_t)groups + (uint64_t)group);
        lam_store8_n(at, x, ALIGNED ? 8 : n, ALIGNED);
    }
}

template <typename C>
static __global__ void finish(finish_args a)
{
    const int group = (int)(blockIdx.x * blockDim.x + threadIdx.x), n = min(a.n - group * 8, 8);
    if (n == 8 && a.aligned)
        finish_rows<C, true>(a, group, n);
    else if (n > 0)
        finish_rows<C, false>(a, group, n);
}

static void launch_finish(lam_cuda_dev *dev, const lam_gemm *a)
{
    finish_args args = {a->c,  (const float *)a->bias,    a->ldc, a->step_c, a->m, a->n, a->relu,
                        false, lam_cuda_mask_of(&a->drop)};
    args.aligned = (uintptr_t)a->c % 16 == 0 && a->ldc % 8 == 0 && a->step_c % 8 == 0;
    const lam_cuda_grid g = lam_cuda_grid_of(dev, lam_cuda_ceil(a->n, 8), a->m, a->batch);
    if (dev->bf16 && a->c_class == LAM_ACT)
        finish<lam_bf16><<<g.grid, g.block, 0, dev->stream>>>(args);
    else
        finish<float><<<g.grid, g.block, 0, dev->stream>>>(args);
    lam_cuda_check_launch(dev, "gemm");
}

/* ---- the plain loop -------------------------------------------------------------------------- */

template <typename T, typename C>
static __global__ void multiply(lam_gemm a)
{
    const int col = (int)(blockIdx.x * 32 + threadIdx.x), row = (int)(blockIdx.y * 8 + threadIdx.y);
    if (row >= a.m || col >= a.n)
        return;
    for (size_t i = blockIdx.z; i < (size_t)a.batch; i += gridDim.z) {
        const T *x = (const T *)a.a + i * a.step_a, *y = (const T *)a.b + i * a.step_b;
        C *c = (C *)a.c + i * a.step_c + (size_t)row * a.ldc + col;
        const size_t x_row = a.ta == LAM_KEEP ? a.lda : 1, x_k = a.ta == LAM_KEEP ? 1 : a.lda;
        const size_t y_col = a.tb == LAM_KEEP ? 1 : a.ldb, y_k = a.tb == LAM_KEEP ? a.ldb : 1;
        float sum = a.beta == 0.0 ? 0.0f : lam_float(*c);
        for (size_t t = 0; t < (size_t)a.k; t++)
            sum += lam_float(x[(size_t)row * x_row + t * x_k]) *
                   lam_float(y[(size_t)col * y_col + t * y_k]);
        *c = lam_act<C>(sum);
    }
}

static void launch_multiply(lam_cuda_dev *dev, const lam_gemm *a)
{
    const dim3 grid((unsigned)lam_cuda_ceil(a->n, 32), (unsigned)lam_cuda_ceil(a->m, 8),
                    (unsigned)(a->batch < 1024 ? a->batch : 1024));
    const dim3 block(32, 8);
    if (!dev->bf16)
        multiply<float, float><<<grid, block, 0, dev->stream>>>(*a);
    else if (a->c_class == LAM_ACT)
        multiply<lam_bf16, lam_bf16><<<grid, block, 0, dev->stream>>>(*a);
    else
        multiply<lam_bf16, float><<<grid, block, 0, dev->stream>>>(*a);
    lam_cuda_check_launch(dev, "gemm");
}

/* ---- cuBLASLt -------------------------------------------------------------------------------- */

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
    round_bias<<<(unsigned)lam_cuda_ceil(a->n, 256), 256, 0, dev->stream>>>(
        (lam_bf16 *)dev->blas->bias, (const float *)a->bias, a->n);
    lam_cuda_check_launch(dev, "gemm");
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
        launch_multiply(dev, a);
    if (!finished)
        launch_finish(dev, a);
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
static void run(lam_cuda_dev *dev, const lam_gemm *a)
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
    launch_finish(dev, a);
}

/* ---- sums of products ------------------------------------------------------------------------ */

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

/* Adds up the products one after the other: only when there is no room to pack.  In bf16 the sum is
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
        run(dev, &one);
    }
}

static void run_sum(lam_cuda_dev *dev, const lam_gemm *a)
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
    run(dev, &one);
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
        run_sum(cuda, a);
    else if (!lam_cuda_gemv(cuda, a))
        run(cuda, a);
    if (a->h) {
        const lam_relu_bwd back = lam_gemm_back(a);
        lam_cuda_relu_bwd(dev, &back);
    }
}
