/* schedule.c -- see schedule.h. */
#include "train/schedule.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {"cosine", "linear", "inv_sqrt", "constant"};

double lam_schedule_lr(const lam_schedule *s, long t)
{
    const double pi = 3.14159265358979323846;
    if (s->kind == LAM_SCHEDULE_INV_SQRT) {
        const double step = (double)t + 1.0, w = (double)s->warmup;
        return s->lr * (step > w ? 1.0 / sqrt(step) : step / pow(w, 1.5));
    }
    if (t < s->warmup)
        return s->lr * ((double)t + 1.0) / (double)s->warmup;
    const double part = s->steps > 0 && t < s->steps ? (double)t / (double)s->steps : 1.0;
    switch (s->kind) {
    case LAM_SCHEDULE_COSINE:
        return s->lr_min + (s->lr - s->lr_min) * (1.0 + cos(pi * part)) / 2.0;
    case LAM_SCHEDULE_LINEAR:
        return s->lr_min + (s->lr - s->lr_min) * (1.0 - part);
    default:
        return s->lr;
    }
}

const char *lam_schedule_name(lam_schedule_kind kind)
{
    return names[kind];
}

lam_status lam_schedule_find(lam_schedule_kind *out, const char *name)
{
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (lam_schedule_kind)i;
            return LAM_OK;
        }
    return lam_fail(LAM_ERR_ARG, "schedule %s: there are cosine, linear, inv_sqrt and constant",
                    name);
}
