/* head.c -- see head.h. */
#include "nn/head.h"

#include "nn/linear.h"

/* Logits kept at a time: 16 MiB of floats, within a cache's reach. */
enum { CHUNK_ELEMENTS = 1 << 22 };

void lam_head_declare(lam_head_params *ids, const lam_embed_params *embed, lam_params *p,
                      const lam_config *cfg, const lam_dev *dev)
{
    const int n = cfg->n_cutoffs;
    const lam_dim D = {1, cfg->d_model, lam_padded(dev, cfg->d_model)};
    const lam_dim clusters = {1, n, n}, E = {1, cfg->d_embed, lam_padded(dev, cfg->d_embed)};
    const double std = cfg->init_std;

    ids->cluster_weight = ids->cluster_bias = -1;
    if (n > 0) {
        ids->cluster_weight = lam_params_add(
            p, &(lam_spec){2, {clusters, E}, LAM_INIT_NORMAL, std, 0}, "crit.cluster_weight");
        ids->cluster_bias =
            lam_params_add(p, &(lam_spec){1, {clusters}, LAM_INIT_ZERO, 0, 0}, "crit.cluster_bias");
    }
    for (int t = 0; t < embed->tables; t++) {
        const lam_cluster c = lam_embed_table(cfg, t);
        const lam_dim count = {1, c.count, lam_embed_stored(cfg, dev, c.count)};
        const lam_dim width = {1, c.width, lam_padded(dev, c.width)};
        ids->weight[t] = embed->table[t];
        if (!cfg->tie_weight)
            ids->weight[t] =
                lam_params_add(p, &(lam_spec){2, {count, width}, LAM_INIT_LINEAR, std, 0},
                               "crit.out_layers.%d.weight", t);
        ids->bias[t] = lam_params_add(p, &(lam_spec){1, {count}, LAM_INIT_ZERO, 0, 0},
                                      "crit.out_layers.%d.bias", t);
    }
    for (int i = 0; i <= n; i++) {
        const int width = lam_config_cluster(cfg, i).width;
        const lam_dim W = {1, width, lam_padded(dev, width)};
        const int own = cfg->div_val == 1 ? embed->proj[0] : embed->proj[i];
        ids->proj[i] = own;
        if (own >= 0 && !cfg->tie_projs[i])
            ids->proj[i] =
                lam_params_add(p, &(lam_spec){2, {D, W}, LAM_INIT_NORMAL, cfg->proj_init_std, 0},
                               "crit.out_projs.%d", i);
    }
}

/* Part i of the softmax: `count` types from `first` on, rows of table `table` from `row` on, and for the
 * head the cluster columns behind them. */
typedef struct part {
    int first, count, columns; /* columns = count + clusters */
    int stored; /* columns of the product: count, and rows of zeros behind the table */
    int width;  /* stored width of the rows that meet the weights */
    int proj;
    lam_weights weight;
    const void *bias;
    int table, row;
} part;

static part part_of(const lam_head *h, int i)
{
    const lam_config *cfg = h->cfg;
    const lam_cluster c = lam_config_cluster(cfg, i);
    const int table = cfg->div_val == 1 ? 0 : i, row = cfg->div_val == 1 ? c.first : 0;
    part p = {.first = c.first, .count = c.count, .table = table, .row = row};
    p.stored = lam_embed_stored(cfg, h->dev, c.count);
    p.columns = i == 0 ? c.count + cfg->n_cutoffs : c.count;
    p.width = lam_padded(h->dev, c.width);
    p.proj = h->ids->proj[i];
    p.weight = lam_weights_from(h->dev, lam_weight(h->params, h->ids->weight[table]), (size_t)row,
                                (size_t)row * (size_t)p.width);
    p.bias = lam_at(h->dev, LAM_WIDE, lam_vector(h->params, h->ids->bias[table]), (size_t)row);
    return p;
}

static size_t ld_of(const lam_head *h, const part *p)
{
    return (size_t)lam_padded(h->dev, p->columns);
}

