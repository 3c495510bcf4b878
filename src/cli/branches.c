/* branches.c -- see branches.h. */
#include "cli/branches.h"

#include "cli/stop.h"
#include "core/own.h"
#include "infer/session.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 512,      /* tokens that are read between two looks at signals */
    RECENT_LEAST = 64 /* what the joining of words may look back to, and more than that */
};

typedef struct branch {
    char name[LAM_BRANCH_NAME];
    lam_snapshot *snapshot; /* NULL: it is the current one */
    int64_t length;         /* of one that waits */
    int32_t *recent;        /* [2 * enough] */
    int n_recent;
} branch;

struct lam_branches {
    const lam_engine *engine;
    lam_session *session;
    int prompt, refresh; /* lengths of segments: of what is read, and of what is drawn */
    int enough;          /* recent tokens that are kept */
    double *scores;      /* [n_token] */
    branch v[LAM_BRANCHES_MAX];
    int n, now;
};

static lam_status no_memory(void)
{
    return lam_fail(LAM_ERR_MEMORY, "no memory for another branch");
}

/* Opens branch n, empty. */
static lam_status add_branch(lam_branches *b, const char *name)
{
    branch *const it = &b->v[b->n];
    *it = (branch){.recent = malloc(2 * (size_t)b->enough * sizeof *it->recent)};
    if (!it->recent)
        return no_memory();
    snprintf(it->name, sizeof it->name, "%s", name);
    b->n++;
    return LAM_OK;
}

lam_status lam_branches_create(lam_branches **out, const lam_engine *engine,
                               const lam_generate_args *o)
{
    const lam_config *cfg = &engine->model->cfg;
    *out = NULL;
    lam_branches *b = calloc(1, sizeof *b);
    if (!b)
        return no_memory();
    b->engine = engine;
    b->prompt = o->prompt_segment > 0 ? o->prompt_segment : cfg->tgt_len;
    b->refresh = o->refresh > 0 ? o->refresh : b->prompt;
    b->enough = o->repeat_last > RECENT_LEAST ? o->repeat_last : RECENT_LEAST;
    b->scores = malloc((size_t)cfg->n_token * sizeof *b->scores);
    const int longest = b->prompt > b->refresh ? b->prompt : b->refresh;
    const lam_session_options wanted = {.longest = longest, .mem_len = o->mem_len};
    lam_status status = b->scores ? add_branch(b, "main") : no_memory();
    if (status == LAM_OK)
        status = lam_session_create(&b->session, engine->model, &wanted);
    if (status != LAM_OK) {
        lam_branches_free(b);
        return status;
    }
    *out = b;
    return LAM_OK;
}

static void close_branch(branch *it)
{
    lam_snapshot_free(it->snapshot);
    free(it->recent);
}

void lam_branches_free(lam_branches *b)
{
    if (!b)
        return;
    for (int i = 0; i < b->n; i++)
        close_branch(&b->v[i]);
    lam_session_free(b->session);
    free(b->scores);
    free(b);
}

/* ---- text ---- */

static void remember(lam_branches *b, const int32_t *tokens, size_t n)
{
    branch *const it = &b->v[b->now];
    for (size_t i = 0; i < n; i++) {
        if (it->n_recent == 2 * b->enough) {
            it->n_recent = b->enough;
            memmove(it->recent, it->recent + b->enough, (size_t)b->enough * sizeof *it->recent);
        }
        it->recent[it->n_recent++] = tokens[i];
    }
}

static lam_status feed(lam_branches *b, int segment, const int32_t *tokens, size_t n)
{
    LAM_TRY(lam_session_segment(b->session, segment));
    for (size_t at = 0; at < n;) {
        const size_t k = n - at < PIECE ? n - at : PIECE;
        if (at > 0 && lam_stop_signal() != 0)
            return lam_fail(LAM_ERR_INTERRUPTED, "stopped after %zu of %zu tokens", at, n);
        LAM_TRY(lam_session_feed(b->session, tokens + at, (int)k));
        remember(b, tokens + at, k);
        at += k;
    }
    return LAM_OK;
}

/* The last token begins the segments of what will be drawn, as in lam_generate(). */
lam_status lam_branches_read(lam_branches *b, const int32_t *tokens, size_t n)
{
    if (n == 0)
        return LAM_OK;
    if (n > 1)
        LAM_TRY(feed(b, b->prompt, tokens, n - 1));
    return feed(b, b->refresh, tokens + n - 1, 1);
}

lam_status lam_branches_drawn(lam_branches *b, int32_t token)
{
    return feed(b, b->refresh, &token, 1);
}

lam_status lam_branches_scores(lam_branches *b, const double **scores)
{
    *scores = b->scores;
    return lam_session_logits(b->session, b->scores);
}

int64_t lam_branches_length(const lam_branches *b)
{
    return lam_session_length(b->session);
}

