/* nccl.c -- see nccl.h.
 *
 * NCCL's own all-reduce gives other bits on other machines: it is what --reduce fast uses.  The exact sum is the tree of
 * large.c over ncclSend and ncclRecv.  The few declarations of nccl.h that this takes are repeated here: they have been
 * the same since version 2.7, which has the first ncclSend. */
#include "comm/nccl.h"

#include "comm/large.h"
#include "core/clock.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ID_BYTES = 128, OLDEST = 2700, BYTE = 0, FLOAT = 7, SUM = 0, IN_PROGRESS = 7 };
enum { CARD_MAX = 64, LOADED_MAX = 160 };

typedef struct lam_nccl_id {
    char internal[ID_BYTES];
} lam_nccl_id;
typedef void *handle; /* ncclComm_t, cudaStream_t */

/* X(field, symbol, arguments); all return an int, 0 for success. */
#define FUNCTIONS(X)                                                                               \
    X(version, ncclGetVersion, (int *))                                                            \
    X(new_id, ncclGetUniqueId, (lam_nccl_id *))                                                    \
    X(join, ncclCommInitRank, (handle *, int, lam_nccl_id, int))                                   \
    X(leave, ncclCommDestroy, (handle))                                                            \
    X(abort, ncclCommAbort, (handle))                                                              \
    X(failed, ncclCommGetAsyncError, (handle, int *))                                              \
    X(sum, ncclAllReduce, (const void *, void *, size_t, int, int, handle, handle))                \
    X(send, ncclSend, (const void *, size_t, int, int, handle, handle))                            \
    X(receive, ncclRecv, (void *, size_t, int, int, handle, handle))                               \
    X(group_begin, ncclGroupStart, (void))                                                         \
    X(group_end, ncclGroupEnd, (void))

struct lam_nccl {
    lam_comm *comm; /* kept */
    lam_nccl_device device;
    void *library;
    handle group;
    char name[48];
#define FIELD(field, symbol, arguments) int(*field) arguments;
    FUNCTIONS(FIELD)
#undef FIELD
    const char *(*explain)(int);
};

/* ---- loading ---- */

static int asked_for(const char *what)
{
    const char *const chosen = getenv("LAMEMO_COMM");
    return chosen && strcmp(chosen, what) == 0;
}

int lam_nccl_wanted(void)
{
    return asked_for("nccl");
}

