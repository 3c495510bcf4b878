/* cpu_levels.c -- see cpu_levels.h.  The only file that asks the processor what it can do; itself compiled for the
 * oldest one. */
#include "ops/cpu_levels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define LEVEL(table, name) extern const lam_ops table;
#include "ops/cpu_levels.inc"
#undef LEVEL

static const lam_cpu_level levels[] = {
#define LEVEL(table, name) {&table, name},
#include "ops/cpu_levels.inc"
#undef LEVEL
};

enum { LEVELS = sizeof levels / sizeof *levels };

const lam_cpu_level *lam_cpu_levels(int *n)
{
    *n = LEVELS;
    return levels;
}

#if defined(__x86_64__)
/* What the levels have beyond the instructions that use registers of the operating system's keeping: of those
 * __builtin_cpu_supports() knows whether it saves them, these need no such care. */
static int has_movbe_f16c_lzcnt(void)
{
    unsigned a, b, c = 0, d, extended = 0;
    return __get_cpuid(1, &a, &b, &c, &d) && __get_cpuid(0x80000001, &a, &b, &extended, &d) &&
           (c & bit_MOVBE) && (c & bit_F16C) && (extended & bit_LZCNT);
}

int lam_cpu_level_runs(const char *name)
{
    __builtin_cpu_init();
    const int v2 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.2") &&
                   __builtin_cpu_supports("popcnt");
    const int v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                   has_movbe_f16c_lzcnt();
    const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
    if (strcmp(name, "x86-64-v2") == 0)
        return v2;
    if (strcmp(name, "x86-64-v3") == 0)
        return v3;
    return strcmp(name, "x86-64-v4") == 0 ? v4 : 1;
}
#else
int lam_cpu_level_runs(const char *name)
{
    (void)name;
    return 1;
}
#endif

/* "x86-64-v2, x86-64-v3": all levels of the build, or those that run here. */
static const char *list(char *out, size_t size, int only_running)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < LEVELS && at < size; i++)
        if (!only_running || lam_cpu_level_runs(levels[i].name))
            at += (size_t)snprintf(out + at, size - at, "%s%s", at > 0 ? ", " : "", levels[i].name);
    return out;
}

lam_status lam_cpu_choose(const lam_ops **out)
{
    const char *const asked = getenv("LAMEMO_ISA");
    char text[256];
    *out = NULL;
    for (int i = LEVELS - 1; i >= 0; i--) {
        const int runs = lam_cpu_level_runs(levels[i].name);
        if (asked && asked[0] && strcmp(asked, levels[i].name) != 0)
            continue;
        if (asked && asked[0] && !runs)
            return lam_fail(LAM_ERR_ARG,
                            "LAMEMO_ISA=%s: this machine lacks these instructions; it has %s",
                            asked, list(text, sizeof text, 1));
        if (runs) {
            *out = levels[i].ops;
            return LAM_OK;
        }
    }
    if (asked && asked[0])
        return lam_fail(LAM_ERR_ARG, "LAMEMO_ISA=%s: this build has %s", asked,
                        list(text, sizeof text, 0));
    return lam_fail(LAM_ERR_UNSUPPORTED,
                    "device cpu: this machine has none of the instruction sets of this build (%s)",
                    list(text, sizeof text, 0));
}
