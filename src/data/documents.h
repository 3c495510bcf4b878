/* documents.h -- cutting a stream of bytes into documents: lines, files, or a field of JSON lines.
 *
 * A document is a text that is unrelated to the one before it; `--mem-reset document` begins each with an empty
 * memory.  In a corpus it ends with a separator: the end of text of byte pairs, <eos> of words (whose documents are
 * lines: newlines within them are blanks), and a control character of bytes and characters.  Documents without text
 * are left out. */
#ifndef LAM_DATA_DOCUMENTS_H
#define LAM_DATA_DOCUMENTS_H

#include "core/status.h"
#include "data/vocab.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum lam_document_kind {
    LAM_DOCUMENTS_NONE,  /* one running text */
    LAM_DOCUMENTS_LINES, /* without the newline */
    LAM_DOCUMENTS_FILES,
    LAM_DOCUMENTS_JSON, /* lines, each an object with the text in one of its fields */
    LAM_DOCUMENT_KINDS
} lam_document_kind;

extern const char *const lam_document_kind_names[]; /* "off", "lines", ...; ends with NULL */

/* What ends a document of bytes or characters: RS, the record separator of ASCII. */
#define LAM_DOCUMENT_END "\x1e"

/* The token that ends documents; LAM_ERR_ARG: this vocabulary, which messages call `name`, has none. */
lam_status lam_document_separator(int32_t *out, const lam_vocab *vocab, const char *name);

typedef struct lam_documents_options {
    lam_document_kind kind; /* not NONE */
    lam_text_kind text;     /* what its documents are made of */
    const char *field;      /* of JSON lines; kept */
    /* The next bytes of a document; its end, after at least one byte of text. */
    lam_status (*put)(void *user, const void *bytes, size_t n);
    lam_status (*end)(void *user);
    void *user;
} lam_documents_options;

typedef struct lam_documents lam_documents;

lam_status lam_documents_create(lam_documents **out, const lam_documents_options *options);
void lam_documents_free(lam_documents *d); /* NULL is fine */

/* A file begins; `name` is kept for messages.  Its next bytes, cut anywhere.  It ends. */
void lam_documents_start(lam_documents *d, const char *name);
lam_status lam_documents_feed(lam_documents *d, const void *bytes, size_t n);
lam_status lam_documents_finish(lam_documents *d);

#endif
