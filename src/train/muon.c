/* muon.c -- Muon: hidden matrices step along the orthogonal factor of their momentum.
 *
 * For a linear map W with Nesterov momentum u = Q S R^T (singular values S) the step is Q R^T: every
 * direction moves equally far.  Five Newton-Schulz rounds bring the singular values to about 1
 * (between 0.7 and 1.2), which serves as well.  The step is scaled by 0.2 sqrt(the longer side), the
 * size of Adam's usual steps, so that Adam's learning rate and weight decay carry over (Moonlight).
 * q, k and v are matrices of their own although they are stored as one.
 *
 * Orthogonal columns say nothing of the rows: those of a map with more outputs than inputs may have any length,
 * and a few outputs then learn at the cost of others.  And where a gradient has few large singular values the
 * rounds leave the others small: the step is shorter than its rate says.  With even rows each row is brought to
 * the length that it has on average in a step that is orthogonal, whatever the gradient.
 *
 * Everything else (embeddings, output, gains, biases, u, v, convolutions) is left to Adam.
 *
 * Where ranks share a run, each orthogonalises its part of the maps, divided as evenly as whole maps can be, the
 * dearest first, and sends the steps to the others; momentum is everybody's.  There are as many parts as leaves, so that
 * the batches below, and with them the bits, do not depend on the number of ranks.  A device with memory of its own
 * computes faster than the host could send: there every rank orthogonalises all.  With --zero 1 momentum is the owner's
 * alone, on every device, and new weights are sent instead of steps (holdings.h).
 *
 * Maps of one shape are orthogonalised together, as batches of matrix products: a GPU would be idle
 * on one of them.  X is never transposed: with A = X X^T for a wide map, or X^T X for a tall one,
 *   X <- (a I + b A + c A A) X,   or   X <- X (a I + b A + c A A),
 * the smaller of the two squares.  The last round writes its result over the gradients, from where the
 * update takes it as plain SGD would. */
#include "train/holdings.h"

#include "core/arena.h"

#include <math.h>
#include <stdlib.h>

enum {
    ROUNDS = 5,
    MANY = 1 << 24 /* elements of a batch where the device names no number */
};

/* Jordan's quintic: 0 stays 0, what is above 0.01 comes near 1 within five rounds. */
static const double QUINTIC[3] = {3.4445, -4.7750, 2.0315};
static const double ADAM_STEP = 0.2; /* root mean square of Adam's steps, in learning rates */

typedef struct map {
    int param;
    int rows, cols; /* as stored */
    int side;       /* the longer one, without padding */
    double even;    /* length of the rows of an orthogonal step, root mean square */
    int part;       /* which part of the work it is */
    size_t offset;
} map;

typedef struct lam_muon {
    lam_model *model;
    map *maps;     /* [n]: by shape, then by place */
    int n, shares; /* maps, and parts they are divided into */
    int ranks, rank;
    size_t *offset; /* [n] */
    lam_part *parts;
    void *block;     /* device memory of the buffers: */
    void *x[2];      /* ACT [batch][rows][cols]: before and after a round */
    void *A, *mixed; /* ACT [batch][k][k], k the shorter side: A; A A, then the polynomial */
} lam_muon;

static size_t map_size(const map *a)
{
    return (size_t)a->rows * (size_t)a->cols;
}

static int shorter(const map *a)
{
    return a->rows < a->cols ? a->rows : a->cols;
}

static int same_shape(const map *a, const map *b)
{
    return a->rows == b->rows && a->cols == b->cols && a->side == b->side && a->even == b->even;
}

