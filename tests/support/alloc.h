/* alloc.h -- makes one allocation of the library fail, to walk every out-of-memory path.
 *
 * The linker sends malloc, calloc, realloc, aligned_alloc and strdup of our own code through here
 * (--wrap); jansson is asked to use the same.  The standard way to use it:
 *
 *     for (long n = 1; test_alloc_fail(n); n++) { status = create(...); ... }
 *
 * runs the body with the 1st, 2nd, ... allocation failing, and a last time with none. */
#ifndef TEST_ALLOC_H
#define TEST_ALLOC_H

/* Lets the nth allocation from now on fail (once).  Returns 0 when the previous setting was never
 * reached, that is when the body has run without a failure; then nothing fails any more. */
int test_alloc_fail(long nth);

/* Has the allocation chosen by the last test_alloc_fail() failed? */
int test_alloc_failed(void);

#endif
