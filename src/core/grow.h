/* grow.h -- arrays that grow: their room at least doubles, so that an element is moved a few times at most. */
#ifndef LAM_CORE_GROW_H
#define LAM_CORE_GROW_H

#include "core/status.h"

#include <stddef.h>

/* What lam_grow does where there is no room yet. */
lam_status lam_grow_now(void *array, size_t *room, size_t need, size_t width, const char *what);

/* Gives an array room for `need` elements of `width` bytes.  `array` is the address of its pointer, which is NULL at
 * first, *room how many there is room for.  LAM_ERR_MEMORY, and the array stays: "no memory for N WHAT". */
static inline lam_status lam_grow(void *array, size_t *room, size_t need, size_t width,
                                  const char *what)
{
    return need <= *room ? LAM_OK : lam_grow_now(array, room, need, width, what);
}

#endif
