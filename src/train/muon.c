/* muon.c -- Muon: hidden matrices step along the orthogonal factor of their momentum.
 *
 * For a matrix W with Nesterov momentum u = Q S R^T (singular values S) the step is Q R^T: every
 * direction moves equally far.  Five Newton-Schulz rounds bring the singular values to about 1
 * (between 0.7 and 1.2), which serves as well.  The step is scaled by 0.2 sqrt(the longer side), the
 * size of Adam's usual steps, so that Adam's learning rate and weight decay carry over (Moonlight).
 * q, k and v are matrices of their own although they are stored as one.
 *
 * Orthogonal columns say nothing of the rows: those of a matrix with more outputs than inputs may have any length,
 * and a few outputs then learn at the cost of others.  And where a gradient has few large singular values the
 * rounds leave the others small: the step is shorter than its learning rate says.  With even rows each row is brought
 * to the length that it has on average in a step that is orthogonal, whatever the gradient.
 *
 * Everything else (embeddings, output, gains, biases, u, v, convolutions) is left to Adam.
 *
 * Where ranks share a run (muon_matrices.h), each orthogonalises its part of the matrices and sends the steps to the
 * others; momentum is everybody's.  A device with memory of its own computes faster than the host could send: there
 * every rank orthogonalises all.  With --zero 1 momentum is the owner's alone, on every device, and new weights are sent
 * instead of steps (holdings.h).
 *
 * X is never transposed: with A = X X^T for a wide matrix, or X^T X for a tall one,
 *   X <- (a I + b A + c A A) X,   or   X <- X (a I + b A + c A A),
 * the smaller of the two squares.  The last round writes its result over the gradients, from where the
 * update takes it as plain SGD would. */
#include "train/holdings.h"
#include "train/muon_matrices.h"

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

typedef struct lam_muon {
    lam_model *model;
    lam_muon_matrices all;
    size_t most;     /* elements of a batch, unless one matrix alone has more */
    size_t *offset;  /* [n]: of the batch at work */
    lam_part *parts; /* [n]: for update */
    void *block;     /* device memory of the buffers: */
    void *x[2];      /* ACT [batch][rows][cols]: before and after a round */
    void *A, *mixed; /* ACT [batch][k][k], k the shorter side: A; A A, then the polynomial */
} lam_muon;

static void layout(lam_muon *m, lam_arena *arena)
{
    size_t x = 0, square = 0;
    for (int from = 0, count; from < m->all.n; from += count) {
        count = lam_muon_batch(&m->all, from, m->most);
        const size_t k = (size_t)lam_muon_shorter(&m->all.list[from]);
        const size_t xs = (size_t)count * lam_muon_size(&m->all.list[from]);
        const size_t squares = (size_t)count * k * k;
        x = xs > x ? xs : x;
        square = squares > square ? squares : square;
    }
    const size_t size = lam_class_size(m->model->dev, LAM_ACT);
    m->x[0] = lam_arena_take(arena, x * size);
    m->x[1] = lam_arena_take(arena, x * size);
    m->A = lam_arena_take(arena, square * size);
    m->mixed = lam_arena_take(arena, square * size);
}

/* Is the work of others left to them? */
static int shared(const lam_optimizer *o)
{
    return o->opt.ranks > 1 && (o->holdings || !o->model->dev->own_memory);
}

static void free_muon(void *own)
{
    lam_muon *m = own;
    if (!m)
        return;
    m->model->dev->ops->release(m->model->dev, m->block);
    lam_muon_matrices_free(&m->all);
    free(m->offset);
    free(m->parts);
    free(m);
}

/* Without its buffers on the device; *bytes is what these take. */
static lam_status plan(lam_muon **out, size_t *bytes, lam_model *model,
                       const lam_optimizer_options *o)
{
    *out = NULL;
    lam_muon *m = calloc(1, sizeof *m);
    if (!m)
        return lam_fail(LAM_ERR_MEMORY, "muon: no memory");
    m->model = model;
    m->most = model->dev->together > 0 ? model->dev->together : MANY;
    lam_status status = lam_muon_matrices_create(&m->all, &model->params, o->shares, o->ranks);
    m->offset = calloc((size_t)m->all.n + 1, sizeof *m->offset);
    m->parts = calloc((size_t)m->all.n + 1, sizeof *m->parts);
    if (status == LAM_OK && (!m->offset || !m->parts))
        status = lam_fail(LAM_ERR_MEMORY, "muon: no memory for %d matrices", m->all.n);
    if (status != LAM_OK) {
        free_muon(m);
        return status;
    }
    lam_arena arena = {0};
    layout(m, &arena);
    *bytes = arena.used;
    *out = m;
    return LAM_OK;
}

