/* sampler.c -- see sampler.h. */
#include "infer/sampler.h"

#include "core/exact.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 256 }; /* scores whose exponentials are computed at a time */

typedef struct candidate {
    double score; /* logit, later probability */
    int32_t token;
} candidate;

struct lam_sampler {
    lam_sampler_options opt;
    lam_rng rng;
    int n_token;
    candidate *list; /* [n_token] */
    double *scores;  /* [n_token], penalised */
    int32_t *recent; /* [repeat_last], a ring */
    long noted;
};

lam_sampler_options lam_sampler_defaults(void)
{
    return (lam_sampler_options){1.0, 0, 0.95, 0.0, 1.0, 64, 42, -1};
}

static lam_status check(const lam_sampler_options *o)
{
    if (!(o->temperature >= 0.0) || !isfinite(o->temperature))
        return lam_fail(LAM_ERR_ARG, "temperature %g: must be 0 or more", o->temperature);
    if (o->top_k < 0)
        return lam_fail(LAM_ERR_ARG, "top_k %d: must be 0 or more", o->top_k);
    if (!(o->top_p > 0.0) || o->top_p > 1.0)
        return lam_fail(LAM_ERR_ARG, "top_p %g: must be above 0 and at most 1", o->top_p);
    if (!(o->min_p >= 0.0) || o->min_p > 1.0)
        return lam_fail(LAM_ERR_ARG, "min_p %g: must be 0 to 1", o->min_p);
    if (!(o->repeat_penalty > 0.0) || !isfinite(o->repeat_penalty))
        return lam_fail(LAM_ERR_ARG, "repeat_penalty %g: must be above 0", o->repeat_penalty);
    if (o->repeat_last < 0 || o->repeat_last > 1 << 20)
        return lam_fail(LAM_ERR_ARG, "repeat_last %d: must be 0 to %d", o->repeat_last, 1 << 20);
    return LAM_OK;
}

lam_status lam_sampler_create(lam_sampler **out, const lam_sampler_options *options, int n_token,
                              uint64_t stream)
{
    *out = NULL;
    LAM_TRY(check(options));
    lam_sampler *s = calloc(1, sizeof *s);
    if (s) {
        s->opt = *options;
        s->rng = (lam_rng){.key = options->seed, .stream = stream};
        s->n_token = n_token;
        s->list = calloc((size_t)n_token, sizeof *s->list);
        s->scores = calloc((size_t)n_token, sizeof *s->scores);
        s->recent = calloc((size_t)options->repeat_last + 1, sizeof *s->recent);
    }
    if (!s || !s->list || !s->scores || !s->recent) {
        lam_sampler_free(s);
        return lam_fail(LAM_ERR_MEMORY, "sampler: no memory for %d types", n_token);
    }
    *out = s;
    return LAM_OK;
}

void lam_sampler_free(lam_sampler *s)
{
    if (!s)
        return;
    free(s->list);
    free(s->scores);
    free(s->recent);
    free(s);
}

void lam_sampler_restart(lam_sampler *s)
{
    s->rng.next = 0;
    s->noted = 0;
}

void lam_sampler_note(lam_sampler *s, int32_t token)
{
    if (s->opt.repeat_last > 0)
        s->recent[s->noted++ % s->opt.repeat_last] = token;
}

/* Each recent token once, by a share of its score's size: about what dividing a positive logit and multiplying
 * a negative one does (Keskar et al. 2019).  Adaptive models give log-probabilities, which are never positive:
 * scores are measured from log V below the top, so that both kinds are treated alike. */
static void penalise(lam_sampler *s, const double *scores, double top)
{
    const long last = s->opt.repeat_last;
    const long n = s->noted < last ? s->noted : last;
    const double span = lam_exact_log((double)s->n_token), share = s->opt.repeat_penalty - 1.0;
    if (share == 0.0)
        return;
    /* From the model's score, so that a token that came twice may be set twice; finite, or nothing were left to
     * draw from when all tokens were recent. */
    for (long i = 0; i < n; i++) {
        const double score = scores[s->recent[i]], by = share * fabs(score - top + span);
        s->scores[s->recent[i]] = fmax(score - by, -DBL_MAX / 2.0);
    }
}

