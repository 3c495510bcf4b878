/* heads.c -- see heads.h.  A call multiplies matrices at equal distances, those of all heads or those of all
 * streams: whichever needs fewer calls. */
#include "mem/heads.h"

void lam_heads_gemm(const lam_segment *s, lam_gemm shape, lam_heads a, lam_heads b, lam_heads c)
{
    const int H = s->cfg->n_head, by_head = H < s->B;
    const int calls = by_head ? H : s->B;
    lam_gemm g = shape;
    g.batch = by_head ? s->B : H;
    g.lda = a.ld;
    g.ldb = b.ld;
    g.ldc = c.ld;
    g.step_a = by_head ? a.stream : a.head;
    g.step_b = by_head ? b.stream : b.head;
    g.step_c = by_head ? c.stream : c.head;
    g.c_class = LAM_ACT;
    for (int i = 0; i < calls; i++) {
        const size_t k = (size_t)i;
        g.a = lam_at(s->dev, LAM_ACT, a.p, k * (by_head ? a.head : a.stream));
        g.b = lam_at(s->dev, LAM_ACT, b.p, k * (by_head ? b.head : b.stream));
        g.c = lam_at(s->dev, LAM_ACT, c.p, k * (by_head ? c.head : c.stream));
        s->dev->ops->gemm(s->dev, &g);
    }
}
