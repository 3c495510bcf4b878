/* cuda/attn_simt_bwd.cu -- the gradient of relative-position attention in plain loops.
 *
 * ref/attn.c is the specification.  Every result row has one block that recomputes the weights of its
 * pairs: queries own dq, keys own dk and dvalue, distances own dr.  So P is recomputed three times
 * and nothing needs an atomic.  fwd was S = scale ((q + u) . k + (q + v) . r + rbias) and
 * o = sum drop(P) value; with g = scale * P (drop'(do . value) - delta), delta from attn_prepare.cu,
 *   dq_i = sum_j g (k_j + r)   dk_j = sum_i g (q_i + u)   dvalue_j = sum_i drop(P) do_i
 *   dr = sum_{b,i} g (q_i + v) along a diagonal
 *   du = sum_j (sum_i g) k_j,  dv = sum_rows (sum g) r,  drbias = sum g. */
#include "ops/cuda/attn_simt.cuh"

enum { THREADS = 128 };

struct pair_grad {
    float p; /* drop(P) */
    float g;
};

template <typename T>
static __device__ __forceinline__ pair_grad grad_of(const attn_call &c, const simt_shared &smem,
                                                    int b, int h, int i, int j)
{
    const lam_attn &a = c.a;
    const size_t col = (size_t)h * a.K;
    const float lse = *attn_row<const float>(a.lse, (size_t)a.H, b, i, (size_t)h);
    const float p = expf(simt_score(c, smem, simt_pair_at<T>(c, b, h, i, j)) - lse);
    const float keep = simt_keep(c, b, h, i, j);
    const float dp = keep * simt_dot(c, attn_row<const T>(a.d_o, a.ldo, b, i, col),
                                     attn_row<const T>(a.value, a.ldk, b, j, col));
    const float delta = c.delta[((size_t)b * a.H + h) * c.q_pad + i];
    return {p * keep, (float)a.scale * p * (dp - delta)};
}

static __device__ __forceinline__ float sum_of_warps(const simt_shared &smem, const float *part,
                                                     int x)
{
    float sum = 0.0f;
    for (int w = 0; w < (int)blockDim.x / LAM_WARP; w++)
        sum += part[w * smem.wide + x];
    return sum;
}

template <typename T>
static __global__ void simt_bwd_q(const attn_call c)
{
    const lam_attn &a = c.a;
    const int i = (int)blockIdx.x, h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int thread = (int)threadIdx.x, lane = thread % LAM_WARP, warp = thread / LAM_WARP;
    const size_t col = (size_t)h * a.K;
    const simt_shared smem = simt_open(c, h);
    float *part = smem.part + warp * smem.wide;

    const int last = min(a.keys - 1, a.shift + i + c.e_hi);
    const int first = max(attn_oldest<true>(c, b), a.shift + i + c.e_lo);
    for (int from = first; from <= last; from += SIMT_CHUNK) {
        const int n = min(SIMT_CHUNK, last - from + 1);
        for (int x = thread; x < n; x += THREADS)
            smem.weight[x] = grad_of<T>(c, smem, b, h, i, from + x).g;
        __syncthreads();
        for (int x = lane; x < a.K; x += LAM_WARP) {
            float dq = part[x];
            for (int y = warp; y < n; y += THREADS / LAM_WARP) {
                const simt_pair<T> p = simt_pair_at<T>(c, b, h, i, from + y);
                dq += smem.weight[y] * (lam_float(p.k[x]) + (p.r ? lam_float(p.r[x]) : 0.0f));
            }
            part[x] = dq;
        }
        __syncthreads();
    }
    for (int x = thread; x < a.K; x += THREADS)
        *attn_row<T>(a.dq, a.ldq, b, i, col + x) = lam_act<T>(sum_of_warps(smem, smem.part, x));
}

template <typename T>
static __global__ void simt_bwd_kv(const attn_call c)
{
    const lam_attn &a = c.a;
    const int j = (int)blockIdx.x, h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int thread = (int)threadIdx.x, lane = thread % LAM_WARP, warp = thread / LAM_WARP;
    const size_t col = (size_t)h * a.K;
    const simt_shared smem = simt_open(c, h);
    float *pk = smem.part + warp * smem.wide, *pv = smem.part2 + warp * smem.wide, total = 0.0f;

    const bool valid = j >= attn_oldest<true>(c, b);
    const int last = valid ? min(a.queries - 1, j - a.shift - c.e_lo) : -1;
    for (int from = max(0, j - a.shift - c.e_hi); from <= last; from += SIMT_CHUNK) {
        const int n = min(SIMT_CHUNK, last - from + 1);
        for (int x = thread; x < n; x += THREADS) {
            const pair_grad w = grad_of<T>(c, smem, b, h, from + x, j);
            smem.weight[x] = w.g;
            smem.other[x] = w.p;
            total += w.g;
        }
        __syncthreads();
        for (int x = lane; x < a.K; x += LAM_WARP) {
            float dk = pk[x], dv = pv[x];
            for (int y = warp; y < n; y += THREADS / LAM_WARP) {
                const int i = from + y;
                dk += smem.weight[y] *
                      (lam_float(*attn_row<const T>(a.q, a.ldq, b, i, col + x)) + smem.u[x]);
                dv += smem.other[y] * lam_float(*attn_row<const T>(a.d_o, a.ldo, b, i, col + x));
            }
            pk[x] = dk;
            pv[x] = dv;
        }
        __syncthreads();
    }
    for (int x = thread; x < a.K; x += THREADS) {
        T *dk = attn_row<T>(a.dk, a.ldk, b, j, col + x);
        T *dv = attn_row<T>(a.dvalue, a.ldk, b, j, col + x);
        const float old_k = a.kv_add ? lam_float(*dk) : 0.0f;
        const float old_v = a.kv_add ? lam_float(*dv) : 0.0f;
        *dk = lam_act<T>(old_k + sum_of_warps(smem, smem.part, x));
        *dv = lam_act<T>(old_v + sum_of_warps(smem, smem.part2, x));
    }
    total = lam_block_sum(total, smem.sums);
    if (thread == 0)
        c.k_sum[((size_t)b * a.H + h) * a.keys + j] = total;
}

