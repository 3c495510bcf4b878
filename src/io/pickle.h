/* pickle.h -- reads Python pickles as a tree of plain values; nothing in them is executed.
 *
 * A pickle is a program for a small stack machine that may call any Python function. This reader builds
 * what the program describes and calls nothing: a call or an instance becomes an LAM_PY_OBJECT with the
 * name of the callable, its arguments and its state, and the caller uses the names it knows. Unknown
 * classes are therefore harmless, and so is os.system.
 *
 * Protocols 2 to 5. Refused: the text opcodes of protocols 0 and 1 (except GLOBAL), the extension registry,
 * out-of-band buffers. Memory is bounded by the caller's limit: a few bytes of a pickle can describe an
 * object, and a compressed pickle can hold millions. The tree may share nodes and contain cycles, like
 * Python objects: walk it with a limit on depth and on the number of nodes. */
#ifndef LAM_IO_PICKLE_H
#define LAM_IO_PICKLE_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef enum lam_py_kind {
    LAM_PY_NONE,
    LAM_PY_BOOL,
    LAM_PY_INT,
    LAM_PY_FLOAT,
    LAM_PY_TEXT, /* str: UTF-8 as found, not checked */
    LAM_PY_BYTES,
    LAM_PY_LIST,
    LAM_PY_TUPLE,
    LAM_PY_SET,
    LAM_PY_DICT,
    LAM_PY_GLOBAL,     /* a class or function by name */
    LAM_PY_OBJECT,     /* a call of `callable`, or an instance of it */
    LAM_PY_PERSISTENT, /* something outside the pickle, by its id */
    LAM_PY_OPAQUE      /* an integer beyond 64 bits */
} lam_py_kind;

typedef struct lam_py lam_py;

typedef struct lam_py_list {
    lam_py **v; /* of a dict: key, value, key, value, ... */
    size_t n, room;
} lam_py_list;

typedef struct lam_py_text {
    const char *s; /* into the pickle; no NUL after it */
    size_t n;
} lam_py_text;

typedef struct lam_py_object {
    const lam_py *callable; /* usually LAM_PY_GLOBAL */
    const lam_py *args;
    const lam_py *state; /* what __setstate__ would get; NULL: nothing */
    lam_py_list items;   /* appended to it */
    lam_py_list pairs;   /* set in it: an OrderedDict's entries */
} lam_py_object;

struct lam_py {
    lam_py_kind kind;
    union {
        int64_t integer; /* BOOL, INT */
        double real;
        lam_py_text text;        /* TEXT, BYTES */
        lam_py_list list;        /* LIST, TUPLE, SET, DICT */
        const lam_py *global[2]; /* module and name, both TEXT */
        lam_py_object *object;
        const lam_py *id;
    } as;
};

typedef struct lam_pickle lam_pickle;

/* Reads one pickle that fills `size` bytes, which are kept; `label` is used in messages.  Nodes, lists, stack and
 * memo take at most `most` bytes: 10 for each byte of the pickle is what checkpoints need, and LAM_PICKLE_FLOOR for
 * the smallest.  LAM_ERR_FORMAT or LAM_ERR_UNSUPPORTED names the byte where it fails. */
enum { LAM_PICKLE_FLOOR = 1 << 16 };
lam_status lam_pickle_parse(lam_pickle **out, const char *label, const void *data, size_t size,
                            size_t most);
void lam_pickle_free(lam_pickle *p); /* NULL is fine */
const lam_py *lam_pickle_root(const lam_pickle *p);

/* All of these take NULL and nodes of any kind. */
int lam_py_is(const lam_py *node, lam_py_kind kind);
int lam_py_text_is(const lam_py *node, const char *text);
/* A GLOBAL of this module and name? */
int lam_py_global_is(const lam_py *node, const char *module, const char *name);
/* Is it an OBJECT whose callable is that global? module NULL: of any module. */
int lam_py_made_by(const lam_py *node, const char *module, const char *name);
/* Entry `key` of a DICT, of an OBJECT that is filled like one (OrderedDict), or of a call with a
 * dict as its only argument (Counter).  The last of several; NULL: none. */
const lam_py *lam_py_get(const lam_py *node, const char *key);
/* Attribute `name` of an instance, from its state; NULL: none. */
const lam_py *lam_py_attr(const lam_py *node, const char *name);
/* The entries behind lam_py_get() as key, value, ...; NULL: it has none. */
const lam_py_list *lam_py_pairs(const lam_py *node);
/* Item i of a LIST or TUPLE; NULL: there is none. */
const lam_py *lam_py_item(const lam_py *node, size_t i);

#endif
