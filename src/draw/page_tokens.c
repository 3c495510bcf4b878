/* page_tokens.c -- a text whose tokens are coloured by a number.
 *
 * The first measure is coloured here, so that the page says something without its script; the script recolours for
 * the others, from the same steps and limits. */
#include "draw/page_int.h"

#include "data/utf8.h"
#include "draw/palette.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_PARTS = 16 }; /* tokens shown together at most */

/* Tokens i ... end-1 are shown as one: each but the last ends inside a character that the next continues. */
static int unit_end(const lam_coloured *t, int i)
{
    unsigned char bytes[LAM_UTF8_MAX];
    size_t held = 0;
    int32_t c;
    for (int j = i; j < t->n && j < i + MOST_PARTS; j++) {
        const unsigned char *s = (const unsigned char *)t->tokens[j].text;
        for (size_t k = 0; k < t->tokens[j].size; k++) {
            bytes[held++] = s[k];
            const int length = lam_utf8_decode(bytes, held, &c);
            if (length < 0)
                return i + 1; /* not UTF-8: each token for itself */
            held = length > 0 ? 0 : held;
        }
        if (held == 0)
            return j + 1;
    }
    return i + 1;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where the strongest colour begins: few tokens are far worse than all others and would pale the rest. */
static lam_status limit_of(double *out, const lam_measure *m, int n)
{
    *out = m->limit;
    if (m->limit > 0)
        return LAM_OK;
    double *sorted = malloc(((size_t)n + 1) * sizeof *sorted);
    int used = 0;
    if (!sorted)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d values", n);
    for (int i = 0; i < n; i++)
        if (isfinite(m->values[i]))
            sorted[used++] = fabs(m->values[i]);
    qsort(sorted, (size_t)used, sizeof *sorted, rising);
    *out = used > 0 ? sorted[(int)(0.98 * (used - 1))] : 1;
    if (!(*out > 0))
        *out = 1;
    free(sorted);
    return LAM_OK;
}

static double unit_value(const lam_measure *m, int i, int end)
{
    double sum = 0;
    for (; i < end; i++)
        sum += m->values[i];
    return sum;
}

/* What a token's bytes look like; a line break is a token that has a number too. */
static void show(lam_text *out, const lam_text *bytes)
{
    for (size_t i = 0, end; i < bytes->size; i = end) {
        for (end = i; end < bytes->size && bytes->data[end] != '\n';)
            end++;
        lam_text_html_bytes(out, bytes->data + i, end - i);
        if (end < bytes->size) {
            lam_text_add(out, "\xe2\x86\xb5\n"); /* U+21B5, the sign of the return key */
            end++;
        }
    }
}

/* Above 0 a difference is blue, the first model's colour elsewhere; a plain number is orange. */
static char side_of(const lam_measure *m, double at)
{
    return (at > 0) == m->diverging ? 'u' : 't';
}

static void span(lam_text *out, const lam_coloured *t, int i, int end, double limit)
{
    const double v = unit_value(&t->measures[0], i, end);
    const double at = isfinite(v) ? v / limit : 0;
    const int step = (int)fmin(ceil(fabs(at) * LAM_TOKEN_STEPS - 1e-9), LAM_TOKEN_STEPS);
    if (step > 0 && (at > 0 || t->measures[0].diverging))
        lam_text_format(out, "<span class=%c%d>", side_of(&t->measures[0], at), step);
    else
        lam_text_add(out, "<span>");
    lam_text unit = {0}; /* whole characters: their pieces alone would be shown as \xHH */
    for (; i < end; i++)
        lam_text_bytes(&unit, t->tokens[i].text, t->tokens[i].size);
    show(out, &unit);
    out->failed |= unit.failed;
    lam_text_free(&unit);
    lam_text_add(out, "</span>");
}

static void measure_json(lam_text *out, const lam_coloured *t, const lam_measure *m, double limit)
{
    lam_text_add(out, "{\"name\":");
    lam_text_json(out, m->name);
    lam_text_format(out, ",\"diverging\":%s,\"limit\":%.6g", m->diverging ? "true" : "false",
                    limit);
    if (m->ends[0] && m->ends[1]) {
        lam_text_add(out, ",\"ends\":[");
        lam_text_json(out, m->ends[0]);
        lam_text_add(out, ",");
        lam_text_json(out, m->ends[1]);
        lam_text_add(out, "]");
    }
    lam_text_add(out, ",\"values\":[");
    for (int i = 0, end; i < t->n; i = end) {
        end = unit_end(t, i);
        lam_text_add(out, i > 0 ? "," : "");
        lam_text_number(out, unit_value(m, i, end), 4, "null");
    }
    lam_text_add(out, "]}");
}

/* For every shown unit the units it attends to and their weights in percent, as [unit, weight, ...]; -1 is what lies
 * before the first.  A unit of several tokens stands for the first of them. */
static void reader_json(lam_text *out, const lam_coloured *t, const lam_reader *r, const int *unit)
{
    lam_text_add(out, "{\"name\":");
    lam_text_json(out, r->name);
    lam_text_add(out, ",\"reads\":[");
    for (int i = 0, end; i < t->n; i = end) {
        end = unit_end(t, i);
        lam_text_add(out, i > 0 ? ",[" : "[");
        const int32_t *back = r->back + (size_t)i * (size_t)r->most;
        const float *weight = r->weight + (size_t)i * (size_t)r->most;
        for (int k = 0; k < r->most && back[k] > 0; k++)
            lam_text_format(out, "%s%d,%.1f", k > 0 ? "," : "",
                            i < back[k] ? -1 : unit[i - back[k]], 100.0 * (double)weight[k]);
        lam_text_add(out, "]");
    }
    lam_text_add(out, "]}");
}

static lam_status readers_json(lam_text *out, const lam_coloured *t)
{
    int *unit = malloc(((size_t)t->n + 1) * sizeof *unit);
    if (!unit)
        return lam_fail(LAM_ERR_MEMORY, "no memory for %d tokens", t->n);
    for (int i = 0, n = 0; i < t->n; n++)
        for (const int end = unit_end(t, i); i < end; i++)
            unit[i] = n;
    lam_text_add(out, ",\"readers\":[");
    for (int r = 0; r < t->n_readers; r++) {
        lam_text_add(out, r > 0 ? "," : "");
        reader_json(out, t, &t->readers[r], unit);
    }
    lam_text_add(out, "]");
    free(unit);
    return LAM_OK;
}

static lam_status tokens_json(lam_text *out, double *first_limit, const lam_coloured *t)
{
    lam_text_add(out, "{\"kind\":\"tokens\",\"measures\":[");
    for (int m = 0; m < t->n_measures; m++) {
        double limit;
        LAM_TRY(limit_of(&limit, &t->measures[m], t->n));
        if (m == 0)
            *first_limit = limit;
        lam_text_add(out, m > 0 ? "," : "");
        measure_json(out, t, &t->measures[m], limit);
    }
    lam_text_add(out, "]");
    if (t->n_readers > 0)
        LAM_TRY(readers_json(out, t));
    lam_text_add(out, "}");
    return LAM_OK;
}

lam_status lam_page_tokens(lam_page *page, const lam_coloured *tokens)
{
    lam_text json = {0};
    double limit = 1;
    assert(tokens->n_measures >= 1 && tokens->n_measures <= 8);
    const lam_status status = tokens_json(&json, &limit, tokens);
    if (status == LAM_OK) {
        lam_text *const out = &page->body;
        lam_page_open(
            page, &(lam_page_head){"coloured", tokens->id, tokens->title, NULL, tokens->caption});
        lam_text_add(out, "<div class=\"tokens\" tabindex=\"0\" role=\"group\" aria-label=\"");
        lam_text_html(out, tokens->title);
        lam_text_add(out, "\">");
        for (int i = 0, end; i < tokens->n; i = end) {
            end = unit_end(tokens, i);
            span(out, tokens, i, end, limit);
        }
        lam_text_add(out, "</div></figure>\n");
        lam_page_data(page, tokens->id, &json);
    }
    lam_text_free(&json);
    return status;
}
