/* info_tables.h -- the tables of `lamemo info`: what a token costs under each memory, and the presets. */
#ifndef LAM_CLI_INFO_TABLES_H
#define LAM_CLI_INFO_TABLES_H

#include "nn/config.h"
#include "ops/ops.h"

#include <stdbool.h>
#include <stdio.h>

/* Prints the "#FLOPS" column of Table 1 for the shape *cfg; for the preset wt103-base beside what is printed there. */
lam_status lam_info_table(const lam_config *cfg, const char *preset, bool json);

/* Prints the presets with what training them takes on `dev`: memory, and the time of a step, which is measured where
 * that is quick and estimated from a quick one elsewhere.  Some seconds. */
lam_status lam_info_presets(lam_dev *dev, bool json);

/* Prints what is the same on every machine: sizes, batch, steps, parameters; for the help. */
void lam_info_presets_help(FILE *out);

#endif