static int compare(const void *x, const void *y)
{
    const map *a = x, *b = y;
    if (a->part != b->part)
        return (a->part > b->part) - (a->part < b->part);
    if (!same_shape(a, b))
        return a->rows != b->rows   ? (a->rows > b->rows) - (a->rows < b->rows)
               : a->cols != b->cols ? (a->cols > b->cols) - (a->cols < b->cols)
               : a->side != b->side ? (a->side > b->side) - (a->side < b->side)
                                    : (a->even > b->even) - (a->even < b->even);
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Lists the maps of a parameter; returns their number.  to NULL: only counts. */
static int list_param(map *to, const lam_params *p, int i)
{
    const lam_param *q = &p->list[i];
    if (!lam_param_is_hidden(q))
        return 0;
    const int true_rows = q->dim[0].groups * q->dim[0].size / q->maps;
    const int true_cols = q->dim[1].groups * q->dim[1].size;
    map one = {.param = i,
               .rows = q->dim[0].groups * q->dim[0].ld / q->maps,
               .cols = q->dim[1].groups * q->dim[1].ld,
               .side = true_rows > true_cols ? true_rows : true_cols,
               .even = true_rows > true_cols ? sqrt((double)true_cols / (double)true_rows) : 1.0,
               .offset = q->offset};
    for (int k = 0; to && k < q->maps; k++, one.offset += map_size(&one))
        to[k] = one;
    return q->maps;
}

static int list_all(map *to, const lam_params *p)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        n += list_param(to ? to + n : NULL, p, i);
    if (to)
        qsort(to, (size_t)n, sizeof *to, compare);
    return n;
}

/* How many maps, from number `from` on, are treated together: of one shape, and no more elements than keep
 * the device busy unless one map alone has more. */
static int batch_of(const lam_muon *m, int from)
{
    const map *first = &m->maps[from];
    const size_t hint = m->model->dev->together, most = (hint > 0 ? hint : MANY) / map_size(first);
    int count = 1;
    while (from + count < m->n && (size_t)count < most && first->part == first[count].part &&
           same_shape(first, first + count))
        count++;
    return count;
}

static void layout(lam_muon *m, lam_arena *arena)
{
    size_t x = 0, square = 0;
    for (int from = 0, count; from < m->n; from += count) {
        count = batch_of(m, from);
        const size_t k = (size_t)shorter(&m->maps[from]), all = (size_t)count;
        x = all * map_size(&m->maps[from]) > x ? all * map_size(&m->maps[from]) : x;
        square = all * k * k > square ? all * k * k : square;
    }
    const size_t size = lam_class_size(m->model->dev, LAM_ACT);
    m->x[0] = lam_arena_take(arena, x * size);
    m->x[1] = lam_arena_take(arena, x * size);
    m->A = lam_arena_take(arena, square * size);
    m->mixed = lam_arena_take(arena, square * size);
}

/* Multiply-accumulates of a round, but for a factor. */
static double cost_of(const map *a)
{
    return (double)map_size(a) * shorter(a);
}

static int dearer(const void *x, const void *y)
{
    const double a = cost_of(x), b = cost_of(y);
    return a != b ? (a < b) - (a > b) : compare(x, y);
}

/* Each map, the dearest first, goes to the part that has least to do. */
static lam_status divide(lam_muon *m)
{
    const int parts = m->shares;
    if (parts < 2)
        return LAM_OK;
    double *const load = calloc((size_t)parts, sizeof *load);
    if (!load)
        return lam_fail(LAM_ERR_MEMORY, "muon: no memory for %d parts", parts);
    qsort(m->maps, (size_t)m->n, sizeof *m->maps, dearer);
    for (int i = 0; i < m->n; i++) {
        int least = 0;
        for (int k = 1; k < parts; k++)
            least = load[k] < load[least] ? k : least;
        load[least] += cost_of(&m->maps[i]);
        m->maps[i].part = least;
    }
    free(load);
    qsort(m->maps, (size_t)m->n, sizeof *m->maps, compare);
    return LAM_OK;
}

/* The rank that orthogonalises a map. */
static int owner_of(const lam_muon *m, const map *a)
{
    return m->shares > 0 && m->ranks > 1 ? a->part * m->ranks / m->shares : 0;
}

/* Is the work of others left to them? */
static int shared(const lam_optimizer *o)
{
    return o->opt.ranks > 1 && (o->holdings || !o->model->dev->own_memory);
}