const int32_t *lam_branches_recent(const lam_branches *b, int *n)
{
    *n = b->v[b->now].n_recent;
    return b->v[b->now].recent;
}

/* ---- branches ---- */

static int find(const lam_branches *b, const char *name)
{
    for (int i = 0; i < b->n; i++)
        if (strcmp(b->v[i].name, name) == 0)
            return i;
    return -1;
}

static lam_status check_name(const lam_branches *b, const char *name)
{
    bool ok = *name != '\0' && strlen(name) < LAM_BRANCH_NAME;
    for (const char *p = name; *p; p++)
        ok = ok && isgraph((unsigned char)*p);
    if (!ok)
        return lam_fail(LAM_ERR_ARG, "/fork: '%s' is not one word of 1 to %d ASCII letters", name,
                        LAM_BRANCH_NAME - 1);
    return find(b, name) < 0 ? LAM_OK
                             : lam_fail(LAM_ERR_ARG, "/fork: there is a branch '%s'", name);
}

/* The current branch becomes one that waits. */
static lam_status park(lam_branches *b)
{
    branch *const it = &b->v[b->now];
    LAM_TRY(lam_session_snapshot(b->session, &it->snapshot));
    it->length = lam_session_length(b->session);
    return LAM_OK;
}

lam_status lam_branches_fork(lam_branches *b, const char *name)
{
    char number[LAM_BRANCH_NAME];
    for (int k = 2; !name && k <= LAM_BRANCHES_MAX + 1; k++) {
        snprintf(number, sizeof number, "%d", k);
        name = find(b, number) < 0 ? number : NULL;
    }
    if (b->n == LAM_BRANCHES_MAX)
        return lam_fail(LAM_ERR_ARG, "/fork: there are %d branches; /drop one", LAM_BRANCHES_MAX);
    LAM_TRY(check_name(b, name));
    LAM_TRY(add_branch(b, name));
    branch *const from = &b->v[b->now], *const to = &b->v[b->n - 1];
    const lam_status status = park(b);
    if (status != LAM_OK) {
        close_branch(to);
        b->n--;
        return status;
    }
    memcpy(to->recent, from->recent, (size_t)from->n_recent * sizeof *to->recent);
    to->n_recent = from->n_recent;
    b->now = b->n - 1;
    return LAM_OK;
}

static lam_status must_find(const lam_branches *b, const char *name, int *i)
{
    *i = find(b, name);
    return *i >= 0 ? LAM_OK
                   : lam_fail(LAM_ERR_ARG, "there is no branch '%s'; /branches lists them", name);
}

lam_status lam_branches_switch(lam_branches *b, const char *name)
{
    int to;
    LAM_TRY(must_find(b, name, &to));
    if (to == b->now)
        return LAM_OK;
    LAM_TRY(park(b));
    const lam_status status = lam_session_restore(b->session, b->v[to].snapshot);
    branch *const current = &b->v[status == LAM_OK ? to : b->now];
    lam_snapshot_free(current->snapshot);
    current->snapshot = NULL;
    if (status == LAM_OK)
        b->now = to;
    return status;
}

lam_status lam_branches_drop(lam_branches *b, const char *name)
{
    int i;
    LAM_TRY(must_find(b, name, &i));
    if (i == b->now)
        return lam_fail(LAM_ERR_ARG, "/drop: '%s' is the current branch; /switch to another first",
                        name);
    close_branch(&b->v[i]);
    b->n--;
    memmove(&b->v[i], &b->v[i + 1], (size_t)(b->n - i) * sizeof b->v[0]);
    b->now -= b->now > i;
    return LAM_OK;
}

/* ---- the past ---- */

void lam_branches_reset(lam_branches *b)
{
    lam_session_reset(b->session);
    b->v[b->now].n_recent = 0;
}

lam_status lam_branches_save(lam_branches *b, const char *path)
{
    lam_snapshot *snapshot;
    LAM_TRY(lam_own_file(path, "lamemo snapshot"));
    LAM_TRY(lam_session_snapshot(b->session, &snapshot));
    const lam_status status = lam_snapshot_save(snapshot, path);
    lam_snapshot_free(snapshot);
    return status;
}

lam_status lam_branches_load(lam_branches *b, const char *path)
{
    lam_snapshot *snapshot;
    LAM_TRY(lam_snapshot_load(&snapshot, path));
    const lam_status status = lam_session_restore(b->session, snapshot);
    lam_snapshot_free(snapshot);
    if (status == LAM_OK)
        b->v[b->now].n_recent = 0;
    return status;
}

int lam_branches_count(const lam_branches *b)
{
    return b->n;
}

int lam_branches_current(const lam_branches *b)
{
    return b->now;
}

const char *lam_branches_name(const lam_branches *b, int i, int64_t *length)
{
    *length = i == b->now ? lam_session_length(b->session) : b->v[i].length;
    return b->v[i].name;
}
