/* group_memory.h -- the memories of the groups of streams that share one stack (batch_chunk, leaves).
 *
 * A batch of B streams may be computed in several groups, one after the other, so that only the activations of one
 * group must fit.  Every group has its own memory: the stack switches between them by exchanging pointers, without
 * copying.  CUDA graphs captured on a memory stay with it. */
#ifndef LAM_TRAIN_GROUP_MEMORY_H
#define LAM_TRAIN_GROUP_MEMORY_H

#include "model/stack.h"

typedef struct lam_group_memory lam_group_memory;

/* The groups: n of a run's, from number `first` on. */
typedef struct lam_groups {
    int first, n;
} lam_groups;

/* `stack` is kept; its own memory becomes that of the first group. */
lam_status lam_group_memory_create(lam_group_memory **out, lam_stack *stack, lam_groups groups);
void lam_group_memory_free(lam_group_memory *m); /* before the stack; NULL is fine */

/* The stack reads and writes the memory of group first + i from now on. */
void lam_group_memory_select(lam_group_memory *m, int i);
/* Empties the memory of all groups. */
void lam_group_memory_reset(lam_group_memory *m);

/* Saves and loads the state of groups [i, i + n) of these, bit for bit, as one safetensors file.  A failed load empties
 * the groups that are not in the file. */
lam_status lam_group_memory_save(lam_group_memory *m, const char *path, int i, int n);
lam_status lam_group_memory_load(lam_group_memory *m, const char *path, int i, int n);
lam_groups lam_group_memory_groups(const lam_group_memory *m);

#endif
