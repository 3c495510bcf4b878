/* grow.c -- see grow.h. */
#include "core/grow.h"

#include "core/size.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST = 16 };

lam_status lam_grow_now(void *array, size_t *room, size_t need, size_t width, const char *what)
{
    void *now, *grown = NULL;
    size_t more = 2 * *room > need ? 2 * *room : need, bytes;
    more = more > LEAST ? more : LEAST;
    memcpy(&now, array, sizeof now); /* whatever it points to */
    if (lam_size_muladd(&bytes, more, width, 0))
        grown = realloc(now, bytes);
    if (!grown)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %zu %s", more, what);
    memcpy(array, &grown, sizeof grown);
    *room = more;
    return LAM_OK;
}
