/* exact_gemm.c -- products in exact arithmetic on the CPU (specified in ref/exact_gemm.c).
 *
 * Some rows of A at a time are quantised into scratch, then C is made tile by tile; both are shared out among
 * the threads.  A tile's sums are integers: int32_t for up to LAM_EXACT_TERMS terms, more terms are added up
 * as doubles, which hold them exactly, so that the one rounding to float comes last. */
#include "ops/cpu/exact.h"

#include <omp.h>

enum {
    TILE_ROWS = 16,
    TILE_COLS = 64,
    TILE = TILE_ROWS * LAM_NEXT_WIDTH, /* numbers of the largest tile: one group of columns */
    MOST_ROWS = 1024,                  /* quantised at a time */
    ROOM = 1 << 20                     /* numbers of them, or four rows */
};

/* One thread's tile. */
typedef struct tile {
    int32_t sum[TILE];
    double total[TILE];
    float value[TILE];
} tile;

typedef struct scratch {
    int16_t *x;   /* [rows][ld] */
    float *scale; /* [rows] */
    tile *tiles;  /* [threads] */
} scratch;

static scratch carve(lam_arena *arena, int threads)
{
    return (scratch){.x = lam_arena_take(arena, ((size_t)ROOM + LAM_EXACT_PAD) * sizeof(int16_t)),
                     .scale = lam_arena_take(arena, MOST_ROWS * sizeof(float)),
                     .tiles = lam_arena_take(arena, (size_t)threads * sizeof(tile))};
}

size_t lam_cpu_exact_gemm_scratch(int threads)
{
    lam_arena count = {0};
    (void)carve(&count, threads);
    return count.used;
}

/* Rows first .. first + rows of C, counted through the batch. */
typedef struct job {
    const lam_gemm *g;
    size_t first, rows, ld;
    scratch s;
    size_t cols; /* of a tile */
} job;

static const float *row_of(const lam_gemm *g, size_t row)
{
    const size_t m = (size_t)g->m;
    return (const float *)g->a + row / m * g->step_a + row % m * g->lda;
}

/* B's scales lie along the sum: they are the row's. */
static float quantise_scaled(int16_t *q, const float *x, const float *scale, size_t n)
{
    int32_t size = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t now = lam_exact_size(x[i] * scale[i]);
        size = now > size ? now : size;
    }
    const lam_exact_grid grid = lam_exact_grid_of(size, LAM_EXACT_ROW);
    for (size_t i = 0; i < n; i++) {
        const float scaled = x[i] * scale[i];
        q[i] = (int16_t)lam_exact_round(grid.up > 0.0f ? scaled * grid.up : 0.0f);
    }
    return grid.scale;
}

static void quantise(const job *j, size_t r)
{
    const float *x = row_of(j->g, j->first + r);
    int16_t *q = j->s.x + r * j->ld;
    const size_t k = (size_t)j->g->k;
    j->s.scale[r] =
        j->g->tb == LAM_FLIP ? lam_cpu_exact_row(q, x, k) : quantise_scaled(q, x, j->g->b_scale, k);
}

/* Where a tile is: rows from r of the job, columns from c. */
typedef struct place {
    size_t r, rows, c, cols;
} place;

/* Terms at .. at + n of the sums. */
static void sum_terms(const job *j, int32_t *sum, const place *p, size_t at, size_t n)
{
    const lam_gemm *g = j->g;
    const int16_t *x = j->s.x + p->r * j->ld + at;
    if (g->tb == LAM_FLIP) {
        lam_exact_dots(sum, p->cols, (lam_exact_rows){x, j->ld, (int)p->rows},
                       (lam_exact_bytes){.p = (const int8_t *)g->b + p->c * g->ldb + at,
                                         .ld = (ptrdiff_t)g->ldb,
                                         .n = (int)p->cols},
                       (int)n);
        return;
    }
    memset(sum, 0, p->rows * p->cols * sizeof *sum);
    for (size_t r = 0; r < p->rows; r++)
        lam_exact_mix(sum + r * p->cols, x + r * j->ld,
                      (lam_exact_bytes){.p = (const int8_t *)g->b + at * g->ldb + p->c,
                                        .ld = (ptrdiff_t)g->ldb,
                                        .n = (int)n},
                      (int)p->cols);
}

/* float(sum) of every element of the tile. */
static void sum_tile(const job *j, tile *t, const place *p)
{
    const size_t k = (size_t)j->g->k, n = p->rows * p->cols;
    if (k <= LAM_EXACT_TERMS) {
        sum_terms(j, t->sum, p, 0, k);
        for (size_t i = 0; i < n; i++)
            t->value[i] = (float)t->sum[i];
        return;
    }
    memset(t->total, 0, n * sizeof *t->total);
    for (size_t at = 0; at < k; at += LAM_EXACT_TERMS) {
        sum_terms(j, t->sum, p, at, k - at < LAM_EXACT_TERMS ? k - at : LAM_EXACT_TERMS);
        for (size_t i = 0; i < n; i++)
            t->total[i] += (double)t->sum[i];
    }
    for (size_t i = 0; i < n; i++)
        t->value[i] = (float)t->total[i];
}

