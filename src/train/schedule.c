/* schedule.c -- see schedule.h. */
#include "train/schedule.h"

#include <math.h>
#include <stddef.h>

const char *const lam_schedule_names[] = {"cosine",   "linear", "inv_sqrt", "constant",
                                          "dev_perf", "wsd",    NULL};

double lam_schedule_lr(const lam_schedule *s, long t)
{
    return lam_schedule_lr_at(s, t, lam_schedule_progress(s, t));
}

double lam_schedule_progress(const lam_schedule *s, long t)
{
    return s->steps > 0 ? (double)t / (double)s->steps : 1.0;
}

double lam_schedule_lr_at(const lam_schedule *s, long t, double progress)
{
    const double pi = 3.14159265358979323846;
    if (s->kind == LAM_SCHEDULE_INV_SQRT) {
        const double step = (double)t + 1.0, w = (double)s->warmup;
        return s->lr * (step > w ? 1.0 / sqrt(step) : step / pow(w, 1.5));
    }
    if (t < s->warmup)
        return s->lr * ((double)t + 1.0) / (double)s->warmup;
    const double left = fmax(1.0 - progress, 0.0), range = s->lr - s->lr_min;
    switch (s->kind) {
    case LAM_SCHEDULE_COSINE:
        return s->lr_min + range * (1.0 + cos(pi * fmin(progress, 1.0))) / 2.0;
    case LAM_SCHEDULE_LINEAR:
        return s->lr_min + range * left;
    case LAM_SCHEDULE_WSD:
        return left >= s->cooldown ? s->lr : s->lr_min + range * left / s->cooldown;
    default:
        return s->lr;
    }
}

int lam_plateau_note(lam_plateau *p, const lam_schedule *s, double decay, int patience, double loss)
{
    if (loss < p->best * (1.0 - 1e-4)) {
        p->best = loss;
        p->bad = 0;
        return 0;
    }
    if (++p->bad <= patience)
        return 0;
    const double lowest = s->lr > 0.0 ? s->lr_min / s->lr : 0.0, old = p->factor;
    p->factor = fmax(p->factor * decay, lowest);
    p->bad = 0;
    return p->factor < old;
}
