/* mem.c -- finding a mechanism, and moving its state in and out of a segment. */
#include "mem/mem.h"

#include <stdio.h>
#include <string.h>

/* Tests build this file with a list of their own (examples/sink-memory). */
#ifndef LAM_MEMORIES
#define LAM_MEMORIES "mem/memories.def"
#endif

#define MEMORY(name) extern const lam_mem_ops lam_mem_##name;
#include LAM_MEMORIES
#undef MEMORY

#define MEMORY(name) &lam_mem_##name,
const lam_mem_ops *const lam_mem_all[] = {
#include LAM_MEMORIES
    NULL};
#undef MEMORY

_Static_assert(sizeof lam_mem_all / sizeof *lam_mem_all <= LAM_MOST_MEMORIES + 1,
               "lam_config has no room for so many memories: LAM_MOST_MEMORIES");

#define MEMORY(name) #name,
const char *const lam_mem_names[] = {
#include LAM_MEMORIES
    NULL};
#undef MEMORY

lam_status lam_mem_find(const lam_mem_ops **out, const char *name)
{
    char all[LAM_MEMORY_TEXT];
    *out = NULL;
    for (int i = 0; lam_mem_all[i]; i++)
        if (strcmp(name, lam_mem_names[i]) == 0)
            *out = lam_mem_all[i];
    return *out ? LAM_OK
                : lam_fail(LAM_ERR_ARG, "memory %s: must be one of: %s", name,
                           lam_mem_having(all, 0));
}

int lam_mem_has(const lam_mem_ops *ops, unsigned traits)
{
    return (ops->traits & traits) == traits;
}

const char *lam_mem_having(char text[LAM_MEMORY_TEXT], unsigned traits)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; lam_mem_all[i] && used < LAM_MEMORY_TEXT; i++)
        if (lam_mem_has(lam_mem_all[i], traits))
            used += (size_t)snprintf(text + used, LAM_MEMORY_TEXT - used, "%s%s",
                                     used > 0 ? ", " : "", lam_mem_names[i]);
    return text;
}

int lam_mem_leads(const lam_mem_ops *ops, const lam_config *cfg, int layer)
{
    return ops->leads && ops->leads(cfg, layer);
}

int lam_mem_rests(const lam_mem *mem, const lam_config *cfg)
{
    return mem->ops->rests && mem->ops->rests(cfg, mem);
}

lam_status lam_mem_takes_documents(const lam_mem_ops *ops, const lam_config *cfg)
{
    const lam_mem begun = {.ops = ops, .prev = 1};
    return !lam_mem_rests(&begun, cfg)
               ? LAM_OK
               : lam_fail(LAM_ERR_UNSUPPORTED,
                          "memory %s as configured refreshes all streams at once, which documents "
                          "that begin at different times do not allow: mem-reset document needs "
                          "refresh-every 1",
                          ops->name);
}

int lam_mem_climbs(const lam_segment *s, int layer)
{
    return lam_mem_leads(s->mem->ops, s->cfg, layer) && !lam_mem_rests(s->mem, s->cfg);
}

int lam_mem_tokens(const lam_mem_ops *ops, const lam_config *cfg, int M)
{
    return M + (ops->reaches ? ops->reaches(cfg) : 0);
}

size_t lam_mem_max_slots(const lam_config *cfg)
{
    return LAM_LAYER_SLOTS * (size_t)cfg->n_layer + 1;
}

size_t lam_slot_bytes(const lam_mem *mem, const lam_slot *slot)
{
    return (size_t)mem->B * (size_t)slot->cap * (size_t)slot->width *
           lam_class_size(mem->dev, slot->type);
}

void lam_mem_layout(lam_mem *mem, const lam_config *cfg, int full, lam_arena *arena)
{
    const lam_dims dims = lam_dims_of(cfg, mem->dev);
    mem->n_slots = mem->ops->slots(mem, cfg, full, mem->slots);
    for (int i = 0; i < mem->n_slots; i++) {
        lam_slot *slot = &mem->slots[i];
        slot->cap = slot->cap > 0 ? slot->cap : mem->M;
        slot->type = slot->source == LAM_FROM_LSE ? LAM_WIDE : LAM_ACT;
        slot->width = slot->source == LAM_FROM_X   ? dims.D
                      : slot->source == LAM_FROM_C ? dims.HK
                                                   : cfg->n_head;
        slot->n = 0;
        slot->rows = lam_arena_take(arena, lam_slot_bytes(mem, slot));
    }
}

void *lam_mem_take(const lam_segment *s, lam_arena *arena, lam_class type, size_t count)
{
    return lam_arena_take(arena, count * lam_class_size(s->dev, type));
}

void lam_mem_copy(const lam_segment *s, lam_view out, lam_view in, int rows)
{
    if (rows == 0)
        return;
    s->dev->ops->copy(s->dev, &(lam_copy){.blocks = s->B,
                                          .count = (size_t)rows * (size_t)s->dims.D,
                                          .type = LAM_ACT,
                                          .in = in,
                                          .out = out});
}

