/* tokens_fuzz.c -- whatever the bytes of a corpus file, opening fails with a message or gives tokens
 * that can be read to the last; verified ones are all in the vocabulary.  The header's checksum is
 * mended first, or no input would ever come past it. */
#include "data/tokens.h"

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

static void mend(uint8_t *header)
{
    const uint32_t crc = (uint32_t)crc32_z(0, header, 60);
    for (int i = 0; i < 4; i++)
        header[60 + i] = (uint8_t)(crc >> 8 * i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[1 << 16];
    char path[64];
    lam_tokens t;
    if (size > sizeof file)
        return 0;
    memcpy(file, data, size);
    if (size >= LAM_TOKENS_HEADER)
        mend(file);
    const int fd = memfd_create("fuzz", 0);
    require(fd >= 0 && write(fd, file, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const lam_status status = lam_tokens_open(&t, path);
    if (status != LAM_OK) {
        require(status == LAM_ERR_FORMAT && strncmp(lam_error(), path, strlen(path)) == 0);
    } else {
        const int good = lam_tokens_verify(&t, path) == LAM_OK;
        for (int64_t i = 0; i < t.count; i++) {
            int32_t id;
            lam_tokens_copy(&t, &id, i, 1);
            require(!good || (id >= 0 && id < t.vocab_size));
        }
        lam_tokens_close(&t);
    }
    close(fd);
    return 0;
}
