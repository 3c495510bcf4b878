/* snapshot.c -- takes and restores snapshots. */
#include "infer/session_int.h"

#include <stdlib.h>
#include <string.h>

void lam_snapshot_free(lam_snapshot *p)
{
    if (!p)
        return;
    for (int i = 0; p->slots && i < p->n_slots; i++)
        free(p->slots[i]);
    free(p->slots);
    free(p->bytes);
    free(p->rows);
    free(p->dtypes);
    free(p->now.calls);
    free(p->now.tokens);
    free(p);
}

static lam_status no_memory(void)
{
    return lam_fail(LAM_ERR_MEMORY, "snapshot: no memory");
}

lam_status lam_snapshot_allocate(lam_snapshot *p)
{
    p->slots = calloc((size_t)p->n_slots + 1, sizeof *p->slots);
    p->bytes = calloc((size_t)p->n_slots + 1, sizeof *p->bytes);
    p->rows = calloc((size_t)p->n_slots + 1, sizeof *p->rows);
    p->dtypes = calloc((size_t)p->n_slots + 1, sizeof *p->dtypes);
    p->now.calls = calloc((size_t)p->longest, sizeof *p->now.calls);
    p->now.tokens = calloc((size_t)p->streams * (size_t)p->longest, sizeof *p->now.tokens);
    const int ok = p->slots && p->bytes && p->rows && p->dtypes && p->now.calls && p->now.tokens;
    return ok ? LAM_OK : no_memory();
}

static void copy_segment(lam_open_segment *to, const lam_open_segment *from, int streams,
                         int longest)
{
    to->length = from->length;
    to->done = from->done;
    to->n_calls = from->n_calls;
    memcpy(to->calls, from->calls, (size_t)longest * sizeof *to->calls);
    memcpy(to->tokens, from->tokens, (size_t)streams * (size_t)longest * sizeof *to->tokens);
}

/* Are the valid rows of a slot [B][cap][width] numbers?  The rest of its room may hold anything. */
static lam_status check_finite(const lam_mem *mem, const lam_slot *slot, int rows, const char *data)
{
    const lam_dtype dtype = lam_class_dtype(mem->dev, slot->type);
    const size_t stream = lam_slot_bytes(mem, slot) / (size_t)mem->B;
    const size_t n = (size_t)rows * (size_t)slot->width;
    for (int b = 0; b < mem->B; b++)
        if (lam_finite_count(data + (size_t)b * stream, dtype, n) < n)
            return lam_fail(LAM_ERR_NUMERIC,
                            "snapshot: %s of layer %d, what the memory keeps, is not finite",
                            slot->name, slot->layer);
    return LAM_OK;
}

static lam_status take(lam_session *s, lam_snapshot *p)
{
    const lam_mem *mem = lam_stack_mem(s->stack);
    *p = (lam_snapshot){.streams = s->streams,
                        .longest = s->longest,
                        .mem_len = s->mem_len,
                        .n_layer = s->model->cfg.n_layer,
                        .d_model = s->model->cfg.d_model,
                        .length = s->length,
                        .prev = mem->prev,
                        .seen = mem->seen,
                        .n_slots = mem->n_slots};
    LAM_TRY(lam_snapshot_allocate(p));
    copy_segment(&p->now, &s->now, s->streams, s->longest);
    for (int i = 0; i < p->n_slots; i++) {
        const lam_slot *slot = &mem->slots[i];
        p->bytes[i] = lam_slot_bytes(mem, slot);
        p->rows[i] = slot->n;
        p->dtypes[i] = lam_class_dtype(mem->dev, slot->type);
        p->slots[i] = malloc(p->bytes[i] + 1);
        if (!p->slots[i])
            return no_memory();
        LAM_TRY(mem->dev->ops->download(mem->dev, p->slots[i], slot->rows, p->bytes[i]));
        LAM_TRY(check_finite(mem, slot, slot->n, p->slots[i]));
    }
    return LAM_OK;
}