lam_evicted lam_mem_evicted(const lam_segment *s, int done)
{
    const int rows = s->mem->m + done - s->mem->M;
    return (lam_evicted){s->ctx - s->mem->m, rows > 0 ? rows : 0};
}

void lam_mem_reset(lam_mem *mem)
{
    mem->m = mem->prev = 0;
    mem->seen = 0;
    mem->apart = 0;
    for (int i = 0; i < mem->n_slots; i++)
        mem->slots[i].n = 0;
}

int lam_mem_context(const lam_mem *mem)
{
    int rows = 0;
    for (int i = 0; i < mem->n_slots; i++)
        rows += mem->slots[i].front && mem->slots[i].layer == 0 ? mem->slots[i].n : 0;
    return rows;
}

void *lam_slot_source_rows(const lam_segment *s, const lam_slot *slot)
{
    const lam_layer_rows *layer = &s->layer[slot->layer];
    return slot->source == LAM_FROM_X   ? layer->x
           : slot->source == LAM_FROM_C ? layer->c
                                        : layer->lse;
}

void lam_mem_load(const lam_segment *s)
{
    const lam_mem *mem = s->mem;
    for (int i = 0, at = 0; i < mem->n_slots; i++) {
        const lam_slot *slot = &mem->slots[i];
        const size_t width = (size_t)slot->width;
        at = i > 0 && slot[-1].layer == slot->layer ? at : 0;
        if (!slot->front || slot->n == 0)
            continue;
        if (slot->layer > 0 && lam_mem_climbs(s, slot->layer - 1))
            continue; /* the layer below computes them */
        const lam_view to = {
            lam_at(s->dev, slot->type, lam_slot_source_rows(s, slot), (size_t)at * width),
            (size_t)s->T * width};
        at += slot->n;
        if (mem->apart && slot->own) {
            lam_mem_load_streams(s, slot, to);
            continue;
        }
        s->dev->ops->copy(s->dev, &(lam_copy){.blocks = mem->B,
                                              .count = (size_t)slot->n * width,
                                              .type = slot->type,
                                              .in = {slot->rows, (size_t)slot->cap * width},
                                              .out = to});
    }
}

void lam_mem_commit(lam_mem *mem, const lam_segment *s, int done)
{
    const int have = s->ctx + done, most = mem->m + done, keep = most < mem->M ? most : mem->M;
    if (lam_mem_differs(s))
        lam_mem_commit_streams(mem, s, done);
    else if (mem->ops->commit)
        mem->ops->commit(mem, s, done);
    for (int i = 0; i < mem->n_slots; i++) {
        lam_slot *slot = &mem->slots[i];
        const size_t width = (size_t)slot->width;
        if (slot->own)
            continue;
        void *from = lam_at(s->dev, slot->type, lam_slot_source_rows(s, slot),
                            (size_t)(have - keep) * width);
        s->dev->ops->copy(s->dev, &(lam_copy){.blocks = mem->B,
                                              .count = (size_t)keep * width,
                                              .type = slot->type,
                                              .in = {from, (size_t)s->T * width},
                                              .out = {slot->rows, (size_t)slot->cap * width}});
        slot->n = keep;
    }
    const int unseen = lam_mem_rests(mem, s->cfg) ? mem->prev : 0;
    mem->prev = unseen < LAM_MAX_LEN - done ? unseen + done : LAM_MAX_LEN;
    mem->m = keep;
    mem->seen += done;
}

/* Layers and the slots that keep the newest rows go in step. */
lam_status lam_mem_resolve(lam_mem *mem, const char *label)
{
    mem->m = 0;
    for (int i = 0; i < mem->n_slots; i++)
        mem->m = mem->slots[i].own ? mem->m : mem->slots[i].n;
    for (int i = 0; i < mem->n_slots; i++) {
        const lam_slot *slot = &mem->slots[i], *like = mem->slots;
        while (strcmp(like->name, slot->name) != 0)
            like++;
        if (slot->n != (slot->own ? like->n : mem->m))
            return lam_fail(LAM_ERR_FORMAT, "%s: %d rows of %s in layer %d, others have %d", label,
                            slot->n, slot->name, slot->layer, slot->own ? like->n : mem->m);
    }
    if (mem->seen < 0 || mem->seen > LAM_MOST_SEEN)
        return lam_fail(LAM_ERR_FORMAT, "%s: %lld tokens were read, must be 0 to 2^60", label,
                        (long long)mem->seen);
    LAM_TRY(lam_mem_resolve_streams(mem, label));
    if (mem->m > 0 && mem->prev < 1)
        return lam_fail(LAM_ERR_FORMAT, "%s: %d remembered rows of a segment of %d tokens", label,
                        mem->m, mem->prev);
    return LAM_OK;
}
