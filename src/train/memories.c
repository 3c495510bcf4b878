/* memories.c -- see memories.h.
 *
 * In the file, tensor "G.NAME.L" is the slot NAME of group G and layer L: [B][n][width] of
 * the rows there are, as the device stores them.  Metadata "G.previous" is the length of the
 * previous segment, "G.seen" the number of tokens since the beginning. */
#include "train/memories.h"

#include "io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct group {
    lam_mem mem;
    void *base;     /* NULL for group 0, whose rows are the stack's */
    lam_tape *tape; /* work on these rows; the stack has it while the group is selected */
} group;

struct lam_memories {
    lam_stack *stack;
    lam_dev *dev;
    int n, now;
    group *groups;
};

static lam_status place_group(lam_memories *m, group *g)
{
    const lam_mem *own = lam_stack_mem(m->stack);
    const lam_config *cfg = lam_stack_segment(m->stack)->cfg;
    lam_arena arena = {0};
    g->mem = *own;
    g->mem.slots = calloc(lam_mem_max_slots(cfg), sizeof *g->mem.slots);
    if (!g->mem.slots)
        return lam_fail(LAM_ERR_MEMORY, "memory of %d groups: no memory", m->n);
    lam_mem_layout(&g->mem, cfg, 0, &arena);
    LAM_TRY(m->dev->ops->alloc(m->dev, &g->base, arena.used));
    arena = (lam_arena){.base = g->base, .size = arena.used};
    lam_mem_layout(&g->mem, cfg, 0, &arena);
    return LAM_OK;
}

lam_status lam_memories_create(lam_memories **out, lam_stack *stack, int n)
{
    *out = NULL;
    lam_memories *m = calloc(1, sizeof *m);
    if (m)
        *m = (lam_memories){.stack = stack,
                            .dev = lam_stack_segment(stack)->dev,
                            .n = n,
                            .groups = calloc((size_t)n, sizeof *m->groups)};
    if (!m || !m->groups) {
        free(m);
        return lam_fail(LAM_ERR_MEMORY, "memory of %d groups: no memory", n);
    }
    m->groups[0].mem = *lam_stack_mem(stack);
    lam_status status = LAM_OK;
    for (int i = 1; i < n && status == LAM_OK; i++)
        status = place_group(m, &m->groups[i]);
    if (status != LAM_OK) {
        lam_memories_free(m);
        return status;
    }
    *out = m;
    return LAM_OK;
}

void lam_memories_free(lam_memories *m)
{
    if (!m)
        return;
    lam_memories_select(m, 0);
    for (int i = 1; i < m->n; i++) {
        m->dev->ops->forget(m->dev, m->groups[i].tape);
        m->dev->ops->release(m->dev, m->groups[i].base);
        free(m->groups[i].mem.slots);
    }
    free(m->groups);
    free(m);
}

void lam_memories_select(lam_memories *m, int i)
{
    lam_mem *mem = lam_stack_mem(m->stack);
    lam_tape **tape = lam_stack_tape(m->stack);
    group *old = &m->groups[m->now], *next = &m->groups[i];
    old->mem = *mem;
    old->tape = *tape;
    *mem = next->mem;
    *tape = next->tape;
    m->now = i;
}

void lam_memories_reset(lam_memories *m)
{
    for (int i = 0; i < m->n; i++) {
        lam_memories_select(m, i);
        lam_stack_reset(m->stack);
    }
    lam_memories_select(m, 0);
}

/* ---- on disk ---- */

static const char *slot_name(char out[64], int g, const lam_slot *slot)
{
    snprintf(out, 64, "%d.%s.%d", g, slot->name, slot->layer);
    return out;
}

static lam_status declare(lam_memories *m, lam_st_writer *w)
{
    char name[64], value[32];
    for (int g = 0; g < m->n; g++) {
        const lam_mem *mem = &m->groups[g].mem;
        snprintf(name, sizeof name, "%d.previous", g);
        snprintf(value, sizeof value, "%d", mem->prev);
        LAM_TRY(lam_st_writer_meta(w, name, value));
        snprintf(name, sizeof name, "%d.seen", g);
        snprintf(value, sizeof value, "%lld", (long long)mem->seen);
        LAM_TRY(lam_st_writer_meta(w, name, value));
        for (int i = 0; i < mem->n_slots; i++) {
            const lam_slot *slot = &mem->slots[i];
            const lam_shape shape = {3, {mem->B, slot->n, slot->width}};
            LAM_TRY(lam_st_writer_add(w, slot_name(name, g, slot),
                                      lam_class_dtype(m->dev, slot->type), &shape));
        }
    }
    return LAM_OK;
}

/* A stream's valid rows are the first of those there is room for. */
typedef struct extent {
    size_t all, stream, rows; /* bytes of the slot, of one stream of it, of its valid rows */
} extent;

static extent extent_of(const lam_memories *m, const lam_mem *mem, const lam_slot *slot)
{
    const size_t row = (size_t)slot->width * lam_class_size(m->dev, slot->type);
    const size_t stream = (size_t)slot->cap * row;
    return (extent){(size_t)mem->B * stream, stream, (size_t)slot->n * row};
}

