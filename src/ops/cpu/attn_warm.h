/* attn_warm.h -- asking memory early for rows that the next head or stream will read.
 *
 * The heads of a row lie side by side, so one head's rows are short pieces far apart: the machine's
 * own prefetcher does not find them, and copying them costs as much as a whole product when they come
 * from the last cache or beyond.  While tiles compute, memory idles; so every tile asks for some rows
 * of a list that the caller made.  A wrong guess costs nothing but traffic. */
#ifndef LAM_OPS_CPU_ATTN_WARM_H
#define LAM_OPS_CPU_ATTN_WARM_H

#include "ops/cpu/vecmath.h"

enum { LAM_WARM = 8 };

typedef struct lam_warm_rows {
    const float *at; /* the next row */
    ptrdiff_t step;
    int rows, width; /* left to ask for, and floats of each */
} lam_warm_rows;

typedef struct lam_warm {
    lam_warm_rows list[LAM_WARM];
    int n, now, each; /* each: rows that a tile asks for */
} lam_warm;

LAM_INLINE void lam_warm_step(lam_warm *w)
{
    for (int k = 0; k < w->each && w->now < w->n; k++) {
        lam_warm_rows *x = &w->list[w->now];
        for (int c = 0; c < x->width; c += LAM_VEC)
            __builtin_prefetch(x->at + c, 0, 2);
        if (--x->rows > 0)
            x->at += x->step;
        else
            w->now++;
    }
}

#endif
