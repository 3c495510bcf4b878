/* comm.h -- the processes that share one job (ranks), started by mpirun or srun: one narrow interface.
 *
 * Two siblings stand behind it: `solo`, one process alone, and `mpi`, which loads MPI at run time, so that one program
 * serves machines with and without it.  What is sent is in host memory.
 *
 * Every rank makes the same calls in the same order.  A call that fails has failed for good: the group is broken, every
 * later call fails at once, and lam_comm_abort() ends what is left of it.  The message names the rank and the host that
 * are to blame.  One thread at a time, and always the same unless lam_comm_any_thread(). */
#ifndef LAM_COMM_COMM_H
#define LAM_COMM_COMM_H

#include "core/status.h"
#include "core/tensor.h"

typedef struct lam_comm lam_comm;

/* How lam_comm_sum() adds. */
typedef enum lam_reduce {
    LAM_REDUCE_EXACT, /* in a binary tree over the ranks: the bits depend on nothing else */
    LAM_REDUCE_FAST   /* as the library does; other numbers of ranks, other bits */
} lam_reduce;
extern const char *const lam_reduce_names[]; /* by lam_reduce; ends with NULL */

/* How many processes a launcher says that it started, and which of them this is; 1 and 0 without a launcher.  Reads
 * the environment alone. */
int lam_comm_started(int *rank);

/* Joins the group: waits for all processes of the launcher.  A call that takes longer than `timeout` seconds has failed;
 * 0: it may take any time.  LAM_ERR_UNSUPPORTED where a launcher has started several, and MPI cannot be loaded. */
lam_status lam_comm_open(lam_comm **out, double timeout);
/* Leaves it, together with the others; NULL is fine. */
void lam_comm_close(lam_comm *c);
/* Ends all processes of the group, this one too, within seconds, whatever state they are in. */
_Noreturn void lam_comm_abort(lam_comm *c, int code);

/* NULL is one process alone in all that follows. */
int lam_comm_rank(const lam_comm *c);
int lam_comm_size(const lam_comm *c);
int lam_comm_local(const lam_comm *c);      /* ranks on this host */
int lam_comm_local_rank(const lam_comm *c); /* and those of them before this one */
const char *lam_comm_host(const lam_comm *c, int rank);
const char *lam_comm_name(const lam_comm *c); /* the library, for the log */
int lam_comm_any_thread(const lam_comm *c);
int lam_comm_broken(const lam_comm *c);
/* Is it for this rank to tell the user?  Rank 0, or in a broken group the first that is left. */
int lam_comm_speaks(const lam_comm *c);

/* Have all ranks come here without a failure?  Otherwise every rank returns the status and message of the first that
 * failed, which are preceded by its rank and host unless all have failed. */
lam_status lam_comm_agree(lam_comm *c, lam_status mine);
/* The same before leaving.  A rank that failed alone finds nobody here: it returns its own failure after `patience`
 * seconds, the group broken, with its rank and host in front. */
lam_status lam_comm_end(lam_comm *c, lam_status mine, double patience);
/* flags[i] becomes 1 where any rank has it. */
lam_status lam_comm_any(lam_comm *c, unsigned char *flags, size_t n);
/* Everybody has what `root` has. */
lam_status lam_comm_broadcast(lam_comm *c, void *data, size_t bytes, int root);
/* all[r] becomes what rank r has; small things, now and then. */
lam_status lam_comm_gather(lam_comm *c, void *all, const void *mine, size_t bytes);
/* Something else than messages of ours is waited for, since `since`: is that still worth it? */
lam_status lam_comm_watch(lam_comm *c, double since);
/* x[i] becomes the sum over the ranks, whose number is a power of two; `scratch` has room for n / 2 + LAM_SUM_GRAIN
 * numbers, or for n. */
enum { LAM_SUM_GRAIN = 16 }; /* sums are divided at multiples of it: what begins aligned stays so */
lam_status lam_comm_sum(lam_comm *c, void *x, void *scratch, size_t n, lam_dtype type,
                        lam_reduce how);

/* A stretch of host memory that one rank has to give. */
typedef struct lam_piece {
    void *at;
    size_t bytes;
    int owner;
} lam_piece;
/* Everybody has every piece as its owner has it; the number of ranks is a power of two. */
lam_status lam_comm_spread(lam_comm *c, const lam_piece *list, int n);

#endif
