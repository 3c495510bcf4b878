/* seal_fuzz.c -- whatever CRC32SUMS says, checking succeeds or fails with a message naming a file of the folder.
 * The record's last line is written here, or no input would ever come past it. */
#include "core/seal.h"

#include "core/file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

static void spill(const char *dir, const char *name, const void *data, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    require(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char record[1 << 15];
    char dir[] = "/dev/shm/seal_fuzz.XXXXXX";
    if (size > sizeof record / 2)
        return 0;
    memcpy(record, data, size);
    const int last = snprintf(record + size, sizeof record - size, "%08x %zu CRC32SUMS\n",
                              (unsigned)crc32_z(0, data, size), size);
    require(mkdtemp(dir) != NULL);
    spill(dir, "a", "abc", 3);
    spill(dir, "CRC32SUMS", record, size + (size_t)last);
    for (int all = 0; all < 2; all++)
        if (lam_seal_check(dir, all ? NULL : "a") != LAM_OK)
            require(strncmp(lam_error(), dir, strlen(dir)) == 0);
    require(lam_dir_remove(dir) == LAM_OK);
    return 0;
}
