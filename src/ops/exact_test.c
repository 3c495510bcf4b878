/* exact_test.c -- products and attention in exact arithmetic have the bits of ref on every back-end, at the edges of its
 * tiles, for rows on any border and for the largest sums.  Where there is a GPU, it takes part, and so do its kernels on
 * the host (cuda_host_exact_ops); the known answers of whole models are in infer/exact_test.c. */
#include "ops/cpu_levels.h"
#include "ops/exact.h"
#include "ops/ops.h"
#include "support/suite.h"
#include "support/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BUFFERS = 16, MOST_SLOTS = 20 };

/* What the numbers of a case are. */
typedef enum kind {
    RANDOM,
    LARGEST, /* every level and every weight the largest one: the largest sums */
    BROKEN   /* with an infinity, which spoils its row and no other */
} kind;

typedef struct buffer {
    lam_class type;
    void *first, *want;   /* what it holds before and what ref left; owned */
    size_t bytes, offset; /* the latter in the device's memory */
} buffer;

typedef struct slot {
    void *pointer; /* the address of the pointer to fill in */
    int buffer;
    size_t bytes; /* from the buffer's beginning */
} slot;

typedef struct scene {
    lam_rng rng;
    kind what;
    size_t offset; /* bytes by which buffers of BYTE miss their border */
    lam_work work;
    void (*call)(lam_dev *dev, const void *op);
    const void *op;
    buffer buffer[MOST_BUFFERS];
    slot slot[MOST_SLOTS];
    int buffers, slots;
} scene;

/* Has the address of the newest buffer, `bytes` further on, put into a pointer. */
static void share(scene *s, void *pointer, size_t bytes)
{
    ck_assert_int_lt(s->slots, MOST_SLOTS);
    s->slot[s->slots++] = (slot){pointer, s->buffers - 1, bytes};
}

static void *add(scene *s, void *pointer, lam_class type, size_t count)
{
    const size_t bytes = count * (type == LAM_BYTE ? 1 : 4);
    buffer *b = &s->buffer[s->buffers++];
    ck_assert_int_le(s->buffers, MOST_BUFFERS);
    *b = (buffer){type, calloc(bytes + 1, 1), malloc(bytes + 1), bytes,
                  type == LAM_BYTE ? s->offset : 0};
    ck_assert(b->first && b->want);
    share(s, pointer, 0);
    return b->first;
}

static void add_bytes(scene *s, void *pointer, size_t count)
{
    int8_t *x = add(s, pointer, LAM_BYTE, count);
    for (size_t i = 0; i < count; i++)
        x[i] = s->what == LARGEST ? LAM_EXACT_HEAD
                                  : (int8_t)((int)lam_rng_below(&s->rng, 255) - LAM_EXACT_HEAD);
}

static float *add_floats(scene *s, void *pointer, size_t count)
{
    float *x = add(s, pointer, LAM_WIDE, count);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)lam_rng_normal(&s->rng);
    return x;
}

static void add_scales(scene *s, void *pointer, size_t count)
{
    float *x = add(s, pointer, LAM_WIDE, count);
    for (size_t i = 0; i < count; i++)
        x[i] = s->what == LARGEST ? 0.01f : (float)(0.001 + 0.01 * lam_rng_uniform(&s->rng));
}

/* Of a NaN's bits nothing is promised. */
static void same_nan(void *floats, size_t bytes)
{
    float *x = floats;
    for (size_t i = 0; i < bytes / sizeof *x; i++)
        if (isnan(x[i]))
            x[i] = NAN;
}

/* What buffer i holds on a device must be what ref left there; on ref this is kept. */
static void check(scene *s, int i, lam_dev *dev, const void *memory, const char *what)
{
    buffer *b = &s->buffer[i];
    char *got = malloc(b->bytes + 1);
    ck_assert_ptr_nonnull(got);
    must(dev->ops->download(dev, got, memory, b->bytes));
    if (b->type == LAM_WIDE)
        same_nan(got, b->bytes);
    if (strcmp(dev->ops->name, "ref") == 0)
        memcpy(b->want, got, b->bytes);
    size_t at = 0;
    while (at < b->bytes && got[at] == ((const char *)b->want)[at])
        at++;
    ck_assert_msg(at == b->bytes, "%s on %s: buffer %d, byte %zu of %zu", what, dev->ops->name, i,
                  at, b->bytes);
    free(got);
}

