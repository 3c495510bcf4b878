/* completion.h -- what shells need to complete commands, options and their values, from the option tables. */
#ifndef LAM_CLI_COMPLETION_H
#define LAM_CLI_COMPLETION_H

#include "cli/options.h"

#include <stdio.h>

/* Names of the shells, in order; ends with NULL. */
extern const char *const lam_completion_shells[];

/* Prints the script for the shell of that number. */
void lam_completion_print(FILE *out, int shell);

#endif
