/* model_option.h -- the --model option that commands with one model share. */
#ifndef LAM_CLI_MODEL_OPTION_H
#define LAM_CLI_MODEL_OPTION_H

#include "cli/options.h"
#include "model/boxed.h"
#include "model/model.h"

/* A table entry for a `const char *` at `field` of struct `type`. */
#define LAM_MODEL_OPTION(type, field)                                                              \
    {                                                                                              \
        "model", 'm', "DIR", LAM_OPT_PATH, offsetof(type, field),                                  \
            .help = "Model or run folder, or " LAM_BOXED ", the model that comes with lamemo."     \
    }

/* LAM_ERR_ARG where --model was not written; the message tells of the model at hand. */
lam_status lam_model_required(const char *model);

/* LAM_ERR_ARG where --mem-len asks for a memory that the model cannot have. */
lam_status lam_model_remembers(const lam_model *model, int mem_len);

#endif
