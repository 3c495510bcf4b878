/* bench.h -- how fast is this build on this machine, as a share of what its GEMM can do?
 *
 * Machines are shared and noisy: the best GEMM rate is measured on the shapes of the model's own step, in the
 * same run, in turns with the work itself, and both are judged by their best and median. */
#ifndef LAM_MEASURE_BENCH_H
#define LAM_MEASURE_BENCH_H

#include "model/stack.h"
#include "model/storage.h"

typedef enum lam_bench_kind { LAM_BENCH_TRAIN, LAM_BENCH_EVAL, LAM_BENCH_GENERATE } lam_bench_kind;

typedef struct lam_bench_options {
    lam_bench_kind kind;
    int batch;
    double seconds;      /* of measuring, after warming up */
    int optim;           /* training: lam_optim */
    lam_storage storage; /* not of training; auto is float32 */
} lam_bench_options;

typedef struct lam_bench_result {
    int rounds;     /* steps, segments, or tokens measured */
    double seconds; /* median of one round */
    double best_seconds;
    double tokens_per_second; /* from the median */
    double gflops;            /* floating-point operations, two a MAC, from the median */
    double gemm_gflops;       /* best rate of any product of the step, any layout */
    double share;             /* gflops / gemm_gflops */
    size_t bytes_planned;     /* parameters, optimiser, activations, state, scratch */
    size_t bytes_peak;        /* of the device, or of the process above what it had before */
    /* Generation only: the floor (bench_read.h). */
    double median_seconds; /* of a token; `seconds` is the mean, with the refreshes of the memory */
    size_t token_bytes;    /* that a token needs */
    double read_seconds;   /* to read them, mean */
    double read_median, read_best;
} lam_bench_result;

/* Random weights and random tokens: speed does not depend on them. */
lam_status lam_bench_run(lam_bench_result *out, const lam_config *cfg, lam_dev *dev,
                         const lam_bench_options *options);

#endif
