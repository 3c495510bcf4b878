/* sweep.c -- see sweep.h. */
#include "measure/sweep.h"

#include "measure/probe.h"
#include "model/macs.h"

#include <math.h>

/* Columns, and segments of each that count. */
enum { FEWEST = 8, MOST = 64, SHORTEST = 4, LONGEST = 16, ROWS = 1 << 16 };

static int longest_of(const lam_sweep_options *o)
{
    int longest = 0;
    for (int i = 0; i < o->n; i++)
        longest = o->lengths[i] > longest ? o->lengths[i] : longest;
    return longest;
}

int64_t lam_sweep_warm(const lam_sweep_options *o, const lam_config *cfg)
{
    return lam_probe_warm(cfg, o->tgt_len, longest_of(o));
}

double lam_sweep_length_macs(const lam_sweep_options *o, const lam_config *cfg, int mem_len)
{
    lam_config one = *cfg;
    one.tgt_len = o->tgt_len;
    one.mem_len = mem_len;
    return cfg->mem_len > 0 ? lam_macs_segment(&one, 1) : 0.0;
}

double lam_sweep_macs(const lam_sweep_options *o, const lam_config *cfg)
{
    double macs = 0.0;
    for (int i = 0; i < o->n; i++)
        macs += lam_sweep_length_macs(o, cfg, o->lengths[i]);
    return macs;
}

static double within(double x, double least, double most)
{
    return floor(fmin(fmax(x, least), most));
}

/* The segments that fill memories are cheaper, half as dear in the mean. */
void lam_sweep_resolve(lam_sweep_options *o, double macs, const lam_tokens *text)
{
    const double warm = 0.5 * (double)o->skip, N = o->tgt_len;
    const double afford = macs > 0.0 ? o->work / macs : INFINITY; /* segments of one column */
    if (o->batch == 0) {
        const double wanted = o->tokens < 0    ? afford / (SHORTEST + warm)
                              : o->tokens == 0 ? MOST
                                               : (double)o->tokens / (SHORTEST * N);
        /* each column has text enough, and memory is not taken without end */
        const double there = (double)text->count / (N * ((double)o->skip + SHORTEST));
        const double room = (double)ROWS / (N + longest_of(o));
        o->batch = (int)within(fmin(within(wanted, FEWEST, MOST), fmin(there, room)), 1, MOST);
    }
    if (o->tokens < 0)
        o->tokens = (int64_t)(within(afford / o->batch - warm, SHORTEST, LONGEST) * N * o->batch);
}

typedef struct reader {
    lam_sweep_point *point;
    const lam_sweep_options *opt;
    int64_t steps;
} reader;

static lam_status on_segment(void *user, const lam_eval_segment *seg)
{
    const reader *r = user;
    const int64_t step = seg->row / r->opt->tgt_len - r->opt->skip;
    for (int b = 0; b < r->opt->batch; b++) {
        double sum = 0.0;
        for (int i = 0; i < seg->n; i++)
            sum += seg->nll[b * seg->n + i];
        lam_parted_add(&r->point->nll, lam_part_of(step, r->steps, b, r->opt->batch), 0, sum,
                       seg->n);
    }
    return LAM_OK;
}

/* Segments of a column that count, at most. */
static int64_t steps_of(const lam_sweep_options *o, const lam_tokens *text)
{
    const int64_t column = text->count / o->batch, N = o->tgt_len;
    const int64_t there = (column + N - 1) / N - o->skip, asked = o->tokens / (N * o->batch);
    const int64_t steps = o->tokens > 0 && asked < there ? asked : there;
    return steps > 0 ? steps : 1;
}

double lam_sweep_weight(const lam_sweep_options *o, const lam_tokens *text)
{
    return o->batch * ((double)steps_of(o, text) + 0.5 * (double)o->skip);
}

lam_status lam_sweep_run(lam_sweep_point *point, lam_model *model, const lam_tokens *text,
                         const lam_sweep_options *o, lam_eval_watch *watch, void *user)
{
    lam_evaluator *e = NULL;
    reader r = {.point = point, .opt = o, .steps = steps_of(o, text)};
    lam_eval_options eval = {.batch = o->batch,
                             .tgt_len = o->tgt_len,
                             .mem_len = point->mem_len,
                             .max_steps = o->tokens > 0 ? r.steps : 0,
                             .skip = o->skip,
                             .visit = on_segment,
                             .visitor = &r};
    lam_eval_fit(&eval, text);
    LAM_TRY(lam_parted_make(&point->nll, 1));
    lam_status status = lam_evaluator_create(&e, model, &eval);
    if (status == LAM_OK)
        status = lam_evaluator_run(e, &point->result, text, watch, user);
    lam_evaluator_free(e);
    if (status != LAM_OK)
        lam_parted_free(&point->nll);
    return status;
}
