/* parts.h -- how sure is a number that was measured on some text?
 *
 * Neighbouring tokens share their difficulty, so counting each as a sample promises too much.  Everything is
 * therefore summed up in LAM_PARTS stretches of the text, and the error of whatever is computed from the sums, a mean,
 * a difference, a ratio of two models, is the jackknife's: compute it again without each stretch in turn.  Two
 * models that read the same text have the same stretches, so that a difference between them is as sure as it
 * should be: what is hard for both cancels. */
#ifndef LAM_MEASURE_PARTS_H
#define LAM_MEASURE_PARTS_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { LAM_PARTS = 20, LAM_ALL_PARTS = -1 };

/* The stretch of segment `step` of column b, where `steps` segments of B columns are read.  From 8 columns on it is
 * a column or several: they lie far apart, while what a model is good at goes on for thousands of tokens.  Of fewer
 * columns it is a piece of one, which promises too much where columns are short.  A short rest of the text is
 * taken to the last segment. */
int lam_part_of(int64_t step, int64_t steps, int b, int B);

/* n means, summed up by stretch. */
typedef struct lam_parted {
    size_t n;
    double *sum, *count; /* [LAM_PARTS][n]; owned */
} lam_parted;            /* begins as zeros */

lam_status lam_parted_make(lam_parted *p, size_t n);
void lam_parted_free(lam_parted *p); /* fine on a zeroed one */
void lam_parted_add(lam_parted *p, int part, size_t i, double sum, double count);
/* Mean i without one stretch, or of LAM_ALL_PARTS; NaN where nothing was counted. */
double lam_parted_mean(const lam_parted *p, size_t i, int without);

typedef struct lam_estimate {
    double value, error; /* one standard error; NaN for fewer than two stretches */
    int parts;           /* stretches that have anything */
} lam_estimate;

/* A number computed from some lam_parted without one stretch, or of LAM_ALL_PARTS. */
typedef double lam_statistic(const void *data, int without);

/* `counted` says which stretches have anything: those of its mean 0. */
lam_estimate lam_estimate_of(lam_statistic *f, const void *data, const lam_parted *counted);
/* Mean i itself. */
lam_estimate lam_parted_estimate(const lam_parted *p, size_t i);
/* "0.0041 +- 0.0049": two digits of the error (one beyond the fourth decimal), the value as exact; the value alone where the error is unknown. */
typedef struct lam_shown {
    char text[96];
} lam_shown;
lam_shown lam_estimate_shown(const lam_estimate *e);
/* 1: above the line, -1: below it, 0: too close to tell, at a level of 95 %. */
int lam_estimate_side(const lam_estimate *e, double line);

#endif
