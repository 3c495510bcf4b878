/* boxed.c -- see boxed.h. */
#include "model/boxed.h"

#include "core/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A card without weights is no model; config.json comes with them. */
static int look_in(char *out, size_t size, const char *place, const char *name)
{
    char config[PATH_MAX];
    return lam_path_join(out, size, place, name) == LAM_OK &&
           lam_path_join(config, sizeof config, out, "config.json") == LAM_OK &&
           lam_path_exists(config);
}

/* The folder of the running program; "" where the system does not tell. */
static void program_folder(char out[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    char *const slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
}

int lam_boxed_find(char *out, size_t size, const char *name)
{
    static const char *const places[] = {"../share/lamemo/models", "../../models"};
    char program[PATH_MAX], place[PATH_MAX];
    const char *const chosen = getenv("LAMEMO_MODELS");
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/'))
        return 0;
    if (chosen && chosen[0])
        return look_in(out, size, chosen, name);
    program_folder(program);
    for (size_t i = 0; program[0] && i < sizeof places / sizeof *places; i++)
        if (lam_path_join(place, sizeof place, program, places[i]) == LAM_OK &&
            look_in(out, size, place, name))
            return 1;
    return 0;
}
