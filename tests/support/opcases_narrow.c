/* opcases_narrow.c -- products and tables with weights in bf16 and int8, results in bf16.  Attention's are
 * in opcases_attn.c.  Devices without narrow operands have no such cases. */
#include "support/opcase.h"

#include <math.h>

static void call_gemm(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->gemm(dev, op);
}

static void call_embed(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->embed_fwd(dev, op);
}

/* Rows of weights of some class; int8 ones with their scales, one row in ten being nothing at all. */
static void weights(lam_case *c, const void **p, const void **scale, lam_class type,
                    const lam_layout *at)
{
    double *w = lam_case_rows(c, p, "weights", type, LAM_READ, at, LAM_RANDOM);
    if (type != LAM_BYTE)
        return;
    for (size_t r = 0; r < at->rows; r++)
        for (size_t i = 0; i < at->width; i++)
            w[r * at->ld + i] = (double)lam_case_pick(c, 255) - 127.0;
    double *s = lam_case_buf(c, scale, "scale", LAM_WIDE, LAM_READ, at->rows);
    for (size_t r = 0; r < at->rows; r++)
        s[r] = lam_case_pick(c, 10) ? exp(lam_case_normal(c)) / 127.0 : 0.0;
}

typedef struct narrow_case {
    int m, n, k, batch;
} narrow_case;

static void gemm_one(lam_case_run *run, narrow_case s)
{
    static const lam_class types[] = {LAM_HALF, LAM_BYTE, LAM_ACT};
    lam_gemm g = {.m = s.m, .n = s.n, .k = s.k, .batch = s.batch};
    lam_case c = lam_case_start(run, call_gemm, &g, 2.0);
    c.library = 1;
    g.b_class = types[lam_case_pick(&c, 3)];
    g.tb = lam_case_pick(&c, 3) ? LAM_FLIP : LAM_KEEP;
    const int half = g.tb == LAM_FLIP && (g.b_class == LAM_ACT || lam_case_pick(&c, 3) == 0);
    g.c_class = half ? LAM_HALF : LAM_ACT;
    g.beta = half ? 0 : lam_case_pick(&c, 2);
    g.relu = !half && lam_case_pick(&c, 3) == 0;
    const int bias = !half && lam_case_pick(&c, 2);

    const lam_layout a = lam_case_layout(&c, s.batch, s.m, s.k);
    const int flip = g.tb == LAM_FLIP;
    const lam_layout b = lam_case_layout(&c, 1, flip ? s.n : s.k, flip ? s.k : s.n);
    const lam_layout out = lam_case_layout(&c, s.batch, s.m, s.n);
    g.lda = a.ld, g.step_a = a.step, g.ldb = b.ld, g.ldc = out.ld, g.step_c = out.step;
    lam_case_rows(&c, &g.a, "a", LAM_ACT, LAM_READ, &a, LAM_RANDOM);
    weights(&c, &g.b, &g.b_scale, g.b_class, &b);
    lam_case_rows(&c, &g.c, "c", g.c_class, LAM_WRITTEN, &out,
                  g.beta == 0.0 ? LAM_NAN : LAM_RANDOM);
    if (bias)
        lam_case_rows(&c, &g.bias, "bias", LAM_WIDE, LAM_READ,
                      &(lam_layout){1, 1, (size_t)s.n, (size_t)s.n, (size_t)s.n}, LAM_RANDOM);
    c.work.narrow = 1;
    lam_case_name(&c, "gemm_narrow m=%d n=%d k=%d batch=%d N%c %s%s beta=%g bias=%d relu=%d", s.m,
                  s.n, s.k, s.batch, flip ? 'T' : 'N',
                  g.b_class == LAM_BYTE   ? "int8"
                  : g.b_class == LAM_HALF ? "bf16"
                                          : "float",
                  half ? " to bf16" : "", g.beta, bias, g.relu);
    lam_case_check(&c);
}

void lam_cases_gemm_narrow(lam_case_run *run)
{
    /* One row, the most the small loop takes and one more, several panels each way. */
    static const narrow_case special[] = {
        {1, 1, 1, 1},       {1, 700, 300, 1},   {2, 5, 33, 3},    {4, 130, 64, 1},
        {16, 37, 129, 1},   {17, 37, 129, 1},   {300, 40, 20, 1}, {20, 1500, 300, 1},
        {130, 1030, 17, 2}, {20, 300, 1500, 1}, {33, 64, 64, 4},  {5, 3, 4, 9},
    };
    if (!run->dev->narrow)
        return;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        for (int again = 0; again < 6; again++)
            gemm_one(run, special[i]);
    lam_case sizes = lam_case_start(run, NULL, NULL, 0.0);
    for (int dim = 0; dim < 3; dim++)
        for (int e = 0; e < lam_case_n_edges; e++) {
            narrow_case s = {lam_case_edge(&sizes, 33), lam_case_edge(&sizes, 129),
                             lam_case_edge(&sizes, 129), 1 + lam_case_pick(&sizes, 2)};
            *(dim == 0 ? &s.m : dim == 1 ? &s.n : &s.k) = lam_case_edges[e];
            gemm_one(run, s);
        }
}

static void embed_one(lam_case_run *run, int rows, int width, lam_class type)
{
    lam_embed a = {.rows = rows, .width = width, .first = 3, .count = 20, .table_class = type};
    lam_case c = lam_case_start(run, call_embed, &a, 2.0);
    a.scale = lam_case_pick(&c, 2) ? 1.0 : sqrt(width);
    const size_t ld = lam_case_layout(&c, 1, 1, width).ld, n = (size_t)rows;
    a.ld = (int)ld;
    double *ids = lam_case_buf(&c, &a.ids, "ids", LAM_INT, LAM_READ, n);
    for (int r = 0; r < rows; r++)
        ids[r] = lam_case_pick(&c, a.first + a.count + 5);
    const lam_layout table = {1, 20, (size_t)width, ld, 20 * ld};
    const lam_layout out = {1, n, (size_t)width, ld, n * ld};
    weights(&c, &a.table, &a.table_scale, type, &table);
    lam_case_rows(&c, &a.out, "out", LAM_ACT, LAM_WRITTEN | LAM_SAME_ZEROS, &out, LAM_NAN);
    lam_case_padding(&c, &out, 0.0);
    lam_case_name(&c, "embed_narrow rows=%d width=%d ld=%d %s", rows, width, a.ld,
                  type == LAM_BYTE ? "int8" : "bf16");
    lam_case_check(&c);
}

void lam_cases_embed_narrow(lam_case_run *run)
{
    if (!run->dev->narrow)
        return;
    for (int e = 0; e < lam_case_n_edges; e++) {
        embed_one(run, 9, lam_case_edges[e], LAM_HALF);
        embed_one(run, 9, lam_case_edges[e], LAM_BYTE);
    }
}
