/* info_table.h -- what a token costs under each of the five memories. */
#ifndef LAM_CLI_INFO_TABLE_H
#define LAM_CLI_INFO_TABLE_H

#include "nn/config.h"

#include <stdbool.h>

/* Prints the "#FLOPS" column of Table 1 for the shape *cfg; for the preset wt103-base beside what is printed there. */
lam_status lam_info_table(const lam_config *cfg, const char *preset, bool json);

#endif
