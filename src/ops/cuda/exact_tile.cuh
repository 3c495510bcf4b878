/* exact_tile.cuh -- what a block of exact attention works on (exact_attn.cu): a tile of queries of one head of one
 * stream, and the rows of keys, values and positions that it reads. */
#ifndef LAM_OPS_CUDA_EXACT_TILE_CUH
#define LAM_OPS_CUDA_EXACT_TILE_CUH

#include "ops/cuda/exact.cuh"

enum {
    THREADS = LAM_EXACT_THREADS,
    WARPS = LAM_EXACT_WARPS,
    TILE = 16,   /* queries */
    COLUMNS = 64 /* of values: what a block adds at a time */
};

/* Keys, values or positions in 8 bits: head h of row i of stream b begins at b * step + i * ld + h * K, its scale is
 * number b * scale_step + i * scale_ld + h. */
struct attn_rows {
    const int8_t *p;
    const float *scale;
    size_t step, ld, scale_step, scale_ld;
    int count;
};

struct attn_job {
    lam_attn a;
    attn_rows k, value, r;
    /* attn_next: rows before this one, and its key and value; otherwise NULL. */
    const int32_t *at;
    lam_view new_k, new_value;
    float *scores;    /* of blocks whose shared memory does not hold them; otherwise NULL */
    int rows, stride; /* of the scores of a block */
    int terms;        /* K rounded up */
    int tiles, tasks; /* tiles of a head; of all */
};

/* What the warps of a block tell each other. */
struct attn_shared {
    float scale[2][TILE];
    /* Of each warp's keys: the largest rank, the largest weight, the sum of round(p 2^22). */
    int32_t top[WARPS][TILE], size[WARPS][TILE];
    int64_t n[WARPS][TILE];
    float share[TILE];
    int64_t total[TILE][COLUMNS];
};

/* The roles of a query: q + u meets keys, q + v meets positions. */
enum { BY_KEY, BY_PLACE };

struct attn_tile {
    const attn_job *j;
    attn_shared *shared;
    int8_t *q;          /* [2][TILE][2][terms]: the queries as planes, in both roles */
    float *p;           /* [n][stride]: scores, then weights of the keys from lo on */
    float *value_scale; /* [stride] */
    int b, h, first, n; /* queries */
    int shift;          /* of the first query */
    int from, to;       /* valid keys */
    int lo, width;      /* keys that some query sees */
};

struct attn_span {
    int lo, hi;
};

/* The keys that query i of the tile sees. */
static __device__ attn_span seen_by(const attn_tile *x, int i)
{
    const lam_attn *a = &x->j->a;
    const int place = x->shift + i;
    attn_span s = {x->from, x->to};
    if (a->mode == LAM_CAUSAL) {
        s.hi = place + 1 < s.hi ? place + 1 : s.hi;
        s.lo = a->reach > 0 && place - a->reach + 1 > s.lo ? place - a->reach + 1 : s.lo;
    } else if (a->mode == LAM_AHEAD) {
        s.lo = place + 1 > s.lo ? place + 1 : s.lo;
    }
    return s;
}

static __device__ attn_tile tile_at(const attn_job *j, int task, attn_shared *shared)
{
    const lam_attn *a = &j->a;
    attn_tile x = {};
    x.j = j;
    x.shared = shared;
    x.b = task / (a->H * j->tiles);
    x.h = task / j->tiles % a->H;
    x.first = task % j->tiles * TILE;
    x.n = a->queries - x.first < TILE ? a->queries - x.first : TILE;
    x.shift = (j->at ? j->at[x.b] : a->shift) + x.first;
    x.to = j->at ? x.shift + 1 : a->keys;
    const int oldest = a->valid ? a->past - ((const int32_t *)a->valid)[x.b] : 0;
    x.from = oldest > 0 ? oldest : 0;
    x.lo = seen_by(&x, 0).lo;
    const int hi = seen_by(&x, x.n - 1).hi;
    x.width = hi > x.lo ? hi - x.lo : 0;
    x.q = (int8_t *)lam_shared_memory();
    x.p = j->scores ? j->scores + (size_t)blockIdx.x * j->rows * j->stride
                    : (float *)(x.q + (size_t)4 * TILE * j->terms);
    x.value_scale = x.p + (size_t)(j->rows - 1) * j->stride;
    return x;
}

