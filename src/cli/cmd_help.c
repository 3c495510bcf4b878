/* cmd_help.c -- `lamemo help`: the overview, one command, or (for scripts/gen-docs.sh) all of it. */
#include "cli/commands.h"
#include "cli/help.h"

typedef struct opts {
    bool markdown, man;
} opts;

static const lam_option options[] = {
    {"markdown", 0, NULL, LAM_OPT_FLAG, offsetof(opts, markdown), .hidden = true,
     .help = "Print docs/cli.md."},
    {"man", 0, NULL, LAM_OPT_FLAG, offsetof(opts, man), .hidden = true,
     .help = "Print docs/lamemo.1."},
    {0},
};

static lam_status run(const lam_args *args)
{
    const opts *o = args->options;
    if (o->markdown)
        lam_help_markdown(stdout);
    else if (o->man)
        lam_help_man(stdout);
    else if (args->n_operands == 0)
        lam_help_overview(stdout);
    else {
        const lam_command *command;
        LAM_TRY(lam_command_find(&command, args->operands[0]));
        lam_help_command(stdout, command);
    }
    return LAM_OK;
}

const lam_command lam_command_help = {
    .name = "help",
    .summary = "explain a command",
    .operands = "[COMMAND]",
    .operands_max = 1,
    .description = "Explains a command, or lists all of them.",
    .options = options,
    .options_size = sizeof(opts),
    .run = run,
    .killable = true,
};
