/* trainer_int.h -- what trainer.c and step.c share. */
#ifndef LAM_TRAIN_TRAINER_INT_H
#define LAM_TRAIN_TRAINER_INT_H

#include "train/trainer.h"

/* The stack of one group and the memories of all, empty; instead of those there are. */
lam_status lam_trainer_create_stack(lam_trainer *t);

/* How many totals there are.  Leaves have their own: their sum must not depend on who computes which. */
static inline int lam_trainer_totals(const lam_trainer *t)
{
    return t->state.settings.leaves > 0 ? t->groups.n : 1;
}

static inline size_t lam_trainer_totals_bytes(const lam_trainer *t)
{
    return (size_t)lam_trainer_totals(t) * LAM_TOTALS * lam_class_size(t->model->dev, LAM_WIDE);
}

#endif
