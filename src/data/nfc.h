/* nfc.h -- a stream of text in Unicode's normal form C, which some tokenizers (Qwen) want.
 *
 * Bytes that are not UTF-8 stay as they are, and what stands on either side of them is not composed.  However the text
 * is cut into blocks, the result is the same.  A run of 64 KiB of marks and jamos without any other character is cut. */
#ifndef LAM_DATA_NFC_H
#define LAM_DATA_NFC_H

#include "core/status.h"

#include <stddef.h>

typedef lam_status lam_byte_sink(void *user, const char *bytes, size_t n);

typedef struct lam_nfc lam_nfc;

lam_status lam_nfc_create(lam_nfc **out, lam_byte_sink *sink, void *user); /* kept */
void lam_nfc_free(lam_nfc *nfc);                                           /* NULL is fine */

lam_status lam_nfc_feed(lam_nfc *nfc, const char *bytes, size_t n);
lam_status lam_nfc_finish(lam_nfc *nfc); /* the text ends; another may begin */

#endif
