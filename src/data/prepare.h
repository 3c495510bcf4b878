/* prepare.h -- from text to a corpus folder.  (For byte pairs: prepare_bpe.c.)
 *
 * One pass reads the text (which may come through a pipe) and numbers its symbols as they appear;
 * the numbers wait in a temporary file.  Then the text is cut, the symbols are counted and ordered,
 * and the splits are written.  Memory holds the symbols, never the text.  The folder appears whole
 * or not at all. */
#ifndef LAM_DATA_PREPARE_H
#define LAM_DATA_PREPARE_H

#include "data/corpus.h"
#include "data/division.h"
#include "data/documents.h"
#include "data/published.h"

typedef struct lam_prepare_progress {
    const char *stage;    /* "reading", "counting", "merging", "writing" */
    uint64_t done, total; /* of the stage, in bytes or tokens; total 0: unknown */
} lam_prepare_progress;

enum { LAM_BPE_SIZE = 8192 }; /* tokens of a vocabulary that is learned */

typedef struct lam_prepare_options {
    const lam_published *published; /* prepare exactly like this one; NULL: by the fields below */
    /* Take this vocabulary and its rules for the text, in the place of kind, lower, min_count and
     * max_vocab; kept.  NULL, as for a published corpus: the text makes one. */
    const lam_vocab *vocab;
    const char *vocab_name; /* where the vocabulary comes from, for messages */
    lam_text_kind kind;
    lam_document_kind documents; /* where a document ends, a separator follows */
    const char *json_field;      /* of JSON lines */
    lam_division division;       /* with documents: whole ones */
    bool cut;          /* the division was requested: a text that already has splits is refused */
    bool join;         /* names of files do not mean splits */
    bool recursive;    /* folders within folders are read, too */
    int64_t min_count; /* rarer words become <unk>; of byte pairs: rarer ones are not merged */
    int max_vocab;     /* 0: no limit; of byte pairs: LAM_BPE_SIZE */
    bool lower;
    const char *encoding; /* of the texts (plaintext.h); NULL: UTF-8, or any bytes */
    bool keep_crlf;       /* lines may end with CR LF */
    bool blanks;          /* words are what stands between blanks, as in published corpora */
    /* Of byte pairs: */
    const char *pattern; /* to learn with; NULL: GPT-2's */
    lam_special special; /* what special tokens written in the text are */
    int threads;         /* 0: one for each CPU; the result does not depend on it */

    bool force;       /* accept a text that is not the published one, under its own name */
    bool replace;     /* an existing corpus in `out` may be replaced */
    const char *name; /* NULL: the name of the first input */
    const char *out;  /* the folder to make */
    /* Texts, folders of texts (read by name), zip archives; "-" is standard input.  Where their names say train, valid
     * and test, they are these splits; otherwise they are one text, one after the other. */
    int n_inputs;
    const char *const *inputs;

    /* Called now and then; a non-zero return stops with LAM_ERR_INTERRUPTED.  May be NULL. */
    int (*progress)(void *user, const lam_prepare_progress *p);
    void *user;
} lam_prepare_options;

/* *info describes the new corpus; the caller frees it (lam_corpus_info_free), also after a failure. */
lam_status lam_prepare(lam_corpus_info *info, const lam_prepare_options *options);

#endif
