/* analysis.h -- several models on one text: the paper's figures for models of one's own.
 *
 *     create   plan (each configuration)   add (each model, loaded one at a time)   write   free
 * add measures: probes (report/probe.h), the sweep over memory lengths (report/sweep.h), a continuation of a prompt.
 * write makes DIR/report.html and the files of its figures and tables.  Nothing is written before that, so an
 * interrupted analysis leaves nothing behind. */
#ifndef LAM_REPORT_ANALYSIS_H
#define LAM_REPORT_ANALYSIS_H

#include "data/corpus.h"
#include "infer/generate.h"
#include "report/probe.h"
#include "report/repetition.h"
#include "report/sweep.h"

#include <jansson.h>
#include <stdbool.h>

enum { LAM_ANALYSED = 8 };

typedef struct lam_analysis_options {
    lam_probe_options probe; /* tgt_len, mem_len 0: each model's; from, passage_from are chosen */
    lam_sweep_options sweep; /* skip is chosen */
    int layer;               /* of Figure 1, from 1 on; 0: the last */
    const char *prompt;      /* NULL: taken from the text */
    size_t prompt_size;
    int prompt_tokens; /* of a prompt taken from the text */
    int story_tokens;  /* of a continuation; 0: no case study */
    lam_sampler_options sampler;
    int encoding_width; /* d of Appendix B */
} lam_analysis_options;

typedef struct lam_story {
    char *text; /* owned; NULL: there is none */
    size_t size;
    lam_repetition counts;
} lam_story;

/* One model and what was measured of it. */
typedef struct lam_analysed {
    char name[64];
    lam_config cfg;
    const lam_mem_ops *mem; /* its memory */
    size_t parameters;
    lam_probe probe;
    int n_points;
    lam_sweep_point points[LAM_SWEEP];
    char sweep_note[200]; /* why the sweep has fewer points than asked for; "" */
    lam_story story;
} lam_analysed;

typedef struct lam_analysis {
    lam_analysis_options opt;
    const lam_corpus *corpus; /* kept */
    lam_split split;
    int n;
    lam_analysed models[LAM_ANALYSED];
    int32_t *prompt; /* owned */
    size_t n_prompt;
    char *prompt_text; /* owned */
    lam_story truth;   /* how the text itself goes on; none for a prompt of one's own */
    double macs, done; /* multiply-adds or their like in all, and done: for the time left */
    double sweep_macs; /* of one segment of one column, all models and lengths */
    bool settled;      /* all models were planned */
} lam_analysis;

/* What is being done, how much of it, and how much of all (0 to 1). */
typedef struct lam_analysis_progress {
    const char *what;
    double share, all;
} lam_analysis_progress;

/* A non-zero return stops with LAM_ERR_INTERRUPTED. */
typedef int lam_analysis_watch(void *user, const lam_analysis_progress *p);

/* `corpus` is kept.  LAM_ERR_ARG for options that make no sense. */
lam_status lam_analysis_create(lam_analysis **out, const lam_corpus *corpus, lam_split split,
                               const lam_analysis_options *options);
void lam_analysis_free(lam_analysis *a); /* NULL is fine */

/* Tells of a model that will be added: what is compared token by token must be read by all. */
lam_status lam_analysis_plan(lam_analysis *a, const lam_config *cfg);
/* Measures a model.  Its vocabulary must be the corpus's.  watch may be NULL. */
lam_status lam_analysis_add(lam_analysis *a, lam_engine *engine, const char *name,
                            lam_analysis_watch *watch, void *user);

/* Writes everything into `dir`, which is made. */
lam_status lam_analysis_write(const lam_analysis *a, const char *dir);
/* May it be written there?  Changes nothing; to be asked before any work. */
lam_status lam_analysis_may_write(const char *dir);
/* The main numbers, as `--json` prints them; NULL without memory. */
json_t *lam_analysis_json(const lam_analysis *a);

#endif
