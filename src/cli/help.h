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
/* The options people need; `topic` is "all" for every option, or a word of a group's name.  LAM_ERR_ARG: the command has
 * no such group. */
lam_status lam_help_command(FILE *out, const lam_command *command, const char *topic);
void lam_help_usage(FILE *out, const lam_command *command);       /* one line */
void lam_help_markdown(FILE *out);                                /* all commands: docs/cli.md */
void lam_help_man_command(FILE *out, const lam_command *command); /* lamemo-COMMAND(1) */
void lam_help_man(FILE *out);                                     /* all commands: docs/lamemo.1 */

#endif
