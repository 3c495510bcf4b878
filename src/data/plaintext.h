/* plaintext.h -- converts text files to the form that tokenizers expect.
 *
 * A byte order mark is dropped, CR LF becomes LF, and other encodings become UTF-8 (by iconv).  What holds zero bytes
 * and is to be taken as bytes is no text, and stays as it is. */
#ifndef LAM_DATA_PLAINTEXT_H
#define LAM_DATA_PLAINTEXT_H

#include "data/charset.h"
#include "data/tokenizer.h"

typedef lam_status lam_plaintext_sink(void *user, const void *bytes, size_t n);

typedef struct lam_plaintext_options {
    const char *name; /* of the text, for messages; kept */
    const char
        *encoding; /* a name that iconv knows, or LAM_ENCODING_*; NULL: UTF-8, or any bytes; kept */
    lam_text_kind kind; /* characters and words must be UTF-8 */
    bool keep_crlf;
    bool exact;               /* all bytes as they are: published corpora */
    lam_plaintext_sink *sink; /* gets the text */
    void *user;
} lam_plaintext_options;

typedef struct lam_plaintext lam_plaintext;

lam_status lam_plaintext_create(lam_plaintext **out, const lam_plaintext_options *options);
void lam_plaintext_free(lam_plaintext *p); /* NULL is fine */

/* The next bytes, cut anywhere; the text ends.  What the sink returns other than LAM_OK is returned; if it refuses bytes
 * that are no UTF-8, the message says which encoding they may be. */
lam_status lam_plaintext_feed(lam_plaintext *p, const void *bytes, size_t n);
lam_status lam_plaintext_finish(lam_plaintext *p);

/* A whole text in memory; its sink and user are not used.  *out is owned by the caller (free) and ends with a NUL. */
lam_status lam_plaintext_all(char **out, size_t *size, const char *bytes, size_t n,
                             const lam_plaintext_options *options);

#endif
