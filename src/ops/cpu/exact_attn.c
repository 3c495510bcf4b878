/* exact_attn.c -- attention in exact arithmetic on the CPU (specified in ref/exact_attn.c).
 *
 * A task is up to QUERIES queries of one head of one stream.  Their products with keys and with positions are two
 * small integer matrix products; row(i, j) depends on j - i alone, so the one with positions has a column
 * for each difference, and query i reads it shifted by i.  Many queries read their values transposed, as a third
 * such product; few read them as they lie. */
#include "ops/cpu/exact.h"

#include <math.h>
#include <omp.h>

enum { QUERIES = 16, FEW = 3 };

/* One thread's scratch. */
typedef struct room {
    int16_t *by_key, *by_place; /* [QUERIES][Kp]: q + u, q + v */
    int32_t *ac, *bd;           /* [QUERIES][span] */
    float *k_scale, *v_scale;   /* [span] */
    float *r_scale, *r_bias;    /* [span], by difference */
    float *p;                   /* [span] */
    int16_t *weight;            /* [QUERIES][span] */
    int8_t *turned;             /* [K][span] */
    int32_t *sum;               /* [QUERIES][Kp] */
    double *total;              /* likewise */
    size_t span, Kp;
} room;

static room carve_room(lam_arena *arena, int keys, int K)
{
    room x = {.span = lam_exact_padded((size_t)keys + QUERIES), .Kp = lam_exact_padded((size_t)K)};
    const size_t rows = QUERIES * x.span, heads = QUERIES * x.Kp, one = x.span * sizeof(float);
    x.by_key = lam_arena_take(arena, heads * sizeof(int16_t));
    x.by_place = lam_arena_take(arena, heads * sizeof(int16_t));
    x.ac = lam_arena_take(arena, rows * sizeof(int32_t));
    x.bd = lam_arena_take(arena, rows * sizeof(int32_t));
    x.k_scale = lam_arena_take(arena, one);
    x.v_scale = lam_arena_take(arena, one);
    x.r_scale = lam_arena_take(arena, one);
    x.r_bias = lam_arena_take(arena, one);
    x.p = lam_arena_take(arena, one);
    x.weight = lam_arena_take(arena, rows * sizeof(int16_t));
    x.turned = lam_arena_take(arena, x.Kp * x.span);
    x.sum = lam_arena_take(arena, heads * sizeof(int32_t));
    x.total = lam_arena_take(arena, heads * sizeof(double));
    return x;
}

/* Positions that come as floats, quantised for the call. */
typedef struct places {
    int8_t *q;
    float *scale;
} places;

static places carve_places(lam_arena *arena, size_t rows, size_t H, size_t K)
{
    return (places){.q = lam_arena_take(arena, rows * H * K),
                    .scale = lam_arena_take(arena, rows * H * sizeof(float))};
}

size_t lam_cpu_exact_attn_scratch(const lam_work *largest, int threads)
{
    lam_arena count = {0};
    (void)carve_places(&count, (size_t)largest->r_rows, (size_t)largest->H, (size_t)largest->K);
    const size_t before = count.used;
    for (int i = 0; i < threads; i++)
        (void)carve_room(&count, largest->keys, largest->K);
    const size_t next = before + lam_cpu_exact_next_scratch(largest, threads);
    return count.used > next ? count.used : next;
}

/* Some queries of one head. */
typedef struct task {
    const lam_attn *a;
    size_t b, h;
    int first, n; /* queries */
    int lo, hi;   /* keys that some of them see */
} task;

typedef struct span {
    int lo, hi;
} span;

/* The keys that query i sees. */
static span sees(const lam_attn *a, size_t b, int i)
{
    const int oldest = lam_attn_oldest(a, b), at = a->shift + i;
    span s = {oldest, a->keys};
    if (a->mode == LAM_CAUSAL) {
        s.hi = at + 1 < a->keys ? at + 1 : a->keys;
        s.lo = a->reach > 0 && at - a->reach + 1 > oldest ? at - a->reach + 1 : oldest;
    } else if (a->mode == LAM_AHEAD) {
        s.lo = at + 1 > oldest ? at + 1 : oldest;
    }
    s.hi = s.hi > s.lo ? s.hi : s.lo;
    return s;
}

static size_t key_at(const task *t, lam_view view, int j)
{
    return t->b * view.step + (size_t)j * t->a->ldk + t->h * (size_t)t->a->K;
}

/* ---- scores ---- */

float lam_cpu_exact_query(int16_t *out, const float *q, const float *bias, int K)
{
    float x[LAM_NEXT_WIDTH];
    for (int c = 0; c < K; c++)
        x[c] = bias ? q[c] + bias[c] : q[c];
    return lam_cpu_exact_row(out, x, (size_t)K);
}

