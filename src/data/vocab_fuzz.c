/* vocab_fuzz.c -- whatever is in vocab.json, loading fails with a message or gives a vocabulary whose
 * symbols and numbers find each other, and which comes back the same when saved. */
#include "data/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    lam_vocab *v;
    const int fd = memfd_create("fuzz", 0);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const lam_status status = lam_vocab_load(&v, path);
    close(fd);
    if (status != LAM_OK) {
        require(v == NULL && strncmp(lam_error(), path, strlen(path)) == 0);
        return 0;
    }
    require(lam_vocab_size(v) > 0 && lam_vocab_eos(v) < lam_vocab_size(v));
    for (int32_t i = 0; i < lam_vocab_size(v); i++) {
        size_t n;
        const char *text = lam_vocab_symbol(v, i, &n);
        require(text[n] == '\0' && lam_vocab_find(v, text, n) == i && lam_vocab_count(v, i) >= 0);
    }
    lam_vocab_free(v);
    return 0;
}
