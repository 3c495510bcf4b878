/* session_int.h -- declarations shared by session.c, snapshot.c and snapshot_file.c. */
#ifndef LAM_INFER_SESSION_INT_H
#define LAM_INFER_SESSION_INT_H

#include "infer/session.h"

/* The unfinished segment: its tokens, and the pieces in which they were fed. */
typedef struct lam_open_segment {
    int length; /* planned */
    int done;   /* tokens fed into it; 0: not begun */
    int n_calls;
    int *calls;      /* [longest]: sizes of the pieces */
    int32_t *tokens; /* [streams][longest] */
} lam_open_segment;

struct lam_session {
    lam_model *model;
    lam_stack *stack;
    int streams, longest, mem_len;
    int64_t length;
    lam_open_segment now;
    int32_t *packed, *packed_targets; /* [streams][longest]: one piece */
    double *nll;                      /* [streams][longest] */
};

struct lam_snapshot {
    int streams, longest, mem_len, n_layer, d_model;
    int64_t length;
    int prev;
    int64_t seen;
    lam_open_segment now; /* owns its arrays */
    int n_slots;
    size_t *bytes; /* of each slot */
    int32_t *rows; /* valid rows of each slot */
    void **slots;  /* host copies */
    lam_dtype *dtypes;
    char model[LAM_SNAPSHOT_MODEL]; /* the model it was taken from, or "" */
};

/* Runs one piece of the unfinished segment, which must fit; records it. */
void lam_session_piece(lam_session *s, const int32_t *packed, int n);

/* Allocates arrays for n_slots slots and the unfinished segment, whose sizes are set. */
lam_status lam_snapshot_allocate(lam_snapshot *p);

#endif
