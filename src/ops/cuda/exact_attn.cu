/* cuda/exact_attn.cu -- attention in exact arithmetic on the GPU (specified in ref/exact_attn.c).
 *
 * A block computes one query of one head after another: products with keys and positions, softmax, sum of values, with
 * its scores in scratch. */
#include "ops/cuda/exact.cuh"

enum { MOST_BLOCKS = 4096 };         /* at a time */
static const size_t ROOM = 32 << 20; /* bytes of their scores, or those of one block */

struct attn_job {
    lam_attn a;
    const int32_t *at; /* attn_next: rows before this one; otherwise NULL */
    float *scores;     /* [blocks][a.keys] */
    int tasks;
};

struct attn_query {
    const lam_attn *a;
    int b, h, i;
    int shift, lo, hi; /* the keys it sees */
};

static __device__ attn_query query_at(const attn_job *j, int task)
{
    const lam_attn *a = &j->a;
    attn_query x = {a, task / (a->H * a->queries), 0, 0, a->shift, 0, a->keys};
    x.h = task / a->queries % a->H;
    x.i = task % a->queries;
    if (j->at) {
        x.shift = j->at[x.b];
        x.hi = x.shift + 1;
    }
    const int oldest = a->valid ? a->past - ((const int32_t *)a->valid)[x.b] : 0;
    const int place = x.shift + x.i;
    x.lo = oldest > 0 ? oldest : 0;
    if (a->mode == LAM_CAUSAL) {
        x.hi = place + 1 < x.hi ? place + 1 : x.hi;
        x.lo = a->reach > 0 && place - a->reach + 1 > x.lo ? place - a->reach + 1 : x.lo;
    } else if (a->mode == LAM_AHEAD) {
        x.lo = place + 1 > x.lo ? place + 1 : x.lo;
    }
    return x;
}

/* q + bias as 15-bit numbers; returns their scale. */
static __device__ float quantise_query(int16_t *out, const float *q, const float *bias, int K,
                                       int32_t *smem)
{
    int32_t size = 0;
    for (int c = (int)threadIdx.x; c < K; c += LAM_EXACT_THREADS) {
        const float x = bias ? LAM_ADD(q[c], bias[c]) : q[c];
        size = lam_exact_size(x) > size ? lam_exact_size(x) : size;
    }
    const lam_exact_grid grid = lam_exact_grid_of(lam_exact_most(size, smem), (float)LAM_EXACT_ROW);
    for (int c = (int)threadIdx.x; c < K; c += LAM_EXACT_THREADS) {
        const float x = bias ? LAM_ADD(q[c], bias[c]) : q[c];
        out[c] = (int16_t)lam_exact_level(grid, x);
    }
    return grid.scale;
}

static __device__ float dot(const int16_t *q, const int8_t *k, int K, float scale)
{
    int32_t sum = 0;
    for (int c = 0; c < K; c++)
        sum += (int32_t)q[c] * k[c];
    return LAM_MUL((float)sum, scale);
}

static __device__ size_t key_at(const attn_query *x, lam_view view, int j)
{
    return (size_t)x->b * view.step + (size_t)j * x->a->ldk + (size_t)x->h * x->a->K;
}

/* What q + u and q + v are. */
struct query_rows {
    const int16_t *by_key, *by_place;
    float u, v;
};

static __device__ float score(const attn_query *x, const query_rows *q, int j)
{
    const lam_attn *a = x->a;
    const size_t k = key_at(x, a->k, j);
    const long place = a->r_zero + a->r_sign * ((long)j - x->shift - x->i);
    float sum = dot(q->by_key, (const int8_t *)a->k.p + k, a->K,
                    LAM_MUL(q->u, ((const float *)a->k_scale)[k / a->K]));
    if (a->r) {
        const size_t r = (size_t)place * a->ldr + (size_t)x->h * a->K;
        sum = LAM_ADD(sum, dot(q->by_place, (const int8_t *)a->r + r, a->K,
                               LAM_MUL(q->v, ((const float *)a->r_scale)[r / a->K])));
    }
    if (a->rbias)
        sum = LAM_ADD(sum, ((const float *)a->rbias)[(size_t)place * a->H + x->h]);
    return LAM_MUL(sum, (float)a->scale);
}

