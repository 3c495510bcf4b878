/* timeline.c -- see timeline.h. */
#include "infer/timeline.h"

#include "core/budget.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct lam_past {
    atomic_int owners;
    size_t bytes; /* of it all */
    int m, prev, n_slots;
    int64_t seen;
    struct kept {
        size_t bytes;
        int rows;
        char *data; /* the valid rows, in the block behind the array */
    } slots[];
};

/* Bytes of a slot's valid rows; mem has one stream, so they are the first ones. */
static size_t valid_bytes(const lam_mem *mem, const lam_slot *slot)
{
    return (size_t)slot->n * (size_t)slot->width * lam_class_size(mem->dev, slot->type);
}

static lam_status copy_slots(lam_past *p, const lam_mem *mem, char *at)
{
    for (int i = 0; i < p->n_slots; i++) {
        const lam_slot *slot = &mem->slots[i];
        const size_t n = (size_t)slot->n * (size_t)slot->width;
        p->slots[i] = (struct kept){valid_bytes(mem, slot), slot->n, at};
        if (n == 0)
            continue;
        LAM_TRY(mem->dev->ops->download(mem->dev, at, slot->rows, p->slots[i].bytes));
        if (lam_finite_count(at, lam_class_dtype(mem->dev, slot->type), n) < n)
            return lam_fail(LAM_ERR_NUMERIC, "%s of layer %d, what the memory keeps, is not finite",
                            slot->name, slot->layer);
        at += p->slots[i].bytes;
    }
    return LAM_OK;
}

/* To read what the machine has left takes some 100 us, in which a small model reads five tokens of a prompt, and prompts
 * are kept segment by segment: so many bytes of them are checked together. */
enum { CHECKED_TOGETHER = 4 << 20 };

static lam_status check_budget(const lam_mem *mem, size_t bytes)
{
    static atomic_size_t unchecked;
    if (atomic_fetch_add(&unchecked, bytes) + bytes < CHECKED_TOGETHER)
        return LAM_OK;
    atomic_store(&unchecked, 0);
    return lam_budget_ask_under(mem->dev->max_memory, "what a text remembers", bytes);
}

lam_status lam_past_take(lam_past **out, const lam_mem *mem)
{
    size_t head = sizeof(lam_past) + (size_t)mem->n_slots * sizeof(struct kept), body = 0;
    *out = NULL;
    for (int i = 0; i < mem->n_slots; i++)
        body += valid_bytes(mem, &mem->slots[i]);
    head = (head + LAM_ALIGN - 1) / LAM_ALIGN * LAM_ALIGN;
    LAM_TRY(check_budget(mem, head + body));
    lam_past *p = malloc(head + body);
    if (!p)
        return lam_fail(LAM_ERR_MEMORY, "no memory for the %zu bytes a text remembers", body);
    atomic_init(&p->owners, 1);
    p->bytes = head + body;
    p->m = mem->m;
    p->prev = mem->prev;
    p->seen = mem->seen;
    p->n_slots = mem->n_slots;
    const lam_status status = copy_slots(p, mem, (char *)p + head);
    if (status != LAM_OK) {
        free(p);
        return status;
    }
    *out = p;
    return LAM_OK;
}

lam_status lam_past_put(const lam_past *p, lam_mem *mem)
{
    lam_mem_reset(mem);
    if (!p)
        return LAM_OK;
    mem->m = p->m;
    mem->prev = p->prev;
    mem->seen = p->seen;
    for (int i = 0; i < p->n_slots; i++) {
        mem->slots[i].n = p->slots[i].rows;
        if (p->slots[i].bytes > 0)
            mem->dev->ops->upload(mem->dev, mem->slots[i].rows, p->slots[i].data,
                                  p->slots[i].bytes);
    }
    return mem->dev->ops->sync(mem->dev);
}

lam_past *lam_past_share(lam_past *p)
{
    if (p)
        atomic_fetch_add(&p->owners, 1);
    return p;
}

void lam_past_drop(lam_past *p)
{
    if (p && atomic_fetch_sub(&p->owners, 1) == 1)
        free(p);
}

size_t lam_past_bytes(const lam_past *p)
{
    return p ? p->bytes : 0;
}

int lam_past_rows(const lam_past *p)
{
    return p ? p->m : 0;
}

/* ---- timelines ---- */

lam_status lam_timeline_create(lam_timeline **out, int segment, int forgets)
{
    *out = NULL;
    lam_timeline *t = calloc(1, sizeof *t);
    int32_t *open = calloc((size_t)segment, sizeof *open);
    if (!t || !open) {
        free(t);
        free(open);
        return lam_fail(LAM_ERR_MEMORY, "no memory for a text of segments of %d tokens", segment);
    }
    *t = (lam_timeline){.segment = segment, .forgets = forgets, .open = open};
    *out = t;
    return LAM_OK;
}

lam_status lam_timeline_fork(lam_timeline **out, const lam_timeline *from)
{
    LAM_TRY(lam_timeline_create(out, from->segment, from->forgets));
    (*out)->past = lam_past_share(from->past);
    (*out)->length = from->length;
    (*out)->done = from->done;
    memcpy((*out)->open, from->open, (size_t)from->done * sizeof *from->open);
    return LAM_OK;
}

void lam_timeline_free(lam_timeline *t)
{
    if (!t)
        return;
    lam_past_drop(t->past);
    free(t->open);
    free(t);
}

size_t lam_timeline_bytes(const lam_timeline *t)
{
    return lam_past_bytes(t->past) + sizeof *t + (size_t)t->segment * sizeof *t->open;
}
