/* results.c -- what a segment came to: losses and the logits of the last rows, read back.
 *
 * The plain softmax gives its logits.  The adaptive one gives log-probabilities: log p(token) = log p(cluster) +
 * log p(token | cluster), put together here from the head's and the tails' logits. */
#include "model/stack_int.h"

#include "core/exact.h"

#include <assert.h>
#include <stdlib.h>

/* ---- losses ---- */

size_t lam_stack_aux_count(const lam_stack *st)
{
    return (size_t)st->model->cfg.n_layer * (size_t)st->opt.B * (size_t)st->opt.N *
           (size_t)st->model->cfg.n_head;
}

/* n WIDE numbers of the device as doubles. */
static lam_status fetch(lam_stack *st, double *out, const void *from, size_t n)
{
    lam_dev *dev = st->dev;
    void *raw = malloc((n + 1) * sizeof(double));
    if (!raw)
        return lam_fail(LAM_ERR_MEMORY, "loss: no memory for %zu rows", n);
    const lam_status status = dev->ops->download(dev, raw, from, n * lam_class_size(dev, LAM_WIDE));
    if (status == LAM_OK)
        lam_convert(out, LAM_F64, raw, dev->wide, n);
    free(raw);
    return status;
}

lam_status lam_stack_nll(lam_stack *st, double *nll)
{
    return fetch(st, nll, st->nll, (size_t)st->seg.B * (size_t)lam_stack_scored_rows(st));
}

int lam_stack_has_aux(const lam_stack *st)
{
    return st->seg.aux != NULL;
}

lam_status lam_stack_aux(lam_stack *st, double *sum)
{
    const size_t n = st->seg.aux ? lam_stack_aux_count(st) : 0;
    double *parts = malloc((n + 1) * sizeof *parts);
    *sum = 0.0;
    const lam_status status =
        parts ? fetch(st, parts, st->seg.aux, n) : lam_fail(LAM_ERR_MEMORY, "loss: no memory");
    for (size_t i = 0; i < n && status == LAM_OK; i++)
        *sum += parts[i];
    free(parts);
    return status;
}

/* ---- logits ---- */

/* Logits of a cluster of the adaptive softmax (0: its head, or all tokens) for `rows` rows of z, as doubles without
 * padding, [rows][columns].  finite[r] becomes less where one of row r is not finite: the token it belongs to, in the head
 * perhaps a cluster and then none.  They are looked at as the device has them, which are a quarter of the bytes. */
static lam_status cluster_logits(lam_stack *st, int cluster, const void *z, int rows, double *out,
                                 size_t *finite)
{
    const size_t V = (size_t)st->model->cfg.n_token;
    const size_t first =
        cluster == 0 ? 0 : (size_t)lam_config_cluster(&st->model->cfg, cluster).first;
    char *raw = st->host.raw;
    const int columns = lam_head_logits(&st->head, cluster, z, rows);
    const size_t size = lam_class_size(st->dev, LAM_ACT), n = (size_t)columns;
    const size_t ld = (size_t)lam_padded(st->dev, columns);
    LAM_TRY(st->dev->ops->download(st->dev, raw, st->head.logits, (size_t)rows * ld * size));
    for (int r = 0; r < rows; r++) {
        const char *row = raw + (size_t)r * ld * size;
        const size_t good = lam_finite_count(row, st->dev->act, n);
        if (good < n && first + good < finite[r])
            finite[r] = first + good < V ? first + good : V - 1;
        lam_convert(out + (size_t)r * n, LAM_F64, row, st->dev->act, n);
    }
    return LAM_OK;
}

