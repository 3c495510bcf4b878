/* alloc.c -- counting allocations and failing one; see alloc.h. */
#include "support/alloc.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static long countdown; /* allocations until one fails; 0: none will */
static int armed, failed;

static int refuse(void)
{
    if (countdown == 0 || --countdown > 0)
        return 0;
    return failed = 1;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refuse() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return refuse() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return refuse() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return refuse() ? NULL : __real_strdup(text);
}

int test_alloc_fail(long nth)
{
    const int again = !armed || failed;
    json_set_alloc_funcs(__wrap_malloc, free);
    armed = again;
    failed = 0;
    countdown = again ? nth : 0;
    return again;
}

int test_alloc_stop(void)
{
    countdown = 0;
    return failed;
}
