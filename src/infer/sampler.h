/* sampler.h -- samples the next token from scores.
 *
 * Order, as in the authors' generator: repetition penalty, temperature, top-k, top-p, min-p, then a draw.
 * top-p keeps the smallest set of most likely tokens whose probability exceeds p, the one that crosses p
 * included; at least one token always stays. */
#ifndef LAM_INFER_SAMPLER_H
#define LAM_INFER_SAMPLER_H

#include "core/rng.h"
#include "core/status.h"

typedef struct lam_sampler_options {
    double temperature;    /* 0: always the most likely token */
    int top_k;             /* 0: off */
    double top_p;          /* 1: off */
    double min_p;          /* least probability relative to the most likely token; 0: off */
    double repeat_penalty; /* 1: off; above, recent tokens become less likely */
    int repeat_last;       /* how many recent tokens count */
    uint64_t seed;
    int32_t never; /* a token that is never sampled: <unk>; -1: none */
} lam_sampler_options;

/* temperature 1, top-p 0.95, the rest off, all tokens, seed 42: the authors' script. */
lam_sampler_options lam_sampler_defaults(void);

typedef struct lam_sampler lam_sampler;

/* `stream` makes samplers of one seed independent of each other. */
lam_status lam_sampler_create(lam_sampler **out, const lam_sampler_options *options, int n_token,
                              uint64_t stream);
void lam_sampler_free(lam_sampler *s); /* NULL is fine */

/* Forgets recorded tokens and restarts the random numbers. */
void lam_sampler_restart(lam_sampler *s);
/* Records a token of the prompt for the repetition penalty. */
void lam_sampler_note(lam_sampler *s, int32_t token);
/* Samples from scores [n_token] and records the result.  *logprob is the token's log-probability before any filter; may
 * be NULL.  LAM_ERR_NUMERIC if no score is finite. */
lam_status lam_sampler_draw(lam_sampler *s, const double *scores, int32_t *token, double *logprob);

typedef struct lam_likely {
    int32_t token;
    double logprob; /* before any filter */
} lam_likely;

/* The n most likely tokens of finite scores [n_token], most likely first; n is at most n_token. */
void lam_sampler_likeliest(lam_sampler *s, const double *scores, lam_likely *out, int n);
/* The same for raw scores, without normalisation: out[].logprob is the score. */
void lam_likeliest(lam_likely *out, int n, const double *scores, int n_token);
/* log sum exp of scores: a score minus this is its log-probability. */
double lam_log_total(const double *scores, int n_token);

#endif
