/* cuda/optim.cu -- global norm, clipping, and the update rules: all tensors in one launch.
 *
 * The parts travel as a kernel argument, MAX_PARTS at a time, so nothing is uploaded.  Each part is
 * cut into tiles and a block takes one tile.  The norm leaves one double per tile in scratch and a
 * single block adds them in order.  The clip factor and the test for a finite norm are read from
 * device memory by the update itself: the host never waits.  An Adam step reads 16 bytes and writes
 * 12 or 14 per parameter, which is all its time. */
#include "ops/cuda/cuda_int.cuh"

enum {
    BLOCK = 256,
    MAX_PARTS = 72,    /* of one launch: an argument must stay below 4096 bytes */
    MIN_TILE = 4096,   /* elements of a block's work, at least */
    MANY_TILES = 8192, /* tiles grow so that there are about this many of them */
    MAX_TILES = 3 * MANY_TILES
};

struct part {
    size_t offset, count;
    float lr, decay, fix1, fix2;
    int tile; /* the first tile of this part within the launch */
};

struct parts {
    int n, tiles, tile_size;
    part list[MAX_PARTS];
};

/* Takes as many parts as fit, from *next on. */
static parts take_parts(const lam_part *from, int n_parts, int *next, size_t tile_size)
{
    parts out = {};
    out.tile_size = (int)tile_size;
    for (; *next < n_parts && out.n < MAX_PARTS; ++*next) {
        const lam_part *p = &from[*next];
        if (p->count == 0)
            continue;
        part *q = &out.list[out.n++];
        *q = {p->offset,      p->count,       (float)p->lr, (float)p->decay,
              (float)p->fix1, (float)p->fix2, out.tiles};
        out.tiles += (int)((p->count + tile_size - 1) / tile_size);
    }
    return out;
}

static size_t tile_size_of(const lam_part *list, int n_parts)
{
    size_t total = 0;
    for (int i = 0; i < n_parts; i++)
        total += list[i].count;
    const size_t even = (total / MANY_TILES + MIN_TILE - 1) / MIN_TILE * MIN_TILE;
    return even > 0 ? even : (size_t)MIN_TILE;
}

/* This block's stretch of the flat vector. */
struct stretch {
    int part;
    size_t first, end;
};