static lam_status measure(size_t *bytes, lam_model *model, const lam_optimizer_options *o)
{
    lam_muon *m;
    *bytes = 0;
    const lam_status status = plan(&m, bytes, model, o);
    free_muon(m);
    return status;
}

static lam_status create(void **own, lam_model *model, const lam_optimizer_options *o)
{
    lam_muon *m;
    size_t bytes;
    *own = NULL;
    LAM_TRY(plan(&m, &bytes, model, o));
    const lam_status status = model->dev->ops->alloc(model->dev, &m->block, bytes);
    if (status != LAM_OK) {
        free_muon(m);
        return status;
    }
    lam_arena arena = {.base = m->block, .size = bytes};
    layout(m, &arena);
    *own = m;
    return LAM_OK;
}

static lam_status divide_holdings(lam_holding *list, int *n, const lam_model *model,
                                  const lam_optimizer_options *o)
{
    lam_muon_matrices all;
    *n = 0;
    LAM_TRY(lam_muon_matrices_create(&all, &model->params, o->shares, o->ranks));
    for (const lam_muon_matrix *a = all.list; a < all.list + all.n; a++)
        list[(*n)++] = (lam_holding){.param = a->param,
                                     .offset = a->offset,
                                     .count = lam_muon_size(a),
                                     .owner = lam_muon_owner(&all, a)};
    lam_muon_matrices_free(&all);
    return LAM_OK;
}

/* ---- one batch of matrices ---- */

/* Matrices of one shape that are treated together, at m->offset. */
typedef struct batch {
    lam_dev *dev;
    int rows, cols, count;
    int wide;            /* rows <= cols */
    int k;               /* the shorter side */
    size_t size, square; /* elements of a matrix, and k * k */
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

/* The target = polynomial X, or X polynomial, for `count` matrices from number `first` on. */
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

/* Momentum of the matrices at m->offset, and X of the first round. */
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
    static const size_t here = 0; /* moments lie elsewhere than gradients: one by one */
    a.offset = &here;
    a.count = 1;
    for (int i = 0; i < b->count; i++) {
        a.grad = lam_at(b->dev, LAM_WIDE, m->model->params.grad, m->offset[i]);
        a.m = lam_at(b->dev, LAM_WIDE, o->m, lam_holdings_at(o->holdings, m->offset[i])->m);
        a.x = lam_at(b->dev, LAM_ACT, m->x[0], (size_t)i * b->size);
        b->dev->ops->ortho_begin(b->dev, &a);
    }
}

/* The gradients of the matrices at m->offset become their orthogonal steps. */
static void orthogonalise(const lam_optimizer *o, const lam_muon_matrix *shape, int count,
                          const void *norm)
{
    const lam_muon *m = o->own;
    const size_t k = (size_t)lam_muon_shorter(shape);
    const batch b = {.dev = m->model->dev,
                     .rows = shape->rows,
                     .cols = shape->cols,
                     .count = count,
                     .wide = shape->rows <= shape->cols,
                     .k = lam_muon_shorter(shape),
                     .size = lam_muon_size(shape),
                     .square = k * k};
    begin(o, &b, norm);
    if (shared(o) && lam_muon_owner(&m->all, shape) != o->opt.rank)
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

/* The steps of all ranks' matrices, where their gradients were. */
static lam_status send_steps(const lam_optimizer *o)
{
    const lam_muon *m = o->own;
    const lam_muon_matrices *all = &m->all;
    const lam_params *p = &m->model->params;
    lam_stretch *const list = malloc((size_t)all->n * sizeof *list);
    int n = 0;
    if (!list)
        return lam_fail(LAM_ERR_MEMORY, "muon: no memory for %d matrices", all->n);
    for (const lam_muon_matrix *a = all->list; a < all->list + all->n; a++)
        if (p->list[a->param].used)
            list[n++] = (lam_stretch){a->offset, lam_muon_size(a), lam_muon_owner(all, a)};
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
    for (int from = 0, count; from < m->all.n; from += count) {
        const lam_muon_matrix *shape = &m->all.list[from];
        const double factor = ADAM_STEP * sqrt((double)shape->side);
        int used = 0;
        count = lam_muon_batch(&m->all, from, m->most);
        if (o->holdings && lam_muon_owner(&m->all, shape) != o->opt.rank)
            continue;
        for (int i = from; i < from + count; i++) {
            const lam_muon_matrix *a = &m->all.list[i];
            if (!p->list[a->param].used)
                continue;
            m->offset[used++] = a->offset;
            m->parts[n_parts++] =
                (lam_part){.offset = a->offset,
                           .count = lam_muon_size(shape),
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
