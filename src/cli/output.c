/* output.c -- see output.h.  Output that fails is noticed at the end, by main.c. */
#include "cli/output.h"

#include "cli/term.h"
#include "core/printable.h"
#include "io/json.h"

#include <limits.h>
#include <stdio.h>
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

void lam_table_for_stdout(lam_text *out, const lam_table *t)
{
    lam_table_within(out, t, lam_term_is_tty(stdout) ? lam_term_width(stdout) : INT_MAX);
}

void lam_print_token(const char *bytes, size_t size)
{
    char next[LAM_PRINTABLE_MAX];
    for (size_t at = 0; at < size;) {
        at += lam_printable_next(next, bytes + at, size - at);
        fputs(next, stdout);
    }
}
