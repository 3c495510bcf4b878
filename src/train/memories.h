/* memories.h -- the memories of the groups of columns that share one stack (batch_chunk).
 *
 * A batch of B columns may be computed in several groups, one after the other, so that activations
 * of a group alone must fit.  Every group has its own past: the stack's memory is exchanged between
 * groups by exchanging pointers, nothing is copied.  Recordings of the work on a memory go with it. */
#ifndef LAM_TRAIN_MEMORIES_H
#define LAM_TRAIN_MEMORIES_H

#include "model/stack.h"

typedef struct lam_memories lam_memories;

/* `stack` is kept; its own memory becomes that of group 0. */
lam_status lam_memories_create(lam_memories **out, lam_stack *stack, int groups);
void lam_memories_free(lam_memories *m); /* before the stack; NULL is fine */

/* The stack reads and writes the memory of `group` from now on. */
void lam_memories_select(lam_memories *m, int group);
/* All groups forget. */
void lam_memories_reset(lam_memories *m);

/* The whole state, bit for bit, as one safetensors file. */
lam_status lam_memories_save(lam_memories *m, const char *path);
lam_status lam_memories_load(lam_memories *m, const char *path);

#endif
