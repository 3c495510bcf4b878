/* parts.c -- see parts.h. */
#include "measure/parts.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENOUGH = 8 }; /* columns */

int lam_part_of(int64_t step, int64_t steps, int b, int B)
{
    const int64_t at = step < steps ? step : steps - 1;
    if (B >= ENOUGH)
        return (int)((int64_t)b * (B < LAM_PARTS ? B : LAM_PARTS) / B);
    return (int)(((int64_t)b * steps + at) * LAM_PARTS / ((int64_t)B * steps));
}

lam_status lam_parted_make(lam_parted *p, size_t n)
{
    *p = (lam_parted){.n = n};
    p->sum = calloc(LAM_PARTS * n + 1, sizeof *p->sum);
    p->count = calloc(LAM_PARTS * n + 1, sizeof *p->count);
    if (p->sum && p->count)
        return LAM_OK;
    lam_parted_free(p);
    return lam_fail(LAM_ERR_MEMORY, "no memory for %zu means", n);
}

void lam_parted_free(lam_parted *p)
{
    free(p->sum);
    free(p->count);
    *p = (lam_parted){0};
}

void lam_parted_add(lam_parted *p, int part, size_t i, double sum, double count)
{
    p->sum[(size_t)part * p->n + i] += sum;
    p->count[(size_t)part * p->n + i] += count;
}

double lam_parted_mean(const lam_parted *p, size_t i, int without)
{
    double sum = 0.0, count = 0.0;
    for (int k = 0; k < LAM_PARTS; k++) {
        if (k == without)
            continue;
        sum += p->sum[(size_t)k * p->n + i];
        count += p->count[(size_t)k * p->n + i];
    }
    return sum / count; /* 0 / 0 is the NaN of what nobody saw */
}

/* The variance of f is (n - 1) / n times the sum of squares of f without each stretch around their mean. */
lam_estimate lam_estimate_of(lam_statistic *f, const void *data, const lam_parted *counted)
{
    lam_estimate e = {.value = f(data, LAM_ALL_PARTS), .error = NAN};
    double left[LAM_PARTS], mean = 0.0, squares = 0.0;
    for (int k = 0; k < LAM_PARTS; k++)
        if (counted->count[(size_t)k * counted->n] > 0.0)
            mean += left[e.parts++] = f(data, k);
    mean /= e.parts;
    for (int k = 0; k < e.parts; k++)
        squares += (left[k] - mean) * (left[k] - mean);
    if (e.parts > 1)
        e.error = sqrt(squares * (e.parts - 1) / e.parts);
    return e;
}

typedef struct one_mean {
    const lam_parted *p;
    size_t i;
} one_mean;

static double mean_of(const void *data, int without)
{
    const one_mean *m = data;
    return lam_parted_mean(m->p, m->i, without);
}

lam_estimate lam_parted_estimate(const lam_parted *p, size_t i)
{
    return lam_estimate_of(mean_of, &(one_mean){p, i}, p);
}

int lam_estimate_side(const lam_estimate *e, double line)
{
    /* Student's t for 95 % on two sides, by degrees of freedom */
    static const double t[LAM_PARTS] = {INFINITY, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447,
                                        2.365,    2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
                                        2.145,    2.131, 2.120, 2.110, 2.101, 2.093};
    const double away = e->value - line;
    if (e->parts < 2 || !(fabs(away) > t[e->parts - 1] * e->error))
        return 0;
    return away > 0.0 ? 1 : -1;
}

/* Minus as a sign of its own, and none before a zero. */
static const char *write_number(char *out, size_t size, double v, int decimals)
{
    char digits[40];
    snprintf(digits, sizeof digits, "%.*f", decimals, fabs(v));
    const bool minus = v < 0 && digits[strspn(digits, "0.")] != '\0';
    snprintf(out, size, "%s%s", minus ? "\xe2\x88\x92" : "", digits);
    return out;
}

lam_shown lam_estimate_shown(const lam_estimate *e)
{
    lam_shown out;
    char value[44], error[44];
    const bool known = e->error > 0.0 && e->error < 1e9 && fabs(e->value) < 1e9;
    const double digits = known ? -floor(log10(e->error)) : 4.0; /* of the error: one, or two */
    const int decimals = (int)fmin(fmax(digits < 4.0 ? digits + known : digits, 0.0), 8.0);
    if (known)
        snprintf(out.text, sizeof out.text, "%s \xc2\xb1 %s",
                 write_number(value, sizeof value, e->value, decimals),
                 write_number(error, sizeof error, e->error, decimals));
    else if (fabs(e->value) < 1e9)
        write_number(out.text, sizeof out.text, e->value, decimals);
    else
        snprintf(out.text, sizeof out.text, "%g", e->value);
    return out;
}
