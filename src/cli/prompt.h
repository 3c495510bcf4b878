/* prompt.h -- a text given on the command line: itself, @FILE (packed or not), or - for standard input. */
#ifndef LAM_CLI_PROMPT_H
#define LAM_CLI_PROMPT_H

#include "core/status.h"

#include <stddef.h>

/* The text is owned by the caller (free) and ends with a NUL.  At most 1 GiB.
 * LAM_ERR_INTERRUPTED when a signal ends the wait for it. */
lam_status lam_prompt_read(char **text, size_t *size, const char *argument);

/* A message about what is in the text names where it came from, unless it was written on the command line. */
lam_status lam_prompt_blame(lam_status status, const char *argument);

#endif