/* Does the operation on a device of its own. */
static void play(scene *s, const lam_ops *ops, const char *what)
{
    char *memory[MOST_BUFFERS];
    lam_dev *dev;
    must(ops->open(&dev, &(lam_dev_options){.threads = 2, .exact = 1}));
    must(dev->ops->reserve(dev, &s->work));
    for (int i = 0; i < s->buffers; i++) {
        const buffer *b = &s->buffer[i];
        void *p;
        must(dev->ops->alloc(dev, &p, b->bytes + b->offset));
        memory[i] = p;
        dev->ops->upload(dev, memory[i] + b->offset, b->first, b->bytes);
    }
    for (int i = 0; i < s->slots; i++) {
        const slot *at = &s->slot[i];
        void *p = memory[at->buffer] + s->buffer[at->buffer].offset + at->bytes;
        memcpy(at->pointer, &p, sizeof p);
    }
    s->call(dev, s->op);
    must(dev->ops->sync(dev));
    for (int i = 0; i < s->buffers; i++) {
        check(s, i, dev, memory[i] + s->buffer[i].offset, what);
        dev->ops->release(dev, memory[i]);
    }
    dev->ops->close(dev);
}

int lam_cuda_present(void);

/* On ref, then on all others; frees the scene. */
static void compare(scene *s, const char *what)
{
    const char *const only = getenv("LAM_TEST_DEVICE");
    int levels;
    const lam_cpu_level *level = lam_cpu_levels(&levels);
    play(s, toy_ops("ref"), what);
    for (int l = 0; !only && l < levels; l++)
        if (lam_cpu_level_runs(level[l].name))
            play(s, level[l].ops, what);
    if (only || lam_cuda_present())
        play(s, toy_ops("cuda"), what);
    for (int i = 0; i < s->buffers; i++) {
        free(s->buffer[i].first);
        free(s->buffer[i].want);
    }
}

/* ---- products ------------------------------------------------------------------------------------------ */

typedef struct product {
    int m, n, k, batch;
    lam_trans tb;
    int apart;  /* columns between the rows of each matrix */
    int offset; /* bytes */
    int group;  /* of columns of C in BYTE; 0: C is ACT */
    int extras; /* + C, bias, ReLU */
    kind what;
} product;

/* Tiles are 16 x 16 and 64 x 64, terms come by 16 and 64, warps share them by 512; the three before the last take the
 * larger tiles on every GPU, and the last is cut into parts. */
static const product products[] = {
    {1, 1, 1, 1, LAM_FLIP, 0, 0, 0, 0, RANDOM},
    {1, 17, 16, 1, LAM_FLIP, 0, 0, 0, 1, RANDOM},
    {3, 15, 48, 2, LAM_FLIP, 16, 0, 0, 1, RANDOM},
    {3, 16, 63, 1, LAM_FLIP, 0, 0, 0, 0, RANDOM},
    {16, 24, 64, 3, LAM_FLIP, 0, 1, 0, 0, RANDOM},
    {17, 33, 65, 1, LAM_FLIP, 5, 0, 0, 1, RANDOM},
    {64, 48, 512, 1, LAM_FLIP, 0, 0, 0, 1, RANDOM},
    {65, 16, 1100, 1, LAM_FLIP, 4, 0, 0, 0, RANDOM},
    {64, 16, 2048, 1, LAM_FLIP, 0, 0, 8, 0, RANDOM},
    {64, 256, 80, 1, LAM_FLIP, 16, 0, 0, 1, RANDOM},
    {127, 129, 64, 1, LAM_FLIP, 0, 0, 0, 0, BROKEN},
    {65, 70, 67, 2, LAM_FLIP, 3, 3, 7, 0, RANDOM},
    {97, 96, 130, 1, LAM_FLIP, 0, 0, 48, 0, RANDOM},
    {5, 20, 33, 2, LAM_KEEP, 0, 0, 0, 0, RANDOM},
    {64, 65, 64, 1, LAM_KEEP, 2, 0, 0, 1, RANDOM},
    {130, 128, 48, 1, LAM_KEEP, 0, 0, 64, 0, RANDOM},
    {2, 3, LAM_NARROW_ROW, 1, LAM_FLIP, 0, 0, 0, 0, LARGEST},
    {65, 65, 1 << 16, 1, LAM_FLIP, 0, 0, 0, 0, LARGEST},
    {33, 30, (1 << 16) + 1, 1, LAM_FLIP, 0, 0, 0, 0, LARGEST},
    {1089, 520, 48, 1, LAM_FLIP, 0, 0, 0, 1, RANDOM},
    {1100, 515, 33, 1, LAM_FLIP, 5, 1, 5, 0, RANDOM},
    {1100, 520, 20, 1, LAM_KEEP, 0, 0, 0, 1, BROKEN},
    {8200, 3, 5, 1, LAM_FLIP, 0, 0, 3, 0, RANDOM},
};

