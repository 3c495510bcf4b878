/* pickle.c -- creates, frees and queries the nodes of a pickle. See pickle.h. */
#include "io/pickle_int.h"

#include "core/size.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 1024,
    OVERHEAD = 16 /* what malloc adds to a small block */
};

struct lam_py_chunk {
    lam_py_chunk *next;
    int used;
    lam_py nodes[CHUNK];
};

static lam_status no_memory(const lam_pickle *p)
{
    return lam_fail(LAM_ERR_MEMORY, "%s: no memory for its pickle", p->label);
}

/* ---- constructing values ---- */

/* Before every allocation that stays. */
static lam_status charge(lam_pickle *p, size_t bytes)
{
    if (bytes > p->most - p->used)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: its pickle describes objects of more than %zu bytes, the most for a "
                        "file of its size",
                        p->label, p->most);
    p->used += bytes;
    return LAM_OK;
}

lam_status lam_py_new(lam_pickle *p, lam_py_kind kind, lam_py **out)
{
    *out = NULL;
    if (!p->chunks || p->chunks->used == CHUNK) {
        LAM_TRY(charge(p, sizeof *p->chunks));
        lam_py_chunk *chunk = malloc(sizeof *chunk);
        if (!chunk)
            return no_memory(p);
        chunk->next = p->chunks;
        chunk->used = 0;
        p->chunks = chunk;
    }
    lam_py *node = &p->chunks->nodes[p->chunks->used];
    memset(node, 0, sizeof *node);
    node->kind = kind;
    if (kind == LAM_PY_OBJECT) {
        LAM_TRY(charge(p, sizeof *node->as.object + OVERHEAD));
        if (!(node->as.object = calloc(1, sizeof *node->as.object)))
            return no_memory(p);
    }
    p->chunks->used++;
    *out = node;
    return LAM_OK;
}

lam_status lam_py_constant(lam_pickle *p, lam_py_kind kind, int64_t value, lam_py **out)
{
    lam_py **const shared = kind == LAM_PY_NONE                      ? &p->none
                            : kind == LAM_PY_TUPLE                   ? &p->empty
                            : kind == LAM_PY_BOOL                    ? &p->truth[value != 0]
                            : value >= 0 && value < LAM_PICKLE_SMALL ? &p->small[value]
                                                                     : NULL;
    if (shared && *shared) {
        *out = *shared;
        return LAM_OK;
    }
    LAM_TRY(lam_py_new(p, kind, out));
    (*out)->as.integer = value; /* 0 of None and the empty tuple */
    if (shared)
        *shared = *out;
    return LAM_OK;
}

/* Lists grow by half: the items of one that is filled bit by bit are moved three times on average. */
static lam_status make_room(lam_pickle *p, lam_py_list *list, size_t more)
{
    size_t room;
    if (!lam_size_muladd(&room, 1, more, list->n))
        return no_memory(p);
    if (room <= list->room)
        return LAM_OK;
    room += list->n / 2;
    LAM_TRY(charge(p, (room - list->room) * sizeof *list->v + (list->v ? 0 : OVERHEAD)));
    lam_py **v = realloc(list->v, room * sizeof *v);
    if (!v)
        return no_memory(p);
    list->v = v;
    list->room = room;
    return LAM_OK;
}

lam_status lam_py_push(lam_pickle *p, lam_py_list *list, lam_py *item)
{
    LAM_TRY(make_room(p, list, 1));
    list->v[list->n++] = item;
    return LAM_OK;
}

lam_status lam_py_push_all(lam_pickle *p, lam_py_list *to, const lam_py_list *from, size_t first)
{
    const size_t n = from->n - first;
    if (n == 0)
        return LAM_OK;
    LAM_TRY(make_room(p, to, n));
    memcpy(to->v + to->n, from->v + first, n * sizeof *to->v);
    to->n += n;
    return LAM_OK;
}

static void free_inside(lam_py *node)
{
    switch (node->kind) {
    case LAM_PY_LIST:
    case LAM_PY_TUPLE:
    case LAM_PY_SET:
    case LAM_PY_DICT:
        free(node->as.list.v);
        break;
    case LAM_PY_OBJECT:
        free(node->as.object->items.v);
        free(node->as.object->pairs.v);
        free(node->as.object);
        break;
    default:
        break;
    }
}

/* By chunks and not along the tree: depth and cycles do not matter. */
void lam_pickle_free(lam_pickle *p)
{
    if (!p)
        return;
    while (p->chunks) {
        lam_py_chunk *chunk = p->chunks;
        for (int i = 0; i < chunk->used; i++)
            free_inside(&chunk->nodes[i]);
        p->chunks = chunk->next;
        free(chunk);
    }
    free(p);
}

lam_status lam_pickle_parse(lam_pickle **out, const char *label, const void *data, size_t size,
                            size_t most)
{
    *out = NULL;
    lam_pickle *p = calloc(1, sizeof *p);
    if (!p)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for its pickle", label);
    p->label = label;
    p->most = most;
    const lam_status status = lam_pickle_run(p, data, size);
    p->label = NULL;
    if (status == LAM_OK)
        *out = p;
    else
        lam_pickle_free(p);
    return status;
}

/* ---- accessors ---- */

const lam_py *lam_pickle_root(const lam_pickle *p)
{
    return p->root;
}

int lam_py_is(const lam_py *node, lam_py_kind kind)
{
    return node && node->kind == kind;
}

int lam_py_text_is(const lam_py *node, const char *text)
{
    return lam_py_is(node, LAM_PY_TEXT) && node->as.text.n == strlen(text) &&
           memcmp(node->as.text.s, text, node->as.text.n) == 0;
}

int lam_py_global_is(const lam_py *node, const char *module, const char *name)
{
    return lam_py_is(node, LAM_PY_GLOBAL) &&
           (!module || lam_py_text_is(node->as.global[0], module)) &&
           lam_py_text_is(node->as.global[1], name);
}

int lam_py_made_by(const lam_py *node, const char *module, const char *name)
{
    return lam_py_is(node, LAM_PY_OBJECT) &&
           lam_py_global_is(node->as.object->callable, module, name);
}

const lam_py_list *lam_py_pairs(const lam_py *node)
{
    if (lam_py_is(node, LAM_PY_DICT))
        return &node->as.list;
    if (!lam_py_is(node, LAM_PY_OBJECT))
        return NULL;
    const lam_py_object *o = node->as.object;
    if (o->pairs.n > 0)
        return &o->pairs;
    /* Counter({...}) */
    const lam_py *only = lam_py_item(o->args, 0);
    return lam_py_is(only, LAM_PY_DICT) && o->args->as.list.n == 1 ? &only->as.list : NULL;
}

const lam_py *lam_py_get(const lam_py *node, const char *key)
{
    const lam_py_list *pairs = lam_py_pairs(node);
    for (size_t i = pairs ? pairs->n : 0; i >= 2; i -= 2)
        if (lam_py_text_is(pairs->v[i - 2], key))
            return pairs->v[i - 1];
    return NULL;
}

const lam_py *lam_py_attr(const lam_py *node, const char *name)
{
    if (!lam_py_is(node, LAM_PY_OBJECT))
        return NULL;
    const lam_py *state = node->as.object->state;
    return lam_py_is(state, LAM_PY_DICT) ? lam_py_get(state, name) : NULL;
}

const lam_py *lam_py_item(const lam_py *node, size_t i)
{
    if (!lam_py_is(node, LAM_PY_LIST) && !lam_py_is(node, LAM_PY_TUPLE))
        return NULL;
    return i < node->as.list.n ? node->as.list.v[i] : NULL;
}
