/* cuda/attn_sm90.cu -- describes a call's tensors to Hopper's copy engine, and runs the passes of
 * backward, some heads at a time. */
#include "ops/cuda/attn_sm90.cuh"

bool lam_cuda_attn_maps(lam_cuda_dev *dev, const char *op, attn_maps *m, const attn_call *c)
{
    const lam_attn *a = &c->a;
    const int HK = a->H * a->K, lines = a->B * a->H * c->q_pad;
    bool ok = lam_cuda_tma_map(&m->q, a->q.p, {HK, a->queries, a->B, a->ldq, a->q.step});
    ok = ok && lam_cuda_tma_map(&m->k, a->k.p, {HK, a->keys, a->B, a->ldk, a->k.step});
    ok = ok && lam_cuda_tma_map(&m->value, a->value.p, {HK, a->keys, a->B, a->ldk, a->value.step});
    ok = ok && lam_cuda_tma_map(&m->r, c->rp ? c->rp : a->r,
                                {HK, a->r_rows, 1, c->rp ? (size_t)HK : a->ldr, 0});
    if (c->qu) {
        const lam_tma_shape rows = {a->K, lines, 1, (size_t)a->K, 0};
        ok = ok && lam_cuda_tma_map(&m->qu, c->qu, rows) && lam_cuda_tma_map(&m->qv, c->qv, rows);
        ok = ok && lam_cuda_tma_map(&m->d_o, a->d_o.p, {HK, a->queries, a->B, a->ldo, a->d_o.step});
    }
    if (!ok)
        lam_cuda_note_text(dev, op, "the driver cannot describe tensors to the copy engine");
    return ok;
}

void lam_cuda_attn_sm90_bwd(lam_cuda_dev *dev, const attn_call *c)
{
    const lam_attn *a = &c->a;
    attn_maps maps;
    if (!lam_cuda_attn_maps(dev, "attn_bwd", &maps, c))
        return;
    attn_call some = *c;
    for (some.head = 0; some.head < a->H; some.head += c->heads) {
        some.heads = c->heads < a->H - some.head ? c->heads : a->H - some.head;
        lam_cuda_attn_sm90_bwd_kv(dev, &some, &maps);
        lam_cuda_attn_sm90_bwd_r(dev, &some, &maps);
        lam_cuda_attn_sm90_bwd_q(dev, &some, &maps);
    }
    const int parts = a->B * attn_query_blocks(a), width = a->H * a->K;
    float *du = a->u ? (float *)a->du : NULL, *dv = a->v ? (float *)a->dv : NULL;
    const lam_cuda_sums sums = {
        {du, dv, NULL}, c->du_part, (size_t)width, (size_t)(c->dv_part - c->du_part), parts, width};
    lam_cuda_fold(dev, "attn_bwd", &sums);
    lam_cuda_attn_sum_groups(dev, c);
}
