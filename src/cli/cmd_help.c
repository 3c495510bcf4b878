/* cmd_help.c -- `lamemo help`: the overview, one command, or (for scripts/gen-docs.sh and
 * the installed pages) all of it. */
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/help.h"

typedef struct opts {
    bool markdown, man;
    int completion; /* of lam_completion_shells */
} opts;

static const lam_option options[] = {
    {"markdown", 0, NULL, LAM_OPT_FLAG, offsetof(opts, markdown), .hidden = true,
     .help = "Print docs/cli.md."},
    {"man", 0, NULL, LAM_OPT_FLAG, offsetof(opts, man), .hidden = true,
     .help = "Print docs/lamemo.1, or the manual page of COMMAND."},
    {"completion", 0, "SHELL", LAM_OPT_CHOICE, offsetof(opts, completion), .hidden = true,
     .choices = lam_completion_shells, .help = "Print the completion for a shell."},
    {0},
};

static lam_status run(const lam_args *args)
{
    const opts *o = args->options;
    const lam_command *command = NULL;
    if (args->n_operands > 0)
        LAM_TRY(lam_command_find(&command, args->operands[0]));
    if (lam_option_given(args, "completion"))
        lam_completion_print(stdout, o->completion);
    else if (o->markdown)
        lam_help_markdown(stdout);
    else if (o->man && command)
        lam_help_man_command(stdout, command);
    else if (o->man)
        lam_help_man(stdout);
    else if (!command)
        lam_help_overview(stdout);
    else
        return lam_help_command(stdout, command, args->n_operands > 1 ? args->operands[1] : NULL);
    return LAM_OK;
}

const lam_command lam_command_help = {
    .name = "help",
    .summary = "explain a command",
    .operands = "[COMMAND [TOPIC]]",
    .operands_max = 2,
    .description = "Explains a command, or lists all of them. TOPIC is all, or one of those that "
                   "the command's help names.",
    .options = options,
    .options_size = sizeof(opts),
    .run = run,
    .killable = true,
};
