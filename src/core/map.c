/* map.c -- read-only mappings of files.
 *
 * Only regular files are mapped: a pipe has no size. A file that shrinks while it is mapped kills the
 * reader (SIGBUS); lamemo replaces its own files by renaming and never truncates them. */
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

lam_status lam_map_open(lam_map *out, const char *path)
{
    static const unsigned char nothing[1];
    lam_status status = LAM_OK;
    *out = (lam_map){NULL, 0};

    int fd;
    struct stat info;
    LAM_TRY(lam_file_open(&fd, path, O_RDONLY));
    if (fstat(fd, &info) != 0) {
        status = lam_fail(LAM_ERR_IO, "%s: cannot read: %s", path, strerror(errno));
    } else if (info.st_size == 0) {
        *out = (lam_map){nothing, 0};
    } else {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = lam_fail(LAM_ERR_IO, "%s: cannot map %lld bytes: %s", path,
                              (long long)info.st_size, strerror(errno));
        else
            *out = (lam_map){data, (size_t)info.st_size};
    }
    close(fd);
    return status;
}

void lam_map_close(lam_map *map)
{
    if (map->size > 0)
        munmap((void *)map->data, map->size);
    *map = (lam_map){NULL, 0};
}
