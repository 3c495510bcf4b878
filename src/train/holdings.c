/* holdings.c -- see holdings.h.
 *
 * Units of the rule come with their owners: the rule divides them by what they cost.  The others, the largest first, go
 * to whoever has least to keep by then. */
#include "train/holdings.h"

#include "core/arena.h"

#include <stdlib.h>
#include <string.h>

static const lam_rule *rule_of(const lam_model *model, const lam_optimizer_options *o,
                               const lam_holding *u)
{
    return lam_rule_of(o, &model->params.list[u->param]);
}

/* Numbers that are kept of a unit. */
static size_t state_of(const lam_model *model, const lam_optimizer_options *o, const lam_holding *u)
{
    const lam_rule *r = rule_of(model, o, u);
    return u->count * ((size_t)r->mean + (size_t)r->square);
}

static int by_size(const void *x, const void *y)
{
    const lam_holding *a = x, *b = y;
    return a->count != b->count ? (a->count < b->count) - (a->count > b->count)
                                : (a->offset > b->offset) - (a->offset < b->offset);
}

static int by_place(const void *x, const void *y)
{
    const lam_holding *a = x, *b = y;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* The units in no order, those of the rule first; *own is their number. */
static lam_status list_holdings(lam_holdings *u, int *own, const lam_model *model,
                                const lam_optimizer_options *o)
{
    const lam_params *p = &model->params;
    int most = p->n;
    *own = 0;
    for (int i = 0; i < p->n; i++)
        most += p->list[i].maps;
    u->list = calloc((size_t)most + 1, sizeof *u->list);
    if (!u->list)
        return lam_fail(LAM_ERR_MEMORY, "optimiser: no memory for %d units", most);
    if (o->rule->divide)
        LAM_TRY(o->rule->divide(u->list, own, model, o));
    u->n = *own;
    for (int i = 0; i < p->n; i++)
        if (!o->rule->divide || !o->rule->takes(&p->list[i]))
            u->list[u->n++] =
                (lam_holding){.param = i, .offset = p->list[i].offset, .count = p->list[i].stored};
    return LAM_OK;
}

static lam_status divide(lam_holdings *u, int own, const lam_model *model,
                         const lam_optimizer_options *o)
{
    size_t *const load = calloc((size_t)o->ranks, sizeof *load);
    if (!load)
        return lam_fail(LAM_ERR_MEMORY, "optimiser: no memory for %d ranks", o->ranks);
    for (int i = 0; i < own; i++)
        load[u->list[i].owner] += state_of(model, o, &u->list[i]);
    qsort(u->list + own, (size_t)(u->n - own), sizeof *u->list, by_size);
    for (int i = own; i < u->n; i++) {
        int least = 0;
        for (int r = 1; r < o->ranks; r++)
            least = load[r] < load[least] ? r : least;
        u->list[i].owner = least;
        load[least] += state_of(model, o, &u->list[i]);
    }
    int idle = 0;
    for (int r = 0; r < o->ranks; r++)
        idle += load[r] == 0;
    free(load);
    if (idle > 0)
        return lam_fail(LAM_ERR_ARG,
                        "--zero 1: the optimiser's state of %d matrices and vectors cannot be "
                        "divided between %d processes: %d of them would have none",
                        u->n, o->ranks, idle);
    return LAM_OK;
}

/* Takes a place for `count` numbers behind *end. */
static size_t append(size_t *end, size_t count)
{
    const size_t align = LAM_ALIGN / sizeof(float), at = (*end + align - 1) / align * align;
    *end = at + count;
    return at;
}

static void place(lam_holdings *u, const lam_model *model, const lam_optimizer_options *o)
{
    qsort(u->list, (size_t)u->n, sizeof *u->list, by_place);
    for (int i = 0; i < u->n; i++) {
        lam_holding *q = &u->list[i];
        const lam_rule *r = rule_of(model, o, q);
        if (q->owner != o->rank)
            continue;
        if (r->mean)
            q->m = append(&u->mean, q->count);
        if (r->square)
            q->v = append(&u->square, q->count);
    }
}

lam_status lam_holdings_create(lam_holdings **out, const lam_model *model,
                               const lam_optimizer_options *options)
{
    int own;
    *out = NULL;
    lam_holdings *u = calloc(1, sizeof *u);
    if (!u)
        return lam_fail(LAM_ERR_MEMORY, "optimiser: no memory");
    lam_status status = list_holdings(u, &own, model, options);
    if (status == LAM_OK)
        status = divide(u, own, model, options);
    if (status != LAM_OK) {
        lam_holdings_free(u);
        return status;
    }
    place(u, model, options);
    *out = u;
    return LAM_OK;
}

void lam_holdings_free(lam_holdings *u)
{
    if (!u)
        return;
    free(u->list);
    free(u);
}

const lam_holding *lam_holdings_at(const lam_holdings *u, size_t offset)
{
    return bsearch(&(lam_holding){.offset = offset}, u->list, (size_t)u->n, sizeof *u->list,
                   by_place);
}

/* ---- exchanging weights and moments ---- */

/* All units, or those that received a gradient, from the flat vector of their owners. */
static lam_status spread(lam_optimizer *o, void *flat, int used)
{
    const lam_holdings *u = o->holdings;
    lam_stretch *const list = malloc((size_t)u->n * sizeof *list);
    int n = 0;
    if (!list)
        return lam_fail(LAM_ERR_MEMORY, "optimiser: no memory for %d units", u->n);
    for (int i = 0; i < u->n; i++)
        if (!used || o->model->params.list[u->list[i].param].used)
            list[n++] = (lam_stretch){u->list[i].offset, u->list[i].count, u->list[i].owner};
    const lam_status status = lam_exchange_spread(o->opt.exchange, flat, list, n);
    free(list);
    return status;
}

/* Where weights are a copy of the masters in another type, it is made anew: by a step of length 0. */
static void refresh(const lam_optimizer *o)
{
    const lam_params *p = &o->model->params;
    int n = 0;
    for (int i = 0; i < p->n; i++)
        if (p->list[i].used)
            o->parts[n++] = (lam_part){
                .offset = p->list[i].offset, .count = p->list[i].stored, .fix1 = 1.0, .fix2 = 1.0};
    if (n == 0 || p->weight == p->master)
        return;
    p->dev->ops->zero(p->dev, p->grad, p->total * lam_class_size(p->dev, LAM_WIDE));
    p->dev->ops->update(p->dev, &(lam_update){.kind = LAM_SGD,
                                              .parts = o->parts,
                                              .n_parts = n,
                                              .norm = p->grad,
                                              .grad = p->grad,
                                              .master = p->master,
                                              .m = p->grad,
                                              .weight = p->weight});
}

lam_status lam_holdings_send(lam_optimizer *o)
{
    LAM_TRY(spread(o, o->model->params.master, 1));
    refresh(o);
    return LAM_OK;
}

/* Copies the moments of this rank's units to their places in the vector of gradients, or back. */
static void copy(lam_optimizer *o, int square, int out)
{
    const lam_holdings *u = o->holdings;
    lam_params *p = &o->model->params;
    for (int i = 0; i < u->n; i++) {
        const lam_holding *q = &u->list[i];
        const lam_rule *r = rule_of(o->model, &o->opt, q);
        if (q->owner != o->opt.rank || !(square ? r->square : r->mean))
            continue;
        void *const kept = lam_at(p->dev, LAM_WIDE, square ? o->v : o->m, square ? q->v : q->m);
        void *const whole = lam_at(p->dev, LAM_WIDE, p->grad, q->offset);
        p->dev->ops->copy(p->dev, &(lam_copy){.blocks = 1,
                                              .count = q->count,
                                              .type = LAM_WIDE,
                                              .in = {out ? kept : whole, 0},
                                              .out = {out ? whole : kept, 0}});
    }
}

lam_status lam_holdings_collect(lam_optimizer *o, int square)
{
    lam_params *p = &o->model->params;
    p->dev->ops->zero(p->dev, p->grad, p->total * lam_class_size(p->dev, LAM_WIDE));
    copy(o, square, 1);
    return spread(o, p->grad, 0);
}

void lam_holdings_keep(lam_optimizer *o, int square)
{
    copy(o, square, 0);
}