static __device__ __forceinline__ stretch stretch_of(const parts &p)
{
    int low = 0, high = p.n - 1; /* the last part whose first tile is not after ours */
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (p.list[middle].tile <= (int)blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    const part &q = p.list[low];
    const size_t from = (size_t)((int)blockIdx.x - q.tile) * (size_t)p.tile_size;
    const size_t to = from + (size_t)p.tile_size;
    return {low, q.offset + from, q.offset + (to < q.count ? to : q.count)};
}

/* ---- the norm -------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(BLOCK)
    square_tiles(const __grid_constant__ parts p, const float *grad, double *sums)
{
    __shared__ double smem[LAM_WARP];
    const stretch s = stretch_of(p);
    const size_t fours = s.first % 4 == 0 ? (s.end - s.first) / 4 : 0;
    double sum = 0.0;
#pragma unroll 4
    for (size_t i = threadIdx.x; i < fours; i += BLOCK) {
        const float4 g = *(const float4 *)(grad + s.first + 4 * i);
        sum += (double)g.x * (double)g.x + (double)g.y * (double)g.y;
        sum += (double)g.z * (double)g.z + (double)g.w * (double)g.w;
    }
    for (size_t i = s.first + 4 * fours + threadIdx.x; i < s.end; i += BLOCK)
        sum += (double)grad[i] * (double)grad[i];
    sum = lam_block_sum(sum, smem);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

static __global__ void __launch_bounds__(BLOCK) add_tiles(const double *sums, int n, float *norm)
{
    __shared__ double smem[LAM_WARP];
    double sum = 0.0;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < n; i += BLOCK)
        sum += sums[i];
    sum = lam_block_sum(sum, smem);
    if (threadIdx.x == 0)
        *norm = (float)sqrt(sum);
}

size_t lam_cuda_optim_scratch(void)
{
    return MAX_TILES * sizeof(double);
}

extern "C" void lam_cuda_gnorm(lam_dev *dev, const lam_gnorm *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    const size_t tile_size = tile_size_of(a->parts, a->n_parts);
    double *sums = (double *)lam_cuda_scratch(cuda, lam_cuda_optim_scratch());
    int tiles = 0;
    for (int next = 0; next < a->n_parts;) {
        const parts p = take_parts(a->parts, a->n_parts, &next, tile_size);
        assert(tiles + p.tiles <= MAX_TILES);
        if (p.tiles > 0)
            lam_cuda_launch(cuda, "gnorm", square_tiles, {p.tiles, BLOCK}, p,
                            (const float *)a->grad, sums + tiles);
        tiles += p.tiles;
    }
    lam_cuda_launch(cuda, "gnorm", add_tiles, {1, BLOCK}, sums, tiles, (float *)a->norm);
}

/* ---- the update ------------------------------------------------------------------------------ */

struct rule {
    float beta1, beta2, rest1, rest2, eps, clip; /* rest = 1 - beta */
    const float *norm, *grad;
    float *master, *m, *v;
    void *weight;
};

/* The step for gradient g; the moments move on. */
template <lam_update_kind KIND>
static __device__ __forceinline__ float step_of(const rule &r, const part &q, float g, float &m,
                                                float &v)
{
    if (KIND == LAM_ADAM) {
        m = r.beta1 * m + r.rest1 * g;
        v = r.beta2 * v + r.rest2 * g * g;
        return (m / q.fix1) / (sqrtf(v / q.fix2) + r.eps);
    }
    if (KIND == LAM_SGD) {
        m = r.beta1 * m + g;
        return m;
    }
    v += g * g;
    return g / (sqrtf(v) + r.eps);
}

template <lam_update_kind KIND, typename T>
static __device__ __forceinline__ void update_one(const rule &r, const part &q, size_t i,
                                                  float clip)
{
    float m = KIND != LAM_ADAGRAD ? r.m[i] : 0.0f, v = KIND != LAM_SGD ? r.v[i] : 0.0f;
    float p = r.master[i];
    p -= q.lr * q.decay * p;
    p -= q.lr * step_of<KIND>(r, q, clip * r.grad[i], m, v);
    r.master[i] = p;
    if (KIND != LAM_ADAGRAD)
        r.m[i] = m;
    if (KIND != LAM_SGD)
        r.v[i] = v;
    if (r.weight)
        ((T *)r.weight)[i] = lam_act<T>(p);
}

static __device__ __forceinline__ void store_four(float *to, float4 x)
{
    *(float4 *)to = x;
}

static __device__ __forceinline__ void store_four(lam_bf16 *to, float4 x)
{
    ((__nv_bfloat162 *)to)[0] = __floats2bfloat162_rn(x.x, x.y);
    ((__nv_bfloat162 *)to)[1] = __floats2bfloat162_rn(x.z, x.w);
}

/* Four elements with 16-byte accesses. */
struct four {
    float4 g, p, m, v;
};

template <lam_update_kind KIND>
static __device__ __forceinline__ four load_four(const rule &r, size_t i)
{
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    return {*(const float4 *)(r.grad + i), *(const float4 *)(r.master + i),
            KIND != LAM_ADAGRAD ? *(const float4 *)(r.m + i) : zero,
            KIND != LAM_SGD ? *(const float4 *)(r.v + i) : zero};
}

template <lam_update_kind KIND, typename T>
static __device__ __forceinline__ void update_four(const rule &r, const part &q, size_t i, four x,
                                                   float clip)
{
    float *const ps[4] = {&x.p.x, &x.p.y, &x.p.z, &x.p.w};
    float *const ms[4] = {&x.m.x, &x.m.y, &x.m.z, &x.m.w};
    float *const vs[4] = {&x.v.x, &x.v.y, &x.v.z, &x.v.w};
    const float gs[4] = {x.g.x, x.g.y, x.g.z, x.g.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        *ps[j] -= q.lr * q.decay * *ps[j];
        *ps[j] -= q.lr * step_of<KIND>(r, q, clip * gs[j], *ms[j], *vs[j]);
    }
    *(float4 *)(r.master + i) = x.p;
    if (KIND != LAM_ADAGRAD)
        *(float4 *)(r.m + i) = x.m;
    if (KIND != LAM_SGD)
        *(float4 *)(r.v + i) = x.v;
    if (r.weight)
        store_four((T *)r.weight + i, x.p);
}

template <lam_update_kind KIND, typename T>
static __global__ void __launch_bounds__(BLOCK)
    update_tiles(const __grid_constant__ parts p, const __grid_constant__ rule r)
{
    const float norm = *r.norm;
    if (!isfinite(norm))
        return; /* a broken gradient must not reach the weights */
    const float clip = r.clip == 0.0f ? 1.0f : fminf(1.0f, r.clip / (norm + 1e-6f));
    const stretch s = stretch_of(p);
    const part q = p.list[s.part];
    size_t begin = s.first;
    if (s.first % 4 == 0) { /* the flat vectors themselves are aligned */
        const size_t fours = (s.end - s.first) / 4;
        for (size_t i = threadIdx.x; i < fours;
             i += 2 * BLOCK) { /* two at a time, both fetched first */
            const size_t at = s.first + 4 * i, then = at + 4 * BLOCK;
            const bool both = i + BLOCK < fours;
            const four one = load_four<KIND>(r, at), two = load_four<KIND>(r, both ? then : at);
            update_four<KIND, T>(r, q, at, one, clip);
            if (both)
                update_four<KIND, T>(r, q, then, two, clip);
        }
        begin += 4 * fours;
    }
    for (size_t i = begin + threadIdx.x; i < s.end; i += BLOCK)
        update_one<KIND, T>(r, q, i, clip);
}

template <lam_update_kind KIND>
static void launch(lam_cuda_dev *dev, const parts &p, const rule &r)
{
    const auto kernel = dev->bf16 ? update_tiles<KIND, lam_bf16> : update_tiles<KIND, float>;
    lam_cuda_launch(dev, "update", kernel, {p.tiles, BLOCK}, p, r);
}

extern "C" void lam_cuda_update(lam_dev *dev, const lam_update *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    const rule r = {(float)a->beta1,         (float)a->beta2,        (float)(1.0 - a->beta1),
                    (float)(1.0 - a->beta2), (float)a->eps,          (float)a->clip,
                    (const float *)a->norm,  (const float *)a->grad, (float *)a->master,
                    (float *)a->m,           (float *)a->v,          a->weight};
    const size_t tile_size = tile_size_of(a->parts, a->n_parts);
    for (int next = 0; next < a->n_parts;) {
        const parts p = take_parts(a->parts, a->n_parts, &next, tile_size);
        if (p.tiles == 0)
            continue;
        if (a->kind == LAM_ADAM)
            launch<LAM_ADAM>(cuda, p, r);
        else if (a->kind == LAM_SGD)
            launch<LAM_SGD>(cuda, p, r);
        else
            launch<LAM_ADAGRAD>(cuda, p, r);
    }
}
