/* commands.c -- see commands.h. */
#include "cli/commands.h"

#include "cli/spelling.h"

#include <string.h>

#define ADDRESS(name) &lam_command_##name,
const lam_command *const lam_commands[] = {LAM_COMMANDS(ADDRESS) NULL};
#undef ADDRESS

lam_status lam_command_find(const lam_command **out, const char *name)
{
    const char *names[LAM_OPTIONS_MAX] = {0};
    int n = 0;
    *out = NULL;
    for (; lam_commands[n] != NULL; n++) {
        names[n] = lam_commands[n]->name;
        if (strcmp(names[n], name) == 0)
            *out = lam_commands[n];
    }
    if (*out != NULL)
        return LAM_OK;
    names[n++] = "--version"; /* which take the place of a command */
    names[n] = "--help";
    const char *near = lam_closest(name, names);
    if (near != NULL)
        return lam_fail(LAM_ERR_ARG, "there is no command '%s'; did you mean '%s'?", name, near);
    return lam_fail(LAM_ERR_ARG, "there is no command '%s'", name);
}
