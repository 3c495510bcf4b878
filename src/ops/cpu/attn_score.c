/* attn_score.c -- see attn_int.h: what a thread packs before it can make scores. */
#include "ops/cpu/attn_int.h"

void lam_scorer_carve(lam_scorer *out, lam_arena *arena, const lam_work *size)
{
    const size_t K = (size_t)size->K, width = (size_t)lam_ceil(size->K, LAM_VEC);
    const size_t rows = (size_t)lam_ceil(size->r_rows, LAM_VEC);
    *out = (lam_scorer){.kt = lam_take_floats(arena, (size_t)lam_ceil(size->keys, LAM_VEC) * K),
                        .rt = lam_take_floats(arena, rows * K),
                        .rbias = lam_take_floats(arena, rows),
                        .qu = lam_take_floats(arena, LAM_BLOCK_Q * width),
                        .qv = lam_take_floats(arena, LAM_BLOCK_Q * width),
                        .s = lam_take_floats(arena, LAM_BLOCK_Q * lam_block_ld(size->keys)),
                        .b = -1,
                        .h = -1};
}

int lam_scorer_pack(lam_scorer *w, const lam_attn *a, int b, int h)
{
    const int other = w->h != h || w->b != b;
    if (w->h != h && a->r) {
        lam_pack_source pos = lam_pack_source_pos(a, h);
        pos.part = lam_attn_all_pos(a);
        lam_pack_strips(w->rt, &pos);
    }
    if (w->h != h && a->rbias)
        lam_pack_rbias(w->rbias, a, h);
    if (other) {
        lam_pack_source key = lam_pack_source_head(a, a->k, a->ldk, b, h);
        key.part = lam_attn_all_keys(a);
        lam_pack_strips(w->kt, &key);
    }
    w->b = b;
    w->h = h;
    return other;
}

void lam_scorer_queries(const lam_scorer *w, const lam_attn *a, int i0, int rows)
{
    const size_t head = (size_t)w->h * (size_t)a->K;
    lam_pack_source q = lam_pack_source_head(a, a->q, a->ldq, w->b, w->h);
    q.part = (lam_span){i0, i0 + rows};
    lam_pack_queries(w->qu, &q, a->u ? (const float *)a->u + head : NULL, (float)a->scale);
    if (a->r)
        lam_pack_queries(w->qv, &q, a->v ? (const float *)a->v + head : NULL, (float)a->scale);
}
