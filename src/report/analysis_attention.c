/* analysis_attention.c -- where the attention of predicted tokens goes: by distance (Figure 1), by layer and
 * distance, its entropy, and the share that falls on memory. */
#include "report/analysis_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one model: the nearest tokens against the farther half. */
static lam_finding near_and_far(const lam_analysis *a, const lam_analysed *m)
{
    lam_finding out = {""};
    const int layer = lam_analysis_layer(a, m), bins = m->probe.bins, half = bins / 2;
    double far = 0.0;
    for (int k = half; k < bins; k++)
        far += lam_analysed_peak(m, layer, k) / (bins - half);
    if (bins > 1 && isfinite(far))
        snprintf(out.text, sizeof out.text,
                 "%s: %.2g among the nearest %d tokens, %.2g on average from %d tokens on", m->name,
                 lam_analysed_peak(m, layer, 0), m->probe.interval, far,
                 half * m->probe.interval + 1);
    return out;
}

static lam_status by_distance(const lam_analysis *a, lam_page *page, lam_curves *curves)
{
    char caption[640], layer[32], count[32];
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        lam_points c;
        const int first = lam_analysis_layer(a, m) * m->probe.bins;
        LAM_TRY(lam_curves_add(curves, &c, m->name, m->probe.bins, LAM_BAND));
        for (int k = 0; k < m->probe.bins; k++) {
            const lam_estimate e = lam_parted_estimate(&m->probe.peaks, (size_t)(first + k));
            lam_points_put(&c, k, lam_analysed_distance(m, k), e.value, e.error);
        }
        curves->list[i].colour = i + 1;
    }
    lam_finding finding = lam_analysis_finding(a, NULL, LAM_CLAIM_FAR);
    if (!finding.text[0])
        finding = near_and_far(a, &a->models[0]);
    lam_analysis_layer_name(a, layer, sizeof layer);
    snprintf(
        caption, sizeof caption,
        "The largest attention weight in each interval of %d tokens on the left of the predicted "
        "token, in %s, averaged over heads and %s tokens; an interval counts for the tokens that "
        "see all of it.  Distance 1 is the token just before the predicted one.  The band is one "
        "standard error.  (The paper's Figure 1, which stretches the distance to 100.)",
        a->opt.probe.interval, layer,
        lam_count_shown(count, sizeof count, a->models[0].probe.tokens));
    return lam_page_figure(page,
                           &(lam_figure){.id = "attention-distance",
                                         .title = "Attention over distance",
                                         .finding = finding.text,
                                         .caption = caption,
                                         .x = {.label = "distance to the left (tokens)"},
                                         .y = {.label = "attention weight", .scale = LAM_SCALE_LOG},
                                         .n_series = curves->n,
                                         .series = curves->list});
}

/* What holds the peaks of all layers of all models. */
static lam_head_range all_peaks(const lam_analysis *a)
{
    lam_head_range range = {.low = INFINITY, .high = -INFINITY};
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        for (int n = 0; n < m->probe.L * m->probe.bins; n++) {
            const double v = lam_parted_mean(&m->probe.peaks, (size_t)n, LAM_ALL_PARTS);
            range.low = v > 0.0 ? fmin(range.low, v) : range.low;
            range.high = v > 0.0 ? fmax(range.high, v) : range.high;
        }
    }
    return range.low <= range.high ? range : (lam_head_range){0};
}

/* The same for every layer of one model. */
static lam_status by_layer(const lam_analysis *a, lam_page *page, int i,
                           const lam_head_range *range)
{
    const lam_analysed *m = &a->models[i];
    const int L = m->probe.L, bins = m->probe.bins;
    char id[48], title[128];
    double *z = malloc((size_t)L * (size_t)bins * sizeof *z);
    if (!z)
        return lam_fail(LAM_ERR_MEMORY, "analysis: no memory for %d layers", L);
    for (int l = 0; l < L; l++)
        for (int k = 0; k < bins; k++)
            z[(size_t)l * (size_t)bins + (size_t)k] = lam_analysed_peak(m, l, k);
    snprintf(id, sizeof id, "attention-layers-%d", i + 1);
    snprintf(title, sizeof title, "Attention over distance in every layer: %s", m->name);
    const lam_status status = lam_page_figure(
        page, &(lam_figure){.id = id,
                            .title = title,
                            .caption = "The same measure for all layers; the first layer is on "
                                       "top.  All models share one scale of colours.",
                            .kind = LAM_FIGURE_HEAT,
                            .x = {.label = "distance to the left (tokens)",
                                  .min = lam_analysed_distance(m, 0),
                                  .max = lam_analysed_distance(m, bins - 1)},
                            .y = {.label = "layer", .min = 1, .max = L},
                            .rows = L,
                            .cols = bins,
                            .z = z,
                            .z_label = "attention weight",
                            .z_scale = LAM_SCALE_LOG,
                            .z_min = range->low,
                            .z_max = range->high});
    free(z);
    return status;
}

/* x [L][H] of a model over layers, with the range of heads as a band. */
static lam_status over_layers(lam_curves *curves, const lam_analysed *m, const double *x, int model)
{
    lam_points c;
    LAM_TRY(lam_curves_add(curves, &c, m->name, m->probe.L, LAM_BAND));
    for (int l = 0; l < m->probe.L; l++) {
        const lam_head_range v = lam_analysed_heads(m, x, l);
        c.x[l] = l + 1;
        c.y[l] = v.mean;
        c.low[l] = v.low;
        c.high[l] = v.high;
    }
    curves->list[curves->n - 1].colour = model + 1;
    return LAM_OK;
}