static void copy_scales(float *out, const float *in, size_t step, int n)
{
    for (int j = 0; j < n; j++)
        out[j] = in[(size_t)j * step];
}

static void by_keys(const task *t, const room *m)
{
    const lam_attn *a = t->a;
    const int n = t->hi - t->lo;
    const size_t K = (size_t)a->K, k = key_at(t, a->k, t->lo), v = key_at(t, a->value, t->lo);
    copy_scales(m->k_scale, (const float *)a->k_scale + k / K, a->ldk / K, n);
    copy_scales(m->v_scale, (const float *)a->value_scale + v / K, a->ldk / K, n);
    lam_exact_dots(
        m->ac, m->span, (lam_exact_rows){m->by_key, m->Kp, t->n},
        (lam_exact_bytes){.p = (const int8_t *)a->k.p + k, .ld = (ptrdiff_t)a->ldk, .n = n}, a->K);
}

/* The positional row of difference d: query i and key j have d = (j - lo) - (i - first) + (n - 1). */
static int place_of(const task *t, int d)
{
    const lam_attn *a = t->a;
    return a->r_zero + a->r_sign * (t->lo + d - (t->n - 1) - a->shift - t->first);
}

static void by_places(const task *t, const room *m)
{
    const lam_attn *a = t->a;
    const size_t H = (size_t)a->H, K = (size_t)a->K;
    int from = 0, to = t->hi - t->lo + t->n - 1;
    while (from < to && (place_of(t, from) < 0 || place_of(t, from) >= a->r_rows))
        from++; /* no visible pair has it */
    while (to > from && (place_of(t, to - 1) < 0 || place_of(t, to - 1) >= a->r_rows))
        to--;
    for (int d = from; d < to && a->rbias; d++)
        m->r_bias[d] = ((const float *)a->rbias)[(size_t)place_of(t, d) * H + t->h];
    if (!a->r || from >= to)
        return;
    const int8_t *r = (const int8_t *)a->r + (size_t)place_of(t, from) * a->ldr + t->h * K;
    for (int d = from; d < to; d++)
        m->r_scale[d] = ((const float *)a->r_scale)[(size_t)place_of(t, d) * (a->ldr / K) + t->h];
    lam_exact_dots(m->bd + from, m->span, (lam_exact_rows){m->by_place, m->Kp, t->n},
                   (lam_exact_bytes){.p = r, .ld = a->r_sign * (ptrdiff_t)a->ldr, .n = to - from},
                   a->K);
}

/* s [n]; returns the rank of the largest. */
static int32_t add_scores(float *s, const lam_exact_scores *x, int n)
{
    int32_t top = INT32_MIN;
    for (int j = 0; j < n; j++) {
        const float scale = x->u * x->k_scale[j];
        s[j] = (float)x->ac[j] * scale;
    }
    for (int j = 0; x->bd && j < n; j++) {
        const float scale = x->v * x->r_scale[j], more = (float)x->bd[j] * scale;
        s[j] = s[j] + more;
    }
    for (int j = 0; x->r_bias && j < n; j++)
        s[j] = s[j] + x->r_bias[j];
    for (int j = 0; j < n; j++) {
        s[j] = s[j] * x->scale;
        const int32_t rank = lam_exact_rank(s[j]);
        top = rank > top ? rank : top;
    }
    return top;
}

/* s -> p = exp(s - top); returns the sum of round(p * 2^22), of which int32_t holds 256 terms. */
static int64_t exponentials(float *s, float top, int n)
{
    int64_t sum = 0;
    for (int from = 0; from < n; from += 256) {
        const int to = n - from < 256 ? n : from + 256;
        int32_t some = 0;
        for (int j = from; j < to; j++) {
            s[j] = lam_exact_expf(s[j] - top);
            some += lam_exact_round(s[j] * (float)LAM_EXACT_P);
        }
        sum += some;
    }
    return sum;
}

/* Weights of the values: p * v_scale as 15-bit numbers; returns their largest size. */
static int32_t weights(int16_t *out, float *p, const float *v_scale, int n)
{
    int32_t size = 0;
    for (int j = 0; j < n; j++) {
        p[j] = p[j] * v_scale[j];
        const int32_t now = lam_exact_size(p[j]);
        size = now > size ? now : size;
    }
    const lam_exact_grid grid = lam_exact_grid_of(size, LAM_EXACT_ROW);
    for (int j = 0; j < n; j++)
        out[j] = (int16_t)lam_exact_round(grid.up > 0.0f ? p[j] * grid.up : 0.0f);
    return size;
}