static int by_score(const candidate *x, const candidate *y)
{
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->token > y->token) - (x->token < y->token); /* the same order everywhere */
}

/* The list as a heap, so that only what is kept has to be sorted: of 267,735 words a few hundred.  Node i is
 * last[-i]; the likeliest is node 0 and the last element, and whatever is taken comes to lie in front, in order. */
static void sift(candidate *last, int size, int i)
{
    for (int best = i;; i = best) {
        for (int child = 2 * i + 1; child <= 2 * i + 2 && child < size; child++)
            if (by_score(&last[-child], &last[-best]) < 0)
                best = child;
        if (best == i)
            return;
        const candidate moved = last[-i];
        last[-i] = last[-best];
        last[-best] = moved;
    }
}

static void make_heap(candidate *list, int n)
{
    for (int i = n / 2 - 1; i >= 0; i--)
        sift(list + n - 1, n, i);
}

/* Takes number i, after those before it; it comes to list[i]. */
static void take(candidate *list, int n, int i)
{
    const candidate root = list[n - 1];
    list[n - 1] = list[i];
    list[i] = root;
    sift(list + n - 1, n - i - 1, 0);
}

/* exp((score - top) / temperature) of the first of n scores; returns of how many. */
static int weigh(double p[STEP], const double *scores, int n, double top, double temperature)
{
    const int k = n < STEP ? n : STEP;
    for (int i = 0; i < k; i++)
        p[i] = scores[i] - top;
    for (int i = 0; i < k && temperature != 1.0; i++)
        p[i] /= temperature;
    lam_exact_exps(p, p, (size_t)k);
    return k;
}

/* Leaves out what is below `least`. */
static int drop_below(candidate *list, int n, double least)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        list[kept] = list[i];
        kept += list[i].score >= least;
    }
    return kept;
}

/* How many tokens remain, and the sum of their probabilities. */
typedef struct shorter {
    int n;
    double sum;
} shorter;

/* Fills the list with the tokens that remain, as probabilities, most likely first where there is a filter.  *all: the
 * sum of all tokens' before any filter. */
static shorter shortlist(lam_sampler *s, const double *scores, double top, double *all)
{
    const lam_sampler_options *o = &s->opt;
    int n = 0;
    double sum = 0.0, seen = 0.0;
    for (int at = 0; at < s->n_token; at += STEP) {
        double p[STEP];
        const int k = weigh(p, scores + at, s->n_token - at, top, o->temperature);
        for (int i = 0; i < k; i++) {
            if (p[i] > 0.0)
                s->list[n++] = (candidate){p[i], at + i};
            sum += p[i];
        }
    }
    *all = sum;
    int most = o->top_k > 0 && o->top_k < n ? o->top_k : n;
    if (most == n && o->top_p == 1.0 && o->min_p == 0.0)
        return (shorter){n, sum};
    /* Most tokens cannot remain: the likeliest has 1, and all below the second bound together are half of what top-p
     * leaves out. */
    if (o->top_k == 0)
        n = most = drop_below(s->list, n, fmax(o->min_p, 0.5 * (1.0 - o->top_p) * sum / n));
    make_heap(s->list, n);
    int taken = 0;
    if (most < n) /* top-p counts what top-k left */
        for (sum = 0.0; taken < most; taken++) {
            take(s->list, n, taken);
            sum += s->list[taken].score;
        }
    for (int i = 0; i < most; i++) {
        if (i == taken)
            take(s->list, n, taken++);
        if (i > 0 && s->list[i].score < o->min_p * s->list[0].score)
            return (shorter){i, seen};
        seen += s->list[i].score;
        if (o->top_p < 1.0 && seen > o->top_p * sum)
            return (shorter){i + 1, seen};
    }
    return (shorter){most, seen};
}

