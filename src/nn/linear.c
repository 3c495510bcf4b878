/* linear.c -- turns rows in blocks into as few matrix products as possible. */
#include "nn/linear.h"

/* How the rows of two operands are walked: `m` rows `lda` apart, `batch` times. */
typedef struct walk {
    int m, batch;
    size_t ld_a, ld_b, step_a, step_b;
} walk;

static walk walk_rows(const lam_linear *l, lam_rows a, lam_rows b)
{
    const size_t rows = (size_t)l->rows;
    if (l->blocks == 1 || (a.step == rows * a.ld && b.step == rows * b.ld))
        return (walk){l->blocks * l->rows, 1, a.ld, b.ld, 0, 0};
    if (l->rows == 1)
        return (walk){l->blocks, 1, a.step, b.step, 0, 0};
    return (walk){l->rows, l->blocks, a.ld, b.ld, a.step, b.step};
}

void lam_linear_fwd(const lam_linear *l, lam_rows y, lam_rows x, lam_weights weight,
                    const lam_epilogue *epilogue)
{
    if (l->rows == 0)
        return;
    const walk w = walk_rows(l, x, y);
    lam_gemm g = {.m = w.m,
                  .n = l->out,
                  .k = l->in,
                  .batch = w.batch,
                  .ta = LAM_KEEP,
                  .tb = LAM_FLIP,
                  .a = x.p,
                  .lda = w.ld_a,
                  .step_a = w.step_a,
                  .b = weight.p,
                  .b_class = weight.type,
                  .b_scale = weight.scale,
                  .ldb = l->ldw,
                  .c = y.p,
                  .c_class = LAM_ACT,
                  .ldc = w.ld_b,
                  .step_c = w.step_b};
    if (epilogue) {
        g.beta = epilogue->add ? 1.0 : 0.0;
        g.bias = epilogue->bias;
        g.relu = epilogue->relu;
        g.drop = epilogue->drop;
        g.c_class = epilogue->type;
    }
    l->dev->ops->gemm(l->dev, &g);
}

static lam_gemm bwd_x(const lam_linear *l, lam_rows dx, lam_rows dy, lam_weights weight)
{
    const walk w = walk_rows(l, dy, dx);
    return (lam_gemm){.m = w.m,
                      .n = l->in,
                      .k = l->out,
                      .batch = w.batch,
                      .ta = LAM_KEEP,
                      .tb = LAM_KEEP,
                      .a = dy.p,
                      .lda = w.ld_a,
                      .step_a = w.step_a,
                      .b = weight.p,
                      .b_class = weight.type,
                      .b_scale = weight.scale,
                      .ldb = l->ldw,
                      .c = dx.p,
                      .c_class = LAM_ACT,
                      .ldc = w.ld_b,
                      .step_c = w.step_b};
}

void lam_linear_bwd_x(const lam_linear *l, lam_rows dx, lam_rows dy, lam_weights weight,
                      double beta)
{
    if (l->rows == 0)
        return;
    lam_gemm g = bwd_x(l, dx, dy, weight);
    g.beta = beta;
    l->dev->ops->gemm(l->dev, &g);
}

void lam_linear_bwd_relu(const lam_linear *l, lam_rows dz, lam_rows dy, lam_weights weight,
                         const lam_passed *passed)
{
    if (l->rows == 0)
        return;
    lam_gemm g = bwd_x(l, dz, dy, weight);
    g.h = passed->h;
    g.h_scale = passed->scale;
    g.dbias = passed->dbias;
    l->dev->ops->gemm(l->dev, &g);
}

void lam_linear_bwd_w(const lam_linear *l, void *dweight, lam_rows dy, lam_rows x)
{
    if (l->rows == 0)
        return;
    const walk w = walk_rows(l, dy, x);
    l->dev->ops->gemm(l->dev, &(lam_gemm){.m = l->out,
                                          .n = l->in,
                                          .k = w.m,
                                          .batch = w.batch,
                                          .ta = LAM_FLIP,
                                          .tb = LAM_KEEP,
                                          .a = dy.p,
                                          .lda = w.ld_a,
                                          .step_a = w.step_a,
                                          .b = x.p,
                                          .ldb = w.ld_b,
                                          .step_b = w.step_b,
                                          .c = dweight,
                                          .c_class = LAM_WIDE,
                                          .ldc = l->ldw,
                                          .step_c = 0, /* the streams' products are summed */
                                          .beta = 1.0});
}

lam_rows lam_rows_from(const lam_dev *dev, void *p, int cap, size_t ld, int from)
{
    return (lam_rows){lam_at(dev, LAM_ACT, p, (size_t)from * ld), (size_t)cap * ld, ld};
}
