/* muon_matrices.c -- see muon_matrices.h. */
#include "train/muon_matrices.h"

#include <math.h>
#include <stdlib.h>

size_t lam_muon_size(const lam_muon_matrix *a)
{
    return (size_t)a->rows * (size_t)a->cols;
}

int lam_muon_shorter(const lam_muon_matrix *a)
{
    return a->rows < a->cols ? a->rows : a->cols;
}

static int same_shape(const lam_muon_matrix *a, const lam_muon_matrix *b)
{
    return a->rows == b->rows && a->cols == b->cols && a->side == b->side && a->even == b->even;
}

static int compare(const void *x, const void *y)
{
    const lam_muon_matrix *a = x, *b = y;
    if (a->part != b->part)
        return (a->part > b->part) - (a->part < b->part);
    if (!same_shape(a, b))
        return a->rows != b->rows   ? (a->rows > b->rows) - (a->rows < b->rows)
               : a->cols != b->cols ? (a->cols > b->cols) - (a->cols < b->cols)
               : a->side != b->side ? (a->side > b->side) - (a->side < b->side)
                                    : (a->even > b->even) - (a->even < b->even);
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Lists the matrices of a parameter; returns their number.  to NULL: only counts. */
static int list_param(lam_muon_matrix *to, const lam_params *p, int i)
{
    const lam_param *q = &p->list[i];
    if (!lam_param_is_hidden(q))
        return 0;
    const int true_rows = q->dim[0].groups * q->dim[0].size / q->maps;
    const int true_cols = q->dim[1].groups * q->dim[1].size;
    lam_muon_matrix one = {
        .param = i,
        .rows = q->dim[0].groups * q->dim[0].ld / q->maps,
        .cols = q->dim[1].groups * q->dim[1].ld,
        .side = true_rows > true_cols ? true_rows : true_cols,
        .even = true_rows > true_cols ? sqrt((double)true_cols / (double)true_rows) : 1.0,
        .offset = q->offset};
    for (int k = 0; to && k < q->maps; k++, one.offset += lam_muon_size(&one))
        to[k] = one;
    return q->maps;
}

static int list_all(lam_muon_matrix *to, const lam_params *p)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        n += list_param(to ? to + n : NULL, p, i);
    if (to)
        qsort(to, (size_t)n, sizeof *to, compare);
    return n;
}

/* Multiply-accumulates of a round, but for a factor. */
static double cost_of(const lam_muon_matrix *a)
{
    return (double)lam_muon_size(a) * lam_muon_shorter(a);
}

static int dearer(const void *x, const void *y)
{
    const double a = cost_of(x), b = cost_of(y);
    return a != b ? (a < b) - (a > b) : compare(x, y);
}

/* Each matrix, the dearest first, goes to the part that has least to do. */
static lam_status divide(lam_muon_matrices *m)
{
    if (m->parts < 2)
        return LAM_OK;
    double *const load = calloc((size_t)m->parts, sizeof *load);
    if (!load)
        return lam_fail(LAM_ERR_MEMORY, "muon: no memory for %d parts", m->parts);
    qsort(m->list, (size_t)m->n, sizeof *m->list, dearer);
    for (int i = 0; i < m->n; i++) {
        int least = 0;
        for (int k = 1; k < m->parts; k++)
            least = load[k] < load[least] ? k : least;
        load[least] += cost_of(&m->list[i]);
        m->list[i].part = least;
    }
    free(load);
    qsort(m->list, (size_t)m->n, sizeof *m->list, compare);
    return LAM_OK;
}

lam_status lam_muon_matrices_create(lam_muon_matrices *out, const lam_params *p, int parts,
                                    int ranks)
{
    *out = (lam_muon_matrices){.n = list_all(NULL, p), .parts = parts, .ranks = ranks};
    out->list = calloc((size_t)out->n + 1, sizeof *out->list);
    if (!out->list)
        return lam_fail(LAM_ERR_MEMORY, "muon: no memory for %d matrices", out->n);
    list_all(out->list, p);
    const lam_status status = divide(out);
    if (status != LAM_OK)
        lam_muon_matrices_free(out);
    return status;
}

void lam_muon_matrices_free(lam_muon_matrices *m)
{
    free(m->list);
    *m = (lam_muon_matrices){0};
}

int lam_muon_batch(const lam_muon_matrices *m, int from, size_t most)
{
    const lam_muon_matrix *first = &m->list[from];
    const size_t fit = most / lam_muon_size(first);
    int count = 1;
    while (from + count < m->n && (size_t)count < fit && first->part == first[count].part &&
           same_shape(first, first + count))
        count++;
    return count;
}

int lam_muon_owner(const lam_muon_matrices *m, const lam_muon_matrix *a)
{
    return m->parts > 0 && m->ranks > 1 ? a->part * m->ranks / m->parts : 0;
}
