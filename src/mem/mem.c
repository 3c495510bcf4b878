/* mem.c -- finding a mechanism, and moving its state in and out of a segment. */
#include "mem/mem.h"

#include <string.h>

extern const lam_mem_ops lam_mem_none, lam_mem_xl, lam_mem_lamemo;

lam_status lam_mem_find(const lam_mem_ops **out, const char *name)
{
    static const lam_mem_ops *const all[] = {&lam_mem_none, &lam_mem_xl, &lam_mem_lamemo};
    *out = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(name, all[i]->name) == 0)
            *out = all[i];
    return *out ? LAM_OK : lam_fail(LAM_ERR_ARG, "memory %s: there are none, xl and lamemo", name);
}

void lam_mem_layout(lam_mem *mem, const lam_config *cfg, int full, lam_arena *arena)
{
    const lam_dims dims = lam_dims_of(cfg, mem->dev);
    mem->n_slots = mem->ops->slots(cfg, full, mem->slots);
    for (int i = 0; i < mem->n_slots; i++) {
        lam_slot *slot = &mem->slots[i];
        slot->type = slot->source == LAM_FROM_LSE ? LAM_WIDE : LAM_ACT;
        slot->width = slot->source == LAM_FROM_X   ? dims.D
                      : slot->source == LAM_FROM_C ? dims.HK
                                                   : cfg->n_head;
        slot->rows = lam_arena_take(arena, (size_t)mem->B * (size_t)mem->M * (size_t)slot->width *
                                               lam_class_size(mem->dev, slot->type));
    }
}

static void *source_rows(const lam_segment *s, const lam_slot *slot)
{
    const lam_layer_rows *layer = &s->layer[slot->layer];
    return slot->source == LAM_FROM_X   ? layer->x
           : slot->source == LAM_FROM_C ? layer->c
                                        : layer->lse;
}

void lam_mem_load(const lam_segment *s)
{
    const lam_mem *mem = s->mem;
    for (int i = 0; i < mem->n_slots && mem->m > 0; i++) {
        const lam_slot *slot = &mem->slots[i];
        const size_t width = (size_t)slot->width;
        if (slot->source != LAM_FROM_X)
            continue;
        s->dev->ops->copy(s->dev, &(lam_copy){.blocks = mem->B,
                                              .count = (size_t)mem->m * width,
                                              .type = slot->type,
                                              .in = {slot->rows, (size_t)mem->M * width},
                                              .out = {source_rows(s, slot), (size_t)s->T * width}});
    }
}

void lam_mem_commit(lam_mem *mem, const lam_segment *s, int done)
{
    const int have = s->ctx + done, keep = have < mem->M ? have : mem->M;
    for (int i = 0; i < mem->n_slots; i++) {
        const lam_slot *slot = &mem->slots[i];
        const size_t width = (size_t)slot->width;
        void *from =
            lam_at(s->dev, slot->type, source_rows(s, slot), (size_t)(have - keep) * width);
        s->dev->ops->copy(s->dev, &(lam_copy){.blocks = mem->B,
                                              .count = (size_t)keep * width,
                                              .type = slot->type,
                                              .in = {from, (size_t)s->T * width},
                                              .out = {slot->rows, (size_t)mem->M * width}});
    }
    mem->m = keep;
    mem->prev = done;
}
