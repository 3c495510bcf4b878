/* safetensors_index.c -- several safetensors files as one, through an index in Hugging Face's format.
 *
 * The index is untrusted like the files: it may name only files in its own folder, and must agree with them
 * tensor by tensor. */
#include "io/safetensors_int.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INDEX = 100000000, MAX_FILES = 10000 };

/* A file beside the index, and nothing else. */
static int is_plain_name(const char *name)
{
    static const char suffix[] = ".safetensors";
    const size_t n = strlen(name);
    return n > sizeof suffix - 1 && !strchr(name, '/') && name[0] != '.' &&
           strcmp(name + n - (sizeof suffix - 1), suffix) == 0;
}

/* The folder of `path` and a name. */
static lam_status beside(char *out, size_t size, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (n + strlen(name) >= size)
        return lam_fail(LAM_ERR_ARG, "%s: path longer than %zu bytes", path, size);
    memcpy(out, path, n);
    strcpy(out + n, name);
    return LAM_OK;
}

/* files: {name of file: number of its part} */
static lam_status open_part(lam_safetensors *st, json_t *files, const char *name)
{
    char path[PATH_MAX];
    if (st->n_parts == MAX_FILES)
        return lam_fail(LAM_ERR_FORMAT, "%s: names more than %d files", st->path, MAX_FILES);
    lam_safetensors **grown = realloc(st->parts, (size_t)(st->n_parts + 1) * sizeof(*grown));
    if (!grown)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", st->path);
    st->parts = grown;
    LAM_TRY(beside(path, sizeof path, st->path, name));
    LAM_TRY(lam_st_open(&st->parts[st->n_parts], path));
    st->n_parts++;
    if (json_object_set_new(files, name, json_integer(st->n_parts - 1)) != 0)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", st->path);
    return LAM_OK;
}

/* Opens the files of the map and looks every tensor up in its own. */
static lam_status open_parts(lam_safetensors *st, json_t *map, json_t *files)
{
    const char *tensor;
    json_t *value;
    json_object_foreach(map, tensor, value) {
        const char *name = json_string_value(value);
        if (!name || !is_plain_name(name))
            return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s: not in a .safetensors file beside it",
                            st->path, tensor);
        if (!json_object_get(files, name))
            LAM_TRY(open_part(st, files, name));
        const lam_safetensors *part = st->parts[json_integer_value(json_object_get(files, name))];
        if (!lam_st_find(part, tensor))
            return lam_fail(LAM_ERR_FORMAT, "%s: tensor %s is not in %s", st->path, tensor, name);
    }
    return LAM_OK;
}

/* Each tensor of the map is in its file; so if the numbers agree, nothing else is there. */
static lam_status gather(lam_safetensors *st, size_t mapped)
{
    size_t total = 0;
    for (int i = 0; i < st->n_parts; i++)
        total += (size_t)st->parts[i]->count;
    if (total != mapped)
        return lam_fail(LAM_ERR_FORMAT, "%s: names %zu tensors, its files hold %zu", st->path,
                        mapped, total);
    st->tensors = calloc(total + 1, sizeof *st->tensors);
    st->by_name = calloc(total + 1, sizeof *st->by_name);
    if (!st->tensors || !st->by_name)
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory for %zu tensors", st->path, total);
    for (int i = 0; i < st->n_parts; i++)
        for (int k = 0; k < st->parts[i]->count; k++)
            st->tensors[st->count++] = st->parts[i]->tensors[k];
    for (int i = 0; i < st->count; i++)
        st->by_name[i] = &st->tensors[i];
    qsort(st->by_name, (size_t)st->count, sizeof *st->by_name, lam_st_compare_names);
    return LAM_OK;
}

static lam_status read_index(lam_safetensors *st)
{
    json_t *root;
    LAM_TRY(lam_json_load(&root, st->path, MAX_INDEX));
    json_t *files = json_object(), *map = json_object_get(root, "weight_map");
    lam_status status = LAM_OK;
    if (!files)
        status = lam_fail(LAM_ERR_MEMORY, "%s: no memory", st->path);
    if (status == LAM_OK && !json_is_object(map))
        status = lam_fail(LAM_ERR_FORMAT, "%s: has no object weight_map", st->path);
    if (status == LAM_OK)
        status = open_parts(st, map, files);
    if (status == LAM_OK)
        status = gather(st, json_object_size(map));
    json_decref(files);
    json_decref(root);
    return status;
}

/* The tensors of several files as one, as an index of Hugging Face divides them. */
static lam_status open_index(lam_safetensors **out, const char *path)
{
    *out = NULL;
    lam_safetensors *st = calloc(1, sizeof *st);
    if (!st || !(st->path = strdup(path))) {
        free(st);
        return lam_fail(LAM_ERR_MEMORY, "%s: no memory", path);
    }
    const lam_status status = read_index(st);
    if (status == LAM_OK)
        *out = st;
    else
        lam_st_close(st);
    return status;
}

lam_status lam_st_open_folder(lam_safetensors **out, const char *dir)
{
    char whole[PATH_MAX], index[PATH_MAX];
    *out = NULL;
    LAM_TRY(lam_path_join(whole, sizeof whole, dir, "model.safetensors"));
    LAM_TRY(lam_path_join(index, sizeof index, dir, "model.safetensors.index.json"));
    if (!lam_path_exists(whole) && lam_path_exists(index))
        return open_index(out, index);
    return lam_st_open(out, whole);
}
