/* pickle_int.h -- declarations shared by pickle.c (nodes), pickle_machine.c (stack and memo) and pickle_ops.c
 * (opcodes). */
#ifndef LAM_IO_PICKLE_INT_H
#define LAM_IO_PICKLE_INT_H

#include "io/pickle.h"

enum {
    LAM_PICKLE_MAX_STACK = 1 << 20, /* Python writes a thousand items at a time, a thousand deep */
    LAM_PICKLE_MAX_MARKS = 1 << 12,
    LAM_PICKLE_SMALL = 256 /* integers below this are shared, as Python does */
};

/* Nodes are allocated many at a time and freed together. */
typedef struct lam_py_chunk lam_py_chunk;

struct lam_pickle {
    const char *label; /* while parsing */
    size_t used, most; /* bytes allocated, and allowed */
    lam_py_chunk *chunks;
    lam_py *none, *truth[2], *empty, *small[LAM_PICKLE_SMALL]; /* made once, when first needed */
    const lam_py *root;
};

/* A new node of this kind, otherwise zero; an OBJECT has its inside.  On failure *out is NULL. */
lam_status lam_py_new(lam_pickle *p, lam_py_kind kind, lam_py **out);
/* Values that cannot change are shared: None, a bool, an integer, the empty tuple. */
lam_status lam_py_constant(lam_pickle *p, lam_py_kind kind, int64_t value, lam_py **out);
lam_status lam_py_push(lam_pickle *p, lam_py_list *list, lam_py *item);
/* Appends the items of `from`, from number `first` on, to those of `to`. */
lam_status lam_py_push_all(lam_pickle *p, lam_py_list *to, const lam_py_list *from, size_t first);

/* Runs the opcodes of the bytes; sets p->root. */
lam_status lam_pickle_run(lam_pickle *p, const unsigned char *data, size_t size);

#endif