static lam_status list_maps(lam_muon *m)
{
    m->n = list_all(NULL, &m->model->params);
    const size_t room = (size_t)m->n + 1;
    m->maps = calloc(room, sizeof *m->maps);
    m->offset = calloc(room, sizeof *m->offset);
    m->parts = calloc(room, sizeof *m->parts);
    if (!m->maps || !m->offset || !m->parts)
        return lam_fail(LAM_ERR_MEMORY, "muon: no memory for %d maps", m->n);
    list_all(m->maps, &m->model->params);
    return divide(m);
}

static void free_lists(lam_muon *m)
{
    free(m->maps);
    free(m->offset);
    free(m->parts);
}

static lam_status measure(size_t *bytes, lam_model *model, const lam_optimizer_options *o)
{
    lam_muon m = {.model = model, .shares = o->shares};
    lam_arena arena = {0};
    const lam_status status = list_maps(&m);
    if (status == LAM_OK)
        layout(&m, &arena);
    free_lists(&m);
    *bytes = arena.used;
    return status;
}

static lam_status divide_holdings(lam_holding *list, int *n, const lam_model *model,
                                  const lam_optimizer_options *o)
{
    lam_muon m = {.model = (lam_model *)(uintptr_t)model, .shares = o->shares, .ranks = o->ranks};
    const lam_status status = list_maps(&m);
    *n = 0;
    for (int i = 0; i < m.n && status == LAM_OK; i++)
        list[(*n)++] = (lam_holding){.param = m.maps[i].param,
                                     .offset = m.maps[i].offset,
                                     .count = map_size(&m.maps[i]),
                                     .owner = owner_of(&m, &m.maps[i])};
    free_lists(&m);
    return status;
}

static void free_muon(void *own)
{
    lam_muon *m = own;
    if (!m)
        return;
    m->model->dev->ops->release(m->model->dev, m->block);
    free_lists(m);
    free(m);
}

static lam_status create(void **own, lam_model *model, const lam_optimizer_options *o)
{
    *own = NULL;
    lam_muon *m = calloc(1, sizeof *m);
    if (!m)
        return lam_fail(LAM_ERR_MEMORY, "muon: no memory");
    m->model = model;
    m->shares = o->shares;
    m->ranks = o->ranks;
    m->rank = o->rank;
    lam_arena arena = {0};
    lam_status status = list_maps(m);
    if (status == LAM_OK) {
        layout(m, &arena);
        status = model->dev->ops->alloc(model->dev, &m->block, arena.used);
    }
    if (status != LAM_OK) {
        free_muon(m);
        return status;
    }
    arena = (lam_arena){.base = m->block, .size = arena.used};
    layout(m, &arena);
    *own = m;
    return LAM_OK;
}

/* ---- one batch ---- */

/* Maps of one shape that are treated together, at m->offset. */
typedef struct batch {
    lam_dev *dev;
    int rows, cols, count;
    int wide;            /* rows <= cols */
    int k;               /* the shorter side */
    size_t size, square; /* elements of a map, and k * k */
} batch;

/* Where the products of a round go. */
typedef struct target {
    void *to;
    lam_class type;
    size_t step;
} target;

/* mixed = a I + b A + c A A. */
static void polynomial(const lam_muon *m, const batch *b, const void *x)
{
    const size_t ld = (size_t)b->cols, k = (size_t)b->k;
    b->dev->ops->gemm(b->dev, &(lam_gemm){.m = b->k,
                                          .n = b->k,
                                          .k = b->wide ? b->cols : b->rows,
                                          .batch = b->count,
                                          .ta = b->wide ? LAM_KEEP : LAM_FLIP,
                                          .tb = b->wide ? LAM_FLIP : LAM_KEEP,
                                          .a = x,
                                          .b = x,
                                          .c = m->A,
                                          .lda = ld,
                                          .ldb = ld,
                                          .ldc = k,
                                          .step_a = b->size,
                                          .step_b = b->size,
                                          .step_c = b->square});
    b->dev->ops->gemm(b->dev, &(lam_gemm){.m = b->k,
                                          .n = b->k,
                                          .k = b->k,
                                          .batch = b->count,
                                          .a = m->A,
                                          .b = m->A,
                                          .c = m->mixed,
                                          .lda = k,
                                          .ldb = k,
                                          .ldc = k,
                                          .step_a = b->square,
                                          .step_b = b->square,
                                          .step_c = b->square});
    b->dev->ops->ortho_mix(b->dev, &(lam_ortho_mix){.count = b->count,
                                                    .n = b->k,
                                                    .a = QUINTIC[0],
                                                    .b = QUINTIC[1],
                                                    .c = QUINTIC[2],
                                                    .A = m->A,
                                                    .P = m->mixed,
                                                    .q = m->mixed});
}

