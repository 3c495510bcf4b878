/* linear.c -- turns rows in blocks into as few matrix products as possible. */
#include "nn/linear.h"

/* How the rows of two operands are walked: `m` rows ld_* apart, `batch` times, each step_* further on. */
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

/* The product of rows with the weights (LAM_KEEP, backward) or with their transpose (LAM_FLIP, forward). */
static lam_gemm by_weights(const lam_linear *l, lam_rows to, lam_rows from, lam_weights weight,
                           lam_trans tb)
{
    const walk w = walk_rows(l, from, to);
    return (lam_gemm){.m = w.m,
                      .n = tb == LAM_FLIP ? l->out : l->in,
                      .k = tb == LAM_FLIP ? l->in : l->out,
                      .batch = w.batch,
                      .ta = LAM_KEEP,
                      .tb = tb,
                      .a = from.p,
                      .lda = w.ld_a,
                      .step_a = w.step_a,
                      .b = weight.p,
                      .b_class = weight.type,
                      .b_scale = weight.scale,
                      .ldb = l->ldw,
                      .c = to.p,
                      .c_class = LAM_ACT,
                      .ldc = w.ld_b,
                      .step_c = w.step_b};
}

static lam_gemm forward(const lam_linear *l, lam_rows y, lam_rows x, lam_weights weight,
                        const lam_epilogue *epilogue)
{
    lam_gemm g = by_weights(l, y, x, weight, LAM_FLIP);
    if (epilogue) {
        g.beta = epilogue->add ? 1.0 : 0.0;
        g.bias = epilogue->bias;
        g.relu = epilogue->relu;
        g.drop = epilogue->drop;
        g.c_class = epilogue->type;
        g.c_scale = epilogue->scale;
        g.c_group = epilogue->group;
    }
    return g;
}

void lam_linear_fwd(const lam_linear *l, lam_rows y, lam_rows x, lam_weights weight,
                    const lam_epilogue *epilogue)
{
    if (l->rows == 0)
        return;
    const lam_gemm g = forward(l, y, x, weight, epilogue);
    l->dev->ops->gemm(l->dev, &g);
}

void lam_linear_norm_fwd(const lam_linear *l, lam_rows y, const lam_norm *norm, lam_weights weight,
                         const lam_epilogue *epilogue)
{
    if (l->rows == 0)
        return;
    const lam_rows x = {norm->y.p, norm->y.step, (size_t)norm->ld};
    const lam_norm_gemm a = {*norm, forward(l, y, x, weight, epilogue)};
    l->dev->ops->norm_gemm(l->dev, &a);
}

/* forward was  y = x W^T;  so  dx = beta dx + dy W. */
void lam_linear_bwd_x(const lam_linear *l, lam_rows dx, lam_rows dy, lam_weights weight,
                      double beta)
{
    if (l->rows == 0)
        return;
    lam_gemm g = by_weights(l, dx, dy, weight, LAM_KEEP);
    g.beta = beta;
    l->dev->ops->gemm(l->dev, &g);
}

/* forward was  y = h W^T  with  h = drop(relu(z));  so  dz = dy W where h is not 0, scaled as dropout scaled it. */
void lam_linear_bwd_relu(const lam_linear *l, lam_rows dz, lam_rows dy, lam_weights weight,
                         const lam_passed *passed)
{
    if (l->rows == 0)
        return;
    lam_gemm g = by_weights(l, dz, dy, weight, LAM_KEEP);
    g.h = passed->h;
    g.h_scale = passed->scale;
    g.dbias = passed->dbias;
    l->dev->ops->gemm(l->dev, &g);
}

/* forward was  y = x W^T;  so  dW += dy^T x. */
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
