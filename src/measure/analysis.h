/* analysis.h -- several models on one text: the paper's figures for models of one's own.
 *
 *     create   plan (each configuration)   ready   add (each model, loaded one at a time)   free
 * add measures: probes (measure/probe.h), a passage token by token (measure/passage.h), the sweep over memory lengths (measure/sweep.h), a continuation of a prompt.
 * report/analysis_page.h makes a page of it. */
#ifndef LAM_MEASURE_ANALYSIS_H
#define LAM_MEASURE_ANALYSIS_H

#include "data/corpus.h"
#include "infer/generate.h"
#include "measure/passage.h"
#include "measure/probe.h"
#include "measure/repetition.h"
#include "measure/sweep.h"

#include <jansson.h>
#include <stdbool.h>

enum { LAM_ANALYSED = 8 };

typedef struct lam_analysis_options {
    lam_probe_options probe; /* tgt_len, mem_len 0: each model's; from is chosen */
    bool fewer_streams;      /* take fewer than probe.batch streams where the text is short */
    int passage;             /* tokens that are shown in colours */
    const char *text;        /* a text of the user's own for that; NULL: from the split */
    size_t text_size;
    lam_sweep_options sweep; /* skip is chosen; */
    bool sweep_follows; /* and tgt_len and the lengths, from those the models were trained with */
    int layer;          /* of Figure 1, from 1 on; 0: the last */
    const char *prompt; /* NULL: taken from the text */
    size_t prompt_size;
    int prompt_tokens; /* of a prompt taken from the text */
    int story_tokens;  /* of a continuation; 0: no case study */
    lam_sampler_options sampler;
    bool paper;         /* also Table 1 and Appendix B, which do not depend on the models */
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
    lam_passage passage;
    lam_story story;
} lam_analysed;

typedef struct lam_analysis {
    lam_analysis_options opt;
    const lam_corpus *corpus; /* kept */
    lam_split split;
    int n, planned; /* models that were measured, and that will be */
    lam_analysed models[LAM_ANALYSED];
    int32_t *own;    /* the user's own text after a start token, owned; NULL: none */
    size_t n_own;    /* tokens of it */
    int32_t *prompt; /* owned */
    size_t n_prompt;
    char *prompt_text; /* owned */
    lam_story truth;   /* how the text itself goes on; none for a prompt of one's own */
    double macs, done; /* multiply-adds or their like in all, and done: for the time left */
    bool ready;        /* all models were planned */
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

/* Tells of a model that will be added: what is compared token by token must be read by all.  `name` is copied. */
lam_status lam_analysis_plan(lam_analysis *a, const lam_config *cfg, const char *name);
/* Once all are planned: chooses what was left open and checks that the text is long enough for every one of them. */
lam_status lam_analysis_ready(lam_analysis *a);
/* Measures the next of the planned models.  Its vocabulary must be the corpus's.  watch may be NULL. */
lam_status lam_analysis_add(lam_analysis *a, lam_engine *engine, lam_analysis_watch *watch,
                            void *user);

/* The layer of Figure 1, from 0 on. */
int lam_analysis_layer(const lam_analysis *a, const lam_analysed *m);
/* "last" where it is the last one of every model, else its number. */
void lam_analysis_layer_name(const lam_analysis *a, char *out, size_t size);

/* Means over heads. */
double lam_analysed_alpha(const lam_analysed *m, int layer, int slot);
double lam_analysed_peak(const lam_analysed *m, int layer, int interval);
/* The mean of x [L][H] over heads, and the smallest and largest of them. */
typedef struct lam_head_range {
    double mean, low, high;
} lam_head_range;
lam_head_range lam_analysed_heads(const lam_analysed *m, const double *x, int layer);

/* The point of a model's sweep at a memory length, or NULL. */
const lam_sweep_point *lam_analysed_point(const lam_analysed *m, int mem_len);

/* How far on the left of the predicted token the middle of an interval lies. */
static inline double lam_analysed_distance(const lam_analysed *m, int interval)
{
    return (interval + 0.5) * m->probe.interval + 0.5;
}

/* A loss, mean 0 of `nll`, in the corpus's unit; and how much lower the second of two is, which have read the same
 * text. */
lam_estimate lam_analysis_value(const lam_analysis *a, const lam_parted *nll);
lam_estimate lam_analysis_gap(const lam_analysis *a, const lam_parted *high, const lam_parted *low);
/* A standard error in a sentence: "0.012", or "an unknown amount" where too little was read. */
char *lam_error_shown(char *out, size_t size, double error);
const char *lam_analysis_unit(const lam_analysis *a); /* "bits per character", "perplexity" */
int lam_analysis_decimals(const lam_analysis *a);     /* of a loss in a table */

/* The main numbers, as `--json` prints them; NULL without memory. */
json_t *lam_analysis_json(const lam_analysis *a);

#endif