static void call_gemm(lam_dev *dev, const void *op)
{
    dev->ops->gemm(dev, op);
}

START_TEST(products_have_the_bits_of_ref)
{
    const product *p = &products[_i];
    const size_t rows = (size_t)(p->m * p->batch), apart = (size_t)p->apart;
    const int b_rows = p->tb == LAM_FLIP ? p->n : p->k, b_cols = p->tb == LAM_FLIP ? p->k : p->n;
    const size_t ldc = (size_t)p->n + (p->group ? (size_t)p->group : apart);
    lam_gemm g = {.m = p->m, .n = p->n, .k = p->k, .batch = p->batch, .tb = p->tb};
    scene s = {.rng = test_rng(1 + (uint64_t)_i), .what = p->what, .offset = (size_t)p->offset};
    char what[100];
    s.call = call_gemm;
    s.op = &g;
    s.work = (lam_work){.B = 1,
                        .H = 1,
                        .K = 1,
                        .queries = 1,
                        .keys = 1,
                        .rows = (int)rows,
                        .width = p->k > p->n ? p->k : p->n,
                        .narrow = 1};
    g.b_class = LAM_BYTE;
    g.lda = (size_t)p->k + apart;
    g.ldb = (size_t)b_cols + apart;
    g.ldc = ldc;
    g.step_a = (size_t)p->m * g.lda;
    g.step_c = (size_t)p->m * ldc;
    float *a = add_floats(&s, &g.a, rows * g.lda);
    for (size_t i = 0; p->what == LARGEST && i < rows * g.lda; i++)
        a[i] = -1.0f;
    if (p->what == BROKEN)
        a[g.lda + 1] = INFINITY;
    add_bytes(&s, &g.b, (size_t)b_rows * g.ldb);
    add_scales(&s, &g.b_scale, (size_t)b_rows);
    g.c_class = p->group ? LAM_BYTE : LAM_ACT;
    g.c_group = p->group;
    if (p->group) {
        add_bytes(&s, &g.c, rows * ldc);
        add_scales(&s, &g.c_scale, rows * ldc / (size_t)p->group);
    } else {
        add_floats(&s, &g.c, rows * ldc);
    }
    if (p->extras) {
        g.beta = 1.0;
        g.relu = 1;
        add_floats(&s, &g.bias, (size_t)p->n);
    }
    snprintf(what, sizeof what, "product %d: %d x %d x %d", _i, p->m, p->n, p->k);
    compare(&s, what);
}
END_TEST

/* ---- attention ----------------------------------------------------------------------------------------- */

typedef enum places { NONE, PACKED, FLOATS } places;

typedef struct attention {
    int B, H, K, queries, keys;
    lam_attn_mode mode;
    int shift, reach;
    int past; /* with streams that remember different numbers of them; 0: all keys are valid */
    places r;
    int biases; /* 1: u and v, 2: and rbias */
    int both;   /* keys and values lie in one buffer, head by head */
    int offset; /* bytes */
    kind what;
} attention;

