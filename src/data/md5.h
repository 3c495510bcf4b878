/* md5.h -- MD5 (RFC 1321), only to recognise the published files by their published sums. */
#ifndef LAM_DATA_MD5_H
#define LAM_DATA_MD5_H

#include <stddef.h>
#include <stdint.h>

typedef struct lam_md5 {
    uint32_t state[4];
    uint64_t size; /* bytes so far */
    unsigned char block[64];
} lam_md5;

void lam_md5_start(lam_md5 *m);
void lam_md5_add(lam_md5 *m, const void *data, size_t size);
void lam_md5_finish(lam_md5 *m, char hex[33]);

#endif
