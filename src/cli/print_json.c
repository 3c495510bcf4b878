/* print_json.c -- see print_json.h.  Output that fails is noticed at the end, by main.c. */
#include "cli/print_json.h"

#include "cli/term.h"
#include "io/json.h"

#include <stdlib.h>

lam_status lam_print_json(json_t *root, size_t flags)
{
    if (root == NULL)
        return lam_fail(LAM_ERR_MEMORY, "the result cannot be written as JSON");
    char *text;
    size_t size;
    const lam_status status = lam_json_text(&text, &size, root, flags);
    if (status == LAM_OK) {
        lam_term_write(stdout, text, size); /* JSON leaves C1 and DEL as they are */
        putchar('\n');
        fflush(stdout); /* a reader of several may wait for each */
    }
    free(text);
    json_decref(root);
    return status;
}