/* The target = polynomial X, or X polynomial, for `count` maps from number `first` on. */
static void apply(const lam_muon *m, const batch *b, const void *x, int first, int count,
                  target out)
{
    const size_t ld = (size_t)b->cols, k = (size_t)b->k;
    const void *in = lam_at(b->dev, LAM_ACT, x, (size_t)first * b->size);
    const void *mixed = lam_at(b->dev, LAM_ACT, m->mixed, (size_t)first * b->square);
    b->dev->ops->gemm(b->dev, &(lam_gemm){.m = b->rows,
                                          .n = b->cols,
                                          .k = b->k,
                                          .batch = count,
                                          .a = b->wide ? mixed : in,
                                          .b = b->wide ? in : mixed,
                                          .c = out.to,
                                          .c_class = out.type,
                                          .lda = b->wide ? k : ld,
                                          .ldb = b->wide ? ld : k,
                                          .ldc = ld,
                                          .step_a = b->wide ? b->square : b->size,
                                          .step_b = b->wide ? b->size : b->square,
                                          .step_c = out.step});
}

/* The last round's products go where the gradients are: as many at a time as lie evenly apart. */
static void apply_to_gradients(const lam_muon *m, const batch *b, const void *x)
{
    const size_t *at = m->offset;
    for (int first = 0, n; first < b->count; first += n) {
        void *to = lam_at(b->dev, LAM_WIDE, m->model->params.grad, at[first]);
        const size_t step = first + 1 < b->count ? at[first + 1] - at[first] : b->size;
        for (n = 1; first + n < b->count && at[first + n] - at[first + n - 1] == step; n++)
            ;
        apply(m, b, x, first, n, (target){to, LAM_WIDE, step});
    }
}

/* Momentum of the maps at m->offset, and X of the first round. */
static void begin(const lam_optimizer *o, const batch *b, const void *norm)
{
    const lam_muon *m = o->own;
    lam_ortho_begin a = {.offset = m->offset,
                         .count = b->count,
                         .size = b->size,
                         .beta = o->opt.muon_mom,
                         .clip = o->opt.clip,
                         .norm = norm,
                         .grad = m->model->params.grad,
                         .m = o->m,
                         .x = m->x[0]};
    if (!o->holdings) {
        b->dev->ops->ortho_begin(b->dev, &a);
        return;
    }
    static const size_t here = 0; /* moments lie elsewhere than gradients: map by map */
    a.offset = &here;
    a.count = 1;
    for (int i = 0; i < b->count; i++) {
        a.grad = lam_at(b->dev, LAM_WIDE, m->model->params.grad, m->offset[i]);
        a.m = lam_at(b->dev, LAM_WIDE, o->m, lam_holdings_at(o->holdings, m->offset[i])->m);
        a.x = lam_at(b->dev, LAM_ACT, m->x[0], (size_t)i * b->size);
        b->dev->ops->ortho_begin(b->dev, &a);
    }
}

