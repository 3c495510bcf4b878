/* help.h -- the option tables as text: for the terminal, as Markdown, as a manual page. */
#ifndef LAM_CLI_HELP_H
#define LAM_CLI_HELP_H

#include "cli/options.h"

#include <stdio.h>

/* The table of commands, in commands.c; ends with NULL. */
extern const lam_command *const lam_commands[];

/* The command called `name`; else LAM_ERR_ARG, with the nearest name if one is near. */
lam_status lam_command_find(const lam_command **out, const char *name);

void lam_help_overview(FILE *out);
/* After help on stdout: the exit status, 1 with a message when it could not be written. */
int lam_help_end(void);
void lam_help_command(FILE *out, const lam_command *command);
void lam_help_markdown(FILE *out); /* all commands: docs/cli.md */
void lam_help_man(FILE *out);      /* all commands: docs/lamemo.1 */

#endif