static __device__ void attend(const attn_query *x, float *p, int16_t (*q)[LAM_NEXT_WIDTH],
                              int32_t *most, int64_t *total)
{
    const lam_attn *a = x->a;
    const int K = a->K;
    const size_t head = (size_t)x->h * K;
    const float *row = (const float *)a->q.p + x->b * a->q.step + x->i * a->ldq + head;
    float *o = (float *)a->o.p + x->b * a->o.step + x->i * a->ldo + head;
    float *lse = (float *)a->lse.p + x->b * a->lse.step + (size_t)x->i * a->H + x->h;
    const float u = quantise_query(q[0], row, a->u ? (const float *)a->u + head : NULL, K, most);
    const float v = quantise_query(q[1], row, a->v ? (const float *)a->v + head : NULL, K, most);
    const query_rows rows = {q[0], q[1], u, v};
    __syncthreads();

    int32_t rank = INT32_MIN, size = 0;
    for (int j = x->lo + (int)threadIdx.x; j < x->hi; j += LAM_EXACT_THREADS) {
        p[j] = score(x, &rows, j);
        rank = lam_exact_rank(p[j]) > rank ? lam_exact_rank(p[j]) : rank;
    }
    const float top = lam_exact_unrank(lam_exact_most(rank, most));
    int64_t n = 0;
    for (int j = x->lo + (int)threadIdx.x; j < x->hi; j += LAM_EXACT_THREADS) {
        const float e = lam_exact_expf(LAM_ADD(p[j], -top));
        n += lam_exact_round(LAM_MUL(e, (float)LAM_EXACT_P));
        p[j] = LAM_MUL(e, ((const float *)a->value_scale)[key_at(x, a->value, j) / K]);
        size = lam_exact_size(p[j]) > size ? lam_exact_size(p[j]) : size;
    }
    n = lam_exact_total(n, total);
    size = lam_exact_most(size, most); /* and all of p is written */
    const lam_exact_grid grid = lam_exact_grid_of(size, (float)LAM_EXACT_ROW);
    const float share = lam_exact_share(size, n);
    for (int c = (int)threadIdx.x; c < K; c += LAM_EXACT_THREADS) {
        int64_t sum = 0;
        for (int j = x->lo; j < x->hi; j++)
            sum += (int64_t)lam_exact_level(grid, p[j]) *
                   ((const int8_t *)a->value.p)[key_at(x, a->value, j) + c];
        o[c] = x->lo < x->hi ? LAM_MUL((float)sum, share) : 0.0f;
    }
    if (threadIdx.x == 0)
        *lse = x->lo < x->hi ? lam_exact_lse(top, n) : lam_exact_float((int32_t)0xff800000);
    __syncthreads(); /* before the next query writes p */
}

static __global__ void attend_all(const __grid_constant__ attn_job j)
{
    __shared__ int32_t most[LAM_EXACT_THREADS];
    __shared__ int64_t total[LAM_EXACT_THREADS];
    __shared__ int16_t q[2][LAM_NEXT_WIDTH];
    for (int task = (int)blockIdx.x; task < j.tasks; task += (int)gridDim.x) {
        const attn_query x = query_at(&j, task);
        attend(&x, j.scores + (size_t)blockIdx.x * j.a.keys, q, most, total);
    }
}

/* Positions that come as floats: a block a head of a row; rows in x, where a grid has no limit they could reach. */
static __global__ void pack_places(int8_t *q, float *scale, const float *r, size_t ldr, int H,
                                   int K)
{
    __shared__ int32_t smem[LAM_EXACT_THREADS];
    const size_t head = (size_t)blockIdx.x * H + blockIdx.y;
    lam_exact_pack(q + head * K, scale + head,
                   r + (size_t)blockIdx.x * ldr + (size_t)blockIdx.y * K, K, smem);
}

