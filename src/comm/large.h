/* large.h -- sums and pieces over whoever carries messages between two ranks: MPI in host memory, NCCL on devices. */
#ifndef LAM_COMM_LARGE_H
#define LAM_COMM_LARGE_H

#include "comm/comm_int.h"

/* The number of ranks is a power of two in all that follows. */
typedef struct lam_carrier {
    lam_status (*exchange)(void *user, const lam_message *list, int n);  /* as in lam_comm_ops */
    void (*add)(void *user, void *x, void *y, size_t n, lam_dtype type); /* x += y; y may be lost */
    void *user;
    int rank, size;
} lam_carrier;

/* Sends `out` to rank `to` and receives `in` from rank `from`, of any length; either may be NULL. */
lam_status lam_carry(const lam_carrier *via, const void *out, int to, void *in, int from,
                     size_t bytes);
/* lam_comm_sum() in the tree, and lam_comm_spread(). */
lam_status lam_carry_sum(const lam_carrier *via, void *sum, void *scratch, size_t n,
                         lam_dtype type);
lam_status lam_carry_spread(const lam_carrier *via, const lam_piece *list, int n);

void lam_host_add(void *user, void *x, void *y, size_t n, lam_dtype type);

#endif