/* Tiles are 16 queries; warps take 32 keys or positions, then 64 values of 32 columns at a time. */
static const attention attentions[] = {
    {1, 1, 1, 1, 1, LAM_CAUSAL, 0, 0, 0, NONE, 0, 0, 0, RANDOM},
    {2, 2, 16, 1, 31, LAM_CAUSAL, 30, 0, 0, PACKED, 2, 1, 0, RANDOM},
    {2, 2, 64, 15, 33, LAM_CAUSAL, 18, 0, 18, PACKED, 1, 1, 0, RANDOM},
    {1, 2, 64, 16, 64, LAM_CAUSAL, 48, 20, 0, PACKED, 1, 1, 0, RANDOM},
    {2, 3, 48, 17, 65, LAM_CAUSAL, 40, 3, 40, FLOATS, 2, 0, 0, RANDOM},
    {1, 1, 65, 33, 127, LAM_CAUSAL, 94, 0, 0, PACKED, 1, 0, 0, RANDOM},
    {1, 2, 20, 40, 129, LAM_AHEAD, -3, 0, 0, PACKED, 1, 1, 0, RANDOM},
    {2, 1, 64, 35, 30, LAM_AHEAD, -1, 0, 29, FLOATS, 1, 1, 0, RANDOM},
    {1, 2, 80, 18, 140, LAM_FULL, -5, 0, 0, PACKED, 2, 1, 0, RANDOM},
    {1, 1, 64, 18, 40, LAM_CAUSAL, -6, 0, 0, NONE, 2, 0, 0, RANDOM},
    {2, 2, 16, 20, 50, LAM_CAUSAL, 30, 0, 0, PACKED, 1, 1, 3, RANDOM},
    {1, 1, 512, 3, 70, LAM_CAUSAL, 67, 0, 0, PACKED, 1, 0, 0, RANDOM},
    {1, 1, 509, 2, 20, LAM_CAUSAL, 18, 0, 0, FLOATS, 0, 0, 0, RANDOM},
    {1, 1, 32, 17, 1100, LAM_CAUSAL, 1083, 0, 0, PACKED, 1, 0, 0, RANDOM},
    {2, 1, 16, 33, 1500, LAM_CAUSAL, 1467, 0, 900, PACKED, 1, 1, 0, RANDOM},
    {1, 1, 64, 1, 8300, LAM_FULL, 0, 0, 0, NONE, 0, 0, 0, LARGEST},
    {1, 1, 32, 17, 4200, LAM_FULL, 0, 0, 0, NONE, 0, 0, 0, LARGEST},
    {2, 2, 16, 17, 40, LAM_CAUSAL, 23, 0, 0, PACKED, 1, 1, 0, BROKEN},
};

static void call_attn_fwd(lam_dev *dev, const void *op)
{
    dev->ops->attn_fwd(dev, op);
}

static void call_attn_next(lam_dev *dev, const void *op)
{
    dev->ops->attn_next(dev, op);
}

/* Everything but queries. */
static void set_keys(scene *s, lam_attn *a, const attention *t)
{
    const size_t H = (size_t)t->H, K = (size_t)t->K, HK = H * K, two = t->both ? 2 : 1;
    const size_t B = (size_t)t->B, keys = (size_t)t->keys;
    a->kv_class = LAM_BYTE;
    a->ldk = two * HK;
    a->k.step = a->value.step = keys * a->ldk;
    add_bytes(s, &a->k.p, B * a->k.step);
    if (t->both)
        share(s, &a->value.p, HK);
    else
        add_bytes(s, &a->value.p, B * a->k.step);
    add_scales(s, &a->k_scale, B * keys * two * H);
    if (t->both)
        share(s, &a->value_scale, H * sizeof(float));
    else
        add_scales(s, &a->value_scale, B * keys * H);
    a->past = t->past;
    if (t->past > 0) {
        int32_t *valid = add(s, &a->valid, LAM_INT, B);
        for (size_t b = 0; b < B; b++)
            valid[b] = (int32_t)lam_rng_below(&s->rng, (uint64_t)t->past + 1);
    }
    a->r_sign = t->mode == LAM_CAUSAL ? -1 : 1;
    a->r_zero = t->mode == LAM_AHEAD ? -1 : t->mode == LAM_FULL ? t->shift + t->queries - 1 : 0;
    a->r_rows = t->mode == LAM_CAUSAL  ? t->shift + t->queries
                : t->mode == LAM_AHEAD ? t->keys - t->shift - 1
                                       : t->keys + t->queries - 1;
    a->r_class = t->r == FLOATS ? LAM_ACT : LAM_BYTE;
    a->ldr = HK;
    if (t->r == FLOATS) {
        add_floats(s, &a->r, (size_t)a->r_rows * HK);
    } else if (t->r == PACKED) {
        add_bytes(s, &a->r, (size_t)a->r_rows * HK);
        add_scales(s, &a->r_scale, (size_t)a->r_rows * H);
    }
    if (t->biases > 0) {
        add_floats(s, &a->u, HK);
        add_floats(s, &a->v, HK);
    }
    if (t->biases > 1)
        add_floats(s, &a->rbias, (size_t)a->r_rows * H);
}