/* C has no conversion from an object to a function. */
static int find(void *library, const char *symbol, void *function)
{
    void *const found = dlsym(library, symbol);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* Fills in the functions; otherwise says what is missing. */
static int load(lam_nccl *n, char why[LOADED_MAX])
{
    static const char *const places[] = {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"};
    int version = 0;
    for (size_t i = 0; !n->library && i < sizeof places / sizeof *places; i++)
        n->library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    if (!n->library) {
        snprintf(why, LOADED_MAX,
                 "libnccl.so.2 is not installed, or LD_LIBRARY_PATH does not "
                 "name it");
        return 0;
    }
#define FIND(field, symbol, arguments)                                                             \
    if (!find(n->library, #symbol, &n->field)) {                                                   \
        snprintf(why, LOADED_MAX, "libnccl.so.2 has no " #symbol);                                 \
        return 0;                                                                                  \
    }
    FUNCTIONS(FIND)
    FIND(explain, ncclGetErrorString, )
#undef FIND
    if (n->version(&version) != 0 || version < OLDEST) {
        snprintf(why, LOADED_MAX, "libnccl.so.2 is older than 2.7");
        return 0;
    }
    const int major = version < 10000 ? version / 1000 : version / 10000;
    const int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
    snprintf(n->name, sizeof n->name, "NCCL %d.%d.%d", major, minor, version % 100);
    return 1;
}

/* ---- joining ---- */

/* What every rank tells the others. */
typedef struct offer {
    int loaded;
    char card[CARD_MAX], why[LOADED_MAX];
} offer;

/* What stands against NCCL, of all ranks together; 0: nothing. */
static int judge(char why[256], const lam_comm *c, const offer *all)
{
    const int size = lam_comm_size(c);
    if (asked_for("staged"))
        return snprintf(why, 256, "LAMEMO_COMM=staged");
    for (int r = 0; r < size; r++)
        if (!all[r].loaded)
            return snprintf(why, 256, "rank %d on %s: %s", r, lam_comm_host(c, r), all[r].why);
    for (int r = 0; r < size; r++)
        for (int s = 0; s < r; s++)
            if (strcmp(all[r].card, all[s].card) == 0 &&
                strcmp(lam_comm_host(c, r), lam_comm_host(c, s)) == 0)
                return snprintf(why, 256, "ranks %d and %d share one GPU, which NCCL refuses", s,
                                r);
    return 0;
}

static lam_status fail_nccl(const lam_nccl *n, const char *what, int code)
{
    return lam_fail(LAM_ERR_DEVICE, "NCCL: %s: %s", what, n->explain(code));
}

static lam_status join(lam_nccl *n)
{
    lam_nccl_id id = {0};
    const int rank = lam_comm_rank(n->comm);
    int code = rank == 0 ? n->new_id(&id) : 0;
    LAM_TRY(lam_comm_agree(n->comm, code == 0 ? LAM_OK : fail_nccl(n, "ncclGetUniqueId", code)));
    LAM_TRY(lam_comm_broadcast(n->comm, &id, sizeof id, 0));
    LAM_TRY(lam_comm_agree(n->comm, LAM_OK)); /* nobody connects before all have it */
    code = n->join(&n->group, lam_comm_size(n->comm), id, rank);
    return lam_comm_agree(n->comm, code == 0 ? LAM_OK : fail_nccl(n, "ncclCommInitRank", code));
}

static lam_status compare(lam_nccl *n, offer *mine, char why[256])
{
    offer *const all = calloc((size_t)lam_comm_size(n->comm), sizeof *all);
    *why = '\0';
    lam_status status =
        lam_comm_agree(n->comm, all ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "NCCL: no memory"));
    if (status == LAM_OK)
        status = lam_comm_gather(n->comm, all, mine, sizeof *mine);
    if (status == LAM_OK && judge(why, n->comm, all) > 0 && lam_nccl_wanted())
        status = lam_fail(LAM_ERR_UNSUPPORTED, "LAMEMO_COMM=nccl: %s", why);
    free(all);
    return status;
}

lam_status lam_nccl_open(lam_nccl **out, char why[256], lam_comm *c, const lam_nccl_device *device)
{
    *out = NULL;
    lam_nccl *n = calloc(1, sizeof *n);
    LAM_TRY(lam_comm_agree(c, n ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "NCCL: no memory")));
    n->comm = c;
    n->device = *device;
    offer mine = {0};
    snprintf(mine.card, sizeof mine.card, "%s", device->card);
    mine.loaded = load(n, mine.why);
    lam_status status = compare(n, &mine, why);
    if (status == LAM_OK && !*why)
        status = join(n);
    if (status == LAM_OK && !*why) {
        *out = n;
        return LAM_OK;
    }
    lam_nccl_close(n);
    return status;
}

void lam_nccl_close(lam_nccl *n)
{
    if (!n)
        return;
    if (n->group)
        n->leave(n->group);
    if (n->library)
        dlclose(n->library);
    free(n);
}

const char *lam_nccl_name(const lam_nccl *n)
{
    return n->name;
}

/* ---- messages ---- */

/* The group is of no use any more, and its kernels must end before the device can be closed. */
static lam_status give_up(lam_nccl *n, lam_status status)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", lam_error());
    n->abort(n->group);
    n->group = NULL;
    return lam_fail(status, "%s", text);
}

/* Waits until the device has done it. */
static lam_status finish(lam_nccl *n, const char *what, int code)
{
    const double since = lam_clock();
    while (code == 0 && !n->device.idle(n->device.user)) {
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        if (n->failed(n->group, &code) != 0 || code == IN_PROGRESS)
            code = 0;
        const lam_status status = lam_comm_watch(n->comm, since);
        if (status != LAM_OK)
            return give_up(n, status);
    }
    return code == 0 ? n->device.sync(n->device.user) : give_up(n, fail_nccl(n, what, code));
}

static lam_status is_whole(const lam_nccl *n)
{
    return n->group ? LAM_OK : lam_fail(LAM_ERR_DEVICE, "NCCL: the group of ranks is broken");
}

static lam_status exchange(void *user, const lam_message *list, int count)
{
    lam_nccl *n = user;
    LAM_TRY(is_whole(n));
    LAM_TRY(n->device.sync(n->device.user)); /* what is sent is there */
    int code = n->group_begin();
    for (int i = 0; i < count && code == 0; i++) {
        const lam_message *m = &list[i];
        code = m->in ? n->receive(m->in, m->bytes, BYTE, m->peer, n->group, n->device.stream)
                     : n->send(m->out, m->bytes, BYTE, m->peer, n->group, n->device.stream);
    }
    const int end = n->group_end();
    return finish(n, "ncclSend, ncclRecv", code != 0 ? code : end);
}

static void add(void *user, void *x, void *y, size_t count, lam_dtype type)
{
    lam_nccl *n = user;
    (void)type;
    if (count > 0)
        n->device.add(n->device.user, x, y, count);
}

static lam_carrier carrier_of(lam_nccl *n)
{
    return (lam_carrier){exchange, add, n, lam_comm_rank(n->comm), lam_comm_size(n->comm)};
}

lam_status lam_nccl_sum(lam_nccl *n, float *x, float *scratch, size_t count, lam_reduce how)
{
    const lam_carrier via = carrier_of(n);
    LAM_TRY(is_whole(n));
    if (how == LAM_REDUCE_EXACT)
        return lam_carry_sum(&via, x, scratch, count, LAM_F32);
    LAM_TRY(n->device.sync(n->device.user));
    return finish(n, "ncclAllReduce", n->sum(x, x, count, FLOAT, SUM, n->group, n->device.stream));
}

lam_status lam_nccl_spread(lam_nccl *n, const lam_piece *list, int count)
{
    const lam_carrier via = carrier_of(n);
    return lam_carry_spread(&via, list, count);
}
