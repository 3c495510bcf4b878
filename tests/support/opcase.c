/* opcase.c -- building a case: buffers, layouts, random sizes and numbers. */
#include "support/opcase.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

const int lam_case_edges[] = {1,  2,  7,  8,  15, 16,  17,  31,  32,
                              33, 37, 63, 64, 65, 101, 127, 128, 129};
const int lam_case_n_edges = (int)(sizeof lam_case_edges / sizeof *lam_case_edges);

lam_case lam_case_start(lam_case_run *run, lam_case_call *call, const void *op, double limit)
{
    return (lam_case){.run = run,
                      .rng = {.key = run->seed, .stream = run->next++},
                      .call = call,
                      .op = op,
                      .limit = limit,
                      .work = {1, 1, 1, 1, 1, 1, 1, 1, 0}};
}

void lam_case_name(lam_case *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->what, sizeof c->what, format, args);
    va_end(args);
}

static void add_slot(lam_case *c, void *pointer, int buffer, size_t offset)
{
    assert(c->n_slots < LAM_CASE_SLOTS);
    c->slot[c->n_slots++] = (lam_case_slot){pointer, buffer, offset};
}

double *lam_case_buf(lam_case *c, void *pointer, const char *name, lam_class type, int flags,
                     size_t count)
{
    assert(c->n_buffers < LAM_CASE_BUFFERS);
    lam_case_buffer *b = &c->buffer[c->n_buffers];
    *b = (lam_case_buffer){.name = name, .type = type, .flags = flags, .count = count};
    b->first = calloc(count + 1, sizeof(double));
    b->want = calloc(count + 1, sizeof(double));
    if (!b->first || !b->want)
        abort(); /* the harness cannot go on; the machine is too small for its cases */
    add_slot(c, pointer, c->n_buffers++, 0);
    return b->first;
}

double *lam_case_rows(lam_case *c, void *pointer, const char *name, lam_class type, int flags,
                      const lam_layout *at, lam_fill fill)
{
    const size_t count = at->blocks * at->step;
    double *p = lam_case_buf(c, pointer, name, type, flags, count);
    for (size_t i = 0; i < count; i++)
        p[i] = LAM_GUARD;
    for (size_t b = 0; b < at->blocks; b++)
        for (size_t r = 0; r < at->rows; r++)
            for (size_t i = 0; i < at->width; i++)
                p[b * at->step + r * at->ld + i] = fill == LAM_RANDOM ? lam_case_normal(c)
                                                   : fill == LAM_NAN  ? (double)NAN
                                                                      : 0.0;
    return p;
}

void lam_case_share(lam_case *c, void *pointer, size_t offset)
{
    add_slot(c, pointer, c->n_buffers - 1, offset);
}

int lam_case_pick(lam_case *c, int n)
{
    return (int)lam_rng_below(&c->rng, (uint64_t)n);
}

int lam_case_edge(lam_case *c, int at_most)
{
    int n = 0;
    while (n < lam_case_n_edges && lam_case_edges[n] <= at_most)
        n++;
    assert(n > 0);
    return lam_case_edges[lam_case_pick(c, n)];
}

double lam_case_normal(lam_case *c)
{
    return lam_rng_normal(&c->rng);
}

lam_drop lam_case_drop(lam_case *c, double p)
{
    return (lam_drop){.p = p,
                      .seed = (uint64_t)lam_rng_u32(&c->rng) << 32 | lam_rng_u32(&c->rng),
                      .step = lam_rng_u32(&c->rng),
                      .site = (uint32_t)lam_case_pick(c, 1000)};
}

size_t lam_case_pad(const lam_case *c, size_t x)
{
    const size_t pad = (size_t)c->run->dev->pad;
    return (x + pad - 1) / pad * pad;
}

lam_layout lam_case_layout(lam_case *c, int blocks, int rows, int width)
{
    static const size_t room[] = {0, 0, 1, 3, 8, 16};
    const size_t pad = (size_t)c->run->dev->pad;
    lam_layout at = {(size_t)blocks, (size_t)rows, (size_t)width, 0, 0};
    at.ld = lam_case_pad(c, at.width + room[lam_case_pick(c, 6)]);
    at.step = at.rows * at.ld;
    if (lam_case_pick(c, 2)) /* other rows, or just some elements, between the blocks */
        at.step += lam_case_pick(c, 2) ? at.ld * (size_t)(1 + lam_case_pick(c, 3)) : 3 * pad;
    return at;
}

void lam_case_padding(lam_case *c, const lam_layout *at, double value)
{
    double *p = c->buffer[c->n_buffers - 1].first;
    c->buffer[c->n_buffers - 1].padded = *at;
    for (size_t b = 0; b < at->blocks; b++)
        for (size_t r = 0; r < at->rows; r++)
            for (size_t i = at->width; i < at->ld; i++)
                p[b * at->step + r * at->ld + i] = value;
}
