/* pickle_ops.c -- the opcodes of a pickle, on the machine of pickle_machine.h. See pickle.h.
 *
 * Covers every opcode that Python's picklers write for protocols 2 to 5. Each does to nodes what it would
 * do to objects, and calls nothing. The loop does not recurse, so depth costs no C stack. */
#include "io/pickle_machine.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
enum opcode {
    MARK = '(', STOP = '.', POP = '0', POP_MARK = '1', DUP = '2',
    BINBYTES = 'B', SHORT_BINBYTES = 'C', BINFLOAT = 'G', BININT = 'J', BININT1 = 'K', BININT2 = 'M',
    NONE = 'N', BINPERSID = 'Q', REDUCE = 'R', BINSTRING = 'T', SHORT_BINSTRING = 'U',
    BINUNICODE = 'X', APPEND = 'a', BUILD = 'b', GLOBAL = 'c', DICT = 'd', EMPTY_DICT = '}',
    APPENDS = 'e', BINGET = 'h', LONG_BINGET = 'j', LIST = 'l', EMPTY_LIST = ']', BINPUT = 'q',
    LONG_BINPUT = 'r', SETITEM = 's', TUPLE = 't', EMPTY_TUPLE = ')', SETITEMS = 'u',
    PROTO = 0x80, NEWOBJ = 0x81, TUPLE1 = 0x85, TUPLE2 = 0x86, TUPLE3 = 0x87, NEWTRUE = 0x88,
    NEWFALSE = 0x89, LONG1 = 0x8a, LONG4 = 0x8b, SHORT_BINUNICODE = 0x8c, BINUNICODE8 = 0x8d,
    BINBYTES8 = 0x8e, EMPTY_SET = 0x8f, ADDITEMS = 0x90, FROZENSET = 0x91, NEWOBJ_EX = 0x92,
    STACK_GLOBAL = 0x93, MEMOIZE = 0x94, FRAME = 0x95
};
/* clang-format on */

/* ---- values ---- */

static lam_status do_constant(lam_pm *m, lam_py_kind kind, int64_t value)
{
    lam_py *node;
    LAM_TRY(lam_py_constant(m->p, kind, value, &node));
    return lam_pm_push(m, node);
}

static lam_status do_uint(lam_pm *m, int width)
{
    uint64_t n;
    LAM_TRY(lam_pm_uint(m, width, &n));
    /* BININT alone is signed */
    return do_constant(m, LAM_PY_INT, width == 4 ? (int32_t)(uint32_t)n : (int64_t)n);
}

/* Two's complement of any length, lowest byte first. */
static lam_status do_long(lam_pm *m, int width)
{
    const unsigned char *b;
    uint64_t n, value;
    lam_py *node;
    LAM_TRY(lam_pm_uint(m, width, &n));
    LAM_TRY(lam_pm_take(m, n, &b));
    if (n > 8)
        return lam_pm_new(m, LAM_PY_OPAQUE, &node);
    value = n > 0 && b[n - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = (size_t)n; i > 0; i--)
        value = value << 8 | b[i - 1];
    return do_constant(m, LAM_PY_INT, (int64_t)value);
}

static lam_status do_float(lam_pm *m)
{
    const unsigned char *b;
    uint64_t bits = 0;
    lam_py *node;
    LAM_TRY(lam_pm_take(m, 8, &b));
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | b[i]; /* highest byte first */
    LAM_TRY(lam_pm_new(m, LAM_PY_FLOAT, &node));
    memcpy(&node->as.real, &bits, sizeof bits);
    return LAM_OK;
}

static lam_status do_text(lam_pm *m, lam_py_kind kind, int width)
{
    const unsigned char *b;
    uint64_t n;
    lam_py *node;
    LAM_TRY(lam_pm_uint(m, width, &n));
    LAM_TRY(lam_pm_take(m, n, &b));
    LAM_TRY(lam_pm_new(m, kind, &node));
    node->as.text = (lam_py_text){(const char *)b, (size_t)n};
    return LAM_OK;
}

