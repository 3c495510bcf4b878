/* describe.h -- what a model's memory is and how long a run, in a few words: all commands say the same. */
#ifndef LAM_CLI_DESCRIBE_H
#define LAM_CLI_DESCRIBE_H

#include "nn/config.h"
#include "train/settings.h"

enum { LAM_DESCRIPTION_MAX = 160 };

/* "lamemo"; "lamemo (alpha zero)"; "compressive (64 rows at a rate of 4, conv)": its name, and what sets it apart from
 * others of this name.  Returns `text`. */
const char *lam_describe_memory(char text[LAM_DESCRIPTION_MAX], const lam_config *cfg);

/* "4000 steps", or "90 seconds" where the clock alone ends the run.  Returns `text`. */
const char *lam_describe_length(char text[LAM_DESCRIPTION_MAX], const lam_settings *s);

#endif