/* The gradients of the maps at m->offset become their orthogonal steps. */
static void orthogonalise(const lam_optimizer *o, const map *shape, int count, const void *norm)
{
    const lam_muon *m = o->own;
    const size_t k = (size_t)shorter(shape);
    const batch b = {.dev = m->model->dev,
                     .rows = shape->rows,
                     .cols = shape->cols,
                     .count = count,
                     .wide = shape->rows <= shape->cols,
                     .k = shorter(shape),
                     .size = map_size(shape),
                     .square = k * k};
    begin(o, &b, norm);
    if (shared(o) && owner_of(m, shape) != m->rank)
        return;
    for (int round = 0; round < ROUNDS; round++) {
        const void *x = m->x[round % 2];
        polynomial(m, &b, x);
        if (round + 1 < ROUNDS)
            apply(m, &b, x, 0, count, (target){m->x[(round + 1) % 2], LAM_ACT, b.size});
        else
            apply_to_gradients(m, &b, x);
    }
    if (o->opt.muon_rows == LAM_MUON_ROWS_EVEN)
        b.dev->ops->ortho_even(b.dev, &(lam_ortho_even){.offset = m->offset,
                                                        .count = count,
                                                        .rows = b.rows,
                                                        .cols = b.cols,
                                                        .length = shape->even,
                                                        .x = m->model->params.grad});
}

/* The steps of all ranks' maps, where their gradients were. */
static lam_status send_steps(const lam_optimizer *o)
{
    const lam_muon *m = o->own;
    const lam_params *p = &m->model->params;
    lam_stretch *const list = malloc((size_t)m->n * sizeof *list);
    int n = 0;
    if (!list)
        return lam_fail(LAM_ERR_MEMORY, "muon: no memory for %d maps", m->n);
    for (int i = 0; i < m->n; i++)
        if (p->list[m->maps[i].param].used)
            list[n++] =
                (lam_stretch){m->maps[i].offset, map_size(&m->maps[i]), owner_of(m, &m->maps[i])};
    const lam_status status = lam_exchange_spread(o->opt.exchange, p->grad, list, n);
    free(list);
    return status;
}

/* Steps every matrix that received a gradient, whose gradient becomes the step taken. */
static void step(lam_optimizer *o, const lam_rule_step *s)
{
    lam_muon *m = o->own;
    lam_params *p = &m->model->params;
    const double lr = s->lr * o->opt.matrix_lr;
    int n_parts = 0;
    for (int from = 0, count; from < m->n; from += count) {
        const map *shape = &m->maps[from];
        const double factor = ADAM_STEP * sqrt((double)shape->side);
        int used = 0;
        count = batch_of(m, from);
        if (o->holdings && owner_of(m, shape) != m->rank)
            continue;
        for (int i = from; i < from + count; i++) {
            if (!p->list[m->maps[i].param].used)
                continue;
            m->offset[used++] = m->maps[i].offset;
            m->parts[n_parts++] =
                (lam_part){.offset = m->maps[i].offset,
                           .count = map_size(shape),
                           .lr = lr * factor,
                           .decay = o->opt.weight_decay / factor, /* times lr it is as asked */
                           .fix1 = 1.0,
                           .fix2 = 1.0};
        }
        if (used > 0)
            orthogonalise(o, shape, used, s->norm);
    }
    if (n_parts == 0)
        return;
    if (shared(o) && !o->holdings && o->failed == LAM_OK)
        o->failed = send_steps(o);
    /* SGD without momentum, unclipped: its m is its g. */
    p->dev->ops->update(p->dev, &(lam_update){.kind = LAM_SGD,
                                              .parts = m->parts,
                                              .n_parts = n_parts,
                                              .norm = s->norm,
                                              .grad = p->grad,
                                              .master = p->master,
                                              .m = p->grad,
                                              .weight = p->weight != p->master ? p->weight : NULL});
}

static lam_status check(const lam_optimizer_options *o)
{
    LAM_TRY(lam_rule_below_one("muon_mom", o->muon_mom));
    LAM_TRY(lam_rule_below_one("beta1", o->beta1)); /* Adam's, of the rest */
    return lam_rule_below_one("beta2", o->beta2);
}

static bool takes(const lam_param *q)
{
    return lam_param_is_hidden(q);
}

const lam_rule lam_rule_muon = {.name = "muon",
                                .mean = true,
                                .check = check,
                                .step = step,
                                .takes = takes,
                                .divide = divide_holdings,
                                .measure = measure,
                                .create = create,
                                .free = free_muon};
