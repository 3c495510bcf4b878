/* session.h -- one decoding state of a loaded model: feed tokens, get the scores of the next one.
 *
 * Text is cut into segments of N tokens, counted from the start or from the last change of N. Within a segment keys and
 * values are cached, so a token costs one row; at its end the memory is committed, and the next segment's first token
 * refreshes it.  Every result equals that of the segment-parallel forward with the same segments, however the text is
 * divided into calls, the unfinished last segment included.  The size of the state does not depend on the length of the
 * text.
 *
 * A session runs `streams` texts of equal length side by side.  One thread at a time per session; sessions of one model
 * may run in parallel when each has a device context of its own. */
#ifndef LAM_INFER_SESSION_H
#define LAM_INFER_SESSION_H

#include "model/stack.h"

typedef struct lam_session lam_session;

typedef struct lam_session_options {
    int streams;  /* 0: 1 */
    int longest;  /* longest segment the session will use; 0: the model's tgt_len */
    int mem_len;  /* 0: the model's */
    int64_t most; /* maximum number of tokens per stream, for lam_length_fit(); 0: no limit */
    lam_dev *dev; /* kept; NULL: the model's */
} lam_session_options;

/* `model` is kept.  The first segments have the length `longest`. */
lam_status lam_session_create(lam_session **out, lam_model *model,
                              const lam_session_options *options);
void lam_session_free(lam_session *s); /* NULL is fine */

/* Forgets everything that was fed. */
void lam_session_reset(lam_session *s);

/* Sets the segment length to `length` tokens, 1 to `longest`; if it changes, the current segment ends here. */
lam_status lam_session_segment(lam_session *s, int length);

/* Feeds tokens [streams][n]; each must be in the vocabulary. */
lam_status lam_session_feed(lam_session *s, const int32_t *tokens, int n);
/* The same, and nll [streams][n]: the loss of targets [streams][n], one after each token. */
lam_status lam_session_feed_nll(lam_session *s, const int32_t *tokens, const int32_t *targets,
                                int n, double *nll);
/* The same, and after each token `sink` gets the logits of the next one, [streams][n_token], borrowed: n calls in
 * order.  A status from the sink other than LAM_OK ends the call. */
typedef lam_status lam_logits_sink(void *user, const double *logits);
lam_status lam_session_feed_logits(lam_session *s, const int32_t *tokens, int n,
                                   lam_logits_sink *sink, void *user);
/* The scores of the next token: [streams][n_token] log-probabilities up to a constant per row.
 * LAM_ERR_ARG before the first token. */
lam_status lam_session_logits(lam_session *s, double *scores);

int64_t lam_session_length(const lam_session *s); /* tokens fed since reset */

/* A snapshot of the state.  It holds the memory and the tokens of the unfinished segment, which are computed again on
 * restore, in the same calls, so later results are the same to the last bit.  A snapshot fits sessions of the same
 * model, streams and memory length. */
typedef struct lam_snapshot lam_snapshot;

lam_status lam_session_snapshot(lam_session *s, lam_snapshot **out);
lam_status lam_session_restore(lam_session *s, const lam_snapshot *snapshot);
void lam_snapshot_free(lam_snapshot *snapshot); /* NULL is fine */

/* The same in a file (safetensors), for another process with the same model. */
lam_status lam_snapshot_save(const lam_snapshot *snapshot, const char *path);
lam_status lam_snapshot_load(lam_snapshot **out, const char *path);
/* The same as the bytes of such a file; *bytes is the caller's (free).  `label` opens messages. */
lam_status lam_snapshot_write(const lam_snapshot *snapshot, char **bytes, size_t *size);
lam_status lam_snapshot_read(lam_snapshot **out, const char *label, const char *bytes, size_t size);

/* The name of the model that the snapshot was taken from, stored with it; "": none. */
enum { LAM_SNAPSHOT_MODEL = 64 };
lam_status lam_snapshot_set_model(lam_snapshot *snapshot, const char *model);
const char *lam_snapshot_model(const lam_snapshot *snapshot);

#endif
