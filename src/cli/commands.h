/* commands.h -- every command, one per file cmd_NAME.c. */
#ifndef LAM_CLI_COMMANDS_H
#define LAM_CLI_COMMANDS_H

#include "cli/options.h"

/* In the order in which they are listed; one a line, so that additions do not collide. */
/* clang-format off */
#define LAM_COMMANDS(X) \
    X(prepare) \
    X(train) \
    X(compare) \
    X(report) \
    X(eval) \
    X(analyze) \
    X(generate) \
    X(score) \
    X(serve) \
    X(compress) \
    X(decompress) \
    X(import) \
    X(export) \
    X(info) \
    X(bench) \
    X(verify) \
    X(help)
/* clang-format on */

#define LAM_COMMAND_DECLARE(name) extern const lam_command lam_command_##name;
LAM_COMMANDS(LAM_COMMAND_DECLARE)
#undef LAM_COMMAND_DECLARE

extern const lam_command *const lam_commands[]; /* all of them; ends with NULL */

/* The command called `name`; else LAM_ERR_ARG, with the nearest name if one is near. */
lam_status lam_command_find(const lam_command **out, const char *name);

#endif
