/* prompt.c -- see prompt.h. */
#include "cli/prompt.h"

#include "data/instream.h"

#include <stdlib.h>
#include <string.h>

static const size_t LIMIT = (size_t)1 << 30;

lam_status lam_prompt_read(char **text, size_t *size, const char *argument)
{
    *text = NULL;
    *size = 0;
    if (strcmp(argument, "-") == 0)
        return lam_instream_load(text, size, argument, LIMIT);
    if (strcmp(argument, "@") == 0)
        return lam_fail(LAM_ERR_ARG, "'@' is followed by no file name");
    if (argument[0] == '@')
        return lam_instream_load(text, size, argument + 1, LIMIT);
    *text = strdup(argument);
    *size = *text ? strlen(argument) : 0;
    return *text ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "prompt: no memory");
}

lam_status lam_prompt_blame(lam_status status, const char *argument)
{
    if (status != LAM_ERR_FORMAT || (argument[0] != '@' && strcmp(argument, "-") != 0))
        return status;
    return lam_fail(status, "%s: %s", argument[0] == '@' ? argument + 1 : "standard input",
                    lam_error());
}
