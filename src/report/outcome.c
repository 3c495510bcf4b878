/* outcome.c -- see outcome.h. */
#include "report/outcome.h"

#include "core/file.h"
#include "report/history.h"

#include <limits.h>
#include <math.h>

lam_outcome lam_outcome_none(void)
{
    return (lam_outcome){.valid = NAN, .test = NAN, .tokens_per_second = NAN};
}

static void judge(lam_outcome *out, const lam_history *h)
{
    const lam_curve *valid = lam_history_find(h, "valid_loss");
    const lam_curve *elapsed = lam_history_find(h, "elapsed");
    const int best = lam_curve_least(valid);
    for (int i = 0; i < h->n; i++) /* the test's record has the step of the best model */
        if (h->curves[i].n > 0)
            out->step = (int64_t)fmax((double)out->step, h->curves[i].step[h->curves[i].n - 1]);
    out->valid = best < 0 ? NAN : valid->value[best];
    out->test = lam_curve_last(lam_history_find(h, "test_loss"));
    out->tokens_per_second = lam_curve_median(lam_history_find(h, "tokens_per_second"));
    out->seconds = elapsed ? lam_curve_last(elapsed) : 0;
    out->diverged = lam_history_find(h, "diverged") != NULL;
}

lam_status lam_outcome_read(lam_outcome *out, const char *dir)
{
    char path[PATH_MAX];
    lam_history h;
    *out = lam_outcome_none();
    LAM_TRY(lam_path_join(path, sizeof path, dir, "metrics.jsonl"));
    if (!lam_path_exists(path))
        return LAM_OK;
    LAM_TRY(lam_history_of_run(&h, dir));
    const lam_status status = h.bad > 0 ? lam_fail(LAM_ERR_FORMAT, "%s", h.why) : LAM_OK;
    if (status == LAM_OK)
        judge(out, &h);
    lam_history_free(&h);
    return status;
}
