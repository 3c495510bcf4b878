/* interactive.h -- `generate --interactive`: lines from standard input, each continued with the memory kept. */
#ifndef LAM_CLI_INTERACTIVE_H
#define LAM_CLI_INTERACTIVE_H

#include "cli/generate_options.h"
#include "cli/input.h"

/* What the user types is appended to the text with its newline; the model writes on to the end of a line, or, where
 * --stop is given, through one of the stops, or for o->tokens tokens.  A line that begins with / is a command.  On a
 * terminal a mistake is told and Ctrl-C ends a continuation; elsewhere both end the command.  prompt: what the text
 * begins with, or NULL. */
lam_status lam_interactive(const lam_engine *engine, const lam_args *args, const char *const *stops,
                           const lam_given_text *prompt);

#endif
