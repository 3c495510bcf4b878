/* api_int.h -- declarations shared by the api_*.c files: the public engine's struct, and the conversion from internal
 * to public status. */
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

/* Converts a status; both enumerations have the same values. */
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

static inline lamemo_status lam_api_status(lam_status status)
{
    return (lamemo_status)status;
}

/* Opens a separate device context for a session, with `threads` threads (0: the engine's). */
lam_status lam_api_context(lam_dev **out, const lamemo_engine *engine, int threads);

/* Refuses values outside 0 to LAM_MAX_LEN; `name` is the option. */
lam_status lam_api_size(const char *name, int value);

lam_status lam_api_not_negative(const char *name, int value);
/* Refuses tokens outside the vocabulary. */
lam_status lam_api_tokens(const lamemo_engine *engine, const int32_t *tokens, size_t n);

/* NULL: the defaults.  The vocabulary says what <unk> is. */
lam_sampler_options lam_api_sampler(const lamemo_sampling *sampling, const lam_vocab *vocab);

#endif