/* Queries as columns of rows of three heads' rows, as a model has them. */
static void set_queries(scene *s, lam_attn *a, const attention *t)
{
    const size_t HK = (size_t)t->H * (size_t)t->K, rows = (size_t)(t->B * t->queries);
    *a = (lam_attn){.B = t->B,
                    .H = t->H,
                    .K = t->K,
                    .queries = t->queries,
                    .keys = t->keys,
                    .mode = t->mode,
                    .shift = t->shift,
                    .reach = t->reach,
                    .scale = 0.3};
    a->ldq = 3 * HK;
    a->q.step = (size_t)t->queries * a->ldq;
    a->ldo = HK;
    a->o.step = (size_t)t->queries * HK;
    a->lse.step = (size_t)(t->queries * t->H);
    float *q = add_floats(s, &a->q.p, rows * a->ldq);
    for (size_t i = 0; t->what == LARGEST && i < rows * a->ldq; i++)
        q[i] = 0.0f; /* all keys weigh the same */
    if (t->what == BROKEN)
        q[a->ldq] = INFINITY;
    s->work = (lam_work){.B = t->B,
                         .H = t->H,
                         .K = t->K,
                         .queries = t->queries,
                         .keys = t->keys,
                         .r_rows = t->keys + t->queries + 8,
                         .rows = (int)rows,
                         .width = (int)(3 * HK),
                         .narrow = 1};
}

static void set_results(scene *s, lam_attn *a)
{
    add_floats(s, &a->o.p, (size_t)a->B * a->o.step);
    add_floats(s, &a->lse.p, (size_t)a->B * a->lse.step);
}

START_TEST(attention_has_the_bits_of_ref)
{
    const attention *t = &attentions[_i];
    lam_attn a;
    scene s = {.rng = test_rng(100 + (uint64_t)_i), .what = t->what, .offset = (size_t)t->offset};
    char what[100];
    s.call = call_attn_fwd;
    s.op = &a;
    set_queries(&s, &a, t);
    set_keys(&s, &a, t);
    set_results(&s, &a);
    snprintf(what, sizeof what, "attention %d: K %d, %d queries, %d keys", _i, t->K, t->queries,
             t->keys);
    compare(&s, what);
}
END_TEST

/* One query for each stream, which is at a row between `past` and `shift`. */
static const attention nexts[] = {
    {3, 2, 64, 1, 70, LAM_CAUSAL, 40, 0, 40, PACKED, 1, 1, 0, RANDOM},
    {2, 1, 20, 1, 9, LAM_CAUSAL, 0, 0, 0, PACKED, 2, 0, 0, RANDOM},
    {2, 3, 16, 1, 300, LAM_CAUSAL, 200, 50, 0, FLOATS, 1, 1, 0, RANDOM},
    {2, 2, 64, 1, 1300, LAM_CAUSAL, 1200, 0, 512, PACKED, 1, 1, 0, RANDOM},
    {2, 2, 32, 1, 64, LAM_CAUSAL, 10, 0, 0, NONE, 0, 1, 1, RANDOM},
};

START_TEST(decoding_has_the_bits_of_ref)
{
    const attention *t = &nexts[_i];
    lam_attn_next x = {.a = {0}};
    scene s = {.rng = test_rng(200 + (uint64_t)_i), .what = t->what, .offset = (size_t)t->offset};
    char what[100];
    s.call = call_attn_next;
    s.op = &x;
    set_queries(&s, &x.a, t);
    const size_t HK = (size_t)t->H * (size_t)t->K;
    x.k.step = x.value.step = x.a.q.step;
    share(&s, &x.k.p, HK * sizeof(float));
    share(&s, &x.value.p, 2 * HK * sizeof(float));
    set_keys(&s, &x.a, t);
    int32_t *at = add(&s, &x.at, LAM_INT, (size_t)t->B);
    for (int b = 0; b < t->B; b++)
        at[b] = t->shift - (int32_t)lam_rng_below(&s.rng, (uint64_t)(t->shift - t->past) + 1);
    set_results(&s, &x.a);
    snprintf(what, sizeof what, "decoding %d: K %d, up to %d keys", _i, t->K, t->keys);
    compare(&s, what);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, products_have_the_bits_of_ref, 0,
                        sizeof products / sizeof *products);
    tcase_add_loop_test(tests, attention_has_the_bits_of_ref, 0,
                        sizeof attentions / sizeof *attentions);
    tcase_add_loop_test(tests, decoding_has_the_bits_of_ref, 0, sizeof nexts / sizeof *nexts);
    return test_run("ops/exact", tests);
}
