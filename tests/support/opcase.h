/* opcase.h -- one case of an operation: its buffers, the three runs, the comparison.
 *
 * A case is an argument struct (say lam_gemm) with the pointers left out, and a list of buffers that
 * say where their addresses go.  Values are rounded to the types of the device under test first, so
 * that all three runs see the same numbers.
 *
 * Limits.  The error of the naive float loop is a random number, and for an output of one element it
 * may be zero by luck.  It is therefore taken several times, with the inputs moved by at most one
 * unit in the last place, and the worst counts: an operation may be `limit` times as wrong as a
 * plain loop on inputs that are right to the last bit.  One more rounding of the result is allowed
 * on top.  Elements that ref left alone must be untouched, infinities must agree, and a second run
 * must give the same bits, also with one thread (matrix products excepted: a library makes them). */
#ifndef LAM_SUPPORT_OPCASE_H
#define LAM_SUPPORT_OPCASE_H

#include "core/rng.h"
#include "ops/ops.h"

#include <stdio.h>

/* What stands between rows and must never be used or changed: finite in every type, and so large
 * that using it shows. */
#define LAM_GUARD 0x1p100

enum { LAM_CASE_BUFFERS = 24, LAM_CASE_SLOTS = 32 };

/* How a buffer takes part; flags. */
enum {
    LAM_READ = 0,       /* input: must come back unchanged */
    LAM_WRITTEN = 1,    /* compared with ref */
    LAM_EXACT = 2,      /* compared bit for bit: no arithmetic happens */
    LAM_SAME_ZEROS = 4, /* zero exactly where ref is: dropout masks */
    LAM_SUMMED = 8      /* WIDE input that is added to ACT before a mixed device rounds the sum */
};

/* What a buffer holds at first. */
typedef enum lam_fill {
    LAM_RANDOM, /* normal numbers of variance 1 */
    LAM_NAN,    /* will be overwritten and must not be read */
    LAM_ZERO
} lam_fill;

/* `blocks` blocks of `rows` rows of `width` elements; row r of block b at b * step + r * ld. */
typedef struct lam_layout {
    size_t blocks, rows, width, ld, step;
} lam_layout;

typedef struct lam_case_buffer {
    const char *name;
    lam_class type;
    int flags;
    size_t count;
    double *first;     /* what it holds before; owned */
    double *want;      /* what ref left; owned */
    lam_layout padded; /* blocks = 0: has no padding */
} lam_case_buffer;

typedef struct lam_case_slot {
    void *pointer; /* the address of the pointer to fill in */
    int buffer;
    size_t offset;
} lam_case_slot;

/* Calls one operation of a table; `op` is the argument struct. */
typedef void lam_case_call(const lam_ops *ops, lam_dev *dev, const void *op);

/* A run through the cases. */
typedef struct lam_case_run {
    const lam_ops *ops;
    lam_dev *dev, *ref, *naive;
    lam_dev *single;     /* the device under test again, with one thread */
    uint64_t seed, next; /* every case has its own stream of random numbers */
    FILE *report;
    int hasty;           /* skip what comes after a failure */
    int cases, failures; /* of the current family */
    double worst;        /* error as a part of what is allowed, of the current family */
    char worst_case[256];
} lam_case_run;

typedef struct lam_case {
    lam_case_run *run;
    lam_rng rng;
    lam_case_call *call;
    const void *op;
    double limit; /* 2 forward, 3 backward */
    int mixed;    /* the device may round sums of inputs to ACT once more, for its matrix units or
                     to keep them: their terms are moved by half a unit of ACT, not of float */
    int library;  /* its bits may depend on the number of threads */
    lam_work work;
    char what[256];
    lam_case_buffer buffer[LAM_CASE_BUFFERS];
    int n_buffers;
    lam_case_slot slot[LAM_CASE_SLOTS];
    int n_slots;
} lam_case;

/* Starts a case; `op` must stay valid until lam_case_check. */
lam_case lam_case_start(lam_case_run *run, lam_case_call *call, const void *op, double limit);
/* What the failure report calls it. */
void lam_case_name(lam_case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a buffer of `count` elements whose address goes to *pointer (any object pointer) and returns
 * its values to be filled, all zero now.  Owned by the case. */
double *lam_case_buf(lam_case *c, void *pointer, const char *name, lam_class type, int flags,
                     size_t count);
/* Adds a buffer of rows, filled; between rows and blocks there are guards. */
double *lam_case_rows(lam_case *c, void *pointer, const char *name, lam_class type, int flags,
                      const lam_layout *at, lam_fill fill);
/* Puts the address of element `offset` of the newest buffer into another pointer. */
void lam_case_share(lam_case *c, void *pointer, size_t offset);

/* Rounds what the buffers hold to the device's types and runs `call` on ref in place: for inputs that
 * another operation produces, such as the log-sum-exp that attention's backward reads. */
void lam_case_prepare(lam_case *c, lam_case_call *call);

/* Runs it three ways, compares, counts, reports a failure, frees the buffers. */
void lam_case_check(lam_case *c);

/* Random help for the lists of cases. */
int lam_case_pick(lam_case *c, int n);       /* 0 .. n-1 */
int lam_case_edge(lam_case *c, int at_most); /* a size at the edge of some tile */
double lam_case_normal(lam_case *c);
lam_drop lam_case_drop(lam_case *c, double p);
/* x rounded up to what the device wants of widths and strides. */
size_t lam_case_pad(const lam_case *c, size_t x);
/* A layout with random room after rows and after blocks. */
lam_layout lam_case_layout(lam_case *c, int blocks, int rows, int width);
/* Makes columns width .. ld-1 of the newest buffer, laid out as `at`, padding: they hold `value` now
 * and must be as ref leaves them, exactly. */
void lam_case_padding(lam_case *c, const lam_layout *at, double value);

/* The tile edges, for lists that want every one. */
extern const int lam_case_edges[];
extern const int lam_case_n_edges;

/* The families: each runs its cases through lam_case_check. */
#define LAM_CASES_OP(name, argument) void lam_cases_##name(lam_case_run *run);
LAM_OPS(LAM_CASES_OP)
#undef LAM_CASES_OP
void lam_cases_device(lam_case_run *run);
void lam_cases_gemm_inner(lam_case_run *run);
void lam_cases_gemm_narrow(lam_case_run *run);
void lam_cases_attn_tiles(lam_case_run *run);
void lam_cases_attn_narrow(lam_case_run *run);
void lam_cases_embed_narrow(lam_case_run *run);
void lam_cases_repeat(lam_case_run *run);

#endif
