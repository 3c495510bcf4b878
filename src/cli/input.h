/* input.h -- what commands are given: a model, texts, a vocabulary. */
#ifndef LAM_CLI_INPUT_H
#define LAM_CLI_INPUT_H

#include "cli/options.h"
#include "data/vocab.h"
#include "model/boxed.h"
#include "model/model.h"

#include <stddef.h>

/* The text that `argument` stands for: itself, @FILE (compressed or not), or - for standard input.  It is owned by the
 * caller (free) and ends with a NUL.  At most 1 GiB.  LAM_ERR_INTERRUPTED when a signal ends the wait for it. */
lam_status lam_prompt_read(char **text, size_t *size, const char *argument);

/* A message about what is in the text names where it came from, unless it was written on the command line. */
lam_status lam_prompt_blame(lam_status status, const char *argument);

/* Texts, each with a name for messages and tables: itself, a file, or a line of one. */
typedef struct lam_given_text {
    char *text, *name;
    size_t size;
    bool from_file;
} lam_given_text;

typedef struct lam_texts { /* begins as zeros */
    lam_given_text *v;
    int n;
    size_t room;
} lam_texts;

/* Adds what lam_prompt_read() reads.  LAM_ERR_ARG: the argument is the name of a file, and the @ was forgotten. */
lam_status lam_texts_add(lam_texts *texts, const char *argument);
/* Adds the lines of a file (- for standard input), empty ones left out; in a file NAME.jsonl every line is a JSON string
 * or an object with a string under `key`. */
lam_status lam_texts_add_lines(lam_texts *texts, const char *path, const char *key);
void lam_texts_free(lam_texts *texts);

/* `text` (in place) with \n, \t, \r, \\ and \xHH as the bytes they mean.  LAM_ERR_ARG: another letter follows a
 * backslash, or the byte is 0. */
lam_status lam_unescape(char *text, const char *label);

/* A table entry for a `const char *` at `field` of struct `type`. */
/* clang-format off */
#define LAM_MODEL_OPTION(type, field) \
    {"model", 'm', "DIR", LAM_OPT_PATH, offsetof(type, field), \
     .help = "Model or run folder, or " LAM_BOXED ", the bundled model."}
/* clang-format on */

/* LAM_ERR_ARG where --model was not written; the message tells of the model at hand.  LAM_ERR_IO: it is nearly the name
 * of the bundled one. */
lam_status lam_model_required(const lam_args *args, const char *model);

/* The vocabulary of a model, run or corpus folder, or of a file (convert/vocabulary.h); `pattern`, for ranks of tiktoken,
 * may be NULL. */
lam_status lam_vocab_option(lam_vocab **out, const char *from, const char *pattern);

/* What is wrong with the first operand that the command does not take, and what it may have meant; returns out. */
const char *lam_stray(char *out, size_t size, const lam_args *args);

/* LAM_ERR_ARG where --mem-len asks for a memory that the model cannot have. */
lam_status lam_model_remembers(const lam_model *model, int mem_len);

#endif
