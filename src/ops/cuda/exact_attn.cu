/* cuda/exact_attn.cu -- attention in exact arithmetic on the GPU (specified in ref/exact_attn.c).
 *
 * A block computes a tile, up to 16 queries of one head of one stream, or one of them where a text is decoded.  Its warps
 * share the keys: products with positions and with keys, softmax (exact_scores.cuh), the sum of values
 * (exact_values.cuh), all products on tensor cores.
 *
 * Decoding waits for memory: keys and values of all streams once, 67 MB a layer at 64 streams of 1,024 keys and 8 heads
 * of 64, or 15 us at 4.5 TB/s.  A segment, or a memory that is refreshed, computes: a score takes about 60 instructions of
 * a thread, many times what its products take. */
#include "ops/cuda/exact_scores.cuh"
#include "ops/cuda/exact_values.cuh"

enum {
    SHARED = 96 << 10, /* bytes of a block's shared memory; the scores of more keys go to scratch */
    MOST_BLOCKS = 4096 /* at a time, if they do */
};
static const size_t ROOM = 32 << 20; /* bytes of their scores, or those of one block */

/* Of a single query nobody else reads these rows: they are sent for together, before they are needed, and while the
 * block does something else. */
static __device__ void send_for(const attn_tile *x, const attn_rows *rows)
{
    const attn_head r = head_of(x, rows, x->lo, 1);
    if (x->n > 1)
        return;
    for (int c = (int)threadIdx.x; c < x->width; c += THREADS) {
        lam_prefetch(r.p + row_at(&r, c) * r.ld);
        lam_prefetch(r.scale + row_at(&r, c) * r.scale_ld);
    }
}

