/* large.c -- large sums, and large things that everybody shall have.
 *
 * A sum goes by recursive halving: over the distances 1, 2, 4, ... two ranks exchange half of what each is still
 * responsible for and add, until each has one part of the sum; then the parts travel back the same way.  The additions
 * are those of a binary tree whose leaves are the ranks in order, in whatever order messages arrive.
 *
 * Pieces with an owner are spread by recursive doubling: over the same distances two ranks exchange all that their two
 * groups have.  All messages between two ranks are under way at once.
 *
 * Who carries the messages and adds is the caller's: MPI and the processor, or NCCL and a kernel. */
#include "comm/large.h"

#include <assert.h>
#include <stdlib.h>

void lam_host_add(void *user, void *x, void *y, size_t n, lam_dtype type)
{
    (void)user;
    if (type == LAM_F64) {
        double *a = x;
        const double *b = y;
        for (size_t i = 0; i < n; i++)
            a[i] += b[i];
    } else {
        float *a = x;
        const float *b = y;
        for (size_t i = 0; i < n; i++)
            a[i] += b[i];
    }
}

/* A stretch of the numbers, and the halves that the two ranks at a distance keep. */
typedef struct stretch {
    size_t from, n;
} stretch;

static stretch half_of(stretch all, int upper)
{
    const size_t n = all.n / 2 / LAM_SUM_GRAIN * LAM_SUM_GRAIN;
    return upper ? (stretch){all.from + n, all.n - n} : (stretch){all.from, n};
}

lam_status lam_carry(const lam_carrier *via, const void *out, int to, void *in, int from,
                     size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LAM_MESSAGE_MAX) {
        const size_t some = bytes - at < LAM_MESSAGE_MAX ? bytes - at : LAM_MESSAGE_MAX;
        lam_message list[2];
        int n = 0;
        if (in)
            list[n++] = (lam_message){.in = (char *)in + at, .peer = from, .bytes = some};
        if (out)
            list[n++] = (lam_message){.out = (const char *)out + at, .peer = to, .bytes = some};
        LAM_TRY(via->exchange(via->user, list, n));
    }
    return LAM_OK;
}

/* The two halves may differ a little: they are sent one way and then the other. */
static lam_status swap(const lam_carrier *via, int peer, const char *out, size_t out_bytes,
                       char *in, size_t in_bytes)
{
    const size_t both = out_bytes < in_bytes ? out_bytes : in_bytes;
    LAM_TRY(lam_carry(via, out, peer, in, peer, both));
    if (out_bytes > both)
        LAM_TRY(lam_carry(via, out + both, peer, NULL, 0, out_bytes - both));
    if (in_bytes > both)
        LAM_TRY(lam_carry(via, NULL, 0, in + both, peer, in_bytes - both));
    return LAM_OK;
}

lam_status lam_carry_sum(const lam_carrier *via, void *sum, void *scratch, size_t n, lam_dtype type)
{
    enum { ROUNDS = 24 };
    const size_t size = lam_dtype_size(type);
    char *const x = sum;
    stretch all[ROUNDS], mine = {0, n};
    int round = 0;
    for (int d = 1; d < via->size; d *= 2, round++) {
        const int upper = (via->rank & d) != 0, peer = via->rank ^ d;
        const stretch keep = half_of(mine, upper), give = half_of(mine, !upper);
        LAM_TRY(swap(via, peer, x + give.from * size, give.n * size, scratch, keep.n * size));
        via->add(via->user, x + keep.from * size, scratch, keep.n, type);
        all[round] = mine;
        mine = keep;
    }
    while (round-- > 0) {
        const int d = 1 << round, upper = (via->rank & d) != 0, peer = via->rank ^ d;
        const stretch other = half_of(all[round], !upper);
        LAM_TRY(swap(via, peer, x + mine.from * size, mine.n * size, x + other.from * size,
                     other.n * size));
        mine = all[round];
    }
    return LAM_OK;
}

/* Messages of one distance: what my group of ranks has goes to the peer, what the peer's has comes. */
static int list_messages(lam_message *to, const lam_piece *list, int n, int rank, int d)
{
    const int peer = rank ^ d, mine = rank / d, other = peer / d;
    int count = 0;
    for (int i = 0; i < n; i++) {
        const int group = list[i].owner / d;
        for (size_t at = 0; at < list[i].bytes && (group == mine || group == other);
             at += LAM_MESSAGE_MAX) {
            const size_t left = list[i].bytes - at;
            char *const place = (char *)list[i].at + at;
            if (to)
                to[count] = (lam_message){.out = group == mine ? place : NULL,
                                          .in = group == mine ? NULL : place,
                                          .peer = peer,
                                          .bytes = left < LAM_MESSAGE_MAX ? left : LAM_MESSAGE_MAX};
            count++;
        }
    }
    return count;
}

lam_status lam_carry_spread(const lam_carrier *via, const lam_piece *list, int n)
{
    for (int d = 1; d < via->size; d *= 2) {
        const int count = list_messages(NULL, list, n, via->rank, d);
        lam_message *const messages = malloc((size_t)count * sizeof *messages + 1);
        if (!messages)
            return lam_fail(LAM_ERR_MEMORY, "ranks: no memory for %d messages", count);
        list_messages(messages, list, n, via->rank, d);
        const lam_status status = via->exchange(via->user, messages, count);
        free(messages);
        LAM_TRY(status);
    }
    return LAM_OK;
}

/* ---- in host memory ---- */

static lam_status exchange(void *user, const lam_message *list, int n)
{
    lam_comm *c = user;
    return c->ops->exchange(c, list, n);
}

static lam_carrier carrier_of(lam_comm *c)
{
    return (lam_carrier){exchange, lam_host_add, c, lam_comm_rank(c), lam_comm_size(c)};
}

lam_status lam_comm_exchange(lam_comm *c, const void *out, int to, void *in, int from, size_t bytes)
{
    const lam_carrier via = carrier_of(c);
    return lam_carry(&via, out, to, in, from, bytes);
}

lam_status lam_comm_sum(lam_comm *c, void *x, void *scratch, size_t n, lam_dtype type,
                        lam_reduce how)
{
    if (lam_comm_size(c) == 1 || n == 0)
        return LAM_OK;
    assert((c->size & (c->size - 1)) == 0 && (type == LAM_F32 || type == LAM_F64));
    const lam_carrier via = carrier_of(c);
    return how == LAM_REDUCE_FAST ? c->ops->sum(c, x, n, type)
                                  : lam_carry_sum(&via, x, scratch, n, type);
}

lam_status lam_comm_spread(lam_comm *c, const lam_piece *list, int n)
{
    const lam_carrier via = carrier_of(c);
    assert((via.size & (via.size - 1)) == 0);
    return lam_carry_spread(&via, list, n);
}
