/* mpi_module.h -- the few calls of MPI that mpi.c needs, behind a table.
 *
 * mpi_module.c alone is compiled against mpi.h, as a file of its own that is loaded at run time: MPI's libraries differ
 * in what mpi.h says, and most machines have none.  Calls return 0, or MPI's own code. */
#ifndef LAM_COMM_MPI_MODULE_H
#define LAM_COMM_MPI_MODULE_H

#include <stddef.h>
#include <stdint.h>

enum { LAM_MPI_MODULE_VERSION = 2 };

/* Room for MPI's own type. */
typedef struct lam_mpi_request {
    uintptr_t room[2];
} lam_mpi_request;

typedef struct lam_mpi_module {
    int version;
    const char *(*library)(void);
    int (*start)(int *rank, int *size, int *any_thread); /* may any thread call, one at a time? */
    int (*send)(lam_mpi_request *r, const void *data, int bytes, int to, int tag);
    int (*receive)(lam_mpi_request *r, void *data, int bytes, int from, int tag);
    int (*sum)(lam_mpi_request *r, void *x, int n, int is_double); /* in place, over all ranks */
    int (*test)(lam_mpi_request *r, int *done);
    int (*probe)(int from, int tag, int *there); /* from -1: anybody */
    void (*explain)(int code, char *text, size_t size);
    void (*finish)(void);
    void (*abort)(int code);
} lam_mpi_module;

/* The one symbol that the file exports. */
typedef const lam_mpi_module *lam_mpi_module_get(void);
#define LAM_MPI_MODULE_SYMBOL "lam_mpi_module_table"

#endif