/* The highest score but NaN, which is larger than nothing; WAYS at a time, because the next depends on the last. */
static double top_of(const double *scores, int n)
{
    enum { WAYS = 8 };
    double top[WAYS];
    for (int w = 0; w < WAYS; w++)
        top[w] = -INFINITY;
    int i = 0;
    for (; i + WAYS <= n; i += WAYS)
        for (int w = 0; w < WAYS; w++)
            top[w] = scores[i + w] > top[w] ? scores[i + w] : top[w];
    for (; i < n; i++)
        top[0] = scores[i] > top[0] ? scores[i] : top[0];
    for (int w = 1; w < WAYS; w++)
        top[0] = top[w] > top[0] ? top[w] : top[0];
    return top[0];
}

static int first_of(const double *scores, double score)
{
    int i = 0;
    while (scores[i] != score)
        i++;
    return i;
}

static double log_sum_exp(const double *scores, int n, double top)
{
    double sum = 0.0;
    for (int at = 0; at < n; at += STEP) {
        double p[STEP];
        const int k = weigh(p, scores + at, n - at, top, 1.0);
        for (int i = 0; i < k; i++)
            sum += p[i];
    }
    return top + lam_exact_log(sum);
}

/* A token of the shortlist, each with its probability. */
static int32_t choose(lam_sampler *s, shorter list)
{
    const int n = list.n;
    double left = lam_rng_uniform(&s->rng) * list.sum;
    int i = 0;
    while (i < n - 1 && (left -= s->list[i].score) >= 0.0)
        i++;
    return s->list[i].token;
}

/* The scores to draw from: the model's, or s->scores, changed. */
static const double *adjust(lam_sampler *s, const double *scores, double top)
{
    const int bans = s->opt.never >= 0 && s->opt.never < s->n_token && s->n_token > 1;
    if (s->opt.repeat_penalty == 1.0 && !bans)
        return scores;
    memcpy(s->scores, scores, (size_t)s->n_token * sizeof *scores);
    penalise(s, scores, top);
    if (bans)
        s->scores[s->opt.never] = -INFINITY;
    return s->scores;
}

lam_status lam_sampler_draw(lam_sampler *s, const double *scores, int32_t *token, double *logprob)
{
    double sum = 0.0;
    const double top = top_of(scores, s->n_token);
    if (!isfinite(top))
        return lam_fail(LAM_ERR_NUMERIC, "sampling: the model's scores are not finite");
    const double *own = adjust(s, scores, top);
    const double highest = own == scores ? top : top_of(own, s->n_token);
    if (!isfinite(highest))
        return lam_fail(LAM_ERR_NUMERIC, "sampling: only <unk> has a finite score");
    *token = s->opt.temperature == 0.0 ? first_of(own, highest)
                                       : choose(s, shortlist(s, own, highest, &sum));
    /* What the shortlist has added up is the very sum of log_sum_exp() where nothing was changed. */
    if (logprob && own == scores && s->opt.temperature == 1.0)
        *logprob = scores[*token] - (top + lam_exact_log(sum));
    else if (logprob)
        *logprob = scores[*token] - log_sum_exp(scores, s->n_token, top);
    lam_sampler_note(s, *token);
    return LAM_OK;
}

void lam_sampler_likeliest(lam_sampler *s, const double *scores, lam_likely *out, int n)
{
    const double top = top_of(scores, s->n_token);
    const double total = log_sum_exp(scores, s->n_token, top);
    lam_likeliest(out, n, scores, s->n_token);
    for (int i = 0; i < n; i++)
        out[i].logprob -= total;
}

void lam_likeliest(lam_likely *out, int n, const double *scores, int n_token)
{
    int there = 0;
    for (int i = 0; i < n_token && n > 0; i++) {
        if (there == n && !(scores[i] > out[n - 1].logprob))
            continue;
        /* Few are asked for: each goes to its place among those so far. */
        int at = there < n ? there++ : n - 1;
        for (; at > 0 && scores[i] > out[at - 1].logprob; at--)
            out[at] = out[at - 1];
        out[at] = (lam_likely){i, scores[i]};
    }
}

double lam_log_total(const double *scores, int n_token)
{
    const double top = top_of(scores, n_token);
    return log_sum_exp(scores, n_token, top);
}
