/* instream_fuzz.c -- whatever the bytes of a file, unpacking ends, with text or with a message; and
 * how much is asked for at a time changes nothing. */
#include "data/instream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

typedef struct outcome {
    lam_status status;
    uint64_t bytes;
    uint32_t crc;
} outcome;

/* At most 4 MiB: a small file may unpack to gigabytes. */
static outcome unpack(const char *path, size_t step)
{
    static unsigned char buffer[1 << 16];
    outcome o = {.crc = (uint32_t)crc32_z(0, NULL, 0)};
    lam_instream *in;
    size_t got = 1;
    o.status = lam_instream_open(&in, path, NULL);
    while (o.status == LAM_OK && got > 0 && o.bytes < 4 << 20) {
        const uint64_t before = lam_instream_offset(in);
        o.status = lam_instream_read(in, buffer, step, &got);
        require(got <= step && lam_instream_offset(in) >= before);
        o.crc = (uint32_t)crc32_z(o.crc, buffer, got);
        o.bytes += got;
    }
    lam_instream_close(in);
    require(o.status == LAM_OK || strncmp(lam_error(), path, strlen(path)) == 0);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const int fd = memfd_create("fuzz", 0);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const outcome a = unpack(path, 1 << 16), b = unpack(path, 1021);
    /* libzstd compares a frame with its announced size only when it unpacks it in one go. */
    const int is_zstd = size >= 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0;
    require(a.status == b.status || is_zstd);
    if (a.status == LAM_OK && b.status == LAM_OK && a.bytes < 4 << 20)
        require(a.bytes == b.bytes && a.crc == b.crc);
    close(fd);
    return 0;
}
