/* cuda/embed_bwd.cu -- the gradient of embedding rows: dtable[id] += scale * dout[r] for every r with
 * that id, in an order that does not change from run to run.
 *
 * Float atomics would add in any order.  Instead the row numbers are sorted by id (a stable radix
 * sort by one block: a few tens of thousands of ids take tens of microseconds, once a step).  The
 * sorted list is cut into chunks; a block walks one chunk and adds up each run of equal ids.  A run
 * inside a chunk goes straight to its table row.  A run that crosses a border leaves a line in
 * scratch for each chunk it touches, and the block of the chunk where it began adds those up. */
#include "ops/cuda/cuda_int.cuh"

enum {
    SORTERS = 1024,
    WARPS = SORTERS / LAM_WARP,
    DIGIT = 8,
    VALUES = 1 << DIGIT,
    AHEAD = 8,        /* rows fetched at a time */
    MIN_CHUNK = 32,   /* sorted rows of a block */
    LINES = 16 << 20, /* bytes of scratch for runs across borders */
    BLOCK = 64        /* threads of eight columns each */
};

struct entry {
    int id, row; /* id - first, or count for one of another table */
};

size_t lam_cuda_vocab_scratch(const lam_work *largest)
{
    return 2 * (size_t)largest->rows * sizeof(entry) + LINES + 512;
}

/* Turns smem[i] into the sum of all before i; SORTERS threads own VALUES * WARPS / SORTERS neighbours
 * each. */
static __device__ void scan(int *smem)
{
    enum { EACH = VALUES * WARPS / SORTERS };
    __shared__ int warps[WARPS];
    const int lane = (int)threadIdx.x % LAM_WARP, warp = (int)threadIdx.x / LAM_WARP;
    int *mine = smem + threadIdx.x * EACH, sum = 0;
    for (int i = 0; i < EACH; i++)
        sum += mine[i];
    int upto = sum; /* inclusive, within the warp */
    for (int step = 1; step < LAM_WARP; step *= 2) {
        const int left = __shfl_up_sync(0xffffffffu, upto, (unsigned)step);
        upto += lane >= step ? left : 0;
    }
    if (lane == LAM_WARP - 1)
        warps[warp] = upto;
    __syncthreads();
    int before = upto - sum;
    for (int i = 0; i < warp; i++)
        before += warps[i];
    for (int i = 0; i < EACH; i++) {
        const int count = mine[i];
        mine[i] = before;
        before += count;
    }
    __syncthreads();
}

/* Where this warp's 32 entries go: entries of one digit in the order of their lanes, after those that
 * came before.  Lanes without an entry bring a digit of their own, VALUES. */
static __device__ __forceinline__ int take_slots(int *slots, int digit)
{
    const int lane = (int)threadIdx.x % LAM_WARP, warp = (int)threadIdx.x / LAM_WARP;
    const unsigned equal = __match_any_sync(0xffffffffu, digit);
    const int rank = __popc(equal & ((1u << lane) - 1u));
    int *counter = slots + (digit < VALUES ? digit : 0) * WARPS + warp;
    const int at = *counter + rank;
    __syncwarp();
    if (rank == 0 && digit < VALUES)
        *counter += __popc(equal);
    __syncwarp();
    return at;
}

/* Stable sort of rows by id: `passes` digits, least first, from a to b and back.  Each warp counts the
 * digits of its stretch; counts are laid out [digit][warp], so their running sum is where each warp's
 * entries of each digit go. */
static __global__ void __launch_bounds__(SORTERS)
    sort_rows(lam_embed a, entry *from, entry *to, int passes)
{
    __shared__ int slots[VALUES * WARPS];
    const int warp = (int)threadIdx.x / LAM_WARP, lane = (int)threadIdx.x % LAM_WARP;
    const int each = lam_cuda_ceil(a.rows, SORTERS) * LAM_WARP; /* entries of a warp */
    const int first = min(warp * each, a.rows), last = min(first + each, a.rows);
#pragma unroll 8
    for (int r = (int)threadIdx.x; r < a.rows; r += SORTERS) {
        const int id = ((const int32_t *)a.ids)[r] - a.first;
        from[r] = {id >= 0 && id < a.count ? id : a.count, r};
    }
    for (int pass = 0; pass < passes; pass++) {
        const int shift = pass * DIGIT;
        for (int i = (int)threadIdx.x; i < VALUES * WARPS; i += SORTERS)
            slots[i] = 0;
        __syncthreads(); /* `from` is complete, `slots` is clear */
#pragma unroll 4
        for (int r = first + lane; r < last; r += LAM_WARP)
            atomicAdd(&slots[(from[r].id >> shift & (VALUES - 1)) * WARPS + warp], 1);
        __syncthreads();
        scan(slots);
        entry next = from[min(first + lane, a.rows - 1)];
        for (int r = first + lane; r - lane < last; r += LAM_WARP) {
            const entry e = next;
            next = from[min(r + LAM_WARP, a.rows - 1)];
            const int digit = r < last ? e.id >> shift & (VALUES - 1) : (int)VALUES;
            const int at = take_slots(slots, digit);
            if (r < last)
                to[at] = e;
        }
        __syncthreads(); /* `slots` is free */
        entry *const other = from;
        from = to;
        to = other;
    }
}

/* Some neighbours of a list, all fetched before the first is used. */
struct batch {
    entry v[AHEAD];
};

static __device__ __forceinline__ batch take(const entry *list, int first, int last)
{
    batch b;
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        b.v[i] = list[min(first + i, last - 1)];
    return b;
}

