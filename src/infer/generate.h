/* generate.h -- continues a prompt: several samples side by side, streamed token by token. */
#ifndef LAM_INFER_GENERATE_H
#define LAM_INFER_GENERATE_H

#include "infer/engine.h"
#include "infer/sampler.h"

typedef enum lam_finish {
    LAM_FINISH_LENGTH, /* the requested number of tokens is reached */
    LAM_FINISH_STOP,   /* a stop string */
    LAM_FINISH_BREAK   /* the callback ended it */
} lam_finish;

typedef struct lam_generated {
    int sample;
    int32_t token;
    double logprob;
    const char *text; /* `size` bytes that may be shown now, whole characters */
    size_t size;
    bool last; /* of this sample; token is -1 when only held-back text remained */
    lam_finish finish;
    const lam_likely *top; /* the n_top most likely tokens here, most likely first */
    int n_top;
} lam_generated;

/* Called for every token of every sample, in chronological order; a non-zero return value ends the generation. */
typedef int lam_generate_sink(void *user, const lam_generated *g);

typedef struct lam_generate_options {
    int samples;
    int tokens;         /* maximum number per sample */
    int prompt_segment; /* segment length for the prompt; 0: the model's tgt_len */
    int refresh;  /* segment length for new tokens: the memory is refreshed this often; 0: same */
    int mem_len;  /* 0: the model's */
    lam_dev *dev; /* kept; NULL: the model's */
    lam_sampler_options sampler; /* its `never` is set from `unknown` */
    int unknown;                 /* 1: <unk> may be sampled */
    const char *const *stops;    /* kept */
    int n_stops;
    int top; /* how many of the most likely tokens are reported with each token */
    lam_generate_sink *sink;
    int (*stop)(
        void *user); /* polled while the prompt is read: non-zero is LAM_ERR_INTERRUPTED; or NULL */
    void *user;
} lam_generate_options;

/* Continues prompt[n]; an empty prompt begins with the engine's start token. */
lam_status lam_generate(const lam_engine *engine, const int32_t *prompt, size_t n,
                        const lam_generate_options *options);

/* The same step by step: each step reads a chunk of the prompt, or samples one token per sample, and calls the sink
 * with the results.  *more is false after the last pieces. engine is kept, prompt is copied. */
typedef struct lam_generation lam_generation;
lam_status lam_generation_create(lam_generation **out, const lam_engine *engine,
                                 const int32_t *prompt, size_t n,
                                 const lam_generate_options *options);
lam_status lam_generation_step(lam_generation *g, bool *more);
void lam_generation_free(lam_generation *g); /* NULL is fine */

#endif
