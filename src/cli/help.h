/* help.h -- the option tables as text: for the terminal, as Markdown, as a manual page.
 *
 * There is no other description of the options anywhere, so none can be out of date. */
#ifndef LAM_CLI_HELP_H
#define LAM_CLI_HELP_H

#include "cli/options.h"

#include <stdio.h>

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

/* ---- what the terminal and the pages share ---- */

bool lam_help_ends(const lam_option *o); /* no row follows that help describes */
bool lam_help_any(const lam_option *o);  /* is there a row to show before the next heading? */
/* "-b, --batch-size N" into text. */
void lam_help_signature(char *text, size_t size, const lam_option *o);
/* The help sentence with choices, default and other names. */
void lam_help_explanation(char *text, size_t size, const lam_option *o);
/* "lamemo NAME [OPTION...] OPERANDS" and a line end. */
void lam_help_synopsis(FILE *out, const lam_command *command);
/* Prints each line of `text` by `print`. */
void lam_help_lines(FILE *out, const char *text,
                    void (*print)(FILE *out, const char *line, size_t len));

#endif