static lam_status do_global(lam_pm *m)
{
    lam_py_text line;
    lam_py *node, *word;
    LAM_TRY(lam_pm_new(m, LAM_PY_GLOBAL, &node));
    for (int i = 0; i < 2; i++) {
        LAM_TRY(lam_pm_line(m, &line));
        LAM_TRY(lam_py_new(m->p, LAM_PY_TEXT, &word));
        word->as.text = line;
        node->as.global[i] = word;
    }
    return LAM_OK;
}

static lam_status do_stack_global(lam_pm *m)
{
    lam_py *node, *name, *module;
    LAM_TRY(lam_pm_pop(m, &name));
    LAM_TRY(lam_pm_pop(m, &module));
    if (!lam_py_is(name, LAM_PY_TEXT) || !lam_py_is(module, LAM_PY_TEXT))
        return lam_pm_bad(m, "a class whose name is no text");
    LAM_TRY(lam_pm_new(m, LAM_PY_GLOBAL, &node));
    node->as.global[0] = module;
    node->as.global[1] = name;
    return LAM_OK;
}

/* ---- containers ---- */

/* What lies above the last mark, as a new container. */
static lam_status do_collect(lam_pm *m, lam_py_kind kind)
{
    size_t height;
    lam_py *node;
    LAM_TRY(lam_pm_pop_mark(m, &height));
    if (kind == LAM_PY_DICT && (m->stack.n - height) % 2)
        return lam_pm_bad(m, "a key without a value");
    LAM_TRY(lam_py_new(m->p, kind, &node));
    LAM_TRY(lam_py_push_all(m->p, &node->as.list, &m->stack, height));
    m->stack.n = height;
    return lam_pm_push(m, node);
}

static lam_status do_tuple(lam_pm *m, size_t n)
{
    lam_py *node;
    if (m->stack.n - lam_pm_ground(m) < n)
        return lam_pm_bad(m, "takes from an empty stack");
    LAM_TRY(lam_py_new(m->p, LAM_PY_TUPLE, &node));
    LAM_TRY(lam_py_push_all(m->p, &node->as.list, &m->stack, m->stack.n - n));
    m->stack.n -= n;
    return lam_pm_push(m, node);
}

/* Which list of a node takes items, or pairs; NULL: none. */
static lam_py_list *filled_by_items(lam_py *node, lam_py_kind kind)
{
    if (node->kind == kind)
        return &node->as.list;
    return node->kind != LAM_PY_OBJECT ? NULL
           : kind == LAM_PY_DICT       ? &node->as.object->pairs
                                       : &node->as.object->items;
}

/* Moves what lies above `height` into the container below it. */
static lam_status fill_from(lam_pm *m, lam_py_kind kind, size_t height)
{
    const size_t n = m->stack.n - height;
    if (height <= lam_pm_ground(m))
        return lam_pm_bad(m, "no container to fill");
    lam_py_list *list = filled_by_items(m->stack.v[height - 1], kind);
    if (!list || (kind == LAM_PY_DICT && n % 2))
        return lam_pm_bad(m, "fills something that is no such container");
    LAM_TRY(lam_py_push_all(m->p, list, &m->stack, height));
    m->stack.n = height;
    return LAM_OK;
}

static lam_status do_fill(lam_pm *m, lam_py_kind kind)
{
    size_t height;
    LAM_TRY(lam_pm_pop_mark(m, &height));
    return fill_from(m, kind, height);
}

static lam_status do_fill_one(lam_pm *m, lam_py_kind kind, size_t n)
{
    if (m->stack.n - lam_pm_ground(m) < n)
        return lam_pm_bad(m, "takes from an empty stack");
    return fill_from(m, kind, m->stack.n - n);
}

/* ---- objects ---- */

