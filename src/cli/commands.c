/* commands.c -- the table of commands, in the order in which they are listed. */
#include "cli/commands.h"

#include "cli/help.h"

/* One a line, so that additions do not collide. */
/* clang-format off */
const lam_command *const lam_commands[] = {
    &lam_command_prepare,
    &lam_command_train,
    &lam_command_compare,
    &lam_command_report,
    &lam_command_eval,
    &lam_command_analyze,
    &lam_command_generate,
    &lam_command_score,
    &lam_command_serve,
    &lam_command_compress,
    &lam_command_decompress,
    &lam_command_import,
    &lam_command_export,
    &lam_command_info,
    &lam_command_bench,
    &lam_command_verify,
    &lam_command_help,
    NULL,
};