/* One row of r: its pairs are (b, i) with the one key at this distance. */
template <typename T>
static __global__ void simt_bwd_r(const attn_call c)
{
    const lam_attn &a = c.a;
    const int row = (int)blockIdx.x, h = (int)blockIdx.y;
    const int thread = (int)threadIdx.x, lane = thread % LAM_WARP, warp = thread / LAM_WARP;
    const size_t col = (size_t)h * a.K;
    const simt_shared smem = simt_open(c, h);
    float *part = smem.part + warp * smem.wide, total = 0.0f;

    const int e = a.r_sign * (row - a.r_zero), first = max(0, -a.shift - e);
    const int seen = e < c.e_lo || e > c.e_hi ? 0 : min(a.queries, a.keys - a.shift - e) - first;
    const long pairs = seen > 0 ? (long)seen * a.B : 0;
    for (long from = 0; from < pairs; from += SIMT_CHUNK) {
        const int n = (int)min((long)SIMT_CHUNK, pairs - from);
        for (int x = thread; x < n; x += THREADS) {
            const int b = (int)((from + x) / seen), i = first + (int)((from + x) % seen);
            smem.weight[x] = i + a.shift + e < attn_oldest<true>(c, b)
                                 ? 0.0f
                                 : grad_of<T>(c, smem, b, h, i, i + a.shift + e).g;
            total += smem.weight[x];
        }
        __syncthreads();
        for (int x = lane; x < a.K; x += LAM_WARP) {
            float dr = part[x];
            for (int y = warp; y < n; y += THREADS / LAM_WARP) {
                const int b = (int)((from + y) / seen), i = first + (int)((from + y) % seen);
                dr += smem.weight[y] *
                      (lam_float(*attn_row<const T>(a.q, a.ldq, b, i, col + x)) + smem.v[x]);
            }
            part[x] = dr;
        }
        __syncthreads();
    }
    if (a.r)
        for (int x = thread; x < a.K; x += THREADS)
            ((T *)a.dr)[(size_t)row * a.ldr + col + x] =
                lam_act<T>(sum_of_warps(smem, smem.part, x));
    total = lam_block_sum(total, smem.sums);
    if (thread != 0)
        return;
    c.r_sum[(size_t)h * a.r_rows + row] = total;
    if (a.rbias)
        ((float *)a.drbias)[(size_t)row * a.H + h] += total;
}

/* part[chunk][h][.] = the sum of weight * row over the chunk's rows: du from (k_sum, k) and dv from
 * (r_sum, r). */
template <typename T>
static __global__ void sum_weighted_rows(float *part, const float *weight, const T *rows,
                                         size_t step, size_t ld, int B, int n, int K)
{
    const int h = (int)blockIdx.y, H = (int)gridDim.y, chunk = (int)blockIdx.x;
    const long all = (long)B * n;
    for (int x = (int)threadIdx.x; x < K; x += (int)blockDim.x) {
        float sum = 0.0f;
        for (long y = chunk * all / ATTN_CHUNKS; y < (chunk + 1) * all / ATTN_CHUNKS; y++) {
            const long b = y / n, j = y % n;
            sum += weight[(b * H + h) * n + j] *
                   lam_float(rows[(size_t)b * step + (size_t)j * ld + (size_t)h * K + x]);
        }
        part[((size_t)chunk * H + h) * K + x] = sum;
    }
}

template <typename T>
static void launch(lam_cuda_dev *dev, const attn_call *c)
{
    const lam_attn *a = &c->a;
    const unsigned H = (unsigned)a->H, B = (unsigned)a->B;
    const size_t shared = simt_floats(a->K, THREADS) * sizeof(float);
    const int width = a->H * a->K;
    const char *op = "attn_bwd";

    lam_cuda_launch(dev, op, simt_bwd_q<T>, {dim3((unsigned)a->queries, H, B), THREADS, shared},
                    *c);
    lam_cuda_launch(dev, op, simt_bwd_kv<T>, {dim3((unsigned)a->keys, H, B), THREADS, shared}, *c);
    if (a->r || a->rbias)
        lam_cuda_launch(dev, op, simt_bwd_r<T>, {dim3((unsigned)a->r_rows, H), THREADS, shared},
                        *c);
    if (a->u && a->du) {
        lam_cuda_launch(dev, op, sum_weighted_rows<T>, {dim3(ATTN_CHUNKS, H), THREADS}, c->du_part,
                        (const float *)c->k_sum, (const T *)a->k.p, a->k.step, a->ldk, a->B,
                        a->keys, a->K);
        lam_cuda_attn_fold(dev, (float *)a->du, c->du_part, ATTN_CHUNKS, width);
    }
    if (a->v && a->dv && a->r) {
        lam_cuda_launch(dev, op, sum_weighted_rows<T>, {dim3(ATTN_CHUNKS, H), THREADS}, c->dv_part,
                        (const float *)c->r_sum, (const T *)a->r, (size_t)0, a->ldr, 1, a->r_rows,
                        a->K);
        lam_cuda_attn_fold(dev, (float *)a->dv, c->dv_part, ATTN_CHUNKS, width);
    }
}

void lam_cuda_attn_simt_bwd(lam_cuda_dev *dev, const attn_call *c)
{
    if (dev->bf16)
        launch<lam_bf16>(dev, c);
    else
        launch<float>(dev, c);
}
