/* reading.c -- reads prompts a segment at a time, with the log-probabilities of their tokens if requested.
 *
 * All tokens but the last are read here, in the very pieces in which lam_session_feed_nll() would read them: so a
 * prompt's log-probabilities are those of `lamemo score`.  The last token is fed like one that was drawn. */
#include "infer/scheduler_int.h"

#include <math.h>

enum { ROWS = 16 }; /* of logits at a time */

/* The most likely tokens of a row.  The token itself has the number that is reported for it, to the last bit: clients
 * ask whether it was the most likely one by comparing the two. */
static void rank(lam_likely *top, int n, const double *logits, int V, int32_t token, double logprob)
{
    const double total = lam_log_total(logits, V);
    lam_likeliest(top, n, logits, V);
    for (int i = 0; i < n; i++)
        top[i].logprob = top[i].token == token ? logprob : top[i].logprob - total;
    for (int i = 1; i < n && top[0].token == token; i++)
        top[i].logprob = fmin(top[i].logprob, logprob);
}

/* Tells how likely tokens[k] were, each at a row of the stack's last forward; the rows are its scored ones. */
static lam_status tell(lam_scheduler *s, lam_lane *lane, const int32_t *tokens, int k)
{
    lam_job *job = lane->job;
    const int V = s->engine->model->cfg.n_token, n = job->o.top;
    lam_likely top[LAM_JOB_TOP];
    lam_stack_loss(lane->stack, tokens, 0.0);
    LAM_TRY(lam_stack_nll(lane->stack, s->nll));
    const size_t finite = lam_finite_count(s->nll, LAM_F64, (size_t)k);
    if (finite < (size_t)k)
        return lam_fail(LAM_ERR_NUMERIC, "the log-probability of token %zu is not finite",
                        job->read + finite);
    for (int at = 0; at < k; at += ROWS) {
        const int rows = k - at < ROWS ? k - at : ROWS;
        if (n > 0)
            LAM_TRY(lam_stack_row_logits(lane->stack, at, rows, s->rows));
        for (int i = 0; i < rows; i++) {
            const int32_t token = tokens[at + i];
            const double logprob = -s->nll[at + i];
            if (n > 0)
                rank(top, n, s->rows + (size_t)i * (size_t)V, V, token, logprob);
            lam_job_tell_read(job, token, logprob, n > 0 ? top : NULL);
        }
    }
    return LAM_OK;
}

/* The first token follows what the text has read before. */
static lam_status tell_first(lam_scheduler *s, lam_lane *lane)
{
    if (lane->done > 0) {
        lam_lane_hold(s, lane);
        return tell(s, lane, lane->job->o.tokens, 1);
    }
    lam_job_tell_read(lane->job, lane->job->o.tokens[0], NAN, NULL);
    return LAM_OK;
}

/* Where an earlier prompt has been before, this one need not go. */
static lam_status skip(lam_scheduler *s, lam_lane *lane)
{
    lam_job *job = lane->job;
    lam_past *past;
    if (!job->from_start || job->o.score || lane->segment != s->o.segment || lane->done > 0)
        return LAM_OK;
    const size_t n = lam_prefix_find(s->prefixes, &past, job->o.tokens, job->o.n, job->read);
    if (n == 0)
        return LAM_OK;
    job->cached += n - job->read;
    s->load.cached += (int64_t)(n - job->read);
    job->read = n;
    lane->length = (int64_t)n;
    lam_past_drop(lane->past);
    lane->past = past;
    lane->changed = 0;
    lam_lane_leave(s, lane);
    return lam_past_put(past, lam_lane_mem(s, lane));
}

/* Ends a full segment of the prompt, and keeps what is remembered for prompts that begin alike. */
static lam_status commit(lam_scheduler *s, lam_lane *lane)
{
    const lam_job *job = lane->job;
    lam_past *past;
    lam_lane_commit(s, lane);
    if (!job->from_start || lane->segment != s->o.segment || s->o.prefixes == 0 ||
        lam_prefix_has(s->prefixes, job->o.tokens, job->read))
        return LAM_OK;
    LAM_TRY(lam_lane_past(s, lane, &past));
    if (past)
        lam_prefix_add(s->prefixes, job->o.tokens, job->read, past);
    return LAM_OK;
}

lam_status lam_lane_read(lam_scheduler *s, lam_lane *lane)
{
    lam_job *job = lane->job;
    const lam_job_options *o = &job->o;
    if (job->read == 0 && o->score)
        LAM_TRY(tell_first(s, lane));
    if (lane->done == lane->segment && job->read < o->n - 1)
        LAM_TRY(commit(s, lane));
    LAM_TRY(skip(s, lane));
    const size_t left = o->n - 1 - job->read, room = (size_t)(lane->segment - lane->done);
    const int k = (int)(left < room ? left : room);
    if (k > 0) {
        lam_lane_feed(s, lane, o->tokens + job->read, k);
        if (o->score)
            LAM_TRY(tell(s, lane, o->tokens + job->read + 1, k));
        job->read += (size_t)k;
        s->load.read += k;
    }
    if (job->read == o->n - 1) {
        job->next = o->tokens[o->n - 1];
        job->stage = o->draw > 0 ? LAM_DRAWING : o->keep ? LAM_SETTLING : LAM_FINISHED;
    } else if (lane->done == lane->segment) {
        LAM_TRY(commit(s, lane));
    }
    return LAM_OK;
}
