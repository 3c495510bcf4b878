/* commands.h -- every command, one per file cmd_NAME.c. */
#ifndef LAM_CLI_COMMANDS_H
#define LAM_CLI_COMMANDS_H

#include "cli/options.h"

extern const lam_command lam_command_prepare;
extern const lam_command lam_command_train;
extern const lam_command lam_command_compare;
extern const lam_command lam_command_report;
extern const lam_command lam_command_eval;
extern const lam_command lam_command_analyze;
extern const lam_command lam_command_generate;
extern const lam_command lam_command_score;
extern const lam_command lam_command_serve;
extern const lam_command lam_command_compress;
extern const lam_command lam_command_decompress;
extern const lam_command lam_command_import;
extern const lam_command lam_command_export;
extern const lam_command lam_command_info;
extern const lam_command lam_command_bench;
extern const lam_command lam_command_verify;
extern const lam_command lam_command_help;

#endif
