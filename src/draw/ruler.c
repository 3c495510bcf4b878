/* ruler.c -- see ruler.h. */
#include "draw/ruler.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

lam_ruler lam_ruler_empty(lam_scale scale)
{
    return (lam_ruler){scale, INFINITY, -INFINITY, true};
}

bool lam_ruler_has(const lam_ruler *r, double v)
{
    static const double far = 1e200; /* beyond, margins and ratios would overflow */
    return fabs(v) < far && (r->scale == LAM_SCALE_LINEAR || v > 1 / far);
}

void lam_ruler_hold(lam_ruler *r, double v)
{
    if (!lam_ruler_has(r, v))
        return;
    r->whole &= v == rint(v);
    r->low = fmin(r->low, v);
    r->high = fmax(r->high, v);
}

/* So near to nothing that one value fills the axis: make room around it. */
static void open_up(lam_ruler *r)
{
    if (r->low > r->high)
        *r = (lam_ruler){r->scale, r->scale == LAM_SCALE_LOG ? 0.1 : 0, 1, false};
    const double size = fmax(fabs(r->low), fabs(r->high));
    if (r->high - r->low > 1e-9 * size)
        return;
    if (r->scale == LAM_SCALE_LOG) {
        r->low /= 2;
        r->high *= 2;
    } else {
        const double half = size > 0 ? 0.1 * size : 1;
        r->low -= half;
        r->high += half;
    }
}

static void widen(lam_ruler *r, double margin)
{
    if (r->scale == LAM_SCALE_LOG) {
        const double f = pow(r->high / r->low, margin);
        r->low /= f;
        r->high *= f;
        return;
    }
    const double more = margin * (r->high - r->low);
    r->low -= r->low == 0 ? 0 : more;
    r->high += r->high == 0 ? 0 : more;
}

void lam_ruler_resolve(lam_ruler *r, const lam_axis *axis, double margin)
{
    open_up(r);
    widen(r, margin);
    if (axis->min == 0 && axis->max == 0)
        return;
    if (lam_ruler_has(r, axis->min) && lam_ruler_has(r, axis->max) && axis->min < axis->max) {
        r->low = axis->min;
        r->high = axis->max;
    }
}

double lam_ruler_at(const lam_ruler *r, double v)
{
    if (r->scale == LAM_SCALE_LOG)
        return log(v / r->low) / log(r->high / r->low);
    return (v - r->low) / (r->high - r->low);
}

/* 1200000 -> "1.2M", 20000 -> "20k"; small ones with the decimals that `step` needs. */
static void write_tick(char out[LAM_TICK_TEXT], double v, double step, double largest)
{
    static const struct {
        double unit;
        const char *letter;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
    if (v == 0 || largest < 1e-4 || largest >= 1e15) {
        const int digits = (int)fmin(ceil(log10(largest / step) + 1e-9) + 1, 15);
        snprintf(out, LAM_TICK_TEXT, "%.*g", digits > 0 ? digits : 1, v == 0 ? 0.0 : v);
        return;
    }
    int u = 4;
    if (largest >= 1e4)
        for (u = 0; u < 4 && fabs(v) < units[u].unit;)
            u++;
    const double unit = units[u].unit;
    int decimals = (int)fmax(0, ceil(-log10(step / unit) - 1e-9));
    snprintf(out, LAM_TICK_TEXT, "%.*f%s", decimals > 8 ? 8 : decimals, v / unit, units[u].letter);
}

static void add(lam_ticks *t, double at, double step, double largest)
{
    if (t->n >= LAM_TICKS_MAX)
        return;
    t->at[t->n] = at;
    t->text[t->n][0] = '\0';
    if (step > 0)
        write_tick(t->text[t->n], at, step, largest);
    t->n++;
}

/* The smallest of 1, 2, 5, 10 times a power of ten that is not below `least`. */
static double round_step(double least)
{
    const double power = pow(10, floor(log10(least)));
    const double f = least / power;
    return power * (f <= 1 ? 1 : f <= 2 ? 2 : f <= 5 ? 5 : 10);
}

static void linear_ticks(lam_ticks *out, const lam_ruler *r, int wanted)
{
    const double least = (r->high - r->low) / wanted;
    const double step = round_step(r->whole && r->high - r->low >= 1 ? fmax(least, 1) : least);
    const double largest = fmax(fabs(r->low), fabs(r->high));
    const double slack = 1e-9 * (r->high - r->low);
    for (double i = ceil((r->low - slack) / step); i * step <= r->high + slack; i++)
        add(out, i * step, step, largest);
}

/* Powers of ten, every k-th where there are many; within few decades also 2 and 5 times them, with numbers
 * where there is room. */
static void log_ticks(lam_ticks *out, const lam_ruler *r, int wanted)
{
    const double decades = log10(r->high / r->low);
    const int stride = (int)fmax(1, ceil(decades / wanted));
    static const double between[] = {1, 2, 5};
    for (double e = floor(log10(r->low)); e <= log10(r->high) + 1e-9; e++) {
        if (stride > 1 && fmod(e, stride) != 0)
            continue;
        for (int i = 0; i < (decades <= wanted ? 3 : 1); i++) {
            const double v = between[i] * pow(10, e);
            if (v >= r->low * (1 - 1e-9) && v <= r->high * (1 + 1e-9))
                add(out, v, i == 0 || decades <= wanted / 3.0 ? pow(10, e) : 0, v);
        }
    }
}

bool lam_ticks_at(lam_ticks *out, const double *at, int n)
{
    enum { MOST = 12 };
    out->n = 0;
    for (int i = 0; i < n && n <= MOST; i++)
        if (at[i] == rint(at[i]) && fabs(at[i]) < 1e6)
            add(out, at[i], 1, fabs(at[i]) < 1e4 ? fabs(at[i]) : 1e4);
    return n > 0 && out->n == n;
}

void lam_ticks_make(lam_ticks *out, const lam_ruler *r, int wanted)
{
    out->n = 0;
    if (r->scale == LAM_SCALE_LOG && log10(r->high / r->low) >= 0.7)
        log_ticks(out, r, wanted);
    else
        linear_ticks(out, r, wanted);
}
