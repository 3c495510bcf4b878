/* comm.c -- see comm.h: the collective calls for small things, made of messages between two ranks.
 *
 * They go up a binomial tree to rank 0 and down again, for any number of ranks.  Large things: large.c. */
#include "comm/comm_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const lam_reduce_names[] = {"exact", "fast", NULL};

/* A number in the environment; -1: none. */
static int number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    const long n = text ? strtol(text, &end, 10) : -1;
    return text && end != text && *end == '\0' && n >= 0 && n < 1 << 24 ? (int)n : -1;
}

int lam_comm_started(int *rank)
{
    /* Open MPI; MPICH and its relatives; srun, whatever PMI it offers. */
    static const struct {
        const char *size, *rank;
    } launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                     {"PMI_SIZE", "PMI_RANK"},
                     {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};
    const char *const chosen = getenv("LAMEMO_COMM");
    *rank = 0;
    if (chosen && strcmp(chosen, "solo") == 0)
        return 1;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const int size = number_of(launchers[i].size), r = number_of(launchers[i].rank);
        if (size > 0 && r >= 0) {
            *rank = r;
            return size;
        }
    }
    return 1;
}

lam_status lam_comm_open(lam_comm **out, double timeout)
{
    int rank;
    const int size = lam_comm_started(&rank);
    *out = NULL;
    lam_comm *c = calloc(1, sizeof *c);
    if (!c)
        return lam_fail(LAM_ERR_MEMORY, "ranks: no memory");
    c->timeout = timeout;
    c->tag = LAM_TAG_DATA;
    c->speaker = -1;
    const lam_status status = size > 1 ? lam_comm_mpi(c, size) : lam_comm_solo(c);
    if (status != LAM_OK) {
        free(c->peers);
        free(c);
        return status;
    }
    *out = c;
    return LAM_OK;
}

void lam_comm_close(lam_comm *c)
{
    if (!c)
        return;
    c->ops->close(c);
    free(c->peers);
    free(c);
}

_Noreturn void lam_comm_abort(lam_comm *c, int code)
{
    if (c)
        c->ops->abort(c, code);
    _exit(code);
}

int lam_comm_rank(const lam_comm *c)
{
    return c ? c->rank : 0;
}

int lam_comm_size(const lam_comm *c)
{
    return c ? c->size : 1;
}

int lam_comm_local(const lam_comm *c)
{
    int n = 0;
    for (int r = 0; r < lam_comm_size(c); r++)
        n += !c || strcmp(c->peers[r].host, c->peers[c->rank].host) == 0;
    return n;
}

int lam_comm_local_rank(const lam_comm *c)
{
    int n = 0;
    for (int r = 0; r < lam_comm_rank(c); r++)
        n += strcmp(c->peers[r].host, c->peers[c->rank].host) == 0;
    return n;
}

const char *lam_comm_host(const lam_comm *c, int rank)
{
    return c ? c->peers[rank].host : "this host";
}

const char *lam_comm_name(const lam_comm *c)
{
    return c ? c->library : "one process";
}

int lam_comm_any_thread(const lam_comm *c)
{
    return !c || c->any_thread;
}

int lam_comm_broken(const lam_comm *c)
{
    return c && c->broken;
}

int lam_comm_speaks(const lam_comm *c)
{
    int first = 0;
    if (c && c->speaker >= 0)
        return c->speaker == c->rank;
    while (c && first < c->rank && c->peers[first].gone)
        first++;
    return first == lam_comm_rank(c);
}

lam_status lam_comm_watch(lam_comm *c, double since)
{
    return lam_comm_size(c) > 1 ? c->ops->watch(c, since) : LAM_OK;
}

/* ---- small things ---- */

typedef void combine(void *mine, const void *other, size_t bytes);

static lam_status down(lam_comm *c, void *data, size_t bytes, int root)
{
    /* Ranks are counted from the root; each has its data from the one without its lowest bit. */
    const int me = (c->rank - root + c->size) % c->size;
    int bit = 1;
    while (bit < c->size && !(me & bit))
        bit <<= 1;
    if (me != 0)
        LAM_TRY(lam_comm_exchange(c, NULL, 0, data, (me - bit + root) % c->size, bytes));
    for (bit >>= 1; bit > 0; bit >>= 1)
        if (me + bit < c->size)
            LAM_TRY(lam_comm_exchange(c, data, (me + bit + root) % c->size, NULL, 0, bytes));
    return LAM_OK;
}

