/* identity.c -- see identity.h. */
#include "compress/identity.h"

#include "core/file.h"
#include "model/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Not the files of a checkpoint that only training reads. */
static int is_model_file(const struct dirent *e)
{
    static const char *const names[] = {"config.json", "vocab.json", "model.safetensors",
                                        "model.safetensors.index.json", "model-*-of-*.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (fnmatch(names[i], e->d_name, 0) == 0)
            return 1;
    return 0;
}

/* Unlike alphasort(), the same in every locale. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static lam_status add_bytes(SHA256_CTX *sha, int fd, const char *path)
{
    unsigned char chunk[1 << 16];
    for (ssize_t n = 1; n > 0;) {
        LAM_TRY(lam_read_check(path));
        n = read(fd, chunk, sizeof chunk);
        if (n < 0)
            return lam_fail(LAM_ERR_IO, "%s: cannot read: %s", path, strerror(errno));
        SHA256Update(sha, chunk, (size_t)n);
    }
    return LAM_OK;
}

static lam_status add_file(SHA256_CTX *sha, uint64_t *bytes, const char *dir, const char *name)
{
    char path[PATH_MAX];
    int fd;
    LAM_TRY(lam_path_join(path, sizeof path, dir, name));
    LAM_TRY(lam_file_open(&fd, path, O_RDONLY));
    struct stat info;
    lam_status status =
        fstat(fd, &info) == 0 ? LAM_OK : lam_fail(LAM_ERR_IO, "%s: cannot stat", path);
    if (status == LAM_OK) {
        uint8_t size[8];
        for (int i = 0; i < 8; i++)
            size[i] = (uint8_t)((uint64_t)info.st_size >> 8 * i);
        SHA256Update(sha, (const uint8_t *)name, strlen(name) + 1);
        SHA256Update(sha, size, sizeof size);
        *bytes += (uint64_t)info.st_size;
        status = add_bytes(sha, fd, path);
    }
    close(fd);
    return status;
}

/* The last part of a path, with what a name must not have replaced. */
static void set_name(char out[LAM_LMZ_NAME + 1], const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t from = end;
    while (from > 0 && path[from - 1] != '/')
        from--;
    const size_t n = end - from < LAM_LMZ_NAME ? end - from : LAM_LMZ_NAME;
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+";
    for (size_t i = 0; i < n; i++)
        out[i] = strchr(good, path[from + i]) ? path[from + i] : '_';
    out[n] = '\0';
}

lam_status lam_identity_of(lam_identity *out, const lam_engine *engine)
{
    char dir[PATH_MAX];
    struct dirent **list;
    SHA256_CTX sha;
    *out = (lam_identity){0};
    LAM_TRY(lam_folder_find(dir, sizeof dir, engine->name));
    const int n = scandir(dir, &list, is_model_file, by_bytes);
    if (n < 0)
        return lam_fail(LAM_ERR_IO, "%s: cannot read: %s", dir, strerror(errno));
    lam_status status = LAM_OK;
    SHA256Init(&sha);
    for (int i = 0; i < n; i++) {
        if (status == LAM_OK)
            status = add_file(&sha, &out->bytes, dir, list[i]->d_name);
        free(list[i]);
    }
    free(list);
    SHA256Final(out->sha256, &sha);
    set_name(out->name, engine->name);
    return status;
}

lam_status lam_identity_compare(const lam_identity *mine, const lam_lmz_header *h)
{
    if (memcmp(mine->sha256, h->model, sizeof h->model) == 0)
        return LAM_OK;
    char theirs[17], ours[17];
    for (int i = 0; i < 8; i++) {
        snprintf(theirs + 2 * (size_t)i, 3, "%02x", h->model[i]);
        snprintf(ours + 2 * (size_t)i, 3, "%02x", mine->sha256[i]);
    }
    return lam_fail(LAM_ERR_FORMAT,
                    "made with model %s (SHA-256 %s...), but the model given is %s (SHA-256 %s...)",
                    h->name[0] ? h->name : "without a name", theirs, mine->name, ours);
}
