/* analysis_alpha.c -- how much of a memory slot is the past (Eq. 11): by layer and slot (Figure 6), by head. */
#include "report/analysis_int.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHOWN = 8 }; /* layers in the line chart, as in the paper */

/* The k-th of n evenly chosen layers of L, the first and the last among them. */
static int chosen(int k, int n, int L)
{
    return n < 2 ? L - 1 : (k * (L - 1) + (n - 1) / 2) / (n - 1);
}

static lam_status lines(const lam_analysis *a, lam_page *page, const lam_analysed *m,
                        const char *id, lam_curves *curves)
{
    const int L = m->probe.L, n = L < SHOWN ? L : SHOWN;
    char names[SHOWN][24], title[128], caption[256], count[32];
    for (int k = 0; k < n; k++) {
        const int layer = chosen(k, n, L);
        lam_points c;
        snprintf(names[k], sizeof names[k], "layer %d", layer + 1);
        LAM_TRY(lam_curves_add(curves, &c, names[k], m->probe.M, LAM_NO_BAND));
        for (int s = 0; s < m->probe.M; s++) {
            c.x[s] = s + 1;
            c.y[s] = lam_analysed_alpha(m, layer, s);
        }
    }
    snprintf(title, sizeof title, "Memorizing coefficient: %s", m->name);
    snprintf(caption, sizeof caption,
             "alpha, the part of a refreshed slot that was known before, averaged over heads and "
             "%s segments.  Slot 1 is the oldest.  (The paper's Figure 6.)",
             lam_count_shown(count, sizeof count, m->probe.segments));
    return lam_page_figure(
        page, &(lam_figure){.id = id,
                            .title = title,
                            .finding = lam_analysis_finding(a, m, LAM_CLAIM_DEPTH).text,
                            .caption = caption,
                            .x = {.label = "memory slot (1: oldest)"},
                            .y = {.label = "alpha (1: only the past, 0: only the future)"},
                            .n_series = curves->n,
                            .series = curves->list,
                            .ordered = true});
}

/* What holds alpha of every layer, head and slot of all models: they share one scale of colours. */
static lam_head_range all_alphas(const lam_analysis *a)
{
    lam_head_range range = {.low = 1.0};
    for (int i = 0; i < a->n; i++) {
        const lam_probe *p = &a->models[i].probe;
        for (int l = 0; p->alpha && l < p->L; l++)
            for (int s = 0; s < p->M; s++) {
                const double v = lam_analysed_alpha(&a->models[i], l, s);
                range.low = fmin(range.low, v);
                range.high = fmax(range.high, v);
            }
    }
    return range;
}

static lam_status heat(const lam_analysis *a, lam_page *page, const lam_analysed *m, const char *id,
                       double *z)
{
    const int L = m->probe.L, M = m->probe.M;
    const lam_head_range range = all_alphas(a);
    char title[128];
    for (int l = 0; l < L; l++)
        for (int s = 0; s < M; s++)
            z[(size_t)l * (size_t)M + (size_t)s] = lam_analysed_alpha(m, l, s);
    snprintf(title, sizeof title, "Memorizing coefficient in every layer: %s", m->name);
    return lam_page_figure(
        page, &(lam_figure){.id = id,
                            .title = title,
                            .finding = lam_analysis_finding(a, m, LAM_CLAIM_OLDEST).text,
                            .caption = "The same for all layers; the first is on top.",
                            .kind = LAM_FIGURE_HEAT,
                            .x = {.label = "memory slot (1: oldest)", .min = 1, .max = M},
                            .y = {.label = "layer", .min = 1, .max = L},
                            .rows = L,
                            .cols = M,
                            .z = z,
                            .z_label = "alpha",
                            .z_min = range.low,
                            .z_max = range.high});
}

static lam_status heads(lam_page *page, const lam_analysed *m, const char *id, double *z)
{
    const int L = m->probe.L, H = m->probe.H, M = m->probe.M;
    char title[128];
    for (int n = 0; n < L * H; n++) {
        z[n] = 0.0;
        for (int s = 0; s < M; s++)
            z[n] += m->probe.alpha[(size_t)n * (size_t)M + (size_t)s] / M;
    }
    snprintf(title, sizeof title, "Memorizing coefficient by head: %s", m->name);
    return lam_page_figure(page,
                           &(lam_figure){.id = id,
                                         .title = title,
                                         .caption = "alpha of every head, averaged over its slots.",
                                         .kind = LAM_FIGURE_HEAT,
                                         .x = {.label = "head", .min = 1, .max = H},
                                         .y = {.label = "layer", .min = 1, .max = L},
                                         .rows = L,
                                         .cols = H,
                                         .z = z,
                                         .z_label = "alpha"});
}

static lam_status figures(const lam_analysis *a, lam_page *page, const lam_analysed *m, int number)
{
    const size_t most =
        (size_t)m->probe.L * (size_t)(m->probe.M > m->probe.H ? m->probe.M : m->probe.H);
    lam_curves curves = {0};
    char id[3][32];
    double *z = malloc(most * sizeof *z);
    snprintf(id[0], sizeof id[0], "alpha-%d", number);
    snprintf(id[1], sizeof id[1], "alpha-layers-%d", number);
    snprintf(id[2], sizeof id[2], "alpha-heads-%d", number);
    lam_status status =
        z ? LAM_OK : lam_fail(LAM_ERR_MEMORY, "analysis: no memory for %zu numbers", most);
    if (status == LAM_OK)
        status = lines(a, page, m, id[0], &curves);
    if (status == LAM_OK)
        status = heat(a, page, m, id[1], z);
    if (status == LAM_OK)
        status = heads(page, m, id[2], z);
    lam_curves_free(&curves);
    free(z);
    return status;
}

/* Why a model has no alpha. */
static void explain(lam_page *page, const lam_analysed *m)
{
    char text[256];
    const char *why = m->probe.M == 0       ? "it has no memory"
                      : m->mem->lacks_alpha ? m->mem->lacks_alpha(&m->cfg)
                                            : "its memory rows are not refreshed";
    snprintf(text, sizeof text, "%s has no memorizing coefficient: %s.", m->name, why);
    lam_page_text(page, text);
}

lam_status lam_analysis_alpha(const lam_analysis *a, lam_page *page)
{
    bool any = false;
    for (int i = 0; i < a->n; i++)
        any |= a->models[i].probe.alpha != NULL;
    if (!any)
        return LAM_OK;
    lam_page_heading(page, "alpha", "Memory interpolation");
    for (int i = 0; i < a->n; i++) {
        const lam_analysed *m = &a->models[i];
        if (m->probe.alpha)
            LAM_TRY(figures(a, page, m, i + 1));
        else
            explain(page, m);
    }
    return LAM_OK;
}
