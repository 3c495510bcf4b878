/* mpi_module.c -- see mpi_module.h. */
#include "comm/mpi_module.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(lam_mpi_request), "room for a request");

static MPI_Comm group; /* a copy of the world: our messages are ours alone */

static const char *library(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;
    if (MPI_Get_library_version(text, &n) != MPI_SUCCESS)
        return "MPI";
    text[strcspn(text, ",\n")] = '\0'; /* Open MPI tells who built it, too */
    for (char *c = text; *c; c++)      /* MPICH has a table of what it is */
        if (*c == '\t')
            *c = ' ';
    return text;
}

static int start(int *rank, int *size, int *any_thread)
{
    int threads = MPI_THREAD_SINGLE;
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threads);
    *any_thread = threads >= MPI_THREAD_SERIALIZED;
    if (code == MPI_SUCCESS)
        code = MPI_Comm_dup(MPI_COMM_WORLD, &group);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(group, rank);
    return code == MPI_SUCCESS ? MPI_Comm_size(group, size) : code;
}

static void keep(lam_mpi_request *to, MPI_Request from)
{
    memcpy(to, &from, sizeof from);
}

static int send(lam_mpi_request *r, const void *data, int bytes, int to, int tag)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Isend(data, bytes, MPI_BYTE, to, tag, group, &request);
    keep(r, request);
    return code;
}

static int receive(lam_mpi_request *r, void *data, int bytes, int from, int tag)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Irecv(data, bytes, MPI_BYTE, from, tag, group, &request);
    keep(r, request);
    return code;
}

static int sum(lam_mpi_request *r, void *x, int n, int is_double)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Iallreduce(MPI_IN_PLACE, x, n, is_double ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM,
                                    group, &request);
    keep(r, request);
    return code;
}

static int test(lam_mpi_request *r, int *done)
{
    MPI_Request request;
    memcpy(&request, r, sizeof request);
    const int code = MPI_Test(&request, done, MPI_STATUS_IGNORE);
    keep(r, request);
    return code;
}

static int probe(int from, int tag, int *there)
{
    return MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, tag, group, there, MPI_STATUS_IGNORE);
}

static void explain(int code, char *text, size_t size)
{
    char all[MPI_MAX_ERROR_STRING] = "";
    int n;
    if (MPI_Error_string(code, all, &n) != MPI_SUCCESS)
        snprintf(all, sizeof all, "error %d", code);
    snprintf(text, size, "%s", all);
}

static void finish(void)
{
    MPI_Finalize();
}

static void end_all(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

static const lam_mpi_module table = {.version = LAM_MPI_MODULE_VERSION,
                                     .library = library,
                                     .start = start,
                                     .send = send,
                                     .receive = receive,
                                     .sum = sum,
                                     .test = test,
                                     .probe = probe,
                                     .explain = explain,
                                     .finish = finish,
                                     .abort = end_all};

__attribute__((visibility("default"))) const lam_mpi_module *lam_mpi_module_table(void);

const lam_mpi_module *lam_mpi_module_table(void)
{
    return &table;
}
