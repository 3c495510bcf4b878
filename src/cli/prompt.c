/* prompt.c -- see prompt.h. */
#include "cli/prompt.h"

#include "core/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 1 << 30 };

static lam_status read_stdin(char **text, size_t *size)
{
    size_t cap = 1 << 16, n = 0;
    char *p = malloc(cap);
    while (p) {
        n += fread(p + n, 1, cap - 1 - n, stdin);
        if (n < cap - 1)
            break;
        char *more = cap < LIMIT ? realloc(p, 2 * cap) : NULL;
        if (!more) {
            free(p);
            p = NULL;
        } else {
            p = more;
            cap *= 2;
        }
    }
    if (!p)
        return lam_fail(LAM_ERR_MEMORY, "standard input: more than %d bytes, or no memory", LIMIT);
    if (ferror(stdin)) {
        free(p);
        return lam_fail(LAM_ERR_IO, "standard input: %s", strerror(errno));
    }
    p[n] = '\0';
    *text = p;
    *size = n;
    return LAM_OK;
}

lam_status lam_prompt_read(char **text, size_t *size, const char *argument)
{
    *text = NULL;
    *size = 0;
    if (strcmp(argument, "-") == 0)
        return read_stdin(text, size);
    if (argument[0] == '@')
        return lam_file_load(text, size, argument + 1, LIMIT);
    *text = strdup(argument);
    *size = strlen(argument);
    return *text ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "prompt: no memory");
}
