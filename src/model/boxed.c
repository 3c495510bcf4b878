/* boxed.c -- see boxed.h. */
#include "model/boxed.h"

#include "core/file.h"

#include <dlfcn.h>
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

static void cut_name(char *path)
{
    char *const slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
}

/* The folder of the running program; "" where the system does not tell. */
static void program_folder(char out[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    cut_name(out);
}

/* The folder of the file this code was loaded from: liblamemo.so, or once more the program. */
static void library_folder(char out[PATH_MAX])
{
    static const char here;
    Dl_info info;
    if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, out))
        out[0] = '\0';
    cut_name(out);
}

/* Seen from `folder`: installed (lib may have a folder for the machine's kind in it), or in a source tree. */
static int look_from(char *out, size_t size, const char *folder, const char *name)
{
    static const char *const places[] = {"../share/lamemo/models", "../../share/lamemo/models",
                                         "../../models"};
    char place[PATH_MAX];
    for (size_t i = 0; folder[0] && i < sizeof places / sizeof *places; i++)
        if (lam_path_join(place, sizeof place, folder, places[i]) == LAM_OK &&
            look_in(out, size, place, name))
            return 1;
    return 0;
}

int lam_boxed_find(char *out, size_t size, const char *name)
{
    char folder[PATH_MAX];
    const char *const chosen = getenv("LAMEMO_MODELS");
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/'))
        return 0;
    if (chosen && chosen[0])
        return look_in(out, size, chosen, name);
    program_folder(folder);
    if (look_from(out, size, folder, name))
        return 1;
    library_folder(folder);
    return look_from(out, size, folder, name);
}
