/* nccl.h -- sums and pieces between GPUs without the host, by NCCL, which is loaded at run time.
 *
 * The ranks are those of a lam_comm, by which NCCL is started and which watches over them meanwhile.  Calls wait for the
 * device: a rank that is gone is found by the deadline of the lam_comm, not by a stream that never ends. */
#ifndef LAM_COMM_NCCL_H
#define LAM_COMM_NCCL_H

#include "comm/comm.h"

typedef struct lam_nccl lam_nccl;

/* What is needed of the device that the buffers are on; all calls get `user`. */
typedef struct lam_nccl_device {
    void *user;
    void *stream;     /* its queue, a cudaStream_t */
    const char *card; /* a name that no other GPU of this host has */
    lam_status (*sync)(void *user);
    int (*idle)(void *user);                             /* is the queue empty? */
    void (*add)(void *user, void *x, void *y, size_t n); /* float32: x += y; y may be lost */
} lam_nccl_device;

/* Joins all ranks.  Where one of them has no NCCL, or two have the same GPU, *out is NULL on every rank, which is no
 * failure, and `why` says it.  LAMEMO_COMM=staged in the environment has that effect, too; with LAMEMO_COMM=nccl it is a
 * failure.  The device must outlive it. */
lam_status lam_nccl_open(lam_nccl **out, char why[256], lam_comm *c, const lam_nccl_device *device);
void lam_nccl_close(lam_nccl *n); /* NULL is fine */
/* Is it to be used by one process alone, too?  LAMEMO_COMM=nccl: to try it. */
int lam_nccl_wanted(void);
const char *lam_nccl_name(const lam_nccl *n); /* with its version, for the log */

/* As lam_comm_sum() and lam_comm_spread(), of float32 in device memory. */
lam_status lam_nccl_sum(lam_nccl *n, float *x, float *scratch, size_t count, lam_reduce how);
lam_status lam_nccl_spread(lam_nccl *n, const lam_piece *list, int count);

#endif
