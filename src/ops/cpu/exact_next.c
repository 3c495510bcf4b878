/* exact_next.c -- attention of a new row of every stream in exact arithmetic on the CPU (specified in ref/exact_attn.c).
 *
 * Decoding reads every key and value once for a single query: it waits for memory more than it computes.  So a task is
 * a stream with all its heads, whose rows are read in the order in which they lie.  With few streams a task is one head. */
#include "ops/cpu/exact.h"

#include <omp.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

enum { HEADS = LAM_EXACT_HEADS }; /* of a task, at most */

/* One thread's scratch. */
typedef struct room {
    int16_t *by_key, *by_place; /* [HEADS][Kp]: q + u, q + v */
    int32_t *ac, *bd;           /* [HEADS][span] */
    float *k_scale, *v_scale;   /* likewise */
    int16_t *weight;            /* likewise */
    float *p;                   /* [span] */
    int32_t *sum;               /* [HEADS][Kp] */
    double *total;              /* likewise */
    size_t span, Kp;
} room;

static room carve_room(lam_arena *arena, int keys, int K)
{
    room x = {.span = lam_exact_padded((size_t)keys), .Kp = lam_exact_padded((size_t)K)};
    const size_t all = HEADS * x.span;
    x.by_key = lam_arena_take(arena, HEADS * x.Kp * sizeof(int16_t));
    x.by_place = lam_arena_take(arena, HEADS * x.Kp * sizeof(int16_t));
    x.ac = lam_arena_take(arena, all * sizeof(int32_t));
    x.bd = lam_arena_take(arena, all * sizeof(int32_t));
    x.k_scale = lam_arena_take(arena, all * sizeof(float));
    x.v_scale = lam_arena_take(arena, all * sizeof(float));
    x.weight = lam_arena_take(arena, all * sizeof(int16_t));
    x.p = lam_arena_take(arena, x.span * sizeof(float));
    x.sum = lam_arena_take(arena, HEADS * x.Kp * sizeof(int32_t));
    x.total = lam_arena_take(arena, HEADS * x.Kp * sizeof(double));
    return x;
}

/* Of a call: positions' scales and biases by head, in the order in which keys need them. */
typedef struct table {
    float *scale, *bias; /* [H][r_rows] */
} table;

static table carve_table(lam_arena *arena, int rows, int H)
{
    const size_t size = (size_t)rows * (size_t)H * sizeof(float);
    return (table){.scale = lam_arena_take(arena, size), .bias = lam_arena_take(arena, size)};
}

size_t lam_cpu_exact_next_scratch(const lam_work *largest, int threads)
{
    lam_arena count = {0};
    (void)carve_table(&count, largest->r_rows, largest->H);
    for (int i = 0; i < threads; i++)
        (void)carve_room(&count, largest->keys, largest->K);
    return count.used;
}

#if defined(__AVX512F__)
/* Whole groups of sixteen rows: out[i] = in[i * step + h].  Sixteen numbers come from `step` vectors, two of which are
 * searched at once; step <= 32.  Nothing behind the last row is read. */
static size_t sixteens(float *out, const float *in, int step, size_t n, size_t h)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i at = _mm512_add_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(step)),
                                        _mm512_set1_epi32((int)h));
    const __m512i pair = _mm512_srli_epi32(at, 5);
    const int pairs = (step + 1) / 2;
    __mmask16 here[16];
    size_t i = 0;
    for (int v = 0; v < pairs; v++)
        here[v] = _mm512_cmpeq_epi32_mask(pair, _mm512_set1_epi32(v));
    for (; i + 16 < n; i += 16, in += 16 * step) {
        __m512 x = _mm512_setzero_ps();
        for (int v = 0; v < pairs; v++) {
            const __m512 one = _mm512_loadu_ps(in + 32 * v);
            const __m512 two = 2 * v + 1 < step ? _mm512_loadu_ps(in + 32 * v + 16) : one;
            x = _mm512_mask_mov_ps(x, here[v], _mm512_permutex2var_ps(one, at, two));
        }
        _mm512_storeu_ps(out + i, x);
    }
    return i;
}
#endif

/* out[h][i] = in[i * step + h], or from the last row to the first. */
static void by_head(float *out, size_t ldo, const float *in, ptrdiff_t step, size_t n, size_t H)
{
    for (size_t h = 0; h < H; h++) {
        size_t i = 0;
#if defined(__AVX512F__)
        if (step > 0 && step <= 32)
            i = sixteens(out + h * ldo, in, (int)step, n, h);
#endif
        for (; i < n; i++)
            out[h * ldo + i] = in[(ptrdiff_t)i * step + (ptrdiff_t)h];
    }
}

