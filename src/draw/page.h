/* page.h -- one HTML file that shows everything and needs nothing: no server, no network.
 *
 * A page is written from top to bottom: each call appends a section from data lent for the call.  Figures and
 * tables are also written to a folder, if one is given.  Whatever text is passed in, names of files
 * and tokens of any bytes included, is shown and never interpreted. */
#ifndef LAM_DRAW_PAGE_H
#define LAM_DRAW_PAGE_H

#include "core/status.h"
#include "draw/figure.h"
#include "draw/table.h"

typedef struct lam_page lam_page;

typedef struct lam_page_options {
    const char *title;
    const char *subtitle; /* what was measured, when, with which build; or NULL */
    const char *command;  /* that made the page; or NULL */
    const char *files;    /* folder for the files of figures and tables; NULL: the page alone */
    int refresh;          /* seconds after which the page loads itself again; 0: never */
} lam_page_options;

/* May the page `path` and, in `files` (NULL: none), the files of its figures be written?  A page of ours, which comes first,
 * makes the folder beside it ours; otherwise there must be nothing.  To be asked before any work. */
lam_status lam_page_may_save(const char *path, const char *files);

lam_status lam_page_create(lam_page **out, const lam_page_options *options); /* texts are copied */
void lam_page_free(lam_page *page);                                          /* NULL is fine */

/* A heading, listed in the contents; `id` as in a figure. */
void lam_page_heading(lam_page *page, const char *id, const char *title);
/* Paragraphs, divided by empty lines. */
void lam_page_text(lam_page *page, const char *text);
lam_status lam_page_figure(lam_page *page, const lam_figure *figure);
lam_status lam_page_table(lam_page *page, const lam_table *table);

/* A text in which every token is coloured by a number: its loss, or the difference of two losses.  The reader
 * chooses among several measures.  Tokens that are parts of one UTF-8 character are shown together, with the
 * sum of their numbers. */
typedef struct lam_token {
    const char *text; /* any bytes */
    size_t size;
} lam_token;

typedef struct lam_measure {
    const char *name;     /* "LaMemo: loss (bits)", "gain over Transformer-XL (bits)" */
    const double *values; /* [n]; not finite: not coloured */
    bool diverging;       /* two colours away from 0; else one, the darker the larger */
    const char *ends[2];  /* diverging: what it means to be below and above 0, or NULL */
    double limit;         /* value of the strongest colour; 0: the 98th percentile of |value| */
} lam_measure;

/* A model that attends to earlier tokens: those that matter most to it, for every token. */
typedef struct lam_reader {
    const char *name;
    int most;            /* earlier tokens of each token, */
    const int32_t *back; /* [n][most]: how many tokens before it, from 1 on; 0: no more of them */
    const float *weight; /* [n][most]: of 1 */
} lam_reader;

typedef struct lam_coloured {
    const char *id, *title, *caption;
    int n;
    const lam_token *tokens;
    int n_measures; /* 1 to 8 */
    const lam_measure *measures;
    int n_readers; /* may be none */
    const lam_reader *readers;
} lam_coloured;

lam_status lam_page_tokens(lam_page *page, const lam_coloured *tokens);

/* Texts side by side: continuations of one prompt by several models. */
typedef struct lam_texts {
    const char *id, *title, *caption;
    const char *prompt; /* shown once, above them; or NULL */
    int n;
    const char *const *names;
    const char *const *texts;
    const char *const *notes; /* a line under each ("distinct-2 0.61"), or NULL */
} lam_texts;

lam_status lam_page_texts(lam_page *page, const lam_texts *texts);

/* Writes the page atomically; it may be continued and saved again. */
/* Writes what there is of it, where there is no page yet: before the files of figures, which it makes ours should the
 * process die. */
lam_status lam_page_begin(const lam_page *page, const char *path);
lam_status lam_page_save(const lam_page *page, const char *path);

#endif