/* REDUCE: callable(*args); NEWOBJ: cls.__new__(cls, *args); NEWOBJ_EX has keywords too, which are left. */
static lam_status do_object(lam_pm *m, enum opcode op)
{
    lam_py *node, *args, *callable, *keywords;
    if (op == NEWOBJ_EX)
        LAM_TRY(lam_pm_pop(m, &keywords));
    LAM_TRY(lam_pm_pop(m, &args));
    LAM_TRY(lam_pm_pop(m, &callable));
    if (!lam_py_is(args, LAM_PY_TUPLE))
        return lam_pm_bad(m, "the arguments of a call are no tuple");
    LAM_TRY(lam_pm_new(m, LAM_PY_OBJECT, &node));
    node->as.object->callable = callable;
    node->as.object->args = args;
    return LAM_OK;
}

static lam_status do_build(lam_pm *m)
{
    lam_py *state, *object;
    LAM_TRY(lam_pm_pop(m, &state));
    LAM_TRY(lam_pm_top(m, &object));
    if (object->kind != LAM_PY_OBJECT)
        return lam_pm_bad(m, "gives a state to something that has none");
    object->as.object->state = state;
    return LAM_OK;
}

static lam_status do_persistent(lam_pm *m)
{
    lam_py *node, *id;
    LAM_TRY(lam_pm_pop(m, &id));
    LAM_TRY(lam_pm_new(m, LAM_PY_PERSISTENT, &node));
    node->as.id = id;
    return LAM_OK;
}

static lam_status do_put(lam_pm *m, int width)
{
    uint64_t index;
    LAM_TRY(lam_pm_uint(m, width, &index));
    return lam_pm_put(m, index);
}

static lam_status do_get(lam_pm *m, int width)
{
    uint64_t index;
    LAM_TRY(lam_pm_uint(m, width, &index));
    if (index >= m->memo.n || !m->memo.v[index])
        return lam_pm_bad(m, "a memo number that was never put");
    return lam_pm_push(m, m->memo.v[index]);
}

/* ---- the loop ---- */

static lam_status do_stack(lam_pm *m, enum opcode op)
{
    lam_py *node;
    size_t height;
    switch (op) {
    case MARK:
        if (m->n_marks == LAM_PICKLE_MAX_MARKS)
            return lam_pm_bad(m, "nested too deeply");
        m->marks[m->n_marks++] = m->stack.n;
        return LAM_OK;
    case POP: /* of a mark too, as Python does */
        if (m->n_marks > 0 && m->stack.n == lam_pm_ground(m))
            return lam_pm_pop_mark(m, &height);
        return lam_pm_pop(m, &node);
    case POP_MARK:
        LAM_TRY(lam_pm_pop_mark(m, &height));
        m->stack.n = height;
        return LAM_OK;
    default:
        LAM_TRY(lam_pm_top(m, &node));
        return lam_pm_push(m, node);
    }
}

static lam_status do_frame(lam_pm *m, enum opcode op)
{
    uint64_t n;
    LAM_TRY(lam_pm_uint(m, op == PROTO ? 1 : 8, &n));
    if (op == PROTO && (n < 2 || n > 5))
        return lam_fail(LAM_ERR_UNSUPPORTED, "%s: a pickle of protocol %llu; 2 to 5 are read",
                        m->p->label, (unsigned long long)n);
    return LAM_OK; /* frames only help to read ahead */
}