static lam_status write_slot(lam_memories *m, lam_st_writer *w, const lam_mem *mem,
                             const lam_slot *slot)
{
    const extent e = extent_of(m, mem, slot);
    char *const raw = malloc(e.all + 1);
    if (!raw)
        return lam_fail(LAM_ERR_MEMORY, "memory of layer %d: no memory to save it", slot->layer);
    lam_status status = m->dev->ops->download(m->dev, raw, slot->rows, e.all);
    for (int b = 0; b < mem->B && status == LAM_OK; b++)
        status = lam_st_writer_data(w, raw + (size_t)b * e.stream, e.rows);
    free(raw);
    return status;
}

lam_status lam_memories_save(lam_memories *m, const char *path)
{
    lam_st_writer *w;
    lam_memories_select(m, m->now); /* what the stack knows of its group */
    LAM_TRY(lam_st_writer_create(&w, path));
    lam_status status = declare(m, w);
    if (status == LAM_OK)
        status = lam_st_writer_begin(w);
    for (int g = 0; g < m->n; g++)
        for (int i = 0; i < m->groups[g].mem.n_slots && status == LAM_OK; i++)
            status = write_slot(m, w, &m->groups[g].mem, &m->groups[g].mem.slots[i]);
    if (status == LAM_OK)
        return lam_st_writer_finish(w);
    lam_st_writer_abort(w);
    return status;
}

static lam_status read_slot(lam_memories *m, const lam_safetensors *st, int g, lam_slot *slot)
{
    char name[64], have[128];
    lam_mem *mem = &m->groups[g].mem;
    const lam_st_tensor *t = lam_st_find(st, slot_name(name, g, slot));
    if (!t)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is missing", lam_st_path(st), name);
    const int64_t rows = t->shape.rank == 3 ? t->shape.dim[1] : -1;
    if (rows < 0 || rows > slot->cap || t->shape.dim[0] != mem->B || t->shape.dim[2] != slot->width)
        return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is %s, this run has [%d, up to %d, %d]",
                        lam_st_path(st), name, lam_shape_text(&t->shape, have, sizeof have), mem->B,
                        slot->cap, slot->width);
    const size_t n = lam_shape_count(&t->shape), bad = lam_finite_count(t->data, t->dtype, n);
    if (bad < n)
        return lam_fail(LAM_ERR_FORMAT, "%s: element %zu of tensor %s is not finite",
                        lam_st_path(st), bad, name);
    slot->n = (int)rows;

    const extent e = extent_of(m, mem, slot);
    char *const packed = malloc((size_t)mem->B * e.rows + 1), *const raw = calloc(1, e.all + 1);
    lam_status status = packed && raw ? LAM_OK
                                      : lam_fail(LAM_ERR_MEMORY, "%s: no memory for tensor %s",
                                                 lam_st_path(st), name);
    if (status == LAM_OK) {
        lam_convert(packed, lam_class_dtype(m->dev, slot->type), t->data, t->dtype, n);
        for (int b = 0; b < mem->B && e.rows > 0; b++)
            memcpy(raw + (size_t)b * e.stream, packed + (size_t)b * e.rows, e.rows);
        m->dev->ops->upload(m->dev, slot->rows, raw, e.all);
        status = m->dev->ops->sync(m->dev); /* raw goes away */
    }
    free(packed);
    free(raw);
    return status;
}

/* Metadata "G.WHAT", from 0 to `most`. */
static lam_status read_count(int64_t *out, const lam_safetensors *st, int g, const char *what,
                             int64_t most)
{
    char name[64], *end;
    snprintf(name, sizeof name, "%d.%s", g, what);
    const char *text = lam_st_meta(st, name);
    *out = text ? strtoll(text, &end, 10) : -1;
    if (!text || *end != '\0' || end == text || *out < 0 || *out > most)
        return lam_fail(LAM_ERR_FORMAT, "%s: metadata %s is not a length", lam_st_path(st), name);
    return LAM_OK;
}

static lam_status read_group(lam_memories *m, const lam_safetensors *st, int g)
{
    int64_t previous;
    lam_mem *mem = &m->groups[g].mem;
    LAM_TRY(read_count(&previous, st, g, "previous", LAM_MAX_LEN));
    LAM_TRY(read_count(&mem->seen, st, g, "seen", INT64_MAX));
    mem->prev = (int)previous;
    for (int i = 0; i < mem->n_slots; i++)
        LAM_TRY(read_slot(m, st, g, &mem->slots[i]));
    return lam_mem_settle(mem, lam_st_path(st));
}

lam_status lam_memories_load(lam_memories *m, const char *path)
{
    lam_safetensors *st;
    int tensors = 0;
    LAM_TRY(lam_st_open(&st, path));
    lam_memories_reset(m);
    m->groups[0].mem = *lam_stack_mem(m->stack);
    lam_status status = LAM_OK;
    for (int g = 0; g < m->n && status == LAM_OK; g++) {
        status = read_group(m, st, g);
        tensors += m->groups[g].mem.n_slots;
    }
    if (status == LAM_OK && lam_st_count(st) != tensors)
        status = lam_fail(LAM_ERR_FORMAT, "%s: %d tensors, this run has %d", path, lam_st_count(st),
                          tensors);
    lam_st_close(st);
    if (status == LAM_OK)
        *lam_stack_mem(m->stack) = m->groups[0].mem;
    else
        lam_memories_reset(m);
    return status;
}
