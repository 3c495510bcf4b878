/* api_int.h -- what api.c and api_session.c share: the insides of the public engine, and the change of
 * status from ours to the public one. */
#ifndef LAM_INFER_API_INT_H
#define LAM_INFER_API_INT_H

#include "infer/engine.h"
#include "infer/sampler.h"
#include "lamemo.h"

struct lamemo_engine {
    lam_engine *inner;
    lam_dev *dev; /* holds the weights; nothing computes on it */
    lam_dev_options dev_options;
};

/* The two enumerations have the same values: api.c asserts it. */
static inline lamemo_status lam_api_status(lam_status status)
{
    return (lamemo_status)status;
}

/* A device context of its own for a session, with `threads` threads (0: the engine's). */
lam_status lam_api_context(lam_dev **out, const lamemo_engine *engine, int threads);

/* Refuses what is not 0 to LAM_MAX_LEN; `name` is the option's. */
lam_status lam_api_size(const char *name, int value);

/* NULL: the defaults. */
lam_sampler_options lam_api_sampler(const lamemo_sampling *sampling);

#endif
