/* session.c -- see session.h. */
#include "infer/session_int.h"

#include "core/budget.h"

#include <stdlib.h>
#include <string.h>

static lam_status allocate(lam_session *s)
{
    const size_t room = (size_t)s->streams * (size_t)s->longest;
    LAM_TRY(lam_budget_ask_under(s->model->dev->max_memory, "a session's tokens",
                                 room * (3 * sizeof(int32_t) + sizeof(double))));
    s->now.calls = calloc((size_t)s->longest, sizeof *s->now.calls);
    s->now.tokens = calloc(room, sizeof *s->now.tokens);
    s->packed = calloc(room, sizeof *s->packed);
    s->packed_targets = calloc(room, sizeof *s->packed_targets);
    s->nll = calloc(room, sizeof *s->nll);
    if (!s->now.calls || !s->now.tokens || !s->packed || !s->packed_targets || !s->nll)
        return lam_fail(LAM_ERR_MEMORY, "session: no memory for segments of %d tokens", s->longest);
    return LAM_OK;
}

lam_status lam_session_create(lam_session **out, lam_model *model,
                              const lam_session_options *options)
{
    *out = NULL;
    lam_session *s = calloc(1, sizeof *s);
    if (!s)
        return lam_fail(LAM_ERR_MEMORY, "session: no memory");
    s->model = model;
    s->streams = options->streams > 0 ? options->streams : 1;
    s->longest = options->longest > 0 ? options->longest : model->cfg.tgt_len;
    s->mem_len = !lam_mem_has(model->mem, LAM_REMEMBERS) ? 0
                 : options->mem_len > 0                  ? options->mem_len
                                                         : model->cfg.mem_len;
    if (options->most > 0) {
        s->longest = lam_length_fit(s->longest, options->most);
        s->mem_len = lam_length_fit(s->mem_len, options->most);
    }
    s->now.length = s->longest;
    lam_status status = lam_stack_create(&s->stack, model,
                                         &(lam_stack_options){.B = s->streams,
                                                              .N = s->longest,
                                                              .M = s->mem_len,
                                                              .most = options->most,
                                                              .dev = options->dev});
    if (status == LAM_OK)
        status = allocate(s);
    if (status != LAM_OK) {
        lam_session_free(s);
        return status;
    }
    *out = s;
    return LAM_OK;
}

void lam_session_free(lam_session *s)
{
    if (!s)
        return;
    lam_stack_free(s->stack);
    free(s->now.calls);
    free(s->now.tokens);
    free(s->packed);
    free(s->packed_targets);
    free(s->nll);
    free(s);
}

void lam_session_reset(lam_session *s)
{
    lam_stack_reset(s->stack);
    s->now.done = s->now.n_calls = 0;
    s->length = 0;
}

/* Ends the segment that is being filled, if there is one. */
static void close_segment(lam_session *s)
{
    if (s->now.done > 0)
        lam_stack_commit(s->stack);
    s->now.done = s->now.n_calls = 0;
}

lam_status lam_session_segment(lam_session *s, int length)
{
    if (length < 1 || length > s->longest)
        return lam_fail(LAM_ERR_ARG, "session: segments of %d tokens, must be 1 to %d", length,
                        s->longest);
    if (length != s->now.length)
        close_segment(s);
    s->now.length = length;
    return LAM_OK;
}

void lam_session_piece(lam_session *s, const int32_t *packed, int n)
{
    lam_open_segment *now = &s->now;
    if (now->done == 0)
        lam_stack_begin(s->stack, now->length, (lam_stack_dropout){0});
    lam_stack_forward(s->stack, packed, n);
    for (int b = 0; b < s->streams; b++)
        memcpy(now->tokens + (size_t)b * (size_t)s->longest + now->done,
               packed + (size_t)b * (size_t)n, (size_t)n * sizeof *packed);
    now->calls[now->n_calls++] = n;
    now->done += n;
}

static lam_status check_tokens(const lam_session *s, const int32_t *tokens, int n)
{
    for (size_t i = 0; i < (size_t)s->streams * (size_t)n; i++)
        if (tokens[i] < 0 || tokens[i] >= s->model->cfg.n_token)
            return lam_fail(LAM_ERR_ARG, "token %d: the vocabulary has %d types", tokens[i],
                            s->model->cfg.n_token);
    return LAM_OK;
}

