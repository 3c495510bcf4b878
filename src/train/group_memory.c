/* group_memory.c -- see group_memory.h.
 *
 * In a file, tensor "G.NAME.L" is the slot NAME of group G, counted through the whole run, and layer L: [B][n][width] of
 * the rows there are, as the device stores them.  Metadata "G.previous" is the length of the
 * previous segment, "G.seen" the number of tokens since the beginning, and where streams remember different amounts
 * "G.streams" says what each has. */
#include "train/group_memory.h"

#include "io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct group {
    lam_mem mem;
    void *base;         /* NULL for group 0, whose rows are the stack's */
    lam_graphs *graphs; /* work on these rows; the stack has it while the group is selected */
} group;

struct lam_group_memory {
    lam_stack *stack;
    lam_dev *dev;
    int first, n, now;
    group *groups;
};

static lam_status place_group(lam_group_memory *m, group *g)
{
    const lam_mem *own = lam_stack_mem(m->stack);
    const lam_config *cfg = lam_stack_segment(m->stack)->cfg;
    lam_arena arena = {0};
    g->mem = *own;
    g->mem.slots = calloc(2 * lam_mem_max_slots(cfg), sizeof *g->mem.slots);
    g->mem.streams = calloc((size_t)own->B, sizeof *g->mem.streams);
    if (!g->mem.slots || !g->mem.streams)
        return lam_fail(LAM_ERR_MEMORY, "memory of %d groups: no memory", m->n);
    g->mem.view = g->mem.slots + lam_mem_max_slots(cfg);
    lam_mem_layout(&g->mem, cfg, 0, &arena);
    LAM_TRY(m->dev->ops->alloc(m->dev, &g->base, arena.used));
    arena = (lam_arena){.base = g->base, .size = arena.used};
    lam_mem_layout(&g->mem, cfg, 0, &arena);
    return LAM_OK;
}

lam_status lam_group_memory_create(lam_group_memory **out, lam_stack *stack, lam_groups groups)
{
    const int n = groups.n;
    *out = NULL;
    lam_group_memory *m = calloc(1, sizeof *m);
    if (m)
        *m = (lam_group_memory){.stack = stack,
                                .dev = lam_stack_segment(stack)->dev,
                                .first = groups.first,
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
        lam_group_memory_free(m);
        return status;
    }
    *out = m;
    return LAM_OK;
}

void lam_group_memory_free(lam_group_memory *m)
{
    if (!m)
        return;
    lam_group_memory_select(m, 0);
    for (int i = 1; i < m->n; i++) {
        m->dev->ops->free_graphs(m->dev, m->groups[i].graphs);
        m->dev->ops->release(m->dev, m->groups[i].base);
        free(m->groups[i].mem.slots);
        free(m->groups[i].mem.streams);
    }
    free(m->groups);
    free(m);
}

void lam_group_memory_select(lam_group_memory *m, int i)
{
    lam_mem *mem = lam_stack_mem(m->stack);
    lam_graphs **graphs = lam_stack_graphs(m->stack);
    group *old = &m->groups[m->now], *next = &m->groups[i];
    old->mem = *mem;
    old->graphs = *graphs;
    *mem = next->mem;
    *graphs = next->graphs;
    m->now = i;
}

void lam_group_memory_reset(lam_group_memory *m)
{
    for (int i = 0; i < m->n; i++) {
        lam_group_memory_select(m, i);
        lam_stack_reset(m->stack);
    }
    lam_group_memory_select(m, 0);
}

/* ---- saving and loading ---- */

lam_groups lam_group_memory_groups(const lam_group_memory *m)
{
    return (lam_groups){m->first, m->n};
}

static const char *slot_name(char out[64], const lam_group_memory *m, int i, const lam_slot *slot)
{
    snprintf(out, 64, "%d.%s.%d", m->first + i, slot->name, slot->layer);
    return out;
}

/* Metadata "NUMBER.streams", where streams differ: m, seen and the rows of own slots of each. */
enum { STREAM_NUMBERS = 2 + LAM_LAYER_SLOTS, STREAM_TEXT = 24 * STREAM_NUMBERS };

static lam_status declare_streams(lam_group_memory *m, lam_st_writer *w, int g)
{
    const lam_mem *mem = &m->groups[g].mem;
    const size_t room = (size_t)mem->B * STREAM_TEXT + 1;
    char name[64], *const text = malloc(room);
    size_t used = 0;
    if (!text)
        return lam_fail(LAM_ERR_MEMORY, "memory of %d streams: no memory to save it", mem->B);
    for (int b = 0; b < mem->B; b++) {
        const lam_mem_stream *s = &mem->streams[b];
        used += (size_t)snprintf(text + used, room - used, "%s%d %lld", b > 0 ? " " : "", s->m,
                                 (long long)s->seen);
        for (int k = 0; k < LAM_LAYER_SLOTS; k++)
            used += (size_t)snprintf(text + used, room - used, " %d", s->n[k]);
    }
    snprintf(name, sizeof name, "%d.streams", m->first + g);
    const lam_status status = lam_st_writer_meta(w, name, text);
    free(text);
    return status;
}