static void fill_table(const table *t, const lam_attn *a)
{
    const size_t rows = (size_t)a->r_rows, H = (size_t)a->H, K = (size_t)a->K;
    const size_t first = a->r_sign > 0 ? 0 : rows - 1, step = a->ldr / K;
    if (a->r)
        by_head(t->scale, rows, (const float *)a->r_scale + first * step,
                a->r_sign * (ptrdiff_t)step, rows, H);
    if (a->rbias)
        by_head(t->bias, rows, (const float *)a->rbias + first * H, a->r_sign * (ptrdiff_t)H, rows,
                H);
}

/* Some heads of a stream. */
typedef struct task {
    const lam_attn_next *x;
    const lam_attn *a; /* with positions as bytes */
    const table *tab;
    size_t b, h, heads;
    int lo, n;    /* visible keys */
    size_t place; /* the first one's in the table */
} task;

/* ---- a task ---- */

/* The new key or value of head h, into row at[b]. */
static void put(const task *t, lam_view to, void *scale, lam_view from, size_t h)
{
    const size_t K = (size_t)t->a->K, row = (size_t)((const int32_t *)t->x->at)[t->b];
    const size_t at = t->b * to.step + row * t->a->ldk + h * K;
    ((float *)scale)[at / K] = lam_cpu_exact_head(
        (int8_t *)to.p + at, (const float *)from.p + t->b * from.step + h * K, K);
}

static void put_heads(const task *t)
{
    for (size_t h = t->h; h < t->h + t->heads; h++) {
        put(t, t->a->k, t->a->k_scale, t->x->k, h);
        put(t, t->a->value, t->a->value_scale, t->x->value, h);
    }
}

static const int8_t *row_at(const task *t, lam_view view, size_t h)
{
    return (const int8_t *)view.p + t->b * view.step + (size_t)t->lo * t->a->ldk +
           h * (size_t)t->a->K;
}

static void copy_scales(const task *t, const room *m)
{
    const lam_attn *a = t->a;
    const size_t K = (size_t)a->K;
    const size_t k = (size_t)(row_at(t, a->k, t->h) - (const int8_t *)a->k.p) / K;
    const size_t v = (size_t)(row_at(t, a->value, t->h) - (const int8_t *)a->value.p) / K;
    by_head(m->k_scale, m->span, (const float *)a->k_scale + k, (ptrdiff_t)(a->ldk / K),
            (size_t)t->n, t->heads);
    by_head(m->v_scale, m->span, (const float *)a->value_scale + v, (ptrdiff_t)(a->ldk / K),
            (size_t)t->n, t->heads);
}

/* Parts from .. to, of four, of the rows that a task reads: a row's keys and values lie side by side.  Nothing where a task
 * has some of the heads. */
static lam_exact_ahead rows_ahead(const task *t, size_t from, size_t to)
{
    const size_t lines = (size_t)t->n * t->a->ldk / 64, at = lines * from / 4;
    return t->heads < (size_t)t->a->H
               ? (lam_exact_ahead){0}
               : (lam_exact_ahead){(const char *)row_at(t, t->a->k, 0) + 64 * at,
                                   lines * to / 4 - at};
}

/* Positions are near, since all streams read them: so they come first, and half of the rows meanwhile. */
static void multiply(const task *t, const room *m)
{
    const lam_attn *a = t->a;
    const int heads = (int)t->heads;
    if (a->r) {
        const ptrdiff_t way = a->r_sign * (ptrdiff_t)a->ldr;
        const size_t first = a->r_sign > 0 ? 0 : (size_t)a->r_rows - 1;
        const int8_t *const r = (const int8_t *)a->r + first * a->ldr + t->h * (size_t)a->K;
        lam_exact_head_dots(m->bd, m->span, (lam_exact_rows){m->by_place, m->Kp, heads},
                            (lam_exact_bytes){r + (ptrdiff_t)t->place * way, way, t->n}, a->K,
                            rows_ahead(t, 0, 2));
    }
    lam_exact_head_dots(m->ac, m->span, (lam_exact_rows){m->by_key, m->Kp, heads},
                        (lam_exact_bytes){row_at(t, a->k, t->h), (ptrdiff_t)a->ldk, t->n}, a->K,
                        rows_ahead(t, 2, 4));
}

static void sum_values(const task *t, const room *m, const float *share)
{
    const lam_attn *a = t->a;
    const size_t K = (size_t)a->K, all = t->heads * m->Kp;
    const int8_t *const v = row_at(t, a->value, t->h);
    const ptrdiff_t ld = (ptrdiff_t)a->ldk;
    memset(m->total, 0, all * sizeof *m->total);
    for (int j = 0; j < t->n; j += LAM_EXACT_TERMS) {
        const int left = t->n - j;
        memset(m->sum, 0, all * sizeof *m->sum);
        lam_exact_head_mix(
            m->sum, m->Kp, (lam_exact_rows){m->weight + j, m->span, (int)t->heads},
            (lam_exact_bytes){v + j * ld, ld, left < LAM_EXACT_TERMS ? left : LAM_EXACT_TERMS},
            a->K);
        for (size_t c = 0; c < all; c++)
            m->total[c] += (double)m->sum[c];
    }
    for (size_t i = 0; i < t->heads; i++)
        lam_cpu_exact_store(lam_cpu_row(a->o, a->ldo, t->b, 0) + (t->h + i) * K,
                            m->total + i * m->Kp, share[i], a->K);
}

