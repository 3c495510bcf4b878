/* opcases_decode.c -- what makes work repeatable: row numbers in memory, totals, and repeating itself. */
#include "support/opcase.h"

#include <math.h>
#include <string.h>

static void call_next(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->attn_next(dev, op);
}

static void call_norm_gemm(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->norm_gemm(dev, op);
}

static void call_put_rows(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->put_rows(dev, op);
}

static void call_tally(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->tally(dev, op);
}

/* Rows from at[b] on are not there yet: reading them shows. */
static void cached(lam_case *c, lam_view *v, const char *name, lam_class type, const lam_layout *l,
                   const double *at)
{
    double *p = lam_case_rows(c, &v->p, name, type, LAM_WRITTEN | LAM_EXACT, l, LAM_RANDOM);
    v->step = l->step;
    for (size_t b = 0; b < l->blocks; b++)
        for (size_t r = (size_t)at[b]; r < l->rows; r++)
            for (size_t x = 0; x < l->width; x++)
                p[b * l->step + r * l->ld + x] = LAM_GUARD;
}

static void head_vector(lam_case *c, void *slot, const char *name, size_t n)
{
    lam_case_rows(c, slot, name, LAM_WIDE, LAM_READ, &(lam_layout){1, 1, n, n, n}, LAM_RANDOM);
}

static void positions(lam_case *c, lam_attn *a, int at, size_t width)
{
    const int front = lam_case_pick(c, 3), kind = lam_case_pick(c, 4); /* 0: none; 1: rbias */
    if (kind == 0)
        return;
    a->r_sign = lam_case_pick(c, 2) ? 1 : -1;
    a->r_zero = front + (a->r_sign > 0 ? at : 0);
    a->r_rows = front + at + 1 + lam_case_pick(c, 3);
    const lam_layout l = lam_case_layout(c, 1, a->r_rows, (int)width);
    const size_t H = (size_t)a->H, rows = (size_t)a->r_rows;
    a->ldr = l.ld;
    lam_case_rows(c, &a->r, "r", a->r_class, LAM_READ, &l, LAM_RANDOM);
    if (lam_case_pick(c, 4))
        head_vector(c, &a->v, "v", width);
    if (kind == 1)
        lam_case_rows(c, &a->rbias, "rbias", LAM_WIDE, LAM_READ,
                      &(lam_layout){1, rows, H, H, rows * H}, LAM_RANDOM);
}

/* Where every stream is, the first one at row `at` and none behind it, and sometimes how much it remembers. */
static const double *ages(lam_case *c, lam_attn_next *x, int at)
{
    lam_attn *a = &x->a;
    double *rows = lam_case_buf(c, &x->at, "at", LAM_INT, LAM_READ, (size_t)a->B);
    int least = at;
    for (int b = 0; b < a->B; b++) {
        rows[b] = b == 0 ? at : lam_case_pick(c, at + 1);
        least = rows[b] < least ? (int)rows[b] : least;
    }
    if (lam_case_pick(c, 2)) {
        double *valid = lam_case_buf(c, &a->valid, "valid", LAM_INT, LAM_READ, (size_t)a->B);
        a->past = lam_case_pick(c, least + 1);
        for (int b = 0; b < a->B; b++)
            valid[b] = lam_case_pick(c, a->past + 1);
    }
    return rows;
}

static void next_one(lam_case_run *run, int B, int H, int K, int at)
{
    lam_attn_next x = {.a = {.B = B, .H = H, .queries = 1, .mode = LAM_CAUSAL}};
    lam_attn *a = &x.a;
    lam_case c = lam_case_start(run, call_next, &x, 2.0);
    const int narrow = run->dev->narrow ? lam_case_pick(&c, 4) : 0; /* as in opcases_attn.c */
    c.mixed = 1;
    a->kv_class = narrow & 1 ? LAM_HALF : LAM_ACT;
    a->r_class = narrow & 2 ? LAM_HALF : LAM_ACT;
    a->K = (int)lam_case_pad(&c, (size_t)K);
    a->scale = 1.0 / sqrt(K);
    a->keys = at + 1 + lam_case_pick(&c, 200);
    a->reach = lam_case_pick(&c, 3) ? 0 : 1 + lam_case_pick(&c, at + 3);
    const size_t width = (size_t)H * (size_t)a->K;
    const lam_layout now = lam_case_layout(&c, B, 1, 3 * (int)width);
    const lam_layout rows = lam_case_layout(&c, B, a->keys, (int)width);
    const lam_layout one = {(size_t)B, 1, width, width, width};
    const lam_layout stat = {(size_t)B, 1, (size_t)H, (size_t)H, (size_t)H};
    a->ldk = rows.ld;
    a->ldq = a->ldo = width;
    a->q.step = x.k.step = x.value.step = now.step;
    a->o.step = one.step;
    a->lse.step = stat.step;

    const double *each = ages(&c, &x, at);
    lam_case_rows(&c, &a->q.p, "qkv", LAM_ACT, LAM_READ, &now, LAM_RANDOM);
    lam_case_share(&c, &x.k.p, width);
    lam_case_share(&c, &x.value.p, 2 * width);
    cached(&c, &a->k, "k", a->kv_class, &rows, each);
    cached(&c, &a->value, "value", a->kv_class, &rows, each);
    if (lam_case_pick(&c, 4))
        head_vector(&c, &a->u, "u", width);
    positions(&c, a, at, width);
    lam_case_rows(&c, &a->o.p, "o", LAM_ACT, LAM_WRITTEN, &one, LAM_NAN);
    lam_case_rows(&c, &a->lse.p, "lse", LAM_WIDE, LAM_WRITTEN, &stat, LAM_NAN);
    c.work = (lam_work){B, H, a->K, 1, a->keys, a->r_rows, B * a->keys, (int)width, narrow != 0};
    lam_case_name(&c,
                  "attn_next B=%d H=%d K=%d at=%d keys=%d reach=%d past=%d r=%d*%d%+d narrow=%d", B,
                  H, a->K, at, a->keys, a->reach, a->valid ? a->past : -1, a->r_rows, a->r_sign,
                  a->r_zero, narrow);
    lam_case_check(&c);
}

