/* model_list.h -- the models of one call: folders cut at commas, and what each is called. */
#ifndef LAM_CLI_MODEL_LIST_H
#define LAM_CLI_MODEL_LIST_H

#include "cli/options.h"
#include "measure/analysis.h"

typedef struct lam_model_list {
    int n;
    char *dir[LAM_ANALYSED]; /* owned */
    char name[LAM_ANALYSED][64];
} lam_model_list;

/* `names` in the order of the models; those that have none are called by the last part of their path.  Must be freed after
 * a failure, too. */
lam_status lam_model_list_read(lam_model_list *out, const lam_string_list *dirs,
                               const lam_string_list *names);
void lam_model_list_free(lam_model_list *list);

#endif
