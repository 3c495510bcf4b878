/* analysis_numbers.c -- what is derived from an analysis: means over heads, losses and gaps with their errors, and the main
 * numbers as one JSON object (the series are in the files of the figures). */
#include "measure/analysis.h"

#include "data/json_name.h"
#include "io/json.h"
#include "train/run.h"

#include <math.h>
#include <stdio.h>

int lam_analysis_layer(const lam_analysis *a, const lam_analysed *m)
{
    return (a->opt.layer > 0 ? a->opt.layer : m->cfg.n_layer) - 1;
}

void lam_analysis_layer_name(const lam_analysis *a, char *out, size_t size)
{
    if (a->opt.layer > 0)
        snprintf(out, size, "layer %d", a->opt.layer);
    else
        snprintf(out, size, "the final layer");
}

double lam_analysed_alpha(const lam_analysed *m, int layer, int slot)
{
    return lam_parted_mean(&m->probe.alphas, (size_t)(layer * m->probe.M + slot), LAM_ALL_PARTS);
}

double lam_analysed_peak(const lam_analysed *m, int layer, int interval)
{
    return lam_parted_mean(&m->probe.peaks, (size_t)(layer * m->probe.bins + interval),
                           LAM_ALL_PARTS);
}

lam_head_range lam_analysed_heads(const lam_analysed *m, const double *x, int layer)
{
    const int H = m->probe.H;
    const double *row = x + (size_t)layer * (size_t)H;
    lam_head_range v = {0.0, row[0], row[0]};
    for (int h = 0; h < H; h++) {
        v.mean += row[h] / H;
        v.low = fmin(v.low, row[h]);
        v.high = fmax(v.high, row[h]);
    }
    return v;
}

const lam_sweep_point *lam_analysed_point(const lam_analysed *m, int mem_len)
{
    for (int k = 0; k < m->n_points; k++)
        if (m->points[k].mem_len == mem_len)
            return &m->points[k];
    return NULL;
}

typedef struct losses {
    lam_metric metric;
    const lam_parted *high, *low; /* low may be NULL */
} losses;

static double gap_of(const void *data, int without)
{
    const losses *x = data;
    const double high = lam_metric_of(x->metric, lam_parted_mean(x->high, 0, without));
    return x->low ? high - lam_metric_of(x->metric, lam_parted_mean(x->low, 0, without)) : high;
}

lam_estimate lam_analysis_value(const lam_analysis *a, const lam_parted *nll)
{
    return lam_analysis_gap(a, nll, NULL);
}

lam_estimate lam_analysis_gap(const lam_analysis *a, const lam_parted *high, const lam_parted *low)
{
    return lam_estimate_of(gap_of, &(losses){a->corpus->info.metric, high, low}, high);
}

char *lam_error_shown(char *out, size_t size, double error)
{
    if (error > 0.0)
        snprintf(out, size, "%.3f", error);
    else
        snprintf(out, size, "an unknown amount");
    return out;
}

const char *lam_analysis_unit(const lam_analysis *a)
{
    return a->corpus->info.metric == LAM_PPL ? "perplexity" : "bits per character";
}

int lam_analysis_decimals(const lam_analysis *a)
{
    return a->corpus->info.metric == LAM_PPL ? 2 : 4;
}

/* ---- JSON ---- */

/* Means over heads, layer by layer. */
static json_t *by_layer(const lam_analysed *m, const double *x)
{
    json_t *list = json_array();
    for (int l = 0; l < m->probe.L; l++)
        json_array_append_new(list, lam_json_number(lam_analysed_heads(m, x, l).mean));
    return list;
}

static json_t *alpha(const lam_analysed *m)
{
    json_t *list = json_array();
    if (!m->probe.alpha) {
        json_decref(list);
        return json_null();
    }
    for (int l = 0; l < m->probe.L; l++) {
        double sum = 0.0;
        for (int s = 0; s < m->probe.M; s++)
            sum += lam_analysed_alpha(m, l, s) / m->probe.M;
        json_array_append_new(list, lam_json_number(sum));
    }
    return list;
}

static json_t *points(const lam_analysis *a, const lam_analysed *m)
{
    json_t *list = json_array();
    for (int k = 0; k < m->n_points; k++) {
        const lam_sweep_point *p = &m->points[k];
        const lam_estimate e = lam_analysis_value(a, &p->nll);
        json_array_append_new(list,
                              json_pack("{s:i, s:o, s:o, s:I}", "mem_len", p->mem_len, "value",
                                        lam_json_number(e.value), "error", lam_json_number(e.error),
                                        "tokens", (json_int_t)p->result.tokens));
    }
    return list;
}

static json_t *story(const lam_story *s)
{
    if (!s->text)
        return json_null();
    json_t *distinct = json_array();
    for (int k = 0; k < LAM_DISTINCT; k++)
        json_array_append_new(distinct, lam_json_number(s->counts.distinct[k]));
    return json_pack("{s:i, s:o, s:o}", "words", s->counts.words, "distinct", distinct, "repeated",
                     lam_json_number(s->counts.repeated));
}

static json_t *model(const lam_analysis *a, const lam_analysed *m)
{
    const lam_estimate loss = lam_analysis_value(a, &m->probe.nll);
    return json_pack("{s:s, s:s, s:I, s:i, s:i, s:i, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "name", m->name, "memory", m->cfg.memory, "parameters",
                     (json_int_t)m->parameters, "tgt_len", m->probe.N, "mem_len",
                     m->probe.M - m->probe.front, "compressed", m->probe.front, "segments",
                     (json_int_t)m->probe.segments, "attention_tokens", (json_int_t)m->probe.tokens,
                     "value", lam_json_number(loss.value), "error", lam_json_number(loss.error),
                     "alpha_by_layer", alpha(m), "entropy_by_layer", by_layer(m, m->probe.entropy),
                     "memory_share_by_layer", by_layer(m, m->probe.share[1]), "extrapolation",
                     points(a, m), "continuation", story(&m->story));
}

json_t *lam_analysis_json(const lam_analysis *a)
{
    json_t *models = json_array();
    for (int i = 0; i < a->n; i++)
        json_array_append_new(models, model(a, &a->models[i]));
    return json_pack("{s:s, s:s, s:s, s:o}", "corpus", a->corpus->info.name, "split",
                     lam_split_name(a->split), "metric", lam_metric_name(a->corpus->info.metric),
                     "models", models);
}