/* A second device begins with a narrower head than the first one has had: what a kernel was allowed for the wide
 * head must stay. */
static void next_beside(lam_case_run *run)
{
    const lam_dev_options options = {.threads = 1, .full_prec = run->dev->act == LAM_F32};
    lam_dev *const single = run->single, *other;
    next_one(run, 1, 1, 512, 37);
    if (run->ops->open(&other, &options) != LAM_OK) {
        run->failures++;
        return;
    }
    run->single = other;
    next_one(run, 1, 1, 400, 37);
    run->single = single;
    next_one(run, 1, 1, 512, 37);
    run->ops->close(other);
}

void lam_cases_attn_next(lam_case_run *run)
{
    static const int K[] = {1, 5, 8, 16, 41, 64, 65, 96, 128, 160, 300, 512};
    static const int places[] = {0, 1, 2, 31, 32, 33, 63, 64, 127, 500, 1023};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        next_one(run, 1, 2, 64, places[p]);
        next_one(run, 3, 3, 41, places[p]);
    }
    for (size_t k = 0; k < sizeof K / sizeof *K; k++) {
        next_one(run, 2, 3, K[k], 37);
        next_one(run, 1, 1, K[k], 70);
    }
    next_one(run, 1, 8, 64, 800); /* as the presets decode */
    next_one(run, 33, 8, 64, 20);
    next_one(run, 20, 16, 16, 65);
    next_beside(run);
}

/* Rows of a norm or of its product, whose padding is zero before or must be after. */
static void padded(lam_case *c, void *slot, const char *name, int flags, const lam_layout *at)
{
    const int out = flags & LAM_WRITTEN;
    lam_case_rows(c, slot, name, LAM_ACT, flags, at, out ? LAM_NAN : LAM_RANDOM);
    lam_case_padding(c, at, out ? (double)NAN : 0.0);
}

/* `form`: bit 0 something is added, bit 1 with a bias; bit 2 each row is a block of its own. */
typedef struct norm_gemm_case {
    int rows, width, n, form;
} norm_gemm_case;

