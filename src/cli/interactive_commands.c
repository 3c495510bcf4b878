/* interactive_commands.c -- what /save, /fork and the other commands of `generate --interactive` do. */
#include "cli/interactive_int.h"

#include "cli/term.h"
#include "core/log.h"

#include <ctype.h>
#include <string.h>

static lam_status need(const char *argument, const char *usage)
{
    return *argument ? LAM_OK : lam_fail(LAM_ERR_ARG, "usage: %s", usage);
}

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

static lam_status do_save(lam_talk *t, char *argument)
{
    LAM_TRY(need(argument, "/save FILE"));
    LAM_TRY(lam_branches_save(t->branches, argument));
    tell(t, "saved");
    return LAM_OK;
}

static lam_status do_load(lam_talk *t, char *argument)
{
    LAM_TRY(need(argument, "/load FILE"));
    LAM_TRY(lam_branches_load(t->branches, argument));
    tell(t, "loaded into");
    return LAM_OK;
}

static lam_status do_fork(lam_talk *t, char *argument)
{
    LAM_TRY(lam_branches_fork(t->branches, *argument ? argument : NULL));
    tell(t, "now on");
    return LAM_OK;
}

static lam_status do_switch(lam_talk *t, char *argument)
{
    LAM_TRY(need(argument, "/switch NAME"));
    LAM_TRY(lam_branches_switch(t->branches, argument));
    tell(t, "now on");
    return LAM_OK;
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

static lam_status do_drop(lam_talk *t, char *argument)
{
    LAM_TRY(need(argument, "/drop NAME"));
    return lam_branches_drop(t->branches, argument);
}

static lam_status do_reset(lam_talk *t, char *argument)
{
    (void)argument;
    lam_branches_reset(t->branches);
    tell(t, "forgot the text of");
    return LAM_OK;
}

static lam_status do_set(lam_talk *t, char *argument)
{
    char *value = argument + strcspn(argument, " \t");
    if (*value)
        *value++ = '\0';
    value += strspn(value, " \t");
    LAM_TRY(need(*value ? argument : "", "/set NAME VALUE, such as /set temp 0.8"));
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
    lam_status (*run)(lam_talk *t, char *argument);
} commands[] = {
    {"save", "/save FILE", "save the memory and the place in the text", do_save},
    {"load", "/load FILE", "go to what was saved; on the current branch", do_load},
    {"fork", "/fork [NAME]", "copy this branch and go on in the copy", do_fork},
    {"switch", "/switch NAME", "go to another branch", do_switch},
    {"branches", "/branches", "list the branches", do_branches},
    {"drop", "/drop NAME", "remove a branch", do_drop},
    {"reset", "/reset", "empty the memory of this branch", do_reset},
    {"set", "/set NAME VALUE", "change tokens, temp, top-k, top-p, min-p, seed, ...", do_set},
    {"help", "/help", "print this", do_help},
    {"quit", "/quit", "end; so does the end of the input", do_quit},
};

static lam_status do_help(lam_talk *t, char *argument)
{
    (void)argument;
    lam_log(LAM_LOG_INFO,
            "A line is added to the text, and the model continues it %s or for %d tokens.",
            t->n_stops > 0 ? "through a --stop text" : "to the end of a line", t->o.tokens);
    lam_log(LAM_LOG_INFO, "An empty line lets it go on. A \\ at the end of a line leaves the line "
                          "open; // at its start is a /.");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        lam_log(LAM_LOG_INFO, "  %-16s %s", commands[i].usage, commands[i].help);
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
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(t, argument);
    return lam_fail(LAM_ERR_ARG,
                    "there is no command /%s; /help lists them, and // begins a text "
                    "with /",
                    name);
}
