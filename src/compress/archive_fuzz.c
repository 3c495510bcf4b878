/* archive_fuzz.c -- whatever an archive's bytes are, reading header, index and block headers ends with a message or with
 * numbers within the limits.  The checksums are made anew where the first byte is even: a fuzzer would not guess them,
 * and see nothing of what comes after.  No model is needed for this. */
#include "compress/archive.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

static void put_check(uint8_t *at, const uint8_t *bytes, size_t n, uint64_t seed)
{
    const uint32_t check = (uint32_t)XXH64(bytes, n, seed);
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(check >> 8 * i);
}

/* Of the header, of the first block, and of an index that the footer says begins somewhere. */
static void renew(uint8_t *b, size_t n)
{
    size_t header;
    uint32_t blocks;
    uint64_t raw;
    if (n < LAM_LMZ_HEADER + LAM_LMZ_BLOCK + LAM_LMZ_FOOTER ||
        lam_lmz_header_size(&header, b) != LAM_OK)
        return;
    put_check(b + header - 4, b, header - 4, 0);
    put_check(b + header + LAM_LMZ_BLOCK - 4, b + header, LAM_LMZ_BLOCK - 4, 1);
    if (lam_lmz_get_footer(&blocks, &raw, b + n - LAM_LMZ_FOOTER) != LAM_OK)
        return;
    const uint64_t index = 1 + (uint64_t)blocks * LAM_LMZ_ENTRY + LAM_LMZ_FOOTER;
    if (index <= n - header)
        put_check(b + n - 8, b + n - index, (size_t)index - 8, 0);
}

static void look(int fd)
{
    lam_archive a;
    if (lam_archive_open(&a, fd) != LAM_OK) {
        require(lam_error()[0] != '\0');
        return;
    }
    uint64_t raw = 0;
    for (size_t i = 0; i < a.n; i++) {
        lam_lmz_block b;
        uint8_t *stored;
        require(a.blocks[i].raw >= 1 && a.blocks[i].raw <= a.header.block);
        require(a.blocks[i].first == raw &&
                a.blocks[i].at + LAM_LMZ_BLOCK + a.blocks[i].stored <= a.size);
        raw += a.blocks[i].raw;
        if (lam_archive_read(&a, i, &b, &stored) == LAM_OK)
            require(b.raw == a.blocks[i].raw && b.stored == a.blocks[i].stored);
        free(stored);
    }
    require(raw == a.raw);
    lam_archive_close(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    uint8_t *const bytes = malloc(size);
    require(bytes != NULL);
    memcpy(bytes, data + 1, size - 1);
    if (data[0] % 2 == 0)
        renew(bytes, size - 1);
    const int fd = memfd_create("fuzz", 0);
    require(fd >= 0 && write(fd, bytes, size - 1) == (ssize_t)(size - 1));
    look(fd);
    close(fd);
    free(bytes);
    return 0;
}
