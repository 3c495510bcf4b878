/* interactive_int.h -- an interactive session as its two files share it. */
#ifndef LAM_CLI_INTERACTIVE_INT_H
#define LAM_CLI_INTERACTIVE_INT_H

#include "cli/branches.h"
#include "draw/text.h"

typedef struct lam_talk {
    const lam_engine *engine;
    lam_generate_args o; /* /set changes it */
    const char *const *stops;
    int n_stops;
    lam_branches *branches;
    lam_text line;       /* as it was typed, without its newline */
    lam_text written;    /* what the model has added in this turn */
    uint64_t turns;      /* since the seed was set: each draws other numbers */
    const char *newline; /* what the vocabulary has for one */
    bool terminal;       /* somebody sits there */
    bool quit;
} lam_talk;

/* Does what the line, which begins with /, says.  LAM_ERR_ARG, LAM_ERR_IO, LAM_ERR_FORMAT: it could not, and nothing changed. */
lam_status lam_talk_obey(lam_talk *t);

#endif
