/* embed.c -- see embed.h.  A token belongs to one cluster; the lookup of every other cluster yields a
 * zero row for it, so the projections of all clusters can simply be added up. */
#include "nn/embed.h"

#include "nn/linear.h"

#include <math.h>

lam_cluster lam_embed_table(const lam_config *cfg, int t)
{
    if (cfg->div_val == 1)
        return (lam_cluster){0, cfg->n_token, cfg->d_embed};
    return lam_config_cluster(cfg, t);
}

int lam_embed_stored(const lam_config *cfg, const lam_dev *dev, int count)
{
    return cfg->n_cutoffs == 0 ? lam_padded(dev, count) : count;
}

void lam_embed_declare(lam_embed_params *ids, lam_params *p, const lam_config *cfg,
                       const lam_dev *dev)
{
    ids->tables = cfg->div_val == 1 ? 1 : cfg->n_cutoffs + 1;
    const lam_dim D = {1, cfg->d_model, lam_padded(dev, cfg->d_model)};
    for (int t = 0; t < ids->tables; t++) {
        const lam_cluster c = lam_embed_table(cfg, t);
        const lam_dim count = {1, c.count, lam_embed_stored(cfg, dev, c.count)};
        const lam_dim width = {1, c.width, lam_padded(dev, c.width)};
        ids->table[t] =
            lam_params_add(p, &(lam_spec){2, {count, width}, LAM_INIT_NORMAL, cfg->init_std, 0},
                           "word_emb.emb_layers.%d.weight", t);
    }
    for (int t = 0; t < ids->tables; t++) {
        const lam_cluster c = lam_embed_table(cfg, t);
        const lam_dim width = {1, c.width, lam_padded(dev, c.width)};
        ids->proj[t] = -1;
        if (cfg->div_val > 1 || cfg->d_embed != cfg->d_model)
            ids->proj[t] = lam_params_add(
                p, &(lam_spec){2, {D, width}, LAM_INIT_NORMAL, cfg->proj_init_std, 0},
                "word_emb.emb_projs.%d", t);
    }
}

void lam_embed_layout(lam_embedding *e, lam_arena *arena, int train)
{
    const size_t widest = (size_t)lam_padded(e->dev, e->cfg->d_embed);
    const size_t bytes =
        e->ids->proj[0] < 0 ? 0 : (size_t)e->rows * widest * lam_class_size(e->dev, LAM_ACT);
    e->narrow = lam_arena_take(arena, bytes);
    e->dnarrow = train ? lam_arena_take(arena, bytes) : NULL;
}

static lam_embed lookup(const lam_embedding *e, int t, const void *tokens, int rows)
{
    const lam_cluster c = lam_embed_table(e->cfg, t);
    return (lam_embed){.rows = rows,
                       .first = c.first,
                       .count = c.count,
                       .width = c.width,
                       .ld = lam_padded(e->dev, c.width),
                       .scale = sqrt((double)e->cfg->d_model),
                       .ids = tokens};
}

static void set_table(lam_embed *a, lam_weights w)
{
    a->table = w.p;
    a->table_class = w.type;
    a->table_scale = w.scale;
}

/* The projection P [D][width] of table t as a linear map from narrow rows to D. */
static lam_linear proj_of(const lam_embedding *e, int t, int rows)
{
    const int width = lam_padded(e->dev, lam_embed_table(e->cfg, t).width);
    return (lam_linear){e->dev, 1, rows, width, e->dims.D, (size_t)width};
}

void lam_embed_rows(const lam_embedding *e, void *out, const void *tokens, int rows)
{
    for (int t = 0; t < e->ids->tables; t++) {
        lam_embed a = lookup(e, t, tokens, rows);
        const int proj = e->ids->proj[t];
        set_table(&a, lam_weight(e->params, e->ids->table[t]));
        a.out = proj < 0 ? out : e->narrow;
        e->dev->ops->embed_fwd(e->dev, &a);
        if (proj < 0)
            continue;
        /* out = sum over clusters of narrow P^T */
        const lam_linear l = proj_of(e, t, rows);
        lam_linear_fwd(&l, (lam_rows){out, 0, (size_t)e->dims.D},
                       (lam_rows){e->narrow, 0, (size_t)a.ld}, lam_weight(e->params, proj),
                       &(lam_epilogue){.add = t > 0});
    }
}

/* forward was  out = sqrt(D) E[id], through the cluster's P where it has one;  so  dE[id] += sqrt(D) dout, through P. */
void lam_embed_rows_bwd(const lam_embedding *e, const void *dout, const void *tokens, int rows)
{
    const lam_rows dwide = {(void *)(uintptr_t)dout, 0, (size_t)e->dims.D};
    for (int t = 0; t < e->ids->tables; t++) {
        lam_embed a = lookup(e, t, tokens, rows);
        const int proj = e->ids->proj[t];
        set_table(&a, lam_weight(e->params, e->ids->table[t]));
        a.dtable = lam_grad(e->params, e->ids->table[t]);
        a.dout = dout;
        if (proj >= 0) {
            /* forward was out += narrow P^T: dnarrow = dout P, dP += dout^T narrow */
            const lam_linear l = proj_of(e, t, rows);
            const lam_rows narrow = {e->narrow, 0, (size_t)a.ld};
            const lam_rows dnarrow = {e->dnarrow, 0, (size_t)a.ld};
            a.out = e->narrow;
            e->dev->ops->embed_fwd(e->dev, &a); /* the clusters shared one buffer */
            lam_linear_bwd_w(&l, lam_grad(e->params, proj), dwide, narrow);
            lam_linear_bwd_x(&l, dnarrow, dwide, lam_weight(e->params, proj), 0.0);
            a.dout = e->dnarrow;
        }
        e->dev->ops->embed_bwd(e->dev, &a);
    }
}
