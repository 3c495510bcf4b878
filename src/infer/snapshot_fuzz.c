/* snapshot_fuzz.c -- whatever is in the file of a snapshot, loading it fails with a message and leaves the session
 * as it was, or the session goes on from there.  A changed file whose checksum was not made anew always fails.
 *
 * An input changes a good file: its first two bytes say how much is cut off, every three after them which byte
 * becomes which.  Unless the highest bit of the two is set, the checksum is made anew: a fuzzer would not guess it,
 * and see nothing of what comes after. */
#include "infer/session.h"

#include "core/file.h"
#include "model/configure.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TYPES = 5 };

static void require(int claim)
{
    if (!claim)
        abort();
}

static lam_model *small_model(void)
{
    const lam_ops *ops;
    lam_dev *dev;
    lam_config cfg;
    lam_model *model;
    require(lam_config_parse(&cfg,
                             "{\"n_token\":5,\"n_layer\":1,\"n_head\":1,\"d_model\":2,\"d_head\":2,"
                             "\"d_inner\":2,\"tgt_len\":3,\"mem_len\":2,\"memory\":\"lamemo\"}",
                             "config") == LAM_OK);
    require(lam_ops_find(&ops, "ref") == LAM_OK);
    require(ops->open(&dev, &(lam_dev_options){0}) == LAM_OK);
    require(lam_model_create(&model, &cfg, dev) == LAM_OK && lam_model_init(model, 1) == LAM_OK);
    return model;
}

static void go_on(lam_session *s)
{
    double scores[TYPES];
    require(lam_session_feed(s, (const int32_t[]){0, 1, 2, 3}, 4) == LAM_OK);
    const lam_status status = lam_session_logits(s, scores);
    require(status == LAM_OK || status == LAM_ERR_NUMERIC); /* a memory of 1e308 may overflow */
}

/* The file of a session in the middle of a segment. */
static char *good_file(lam_session *s, size_t *size)
{
    char path[] = "/dev/shm/snapshot_fuzz.XXXXXX", *bytes;
    lam_snapshot *p;
    const int fd = mkstemp(path);
    require(fd >= 0 && close(fd) == 0);
    require(lam_session_snapshot(s, &p) == LAM_OK && lam_snapshot_save(p, path) == LAM_OK);
    require(lam_file_load(&bytes, size, path, 1 << 16) == LAM_OK && unlink(path) == 0);
    lam_snapshot_free(p);
    return bytes;
}

static void change(char *bytes, size_t *size, const uint8_t *data, size_t n)
{
    const size_t cut = n < 2 ? 0 : (size_t)data[0] + 256u * (data[1] & 0x7fu);
    for (size_t i = 2; i + 3 <= n; i += 3) {
        const size_t at = (size_t)data[i] + 256u * data[i + 1];
        if (at < *size)
            bytes[at] = (char)data[i + 2];
    }
    *size -= cut < *size ? cut : *size;
}

static int keeps_checksum(const uint8_t *data, size_t n)
{
    return n >= 2 && data[1] >= 0x80;
}

static void renew_checksum(char *bytes, size_t size)
{
    const size_t body = size > sizeof(uint32_t) ? size - sizeof(uint32_t) : 0;
    const uint32_t crc = (uint32_t)crc32_z(0, (const unsigned char *)bytes, body);
    if (body > 0)
        memcpy(bytes + body, &crc, sizeof crc);
}

static lam_status load(lam_session *s, const char *bytes, size_t size)
{
    char path[64];
    lam_snapshot *p;
    const int fd = memfd_create("fuzz", 0);
    require(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    lam_status status = lam_snapshot_load(&p, path);
    require(status == LAM_OK || strncmp(lam_error(), path, strlen(path)) == 0);
    close(fd);
    if (status == LAM_OK)
        status = lam_session_restore(s, p);
    require(status == LAM_OK || lam_session_length(s) == 4);
    lam_snapshot_free(p);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lam_model *model; /* both are there to the end */
    static char *good;
    static size_t whole;
    lam_session *s;
    if (!model)
        model = small_model();
    require(lam_session_create(&s, model, &(lam_session_options){0}) == LAM_OK);
    go_on(s);
    if (!good)
        good = good_file(s, &whole);
    size_t length = whole;
    char *const file = malloc(whole);
    require(file != NULL);
    memcpy(file, good, whole);
    change(file, &length, data, size);
    const int same = length == whole && memcmp(file, good, whole) == 0;
    if (!keeps_checksum(data, size))
        renew_checksum(file, length);
    const lam_status status = load(s, file, length);
    require(same || !keeps_checksum(data, size) || status != LAM_OK);
    go_on(s);
    free(file);
    lam_session_free(s);
    return 0;
}
