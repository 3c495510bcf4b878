/* division.c -- see division.h. */
#include "data/division.h"

#include "core/decimal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number with an optional k, M, G or %, which is *unit ('\0': none); NULL if there is none. */
static const char *parse_part(const char *text, double *out, char *unit)
{
    const char *const end = text + lam_decimal(out, text);
    if (end == text || *out < 0)
        return NULL;
    *unit = *end != '\0' && strchr("kMG%", *end) != NULL ? *end : '\0';
    *out *= *unit == 'k' ? 1e3 : *unit == 'M' ? 1e6 : *unit == 'G' ? 1e9 : 1;
    return *unit != '\0' ? end + 1 : end;
}

typedef struct parts {
    double sum;
    int sizes, percents; /* how many have k, M or G, or % */
    bool plain;          /* a number other than 0 has none of these */
} parts;

static lam_status parse_parts(lam_division *d, parts *all, const char *text)
{
    const char *p = text;
    for (int s = 0; s < LAM_SPLITS && p != NULL; s++) {
        char unit = '\0';
        p = parse_part(p, &d->part[s], &unit);
        all->sum += d->part[s];
        all->sizes += unit != '\0' && unit != '%';
        all->percents += unit == '%';
        all->plain |= unit == '\0' && d->part[s] != 0;
        if (p != NULL && *p != (s < LAM_TEST ? '/' : '\0'))
            p = NULL;
        else if (p != NULL)
            p++;
    }
    if (p == NULL)
        return lam_fail(LAM_ERR_ARG, "'%s' is not TRAIN/VALID/TEST, such as 90/5/5 or 90M/5M/5M",
                        text);
    if (all->sizes > 0 && all->percents > 0)
        return lam_fail(LAM_ERR_ARG, "'%s' mixes percentages and numbers of tokens", text);
    return LAM_OK;
}

static lam_status check_sizes(const lam_division *d, const char *text)
{
    for (int s = 0; s < LAM_SPLITS; s++)
        if (d->part[s] != floor(d->part[s]) || d->part[s] > 1e15)
            return lam_fail(LAM_ERR_ARG, "'%s' holds what is no number of tokens", text);
    return LAM_OK;
}

static lam_status as_fractions(lam_division *d, const parts *all, const char *text)
{
    const bool fractions = all->percents == 0 && fabs(all->sum - 1) < 1e-9;
    if (!fractions && fabs(all->sum - 100) > 1e-7)
        return lam_fail(LAM_ERR_ARG,
                        "'%s': percentages must add up to 100, these to %g; numbers of tokens have "
                        "a unit, such as 90M or 500k, or are given to --split-tokens",
                        text, all->sum);
    for (int s = 0; s < LAM_SPLITS; s++)
        d->part[s] /= fractions ? 1 : 100;
    return LAM_OK;
}

lam_status lam_division_parse(lam_division *out, const char *text, lam_division_units units)
{
    lam_division d = {0};
    parts all = {0};
    LAM_TRY(parse_parts(&d, &all, text));
    d.sizes = all.sizes > 0 || units == LAM_DIVISION_SIZES;
    if (d.sizes && (all.percents > 0 || (all.plain && units != LAM_DIVISION_SIZES)))
        return lam_fail(LAM_ERR_ARG, "'%s': %s", text,
                        all.percents > 0 ? "percentages are no numbers of tokens"
                                         : "every number of tokens needs its unit: k, M or G");
    LAM_TRY(d.sizes ? check_sizes(&d, text) : as_fractions(&d, &all, text));
    if (d.part[LAM_TRAIN] <= 0)
        return lam_fail(LAM_ERR_ARG, "'%s' leaves nothing to train on", text);
    *out = d;
    return LAM_OK;
}

lam_status lam_division_cut(const lam_division *d, int64_t total, int64_t ends[LAM_SPLITS])
{
    double sum = 0;
    for (int s = 0; s < LAM_SPLITS; s++) {
        sum += d->part[s];
        ends[s] = (int64_t)floor(d->sizes ? sum : sum * (double)total + 1e-6);
    }
    if (!d->sizes)
        ends[LAM_TEST] = total;
    if (ends[LAM_TEST] > total)
        return lam_fail(LAM_ERR_FORMAT, "the text has %lld tokens, the split needs %lld",
                        (long long)total, (long long)ends[LAM_TEST]);
    return LAM_OK;
}