/* x[c] = value[c] * (scale * scales[c]) */
static void apply_scales(float *value, float scale, const float *scales, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        const float both = scales ? scale * scales[c] : scale;
        value[c] = value[c] * both;
    }
}

/* Loop by loop: a loop that also loads what is not there by a mask of zeros takes ten times as long. */
static void finish(float *c, float *value, const float *bias, int add, int relu, size_t n)
{
    for (size_t i = 0; add && i < n; i++)
        value[i] = c[i] + value[i];
    for (size_t i = 0; bias && i < n; i++)
        value[i] = value[i] + bias[i];
    for (size_t i = 0; relu && i < n; i++)
        value[i] = value[i] < 0.0f ? 0.0f : value[i];
    memcpy(c, value, n * sizeof *c);
}

static void store_row(const job *j, float *value, const place *p, size_t r)
{
    const lam_gemm *g = j->g;
    const size_t row = j->first + p->r + r, m = (size_t)g->m, group = (size_t)g->c_group;
    const size_t at = row / m * g->step_c + row % m * g->ldc + p->c;
    const float *scales = g->tb == LAM_FLIP ? (const float *)g->b_scale + p->c : NULL;
    apply_scales(value, j->s.scale[p->r + r], scales, p->cols);
    if (g->c_class != LAM_BYTE) {
        finish((float *)g->c + at, value, g->bias ? (const float *)g->bias + p->c : NULL,
               g->beta != 0.0, g->relu, p->cols);
        return;
    }
    for (size_t c = 0; c < p->cols; c += group)
        ((float *)g->c_scale)[(at + c) / group] =
            lam_cpu_exact_head((int8_t *)g->c + at + c, value + c, group);
}

static void make_tile(const job *j, size_t number)
{
    const size_t across = ((size_t)j->g->n + j->cols - 1) / j->cols;
    place p = {.r = number / across * TILE_ROWS, .c = number % across * j->cols};
    tile *t = &j->s.tiles[omp_get_thread_num()];
    p.rows = j->rows - p.r < TILE_ROWS ? j->rows - p.r : TILE_ROWS;
    p.cols = (size_t)j->g->n - p.c < j->cols ? (size_t)j->g->n - p.c : j->cols;
    sum_tile(j, t, &p);
    for (size_t r = 0; r < p.rows; r++)
        store_row(j, t->value + r * p.cols, &p, r);
}

static void run(const lam_cpu_dev *dev, const job *j)
{
    const size_t across = ((size_t)j->g->n + j->cols - 1) / j->cols;
    const size_t tiles = (j->rows + TILE_ROWS - 1) / TILE_ROWS * across;
    const double work = (double)j->rows * j->g->n * j->g->k;
#pragma omp parallel num_threads(work < 1e6 ? 1 : dev->threads)
    {
        const uint64_t before = lam_cpu_exact_begin();
#pragma omp for schedule(static)
        for (size_t r = 0; r < j->rows; r++)
            quantise(j, r);
#pragma omp for schedule(dynamic) nowait
        for (size_t i = 0; i < tiles; i++)
            make_tile(j, i);
        lam_cpu_exact_end(before);
    }
}

/* Of a tile: narrow ones if threads would wait for each other otherwise. */
static size_t columns(const lam_gemm *g, size_t rows, int threads)
{
    size_t n = TILE_COLS;
    if (g->c_class == LAM_BYTE) /* whole groups */
        return g->c_group < TILE_COLS ? (size_t)(TILE_COLS / g->c_group * g->c_group)
                                      : (size_t)g->c_group;
    while (n > 16 && (rows + TILE_ROWS - 1) / TILE_ROWS * (size_t)g->n < 4 * n * (size_t)threads)
        n /= 2;
    return n;
}

void lam_cpu_exact_gemm(lam_dev *dev, const lam_gemm *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t rows = (size_t)a->m * (size_t)a->batch, ld = lam_exact_padded((size_t)a->k);
    const size_t most = ROOM / ld < MOST_ROWS ? ROOM / ld : MOST_ROWS;
    lam_arena arena = {.base = lam_cpu_scratch(cpu, lam_cpu_exact_gemm_scratch(cpu->threads)),
                       .size = cpu->scratch_bytes};
    assert(a->ta == LAM_KEEP && a->b_class == LAM_BYTE && a->step_b == 0 && !a->h);
    assert(a->drop.p == 0.0 && (a->batch < 2 || a->step_c > 0));
    job j = {
        .g = a, .ld = ld, .s = carve(&arena, cpu->threads), .cols = columns(a, rows, cpu->threads)};
    for (j.first = 0; j.first < rows && a->n > 0; j.first += most) {
        j.rows = rows - j.first < most ? rows - j.first : most;
        run(cpu, &j);
    }
}
