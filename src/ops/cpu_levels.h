/* cpu_levels.h -- the cpu back-end is compiled for several instruction sets; which one runs is decided at start.
 *
 * The highest level that the machine and its operating system have, unless LAMEMO_ISA in the environment names
 * another.  Levels differ in rounding: x86-64-v2 has no fused multiply-add (docs/packages.md). */
#ifndef LAM_OPS_CPU_LEVELS_H
#define LAM_OPS_CPU_LEVELS_H

#include "ops/ops.h"

/* What a processor and its operating system say of themselves: registers of cpuid, and XCR0, the register sets that the
 * operating system saves (0 where it does not say). */
typedef struct lam_cpu_facts {
    uint32_t ecx1;     /* leaf 1 */
    uint32_t ebx7;     /* leaf 7 */
    uint32_t extended; /* ecx of leaf 0x80000001 */
    uint64_t saved;    /* XCR0 */
} lam_cpu_facts;

/* Do they have all that x86-64-v2, -v3 or -v4 needs?  1 for every other name. */
int lam_cpu_facts_allow(const lam_cpu_facts *facts, const char *name);

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
