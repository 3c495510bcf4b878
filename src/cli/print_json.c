/* print_json.c -- see print_json.h.  Output that fails is noticed at the end, by main.c. */
#include "cli/print_json.h"

#include <stdio.h>

lam_status lam_print_json(json_t *root, size_t flags)
{
    if (root == NULL)
        return lam_fail(LAM_ERR_MEMORY, "the result cannot be written as JSON");
    json_dumpf(root, stdout, flags);
    putchar('\n');
    fflush(stdout); /* a reader of several may wait for each */
    json_decref(root);
    return LAM_OK;
}
