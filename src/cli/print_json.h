/* print_json.h -- the last line of every --json. */
#ifndef LAM_CLI_PRINT_JSON_H
#define LAM_CLI_PRINT_JSON_H

#include "core/status.h"

#include <jansson.h>

/* Prints the value and a line end on standard output, with jansson's flags, and releases it.  NULL, which
 * is what is left when it could not be made, is LAM_ERR_MEMORY. */
lam_status lam_print_json(json_t *root, size_t flags);

#endif