/* The new key and value of a head, into row at[b]. */
static __global__ void put_heads(const __grid_constant__ lam_attn_next x)
{
    __shared__ int32_t smem[LAM_EXACT_THREADS];
    const int h = (int)blockIdx.x, b = (int)blockIdx.y, K = x.a.K;
    const lam_view to = blockIdx.z == 0 ? x.a.k : x.a.value, from = blockIdx.z == 0 ? x.k : x.value;
    float *scale = (float *)(blockIdx.z == 0 ? x.a.k_scale : x.a.value_scale);
    const size_t at =
        (size_t)b * to.step + (size_t)((const int32_t *)x.at)[b] * x.a.ldk + (size_t)h * K;
    lam_exact_pack((int8_t *)to.p + at, scale + at / K,
                   (const float *)from.p + (size_t)b * from.step + (size_t)h * K, K, smem);
}

static size_t places_bytes(size_t rows, size_t H, size_t K)
{
    return (rows * H * K + 255) / 256 * 256 + (rows * H * sizeof(float) + 255) / 256 * 256;
}

static size_t scores_bytes(size_t keys)
{
    return ROOM > keys * sizeof(float) ? ROOM : keys * sizeof(float);
}

size_t lam_cuda_exact_scratch(const lam_work *w)
{
    const size_t attn =
        places_bytes((size_t)w->r_rows, (size_t)w->H, (size_t)w->K) + scores_bytes((size_t)w->keys);
    const size_t gemm = lam_cuda_exact_gemm_scratch();
    return attn > gemm ? attn : gemm;
}

static void run(lam_cuda_dev *dev, const lam_attn *a, const void *at, const char *op)
{
    const size_t H = (size_t)a->H, K = (size_t)a->K, rows = (size_t)a->r_rows;
    const size_t places = a->r && a->r_class == LAM_ACT ? places_bytes(rows, H, K) : 0;
    char *room = (char *)lam_cuda_scratch(dev, places + scores_bytes((size_t)a->keys));
    attn_job j = {};
    assert(a->kv_class == LAM_BYTE && a->K <= LAM_NEXT_WIDTH && a->drop.p == 0.0);
    j.a = *a;
    j.at = (const int32_t *)at;
    j.tasks = a->B * a->H * a->queries;
    j.scores = (float *)(room + places);
    if (places > 0) {
        float *scale = (float *)(room + (rows * H * K + 255) / 256 * 256);
        const dim3 grid((unsigned)a->r_rows, (unsigned)a->H);
        lam_cuda_launch(dev, op, pack_places, {grid, dim3(LAM_EXACT_THREADS)}, (int8_t *)room,
                        scale, (const float *)a->r, a->ldr, a->H, a->K);
        j.a.r = room;
        j.a.r_scale = scale;
        j.a.ldr = H * K;
    }
    const size_t fit = scores_bytes((size_t)a->keys) / ((size_t)a->keys * sizeof(float));
    const int most = fit < MOST_BLOCKS ? (int)fit : MOST_BLOCKS;
    const unsigned blocks = (unsigned)(j.tasks < most ? j.tasks : most);
    lam_cuda_launch(dev, op, attend_all, {dim3(blocks), dim3(LAM_EXACT_THREADS)}, j);
}

extern "C" void lam_cuda_exact_attn_fwd(lam_dev *base, const lam_attn *a)
{
    run(lam_cuda(base), a, NULL, "attn_fwd");
}

extern "C" void lam_cuda_exact_attn_next(lam_dev *base, const lam_attn_next *x)
{
    lam_cuda_dev *dev = lam_cuda(base);
    const dim3 heads((unsigned)x->a.H, (unsigned)x->a.B, 2);
    lam_cuda_launch(dev, "attn_next", put_heads, {heads, dim3(LAM_EXACT_THREADS)}, *x);
    run(dev, &x->a, x->at, "attn_next");
}