static lam_status step(lam_pm *m, enum opcode op)
{
    lam_py *node;
    /* clang-format off */
    switch (op) {
    case PROTO: case FRAME: return do_frame(m, op);
    case MARK: case POP: case POP_MARK: case DUP: return do_stack(m, op);
    case NONE: return do_constant(m, LAM_PY_NONE, 0);
    case NEWTRUE: return do_constant(m, LAM_PY_BOOL, 1);
    case NEWFALSE: return do_constant(m, LAM_PY_BOOL, 0);
    case BININT: return do_uint(m, 4);
    case BININT1: return do_uint(m, 1);
    case BININT2: return do_uint(m, 2);
    case LONG1: return do_long(m, 1);
    case LONG4: return do_long(m, 4);
    case BINFLOAT: return do_float(m);
    case BINUNICODE: return do_text(m, LAM_PY_TEXT, 4);
    case SHORT_BINUNICODE: return do_text(m, LAM_PY_TEXT, 1);
    case BINUNICODE8: return do_text(m, LAM_PY_TEXT, 8);
    case BINSTRING: case BINBYTES: return do_text(m, LAM_PY_BYTES, 4);
    case SHORT_BINSTRING: case SHORT_BINBYTES: return do_text(m, LAM_PY_BYTES, 1);
    case BINBYTES8: return do_text(m, LAM_PY_BYTES, 8);
    case EMPTY_LIST: return lam_pm_new(m, LAM_PY_LIST, &node);
    case EMPTY_TUPLE: return do_constant(m, LAM_PY_TUPLE, 0);
    case EMPTY_DICT: return lam_pm_new(m, LAM_PY_DICT, &node);
    case EMPTY_SET: return lam_pm_new(m, LAM_PY_SET, &node);
    case LIST: return do_collect(m, LAM_PY_LIST);
    case TUPLE: return do_collect(m, LAM_PY_TUPLE);
    case DICT: return do_collect(m, LAM_PY_DICT);
    case FROZENSET: return do_collect(m, LAM_PY_SET);
    case TUPLE1: return do_tuple(m, 1);
    case TUPLE2: return do_tuple(m, 2);
    case TUPLE3: return do_tuple(m, 3);
    case APPEND: return do_fill_one(m, LAM_PY_LIST, 1);
    case APPENDS: return do_fill(m, LAM_PY_LIST);
    case ADDITEMS: return do_fill(m, LAM_PY_SET);
    case SETITEM: return do_fill_one(m, LAM_PY_DICT, 2);
    case SETITEMS: return do_fill(m, LAM_PY_DICT);
    case BINGET: return do_get(m, 1);
    case LONG_BINGET: return do_get(m, 4);
    case BINPUT: return do_put(m, 1);
    case LONG_BINPUT: return do_put(m, 4);
    case MEMOIZE: return lam_pm_put(m, m->memoized++);
    case GLOBAL: return do_global(m);
    case STACK_GLOBAL: return do_stack_global(m);
    case REDUCE: case NEWOBJ: case NEWOBJ_EX: return do_object(m, op);
    case BUILD: return do_build(m);
    case BINPERSID: return do_persistent(m);
    case STOP: break;
    }
    /* clang-format on */
    return lam_fail(LAM_ERR_UNSUPPORTED, "%s: pickle, byte %zu: opcode 0x%02x is not read",
                    m->p->label, m->op_at, (unsigned)op);
}

static lam_status run(lam_pm *m)
{
    lam_py *root;
    while (m->at < m->size) {
        m->op_at = m->at;
        const enum opcode op = (enum opcode)m->data[m->at++];
        if (op != STOP) {
            LAM_TRY(step(m, op));
            continue;
        }
        LAM_TRY(lam_pm_pop(m, &root));
        if (m->stack.n > 0 || m->n_marks > 0)
            return lam_pm_bad(m, "values are left on the stack");
        if (m->at != m->size)
            return lam_pm_bad(m, "it stops before its end");
        m->p->root = root;
        return LAM_OK;
    }
    m->op_at = m->at;
    return lam_pm_bad(m, "it ends without a stop");
}

lam_status lam_pickle_run(lam_pickle *p, const unsigned char *data, size_t size)
{
    lam_pm *m = calloc(1, sizeof *m);
    if (!m)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for its pickle", p->label);
    m->p = p;
    m->data = data;
    m->size = size;
    const lam_status status = run(m);
    free(m->stack.v);
    free(m->memo.v);
    free(m);
    return status;
}