float lam_cpu_exact_softmax(int16_t *weight, float *lse, float *p, const lam_exact_scores *x, int n)
{
    if (n == 0) {
        *lse = -INFINITY;
        return 0.0f;
    }
    const float top = lam_exact_unrank(add_scores(p, x, n));
    const int64_t sum = exponentials(p, top, n);
    *lse = lam_exact_lse(top, sum);
    return lam_exact_share(weights(weight, p, x->v_scale, n), sum);
}

/* Of query t->first + i; weights of keys that it does not see are 0. */
static float softmax(const task *t, const room *m, int i, const float scale[2])
{
    const lam_attn *a = t->a;
    const span s = sees(a, t->b, t->first + i);
    const int at = s.lo - t->lo;
    const size_t d = (size_t)(at - i + t->n - 1), row = (size_t)i * m->span;
    int16_t *weight = m->weight + row;
    float *lse = lam_cpu_row(a->lse, (size_t)a->H, t->b, (size_t)(t->first + i)) + t->h;
    memset(weight, 0, lam_exact_padded((size_t)(t->hi - t->lo)) * sizeof *weight);
    const lam_exact_scores x = {.ac = m->ac + row + at,
                                .bd = a->r ? m->bd + row + d : NULL,
                                .k_scale = m->k_scale + at,
                                .v_scale = m->v_scale + at,
                                .r_scale = m->r_scale + d,
                                .r_bias = a->rbias ? m->r_bias + d : NULL,
                                .u = scale[0],
                                .v = scale[1],
                                .scale = (float)a->scale};
    return lam_cpu_exact_softmax(weight + at, lse, m->p, &x, s.hi - s.lo);
}

/* ---- values ---- */

typedef int8_t sixteen __attribute__((vector_size(16)));

/* Sixteen rows of sixteen bytes become columns: four times, two rows that lie eight apart are interleaved. */
static inline void turn_block(int8_t *out, size_t ldo, const int8_t *in, size_t ldi)
{
    sixteen x[16], y[16];
    for (size_t i = 0; i < 16; i++)
        memcpy(&x[i], in + i * ldi, sizeof *x);
#pragma GCC unroll 4
    for (int step = 0; step < 4; step++) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            y[2 * i] = __builtin_shufflevector(x[i], x[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                               21, 6, 22, 7, 23);
            y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                                   28, 13, 29, 14, 30, 15, 31);
        }
        memcpy(x, y, sizeof x);
    }
    for (size_t i = 0; i < 16; i++)
        memcpy(out + i * ldo, &x[i], sizeof *x);
}

/* turned [K][span]: the values of keys lo .. hi as columns. */
static void turn(const task *t, const room *m)
{
    const size_t n = (size_t)(t->hi - t->lo), K = (size_t)t->a->K, ld = t->a->ldk;
    const size_t ldo = m->span;
    const int8_t *v = (const int8_t *)t->a->value.p + key_at(t, t->a->value, t->lo);
    const size_t rows = n / 16 * 16, columns = K / 16 * 16;
    for (size_t j = 0; j < rows; j += 16)
        for (size_t c = 0; c < columns; c += 16)
            turn_block(m->turned + c * ldo + j, ldo, v + j * ld + c, ld);
    for (size_t c = 0; c < K; c++)
        for (size_t j = c < columns ? rows : 0; j < n; j++)
            m->turned[c * ldo + j] = v[j * ld + c];
}

/* sum [n][Kp] over keys at .. at + n of those seen. */
static void sum_values(const task *t, const room *m, int at, int n)
{
    const lam_attn *a = t->a;
    if (t->n > FEW) {
        lam_exact_dots(m->sum, m->Kp, (lam_exact_rows){m->weight + at, m->span, t->n},
                       (lam_exact_bytes){.p = m->turned + at, .ld = (ptrdiff_t)m->span, .n = a->K},
                       n);
        return;
    }
    const int8_t *v = (const int8_t *)a->value.p + key_at(t, a->value, t->lo + at);
    memset(m->sum, 0, (size_t)t->n * m->Kp * sizeof *m->sum);
    for (int i = 0; i < t->n; i++)
        lam_exact_mix(m->sum + (size_t)i * m->Kp, m->weight + (size_t)i * m->span + at,
                      (lam_exact_bytes){.p = v, .ld = (ptrdiff_t)a->ldk, .n = n}, a->K);
}

static void add_totals(double *total, const int32_t *sum, size_t n)
{
    for (size_t i = 0; i < n; i++)
        total[i] += (double)sum[i];
}

void lam_cpu_exact_store(float *o, const double *total, float share, int K)
{
    for (int c = 0; c < K; c++) {
        const float sum = (float)total[c];
        o[c] = sum * share;
    }
}

