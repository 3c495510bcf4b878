/* cpu_levels.h -- the cpu back-end is compiled for several instruction sets; which one runs is decided at start.
 *
 * The highest level that the machine and its operating system have, unless LAMEMO_ISA in the environment names
 * another.  Levels differ in rounding: x86-64-v2 has no fused multiply-add (docs/packages.md). */
#ifndef LAM_OPS_CPU_LEVELS_H
#define LAM_OPS_CPU_LEVELS_H

#include "ops/ops.h"

typedef struct lam_cpu_level {
    const lam_ops *ops;
    const char *name; /* "x86-64-v3", "aarch64", "native" */
} lam_cpu_level;

/* The levels of this build, lowest first; *n of them.  Static. */
const lam_cpu_level *lam_cpu_levels(int *n);
/* Has this machine the instructions?  Of a level that is no x86-64-v2, -v3 or -v4, whoever built it knew. */
int lam_cpu_level_runs(const char *name);
/* LAM_ERR_ARG: LAMEMO_ISA names a level that this build or machine has not; LAM_ERR_UNSUPPORTED: the machine has
 * none of them. */
lam_status lam_cpu_choose(const lam_ops **out);

#endif
