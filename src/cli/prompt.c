/* prompt.c -- see prompt.h.  Reads by itself, not with lam_file_load(): a pipe may never end, and a
 * signal that arrives while we wait for it must be heard. */
#include "cli/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t LIMIT = (size_t)1 << 30;

static lam_status failed(const char *name, const char *verb)
{
    return lam_fail(errno == EINTR ? LAM_ERR_INTERRUPTED : LAM_ERR_IO, "%s: cannot %s: %s", name,
                    verb, strerror(errno));
}

/* *text may be non-NULL after a failure too. */
static lam_status read_all(char **text, size_t *size, int fd, const char *name)
{
    for (size_t room = 0;;) {
        if (*size + 1 >= room) {
            room = room ? 2 * room : 1 << 16;
            char *const grown = realloc(*text, room);
            if (!grown)
                return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu bytes", name, room);
            *text = grown;
        }
        const ssize_t n = read(fd, *text + *size, room - *size - 1);
        if (n < 0)
            return failed(name, "read");
        *size += (size_t)n;
        (*text)[*size] = '\0';
        if (n == 0)
            return LAM_OK;
        if (*size > LIMIT)
            return lam_fail(LAM_ERR_FORMAT, "%s: longer than %zu bytes", name, LIMIT);
    }
}

lam_status lam_prompt_read(char **text, size_t *size, const char *argument)
{
    *text = NULL;
    *size = 0;
    const int standard = strcmp(argument, "-") == 0;
    if (!standard && argument[0] != '@') {
        *text = strdup(argument);
        *size = strlen(argument);
        return *text ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "prompt: no memory");
    }
    const char *const name = standard ? "standard input" : argument + 1;
    if (*name == '\0')
        return lam_fail(LAM_ERR_ARG, "'@' is followed by no file name");
    const int fd = standard ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failed(name, "open");
    const lam_status status = read_all(text, size, fd, name);
    if (!standard)
        close(fd);
    if (status != LAM_OK) {
        free(*text);
        *text = NULL;
        *size = 0;
    }
    return status;
}
