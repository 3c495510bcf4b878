/* pickle_fuzz.c -- whatever the bytes, parsing fails with a message or gives a tree whose every part can be
 * looked at; memory is bounded by the input. */
#include "io/pickle.h"

#include "fuzz/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

typedef struct walk {
    const uint8_t *data;
    size_t size;
    unsigned sum;
    int left; /* nodes to visit: the tree may be a thicket of shared nodes */
} walk;

static void look(walk *w, const lam_py *node, int depth);

static void look_list(walk *w, const lam_py_list *list, int depth)
{
    for (size_t i = 0; i < list->n; i++)
        look(w, list->v[i], depth);
}

static void look_object(walk *w, const lam_py_object *o, int depth)
{
    require(o->callable != NULL && lam_py_is(o->args, LAM_PY_TUPLE) && o->pairs.n % 2 == 0);
    look(w, o->callable, depth);
    look(w, o->args, depth);
    if (o->state)
        look(w, o->state, depth);
    look_list(w, &o->items, depth);
    look_list(w, &o->pairs, depth);
}

static void look(walk *w, const lam_py *node, int depth)
{
    require(node != NULL);
    if (depth > 100 || w->left-- <= 0)
        return;
    switch (node->kind) {
    case LAM_PY_TEXT:
    case LAM_PY_BYTES:
        require((const uint8_t *)node->as.text.s >= w->data &&
                node->as.text.n <= w->size - (size_t)((const uint8_t *)node->as.text.s - w->data));
        for (size_t i = 0; i < node->as.text.n; i++)
            w->sum += (unsigned char)node->as.text.s[i];
        break;
    case LAM_PY_DICT:
        require(node->as.list.n % 2 == 0);
        look_list(w, &node->as.list, depth + 1);
        break;
    case LAM_PY_LIST:
    case LAM_PY_TUPLE:
    case LAM_PY_SET:
        look_list(w, &node->as.list, depth + 1);
        break;
    case LAM_PY_GLOBAL:
        look(w, node->as.global[0], depth + 1);
        look(w, node->as.global[1], depth + 1);
        break;
    case LAM_PY_OBJECT:
        look_object(w, node->as.object, depth + 1);
        break;
    case LAM_PY_PERSISTENT:
        look(w, node->as.id, depth + 1);
        break;
    default:
        require(node->kind <= LAM_PY_OPAQUE);
    }
    lam_py_get(node, "key");
    lam_py_attr(node, "key");
    lam_py_item(node, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MACHINE = 1 << 16 }; /* marks, what malloc rounds up to */
    lam_pickle *p;
    const size_t most = LAM_PICKLE_FLOOR + 8 * size;
    memory_begin();
    const lam_status status = lam_pickle_parse(&p, "input", data, size, most);
    require(memory_peak() <= 2 * most + MACHINE); /* a list that grows may be there twice */
    if (status != LAM_OK) {
        require((status == LAM_ERR_FORMAT || status == LAM_ERR_UNSUPPORTED) && p == NULL);
        require(strncmp(lam_error(), "input: ", 7) == 0);
        return 0;
    }
    walk w = {data, size, 0, 10000};
    look(&w, lam_pickle_root(p), 0);
    lam_pickle_free(p);
    return 0;
}
