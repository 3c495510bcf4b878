/* average.h -- the mean of the weights over the last part of a run (--average).
 *
 * The mean is a flat vector beside the master weights, in their type and on the device; every step from its first one on
 * counts equally.  Training goes on with its own weights.  What a run evaluates and saves as a model is the mean: it
 * takes the place of the weights meanwhile, and these wait in the vector of gradients, which is unused between steps. */
#ifndef LAM_TRAIN_AVERAGE_H
#define LAM_TRAIN_AVERAGE_H

#include "train/optimizer.h"

/* Allocates o->average and o->zero. */
lam_status lam_average_create(lam_optimizer *o);
void lam_average_free(lam_optimizer *o);

/* The weights of the n-th step, from 1, join the mean of those before. */
void lam_average_add(const lam_optimizer *o, int64_t n);

/* The weights change places: the model's become the mean, and again what they were.  Nothing happens if n, the number
 * of steps in the mean, is 0.  Between the two calls the vector of gradients must not be touched. */
void lam_average_show(const lam_optimizer *o, int64_t n);
void lam_average_hide(const lam_optimizer *o, int64_t n);

#endif
