/* repetition.h -- does a text go round in circles?  Counts over its words.
 *
 * Words are what blanks divide, so that models with different tokens can be compared.
 *   distinct-n   different n-grams over all n-grams (Li et al., 2016); 1: nothing occurs twice
 *   repeated     share of words that occur among the LAM_RECENT words before them */
#ifndef LAM_MEASURE_REPETITION_H
#define LAM_MEASURE_REPETITION_H

#include "core/status.h"

#include <stddef.h>

enum { LAM_DISTINCT = 4, LAM_RECENT = 16 };

typedef struct lam_repetition {
    int words;
    double distinct[LAM_DISTINCT]; /* of n = 1 .. 4; NaN where the text has no n-gram */
    double repeated;               /* NaN without words */
} lam_repetition;

lam_status lam_repetition_of(lam_repetition *out, const char *text, size_t size);

#endif