/* logits [rows][V] of packed rows z, rows <= chunk; with clusters, log-probabilities. */
static lam_status all_logits(lam_stack *st, const void *z, int rows, double *logits, size_t *finite)
{
    const lam_config *cfg = &st->model->cfg;
    const size_t V = (size_t)cfg->n_token;
    if (cfg->n_cutoffs == 0)
        return cluster_logits(st, 0, z, rows, logits, finite);

    const int first = cfg->cutoffs[0], columns = first + cfg->n_cutoffs;
    double *head = st->host.clusters; /* [rows][columns], kept while the tails are added */
    double *tail = head + (size_t)rows * (size_t)columns;
    LAM_TRY(cluster_logits(st, 0, z, rows, head, finite));
    for (int r = 0; r < rows; r++) {
        lam_exact_log_softmax(head + (size_t)r * (size_t)columns, (size_t)columns);
        for (int i = 0; i < first; i++)
            logits[(size_t)r * V + (size_t)i] = head[(size_t)r * (size_t)columns + (size_t)i];
    }
    for (int i = 1; i <= cfg->n_cutoffs; i++) {
        const lam_cluster c = lam_config_cluster(cfg, i);
        LAM_TRY(cluster_logits(st, i, z, rows, tail, finite));
        for (int r = 0; r < rows; r++) {
            double *row = tail + (size_t)r * (size_t)c.count;
            const double log_p = head[(size_t)r * (size_t)columns + (size_t)(columns - i)];
            lam_exact_log_softmax(row, (size_t)c.count);
            for (int k = 0; k < c.count; k++)
                logits[(size_t)r * V + (size_t)(c.first + k)] = log_p + row[k];
        }
    }
    return LAM_OK;
}

/* Row `row` of every stream, of the scored ones, packed. */
static const void *pick_rows(lam_stack *st, int row)
{
    const int B = st->seg.B, n = lam_stack_scored_rows(st);
    const size_t D = (size_t)st->model->dims.D;
    if (n == 1)
        return st->z;
    for (int b = 0; b < B; b++)
        st->head.host[b] = b * n + row;
    st->dev->ops->upload(st->dev, st->head.index, st->head.host, (size_t)B * sizeof(int32_t));
    st->dev->ops->gather(st->dev,
                         &(lam_pick){B, (int)D, D, D, st->head.index, st->z, st->attn_out});
    return st->attn_out;
}

/* Memory for the logits of `all` rows, `rows` at a time, kept: decoding wants some for every token. */
static lam_status take_host(lam_stack *st, int rows, int all)
{
    const size_t V = (size_t)st->model->cfg.n_token, n = (size_t)rows * (V + 64);
    const int clusters = st->model->cfg.n_cutoffs > 0;
    lam_host_logits *host = &st->host;
    if (all > host->all) {
        free(host->finite);
        host->finite = malloc((size_t)all * sizeof *host->finite);
        host->all = host->finite ? all : 0;
        if (!host->finite)
            return lam_fail(LAM_ERR_MEMORY, "logits: no memory");
    }
    if (rows <= host->rows)
        return LAM_OK;
    free(host->raw);
    free(host->clusters);
    host->rows = 0;
    host->raw = malloc((n + (size_t)rows * (size_t)st->dev->pad) * sizeof(double));
    host->clusters = clusters ? malloc(2 * n * sizeof *host->clusters) : NULL;
    if (!host->raw || (clusters && !host->clusters))
        return lam_fail(LAM_ERR_MEMORY, "logits: no memory");
    host->rows = rows;
    return LAM_OK;
}

/* Logits of n packed rows of z. */
static lam_status logits_of(lam_stack *st, const void *z, int n, double *logits)
{
    const size_t V = (size_t)st->model->cfg.n_token, D = (size_t)st->model->dims.D;
    const int chunk = n < st->head.chunk ? n : st->head.chunk;
    LAM_TRY(take_host(st, chunk, n));
    for (int b = 0; b < n; b++)
        st->host.finite[b] = V;
    for (int b = 0; b < n; b += chunk) {
        const int rows = n - b < chunk ? n - b : chunk;
        LAM_TRY(all_logits(st, lam_at(st->dev, LAM_ACT, z, (size_t)b * D), rows,
                           logits + (size_t)b * V, st->host.finite + b));
    }
    return LAM_OK;
}

size_t lam_stack_finite(const lam_stack *st, int row)
{
    assert(row < st->host.all);
    return st->host.finite[row];
}

lam_status lam_stack_logits(lam_stack *st, double *logits)
{
    return lam_stack_logits_at(st, lam_stack_scored_rows(st) - 1, logits);
}

lam_status lam_stack_logits_at(lam_stack *st, int row, double *logits)
{
    return logits_of(st, pick_rows(st, row), st->seg.B, logits);
}

lam_status lam_stack_row_logits(lam_stack *st, int first, int rows, double *logits)
{
    const size_t D = (size_t)st->model->dims.D;
    assert(st->seg.B == 1 && first >= 0 && first + rows <= lam_stack_scored_rows(st));
    return logits_of(st, lam_at(st->dev, LAM_ACT, st->z, (size_t)first * D), rows, logits);
}
