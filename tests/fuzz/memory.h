/* memory.h -- the most memory that is allocated at a time while a fuzz target runs, so that growing out of proportion
 * to the input is a finding like any other.  Counted by hooks of AddressSanitizer; one thread. */
#ifndef TEST_FUZZ_MEMORY_H
#define TEST_FUZZ_MEMORY_H

#include <sanitizer/allocator_interface.h>
#include <stddef.h>

static size_t memory_live, memory_most;

static void memory_taken(const volatile void *p, size_t size)
{
    (void)p;
    memory_live += size;
    memory_most = memory_live > memory_most ? memory_live : memory_most;
}

static void memory_given_back(const volatile void *p)
{
    const size_t size = p ? __sanitizer_get_allocated_size((const void *)p) : 0;
    memory_live -= size < memory_live ? size : memory_live; /* some are from before */
}

static inline void memory_begin(void)
{
    static int hooked;
    if (!hooked)
        hooked = __sanitizer_install_malloc_and_free_hooks(memory_taken, memory_given_back);
    memory_live = memory_most = 0;
}

/* Bytes, since memory_begin(). */
static inline size_t memory_peak(void)
{
    return memory_most;
}

#endif
