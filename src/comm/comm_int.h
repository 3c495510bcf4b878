/* comm_int.h -- what the siblings behind comm.h provide: messages between two ranks, with a deadline. */
#ifndef LAM_COMM_COMM_INT_H
#define LAM_COMM_COMM_INT_H

#include "comm/comm.h"

enum { LAM_HOST_MAX = 64 };
enum { LAM_TAG_DATA = 1, LAM_TAG_END = 2, LAM_TAG_BROKEN = 3 };

enum { LAM_MESSAGE_MAX = 1 << 30 }; /* bytes */

typedef struct lam_message {
    const void *out; /* to the peer, or NULL and */
    void *in;        /* from it */
    int peer;
    size_t bytes; /* at most LAM_MESSAGE_MAX */
} lam_message;

typedef struct lam_comm_ops {
    const char *name;
    /* Sends and receives all of them.  Between two ranks the n-th sent is the n-th received, and both may have many in
     * their lists, whose order is then the same. */
    lam_status (*exchange)(lam_comm *c, const lam_message *list, int n);
    /* The library's own sum over all ranks. */
    lam_status (*sum)(lam_comm *c, void *x, size_t n, lam_dtype type);
    /* Fails, and breaks the group, where a rank is gone or the deadline is over. */
    lam_status (*watch)(lam_comm *c, double since);
    void (*close)(lam_comm *c);
    void (*abort)(lam_comm *c, int code); /* may return */
} lam_comm_ops;

typedef struct lam_comm_peer {
    char host[LAM_HOST_MAX];
    int pid;
    int gone; /* in a broken group: it no longer answers */
} lam_comm_peer;

struct lam_comm {
    const lam_comm_ops *ops;
    int rank, size;
    int any_thread; /* calls may come from any thread, one at a time */
    double timeout; /* seconds; 0: none */
    int broken;
    int speaker;            /* of a broken group, if it is known; -1: the first that is left */
    const char *last_words; /* why this rank alone leaves; NULL: it does not */
    int tag;                /* of messages: those of the end are not mixed up with others */
    const char *library;
    lam_comm_peer *peers; /* [size] */
};

/* Sends `out` to rank `to` and receives `in` from rank `from`, of any length; either may be NULL. */
lam_status lam_comm_exchange(lam_comm *c, const void *out, int to, void *in, int from,
                             size_t bytes);

/* solo.c, mpi.c: `c` is zeroed but for timeout. */
lam_status lam_comm_solo(lam_comm *c);
lam_status lam_comm_mpi(lam_comm *c, int expected);

#endif
