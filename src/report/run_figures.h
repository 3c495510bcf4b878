/* run_figures.h -- the curves of runs as figures: loss, learning rate, gradient norm, speed, and whatever else was
 * logged. */
#ifndef LAM_REPORT_RUN_FIGURES_H
#define LAM_REPORT_RUN_FIGURES_H

#include "draw/figure.h"
#include "report/runview.h"

typedef struct lam_run_figures_options {
    lam_run_axis over;
    lam_scale x, y; /* y: of the losses */
    double smooth;  /* weight of the past in a moving average, 0 to 0.999 */
} lam_run_figures_options;

/* Calls `each` with every figure that has points, in the order in which a reader wants them: "train",
 * "valid", "aux", "grad-norm", "lr", "speed", then others. */
lam_status lam_run_figures(const lam_runs *runs, const lam_run_figures_options *options,
                           lam_status (*each)(void *user, const lam_figure *figure), void *user);

#endif
