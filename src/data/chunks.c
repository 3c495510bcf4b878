/* chunks.c -- see chunks.h. */
#include "data/chunks.h"

#include "core/parallel.h"

#include <string.h>

enum { LOOK = 1 << 12 }; /* how far from where a chunk should end a good place is looked for */

typedef struct round {
    const lam_chunks *c;
    int n;
    size_t from[LAM_THREADS_MAX], goal[LAM_THREADS_MAX], at[LAM_THREADS_MAX];
} round;

/* Where chunk number k should begin. */
static size_t beginning(const lam_chunks *c, size_t k)
{
    const unsigned char *s = (const unsigned char *)c->text;
    if (k == 0)
        return 0;
    if (k > c->size / c->chunk)
        return c->size;
    const size_t want = k * c->chunk, most = c->size - want < LOOK ? c->size - want : LOOK;
    const unsigned char *from = s + want, *end = from + most;
    for (const unsigned char *p = from; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        if (p + 1 < s + c->size && p[1] > ' ')
            return (size_t)(p + 1 - s);
    while (from < s + c->size && (*from & 0xc0) == 0x80) /* not inside a character */
        from++;
    return (size_t)(from - s);
}

static lam_status work_on(void *user, int slot)
{
    round *r = user;
    r->at[slot] = r->from[slot];
    return r->c->work(r->c->user, slot, &r->at[slot], r->goal[slot]);
}

lam_status lam_chunks_run(const lam_chunks *c)
{
    round r = {.c = c};
    size_t done = 0, k = 0;
    while (done < c->size) {
        for (r.n = 0; r.n < c->threads && beginning(c, k) < c->size; r.n++, k++) {
            r.from[r.n] = r.n > 0 ? beginning(c, k) : done; /* known, of the first one */
            r.goal[r.n] = beginning(c, k + 1);
        }
        LAM_TRY(lam_parallel(r.n, work_on, &r));
        for (int i = 0; i < r.n; i++) {
            if (r.from[i] != done) {
                r.from[i] = done;
                LAM_TRY(work_on(&r, i));
            }
            done = r.at[i];
            LAM_TRY(c->take(c->user, i, done));
        }
    }
    return LAM_OK;
}