static float softmax(const task *t, const room *m, size_t i, const float scale[2])
{
    const lam_attn *a = t->a;
    const size_t row = i * m->span, place = (t->h + i) * (size_t)a->r_rows + t->place;
    float *const lse = lam_cpu_row(a->lse, (size_t)a->H, t->b, 0) + t->h + i;
    const lam_exact_scores x = {.ac = m->ac + row,
                                .bd = a->r ? m->bd + row : NULL,
                                .k_scale = m->k_scale + row,
                                .v_scale = m->v_scale + row,
                                .r_scale = t->tab->scale + place,
                                .r_bias = a->rbias ? t->tab->bias + place : NULL,
                                .u = scale[0],
                                .v = scale[1],
                                .scale = (float)a->scale};
    return lam_cpu_exact_softmax(m->weight + row, lse, m->p, &x, t->n);
}

static void run(const task *t, const room *m)
{
    const lam_attn *a = t->a;
    float scale[HEADS][2], share[HEADS];
    for (size_t i = 0; i < t->heads; i++) {
        const size_t at = (t->h + i) * (size_t)a->K;
        const float *const q = lam_cpu_row(a->q, a->ldq, t->b, 0) + at;
        scale[i][0] = lam_cpu_exact_query(m->by_key + i * m->Kp, q,
                                          a->u ? (const float *)a->u + at : NULL, a->K);
        scale[i][1] = lam_cpu_exact_query(m->by_place + i * m->Kp, q,
                                          a->v ? (const float *)a->v + at : NULL, a->K);
    }
    copy_scales(t, m);
    multiply(t, m);
    for (size_t i = 0; i < t->heads; i++)
        share[i] = softmax(t, m, i, scale[i]);
    sum_values(t, m, share);
}

/* ---- the operation ---- */

/* What stream b's new row sees. */
static void see(task *t, size_t b)
{
    const lam_attn *a = t->a;
    const int at = ((const int32_t *)t->x->at)[b], oldest = lam_attn_oldest(a, b);
    t->lo = a->reach > 0 && at - a->reach + 1 > oldest ? at - a->reach + 1 : oldest;
    t->n = at + 1 > t->lo ? at + 1 - t->lo : 0;
    const int first = a->r_zero + a->r_sign * (t->lo - at);
    t->place = (size_t)(a->r_sign > 0 ? first : a->r_rows - 1 - first);
}

/* Task i of those that have `heads` heads each. */
static void run_task(const lam_attn_next *x, const lam_attn *a, const table *tab, const room *m,
                     size_t i, size_t heads)
{
    const size_t H = (size_t)a->H, each = (H + heads - 1) / heads, b = i / each;
    task t = {.x = x, .a = a, .tab = tab, .b = b, .h = i % each * heads};
    t.heads = H - t.h < heads ? H - t.h : heads;
    see(&t, b);
    put_heads(&t);
    run(&t, m);
}

static room room_of(const lam_cpu_dev *dev, size_t before, const lam_attn *a)
{
    lam_arena one = {0};
    (void)carve_room(&one, a->keys, a->K);
    lam_arena arena = {.base =
                           (char *)dev->scratch + before + (size_t)omp_get_thread_num() * one.used,
                       .size = one.used};
    assert(before + (size_t)dev->threads * one.used <= dev->scratch_bytes);
    return carve_room(&arena, a->keys, a->K);
}

void lam_cpu_exact_attn_next(lam_dev *dev, const lam_attn_next *x)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const size_t B = (size_t)x->a.B, H = (size_t)x->a.H;
    const size_t most = H < HEADS ? H : HEADS;
    const size_t heads = B < (size_t)cpu->threads ? 1 : most;
    const size_t tasks = B * ((H + heads - 1) / heads);
    assert(x->a.kv_class == LAM_BYTE && x->a.queries == 1 && x->a.mode == LAM_CAUSAL);
    size_t used;
    const lam_attn a = lam_cpu_exact_places(cpu, &x->a, &used);
    lam_arena arena = {.base = (char *)cpu->scratch + used, .size = cpu->scratch_bytes - used};
    const table tab = carve_table(&arena, a.r_rows, a.H);
    fill_table(&tab, &a);
    used += arena.used;
#pragma omp parallel num_threads(tasks < 2 ? 1 : cpu->threads)
    {
        const uint64_t before = lam_cpu_exact_begin();
        const room m = room_of(cpu, used, &a);
#pragma omp for schedule(static) nowait
        for (size_t i = 0; i < tasks; i++)
            run_task(x, &a, &tab, &m, i, heads);
        lam_cpu_exact_end(before);
    }
}
