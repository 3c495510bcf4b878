/* division.c -- see division.h. */
#include "data/division.h"

#include "core/decimal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number with an optional k, M, G or %; NULL if there is none. */
static const char *parse_part(const char *text, double *out)
{
    const char *const end = text + lam_decimal(out, text);
    if (end == text || *out < 0)
        return NULL;
    switch (*end) {
    case 'k':
        *out *= 1e3;
        return end + 1;
    case 'M':
        *out *= 1e6;
        return end + 1;
    case 'G':
        *out *= 1e9;
        return end + 1;
    case '%':
        return end + 1;
    default:
        return end;
    }
}

lam_status lam_division_parse(lam_division *out, const char *text)
{
    lam_division d = {0};
    double sum = 0;
    const char *p = text;
    for (int s = 0; s < LAM_SPLITS && p != NULL; s++) {
        p = parse_part(p, &d.part[s]);
        sum += d.part[s];
        if (p != NULL && *p != (s < LAM_TEST ? '/' : '\0'))
            p = NULL;
        else if (p != NULL)
            p++;
    }
    if (p == NULL)
        return lam_fail(LAM_ERR_ARG, "'%s' is not TRAIN/VALID/TEST, such as 90/5/5 or 90M/5M/5M",
                        text);
    const double whole = fabs(sum - 1) < 1e-9 ? 1 : fabs(sum - 100) < 1e-7 ? 100 : 0;
    d.sizes = whole == 0;
    for (int s = 0; s < LAM_SPLITS; s++) {
        if (d.sizes && (d.part[s] != floor(d.part[s]) || d.part[s] > 1e15))
            return lam_fail(LAM_ERR_ARG, "'%s' adds up to neither 1 nor 100 and holds no sizes",
                            text);
        d.part[s] /= d.sizes ? 1 : whole;
    }
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
