/* division.h -- how one text is cut into train, valid and test. */
#ifndef LAM_DATA_DIVISION_H
#define LAM_DATA_DIVISION_H

#include "core/status.h"
#include "data/corpus.h"

/* Three parts of the whole (fractions adding up to 1), or three sizes in tokens. */
typedef struct lam_division {
    bool sizes;
    double part[LAM_SPLITS];
} lam_division;

/* Reads "TRAIN/VALID/TEST": fractions that add up to 1, percentages that add up to 100, or sizes, each with k, M or G
 * behind it.  With LAM_DIVISION_SIZES all numbers are sizes, with such a letter or without.  LAM_ERR_ARG says what is
 * wrong. */
typedef enum lam_division_units { LAM_DIVISION_ANY, LAM_DIVISION_SIZES } lam_division_units;
lam_status lam_division_parse(lam_division *out, const char *text, lam_division_units units);

/* Where the parts of `total` tokens end.  LAM_ERR_FORMAT when there are fewer than the sizes need;
 * when there are more, the rest is left out. */
lam_status lam_division_cut(const lam_division *d, int64_t total, int64_t ends[LAM_SPLITS]);

#endif
