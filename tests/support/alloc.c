/* alloc.c -- counting allocations and their bytes, and failing one; see alloc.h. */
#include "support/alloc.h"

#include <check.h>
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static long countdown; /* allocations until one fails; 0: none will */
static long tried;     /* which one that is */
static int armed, failed;
static int measuring;
static size_t live, peak; /* bytes, since measuring began */

static int refuse(void)
{
    if (countdown == 0 || --countdown > 0)
        return 0;
    return failed = 1;
}

static void *counted(void *p)
{
    if (measuring && p) {
        live += malloc_usable_size(p);
        peak = live > peak ? live : peak;
    }
    return p;
}

/* While nothing is measured `live` is not touched: threads may be at work. */
static void uncount(void *p)
{
    if (!measuring || !p)
        return;
    const size_t n = malloc_usable_size(p);
    live -= n < live ? n : live; /* some were there before */
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *p);

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refuse() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    const size_t before = measuring ? live : 0;
    if (refuse())
        return NULL;
    uncount(old);
    void *p = __real_realloc(old, size);
    if (!p && measuring)
        live = before;
    return counted(p);
}

void __wrap_free(void *p)
{
    uncount(p);
    __real_free(p);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return refuse() ? NULL : counted(__real_aligned_alloc(alignment, size));
}

char *__wrap_strdup(const char *text)
{
    return refuse() ? NULL : counted(__real_strdup(text));
}

int test_alloc_fail(long nth)
{
    const int again = !armed || failed;
    json_set_alloc_funcs(__wrap_malloc, free);
    armed = again;
    failed = 0;
    tried = nth;
    countdown = again ? nth : 0;
    return again;
}

int test_alloc_stop(void)
{
    countdown = 0;
    return failed;
}

int test_alloc_end(lam_status status)
{
    test_alloc_stop();
    ck_assert_msg(status == (failed ? LAM_ERR_MEMORY : LAM_OK), "allocation %ld gave status %d: %s",
                  tried, (int)status, lam_error());
    return failed;
}

void test_alloc_measure(void)
{
    json_set_alloc_funcs(__wrap_malloc, free);
    live = peak = 0;
    measuring = 1;
}

size_t test_alloc_peak(void)
{
    measuring = 0;
    return peak;
}