/* The scales of the values, which all queries will ask for; several are under way at once. */
static __device__ void fetch_scales(const attn_tile *x)
{
    enum { TOGETHER = 8 };
    const attn_head v = head_of(x, &x->j->value, x->lo, 1);
    for (int first = (int)threadIdx.x; first < x->width; first += TOGETHER * THREADS) {
        float scale[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
            scale[i] = v.scale[row_at(&v, first + i * THREADS) * v.scale_ld];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
            if (first + i * THREADS < x->width)
                x->value_scale[first + i * THREADS] = scale[i];
    }
}

template <bool WHOLE>
static __device__ void attend(const attn_tile *x)
{
    send_for(x, &x->j->k);
    quantise(x);
    __syncthreads();
    fetch_scales(x);
    if (x->j->r.p)
        add_places<WHOLE>(x);
    __syncthreads();
    add_keys<WHOLE>(x);
    send_for(x, &x->j->value);
    __syncthreads();
    weigh(x);
    __syncthreads();
    quantise_weights(x);
    if ((int)threadIdx.x < x->n)
        finish_softmax(x, (int)threadIdx.x);
    __syncthreads();
    sum_values<WHOLE>(x);
}

template <bool WHOLE>
static __global__ void __launch_bounds__(THREADS, 4) attend_all(const __grid_constant__ attn_job j)
{
    lam_chain();
    __shared__ attn_shared shared;
    for (int task = (int)blockIdx.x; task < j.tasks; task += (int)gridDim.x) {
        const attn_tile x = tile_at(&j, task, &shared);
        attend<WHOLE>(&x);
    }
}

/* Positions that come as floats: a warp a head of a row; rows in x, where a grid has no limit they could reach. */
static __global__ void pack_places(int8_t *q, float *scale, const float *r, size_t ldr, int H,
                                   int K)
{
    const int h = (int)blockIdx.y * WARPS + (int)threadIdx.x / LAM_WARP;
    const size_t head = (size_t)blockIdx.x * H + h;
    if (h < H)
        lam_exact_pack(q + head * K, scale + head, r + (size_t)blockIdx.x * ldr + (size_t)h * K, K);
}

static size_t places_bytes(size_t rows, size_t H, size_t K)
{
    return (rows * H * K + 255) / 256 * 256 + (rows * H * sizeof(float) + 255) / 256 * 256;
}

/* Floats from one query's scores to the next one's: with four more than a multiple of 32, they lie in other banks. */
static size_t stride_of(size_t keys)
{
    return (keys + LAM_EXACT_CHUNK - 1) / LAM_EXACT_CHUNK * LAM_EXACT_CHUNK + 4;
}

/* Of scratch: for some blocks, or one, each a tile's scores and the scales of its values. */
static size_t scores_bytes(size_t keys)
{
    const size_t bytes = (TILE + 1) * stride_of(keys) * sizeof(float);
    return ROOM > bytes ? ROOM : bytes;
}

size_t lam_cuda_exact_scratch(const lam_work *w)
{
    const size_t attn =
        places_bytes((size_t)w->r_rows, (size_t)w->H, (size_t)w->K) + scores_bytes((size_t)w->keys);
    const size_t gemm = lam_cuda_exact_gemm_scratch();
    return attn > gemm ? attn : gemm;
}

static attn_rows rows_of(lam_view view, const void *scale, size_t ld, int K, int count)
{
    const size_t width = (size_t)K;
    assert(view.step % width == 0 && ld % width == 0);
    return {(const int8_t *)view.p, (const float *)scale, view.step, ld,
            view.step / width,      ld / width,           count};
}

/* Do heads of the rows begin on 16-byte borders? */
static bool are_whole(const attn_rows *r)
{
    return lam_cuda_on_border(r->p, r->ld, 1) && r->step % 16 == 0;
}

/* Positions in 8 bits, quantised into `room` if they are not. */
static attn_rows places_of(lam_cuda_dev *dev, const lam_attn *a, char *room, const char *op)
{
    const size_t H = (size_t)a->H, K = (size_t)a->K, rows = (size_t)a->r_rows;
    const lam_view given = {(void *)(uintptr_t)a->r, 0}, packed = {room, 0};
    float *scale = (float *)(room + (rows * H * K + 255) / 256 * 256);
    if (!a->r)
        return {};
    if (a->r_class != LAM_ACT)
        return rows_of(given, a->r_scale, a->ldr, a->K, a->r_rows);
    const dim3 grid((unsigned)a->r_rows, (unsigned)lam_cuda_ceil(a->H, WARPS));
    lam_cuda_launch(dev, op, pack_places, {grid, dim3(THREADS)}, (int8_t *)room, scale,
                    (const float *)a->r, a->ldr, a->H, a->K);
    return rows_of(packed, scale, H * K, a->K, a->r_rows);
}

static void run(lam_cuda_dev *dev, const lam_attn *a, const lam_attn_next *next, const char *op)
{
    const size_t places = a->r && a->r_class == LAM_ACT
                              ? places_bytes((size_t)a->r_rows, (size_t)a->H, (size_t)a->K)
                              : 0;
    char *room = (char *)lam_cuda_scratch(dev, places + scores_bytes((size_t)a->keys));
    attn_job j = {};
    assert(a->kv_class == LAM_BYTE && a->K <= LAM_NEXT_WIDTH && a->drop.p == 0.0);
    j.a = *a;
    j.k = rows_of(a->k, a->k_scale, a->ldk, a->K, a->keys);
    j.value = rows_of(a->value, a->value_scale, a->ldk, a->K, a->keys);
    j.r = places_of(dev, a, room, op);
    if (next) {
        j.at = (const int32_t *)next->at;
        j.new_k = next->k;
        j.new_value = next->value;
    }
    j.terms = lam_exact_whole(a->K);
    j.tiles = lam_cuda_ceil(a->queries, TILE);
    j.tasks = a->B * a->H * j.tiles;
    j.rows = (a->queries < TILE ? a->queries : TILE) + 1;
    j.stride = (int)stride_of((size_t)a->keys);
    const size_t queries = (size_t)4 * TILE * j.terms;
    const size_t scores = (size_t)j.rows * j.stride * sizeof(float);
    const size_t fit = scores_bytes((size_t)a->keys) / scores;
    const bool small = queries + scores + sizeof(attn_shared) <= SHARED;
    const int most = small ? j.tasks : fit < MOST_BLOCKS ? (int)fit : MOST_BLOCKS;
    const bool whole = a->K % 16 == 0 && are_whole(&j.k) && are_whole(&j.value) && are_whole(&j.r);
    j.scores = small ? NULL : (float *)(room + places);
    lam_cuda_launch(dev, op, whole ? attend_all<true> : attend_all<false>,
                    {dim3((unsigned)(j.tasks < most ? j.tasks : most)), dim3(THREADS),
                     small ? queries + scores : queries, true},
                    j);
}

extern "C" void lam_cuda_exact_attn_fwd(lam_dev *base, const lam_attn *a)
{
    run(lam_cuda(base), a, NULL, "attn_fwd");
}

extern "C" void lam_cuda_exact_attn_next(lam_dev *base, const lam_attn_next *x)
{
    run(lam_cuda(base), &x->a, x, "attn_next");
}
