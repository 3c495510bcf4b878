/* prepare_inputs.c -- which files hold the text: the ones named, the three splits of a folder or
 * archive under the names people give them, or all texts of a folder. */
#include "data/prepare_int.h"

#include "core/file.h"
#include "data/instream.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* %s is the split. */
static const char *const patterns[] = {"wiki.%s.tokens", "ptb.%s.txt", "%s.txt"};
static const char *const suffixes[] = {"", ".gz", ".xz", ".zst"};
enum {
    PATTERNS = sizeof patterns / sizeof *patterns,
    SUFFIXES = sizeof suffixes / sizeof *suffixes
};

static void pattern_name(char *name, size_t size, int pattern, int split)
{
    const char *word = lam_split_name((lam_split)split), *p = patterns[pattern];
    const char *hole = strstr(p, "%s");
    snprintf(name, size, "%.*s%s%s", (int)(hole - p), p, word, hole + 2);
}

/* Fills the list if all three splits are there under this pattern. */
static bool match_folder(lam_inputs *out, const char *dir, int pattern)
{
    for (int s = 0; s < LAM_SPLITS; s++) {
        char name[64], packed[96];
        bool found = false;
        pattern_name(name, sizeof name, pattern, s);
        for (int i = 0; i < SUFFIXES && !found; i++) {
            snprintf(packed, sizeof packed, "%s%s", name, suffixes[i]);
            found = lam_path_join(out->list[s].path, PATH_MAX, dir, packed) == LAM_OK &&
                    lam_path_exists(out->list[s].path);
        }
        if (!found)
            return false;
    }
    return true;
}

/* NAME.txt, packed or not; not what is hidden. */
static int is_text(const struct dirent *e)
{
    const size_t n = strlen(e->d_name);
    for (int i = 0; i < SUFFIXES; i++) {
        char end[16];
        const size_t k = (size_t)snprintf(end, sizeof end, ".txt%s", suffixes[i]);
        if (e->d_name[0] != '.' && n > k && strcmp(e->d_name + n - k, end) == 0)
            return 1;
    }
    return 0;
}

/* In the order of bytes, which is that of the shell in the locale C: the same everywhere. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static lam_status take_texts(lam_inputs *out, const char *dir, struct dirent **found, int n)
{
    lam_input *list = realloc(out->list, ((size_t)n + LAM_SPLITS) * sizeof *list);
    if (list == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d file names", n);
    out->list = list;
    out->n = n;
    for (int i = 0; i < n; i++) {
        list[i] = (lam_input){0};
        LAM_TRY(lam_path_join(list[i].path, PATH_MAX, dir, found[i]->d_name));
    }
    return LAM_OK;
}

static lam_status list_texts(lam_inputs *out, const char *dir)
{
    struct dirent **found = NULL;
    const int n = scandir(dir, &found, is_text, by_name);
    if (n < 0)
        return lam_fail(LAM_ERR_IO, "%s: cannot be read: %s", dir, strerror(errno));
    const lam_status status =
        n > 0 ? take_texts(out, dir, found, n)
              : lam_fail(LAM_ERR_FORMAT,
                         "%s: holds neither wiki.{train,valid,test}.tokens nor ptb.*.txt nor any "
                         "other .txt",
                         dir);
    for (int i = 0; i < n; i++)
        free(found[i]);
    free(found);
    return status;
}

/* A pipe that the user names is a text; one that lies in a folder would be waited for by surprise. */
static lam_status all_regular(const lam_inputs *in)
{
    for (int i = 0; i < in->n; i++) {
        int fd;
        LAM_TRY(lam_file_open(&fd, in->list[i].path, O_RDONLY));
        close(fd);
    }
    return LAM_OK;
}

static lam_status find_in_folder(lam_inputs *out, const char *dir, const lam_published *published,
                                 bool cut)
{
    out->is_split = true;
    out->n = LAM_SPLITS;
    for (int i = 0; i < PATTERNS; i++)
        if (match_folder(out, dir, i))
            return !cut ? all_regular(out)
                        : lam_fail(LAM_ERR_ARG, "%s has splits of its own: %s, ...", dir,
                                   out->list[0].path);
    if (published != NULL)
        return lam_fail(LAM_ERR_FORMAT,
                        "%s: holds neither wiki.{train,valid,test}.tokens nor ptb.*.txt nor "
                        "{train,valid,test}.txt",
                        dir);
    out->is_split = false;
    LAM_TRY(list_texts(out, dir));
    return all_regular(out);
}

static lam_status find_in_archive(lam_inputs *out, const char *path)
{
    for (int i = 0; i < PATTERNS; i++) {
        lam_instream *in;
        char name[64];
        pattern_name(name, sizeof name, i, LAM_TRAIN);
        const lam_status status = lam_instream_open(&in, path, name);
        lam_instream_close(in);
        if (status == LAM_ERR_FORMAT)
            continue;
        LAM_TRY(status);
        for (int s = 0; s < LAM_SPLITS; s++) {
            snprintf(out->list[s].path, PATH_MAX, "%s", path);
            pattern_name(out->list[s].entry, sizeof out->list[s].entry, i, s);
        }
        return LAM_OK;
    }
    return lam_fail(LAM_ERR_FORMAT, "%s: neither a folder nor a zip archive with the three splits",
                    path);
}

lam_status lam_inputs_find(lam_inputs *out, const lam_prepare_options *o)
{
    const bool wants_splits = o->published != NULL && o->published->split == NULL;
    const int n = o->n_inputs;
    *out = (lam_inputs){0};
    out->list = calloc((size_t)n + LAM_SPLITS, sizeof *out->list);
    if (out->list == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d file names", n);
    if (n == 1 && (wants_splits || lam_path_is_folder(o->inputs[0]))) {
        out->is_split = true;
        out->n = LAM_SPLITS;
        return lam_path_is_folder(o->inputs[0])
                   ? find_in_folder(out, o->inputs[0], o->published, o->cut)
                   : find_in_archive(out, o->inputs[0]);
    }
    if (wants_splits && n != LAM_SPLITS)
        return lam_fail(LAM_ERR_ARG, "%s needs its folder, its zip archive or its three files",
                        o->published->name);
    if (o->published != NULL && !wants_splits && n != 1)
        return lam_fail(LAM_ERR_ARG, "%s is one file, not %d", o->published->name, n);
    out->is_split = wants_splits;
    out->n = n;
    for (int i = 0; i < n; i++)
        if (snprintf(out->list[i].path, PATH_MAX, "%s", o->inputs[i]) >= PATH_MAX)
            return lam_fail(LAM_ERR_ARG, "a file name is longer than %d bytes", PATH_MAX - 1);
    return LAM_OK;
}

void lam_inputs_free(lam_inputs *inputs)
{
    free(inputs->list);
    *inputs = (lam_inputs){0};
}