lam_status lam_session_snapshot(lam_session *s, lam_snapshot **out)
{
    *out = NULL;
    lam_snapshot *p = calloc(1, sizeof *p);
    if (!p)
        return no_memory();
    const lam_status status = take(s, p);
    if (status != LAM_OK) {
        lam_snapshot_free(p);
        return status;
    }
    *out = p;
    return LAM_OK;
}

static lam_status fits(const lam_session *s, const lam_snapshot *p)
{
    const lam_mem *mem = lam_stack_mem(s->stack);
    const lam_config *cfg = &s->model->cfg;
    int same = p->streams == s->streams && p->mem_len == s->mem_len &&
               p->now.length <= s->longest && p->n_slots == mem->n_slots &&
               p->n_layer == cfg->n_layer && p->d_model == cfg->d_model;
    for (int i = 0; same && i < p->n_slots; i++)
        same = p->bytes[i] == lam_slot_bytes(mem, &mem->slots[i]) && p->rows[i] >= 0 &&
               p->rows[i] <= mem->slots[i].cap &&
               p->dtypes[i] == lam_class_dtype(mem->dev, mem->slots[i].type);
    return same ? LAM_OK
                : lam_fail(LAM_ERR_ARG,
                           "snapshot: taken from a session of another model, device, number of "
                           "streams or memory length");
}

static lam_status known_tokens(const lam_session *s, const lam_snapshot *p)
{
    for (int b = 0; b < p->streams; b++)
        for (int i = 0; i < p->now.done; i++) {
            const int32_t id = p->now.tokens[(size_t)b * (size_t)p->longest + (size_t)i];
            if (id < 0 || id >= s->model->cfg.n_token)
                return lam_fail(LAM_ERR_FORMAT, "snapshot: token %d, the vocabulary has %d types",
                                id, s->model->cfg.n_token);
        }
    return LAM_OK;
}

/* Do the numbers of rows agree with each other?  Asked of a copy: the session must stay as it is. */
static lam_status agrees(const lam_session *s, const lam_snapshot *p)
{
    lam_mem trial = *lam_stack_mem(s->stack);
    const size_t bytes = (size_t)trial.n_slots * sizeof *trial.slots;
    lam_slot *slots = malloc(bytes + 1);
    if (!slots)
        return no_memory();
    memcpy(slots, trial.slots, bytes);
    for (int i = 0; i < p->n_slots; i++)
        slots[i].n = p->rows[i];
    trial.slots = slots;
    trial.prev = p->prev;
    trial.seen = p->seen;
    const lam_status status = lam_mem_resolve(&trial, "snapshot");
    free(slots);
    return status;
}

lam_status lam_session_restore(lam_session *s, const lam_snapshot *p)
{
    lam_mem *mem = lam_stack_mem(s->stack);
    LAM_TRY(fits(s, p));
    LAM_TRY(known_tokens(s, p));
    LAM_TRY(agrees(s, p));
    for (int i = 0; i < p->n_slots; i++)
        LAM_TRY(check_finite(mem, &mem->slots[i], p->rows[i], p->slots[i]));
    for (int i = 0; i < p->n_slots; i++) {
        mem->dev->ops->upload(mem->dev, mem->slots[i].rows, p->slots[i], p->bytes[i]);
        mem->slots[i].n = p->rows[i];
    }
    LAM_TRY(mem->dev->ops->sync(mem->dev));
    mem->prev = p->prev;
    mem->seen = p->seen;
    LAM_TRY(lam_mem_resolve(mem, "snapshot"));
    s->length = p->length;
    s->now.length = p->now.length;
    s->now.done = s->now.n_calls = 0;
    for (int call = 0, at = 0; call < p->now.n_calls; call++) {
        const int n = p->now.calls[call];
        for (int b = 0; b < s->streams; b++)
            memcpy(s->packed + (size_t)b * (size_t)n,
                   p->now.tokens + (size_t)b * (size_t)p->longest + at,
                   (size_t)n * sizeof *s->packed);
        lam_session_piece(s, s->packed, n);
        at += n;
    }
    return LAM_OK;
}