/* Columns at .. at + k of [streams][n]. */
static void pack(const lam_session *s, int32_t *packed, const int32_t *all, int n, int at, int k)
{
    for (int b = 0; b < s->streams; b++)
        memcpy(packed + (size_t)b * (size_t)k, all + (size_t)b * (size_t)n + at,
               (size_t)k * sizeof *packed);
}

/* Feeds as many of the tokens from `at` on as the segment has room for, and returns how many. */
static int feed_piece(lam_session *s, const int32_t *tokens, int n, int at)
{
    /* A full segment is ended by the token after it: until then it may still be asked about. */
    if (s->now.done == s->now.length)
        close_segment(s);
    const int room = s->now.length - s->now.done, k = n - at < room ? n - at : room;
    pack(s, s->packed, tokens, n, at, k);
    lam_session_piece(s, s->packed, k);
    s->length += k;
    return k;
}

static lam_status score_piece(lam_session *s, const int32_t *targets, int n, int at, int k,
                              double *nll)
{
    pack(s, s->packed_targets, targets, n, at, k);
    lam_stack_loss(s->stack, s->packed_targets, 0.0);
    LAM_TRY(lam_stack_nll(s->stack, s->nll));
    const size_t all = (size_t)s->streams * (size_t)k, bad = lam_finite_count(s->nll, LAM_F64, all);
    if (bad < all) /* weights may be finite and what they compute is not */
        return lam_fail(LAM_ERR_NUMERIC, "the log-probability of token %lld is not finite",
                        (long long)s->length - k + (long long)(bad % (size_t)k));
    for (int b = 0; b < s->streams; b++)
        memcpy(nll + (size_t)b * (size_t)n + at, s->nll + (size_t)b * (size_t)k,
               (size_t)k * sizeof *nll);
    return LAM_OK;
}

lam_status lam_session_feed_nll(lam_session *s, const int32_t *tokens, const int32_t *targets,
                                int n, double *nll)
{
    LAM_TRY(check_tokens(s, tokens, n));
    if (targets)
        LAM_TRY(check_tokens(s, targets, n));
    for (int at = 0; at < n;) {
        const int k = feed_piece(s, tokens, n, at);
        if (targets)
            LAM_TRY(score_piece(s, targets, n, at, k, nll));
        at += k;
    }
    return LAM_OK;
}

lam_status lam_session_feed(lam_session *s, const int32_t *tokens, int n)
{
    return lam_session_feed_nll(s, tokens, NULL, n, NULL);
}

/* The scores that were taken last. */
static lam_status check_finite(const lam_session *s, int64_t after)
{
    const size_t V = (size_t)s->model->cfg.n_token;
    for (int b = 0; b < s->streams; b++) {
        const size_t bad = lam_stack_finite(s->stack, b);
        if (bad < V)
            return lam_fail(LAM_ERR_NUMERIC,
                            "after %lld tokens the score of symbol %zu is not finite",
                            (long long)after, bad);
    }
    return LAM_OK;
}

lam_status lam_session_logits(lam_session *s, double *scores)
{
    if (s->now.done == 0)
        return lam_fail(LAM_ERR_ARG, "session: nothing was fed since %s",
                        s->length == 0 ? "the start" : "the segment length changed");
    LAM_TRY(lam_stack_logits(s->stack, scores));
    return check_finite(s, s->length);
}

/* Logits of the k rows that were fed last, one after the other. */
static lam_status show_rows(lam_session *s, int k, double *scores, lam_logits_sink *sink,
                            void *user)
{
    for (int row = 0; row < k; row++) {
        LAM_TRY(lam_stack_logits_at(s->stack, row, scores));
        LAM_TRY(check_finite(s, s->length - k + row + 1));
        LAM_TRY(sink(user, scores));
    }
    return LAM_OK;
}

lam_status lam_session_feed_logits(lam_session *s, const int32_t *tokens, int n,
                                   lam_logits_sink *sink, void *user)
{
    LAM_TRY(check_tokens(s, tokens, n));
    double *const scores =
        malloc((size_t)s->streams * (size_t)s->model->cfg.n_token * sizeof *scores);
    lam_status status = scores ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "session: no memory for logits");
    for (int at = 0; at < n && status == LAM_OK;) {
        const int k = feed_piece(s, tokens, n, at);
        status = show_rows(s, k, scores, sink, user);
        at += k;
    }
    free(scores);
    return status;
}

int64_t lam_session_length(const lam_session *s)
{
    return s->length;
}
