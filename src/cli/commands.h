/* commands.h -- every command, one per file cmd_NAME.c. */
#ifndef LAM_CLI_COMMANDS_H
#define LAM_CLI_COMMANDS_H

#include "cli/options.h"

extern const lam_command lam_command_bench, lam_command_info, lam_command_verify, lam_command_help;

#endif