struct runs {
    lam_embed a;
    const entry *sorted;
    int chunk;
    float *
        lines; /* [chunks][2][ld]: the chunk's first run, if it began before; its last, if it goes on */
};

/* Is the run of id that ends before position p continued at p? */
static __device__ __forceinline__ bool goes_on(const runs &s, int p, int id)
{
    return p < s.a.rows && s.sorted[p].id == id;
}

static __device__ __forceinline__ bool began_before(const runs &s, int p, int id)
{
    return p > 0 && s.sorted[p - 1].id == id;
}

static __device__ __forceinline__ void add_to_table(const runs &s, int id, int col,
                                                    const lam_f8 &sum)
{
    float *row = (float *)s.a.dtable + (size_t)id * (size_t)s.a.ld + (size_t)col;
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (col + i < s.a.width)
            row[i] += (float)s.a.scale * sum.v[i];
}

static __device__ __forceinline__ float *line_of(const runs &s, int chunk, int which, int col)
{
    return s.lines + ((size_t)chunk * 2 + (size_t)which) * (size_t)s.a.ld + (size_t)col;
}

/* Where a finished run of a chunk goes. */
static __device__ __forceinline__ void leave_run(const runs &s, int id, int col, const lam_f8 &sum,
                                                 bool before, bool after)
{
    if (before)
        lam_store8(line_of(s, (int)blockIdx.x, 0, col), sum);
    else if (after)
        lam_store8(line_of(s, (int)blockIdx.x, 1, col), sum);
    else
        add_to_table(s, id, col, sum);
}

template <typename T>
static __global__ void __launch_bounds__(BLOCK) add_runs(runs s)
{
    const int col = (int)(blockIdx.y * BLOCK + threadIdx.x) * 8;
    const int first = (int)blockIdx.x * s.chunk, last = min(first + s.chunk, s.a.rows);
    if (col >= s.a.ld)
        return;
    int id = s.sorted[first].id;
    bool before = began_before(s, first, id);
    lam_f8 sum = {};
    for (int p = first; p < last; p += AHEAD) {
        const batch e = take(s.sorted, p, last);
        lam_f8 x[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            x[i] = lam_load8((const T *)s.a.dout + (size_t)e.v[i].row * (size_t)s.a.ld + col);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (p + i >= last)
                break;
            if (e.v[i].id != id) {
                leave_run(s, id, col, sum, before, false);
                id = e.v[i].id;
                before = false;
                sum = {};
            }
            if (id == s.a.count)
                return; /* the rest belongs to other tables */
#pragma unroll
            for (int j = 0; j < 8; j++)
                sum.v[j] += x[i].v[j];
        }
    }
    leave_run(s, id, col, sum, before, goes_on(s, last, id));
}

/* One past the last position of id, found from a position that has it. */
static __device__ int end_of(const runs &s, int from, int id)
{
    int low = from, high = s.a.rows;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (s.sorted[middle].id == id)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Joins the lines of the run that begins in this chunk and goes on in later ones. */
static __global__ void __launch_bounds__(BLOCK) join_runs(runs s)
{
    const int col = (int)(blockIdx.y * BLOCK + threadIdx.x) * 8;
    const int first = (int)blockIdx.x * s.chunk, last = min(first + s.chunk, s.a.rows);
    const int id = s.sorted[last - 1].id;
    if (col >= s.a.ld || id == s.a.count || !goes_on(s, last, id) || began_before(s, first, id))
        return;
    const int chunks = lam_cuda_ceil(end_of(s, last, id), s.chunk);
    lam_f8 sum = lam_load8(line_of(s, (int)blockIdx.x, 1, col));
#pragma unroll 4
    for (int c = (int)blockIdx.x + 1; c < chunks; c++) {
        const lam_f8 x = lam_load8(line_of(s, c, 0, col));
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum.v[i] += x.v[i];
    }
    add_to_table(s, id, col, sum);
}

static int passes_for(int count)
{
    int passes = 1;
    while (passes * DIGIT < 31 && count >> passes * DIGIT)
        passes++;
    return passes;
}

extern "C" void lam_cuda_embed_bwd(lam_dev *dev, const lam_embed *a)
{
    lam_cuda_dev *cuda = lam_cuda(dev);
    const size_t rows = (size_t)a->rows, line = 2 * (size_t)a->ld * sizeof(float);
    if (a->rows == 0)
        return;
    assert(a->ld % 8 == 0);
    char *scratch = (char *)lam_cuda_scratch(cuda, 2 * rows * sizeof(entry) + LINES + 512);
    entry *const one = (entry *)(scratch + LINES), *const two = one + rows;
    const int passes = passes_for(a->count);
    lam_cuda_launch(cuda, "embed_bwd", sort_rows, {1, SORTERS}, *a, one, two, passes);

    const int capacity = (int)((size_t)LINES / line);
    runs s = {*a, passes % 2 ? two : one, lam_cuda_ceil(a->rows, capacity), (float *)scratch};
    s.chunk = s.chunk > MIN_CHUNK ? s.chunk : MIN_CHUNK;
    const dim3 grid((unsigned)lam_cuda_ceil(a->rows, s.chunk),
                    (unsigned)lam_cuda_ceil(a->ld / 8, BLOCK));
    lam_cuda_launch(cuda, "embed_bwd", cuda->bf16 ? add_runs<lam_bf16> : add_runs<float>,
                    {grid, BLOCK}, s);
    lam_cuda_launch(cuda, "embed_bwd", join_runs, {grid, BLOCK}, s);
}
