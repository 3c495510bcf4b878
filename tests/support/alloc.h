/* alloc.h -- makes one allocation of the library fail, to walk every out-of-memory path; or measures them all.
 *
 * The linker sends malloc, calloc, realloc, aligned_alloc, strdup and free of our own code (and Check's)
 * through here (--wrap); jansson is asked to use the same.  Always in this form:
 *
 *     for (long n = 1; test_alloc_fail(n); n++) {
 *         status = create(...);
 *         test_alloc_end(status);
 *         free ...
 *     }
 *
 * runs the body with the 1st, 2nd, ... allocation failing, and a last time with none. */
#ifndef TEST_ALLOC_H
#define TEST_ALLOC_H

#include "core/status.h"

#include <stddef.h>

/* Lets the nth allocation from now on fail, once.  Returns 0 when the previous one was never
 * reached, that is when the body has run undisturbed. */
int test_alloc_fail(long nth);

/* Ends that, before the first assertion: Check allocates too.  Returns whether one has failed. */
int test_alloc_stop(void);

/* The same, and the test fails unless `status` is LAM_ERR_MEMORY where one has failed and LAM_OK where none has. */
int test_alloc_end(lam_status status);

/* From here on, in one thread: the most bytes of our own code and jansson that are allocated at a time.  peak() ends
 * it. */
void test_alloc_measure(void);
size_t test_alloc_peak(void);

#endif
