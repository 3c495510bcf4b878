/* bench_read.h -- the floor of decoding: how long does it take just to read what a token needs?
 *
 * Every weight a step multiplies with, and every cached key, value and position, is read once for a token;
 * with one stream little else happens.  Here a buffer of as many bytes is summed up by columns, with the
 * device's threads, in turns with the tokens. */
#ifndef LAM_MEASURE_BENCH_READ_H
#define LAM_MEASURE_BENCH_READ_H

#include "model/model.h"

enum { LAM_READS = 1024 }; /* at most */

typedef struct lam_bench_read {
    lam_dev *dev;
    void *buffer, *sums;
    size_t bytes;
    int rows, n;
    double times[LAM_READS];
} lam_bench_read;

/* Bytes that a token of `streams` streams needs on average, in segments of N after M remembered rows. */
size_t lam_bench_token_bytes(const lam_model *model, int streams, int N, int M);

lam_status lam_bench_read_open(lam_bench_read *r, lam_dev *dev, size_t bytes);
void lam_bench_read_close(lam_bench_read *r);
/* Reads all of it twice and times the second: what a cache can keep is in it by then, as with weights. */
lam_status lam_bench_read_once(lam_bench_read *r);

#endif