void lam_head_layout(lam_head *h, lam_arena *arena, int train)
{
    const size_t act = lam_class_size(h->dev, LAM_ACT);
    const size_t rows = (size_t)h->rows, D = (size_t)h->dims.D;
    const size_t E = (size_t)lam_padded(h->dev, h->cfg->d_embed);
    int widest = 0;
    for (int i = 0; i <= h->cfg->n_cutoffs; i++) {
        const int columns = lam_config_cluster(h->cfg, i).count + (i == 0 ? h->cfg->n_cutoffs : 0);
        widest = columns > widest ? columns : widest;
    }
    widest = lam_padded(h->dev, widest);
    const size_t elements = h->dev->logits > 0 ? h->dev->logits : CHUNK_ELEMENTS;
    size_t chunk = elements / (size_t)widest;
    chunk = chunk < 16 ? 16 : chunk;
    h->chunk = chunk < rows ? (int)chunk : h->rows;

    const int tails = h->cfg->n_cutoffs > 0, projected = h->ids->proj[0] >= 0;
    h->logits = lam_arena_take(arena, (size_t)h->chunk * (size_t)widest * act);
    h->part = lam_arena_take(arena, tails ? rows * D * act : 0);
    h->narrow = lam_arena_take(arena, projected ? rows * E * act : 0);
    h->dpart = lam_arena_take(arena, tails && train ? rows * D * act : 0);
    h->dnarrow = lam_arena_take(arena, projected && train ? rows * E * act : 0);
    h->target = lam_arena_take(arena, rows * sizeof(int32_t));
    h->index = lam_arena_take(arena, rows * sizeof(int32_t));
}

/* logits = x W^T + b for `rows` rows, the cluster columns last. */
static void logits_of(const lam_head *h, const part *p, const void *x, int rows)
{
    const size_t ld = ld_of(h, p), width = (size_t)p->width;
    const lam_rows in = {(void *)(uintptr_t)x, 0, width};
    lam_linear l = {h->dev, 1, rows, p->width, p->stored, width};
    lam_linear_fwd(&l, (lam_rows){h->logits, 0, ld}, in, p->weight,
                   &(lam_epilogue){.bias = p->bias});
    if (p->columns == p->count)
        return;
    l.out = p->columns - p->count;
    void *tail = lam_at(h->dev, LAM_ACT, h->logits, (size_t)p->count);
    lam_linear_fwd(&l, (lam_rows){tail, 0, ld}, in, lam_weight(h->params, h->ids->cluster_weight),
                   &(lam_epilogue){.bias = lam_vector(h->params, h->ids->cluster_bias)});
}

/* forward was  logits = x W^T + b;  h->logits now holds their gradient g:  dx = g W,  dW += g^T x,  db += column sums of g.  Columns beyond the
 * vocabulary are still the zeros that forward made. */
static void logits_bwd(const lam_head *h, const part *p, void *dx, const void *x, int rows)
{
    const size_t ld = ld_of(h, p), width = (size_t)p->width;
    const lam_rows in = {(void *)(uintptr_t)x, 0, width}, din = {dx, 0, width};
    lam_linear l = {h->dev, 1, rows, p->width, p->stored, width};
    lam_rows g = {h->logits, 0, ld};
    const int w = h->ids->weight[p->table], b = h->ids->bias[p->table];
    void *dbias = lam_at(h->dev, LAM_WIDE, lam_grad(h->params, b), (size_t)p->row);
    void *dweight =
        lam_at(h->dev, LAM_WIDE, lam_grad(h->params, w), (size_t)p->row * (size_t)p->width);

    lam_linear_bwd_x(&l, din, g, p->weight, 0.0);
    lam_linear_bwd_w(&l, dweight, g, in);
    h->dev->ops->colsum(h->dev, &(lam_colsum){rows, p->count, (int)ld, g.p, dbias});
    if (p->columns == p->count)
        return;
    l.out = p->columns - p->count;
    g.p = lam_at(h->dev, LAM_ACT, h->logits, (size_t)p->count);
    lam_linear_bwd_x(&l, din, g, lam_weight(h->params, h->ids->cluster_weight), 1.0);
    lam_linear_bwd_w(&l, lam_grad(h->params, h->ids->cluster_weight), g, in);
    h->dev->ops->colsum(h->dev, &(lam_colsum){rows, l.out, (int)ld, g.p,
                                              lam_grad(h->params, h->ids->cluster_bias)});
}

/* The rows of one part: where they are, what they should predict, where their loss goes. */
typedef struct job {
    const void *x; /* [rows][D] */
    void *dx;      /* [rows][D], or NULL */
    int rows;
    const void *target, *index; /* INT [rows]; index NULL: row r is row r */
    void *nll;
    double grad_scale;
} job;

static void run_chunks(const lam_head *h, const part *p, const job *j, const void *x, void *dx)
{
    for (int at = 0; at < j->rows; at += h->chunk) {
        const int rows = j->rows - at < h->chunk ? j->rows - at : h->chunk;
        const size_t place = (size_t)at * (size_t)p->width;
        const void *xc = lam_at(h->dev, LAM_ACT, x, place);
        logits_of(h, p, xc, rows);
        h->dev->ops->xent(
            h->dev,
            &(lam_xent){.rows = rows,
                        .cols = p->columns,
                        .add = j->index != NULL,
                        .ld = ld_of(h, p),
                        .grad_scale = j->grad_scale,
                        .logits = h->logits,
                        .target = lam_at(h->dev, LAM_INT, j->target, (size_t)at),
                        .index = j->index ? lam_at(h->dev, LAM_INT, j->index, (size_t)at) : NULL,
                        .nll = j->index ? j->nll : lam_at(h->dev, LAM_WIDE, j->nll, (size_t)at)});
        if (j->grad_scale != 0.0)
            logits_bwd(h, p, lam_at(h->dev, LAM_ACT, dx, place), xc, rows);
    }
}