static void norm_gemm_one(lam_case_run *run, norm_gemm_case s)
{
    lam_norm_gemm a = {0};
    lam_norm *norm = &a.norm;
    lam_gemm *g = &a.gemm;
    lam_case c = lam_case_start(run, call_norm_gemm, &a, 2.0);
    const int apart = s.form & 4, epilogue = lam_case_pick(&c, 4);
    const size_t rows = (size_t)s.rows, width = (size_t)s.width, ld = lam_case_pad(&c, width);
    const lam_layout at = {1, rows, width, ld, rows * ld};
    const lam_layout w = {1, (size_t)s.n, width, ld, (size_t)s.n * ld};
    const lam_layout out = lam_case_layout(&c, 1, s.rows, s.n);
    c.mixed = c.library = 1;
    *norm = (lam_norm){.blocks = apart ? s.rows : 1,
                       .rows = apart ? 1 : s.rows,
                       .width = s.width,
                       .ld = (int)ld,
                       .eps = 1e-5};
    norm->x.step = norm->y.step = apart ? ld : rows * ld;
    padded(&c, &norm->x.p, "x", LAM_READ, &at);
    padded(&c, &norm->y.p, "y", LAM_WRITTEN, &at);
    lam_case_share(&c, &g->a, 0);
    if (s.form & 1) {
        padded(&c, &norm->add, "add", LAM_READ, &at);
        padded(&c, &norm->sum, "sum", LAM_WRITTEN, &at);
    }
    if ((s.form & 3) == 3)
        head_vector(&c, &norm->bias, "norm bias", width);
    head_vector(&c, &norm->gain, "gain", width);
    head_vector(&c, &norm->shift, "shift", width);
    lam_case_buf(&c, &norm->mean, "mean", LAM_WIDE, LAM_WRITTEN, rows);
    lam_case_buf(&c, &norm->rstd, "rstd", LAM_WIDE, LAM_WRITTEN, rows);
    padded(&c, &g->b, "w", LAM_READ, &w);
    lam_case_rows(&c, &g->c, "c", LAM_ACT, LAM_WRITTEN, &out, LAM_NAN);
    if (epilogue & 1)
        head_vector(&c, &g->bias, "bias", (size_t)s.n);
    g->m = s.rows;
    g->n = s.n;
    g->k = (int)ld;
    g->batch = 1;
    g->tb = LAM_FLIP;
    g->lda = g->ldb = ld;
    g->ldc = out.ld;
    g->relu = epilogue > 1;
    c.work.rows = s.rows;
    c.work.width = s.n > (int)ld ? s.n : (int)ld;
    lam_case_name(&c, "norm_gemm rows=%d width=%d n=%d form=%d bias=%d relu=%d", s.rows, s.width,
                  s.n, s.form, epilogue & 1, g->relu);
    lam_case_check(&c);
}

void lam_cases_norm_gemm(lam_case_run *run)
{
    static const int rows[] = {1, 2, 3, 4, 5, 16, 17, 33, 64, 65};
    static const int widths[] = {1, 8, 41, 255, 256, 257, 410, 512, 513, 1000, 1024, 1040};
    enum { ROWS = sizeof rows / sizeof *rows, WIDTHS = sizeof widths / sizeof *widths };
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < 8; k++)
            norm_gemm_one(run, (norm_gemm_case){rows[i], widths[(5 * i + k) % 8], 1 + 37 * k, k});
    for (int i = 0; i < WIDTHS; i++)
        norm_gemm_one(run, (norm_gemm_case){1 + i % 4, widths[i], 16 + i, 2 * i + 1});
    norm_gemm_one(run, (norm_gemm_case){1, 64, 300, 3}); /* more columns than warps at a time */
    norm_gemm_one(run, (norm_gemm_case){3, 600, 300, 1});
    for (int i = 0; i < ROWS; i += 3) /* long rows, fewer columns and more than tiles at a time */
        for (int n = 9; n < 200; n *= 9)
            norm_gemm_one(run, (norm_gemm_case){rows[i], 2112 - 600 * (n % 2), n, 3});
}

static void put_one(lam_case_run *run, int B, int n, int at)
{
    static const lam_class types[] = {LAM_ACT, LAM_WIDE, LAM_INT};
    enum { MOST = 8 };
    lam_put_item items[MOST] = {0};
    lam_put_rows a = {.B = B, .n = n, .items = items};
    lam_case c = lam_case_start(run, call_put_rows, &a, 2.0);
    double *each = lam_case_buf(&c, &a.at, "at", LAM_INT, LAM_READ, (size_t)B);
    for (int b = 0; b < B; b++)
        each[b] = b == 0 ? at : lam_case_pick(&c, at + 1);
    for (int i = 0; i < n; i++) {
        lam_put_item *x = &items[i];
        x->type = types[lam_case_pick(&c, 3)];
        x->width = 2 * lam_case_edge(&c, 129);
        const size_t width = (size_t)x->width, rows = (size_t)at + 1 + (size_t)lam_case_pick(&c, 3);
        const lam_layout in = {(size_t)B, 1, width, width, width};
        const lam_layout out = {(size_t)B, rows, width, width,
                                rows * width + 2 * (size_t)lam_case_pick(&c, 5)};
        x->out.step = out.step;
        double *from = lam_case_rows(&c, &x->in, "in", x->type, LAM_READ, &in, LAM_RANDOM);
        double *to =
            lam_case_rows(&c, &x->out.p, "out", x->type, LAM_WRITTEN | LAM_EXACT, &out, LAM_RANDOM);
        for (size_t k = 0; x->type == LAM_INT && k < (size_t)B * in.step; k++)
            from[k] = lam_case_pick(&c, 1000);
        for (size_t k = 0; x->type == LAM_INT && k < (size_t)B * out.step; k++)
            to[k] = lam_case_pick(&c, 1000);
    }
    lam_case_name(&c, "put_rows B=%d n=%d at=%d", B, n, at);
    lam_case_check(&c);
}

void lam_cases_put_rows(lam_case_run *run)
{
    for (int n = 1; n <= 8; n++)
        for (int at = 0; at < 40; at += 13)
            put_one(run, 1 + n % 3, n, at);
}

