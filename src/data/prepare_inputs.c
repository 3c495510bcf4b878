/* prepare_inputs.c -- which files may hold the text: the ones named, those of folders, those of archives.  Which of them
 * are splits is judged in prepare_splits.c. */
#include "data/prepare_int.h"

#include "core/file.h"
#include "core/grow.h"
#include "data/instream.h"
#include "data/split_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEEPEST = 64 };

const char *lam_input_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static bool is_text_name(const lam_prepare_options *o, const char *name)
{
    return lam_text_name(name) || (o->documents == LAM_DOCUMENTS_JSON && lam_json_lines_name(name));
}

static lam_status grow(lam_inputs *in)
{
    if (in->n == LAM_SOURCES_MAX)
        return lam_fail(LAM_ERR_FORMAT, "more than %d files: join some of them", LAM_SOURCES_MAX);
    return lam_grow(&in->list, &in->room, (size_t)in->n + 1, sizeof *in->list, "file names");
}

static lam_status add(lam_inputs *in, const char *path, const char *label, const char *entry,
                      lam_input_kind kind)
{
    LAM_TRY(grow(in));
    lam_input *i = &in->list[in->n++];
    *i = (lam_input){.kind = kind, .path = strdup(path), .label = strdup(label)};
    if (entry != NULL)
        i->entry = strdup(entry);
    if (i->path == NULL || i->label == NULL || (entry != NULL && i->entry == NULL))
        return lam_fail(LAM_ERR_MEMORY, "no memory for a file name");
    return LAM_OK;
}

/* ---- folders ---- */

static int is_shown(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* In the order of bytes, which is that of the shell in the locale C: the same everywhere. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* A pipe that the user names is a text; one that lies in a folder would be waited for by surprise. */
static lam_status is_regular(const char *path)
{
    int fd;
    LAM_TRY(lam_file_open(&fd, path, O_RDONLY));
    close(fd);
    return LAM_OK;
}

typedef struct walk {
    lam_inputs *in;
    const lam_prepare_options *o;
    int depth;
} walk;

static lam_status add_folder(walk *w, const char *dir, const char *label);

static lam_status add_entry(walk *w, const char *dir, const char *label, const char *name)
{
    char path[PATH_MAX], shown[PATH_MAX];
    LAM_TRY(lam_path_join(path, sizeof path, dir, name));
    const bool folder = lam_path_is_folder(path);
    if (snprintf(shown, sizeof shown, "%s%s%s", label, name, folder ? "/" : "") >= PATH_MAX)
        return lam_fail(LAM_ERR_IO, "%s: the path is too long", path);
    if (folder && w->o->recursive)
        return add_folder(w, path, shown);
    const bool text = !folder && is_text_name(w->o, name);
    if (text)
        LAM_TRY(is_regular(path));
    return add(w->in, path, shown, NULL,
               text     ? LAM_INPUT_TEXT
               : folder ? LAM_INPUT_FOLDER
                        : LAM_INPUT_OTHER);
}

static lam_status add_folder(walk *w, const char *dir, const char *label)
{
    struct dirent **found = NULL;
    if (w->depth == DEEPEST)
        return lam_fail(LAM_ERR_FORMAT, "%s: more than %d folders, one in another", dir, DEEPEST);
    const int n = scandir(dir, &found, is_shown, by_name);
    if (n < 0)
        return lam_fail(LAM_ERR_IO, "%s: cannot be read: %s", dir, strerror(errno));
    lam_status status = LAM_OK;
    w->depth++;
    for (int i = 0; i < n && status == LAM_OK; i++)
        status = add_entry(w, dir, label, found[i]->d_name);
    w->depth--;
    for (int i = 0; i < n; i++)
        free(found[i]);
    free(found);
    return status;
}

/* ---- archives ---- */

static bool is_archive(const char *path)
{
    const size_t n = strlen(path);
    struct stat info;
    return n > 4 && strcasecmp(path + n - 4, ".zip") == 0 && stat(path, &info) == 0 &&
           S_ISREG(info.st_mode);
}

static lam_status add_archive(lam_inputs *in, const lam_prepare_options *o, const char *path)
{
    lam_instream *stream;
    const int before = in->n;
    LAM_TRY(lam_instream_open(&stream, path, NULL));
    const char *name = lam_instream_entry(stream);
    lam_status status =
        name != NULL ? LAM_OK : add(in, path, lam_input_base(path), NULL, LAM_INPUT_NAMED);
    while (status == LAM_OK && name != NULL) {
        status = add(in, path, name, name,
                     is_text_name(o, lam_input_base(name)) ? LAM_INPUT_TEXT : LAM_INPUT_OTHER);
        if (status == LAM_OK)
            status = lam_instream_next(stream, &name);
    }
    lam_instream_close(stream);
    if (status == LAM_OK && in->n == before + 1) /* one file: a text, whatever it is called */
        in->list[before].kind = LAM_INPUT_NAMED;
    return status;
}

/* ---- all inputs ---- */

static lam_status add_operand(lam_inputs *in, const lam_prepare_options *o, const char *path)
{
    char label[PATH_MAX];
    for (int i = 0; i < in->n && strcmp(path, "-") == 0; i++)
        if (strcmp(in->list[i].path, "-") == 0)
            return lam_fail(LAM_ERR_ARG, "-: standard input can be read only once");
    if (strcmp(path, "-") == 0)
        return add(in, path, "standard input", NULL, LAM_INPUT_NAMED);
    if (lam_path_is_folder(path)) {
        size_t n = strlen(lam_input_base(path));
        while (n > 0 && lam_input_base(path)[n - 1] == '/')
            n--;
        /* of several folders, each has a name that may be that of a split */
        snprintf(label, sizeof label, "%.*s%s", o->n_inputs > 1 ? (int)n : 0, lam_input_base(path),
                 o->n_inputs > 1 ? "/" : "");
        return add_folder(&(walk){in, o, 0}, path, label);
    }
    return is_archive(path) ? add_archive(in, o, path)
                            : add(in, path, lam_input_base(path), NULL, LAM_INPUT_NAMED);
}

lam_status lam_inputs_find(lam_inputs *out, const lam_prepare_options *o)
{
    *out = (lam_inputs){0};
    if (o->published != NULL && o->published->split != NULL &&
        (o->n_inputs != 1 || lam_path_is_folder(o->inputs[0])))
        return lam_fail(LAM_ERR_ARG, "%s is one file, not %s", o->published->name,
                        o->n_inputs != 1 ? "several" : "a folder");
    for (int i = 0; i < o->n_inputs; i++)
        LAM_TRY(add_operand(out, o, o->inputs[i]));
    return lam_inputs_judge(out, o);
}

void lam_inputs_free(lam_inputs *in)
{
    for (int i = 0; i < in->n; i++) {
        free(in->list[i].path);
        free(in->list[i].label);
        free(in->list[i].entry);
    }
    free(in->list);
    *in = (lam_inputs){0};
}
