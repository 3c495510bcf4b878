/* leaves.c -- see leaves.h.
 *
 * The leaves come one after the other, so the tree is a binary counter: after leaf i as many levels are complete as i
 * has ones at its end, and one partial sum of each level waits for its right neighbour. */
#include "train/leaves.h"

#include <stdlib.h>

enum { LEVELS = 31 }; /* n is an int */

struct lam_leaves {
    lam_model *model; /* kept */
    int n, levels;
    void *zero;            /* WIDE [1]: a norm for update, which asks whether that is finite */
    void *waiting[LEVELS]; /* WIDE [total]: the left sum of each level */
};

static int levels_of(int n)
{
    int levels = 0;
    while (n >> levels > 1)
        levels++;
    return levels;
}

static size_t gradient_bytes(const lam_model *model)
{
    return model->params.total * lam_class_size(model->dev, LAM_WIDE);
}

size_t lam_leaves_bytes(const lam_model *model, int n)
{
    return (size_t)levels_of(n) * gradient_bytes(model);
}

lam_status lam_leaves_create(lam_leaves **out, lam_model *model, int n)
{
    lam_dev *dev = model->dev;
    *out = NULL;
    lam_leaves *l = calloc(1, sizeof *l);
    if (!l)
        return lam_fail(LAM_ERR_MEMORY, "%d leaves: no memory", n);
    l->model = model;
    l->n = n;
    l->levels = levels_of(n);
    lam_status status = dev->ops->alloc(dev, &l->zero, lam_class_size(dev, LAM_WIDE));
    for (int i = 0; i < l->levels && status == LAM_OK; i++)
        status = dev->ops->alloc(dev, &l->waiting[i], gradient_bytes(model));
    if (status != LAM_OK) {
        lam_leaves_free(l);
        return status;
    }
    *out = l;
    return LAM_OK;
}

void lam_leaves_free(lam_leaves *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->levels; i++)
        l->model->dev->ops->release(l->model->dev, l->waiting[i]);
    l->model->dev->ops->release(l->model->dev, l->zero);
    free(l);
}

void lam_leaves_begin(lam_leaves *l, int i)
{
    lam_dev *dev = l->model->dev;
    if (i > 0) /* before the first one the optimiser has cleared them */
        dev->ops->zero(dev, l->model->params.grad, gradient_bytes(l->model));
}

/* grad += x, of a stretch.  SGD without momentum at the rate -1 is an addition, and no device rounds it differently. */
static void add(const lam_leaves *l, void *x, size_t from, size_t count)
{
    const lam_params *p = &l->model->params;
    const lam_part all = {.offset = from, .count = count, .lr = -1.0, .fix1 = 1.0, .fix2 = 1.0};
    p->dev->ops->update(p->dev, &(lam_update){.kind = LAM_SGD,
                                              .parts = &all,
                                              .n_parts = 1,
                                              .norm = l->zero,
                                              .grad = x,
                                              .master = p->grad,
                                              .m = x});
}

void lam_leaves_end_part(lam_leaves *l, int i, size_t from, size_t count)
{
    const lam_params *p = &l->model->params;
    int level = 0;
    if (count == 0)
        return;
    for (; i >> level & 1; level++)
        add(l, l->waiting[level], from, count);
    if (i + 1 < l->n)
        p->dev->ops->copy(
            p->dev, &(lam_copy){.blocks = 1,
                                .count = count,
                                .type = LAM_WIDE,
                                .in = {lam_at(p->dev, LAM_WIDE, p->grad, from), 0},
                                .out = {lam_at(p->dev, LAM_WIDE, l->waiting[level], from), 0}});
}

void lam_leaves_end(lam_leaves *l, int i)
{
    lam_leaves_end_part(l, i, 0, l->model->params.total);
}

void lam_leaves_sum(double *x, int n, int count)
{
    for (int step = 1; step < n; step *= 2)
        for (int i = 0; i < n; i += 2 * step)
            for (int k = 0; k < count; k++)
                x[i * count + k] += x[(i + step) * count + k];
}