static void tally_one(lam_case_run *run, int n, double odd, double norm)
{
    lam_tally a = {.n = n, .n_norms = isnan(norm) && odd == 0.0 ? 0 : 2};
    lam_case c = lam_case_start(run, call_tally, &a, 2.0);
    double *x = lam_case_buf(&c, &a.x, "x", LAM_WIDE, LAM_READ, (size_t)n + 1);
    for (int i = 0; i < n; i++)
        x[i] = fabs(lam_case_normal(&c)) + (i == n / 2 ? odd : 0.0);
    double *norms = lam_case_buf(&c, &a.norms, "norms", LAM_WIDE, LAM_READ, 2);
    norms[0] = 0.5;
    norms[1] = norm;
    double *totals = lam_case_buf(&c, &a.totals, "totals", LAM_WIDE, LAM_WRITTEN, 4);
    totals[0] = 1000.0 * lam_case_pick(&c, 100);
    totals[1] = 0x1p-20;
    totals[2] = 128.0;
    totals[3] = 3.0;
    lam_case_name(&c, "tally n=%d odd=%g norm=%g", n, odd, norm);
    lam_case_check(&c);
}

void lam_cases_tally(lam_case_run *run)
{
    static const int size[] = {0, 1, 2, 31, 1024, 1025, 20480};
    for (size_t s = 0; s < sizeof size / sizeof *size; s++) {
        tally_one(run, size[s], 0.0, 1.0);
        tally_one(run, size[s], 0.0, NAN); /* without norms */
        tally_one(run, size[s], 0.0, (double)INFINITY);
        tally_one(run, size[s], (double)INFINITY, 1.0);
        tally_one(run, size[s], NAN, NAN);
    }
}

/* ---- repeating ---- */

enum { ROWS = 40, WIDTH = 64, TIMES = 7, TWO = 2 };

typedef struct chore {
    lam_dev *dev;
    void *count, *in, *out;
    uint32_t now;
    int rows, ran;
} chore;

static void drop_rows(const chore *w, lam_drop drop)
{
    w->dev->ops->zero(w->dev, w->out, ROWS * WIDTH * lam_class_size(w->dev, LAM_ACT));
    w->dev->ops->dropout(w->dev, &(lam_dropout){.blocks = 1,
                                                .rows = w->rows,
                                                .width = WIDTH,
                                                .ld = WIDTH,
                                                .drop = drop,
                                                .in = {w->in, 0},
                                                .out = {w->out, 0}});
}

static void work(void *arg)
{
    chore *w = arg;
    w->ran++;
    w->dev->ops->upload(w->dev, w->count, &w->now, sizeof w->now);
    drop_rows(w, (lam_drop){.p = 0.5, .seed = 9, .step = 1, .site = 2, .more = w->count});
}

/* Work of two kinds in turns, many times: each time as if it had been done directly. */
void lam_cases_repeat(lam_case_run *run)
{
    chore w = {.dev = run->dev};
    lam_graphs *graphs = NULL;
    const lam_ops *ops = run->ops;
    const size_t bytes = ROWS * WIDTH * lam_class_size(w.dev, LAM_ACT);
    static unsigned char first[ROWS * WIDTH * 8], got[sizeof first], want[sizeof first];
    for (size_t i = 0; i < sizeof first; i++)
        first[i] = (unsigned char)(i % 60 + 1);
    int ok = ops->alloc(w.dev, &w.count, 4) == LAM_OK &&
             ops->alloc(w.dev, &w.in, bytes) == LAM_OK &&
             ops->alloc(w.dev, &w.out, bytes) == LAM_OK;
    if (ok)
        ops->upload(w.dev, w.in, first, bytes);
    for (int i = 0; i < TWO * TIMES && ok; i++) {
        w.now = 100u + (uint32_t)i;
        w.rows = i % TWO ? ROWS : ROWS / 2;
        ops->repeat(w.dev, &graphs, (uint64_t)w.rows, work, &w);
        ok = ops->download(w.dev, got, w.out, bytes) == LAM_OK && w.ran == i + 1;
        drop_rows(&w, (lam_drop){.p = 0.5, .seed = 9, .step = 1 + w.now, .site = 2});
        ok = ok && ops->download(w.dev, want, w.out, bytes) == LAM_OK &&
             memcmp(got, want, bytes) == 0;
        run->cases++;
        run->failures += !ok;
        if (!ok && run->report)
            fprintf(run->report, "FAILED repeat: time %d, %d rows: %s\n", i, w.rows, lam_error());
    }
    ops->free_graphs(w.dev, graphs);
    ops->release(w.dev, w.count);
    ops->release(w.dev, w.in);
    ops->release(w.dev, w.out);
}