/* A head of rows in the order in which a product has them for columns: row first + way * column.  What lies outside
 * belongs to no visible pair, and the nearest row is read for it. */
struct attn_head {
    const int8_t *p;
    const float *scale;
    size_t ld, scale_ld;
    int first, way, last;
};

static __device__ attn_head head_of(const attn_tile *x, const attn_rows *r, int first, int way)
{
    const int8_t *p = r->p + x->b * r->step + (size_t)x->h * x->j->a.K;
    return {p,           r->scale + x->b * r->scale_step + x->h, r->ld, r->scale_ld, first, way,
            r->count - 1};
}

static __device__ size_t row_at(const attn_head *r, int column)
{
    const int row = r->first + r->way * column;
    return (size_t)(row < 0 ? 0 : row < r->last ? row : r->last);
}

/* Column c of a query with its bias; zero behind the last one. */
static __device__ float query_element(const float *q, const float *bias, int c, int K)
{
    return c >= K ? 0.0f : bias ? LAM_ADD(q[c], bias[c]) : q[c];
}

/* A warp: query i in one of its roles as 15-bit numbers. */
static __device__ void quantise_query(const attn_tile *x, int role, int i)
{
    const lam_attn *a = &x->j->a;
    const int lane = (int)threadIdx.x % LAM_WARP, terms = x->j->terms;
    const size_t head = (size_t)x->h * a->K;
    const float *q =
        (const float *)a->q.p + x->b * a->q.step + (size_t)(x->first + i) * a->ldq + head;
    const float *biases = (const float *)(role == BY_KEY ? a->u : a->v);
    const float *bias = biases ? biases + head : NULL;
    int8_t *to = x->q + (size_t)(role * TILE + i) * 2 * terms;
    int32_t size = 0;
    for (int c = lane; c < a->K; c += LAM_WARP) {
        const int32_t now = lam_exact_size(query_element(q, bias, c, a->K));
        size = now > size ? now : size;
    }
    const lam_exact_grid grid = lam_exact_grid_of(lam_exact_warp_most(size), (float)LAM_EXACT_ROW);
    for (int c = 4 * lane; c < terms; c += 4 * LAM_WARP) {
        float four[4];
#pragma unroll
        for (int e = 0; e < 4; e++)
            four[e] = query_element(q, bias, c + e, a->K);
        const uint2 planes = lam_exact_split(grid, four);
        *(uint32_t *)(to + c) = planes.x;
        *(uint32_t *)(to + terms + c) = planes.y;
    }
    if (lane == 0)
        x->shared->scale[role][i] = grid.scale;
}

/* A warp: the new key or value of a head, into row at[b]. */
static __device__ void put_head(const attn_tile *x, const attn_rows *to, lam_view from)
{
    const int K = x->j->a.K;
    const size_t row = (size_t)x->j->at[x->b];
    lam_exact_pack((int8_t *)to->p + x->b * to->step + row * to->ld + (size_t)x->h * K,
                   (float *)to->scale + x->b * to->scale_step + row * to->scale_ld + x->h,
                   (const float *)from.p + x->b * from.step + (size_t)x->h * K, K);
}

static __device__ void quantise(const attn_tile *x)
{
    const attn_job *j = x->j;
    const int queries = j->r.p ? 2 * x->n : x->n, all = queries + (j->at ? 2 : 0);
    for (int i = (int)threadIdx.x / LAM_WARP; i < all; i += WARPS) {
        if (i < queries)
            quantise_query(x, i < x->n ? BY_KEY : BY_PLACE, i % x->n);
        else if (i == queries)
            put_head(x, &j->k, j->new_k);
        else
            put_head(x, &j->value, j->new_value);
    }
}

#endif
