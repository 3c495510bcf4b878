/* scratch.c -- see scratch.h. */
#include "data/scratch.h"

#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct lam_scratch {
    int fd;
    size_t size;
    void *map; /* NULL: not mapped yet */
    char dir[PATH_MAX];
};

static lam_status failed(const lam_scratch *s, const char *verb)
{
    return lam_fail(LAM_ERR_IO, "%s: cannot %s a temporary file: %s", s->dir, verb,
                    errno == ENOSPC || errno == EDQUOT ? "no space left on the device"
                                                       : strerror(errno));
}

lam_status lam_scratch_create(lam_scratch **out, const char *dir)
{
    char name[PATH_MAX];
    *out = NULL;
    LAM_TRY(lam_path_join(name, sizeof name, dir, "prepare-XXXXXX"));
    lam_scratch *s = calloc(1, sizeof *s);
    if (s == NULL)
        return lam_fail(LAM_ERR_MEMORY, "no memory for a temporary file");
    strncpy(s->dir, dir, sizeof s->dir - 1);
    s->fd = mkostemp(name, O_CLOEXEC);
    if (s->fd < 0) {
        const lam_status status = failed(s, "create");
        free(s);
        return status;
    }
    unlink(name);
    *out = s;
    return LAM_OK;
}

void lam_scratch_free(lam_scratch *s)
{
    if (s == NULL)
        return;
    if (s->map != NULL)
        munmap(s->map, s->size);
    close(s->fd);
    free(s);
}

lam_status lam_scratch_put(lam_scratch *s, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t some = write(s->fd, (const char *)bytes + at, n - at);
        if (some < 0 && errno != EINTR)
            return failed(s, "write");
        at += some > 0 ? (size_t)some : 0;
    }
    s->size += n;
    return LAM_OK;
}

size_t lam_scratch_size(const lam_scratch *s)
{
    return s->size;
}

lam_status lam_scratch_map(lam_scratch *s, const char **text)
{
    *text = "";
    if (s->map == NULL && s->size > 0) {
        void *map = mmap(NULL, s->size, PROT_READ, MAP_PRIVATE, s->fd, 0);
        if (map == MAP_FAILED)
            return failed(s, "map");
        s->map = map;
    }
    if (s->map != NULL)
        *text = s->map;
    return LAM_OK;
}
