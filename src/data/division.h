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

/* Reads "TRAIN/VALID/TEST".  Numbers that add up to 1 are fractions, to 100 percentages; any others
 * are sizes, which may end in k, M or G.  LAM_ERR_ARG names what is wrong. */
lam_status lam_division_parse(lam_division *out, const char *text);

/* Where the parts of `total` tokens end.  LAM_ERR_FORMAT when there are fewer than the sizes need;
 * when there are more, the rest is left out. */
lam_status lam_division_cut(const lam_division *d, int64_t total, int64_t ends[LAM_SPLITS]);

#endif
