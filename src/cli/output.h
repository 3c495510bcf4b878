/* output.h -- JSON, tables and tokens on standard output. */
#ifndef LAM_CLI_OUTPUT_H
#define LAM_CLI_OUTPUT_H

#include "core/status.h"
#include "draw/table.h"

#include <jansson.h>

/* Prints the value and a line end on standard output, with jansson's flags, and releases it.  NULL, which
 * is what is left when it could not be made, is LAM_ERR_MEMORY. */
lam_status lam_print_json(json_t *root, size_t flags);

/* Writes a table as lam_table_text() does; for a terminal within its width. */
void lam_table_for_stdout(lam_text *out, const lam_table *t);

/* Prints a token's bytes with everything unprintable escaped, so that a line stays a line. */
void lam_print_token(const char *bytes, size_t size);

#endif