static void run_part(const lam_head *h, int i, const job *j)
{
    const part p = part_of(h, i);
    if (p.proj < 0) {
        run_chunks(h, &p, j, j->x, j->dx);
        return;
    }
    /* narrow = x P with P [D][width], i.e. the backward direction of the map "y = n P^T". */
    const lam_linear l = {h->dev, 1, j->rows, p.width, h->dims.D, (size_t)p.width};
    const lam_rows x = {(void *)(uintptr_t)j->x, 0, (size_t)h->dims.D};
    const lam_rows narrow = {h->narrow, 0, (size_t)p.width};
    const lam_rows dnarrow = {h->dnarrow, 0, (size_t)p.width};
    lam_linear_bwd_x(&l, narrow, x, lam_weight(h->params, p.proj), 0.0);
    run_chunks(h, &p, j, h->narrow, h->dnarrow);
    if (j->grad_scale == 0.0)
        return;
    lam_linear_fwd(&l, (lam_rows){j->dx, 0, (size_t)h->dims.D}, dnarrow,
                   lam_weight(h->params, p.proj), NULL);
    lam_linear_bwd_w(&l, lam_grad(h->params, p.proj), x, dnarrow);
}

static int cluster_of(const lam_config *cfg, int id)
{
    int i = 0;
    while (i < cfg->n_cutoffs && id >= cfg->cutoffs[i])
        i++;
    return i;
}

static void head_part(const lam_head *h, const job *all, const int32_t *targets)
{
    const lam_config *cfg = h->cfg;
    const int columns = lam_config_cluster(cfg, 0).count + cfg->n_cutoffs;
    for (int r = 0; r < all->rows; r++) {
        const int i = cluster_of(cfg, targets[r]);
        h->host[r] = i == 0 ? targets[r] : columns - i; /* cluster 1 is the last column */
    }
    h->dev->ops->upload(h->dev, h->target, h->host, (size_t)all->rows * sizeof(int32_t));
    job j = *all;
    j.target = h->target;
    run_part(h, 0, &j);
}

static void tail_part(const lam_head *h, int i, const job *all, const int32_t *targets)
{
    const int first = lam_config_cluster(h->cfg, i).first;
    int32_t *target = h->host, *index = h->host + h->rows;
    int n = 0;
    for (int r = 0; r < all->rows; r++)
        if (cluster_of(h->cfg, targets[r]) == i) {
            target[n] = targets[r] - first;
            index[n++] = r;
        }
    if (n == 0)
        return;
    h->dev->ops->upload(h->dev, h->target, target, (size_t)n * sizeof(int32_t));
    h->dev->ops->upload(h->dev, h->index, index, (size_t)n * sizeof(int32_t));

    const size_t D = (size_t)h->dims.D;
    lam_pick pick = {n, h->dims.D, D, D, h->index, all->x, h->part};
    h->dev->ops->gather(h->dev, &pick);
    run_part(h, i,
             &(job){.x = h->part,
                    .dx = h->dpart,
                    .rows = n,
                    .target = h->target,
                    .index = h->index,
                    .nll = all->nll,
                    .grad_scale = all->grad_scale});
    if (all->grad_scale == 0.0)
        return;
    pick.in = h->dpart;
    pick.out = all->dx;
    h->dev->ops->scatter(h->dev, &pick);
}

void lam_head_loss(const lam_head *h, void *nll, const void *z, const int32_t *targets, int rows,
                   double grad_scale, void *dz)
{
    const job all = {.x = z, .dx = dz, .rows = rows, .nll = nll, .grad_scale = grad_scale};
    head_part(h, &all, targets);
    for (int i = 1; i <= h->cfg->n_cutoffs; i++)
        tail_part(h, i, &all, targets);
}

int lam_head_logits(const lam_head *h, int i, const void *z, int rows)
{
    const part p = part_of(h, i);
    const void *x = z;
    if (p.proj >= 0) {
        const lam_linear l = {h->dev, 1, rows, p.width, h->dims.D, (size_t)p.width};
        lam_linear_bwd_x(&l, (lam_rows){h->narrow, 0, (size_t)p.width},
                         (lam_rows){(void *)(uintptr_t)z, 0, (size_t)h->dims.D},
                         lam_weight(h->params, p.proj), 0.0);
        x = h->narrow;
    }
    logits_of(h, &p, x, rows);
    return p.columns;
}
