/* arena.h -- one block of memory, handed out from front to back and freed as a whole.
 *
 * The same layout function runs twice: first on an arena without a base address, which only counts bytes,
 * then on the real block. Sizes therefore cannot drift from use. The block may be device memory: the arena
 * computes addresses and never touches the bytes. */
#ifndef LAM_CORE_ARENA_H
#define LAM_CORE_ARENA_H

#include <stddef.h>

enum { LAM_ALIGN = 64 }; /* a cache line, an AVX-512 register, and enough for the GPU */

typedef struct lam_arena {
    char *base;  /* NULL while measuring; borrowed */
    size_t size; /* bytes available at base */
    size_t used; /* bytes taken so far, always a multiple of LAM_ALIGN */
} lam_arena;

/* Returns the next `bytes` bytes, aligned; NULL while measuring.  Taking more than was measured is
 * a programmer's mistake and asserts.  A zero-byte take returns a valid address. */
void *lam_arena_take(lam_arena *arena, size_t bytes);

#endif
