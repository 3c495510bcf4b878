/* arena.c -- carves one block into buffers by address arithmetic; it never reads or writes the bytes. */
#include "core/arena.h"

#include <assert.h>
#include <stdint.h>

/* Sizes that overflow (an absurd model from a config file) stop at the largest aligned number: the
 * measurement stays meaningful and the allocation that follows is refused, as it should be. */
static size_t advance(size_t used, size_t bytes)
{
    const size_t top = SIZE_MAX - (LAM_ALIGN - 1); /* the largest multiple of LAM_ALIGN */
    return bytes > top - used ? top : (used + bytes + LAM_ALIGN - 1) / LAM_ALIGN * LAM_ALIGN;
}

void *lam_arena_take(lam_arena *arena, size_t bytes)
{
    char *const at = arena->base ? arena->base + arena->used : NULL;
    const size_t used = advance(arena->used, bytes);
    assert(!arena->base || used <= arena->size);
    arena->used = used;
    return at;
}
