/* memory.h -- memory interpolation, Eq. 10-11: resuming a paused softmax.
 *
 *   alpha = s-> / (s-> + s<- + eps)          c_out   = alpha c_old + (1 - alpha) c_new
 *                                            lse_out = log(s-> + s<-)
 * with log s-> = lse_old and log s<- = lse_new.  eps is relative to max(s->, s<-), as in the
 * authors' code, not absolute as Eq. 11 prints; with eps = 0 the result is one softmax over past
 * and future keys together.  Old values are constants (stop-gradient).
 *
 * There are B blocks (streams) of `rows` memory slots of H heads of K columns.  c_* rows of a stream
 * are H*K elements, contiguous within the stream; lse_* and alpha rows are H elements. */
#ifndef LAM_OPS_MEMORY_H
#define LAM_OPS_MEMORY_H

#include "ops/types.h"

typedef struct lam_interp {
    int B, rows, H, K;
    double eps;
    lam_view c_old, c_new, c_out;       /* ACT  */
    lam_view lse_old, lse_new, lse_out; /* WIDE; lse_out may equal lse_new */
    lam_view alpha;                     /* WIDE */
    /* Backward (reads c_old, c_new, lse_old, lse_new as they were): both overwritten. */
    lam_view dc_out, dc_new; /* ACT, may be equal */
    lam_view dlse_new;       /* WIDE */
} lam_interp;

#endif