/* Of one model: the layers that look at the fewest and at the most keys. */
static lam_finding narrow_and_wide(const lam_analysed *m)
{
    lam_finding out = {""};
    int least = 0, most = 0;
    double v[2];
    for (int l = 1; l < m->probe.L; l++) {
        const double here = lam_analysed_heads(m, m->probe.entropy, l).mean;
        least = here < lam_analysed_heads(m, m->probe.entropy, least).mean ? l : least;
        most = here > lam_analysed_heads(m, m->probe.entropy, most).mean ? l : most;
    }
    v[0] = exp(lam_analysed_heads(m, m->probe.entropy, least).mean);
    v[1] = exp(lam_analysed_heads(m, m->probe.entropy, most).mean);
    if (least != most)
        snprintf(out.text, sizeof out.text,
                 "%s: narrowest in layer %d (as if %.3g keys were read evenly), widest in layer %d "
                 "(%.3g)",
                 m->name, least + 1, v[0], most + 1, v[1]);
    return out;
}

static lam_status entropy(const lam_analysis *a, lam_page *page, lam_curves *curves)
{
    for (int i = 0; i < a->n; i++)
        LAM_TRY(over_layers(curves, &a->models[i], a->models[i].probe.entropy, i));
    return lam_page_figure(
        page, &(lam_figure){.id = "attention-entropy",
                            .title = "Entropy of attention",
                            .finding = narrow_and_wide(&a->models[0]).text,
                            .caption = "How widely a token's attention is spread: - sum p log p "
                                       "over the keys it sees, averaged over tokens and heads; the "
                                       "band runs from the narrowest to the widest head.",
                            .x = {.label = "layer"},
                            .y = {.label = "entropy (nats)"},
                            .n_series = curves->n,
                            .series = curves->list});
}

/* The share that evenly spread weights would have: the mean over a segment of M / (M + i). */
static double even_share(const lam_analysed *m)
{
    double sum = 0.0;
    for (int i = 1; i <= m->probe.N; i++)
        sum += (double)m->probe.M / (m->probe.M + i);
    return sum / m->probe.N;
}

/* Of one model: the mean over layers. */
static lam_finding share_of(const lam_analysed *m)
{
    lam_finding out;
    double mean = 0.0;
    for (int l = 0; l < m->probe.L; l++)
        mean += lam_analysed_heads(m, m->probe.share[1], l).mean / m->probe.L;
    snprintf(out.text, sizeof out.text,
             "%s: %.0f %% of the attention falls on memory, averaged over layers; evenly spread it "
             "would be %.0f %%",
             m->name, 100.0 * mean, 100.0 * even_share(m));
    return out;
}

static lam_status add_even(lam_curves *curves, const lam_analysed *m)
{
    lam_points c;
    LAM_TRY(lam_curves_add(curves, &c, "evenly spread", m->probe.L, LAM_NO_BAND));
    for (int l = 0; l < m->probe.L; l++) {
        c.x[l] = l + 1;
        c.y[l] = even_share(m);
    }
    curves->list[curves->n - 1].dashed = true;
    curves->list[curves->n - 1].colour = LAM_ANALYSED;
    return LAM_OK;
}

static lam_status add_beyond(lam_curves *curves, const lam_analysed *m, int model, char *name,
                             size_t size)
{
    snprintf(name, size, "%.40s, %s rows", m->name, m->mem->beyond_name);
    LAM_TRY(over_layers(curves, m, m->probe.share[0], model));
    curves->list[curves->n - 1].name = name;
    curves->list[curves->n - 1].dashed = true;
    return LAM_OK;
}

static lam_status memory_use(const lam_analysis *a, lam_page *page, lam_curves *curves)
{
    static const char caption[] =
        "The part of the attention weight that falls on remembered rows rather than on the current "
        "segment, averaged over tokens and heads; the band runs over the heads.  The dashed line "
        "is what evenly spread weights would give the first model with a memory.";
    char names[LAM_ANALYSED][64];
    const lam_analysed *even = NULL;
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        if (m->probe.M == 0)
            continue;
        LAM_TRY(over_layers(curves, m, m->probe.share[1], i));
        if (m->probe.front > 0)
            LAM_TRY(add_beyond(curves, m, i, names[i], sizeof names[i]));
        even = even ? even : m;
    }
    if (!even)
        return LAM_OK;
    LAM_TRY(add_even(curves, even));
    lam_finding finding = lam_analysis_finding(a, NULL, LAM_CLAIM_SHARE);
    if (!finding.text[0])
        finding = share_of(even);
    return lam_page_figure(page,
                           &(lam_figure){.id = "memory-use",
                                         .title = "Memory use by layer",
                                         .finding = finding.text,
                                         .caption = caption,
                                         .x = {.label = "layer"},
                                         .y = {.label = "share of attention on memory", .max = 1},
                                         .n_series = curves->n,
                                         .series = curves->list});
}

/* What the numbers do not cover, mechanism by mechanism. */
static void remarks(const lam_analysis *a, lam_page *page)
{
    char remark[300], text[400];
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        if (!m->mem->remark)
            continue;
        m->mem->remark(remark, sizeof remark, &m->cfg);
        snprintf(text, sizeof text, "%s: %s.", m->name, remark);
        lam_page_text(page, text);
    }
}

lam_status lam_analysis_attention(const lam_analysis *a, lam_page *page)
{
    lam_figure_maker *const first[] = {by_distance}, *const then[] = {entropy, memory_use};
    const lam_head_range range = all_peaks(a);
    lam_page_heading(page, "attention", "Attention");
    LAM_TRY(lam_analysis_figures(a, page, first, 1));
    for (int i = 0; i < a->n; i++)
        LAM_TRY(by_layer(a, page, i, &range));
    LAM_TRY(lam_analysis_figures(a, page, then, 2));
    remarks(a, page);
    return LAM_OK;
}