static void run(const task *t, const room *m)
{
    const lam_attn *a = t->a;
    const size_t at = t->h * (size_t)a->K, heads = (size_t)t->n * m->Kp;
    float scale[QUERIES][2], share[QUERIES];
    for (int i = 0; i < t->n; i++) {
        const float *q = lam_cpu_row(a->q, a->ldq, t->b, (size_t)(t->first + i)) + at;
        scale[i][0] = lam_cpu_exact_query(m->by_key + (size_t)i * m->Kp, q,
                                          a->u ? (const float *)a->u + at : NULL, a->K);
        scale[i][1] = lam_cpu_exact_query(m->by_place + (size_t)i * m->Kp, q,
                                          a->v ? (const float *)a->v + at : NULL, a->K);
    }
    by_keys(t, m);
    if (a->r || a->rbias)
        by_places(t, m);
    for (int i = 0; i < t->n; i++)
        share[i] = softmax(t, m, i, scale[i]);
    if (t->n > FEW)
        turn(t, m);
    memset(m->total, 0, heads * sizeof *m->total);
    for (int j = 0; j < t->hi - t->lo; j += LAM_EXACT_TERMS) {
        const int left = t->hi - t->lo - j;
        sum_values(t, m, j, left < LAM_EXACT_TERMS ? left : LAM_EXACT_TERMS);
        add_totals(m->total, m->sum, heads);
    }
    for (int i = 0; i < t->n; i++)
        lam_cpu_exact_store(lam_cpu_row(a->o, a->ldo, t->b, (size_t)(t->first + i)) + at,
                            m->total + (size_t)i * m->Kp, share[i], a->K);
}

static void run_task(const lam_attn *a, const room *m, size_t number)
{
    const int blocks = (a->queries + QUERIES - 1) / QUERIES;
    task t = {.a = a, .lo = a->keys, .hi = 0};
    const size_t head = number / (size_t)blocks;
    t.b = head / (size_t)a->H;
    t.h = head % (size_t)a->H;
    t.first = (int)(number % (size_t)blocks) * QUERIES;
    t.n = a->queries - t.first < QUERIES ? a->queries - t.first : QUERIES;
    for (int i = 0; i < t.n; i++) {
        const span s = sees(a, t.b, t.first + i);
        if (s.lo == s.hi)
            continue;
        t.lo = s.lo < t.lo ? s.lo : t.lo;
        t.hi = s.hi > t.hi ? s.hi : t.hi;
    }
    t.lo = t.lo < t.hi ? t.lo : t.hi;
    run(&t, m);
}

/* ---- the operations ---- */

/* Where threads find their scratch, behind the positions. */
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

lam_attn lam_cpu_exact_places(const lam_cpu_dev *dev, const lam_attn *a, size_t *used)
{
    const size_t H = (size_t)a->H, K = (size_t)a->K, rows = (size_t)a->r_rows;
    lam_attn b = *a;
    *used = 0;
    if (!a->r || a->r_class == LAM_BYTE)
        return b;
    lam_arena arena = {.base = dev->scratch, .size = dev->scratch_bytes};
    const places p = carve_places(&arena, rows, H, K);
    *used = arena.used;
#pragma omp parallel num_threads(lam_cpu_team(dev, rows *H *K))
    {
        const uint64_t before = lam_cpu_exact_begin();
#pragma omp for schedule(static) nowait
        for (size_t i = 0; i < rows * H; i++)
            p.scale[i] = lam_cpu_exact_head(p.q + i * K,
                                            (const float *)a->r + i / H * a->ldr + i % H * K, K);
        lam_cpu_exact_end(before);
    }
    b.r = p.q;
    b.r_scale = p.scale;
    b.ldr = H * K;
    return b;
}

void lam_cpu_exact_attn_fwd(lam_dev *dev, const lam_attn *a)
{
    const lam_cpu_dev *cpu = lam_cpu(dev);
    const int blocks = (a->queries + QUERIES - 1) / QUERIES;
    const size_t tasks = (size_t)a->B * (size_t)a->H * (size_t)blocks;
    assert(a->kv_class == LAM_BYTE && a->K <= LAM_NEXT_WIDTH && a->drop.p == 0.0);
    size_t used;
    const lam_attn b = lam_cpu_exact_places(cpu, a, &used);
#pragma omp parallel num_threads(cpu->threads)
    {
        const uint64_t before = lam_cpu_exact_begin();
        const room m = room_of(cpu, used, a);
#pragma omp for schedule(dynamic) nowait
        for (size_t i = 0; i < tasks; i++)
            run_task(&b, &m, i);
        lam_cpu_exact_end(before);
    }
}
