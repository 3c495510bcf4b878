/* pickle_machine.h -- the state that pickle opcodes (pickle_ops.c) operate on: input stream, stack with
 * marks, memo.
 *
 * All limits are enforced here: no read past the end, no pop below a mark, no unbounded allocation. A
 * failure names the file and the byte offset of the current opcode. */
#ifndef LAM_IO_PICKLE_MACHINE_H
#define LAM_IO_PICKLE_MACHINE_H

#include "io/pickle_int.h"

typedef struct lam_pm {
    lam_pickle *p;
    const unsigned char *data;
    size_t size, at, op_at; /* op_at: where the running opcode stands */
    lam_py_list stack;
    size_t marks[LAM_PICKLE_MAX_MARKS]; /* heights of the stack */
    size_t n_marks;
    lam_py_list memo; /* NULL where nothing was put */
    size_t memoized;
} lam_pm;

/* LAM_ERR_FORMAT with the place. */
lam_status lam_pm_bad(const lam_pm *m, const char *what);

/* The next bytes of the stream: n of them; `width` of them as a number, lowest first; a line. */
lam_status lam_pm_take(lam_pm *m, size_t n, const unsigned char **out);
lam_status lam_pm_uint(lam_pm *m, int width, uint64_t *out);
lam_status lam_pm_line(lam_pm *m, lam_py_text *out);

lam_status lam_pm_push(lam_pm *m, lam_py *node);
lam_status lam_pm_new(lam_pm *m, lam_py_kind kind, lam_py **out); /* pushes it too */
/* The lowest height that may be popped: a mark guards what is below it. */
size_t lam_pm_ground(const lam_pm *m);
lam_status lam_pm_pop(lam_pm *m, lam_py **out);
lam_status lam_pm_top(const lam_pm *m, lam_py **out);
lam_status lam_pm_pop_mark(lam_pm *m, size_t *height);

/* Stores the top of the stack as entry `index` of the memo. */
lam_status lam_pm_put(lam_pm *m, uint64_t index);

#endif
