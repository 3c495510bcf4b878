/* opcases_optim.c -- the global norm and the update rules, over parts with gaps between them. */
#include "support/opcase.h"

#include <math.h>

enum { MAX_PARTS = 12 };

static void call_gnorm(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->gnorm(dev, op);
}

static void call_update(const lam_ops *ops, lam_dev *dev, const void *op)
{
    ops->update(dev, op);
}

/* Draws the parts, the largest of about `size` elements; returns the length of the flat vector. */
static size_t draw_parts(lam_case *c, lam_part *parts, int n, int size)
{
    size_t end = 0;
    for (int t = 0; t < n; t++) {
        const int count = t == n / 2 ? size : lam_case_pick(c, 3) ? lam_case_pick(c, size + 1) : 0;
        const double steps = 1.0 + lam_case_pick(c, 50);
        end += (size_t)(16 * lam_case_pick(c, 3)); /* tensors that are skipped in this step */
        parts[t] = (lam_part){.offset = end,
                              .count = (size_t)count,
                              .lr = 0.001 * (1 + lam_case_pick(c, 9)),
                              .decay = lam_case_pick(c, 2) ? 0.0 : 0.01,
                              .fix1 = 1.0 - pow(0.9, steps),
                              .fix2 = 1.0 - pow(0.999, steps)};
        end += ((size_t)count + 15) / 16 * 16;
    }
    return end;
}

/* A flat vector: random within the parts, guards elsewhere. */
static double *flat(lam_case *c, void *slot, const char *name, lam_class type, int flags,
                    const lam_part *parts, int n, size_t length)
{
    double *p = lam_case_buf(c, slot, name, type, flags, length);
    for (size_t i = 0; i < length; i++)
        p[i] = LAM_GUARD;
    for (int t = 0; t < n; t++)
        for (size_t i = 0; i < parts[t].count; i++)
            p[parts[t].offset + i] = 0.1 * lam_case_normal(c);
    return p;
}

void lam_cases_gnorm(lam_case_run *run)
{
    static const int size[] = {0, 1, 7, 64, 1000, 4096, 4097, 100003};
    for (size_t s = 0; s < sizeof size / sizeof *size; s++)
        for (int n = 1; n <= MAX_PARTS; n += 5) {
            lam_part parts[MAX_PARTS];
            lam_gnorm a = {.parts = parts, .n_parts = n};
            lam_case c = lam_case_start(run, call_gnorm, &a, 2.0);
            const size_t length = draw_parts(&c, parts, n, size[s] / n);
            flat(&c, &a.grad, "grad", LAM_WIDE, LAM_READ, parts, n, length);
            lam_case_buf(&c, &a.norm, "norm", LAM_WIDE, LAM_WRITTEN, 1)[0] = NAN;
            lam_case_name(&c, "gnorm parts=%d length=%zu", n, length);
            lam_case_check(&c);
        }
}

static void update_one(lam_case_run *run, lam_update_kind kind, int n, int size, double norm)
{
    lam_part parts[MAX_PARTS];
    lam_update a = {.kind = kind, .parts = parts, .n_parts = n, .beta1 = 0.9, .beta2 = 0.999};
    lam_case c = lam_case_start(run, call_update, &a, 2.0);
    const size_t length = draw_parts(&c, parts, n, size);
    const int frozen = !isfinite(norm), flags = LAM_WRITTEN | (frozen ? LAM_EXACT : 0);
    a.eps = kind == LAM_ADAM ? 1e-8 : 1e-10;
    a.clip = lam_case_pick(&c, 3) * 0.25; /* none, strong, weak */
    lam_case_buf(&c, &a.norm, "norm", LAM_WIDE, LAM_READ, 1)[0] = norm;
    flat(&c, &a.grad, "grad", LAM_WIDE, LAM_READ, parts, n, length);
    flat(&c, &a.master, "master", LAM_WIDE, flags, parts, n, length);
    if (kind != LAM_ADAGRAD)
        flat(&c, &a.m, "m", LAM_WIDE, flags, parts, n, length);
    if (kind != LAM_SGD) {
        double *v = flat(&c, &a.v, "v", LAM_WIDE, flags, parts, n, length);
        for (size_t i = 0; i < length; i++)
            v[i] = fabs(v[i]);
    }
    const int copy = lam_case_pick(&c, 2);
    if (copy)
        flat(&c, &a.weight, "weight", LAM_ACT, flags, parts, n, length);
    lam_case_name(&c, "update kind=%d parts=%d length=%zu clip=%g norm=%g weight=%d", (int)kind, n,
                  length, a.clip, norm, copy);
    lam_case_check(&c);
}

void lam_cases_update(lam_case_run *run)
{
    static const lam_update_kind kinds[] = {LAM_ADAM, LAM_SGD, LAM_ADAGRAD};
    static const int size[] = {0, 1, 15, 16, 17, 129, 5003};
    for (int k = 0; k < 3; k++) {
        for (size_t s = 0; s < sizeof size / sizeof *size; s++)
            for (int n = 1; n <= MAX_PARTS; n += 4) {
                update_one(run, kinds[k], n, size[s], 0.01);
                update_one(run, kinds[k], n, size[s], 7.0);
            }
        update_one(run, kinds[k], 3, 100, (double)INFINITY);
        update_one(run, kinds[k], 3, 100, (double)NAN);
        update_one(run, kinds[k], 3, 100, 0.0);
    }
}
