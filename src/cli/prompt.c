/* prompt.c -- see prompt.h. */
#include "cli/prompt.h"

#include "core/file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t LIMIT = (size_t)1 << 30;

lam_status lam_prompt_read(char **text, size_t *size, const char *argument)
{
    *text = NULL;
    *size = 0;
    if (strcmp(argument, "-") == 0)
        return lam_fd_load(text, size, STDIN_FILENO, "standard input", LIMIT);
    if (strcmp(argument, "@") == 0)
        return lam_fail(LAM_ERR_ARG, "'@' is followed by no file name");
    if (argument[0] == '@')
        return lam_file_load(text, size, argument + 1, LIMIT);
    *text = strdup(argument);
    *size = *text ? strlen(argument) : 0;
    return *text ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "prompt: no memory");
}
