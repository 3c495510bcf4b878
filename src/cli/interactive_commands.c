/* interactive_commands.c -- what /save, /fork and the other commands of `generate --interactive` do. */
#include "cli/interactive_int.h"

#include "cli/term.h"
#include "core/log.h"

#include <ctype.h>
#include <string.h>

/* "NAME, 1,234 tokens" of the current branch. */
static void tell(const lam_talk *t, const char *verb)
{
    char count[32];
    int64_t length;
    const char *const name =
        lam_branches_name(t->branches, lam_branches_current(t->branches), &length);
    lam_log(LAM_LOG_INFO, "%s branch %s, %s token%s", verb, name,
            lam_format_count(count, sizeof count, length), length == 1 ? "" : "s");
}

static lam_status do_branches(lam_talk *t, char *argument)
{
    (void)argument;
    for (int i = 0; i < lam_branches_count(t->branches); i++) {
        char count[32];
        int64_t length;
        const char *const name = lam_branches_name(t->branches, i, &length);
        lam_log(LAM_LOG_INFO, "%c %-12s %10s token%s",
                i == lam_branches_current(t->branches) ? '*' : ' ', name,
                lam_format_count(count, sizeof count, length), length == 1 ? "" : "s");
    }
    return LAM_OK;
}

static lam_status do_reset(lam_talk *t, char *argument)
{
    (void)argument;
    lam_branches_reset(t->branches);
    return LAM_OK;
}

static lam_status do_set(lam_talk *t, char *argument)
{
    char *value = argument + strcspn(argument, " \t");
    if (*value)
        *value++ = '\0';
    value += strspn(value, " \t");
    if (*value == '\0')
        return lam_fail(LAM_ERR_ARG, "usage: /set NAME VALUE, such as /set temp 0.8");
    const int64_t seed = t->o.seed;
    LAM_TRY(lam_generate_set(&t->o, argument, value));
    if (t->o.seed != seed || strcmp(argument, "seed") == 0 || strcmp(argument, "s") == 0)
        t->turns = 0;
    return LAM_OK;
}

static lam_status do_quit(lam_talk *t, char *argument)
{
    (void)argument;
    t->quit = true;
    return LAM_OK;
}

static lam_status do_help(lam_talk *t, char *argument);

static const struct {
    const char *name, *usage, *help;
    bool needs; /* its argument must be there */
    /* What it does; the first kind gets an argument or NULL. */
    lam_status (*to_branches)(lam_branches *b, const char *argument);
    lam_status (*to_talk)(lam_talk *t, char *argument);
    const char *verb; /* told afterwards with the current branch; or NULL */
} commands[] = {
    {"save", "/save FILE", "save the memory and the place in the text", true, lam_branches_save,
     NULL, "saved"},
    {"load", "/load FILE", "go to what was saved; on the current branch", true, lam_branches_load,
     NULL, "loaded into"},
    {"fork", "/fork [NAME]", "copy this branch and go on in the copy", false, lam_branches_fork,
     NULL, "now on"},
    {"switch", "/switch NAME", "go to another branch", true, lam_branches_switch, NULL, "now on"},
    {"branches", "/branches", "list the branches", false, NULL, do_branches, NULL},
    {"drop", "/drop NAME", "remove a branch", true, lam_branches_drop, NULL, NULL},
    {"reset", "/reset", "empty the memory of this branch", false, NULL, do_reset,
     "forgot the text of"},
    {"set", "/set NAME VALUE", "change tokens, temp, top-k, top-p, min-p, seed, ...", false, NULL,
     do_set, NULL},
    {"help", "/help", "print this", false, NULL, do_help, NULL},
    {"quit", "/quit", "end; so does the end of the input", false, NULL, do_quit, NULL},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static lam_status do_help(lam_talk *t, char *argument)
{
    (void)argument;
    lam_log(LAM_LOG_INFO,
            "A line is added to the text, and the model continues it %s or for %d tokens.",
            t->n_stops > 0 ? "through a --stop text" : "to the end of a line", t->o.tokens);
    lam_log(LAM_LOG_INFO, "An empty line lets it go on. A \\ at the end of a line leaves the line "
                          "open; // at its start is a /.");
    for (int i = 0; i < COMMANDS; i++)
        lam_log(LAM_LOG_INFO, "  %-16s %s", commands[i].usage, commands[i].help);
    return LAM_OK;
}

static lam_status run_command(lam_talk *t, int i, char *argument)
{
    if (commands[i].needs && *argument == '\0')
        return lam_fail(LAM_ERR_ARG, "usage: %s", commands[i].usage);
    if (commands[i].to_branches)
        LAM_TRY(commands[i].to_branches(t->branches, *argument ? argument : NULL));
    else
        LAM_TRY(commands[i].to_talk(t, argument));
    if (commands[i].verb)
        tell(t, commands[i].verb);
    return LAM_OK;
}

/* The name, then blanks, then all the rest: file names may have blanks. */
lam_status lam_talk_obey(lam_talk *t)
{
    char *const name = t->line.data + 1;
    char *argument = name + strcspn(name, " \t"), *end = t->line.data + t->line.size;
    if (strlen(t->line.data) != t->line.size)
        return lam_fail(LAM_ERR_ARG, "a command has a zero byte");
    while (end > argument && isspace((unsigned char)end[-1]))
        *--end = '\0';
    if (*argument)
        *argument++ = '\0';
    argument += strspn(argument, " \t");
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return run_command(t, i, argument);
    return lam_fail(LAM_ERR_ARG,
                    "there is no command /%s; /help lists them, and // begins a text with /", name);
}