static lam_status declare(lam_group_memory *m, lam_st_writer *w, int from, int n)
{
    char name[64], value[32];
    for (int g = from; g < from + n; g++) {
        const lam_mem *mem = &m->groups[g].mem;
        snprintf(name, sizeof name, "%d.previous", m->first + g);
        snprintf(value, sizeof value, "%d", mem->prev);
        LAM_TRY(lam_st_writer_meta(w, name, value));
        snprintf(name, sizeof name, "%d.seen", m->first + g);
        snprintf(value, sizeof value, "%lld", (long long)mem->seen);
        LAM_TRY(lam_st_writer_meta(w, name, value));
        if (mem->apart)
            LAM_TRY(declare_streams(m, w, g));
        for (int i = 0; i < mem->n_slots; i++) {
            const lam_slot *slot = &mem->slots[i];
            const lam_shape shape = {3, {mem->B, slot->n, slot->width}};
            LAM_TRY(lam_st_writer_add(w, slot_name(name, m, g, slot),
                                      lam_class_dtype(m->dev, slot->type), &shape));
        }
    }
    return LAM_OK;
}

/* A stream's valid rows are the first of those there is room for. */
typedef struct extent {
    size_t all, stream, rows; /* bytes of the slot, of one stream of it, of its valid rows */
} extent;

static extent extent_of(const lam_group_memory *m, const lam_mem *mem, const lam_slot *slot)
{
    const size_t row = (size_t)slot->width * lam_class_size(m->dev, slot->type);
    const size_t stream = (size_t)slot->cap * row;
    return (extent){(size_t)mem->B * stream, stream, (size_t)slot->n * row};
}

static lam_status write_slot(lam_group_memory *m, lam_st_writer *w, const lam_mem *mem,
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

lam_status lam_group_memory_save(lam_group_memory *m, const char *path, int from, int n)
{
    lam_st_writer *w;
    lam_group_memory_select(m, m->now); /* what the stack knows of its group */
    LAM_TRY(lam_st_writer_create(&w, path));
    lam_status status = declare(m, w, from, n);
    if (status == LAM_OK)
        status = lam_st_writer_begin(w);
    for (int g = from; g < from + n; g++)
        for (int i = 0; i < m->groups[g].mem.n_slots && status == LAM_OK; i++)
            status = write_slot(m, w, &m->groups[g].mem, &m->groups[g].mem.slots[i]);
    return lam_st_writer_end(w, status);
}

static lam_status read_slot(lam_group_memory *m, const lam_safetensors *st, int g, lam_slot *slot)
{
    char name[64], have[128];
    lam_mem *mem = &m->groups[g].mem;
    const lam_st_tensor *t = lam_st_find(st, slot_name(name, m, g, slot));
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

/* Metadata "NUMBER.WHAT", from 0 to `most`. */
static lam_status read_count(int64_t *out, const lam_safetensors *st, int number, const char *what,
                             int64_t most)
{
    char name[64], *end;
    snprintf(name, sizeof name, "%d.%s", number, what);
    const char *text = lam_st_meta(st, name);
    *out = text ? strtoll(text, &end, 10) : -1;
    if (!text || *end != '\0' || end == text || *out < 0 || *out > most)
        return lam_fail(LAM_ERR_FORMAT, "%s: metadata %s is not a length", lam_st_path(st), name);
    return LAM_OK;
}

static lam_status read_streams(lam_mem *mem, const char *text, const char *path)
{
    for (int b = 0; b < mem->B; b++) {
        int64_t number[STREAM_NUMBERS];
        for (int k = 0; k < STREAM_NUMBERS; k++) {
            char *end;
            number[k] = strtoll(text, &end, 10);
            if (end == text || number[k] < 0 || number[k] > (k == 1 ? LAM_MOST_SEEN : LAM_MAX_LEN))
                return lam_fail(LAM_ERR_FORMAT, "%s: what stream %d remembers is not said", path,
                                b);
            text = end;
        }
        mem->streams[b] = (lam_mem_stream){.m = (int)number[0], .seen = number[1]};
        for (int k = 0; k < LAM_LAYER_SLOTS; k++)
            mem->streams[b].n[k] = (int)number[2 + k];
    }
    mem->apart = 1;
    return LAM_OK;
}

static lam_status read_group(lam_group_memory *m, const lam_safetensors *st, int g)
{
    int64_t previous;
    lam_mem *mem = &m->groups[g].mem;
    LAM_TRY(read_count(&previous, st, m->first + g, "previous", LAM_MAX_LEN));
    LAM_TRY(read_count(&mem->seen, st, m->first + g, "seen", INT64_MAX));
    mem->prev = (int)previous;
    for (int i = 0; i < mem->n_slots; i++)
        LAM_TRY(read_slot(m, st, g, &mem->slots[i]));
    char name[64];
    snprintf(name, sizeof name, "%d.streams", m->first + g);
    if (lam_st_meta(st, name))
        LAM_TRY(read_streams(mem, lam_st_meta(st, name), lam_st_path(st)));
    return lam_mem_resolve(mem, lam_st_path(st));
}

lam_status lam_group_memory_load(lam_group_memory *m, const char *path, int from, int n)
{
    lam_safetensors *st;
    int tensors = 0;
    LAM_TRY(lam_st_open(&st, path));
    if (from == 0)
        lam_group_memory_reset(m);
    lam_group_memory_select(m, 0);
    m->groups[0].mem = *lam_stack_mem(m->stack);
    lam_status status = LAM_OK;
    for (int g = from; g < from + n && status == LAM_OK; g++) {
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
        lam_group_memory_reset(m);
    return status;
}