/* Everybody has all combined; those of lower ranks come first. */
static lam_status fold(lam_comm *c, void *data, size_t bytes, combine *with)
{
    char *const other = malloc(bytes + 1);
    if (!other)
        return lam_fail(LAM_ERR_MEMORY, "ranks: no memory for %zu bytes", bytes);
    lam_status status = LAM_OK;
    for (int bit = 1; bit < c->size && status == LAM_OK; bit <<= 1) {
        if (c->rank & bit) {
            status = lam_comm_exchange(c, data, c->rank - bit, NULL, 0, bytes);
            break;
        }
        if (c->rank + bit >= c->size)
            continue;
        status = lam_comm_exchange(c, NULL, 0, other, c->rank + bit, bytes);
        if (status == LAM_OK)
            with(data, other, bytes);
    }
    free(other);
    LAM_TRY(status);
    return down(c, data, bytes, 0);
}

lam_status lam_comm_broadcast(lam_comm *c, void *data, size_t bytes, int root)
{
    return lam_comm_size(c) > 1 ? down(c, data, bytes, root) : LAM_OK;
}

static void either(void *mine, const void *other, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)mine)[i] |= ((const unsigned char *)other)[i];
}

lam_status lam_comm_any(lam_comm *c, unsigned char *flags, size_t n)
{
    return lam_comm_size(c) > 1 ? fold(c, flags, n, either) : LAM_OK;
}

lam_status lam_comm_gather(lam_comm *c, void *all, const void *mine, size_t bytes)
{
    const int size = lam_comm_size(c), rank = lam_comm_rank(c);
    memcpy((char *)all + (size_t)rank * bytes, mine, bytes);
    if (size == 1)
        return LAM_OK;
    if (rank > 0)
        LAM_TRY(lam_comm_exchange(c, mine, 0, NULL, 0, bytes));
    for (int r = 1; rank == 0 && r < size; r++)
        LAM_TRY(lam_comm_exchange(c, NULL, 0, (char *)all + (size_t)r * bytes, r, bytes));
    return down(c, all, (size_t)size * bytes, 0);
}

/* ---- agreement ---- */

typedef struct verdict {
    lam_status status;
    char text[1024];
} verdict;

/* As a rule nobody failed, and eight bytes say so. */
typedef struct outcome {
    int first;  /* rank that failed; the number of ranks: none */
    int failed; /* how many did */
} outcome;

static void join_outcomes(void *mine, const void *other, size_t bytes)
{
    outcome *a = mine;
    const outcome *b = other;
    (void)bytes;
    a->first = b->first < a->first ? b->first : a->first;
    a->failed += b->failed;
}

lam_status lam_comm_agree(lam_comm *c, lam_status mine)
{
    if (lam_comm_size(c) == 1 || c->broken)
        return mine;
    verdict v = {.status = mine};
    snprintf(v.text, sizeof v.text, "%s", mine != LAM_OK ? lam_error() : "");
    outcome o = {mine == LAM_OK ? c->size : c->rank, mine != LAM_OK};
    LAM_TRY(fold(c, &o, sizeof o, join_outcomes));
    if (o.failed == 0)
        return LAM_OK;
    const verdict own = v;
    LAM_TRY(down(c, &v, sizeof v, o.first));
    v.text[sizeof v.text - 1] = '\0';
    unsigned char unlike = strcmp(v.text, own.text) != 0 || o.failed < c->size;
    LAM_TRY(lam_comm_any(c, &unlike, 1));
    if (!unlike) /* a wrong option, say: nobody is to blame */
        return lam_fail(mine, "%s", v.text);
    return lam_fail(v.status, "rank %d on %s: %s", o.first, c->peers[o.first].host, v.text);
}

lam_status lam_comm_end(lam_comm *c, lam_status mine, double patience)
{
    char text[1024];
    if (lam_comm_size(c) == 1 || c->broken)
        return mine;
    if (mine != LAM_OK)
        snprintf(text, sizeof text, "%s", lam_error());
    c->tag = LAM_TAG_END;
    if (mine != LAM_OK) {
        c->timeout = patience;
        c->last_words = text;
    }
    const lam_status status = lam_comm_agree(c, mine);
    c->last_words = NULL;
    if (mine == LAM_OK || !c->broken)
        return status;
    return lam_fail(mine, "rank %d on %s: %s", c->rank, c->peers[c->rank].host, text);
}
